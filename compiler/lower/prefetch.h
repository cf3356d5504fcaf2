// What the passes that add prefetches share.
#ifndef TILEFARM_COMPILER_LOWER_PREFETCH_H_
#define TILEFARM_COMPILER_LOWER_PREFETCH_H_

#include <cstdint>
#include <optional>

#include "compiler/ir/visitor.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {

inline constexpr int64_t kLineBytes = 64;

inline bool HasLoop(const ir::Stmt& stmt) {
  bool found = false;
  ir::PreOrder(stmt, [&](const ir::Stmt& s) {
    found |= s->kind == ir::StmtKind::kFor;
    return !found;
  });
  return found;
}

// The change of `index` if `var` grows by one; nullopt: not constant.
inline std::optional<int64_t> StepOf(IndexMath& math, const ir::Expr& index,
                                     const ir::Var& var) {
  return math.Difference(
      ir::Substitute(index, {{var.get(), var + ir::IntConst(1)}}), index);
}

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_PREFETCH_H_
