#include "compiler/schedule/schedule_state.h"

#include <algorithm>
#include <unordered_set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/ir_copy.h"

namespace tilefarm::schedule {
namespace {

using ir::As;
using ir::BlockNode;
using ir::BlockPtr;
using ir::ForNode;
using ir::ForPtr;
using ir::Stmt;
using ir::StmtNode;

// absl::StrCat in Debian's Abseil does not accept std::string_view.
std::string Text(std::string_view text) { return std::string(text); }

BlockPtr AsBlock(const Stmt& stmt) {
  return As<BlockNode>(stmt) == nullptr
             ? nullptr
             : std::static_pointer_cast<const BlockNode>(stmt);
}
ForPtr AsFor(const Stmt& stmt) {
  return As<ForNode>(stmt) == nullptr
             ? nullptr
             : std::static_pointer_cast<const ForNode>(stmt);
}

// Visits statements, not expressions. `visit` gets each block and loop with the
// block or loop around it.
template <typename Visit>
void Walk(const Stmt& stmt, const StmtNode* parent, const Visit& visit) {
  switch (stmt->kind) {
    case ir::StmtKind::kFor:
      visit(stmt, parent);
      return Walk(static_cast<const ForNode&>(*stmt).body, stmt.get(), visit);
    case ir::StmtKind::kBlock:
      visit(stmt, parent);
      return Walk(static_cast<const BlockNode&>(*stmt).body, stmt.get(), visit);
    case ir::StmtKind::kSeq:
      for (const Stmt& s : static_cast<const ir::SeqNode&>(*stmt).stmts) {
        Walk(s, parent, visit);
      }
      return;
    case ir::StmtKind::kIf: {
      const auto& node = static_cast<const ir::IfNode&>(*stmt);
      Walk(node.then_case, parent, visit);
      if (node.else_case != nullptr) Walk(node.else_case, parent, visit);
      return;
    }
    case ir::StmtKind::kLetStmt:
      return Walk(static_cast<const ir::LetStmtNode&>(*stmt).body, parent,
                  visit);
    case ir::StmtKind::kAlloc:
      return Walk(static_cast<const ir::AllocNode&>(*stmt).body, parent, visit);
    case ir::StmtKind::kStore:
    case ir::StmtKind::kEvaluate:
      return;
  }
}

// Rebuilds the path from a root to one statement.
class PathReplacer : public ir::Mutator {
 public:
  PathReplacer(std::unordered_set<const StmtNode*> path, const StmtNode* from,
               const Stmt& to)
      : path_(std::move(path)), from_(from), to_(to) {}

  using ir::Mutator::Mutate;
  ir::Expr Mutate(const ir::Expr& expr) override { return expr; }
  Stmt Mutate(const Stmt& stmt) override {
    if (stmt.get() == from_) return to_;
    const bool scope =
        stmt->kind == ir::StmtKind::kFor || stmt->kind == ir::StmtKind::kBlock;
    if (stmt->kind == ir::StmtKind::kStore ||
        (scope && path_.count(stmt.get()) == 0)) {
      return stmt;
    }
    return ir::Mutator::Mutate(stmt);
  }

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    Stmt body = Mutate(s.body);
    if (ir::IsNoOp(body)) return ir::NoOp();
    return body == s.body ? self : WithBody(s, std::move(body));
  }
  Stmt MutateBlock(const BlockNode& s, const Stmt& self) override {
    Stmt body = Mutate(s.body);
    return body == s.body ? self : WithBody(s, std::move(body));
  }

 private:
  const std::unordered_set<const StmtNode*> path_;
  const StmtNode* from_;
  const Stmt& to_;
};

}  // namespace

// --- Index ---------------------------------------------------------------

const ScheduleState::Index& ScheduleState::index() const {
  if (index_.valid) return index_;
  index_.nodes.clear();
  index_.loops.clear();
  for (size_t f = 0; f < module_.functions.size(); ++f) {
    Walk(module_.functions[f]->body, nullptr,
         [&](const Stmt& stmt, const StmtNode* parent) {
           index_.nodes[stmt.get()] = {&stmt, parent, static_cast<int>(f)};
           if (const auto* loop = As<ForNode>(stmt)) {
             index_.loops[loop->var.get()] = loop;
           }
         });
  }
  index_.valid = true;
  return index_;
}

const ScheduleState::Node& ScheduleState::NodeOf(const StmtNode* stmt) const {
  const auto found = index().nodes.find(stmt);
  TF_CHECK(found != index_.nodes.end());
  return found->second;
}

