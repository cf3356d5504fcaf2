// A sketch as steps on numbers: what its instructions do to loops and blocks,
// once for all candidates that differ in numbers alone.
//
//   sketch                                steps
//   v6.. = sample_perfect_tile(i, n=4)    SampleTile{loop i, values 0..3}
//   split(i, [v6, v7, v8, v9])            SplitLoop{loop i, values 0..3}
//   reorder(...)                          ReorderLoops{...}
//   reverse_compute_at(C, i_0)            MoveBlock{C, loop i_0, what C reads
//                                                   of what Y writes}
//
// A plan stands for one sketch with given compute locations: they decide which
// blocks and loops there are; all other decisions are numbers. The loops before
// the first sample are read off the program. So is what an instruction makes
// that no step expresses, where no decision reaches it (PlaceBlocks).
#ifndef TILEFARM_COST_MODEL_SKELETON_SKETCH_PLAN_H_
#define TILEFARM_COST_MODEL_SKELETON_SKETCH_PLAN_H_

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "cost_model/loop_nest.h"
#include "cost_model/skeleton/block_info.h"

namespace tilefarm::skeleton {

// --- Loops and blocks with a candidate's numbers ---------------------------

struct NestedLoop {
  int64_t extent = 1;
  ir::ForKind kind = ir::ForKind::kSerial;
  int64_t unroll_steps = -1;  // -1: no annotation
  // The loop that it is a part of, where that was split: `step` of it.
  int parent = -1;
  int64_t step = 1;
};

struct NestedIter {
  ir::IterType type = ir::IterType::kSpatial;
  int64_t extent = 1;
};

struct NestedBlock {
  const BlockInfo* info = nullptr;  // as the whole sketch leaves the block
  bool is_init = false;     // the initialisation of a decomposed reduction
  bool decomposed = false;  // a reduction without its initialisation
  bool guarded = false;     // by the tail of a spatial loop
  bool cut = false;         // by that of a loop cut for its vectors
  bool reduce_guarded = false;
  bool tensorized = false;
  // Of a dot product, whose loop over a group is gone: the variable that is
  // summed over; else -1.
  int group_iter = -1;
  std::vector<int> loops;  // outermost first
  std::vector<NestedIter> iters;
  std::vector<std::vector<LoopPart>> bindings;  // by iteration variable
  std::vector<int64_t> constants;
  // Former variables, of whose loops rfactor made variables: each is a sum in
  // which variables are in the place of loops. Variable number iters.size() + n
  // is the n-th of them.
  std::vector<std::vector<LoopPart>> written_out;
};

// --- Steps -----------------------------------------------------------------
// Loops and blocks have numbers in the order in which they are made; values
// those of samples.

// A constant, or a sampled value.
struct Operand {
  int value = -1;
  int64_t constant = 0;
};

struct SampleTile {
  int site = 0, loop = 0, first_value = 0, count = 0;
  bool perfect = false;
  int64_t max_innermost = 0;  // 0: any
};
struct SampleChoice {
  int site = 0, value = 0;
  std::vector<int64_t> choices;
};
struct SplitLoop {
  int loop = 0;
  std::vector<std::optional<Operand>> factors;  // at most one is left out
  bool must_divide = false;
};
struct FuseLoops {
  std::vector<int> loops;
};
struct ReorderLoops {
  std::vector<int> loops;
};
struct MarkLoop {
  int loop = 0;
  ir::ForKind kind = ir::ForKind::kSerial;
};
struct RemoveBlock {
  int block = 0;
};
// Blocks as they are in the program, with loops whose extents no decision
// changes; `loops` are new, in front of those that blocks ask for.
struct PlaceBlocks {
  std::vector<NestedLoop> loops;
  std::vector<std::pair<int, NestedBlock>> blocks;
  std::vector<int> order;  // of all blocks
};
// compute_at, or reverse_compute_at: the block gets a loop for each of its
// variables, over what one iteration of `loop` needs (makes).
struct MoveBlock {
  // What neighbour `block` reads (writes) of a buffer that the moved block
  // writes (reads).
  struct Need {
    int block = 0;
    BlockRegion region;
  };
  struct Access {
    BlockRegion region;  // the moved block's own
    std::vector<Need> needs;
  };
  int block = 0, loop = 0;
  bool reverse = false;
  size_t position = 0;  // among the blocks, when it has moved
  std::vector<Access> accesses;
};
struct FactorReduction {
  int block = 0, loop = 0;
  int buffer = 0, axis = 0;  // of the partial results
};

using Step = std::variant<SampleTile, SampleChoice, SplitLoop, FuseLoops,
                          ReorderLoops, MarkLoop, RemoveBlock, PlaceBlocks,
                          MoveBlock, FactorReduction>;

// --- The plan --------------------------------------------------------------

struct SketchPlan {
  std::vector<Step> steps;
  std::vector<BlockInfo> infos;  // by block, as the whole sketch leaves it
  std::vector<cost_model::NestBuffer> buffers;
  int values = 0;
  // What the root asks of the postprocs.
  std::optional<Operand> parallel_jobs, vectorize, unroll_steps;
};

struct PlannedSketch {
  SketchPlan plan;
  schedule::Schedule schedule;  // what the sketch made with these decisions
};

// Runs the sketch, whose compute locations are those of `decisions`, on the
// program, and holds each step against what the instruction made there. `start`
// has applied the sketch up to a place before its first sample.
// FailedPrecondition: the decisions are illegal (others may not be).
// OutOfRange, with the reason: numbers alone do not tell what these make.
// Unimplemented, with the reason: the sketch does something that no step
// expresses.
absl::StatusOr<PlannedSketch> PlanSketch(const ir::PrimFunc& program,
                                         const schedule::PartialReplay& start,
                                         const schedule::Trace& sketch,
                                         std::span<const ir::Attr> decisions);

}  // namespace tilefarm::skeleton

#endif  // TILEFARM_COST_MODEL_SKELETON_SKETCH_PLAN_H_
