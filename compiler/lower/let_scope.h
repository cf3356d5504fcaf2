// Definitions around straight code.
#ifndef TILEFARM_COMPILER_LOWER_LET_SCOPE_H_
#define TILEFARM_COMPILER_LOWER_LET_SCOPE_H_

#include <memory>
#include <utility>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilefarm::lower {

// Statements that surround those which use what they define.
class LetScope {
 public:
  ir::Var Define(const char* name, const ir::Expr& value) {
    lets_.emplace_back(ir::MakeLetVar(name, value->dtype), value);
    return lets_.back().first;
  }
  ir::Stmt Around(ir::Stmt body) const {
    for (size_t i = lets_.size(); i-- > 0;) {
      body = std::make_shared<const ir::LetStmtNode>(lets_[i].first,
                                                     lets_[i].second, body);
    }
    return body;
  }

 private:
  std::vector<std::pair<ir::Var, ir::Expr>> lets_;
};

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_LET_SCOPE_H_