bool ScheduleState::Contains(const StmtNode* stmt) const {
  return index().nodes.count(stmt) != 0;
}

Stmt ScheduleState::Parent(const StmtNode* stmt) const {
  const StmtNode* parent = NodeOf(stmt).parent;
  return parent == nullptr ? nullptr : *NodeOf(parent).stmt;
}

BlockPtr ScheduleState::Scope(const StmtNode* stmt) const {
  const StmtNode* node = NodeOf(stmt).parent;
  while (node != nullptr && node->kind != ir::StmtKind::kBlock) {
    node = NodeOf(node).parent;
  }
  return node == nullptr ? nullptr : AsBlock(*NodeOf(node).stmt);
}

std::vector<ForPtr> ScheduleState::LoopsAbove(const StmtNode* stmt) const {
  std::vector<ForPtr> loops;
  const StmtNode* node = NodeOf(stmt).parent;
  while (node != nullptr && node->kind == ir::StmtKind::kFor) {
    const Node& info = NodeOf(node);
    loops.push_back(AsFor(*info.stmt));
    node = info.parent;
  }
  std::ranges::reverse(loops);
  return loops;
}

std::vector<BlockPtr> ScheduleState::ChildBlocks(const StmtNode* stmt) const {
  std::vector<BlockPtr> blocks;
  const Stmt& root = *NodeOf(stmt).stmt;
  ir::PreOrder(root, [&](const Stmt& s) {
    if (s == root) return true;
    if (s->kind != ir::StmtKind::kBlock) return true;
    blocks.push_back(AsBlock(s));
    return false;
  });
  if (const auto* block = As<BlockNode>(stmt)) {
    // Blocks inside an init do not count as child blocks.
    if (block->init != nullptr) {
      std::erase_if(blocks,
                    [&](const BlockPtr& b) { return !Contains(b.get()); });
    }
  }
  return blocks;
}

std::vector<BlockPtr> ScheduleState::BlocksOf(
    const ir::PrimFunc* function) const {
  std::vector<BlockPtr> blocks;
  Walk(function->body, nullptr, [&](const Stmt& stmt, const StmtNode*) {
    if (BlockPtr block = AsBlock(stmt)) blocks.push_back(std::move(block));
  });
  return blocks;
}

bool ScheduleState::IsBelow(const StmtNode* inner,
                            const StmtNode* outer) const {
  for (const StmtNode* node = inner; node != nullptr;
       node = NodeOf(node).parent) {
    if (node == outer) return true;
  }
  return false;
}

ir::PrimFuncPtr ScheduleState::FunctionOf(const StmtNode* stmt) const {
  return module_.functions[NodeOf(stmt).function];
}

ForPtr ScheduleState::LoopOf(const ir::VarNode* var) const {
  const auto found = index().loops.find(var);
  return found == index_.loops.end() ? nullptr : Ref(found->second);
}

ForPtr ScheduleState::Latest(const ForPtr& loop) const {
  return LoopOf(loop->var.get());
}

BlockPtr ScheduleState::Latest(const BlockPtr& block) const {
  if (Contains(block.get())) return block;
  const auto found = followed_.find(block.get());
  if (found == followed_.end() || !Contains(found->second)) return nullptr;
  return Ref(found->second);
}

BlockPtr ScheduleState::Ref(const BlockNode* block) const {
  return AsBlock(*NodeOf(block).stmt);
}
ForPtr ScheduleState::Ref(const ForNode* loop) const {
  return AsFor(*NodeOf(loop).stmt);
}

BlockPtr ScheduleState::AllocSite(const ir::BufferNode* buffer) const {
  for (const auto& [node, info] : index().nodes) {
    const auto* block = As<BlockNode>(node);
    if (block == nullptr) continue;
    for (const ir::Buffer& alloc : block->allocs) {
      if (alloc.get() == buffer) return AsBlock(*info.stmt);
    }
  }
  return nullptr;
}

int ScheduleState::CountBlocks(const ir::PrimFunc* function,
                               std::string_view name) const {
  int count = 0;
  for (const BlockPtr& block : BlocksOf(function)) count += block->name == name;
  return count;
}

// --- Rewriting -----------------------------------------------------------

void ScheduleState::Replace(const StmtNode* old_stmt, Stmt new_stmt,
                            const BlockReuse& reuse) {
  std::unordered_set<const StmtNode*> path;
  for (const StmtNode* node = old_stmt; node != nullptr;
       node = NodeOf(node).parent) {
    path.insert(node);
  }
  const ir::PrimFuncPtr function = FunctionOf(old_stmt);
  Stmt root =
      PathReplacer(std::move(path), old_stmt, new_stmt).Mutate(function->body);
  ReplaceRoot(function.get(), std::move(root), reuse);
}

