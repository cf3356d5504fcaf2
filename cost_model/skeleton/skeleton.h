// A sketch applied once: its blocks, the loops around each, and their extents
// and strides as expressions of the decisions. What a candidate's program
// looks like to the cost model follows from it by arithmetic, without IR.
//
//   sketch                              skeleton
//   v6.. = sample_perfect_tile(i, 4)    Y: loops i_0 i_1 i_2 i_3
//   split(i, [v6, v7, v8, v9])            extents v6 v7 v8 v9
//   reverse_compute_at(C, i_0)            vi = i_0 * (v7 v8 v9) + ...
//                                       C: loops i_0 ax0
//                                         extent of ax0 = v7 v8 v9
//
// One skeleton stands for one sketch with given compute locations: they decide
// the structure; all other decisions are numbers. It describes the program
// before the postprocs of the design space, which are applied to the numbers
// (finish.h).
#ifndef TILEFARM_COST_MODEL_SKELETON_SKELETON_H_
#define TILEFARM_COST_MODEL_SKELETON_SKELETON_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/trace.h"
#include "cost_model/loop_nest.h"
#include "cost_model/skeleton/formula.h"

namespace tilefarm::skeleton {

// --- What decisions do not change ------------------------------------------

// One index of an access, over the block's variables.
struct IndexExpr {
  ir::Expr expr;
  bool linear = false;  // sum of `terms` (variable, factor) and the constant
  std::vector<std::pair<int, double>> terms;
  double constant = 0;
  // In regions, where not linear: above 1, the sum divided by it, or the rest.
  int64_t divisor = 1, modulus = 1;
};

struct BlockAccess {
  int buffer = 0;
  bool writes = false;
  std::vector<IndexExpr> indices;
  // Loads that differ from it by constants alone, if any: it stands for all of
  // them wherever the buffer lies as the program says. The constant of each
  // index is lower by at most `below`, higher by `above`.
  std::vector<BlockAccess> alike;
  std::vector<double> below, above;
};

// A store of a block: the written buffer first, then what it loads.
struct BlockStore {
  cost_model::OpCounts ops;
  std::vector<BlockAccess> accesses;
};

struct BlockIter {
  ir::IterType type = ir::IterType::kSpatial;
  int64_t extent = 1;
  const ir::VarNode* var = nullptr;
};

// What a block declares that it reads or writes of one buffer.
struct BlockRegion {
  int buffer = 0;
  std::vector<IndexExpr> mins;
  std::vector<int64_t> extents;
};

// Of a block that becomes an instruction which sums `group` products in each of
// its lanes: its innermost loops are these two.
struct DotProduct {
  int64_t lanes = 0, group = 0;
  int sum_bytes = 4;
  cost_model::OpCounts ops;
};

struct BlockInfo {
  ir::BlockPtr block;  // owns the expressions
  std::vector<BlockIter> iters;
  BlockStore body;
  std::optional<BlockStore> init;
  std::vector<BlockRegion> reads, writes;
  bool is_reduction = false;
  bool is_tiled = false;  // in levels: its innermost loops are a register tile
  bool is_transposed = false;  // tiles whose elements stay apart
  bool is_packed = false;
  bool is_prepacked = false;  // copies ahead of time: no part of the nest
  std::optional<DotProduct> dot;

  // The iteration variable that is the whole last index of the store; -1
  // where there is none.
  int last_index_iter = -1;
};

// --- What they do change ---------------------------------------------------

// A part of a binding: `coefficient * loop`.
struct Term {
  int loop = 0;
  Value coefficient = 0;
  // Where the loop has one iteration, the variable does not occur.
  bool vanishes = false;
};

// The block is guarded by a condition where `reached` is more than `limit`:
// loops go beyond the domain.
struct Guard {
  Value reached = 0, limit = 0;
  bool reduces = false;  // a condition on reduce loops
};

struct SketchBlock {
  int info = -1;                            // index into Skeleton::infos
  std::vector<int> loops;                   // outermost first
  std::vector<std::vector<Term>> bindings;  // by iteration variable
  std::vector<int64_t> constants;
  std::vector<Guard> guards;
};

// `a` = `b`, or `a` <= `b`: without it the skeleton says nothing.
struct Requirement {
  Value a = 0, b = 0;
  bool equal = false;
};

struct Skeleton {
  Formula formula;
  std::vector<BlockInfo> infos;
  std::vector<cost_model::NestBuffer> buffers;
  std::vector<Value> extents;       // by loop
  std::vector<ir::ForKind> kinds;   // by loop
  std::vector<SketchBlock> blocks;  // in program order
  std::vector<Requirement> requirements;
  // What the root asks of the postprocs.
  std::optional<Value> parallel_jobs, vectorize, unroll_steps;
};

// Applies the sketch, whose compute locations are those of `decisions`, to the
// program. FailedPrecondition: those decisions are illegal (others may not
// be). Unimplemented, with the reason: the sketch does something that a
// skeleton cannot express.
absl::StatusOr<Skeleton> BuildSkeleton(const ir::PrimFuncPtr& program,
                                       const schedule::Trace& sketch,
                                       std::span<const ir::Attr> decisions);

}  // namespace tilefarm::skeleton

#endif  // TILEFARM_COST_MODEL_SKELETON_SKELETON_H_
