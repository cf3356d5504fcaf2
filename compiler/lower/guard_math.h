// Decomposes guards (conditions on indices) for passes.
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

// A comparison of indices as `linear <= 0`; nullopt for other conditions.
std::optional<Linear> AsUpperBound(IndexMath& math, const ir::Expr& condition);

// The number of stores of a statement after T.unroll loops are unrolled.
int64_t CountStores(const ir::Stmt& stmt);

// The known maximum of a loop's iterations; all lanes of a vector count as one.
double Iterations(IndexMath& math, const ir::ForNode& loop);
// The number of store executions, counted in the same way.
double StoresRun(IndexMath& math, const ir::Stmt& stmt);

// The unroll pragma in force at a place, from the loops around it.
struct UnrollPragma {
  bool is_explicit = false;
  int64_t max_step = 0;

  void Enter(const ir::ForNode& loop);
  // Whether UnrollLoops may unroll a serial loop of constant extent, once it is
  // entered. UnrollLoops counts vectors, this counts stores: true if unsure.
  bool Unrolls(const ir::ForNode& loop) const;
};

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_GUARD_MATH_H_