void ScheduleState::ReplaceRoot(const ir::PrimFunc* function, Stmt new_root,
                                const BlockReuse& reuse) {
  TF_CHECK(new_root->kind == ir::StmtKind::kBlock);
  for (ir::PrimFuncPtr& slot : module_.functions) {
    if (slot.get() != function) continue;
    FollowBlocks(function->body, new_root, reuse);
    auto changed = std::make_shared<ir::PrimFunc>(*function);
    changed->body = std::move(new_root);
    slot = std::move(changed);
    index_.valid = false;
    return;
  }
  TF_CHECK(false);
}

void ScheduleState::FollowBlocks(const Stmt& old_root, const Stmt& new_root,
                                 const BlockReuse& reuse) {
  followed_.clear();
  std::vector<BlockPtr> olds;
  std::vector<BlockPtr> news;
  std::unordered_set<const BlockNode*> kept;
  Walk(new_root, nullptr, [&](const Stmt& stmt, const StmtNode*) {
    if (BlockPtr block = AsBlock(stmt)) {
      kept.insert(block.get());
      news.push_back(std::move(block));
    }
  });
  std::unordered_set<const BlockNode*> unchanged;
  Walk(old_root, nullptr, [&](const Stmt& stmt, const StmtNode*) {
    if (BlockPtr block = AsBlock(stmt)) {
      if (kept.count(block.get()) != 0) {
        unchanged.insert(block.get());
      } else {
        olds.push_back(std::move(block));
      }
    }
  });
  std::erase_if(news, [&](const BlockPtr& block) {
    return unchanged.count(block.get()) != 0;
  });
  const auto match = [&](const BlockPtr& from, const BlockPtr& to) {
    followed_[from.get()] = to.get();
    for (BlockPtr& tracked : blocks_) {
      if (tracked == from) tracked = to;
    }
    std::erase(news, to);
  };
  const auto take = [&](const auto& find) {
    for (size_t i = 0; i < olds.size();) {
      const BlockPtr to = find(olds[i]);
      if (to == nullptr) {
        ++i;
        continue;
      }
      const BlockPtr from = olds[i];
      olds.erase(olds.begin() + i);
      match(from, to);
    }
  };
  const auto only = [&](const auto& fits) -> BlockPtr {
    BlockPtr found;
    for (const BlockPtr& block : news) {
      if (!fits(block)) continue;
      if (found != nullptr) return nullptr;
      found = block;
    }
    return found;
  };
  take([&](const BlockPtr& from) -> BlockPtr {
    for (const auto& [a, b] : reuse) {
      if (a != from.get()) continue;
      return only([b = b](const BlockPtr& to) { return to.get() == b; });
    }
    return nullptr;
  });
  take([&](const BlockPtr& from) -> BlockPtr {
    if (from->iters.empty()) return nullptr;
    return only([&](const BlockPtr& to) {
      return std::ranges::any_of(to->iters, [&](const ir::IterVar& iter) {
        return iter.var == from->iters.front().var;
      });
    });
  });
  take([&](const BlockPtr& from) -> BlockPtr {
    for (const BlockPtr& other : olds) {
      if (other != from && other->name == from->name) return nullptr;
    }
    return only([&](const BlockPtr& to) { return to->name == from->name; });
  });
  for (BlockPtr& tracked : blocks_) {
    if (tracked == nullptr) continue;
    if (absl::c_linear_search(olds, tracked)) tracked = nullptr;
  }
}

// --- Variables -----------------------------------------------------------

absl::StatusOr<BlockPtr> ScheduleState::Get(BlockRv block) const {
  if (!Is(RvKind::kBlock, block.id)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Text(primitive_), ": b", block.id, " is not a block"));
  }
  BlockPtr out = blocks_[variables_[block.id].value];
  if (out == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        Text(primitive_), ": the block of b", block.id, " no longer exists"));
  }
  return out;
}

absl::StatusOr<ForPtr> ScheduleState::Get(LoopRv loop) const {
  if (!Is(RvKind::kLoop, loop.id)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Text(primitive_), ": l", loop.id, " is not a loop"));
  }
  const Variable& variable = variables_[loop.id];
  if (variable.mark != LoopMark::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat(Text(primitive_), ": l", loop.id, " stands for ",
                     variable.mark == LoopMark::kRoot ? "the root" : "inlining",
                     ", not for a loop"));
  }
  ForPtr out = LoopOf(variable.loop_var.get());
  if (out == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(Text(primitive_), ": the loop of l", loop.id, " (",
                     variable.loop_var->name, ") no longer exists"));
  }
  return out;
}

