// Collects several edits below one scope block and applies them at once: moving
// a block removes it in one place and inserts it in another.
//
//   ScopeEditor edit;
//   edit.Replace(block, ir::NoOp());       // leaves, with its empty loops
//   edit.Insert(loop, 1, new_nest);        // as statement 1 of the loop's body
//   state.Replace(scope, edit.Apply(scope));
#ifndef TILEFARM_COMPILER_SCHEDULE_SCOPE_EDIT_H_
#define TILEFARM_COMPILER_SCHEDULE_SCOPE_EDIT_H_

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::schedule {

// The statements of a body in order: those of a sequence, or the body itself.
std::vector<ir::Stmt> Statements(const ir::Stmt& body);

// The position of the statement of the body that is or contains `node`; -1 if
// there is none.
int PositionOf(const ir::Stmt& body, const ir::StmtNode* node);

// The body of a loop or block.
const ir::Stmt& BodyOf(const ir::StmtNode* loop_or_block);

class ScopeEditor : public ir::Mutator {
 public:
  // Positions refer to the original statements of the body; the new statement
  // goes before that position.
  void Insert(const ir::StmtNode* parent, int position, ir::Stmt stmt);
  void Replace(const ir::StmtNode* old_stmt, ir::Stmt new_stmt);
  // Adds and removes allocations of the scope block.
  void AddAlloc(ir::Buffer buffer) { new_allocs_.push_back(std::move(buffer)); }
  void RemoveAlloc(const ir::BufferNode* buffer) {
    removed_allocs_.insert(buffer);
  }

  // A copy of the scope block with the edits, without loops that became empty.
  ir::BlockPtr Apply(const ir::BlockNode& scope);

 protected:
  using Mutator::Mutate;
  ir::Stmt Mutate(const ir::Stmt& stmt) override;
  ir::Stmt MutateFor(const ir::ForNode& loop, const ir::Stmt& self) override;
  ir::Stmt MutateBlock(const ir::BlockNode& block,
                       const ir::Stmt& self) override;

 private:
  ir::Stmt EditBody(const ir::StmtNode* parent, const ir::Stmt& body);

  std::unordered_map<const ir::StmtNode*, ir::Stmt> replaced_;
  std::unordered_map<const ir::StmtNode*, std::vector<std::pair<int, ir::Stmt>>>
      inserted_;
  std::vector<ir::Buffer> new_allocs_;
  std::unordered_set<const ir::BufferNode*> removed_allocs_;
};

// Rewrites every access to one buffer below a statement, and recomputes the
// reads and writes of changed blocks. `on_load` or `on_store` may be null: such
// accesses stay. Both get rewritten indices and values.
struct AccessRewrite {
  const ir::BufferNode* buffer = nullptr;
  std::function<ir::Expr(const std::vector<ir::Expr>& indices)> on_load;
  std::function<ir::Stmt(const std::vector<ir::Expr>& indices,
                         const ir::Expr& value)>
      on_store;
};
ir::Stmt RewriteAccesses(const ir::Stmt& stmt, const AccessRewrite& rewrite);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_SCOPE_EDIT_H_
