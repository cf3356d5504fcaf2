#include "compiler/ir/stmt.h"

#include "base/check.h"

namespace tilefarm::ir {

std::optional<int64_t> Attr::AsInt() const {
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  return std::nullopt;
}

Stmt MakeStore(Buffer buffer, std::vector<Expr> indices, Expr value,
               Expr predicate) {
  TF_CHECK(buffer->dtype == value->dtype.element());
  return std::make_shared<const StoreNode>(std::move(buffer),
                                           std::move(indices), std::move(value),
                                           std::move(predicate));
}

ForPtr MakeFor(Var var, Expr extent, Stmt body, ForKind kind,
               AttrMap annotations) {
  Expr min = ConstOf(var->dtype, 0);
  return std::make_shared<const ForNode>(
      std::move(var), std::move(min), std::move(extent), kind, std::move(body),
      std::move(annotations));
}

Stmt MakeIf(Expr condition, Stmt then_case, Stmt else_case) {
  return std::make_shared<const IfNode>(
      std::move(condition), std::move(then_case), std::move(else_case));
}

Stmt MakeAlloc(Buffer buffer, Stmt body) {
  return std::make_shared<const AllocNode>(std::move(buffer), std::move(body));
}

Stmt NoOp() {
  static const Stmt no_op = std::make_shared<const EvaluateNode>(IntConst(0));
  return no_op;
}

bool IsNoOp(const Stmt& stmt) {
  if (const auto* evaluate = As<EvaluateNode>(stmt)) {
    return As<IntConstNode>(evaluate->value) != nullptr;
  }
  const auto* seq = As<SeqNode>(stmt);
  return seq != nullptr && seq->stmts.empty();
}

Stmt MakeSeq(std::vector<Stmt> stmts) {
  std::vector<Stmt> flat;
  for (Stmt& stmt : stmts) {
    if (stmt == nullptr || IsNoOp(stmt)) continue;
    if (const auto* seq = As<SeqNode>(stmt)) {
      flat.insert(flat.end(), seq->stmts.begin(), seq->stmts.end());
    } else {
      flat.push_back(std::move(stmt));
    }
  }
  if (flat.empty()) return NoOp();
  if (flat.size() == 1) return flat[0];
  return std::make_shared<const SeqNode>(std::move(flat));
}

BlockPtr BlockOf(BlockNode block) {
  TF_CHECK(block.predicate != nullptr && block.body != nullptr);
  return std::make_shared<const BlockNode>(std::move(block));
}

PrimFuncPtr IRModule::Find(std::string_view name) const {
  for (const PrimFuncPtr& function : functions) {
    if (function->name == name) return function;
  }
  return nullptr;
}

}  // namespace tilefarm::ir
