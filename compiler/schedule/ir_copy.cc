#include "compiler/schedule/ir_copy.h"

#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tilefarm::schedule {
namespace {

using ir::BlockNode;
using ir::ForNode;
using ir::Stmt;

class FreshCopier : public ir::Mutator {
 public:
  FreshCopier(const ir::VarMap& vars, std::string_view suffix)
      : vars_(vars), suffix_(suffix) {}

 protected:
  ir::Expr MutateVar(const ir::VarNode& var, const ir::Expr& self) override {
    const auto found = vars_.find(&var);
    return found == vars_.end() ? self : found->second;
  }

  Stmt MutateFor(const ForNode& s, const Stmt&) override {
    const ir::Var var = ir::MakeVar(s.var->name + suffix_, s.var->dtype);
    ir::Expr min = Mutate(s.min);
    ir::Expr extent = Mutate(s.extent);
    vars_[s.var.get()] = var;
    return std::make_shared<const ForNode>(
        var, std::move(min), std::move(extent), s.for_kind, Mutate(s.body),
        s.annotations, s.thread_tag);
  }

  Stmt MutateBlock(const BlockNode& s, const Stmt&) override {
    BlockNode block(s);
    block.predicate = Mutate(s.predicate);
    for (ir::IterVar& iter : block.iters) {
      iter.dom = {Mutate(iter.dom.min), Mutate(iter.dom.extent)};
      iter.binding = Mutate(iter.binding);
    }
    for (ir::IterVar& iter : block.iters) {
      const ir::Var var = ir::MakeVar(iter.var->name, iter.var->dtype);
      vars_[iter.var.get()] = var;
      iter.var = var;
    }
    for (auto* regions : {&block.reads, &block.writes}) {
      for (ir::BufferRegion& region : *regions) region = MutateRegion(region);
    }
    if (s.init != nullptr) block.init = Mutate(s.init);
    block.body = Mutate(s.body);
    return ir::BlockOf(std::move(block));
  }

 private:
  ir::VarMap vars_;
  const std::string suffix_;
};

}  // namespace

Stmt CopyWithFreshVars(const Stmt& stmt, const ir::VarMap& vars,
                       std::string_view loop_suffix) {
  return FreshCopier(vars, loop_suffix).Mutate(stmt);
}

ir::ForPtr WithBody(const ForNode& loop, Stmt body) {
  return WithVar(loop, loop.var, std::move(body));
}

ir::ForPtr WithVar(const ForNode& loop, ir::Var var, Stmt body) {
  return std::make_shared<const ForNode>(std::move(var), loop.min, loop.extent,
                                         loop.for_kind, std::move(body),
                                         loop.annotations, loop.thread_tag);
}

ir::ForPtr WithKind(const ForNode& loop, ir::ForKind kind,
                    std::string thread_tag) {
  return std::make_shared<const ForNode>(loop.var, loop.min, loop.extent, kind,
                                         loop.body, loop.annotations,
                                         std::move(thread_tag));
}

ir::BlockPtr WithBody(const BlockNode& block, Stmt body) {
  BlockNode copy(block);
  copy.body = std::move(body);
  return ir::BlockOf(std::move(copy));
}

std::string FreshBlockName(const Stmt& stmt, std::string_view base) {
  std::unordered_set<std::string> used;
  ir::PreOrder(stmt, [&](const Stmt& s) {
    if (const auto* block = ir::As<BlockNode>(s)) used.insert(block->name);
    return true;
  });
  std::string name(base);
  for (int i = 1; used.count(name) != 0; ++i) {
    name = absl::StrCat(std::string(base), "_", i);
  }
  return name;
}

}  // namespace tilefarm::schedule