absl::StatusOr<int64_t> ScheduleState::Get(ExprRv value) const {
  if (!Is(RvKind::kExpr, value.id)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Text(primitive_), ": v", value.id, " is not a value"));
  }
  return variables_[value.id].value;
}

absl::StatusOr<Stmt> ScheduleState::Get(BlockOrLoop where) const {
  const auto get = [&](auto rv) { return absl::StatusOr<Stmt>(Get(rv)); };
  return std::visit(get, where);
}

LoopMark ScheduleState::MarkOf(LoopRv loop) const {
  return Is(RvKind::kLoop, loop.id) ? variables_[loop.id].mark
                                    : LoopMark::kNone;
}

BlockRv ScheduleState::NewBlock(const BlockPtr& block) {
  TF_CHECK(Contains(block.get()));
  auto slot = std::ranges::find(blocks_, block);
  if (slot == blocks_.end()) slot = blocks_.insert(slot, block);
  return {Add({.kind = RvKind::kBlock, .value = slot - blocks_.begin()})};
}

LoopRv ScheduleState::NewLoop(const ForPtr& loop) {
  TF_CHECK(Contains(loop.get()));
  return {Add({.kind = RvKind::kLoop, .loop_var = loop->var})};
}

LoopRv ScheduleState::NewMark(LoopMark mark) {
  return {Add({.kind = RvKind::kLoop, .mark = mark})};
}

ExprRv ScheduleState::NewExpr(int64_t value) {
  return {Add({.kind = RvKind::kExpr, .value = value})};
}

int ScheduleState::Add(Variable variable) {
  variables_.push_back(std::move(variable));
  return static_cast<int>(variables_.size()) - 1;
}

// --- Errors --------------------------------------------------------------

std::string ScheduleState::Describe(const StmtNode* where) const {
  if (where == nullptr) return "";
  if (const auto* block = As<BlockNode>(where)) {
    return absl::StrCat("block ", block->name);
  }
  const auto* loop = As<ForNode>(where);
  if (loop == nullptr) return "";
  std::string out = absl::StrCat("loop ", loop->var->name);
  if (!Contains(where)) return out;
  const std::vector<BlockPtr> blocks = ChildBlocks(where);
  if (!blocks.empty()) {
    absl::StrAppend(&out, " (block ", blocks.front()->name, ")");
  }
  return out;
}

absl::Status ScheduleState::Illegal(const StmtNode* where,
                                    std::string_view reason) const {
  const std::string place = Describe(where);
  return absl::FailedPreconditionError(absl::StrCat(
      Text(primitive_), ": ", place, place.empty() ? "" : ": ", Text(reason)));
}

absl::Status ScheduleState::Illegal(const StmtNode* where,
                                    const absl::Status& why) const {
  return Illegal(where, std::string(why.message()));
}

absl::Status ScheduleState::Invalid(const StmtNode* where,
                                    std::string_view reason) const {
  return absl::InvalidArgumentError(Illegal(where, reason).message());
}

absl::Status ScheduleState::CheckMayDiffer(const StmtNode* where,
                                           std::string_view change,
                                           ir::FloatRule least) const {
  if (floats_ >= least) return absl::OkStatus();
  return Illegal(where, Text(change),
                 floats_ == ir::FloatRule::kAsWritten
                     ? ", but floats are to come out as written"
                     : ", but Winograd's algorithm is not permitted");
}

// --- Transactions --------------------------------------------------------

ScheduleState::Snapshot ScheduleState::Save() const {
  return {module_, blocks_, variables_.size(), trace_.instructions.size(),
          rng_};
}

void ScheduleState::Restore(Snapshot snapshot) {
  module_ = std::move(snapshot.module);
  blocks_ = std::move(snapshot.blocks);
  variables_.resize(snapshot.num_variables);
  trace_.instructions.resize(snapshot.num_instructions);
  rng_ = snapshot.rng;
  followed_.clear();
  index_.valid = false;
}

arith::VarRanges RangesOf(const std::vector<ForPtr>& loops) {
  arith::VarRanges ranges;
  ranges.reserve(loops.size());
  for (const ForPtr& loop : loops) {
    ranges.push_back({loop->var, {loop->min, loop->extent}});
  }
  return ranges;
}

std::optional<int64_t> ExtentOf(const ForPtr& loop) {
  return ir::AsInt(loop->extent);
}

}  // namespace tilefarm::schedule
