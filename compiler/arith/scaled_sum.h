// Sums that are scaled before a part of them is added, as running sums relative
// to a maximum are.
#ifndef TILEFARM_COMPILER_ARITH_SCALED_SUM_H_
#define TILEFARM_COMPILER_ARITH_SCALED_SUM_H_

#include <optional>

#include "compiler/ir/stmt.h"

namespace tilefarm::arith {

// Whether the value is what the store overwrites: a load, without a predicate,
// of the same element.
bool IsElementOf(const ir::Expr& e, const ir::StoreNode& store);

// sum[i] = sum[i] * factor + part[j], the two of one type.
struct ScaledSum {
  ir::Expr scaled;  // sum[i] * factor
  ir::Expr factor;
  const ir::LoadNode* part = nullptr;
};

std::optional<ScaledSum> AsScaledSum(const ir::StoreNode& store);

}  // namespace tilefarm::arith

#endif  // TILEFARM_COMPILER_ARITH_SCALED_SUM_H_
