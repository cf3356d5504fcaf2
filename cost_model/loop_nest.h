// The part of a scheduled program that the cost model uses: its stores, each
// with the loops around it and how its accesses change with them. It has plain
// numbers and no IR: BuildLoopNest makes it from a program, and other code may
// make it from extents.
//
//   for i in 4 (parallel):           Store C: loops {4 p, 64, 16 u, 16 v}
//     for k in 64:                     C: dims {{i: 16, j.u: 1}, {j.v: 1}}
//       for j in 16 (unroll): ...      A: ..., B: ...
#ifndef TILEFARM_COST_MODEL_LOOP_NEST_H_
#define TILEFARM_COST_MODEL_LOOP_NEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilefarm::cost_model {

// Operations of one execution of a store; index arithmetic does not count.
struct OpCounts {
  double float_add = 0;  // and subtract
  double float_mul = 0;
  double float_fma = 0;  // a multiplication whose result is added directly
  double float_div = 0;
  double float_compare = 0;  // min, max, comparisons
  double float_math = 0;     // exp, sqrt, ...
  double int_add = 0;
  double int_mul = 0;
  double int_div = 0;  // and remainder
  double int_compare = 0;
  double int_other = 0;  // bit operations, shifts, math
  double casts = 0;
  double selects = 0;  // and if_then_else
  double logical = 0;  // and, or, not

  // Arithmetic operations; a fused multiply-add counts as two.
  double float_ops() const {
    return float_add + float_mul + 2 * float_fma + float_div + float_compare +
           float_math;
  }
  double int_ops() const { return int_add + int_mul + int_div + int_compare; }
};

struct NestLoop {
  int64_t extent = 1;
  ir::ForKind kind = ir::ForKind::kSerial;
  // The number of unlisted loops of one iteration directly inside of it.
  int ones = 0;
};

struct NestBuffer {
  int element_bytes = 4;
  std::vector<int64_t> shape;
  bool intermediate = false;  // allocated by the program

  double bytes() const;
};

// All accesses of a store to one buffer. `strides` and `spans` have, for each
// dimension, one value per loop: the change of the index from one iteration to
// the next, and over the whole loop.
struct NestAccess {
  int buffer = 0;  // index into LoopNest::buffers
  bool reads = false;
  bool writes = false;
  bool irregular = false;
  int loads = 0;  // distinct load expressions
  int group = 1;  // elements per lane of a load (dot products)
  std::vector<double> strides;
  std::vector<double> spans;
  // Per dimension: the distance between constant offsets of several loads.
  std::vector<double> offset_spans;
};

struct NestStore {
  // Outermost first. Loops of one iteration may be omitted: features do not
  // depend on them.
  std::vector<NestLoop> loops;
  std::vector<NestAccess> accesses;  // the written buffer first
  OpCounts ops;
  bool is_init = false;
  bool integral = false;        // it stores integers
  int guards = 0;               // predicates and conditions around it
  double domain_size = 0;       // instances of its block; 0: no block
  int64_t unroll_max_step = 0;  // serial loops within it are unrolled
  int64_t alloc_depth = 0;      // listed loops around the written buffer
};

struct LoopNest {
  std::vector<NestBuffer> buffers;
  std::vector<NestStore> stores;  // in program order
};

// Of all buffers that it accesses.
double BytesOf(const LoopNest& nest);

// What a person calls the parts of a nest: of each buffer, and of each store
// its block (empty: none) and its loops.
struct NestNames {
  struct Store {
    std::string block;
    std::vector<std::string> loops;
  };
  std::vector<std::string> buffers;
  std::vector<Store> stores;
};

// Takes one pass over any verified program; extents that are not constant count
// as 1. Work that runs ahead of time (ir::kPrepack) is left out, and its
// results count as parameters.
// `names`, where it is not null, is filled with those of the result.
LoopNest BuildLoopNest(const ir::PrimFunc& function,
                       NestNames* names = nullptr);

// Operations of an expression's value, and its loads in a store's order.
// Operations of load indices do not count, but loads in them do (gathers).
struct ValueSummary {
  OpCounts ops;
  std::vector<const ir::LoadNode*> loads;
};
ValueSummary SummarizeValue(const ir::Expr& value);
// For a store whose block skips padding (ir::kSkipPadding): without the
// guarding select, which the interior of the loops does not execute.
ValueSummary SummarizeUnpadded(const ir::StoreNode& store);
// Counts the store as a dot product into a register of sums (of `sum_bytes`
// each): one operation, and one load of each operand, whose groups are as wide
// as the sums and have the same order.
void CountAsDotProduct(const std::vector<NestBuffer>& buffers, int sum_bytes,
                       bool is_float, NestStore& store);

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_LOOP_NEST_H_
