// The value of an index where its variables have values.
#ifndef TILEFARM_COMPILER_ARITH_EVALUATE_H_
#define TILEFARM_COMPILER_ARITH_EVALUATE_H_

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "compiler/ir/expr.h"

namespace tilefarm::arith {

using VarValues = std::unordered_map<const ir::VarNode*, int64_t>;

// Sums, differences, products, and quotients and remainders by positive
// divisors. nullopt: a variable without a value, or other operations.
std::optional<int64_t> Evaluate(const ir::Expr& e, const VarValues& values);

}  // namespace tilefarm::arith

#endif  // TILEFARM_COMPILER_ARITH_EVALUATE_H_
