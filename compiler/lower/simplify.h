// Simplify (passes.h) with facts that hold around the statement.
#ifndef TILEFARM_COMPILER_LOWER_SIMPLIFY_H_
#define TILEFARM_COMPILER_LOWER_SIMPLIFY_H_

#include "compiler/ir/stmt.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {

ir::Stmt Simplify(IndexMath& math, const ir::Stmt& stmt);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_SIMPLIFY_H_
