// Copies and edits of statements that keep loop and block variables unique.
#ifndef TILEFARM_COMPILER_SCHEDULE_IR_COPY_H_
#define TILEFARM_COMPILER_SCHEDULE_IR_COPY_H_

#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::schedule {

// A copy with fresh loop and block variables of the same names, `loop_suffix`
// appended to the names of loop variables. Also applies `vars`.
ir::Stmt CopyWithFreshVars(const ir::Stmt& stmt, const ir::VarMap& vars = {},
                           std::string_view loop_suffix = "");

// A copy of the loop with another body (and variable).
ir::ForPtr WithBody(const ir::ForNode& loop, ir::Stmt body);
ir::ForPtr WithVar(const ir::ForNode& loop, ir::Var var, ir::Stmt body);
ir::ForPtr WithKind(const ir::ForNode& loop, ir::ForKind kind,
                    std::string thread_tag = "");
// A copy of the block with another body.
ir::BlockPtr WithBody(const ir::BlockNode& block, ir::Stmt body);

// A name that no block in `stmt` has: `base`, then `base_1`, ...
std::string FreshBlockName(const ir::Stmt& stmt, std::string_view base);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_IR_COPY_H_
