#include "compiler/schedule/scope_edit.h"

#include <algorithm>

#include "base/check.h"
#include "compiler/ir/regions.h"
#include "compiler/schedule/ir_copy.h"

namespace tilefarm::schedule {

std::vector<ir::Stmt> Statements(const ir::Stmt& body) {
  if (const auto* seq = ir::As<ir::SeqNode>(body)) return seq->stmts;
  return {body};
}

int PositionOf(const ir::Stmt& body, const ir::StmtNode* node) {
  const std::vector<ir::Stmt> stmts = Statements(body);
  for (size_t i = 0; i < stmts.size(); ++i) {
    bool found = false;
    ir::PreOrder(stmts[i], [&](const ir::Stmt& s) {
      found = found || s.get() == node;
      return !found;
    });
    if (found) return static_cast<int>(i);
  }
  return -1;
}

const ir::Stmt& BodyOf(const ir::StmtNode* loop_or_block) {
  if (const auto* loop = ir::As<ir::ForNode>(loop_or_block)) return loop->body;
  const auto* block = ir::As<ir::BlockNode>(loop_or_block);
  TF_CHECK(block != nullptr);
  return block->body;
}

void ScopeEditor::Insert(const ir::StmtNode* parent, int position,
                         ir::Stmt stmt) {
  inserted_[parent].emplace_back(position, std::move(stmt));
}

void ScopeEditor::Replace(const ir::StmtNode* old_stmt, ir::Stmt new_stmt) {
  replaced_[old_stmt] = std::move(new_stmt);
}

ir::BlockPtr ScopeEditor::Apply(const ir::BlockNode& scope) {
  ir::BlockNode result = scope;
  result.body = EditBody(&scope, scope.body);
  std::erase_if(result.allocs, [&](const ir::Buffer& buffer) {
    return removed_allocs_.contains(buffer.get());
  });
  result.allocs.insert(result.allocs.end(), new_allocs_.begin(),
                       new_allocs_.end());
  return ir::BlockOf(std::move(result));
}

ir::Stmt ScopeEditor::Mutate(const ir::Stmt& stmt) {
  const auto it = replaced_.find(stmt.get());
  if (it != replaced_.end()) return it->second;
  return Mutator::Mutate(stmt);
}

ir::Stmt ScopeEditor::EditBody(const ir::StmtNode* parent,
                               const ir::Stmt& body) {
  const auto inserted = inserted_.find(parent);
  if (inserted == inserted_.end() && ir::As<ir::SeqNode>(body) == nullptr) {
    return Mutate(body);
  }
  const std::vector<ir::Stmt> old_stmts = Statements(body);
  std::vector<ir::Stmt> stmts;
  bool changed = inserted != inserted_.end();
  for (size_t i = 0; i <= old_stmts.size(); ++i) {
    if (inserted != inserted_.end()) {
      for (const auto& [position, stmt] : inserted->second) {
        if (position == static_cast<int>(i)) stmts.push_back(stmt);
      }
    }
    if (i == old_stmts.size()) break;
    ir::Stmt stmt = Mutate(old_stmts[i]);
    changed = changed || stmt != old_stmts[i];
    stmts.push_back(std::move(stmt));
  }
  return changed ? ir::MakeSeq(std::move(stmts)) : body;
}

ir::Stmt ScopeEditor::MutateFor(const ir::ForNode& loop, const ir::Stmt& self) {
  ir::Stmt body = EditBody(&loop, loop.body);
  if (body == loop.body) return self;
  if (ir::IsNoOp(body)) return body;
  return WithBody(loop, std::move(body));
}

ir::Stmt ScopeEditor::MutateBlock(const ir::BlockNode& block,
                                  const ir::Stmt& self) {
  ir::Stmt body = EditBody(&block, block.body);
  if (body == block.body) return self;
  return WithBody(block, std::move(body));
}

namespace {

class AccessRewriter : public ir::Mutator {
 public:
  explicit AccessRewriter(const AccessRewrite& rewrite) : rewrite_(rewrite) {}
  using Mutator::Mutate;

 protected:
  ir::Expr MutateLoad(const ir::LoadNode& load, const ir::Expr& self) override {
    if (load.buffer.get() != rewrite_.buffer || !rewrite_.on_load) {
      return Mutator::MutateLoad(load, self);
    }
    return rewrite_.on_load(MutateAll(load.indices));
  }

  ir::Stmt MutateStore(const ir::StoreNode& store,
                       const ir::Stmt& self) override {
    if (store.buffer.get() != rewrite_.buffer || !rewrite_.on_store) {
      return Mutator::MutateStore(store, self);
    }
    return rewrite_.on_store(MutateAll(store.indices), Mutate(store.value));
  }

  ir::Stmt MutateBlock(const ir::BlockNode& block,
                       const ir::Stmt& self) override {
    ir::Stmt init = block.init == nullptr ? nullptr : Mutate(block.init);
    ir::Stmt body = Mutate(block.body);
    // The declared regions may mention an access that was folded away.
    const auto mentions = [&](const std::vector<ir::BufferRegion>& regions) {
      return std::ranges::any_of(regions, [&](const ir::BufferRegion& region) {
        return region.buffer.get() == rewrite_.buffer;
      });
    };
    if (init == block.init && body == block.body && !mentions(block.reads) &&
        !mentions(block.writes)) {
      return self;
    }
    ir::BlockNode result = block;
    result.init = std::move(init);
    result.body = std::move(body);
    return ir::BlockWithAccesses(std::move(result));
  }

 private:
  const AccessRewrite& rewrite_;
};

}  // namespace

ir::Stmt RewriteAccesses(const ir::Stmt& stmt, const AccessRewrite& rewrite) {
  return AccessRewriter(rewrite).Mutate(stmt);
}

}  // namespace tilefarm::schedule
