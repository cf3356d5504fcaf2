#include "compiler/lower/guard_math.h"

#include <utility>

#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::lower {

using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;

void SplitConjunction(const Expr& condition, std::vector<Expr>& out) {
  const auto* binary = ir::As<ir::BinaryNode>(condition);
  if (binary != nullptr && binary->op == BinaryOp::kAnd) {
    SplitConjunction(binary->a, out);
    SplitConjunction(binary->b, out);
  } else {
    out.push_back(condition);
  }
}

Expr Conjunction(const std::vector<Expr>& conditions) {
  Expr out = ir::BoolConst(true);
  for (const Expr& condition : conditions) out = ir::And(out, condition);
  return out;
}

bool ReadsMemory(const Expr& e) {
  bool reads = false;
  ir::PostOrderExprs(
      e, [&](const Expr& x) { reads |= x->kind == ir::ExprKind::kLoad; });
  return reads;
}

std::optional<Linear> AsUpperBound(IndexMath& math, const Expr& condition) {
  const auto* binary = ir::As<ir::BinaryNode>(condition);
  if (binary == nullptr || !binary->a->dtype.is_index() ||
      ReadsMemory(condition)) {
    return std::nullopt;
  }
  Linear out = math.Decompose(binary->a);
  out.Add(math.Decompose(binary->b), -1);
  switch (binary->op) {
    case BinaryOp::kLT:
      out.constant += 1;
      return out;
    case BinaryOp::kLE:
      return out;
    case BinaryOp::kGT:
    case BinaryOp::kGE: {
      Linear negated;
      negated.Add(out, -1);
      if (binary->op == BinaryOp::kGT) negated.constant += 1;
      return negated;
    }
    default:
      return std::nullopt;
  }
}

int64_t CountStores(const Stmt& stmt) {
  int64_t count = 0;
  if (ir::As<ir::StoreNode>(stmt)) return 1;
  if (const auto* loop = ir::As<ir::ForNode>(stmt)) {
    const auto extent = ir::AsInt(loop->extent);
    const int64_t body = CountStores(loop->body);
    return loop->for_kind == ir::ForKind::kUnrolled && extent && *extent < 1024
               ? body * *extent
               : body;
  }
  if (const auto* seq = ir::As<ir::SeqNode>(stmt)) {
    for (const Stmt& s : seq->stmts) count += CountStores(s);
  } else if (const auto* branch = ir::As<ir::IfNode>(stmt)) {
    count = CountStores(branch->then_case);
    if (branch->else_case != nullptr) count += CountStores(branch->else_case);
  } else if (const auto* alloc = ir::As<ir::AllocNode>(stmt)) {
    count = CountStores(alloc->body);
  } else if (const auto* let = ir::As<ir::LetStmtNode>(stmt)) {
    count = CountStores(let->body);
  }
  return count;
}

double Iterations(IndexMath& math, const ir::ForNode& loop) {
  if (loop.for_kind == ir::ForKind::kVectorized) return 1;
  const Interval count = math.Bounds(loop.extent);
  return count.has_hi() ? static_cast<double>(count.hi) : 1;
}

double StoresRun(IndexMath& math, const Stmt& stmt) {
  if (ir::As<ir::StoreNode>(stmt)) return 1;
  double runs = 0;
  if (const auto* loop = ir::As<ir::ForNode>(stmt)) {
    const size_t mark = math.Mark();
    runs = Iterations(math, *loop);
    BindLoop(math, *loop);
    runs *= StoresRun(math, loop->body);
    math.Restore(mark);
    return runs;
  }
  if (const auto* seq = ir::As<ir::SeqNode>(stmt)) {
    for (const Stmt& s : seq->stmts) runs += StoresRun(math, s);
  } else if (const auto* branch = ir::As<ir::IfNode>(stmt)) {
    runs = StoresRun(math, branch->then_case);
    if (branch->else_case != nullptr) {
      runs += StoresRun(math, branch->else_case);
    }
  } else if (const auto* alloc = ir::As<ir::AllocNode>(stmt)) {
    runs = StoresRun(math, alloc->body);
  } else if (const auto* let = ir::As<ir::LetStmtNode>(stmt)) {
    runs = StoresRun(math, let->body);
  }
  return runs;
}

void UnrollPragma::Enter(const ir::ForNode& loop) {
  const auto read = [&](const char* key) -> std::optional<int64_t> {
    const auto found = loop.annotations.find(key);
    if (found == loop.annotations.end()) return std::nullopt;
    return found->second.AsInt();
  };
  max_step = read(ir::kUnrollMaxStep).value_or(max_step);
  if (const auto flag = read(ir::kUnrollExplicit)) is_explicit = *flag != 0;
}

bool UnrollPragma::Unrolls(const ir::ForNode& loop) const {
  if (!is_explicit) return false;
  int64_t step = CountStores(loop.body) * ir::AsInt(loop.extent).value_or(1);
  bool varies = false;
  ir::PreOrder(loop.body, [&](const Stmt& s) {
    const auto* inner = ir::As<ir::ForNode>(s);
    if (inner == nullptr || inner->for_kind != ir::ForKind::kSerial) {
      return true;
    }
    const auto extent = ir::AsInt(inner->extent);
    varies |= !extent;
    step *= extent.value_or(1);
    return true;
  });
  return !varies && step <= max_step;
}

}  // namespace tilefarm::lower
