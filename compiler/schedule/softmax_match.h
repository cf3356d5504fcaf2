// Sums of exponentials relative to their largest exponent, as softmax has them:
// what primitives that compute them chunk by chunk rewrite.
#ifndef TILEFARM_COMPILER_SCHEDULE_SOFTMAX_MATCH_H_
#define TILEFARM_COMPILER_SCHEDULE_SOFTMAX_MATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/reducer.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

// One of the two reductions of the program.
struct RowReduction {
  ir::BlockPtr block;
  std::vector<ir::ForPtr> loops;
  Reducer reducer;
  const ir::IterVar* reduce = nullptr;  // its one reduce variable

  const ir::StoreNode& store() const {
    return *ir::As<ir::StoreNode>(block->body);
  }
  const ir::Buffer& buffer() const { return store().buffer; }
};

//   for i, k: largest[i] = max(largest[i], x[i, k])
//   for i, k: total[i] += exp((x[i, k] - largest[i]) * scale)
struct Softmax {
  RowReduction largest, total;
  ir::Expr exponent;  // x[i, k], in terms of the variables of `total`
  ir::Expr relative;  // largest[i], in the same terms
  ir::Expr scale;     // a positive constant; null: none is written
  ir::Expr lowest;    // what the maximum starts from
  // Variables of `total` but for the reduced one -> those of `largest`; where a
  // dimension has one element there may be none.
  ir::VarMap to_largest;
  int64_t extent = 0;  // of the range

  // exp((x - m) * scale).
  ir::Expr Exp(const ir::Expr& x, const ir::Expr& m) const;
};

// The softmax that has this sum. FailedPrecondition: it is no such sum, in
// float32 or float64; a loop is not bound to one variable of its block; the
// maximum, the only writer of what is subtracted from the exponents, is not of
// the same values over the same range, or starts from -inf: the difference of
// two exponents in a chunk that contains only -inf would be no number.
absl::StatusOr<Softmax> MatchSoftmax(const ScheduleState& state,
                                     const ir::BlockPtr& total);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_SOFTMAX_MATCH_H_
