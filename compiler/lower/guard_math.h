// Guards (conditions on indices) as passes take them apart.
#ifndef TILEFARM_COMPILER_LOWER_GUARD_MATH_H_
#define TILEFARM_COMPILER_LOWER_GUARD_MATH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {

// The parts of a conjunction, from left to right.
void SplitConjunction(const ir::Expr& condition, std::vector<ir::Expr>& out);
ir::Expr Conjunction(const std::vector<ir::Expr>& conditions);

bool ReadsMemory(const ir::Expr& e);

// A comparison of indices as `linear <= 0`; nullopt for others.
std::optional<Linear> AsUpperBound(IndexMath& math, const ir::Expr& condition);

// The stores of a statement once T.unroll is done.
int64_t CountStores(const ir::Stmt& stmt);

// Of a loop, at most, as far as that is known; all lanes of a vector are one.
double Iterations(IndexMath& math, const ir::ForNode& loop);
// How often its stores run, by the same count.
double StoresRun(IndexMath& math, const ir::Stmt& stmt);

// What the pragmas of the loops around a place ask for there.
struct UnrollPragma {
  bool is_explicit = false;
  int64_t max_step = 0;

  void Enter(const ir::ForNode& loop);
  // Whether UnrollLoops may replicate a serial loop, entered, of constant
  // extent. It counts vectors, this counts stores: true where in doubt.
  bool Unrolls(const ir::ForNode& loop) const;
};

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_GUARD_MATH_H_
