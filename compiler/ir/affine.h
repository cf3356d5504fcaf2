// The index arithmetic that the IR itself needs: differences of expressions and
// bounds over loops. compiler/arith is more powerful, but depends on this
// library.
#ifndef TILEFARM_COMPILER_IR_AFFINE_H_
#define TILEFARM_COMPILER_IR_AFFINE_H_

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "compiler/ir/expr.h"

namespace tilefarm::ir {

// a - b if it is the same constant for all values of the variables.
std::optional<int64_t> ConstDifference(const Expr& a, const Expr& b);

// Inclusive constant bounds of variables.
using VarBounds =
    std::unordered_map<const VarNode*, std::pair<int64_t, int64_t>>;

// Inclusive bounds of `expr` over the variables in `bounds`, as expressions of
// the other variables; nullopt if `expr` is not known to be monotone.
std::optional<std::pair<Expr, Expr>> BoundsOver(const Expr& expr,
                                                const VarBounds& bounds);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_AFFINE_H_
