// Divisions by constants, for tests.
#ifndef TILEFARM_TESTS_ARITH_DIVISION_H_
#define TILEFARM_TESTS_ARITH_DIVISION_H_

#include <cstdint>
#include <utility>

#include "compiler/ir/expr.h"

namespace tilefarm::arith {

inline ir::Expr Div(ir::Expr a, int64_t b) {
  return ir::FloorDiv(std::move(a), ir::IntConst(b));
}
inline ir::Expr Mod(ir::Expr a, int64_t b) {
  return ir::FloorMod(std::move(a), ir::IntConst(b));
}

}  // namespace tilefarm::arith

#endif  // TILEFARM_TESTS_ARITH_DIVISION_H_
