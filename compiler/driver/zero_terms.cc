#include "compiler/driver/zero_terms.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/regions.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/own_loops.h"
#include "compiler/schedule/reducer.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/schedule.h"

namespace tilefarm::driver {
namespace {

using schedule::NewIter;

// The choice that skip_zeros acts on, as it finds it, and the term with 0 in
// its place.
struct Term {
  const ir::CallNode* choice = nullptr;
  ir::Expr left_out;
};

Term FindTerm(const ir::Expr& term) {
  const auto* call = ir::As<ir::CallNode>(term);
  if (call != nullptr && call->op == ir::Intrinsic::kIfThenElse) {
    return {call, call->args[2]};
  }
  const auto* product = ir::As<ir::BinaryNode>(term);
  if (product == nullptr || product->op != ir::BinaryOp::kMul) return {};
  if (const Term a = FindTerm(product->a); a.choice != nullptr) {
    return {a.choice, a.left_out * product->b};
  }
  const Term b = FindTerm(product->b);
  if (b.choice == nullptr) return {};
  return {b.choice, product->a * b.left_out};
}

// New variables for some of a block's, and the block that has them.
struct NewBlock {
  ir::BlockNode block;
  ir::VarMap vars;

  explicit NewBlock(std::string name) {
    block.name = std::move(name);
    block.predicate = ir::BoolConst(true);
  }
  ir::Expr Add(const ir::IterVar& iter, ir::IterType type) {
    block.iters.push_back(
        NewIter(schedule::LoopName(iter), *ir::AsInt(iter.dom.extent), type));
    return vars[iter.var.get()] = block.iters.back().var;
  }
  ir::Stmt Nest(ir::Stmt init, ir::Stmt body,
                const std::vector<ir::IterVar>& loops) {
    block.init = ir::Substitute(init, vars);
    block.body = ir::Substitute(body, vars);
    return schedule::LoopsOver(loops, ir::BlockWithAccesses(std::move(block)));
  }
};

// What takes the place of a sum, and what it needs.
struct Parts {
  ir::BufferMap dense;          // the sum's buffer -> C_dense
  std::vector<ir::Stmt> nests;  // behind the sum without zeros
  std::vector<ir::Buffer> allocs;
};

std::optional<Parts> Split(const ir::PrimFunc& function,
                           const ir::BlockNode& sum) {
  const auto reducer = schedule::MatchReducer(sum);
  const auto* store = ir::As<ir::StoreNode>(sum.body);
  if (!reducer || store == nullptr) return std::nullopt;
  const Term term = FindTerm(reducer->value);
  if (term.choice == nullptr) return std::nullopt;
  const ir::Expr& condition = term.choice->args[0];
  const ir::DataType dtype = store->buffer->dtype;

  // Taps are what the condition reduces over.
  NewBlock taps(absl::StrCat(sum.name, "_taps"));
  NewBlock add(absl::StrCat(sum.name, "_zeros"));
  std::vector<ir::IterVar> tap_iters, others, outputs;
  for (const ir::IterVar& iter : sum.iters) {
    const bool decides = ir::UsesVar(condition, iter.var.get());
    const bool in_term = ir::UsesVar(term.left_out, iter.var.get());
    if (!ir::IsConstInt(iter.dom.min, 0) || !ir::AsInt(iter.dom.extent)) {
      return std::nullopt;
    }
    if (iter.type == ir::IterType::kReduce) {
      if (decides) tap_iters.push_back(iter);
      if (!decides && in_term) others.push_back(iter);
    } else {
      // Then what is left out is another for each element.
      if (decides && in_term) return std::nullopt;
      if (in_term) outputs.push_back(iter);
    }
  }
  std::vector<int64_t> shape;
  std::vector<ir::Expr> at;
  for (const auto* list : {&tap_iters, &outputs}) {
    for (const ir::IterVar& iter : *list) {
      shape.push_back(*ir::AsInt(iter.dom.extent));
      at.push_back(iter.var);
    }
  }
  const ir::Buffer per_tap = ir::MakeBuffer(
      schedule::FreshBufferName(function, taps.block.name), dtype, shape);
  const ir::Buffer dense =
      ir::MakeBuffer(schedule::FreshBufferName(
                         function, absl::StrCat(store->buffer->name, "_dense")),
                     dtype, store->buffer->shape);
  for (const ir::IterVar& iter : tap_iters) {
    taps.Add(iter, ir::IterType::kSpatial);
  }
  for (const ir::IterVar& iter : others) {
    taps.Add(iter, ir::IterType::kReduce);
  }
  for (const ir::IterVar& iter : outputs) {
    taps.Add(iter, ir::IterType::kSpatial);
  }
  const ir::Expr zero = ir::FloatConst(0, dtype);
  const std::vector<ir::IterVar> tap_loops = taps.block.iters;
  Parts parts;
  parts.nests.push_back(taps.Nest(
      ir::MakeStore(per_tap, at, zero),
      ir::MakeStore(per_tap, at, ir::Load(per_tap, at) + term.left_out),
      tap_loops));

  for (const ir::IterVar& iter : sum.iters) {
    if (iter.type == ir::IterType::kSpatial) add.Add(iter, iter.type);
  }
  const size_t spatial = add.block.iters.size();
  for (const ir::IterVar& iter : tap_iters) add.Add(iter, iter.type);
  // The last dimension of the output innermost: it makes vectors.
  std::vector<ir::IterVar> add_loops = add.block.iters;
  std::rotate(add_loops.begin() + static_cast<std::ptrdiff_t>(spatial) - 1,
              add_loops.begin() + static_cast<std::ptrdiff_t>(spatial),
              add_loops.end());
  parts.nests.push_back(add.Nest(
      ir::MakeStore(store->buffer, store->indices,
                    ir::Load(dense, store->indices)),
      ir::MakeStore(
          store->buffer, store->indices,
          ir::Load(store->buffer, store->indices) +
              ir::IfThenElseExpr(condition, zero, ir::Load(per_tap, at))),
      add_loops));
  parts.dense[store->buffer.get()] = dense;
  parts.allocs = {dense, per_tap};
  return parts;
}

bool HasBlock(const ir::Stmt& stmt, const std::string& name) {
  bool has = false;
  ir::PreOrder(stmt, [&](const ir::Stmt& inner) {
    const auto* block = ir::As<ir::BlockNode>(inner);
    has |= block != nullptr && block->name == name;
    return true;
  });
  return has;
}

// The function with the sum `name` in parts; null where that does not apply.
ir::PrimFuncPtr Apart(const ir::PrimFuncPtr& function,
                      const std::string& name) {
  const ir::IRModule module{{function}};
  schedule::Schedule exact(module, /*seed=*/0, ir::FloatRule::kAsWritten);
  schedule::Schedule skips(module);
  const auto in_exact = exact.GetBlock(name, function->name);
  const auto block = skips.GetBlock(name, function->name);
  if (!block.ok() || !in_exact.ok()) return nullptr;
  const ir::BlockPtr sum = *skips.Get(*block);
  // A schedule may leave out its zeros without more ado.
  if (exact.SkipZeros(*in_exact).ok() || !skips.SkipZeros(*block).ok()) {
    return nullptr;
  }
  std::optional<Parts> parts = Split(*function, *sum);
  if (!parts || HasBlock(function->body, sum->name + "_taps") ||
      HasBlock(function->body, sum->name + "_zeros")) {
    return nullptr;
  }
  auto result =
      std::make_shared<ir::PrimFunc>(*skips.module().Find(function->name));
  ir::BlockNode root = *result->root();
  std::vector<ir::Stmt> stmts;
  const auto* seq = ir::As<ir::SeqNode>(root.body);
  for (const ir::Stmt& stmt :
       seq == nullptr ? std::vector{root.body} : seq->stmts) {
    if (!HasBlock(stmt, sum->name)) {
      stmts.push_back(stmt);
      continue;
    }
    stmts.push_back(ir::ReplaceBuffers(stmt, parts->dense));
    stmts.insert(stmts.end(), parts->nests.begin(), parts->nests.end());
  }
  root.body = ir::MakeSeq(std::move(stmts));
  root.allocs.insert(root.allocs.end(), parts->allocs.begin(),
                     parts->allocs.end());
  result->body = ir::BlockOf(std::move(root));
  return result;
}

}  // namespace

ir::PrimFuncPtr WithZeroTermsApart(const ir::PrimFuncPtr& function) {
  std::vector<std::string> names;
  ir::PreOrder(function->body, [&](const ir::Stmt& stmt) {
    const auto* block = ir::As<ir::BlockNode>(stmt);
    if (block == nullptr || block == function->root()) return true;
    names.push_back(block->name);
    return false;  // blocks of the root alone
  });
  ir::PrimFuncPtr result = function;
  for (const std::string& name : names) {
    if (const ir::PrimFuncPtr next = Apart(result, name)) result = next;
  }
  return result;
}

}  // namespace tilefarm::driver
