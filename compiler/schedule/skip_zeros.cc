// skip_zeros: a sum leaves out the iterations in which a guard makes its term
// zero, where the guard asks for a remainder. Transposed convolutions are
// written so: of the taps of a kernel, one in stride x stride meets an input.
//
//   skip_zeros(C)
//
//   for h in 8, r in 4:                  for h_0 in 4, h_1 in 2, r_0 in 2:
//     C[h] += if_then_else(        ->      C[h_0 * 2 + h_1] +=
//         (h + r) % 2 == 0,                    A[h_0 + r_0 + h_1] *
//         A[(h + r) // 2], 0) * W[r]           W[r_0 * 2 + h_1]
//
// Steps:
//   1. Check that the block is a sum whose term is a product with a factor
//      `if_then_else(conditions, x, 0)`, and that its variables are bound to
//      one plain loop each.
//   2. Match each condition `(a * s + b * r + c) % m == k` of a spatial and a
//      reduce variable whose extents m divides, where for every remainder of s
//      there is exactly one of r, and that one is linear in it. The others
//      stay in the guard.
//   3. Split s in quotient and remainder, keep only the quotient of r, and
//      write out both variables; the condition must then hold by itself.
//
// What is left out is `0 * y` for factors y of the term: nothing in integers
// and for finite y. Where y is infinite or not a number the program as written
// is not a number there; after this primitive it is not.
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/arith/conjuncts.h"
#include "compiler/arith/index_math.h"
#include "compiler/ir/padding.h"
#include "compiler/ir/regions.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/own_loops.h"
#include "compiler/schedule/reducer.h"

namespace tilefarm::schedule {
namespace {

// Remainders are enumerated; strides are small.
constexpr int64_t kMaxModulus = 64;

// A factor that a condition may make zero.
const ir::CallNode* FindGuard(const ir::Expr& term) {
  if (const auto* product = ir::As<ir::BinaryNode>(term);
      product != nullptr && product->op == ir::BinaryOp::kMul) {
    const ir::CallNode* guard = FindGuard(product->a);
    return guard != nullptr ? guard : FindGuard(product->b);
  }
  const auto* call = ir::As<ir::CallNode>(term);
  if (call == nullptr || call->op != ir::Intrinsic::kIfThenElse) return nullptr;
  const auto* zero = ir::As<ir::FloatConstNode>(call->args[2]);
  const bool is_zero =
      ir::IsConstInt(call->args[2], 0) || (zero != nullptr && zero->value == 0);
  return is_zero ? call : nullptr;
}

// reduce % modulus = slope * (spatial % modulus) + offset.
struct Residues {
  size_t spatial = 0, reduce = 0;  // of the block's variables
  int64_t modulus = 1, slope = 0, offset = 0;
};

// Step 2 for one condition.
std::optional<Residues> MatchResidues(const ir::BlockNode& block,
                                      const ir::Expr& condition) {
  const auto* equal = ir::As<ir::BinaryNode>(condition);
  if (equal == nullptr || equal->op != ir::BinaryOp::kEQ) return std::nullopt;
  const auto* rest = ir::As<ir::BinaryNode>(equal->a);
  const std::optional<int64_t> wanted = ir::AsInt(equal->b);
  if (rest == nullptr || rest->op != ir::BinaryOp::kFloorMod || !wanted) {
    return std::nullopt;
  }
  const std::optional<int64_t> modulus = ir::AsInt(rest->b);
  if (!modulus || *modulus < 2 || *modulus > kMaxModulus) return std::nullopt;
  const arith::Linear sum = arith::IndexMath().Decompose(rest->a);
  if (sum.terms.size() != 2) return std::nullopt;
  Residues result;
  result.modulus = *modulus;
  int64_t of_spatial = 0, of_reduce = 0;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const ir::IterVar& iter = block.iters[i];
    for (const auto& [var, coefficient] : sum.terms) {
      if (iter.var != var) continue;
      if (!ir::IsConstInt(iter.dom.min, 0) ||
          ir::AsInt(iter.dom.extent).value_or(1) % *modulus != 0) {
        return std::nullopt;
      }
      const bool spatial = iter.type == ir::IterType::kSpatial;
      (spatial ? result.spatial : result.reduce) = i;
      (spatial ? of_spatial : of_reduce) = coefficient;
    }
  }
  if (of_spatial == 0 || of_reduce == 0) return std::nullopt;
  std::vector<int64_t> residues;
  for (int64_t s = 0; s < *modulus; ++s) {
    int64_t found = -1;
    for (int64_t r = 0; r < *modulus; ++r) {
      const int64_t value = of_spatial * s + of_reduce * r + sum.constant;
      if ((value % *modulus + *modulus) % *modulus != *wanted) continue;
      if (found >= 0) return std::nullopt;
      found = r;
    }
    if (found < 0) return std::nullopt;
    residues.push_back(found);
  }
  result.offset = residues[0];
  result.slope = residues[1] - residues[0];
  for (int64_t s = 0; s < *modulus; ++s) {
    if (residues[s] != result.slope * s + result.offset) return std::nullopt;
  }
  return result;
}

struct ReplaceExpr : ir::Mutator {
  const ir::ExprNode* from = nullptr;
  ir::Expr to;
  using ir::Mutator::Mutate;
  ir::Expr Mutate(const ir::Expr& expr) override {
    return expr.get() == from ? to : ir::Mutator::Mutate(expr);
  }
};

// Quotient and remainder of a variable: variables and loops of their own.
struct Parts {
  ir::Var loops[2];
  ir::Var vars[2];
  int64_t extents[2];

  Parts(const ir::IterVar& iter, const ir::ForNode& loop, int64_t modulus)
      : extents{*ir::AsInt(iter.dom.extent) / modulus, modulus} {
    for (int i = 0; i < 2; ++i) {
      loops[i] = ir::MakeVar(absl::StrCat(loop.var->name, "_", i));
      vars[i] = ir::MakeVar(absl::StrCat(iter.var->name, "_", i));
    }
  }
  ir::IterVar Iter(int i, ir::IterType type) const {
    return {
        vars[i], {ir::IntConst(0), ir::IntConst(extents[i])}, type, loops[i]};
  }
};

}  // namespace

absl::Status SkipZeros(ScheduleState& state, BlockRv block_rv) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr block, state.Get(block_rv));
  TF_ASSIGN_OR_RETURN(const std::vector<ir::ForPtr> loops,
                      CheckOwnLoops(state, block));
  const std::optional<Reducer> reducer = MatchReducer(*block);
  const ir::CallNode* guard = reducer && reducer->op == ir::BinaryOp::kAdd
                                  ? FindGuard(reducer->value)
                                  : nullptr;
  if (guard == nullptr) {
    return state.Illegal(block.get(),
                         "it is no sum of products with a factor that is 0 "
                         "under a condition");
  }
  if (!ir::VanishesWithItsFactors(reducer->value)) {
    TF_RETURN_IF_ERROR(state.CheckMayDiffer(block.get(), state.kLeavesOut));
  }
  std::vector<ir::Expr> matched;
  std::vector<Residues> residues;
  ir::Expr rest;
  for (const ir::Expr& condition : arith::Conjuncts(guard->args[0])) {
    std::optional<Residues> match = MatchResidues(*block, condition);
    for (const Residues& other : residues) {
      if (match &&
          (match->spatial == other.spatial || match->reduce == other.reduce)) {
        match.reset();
      }
    }
    if (match) {
      residues.push_back(*match);
      matched.push_back(condition);
    } else {
      rest = rest == nullptr ? condition : ir::And(rest, condition);
    }
  }
  if (residues.empty()) {
    return state.Illegal(
        block.get(), "in ", ir::ToString(guard->args[0]),
        " no spatial variable decides the remainder of a reduce "
        "variable");
  }

  // Step 3.
  ir::BlockNode made = *block;
  made.iters.clear();
  ir::VarMap values;
  std::vector<std::pair<const ir::VarNode*, Parts>> parts;  // by loop
  const auto loop_of = [&](const ir::IterVar& iter) {
    for (const ir::ForPtr& loop : loops) {
      if (loop->var == iter.binding) return loop;
    }
    return loops[0];
  };
  for (const Residues& match : residues) {
    const ir::IterVar& spatial = block->iters[match.spatial];
    const ir::IterVar& reduce = block->iters[match.reduce];
    const Parts s(spatial, *loop_of(spatial), match.modulus);
    const Parts r(reduce, *loop_of(reduce), match.modulus);
    values[spatial.var.get()] = s.vars[0] * match.modulus + s.vars[1];
    values[reduce.var.get()] =
        r.vars[0] * match.modulus +
        (s.vars[1] * match.slope + ir::IntConst(match.offset));
    parts.emplace_back(loop_of(spatial)->var.get(), s);
    parts.emplace_back(loop_of(reduce)->var.get(), r);
  }
  const auto parts_of = [&](const ir::VarNode* loop) -> const Parts* {
    for (const auto& [var, part] : parts) {
      if (var == loop) return &part;
    }
    return nullptr;
  };
  arith::Analyzer analyzer;
  for (const ir::IterVar& iter : block->iters) {
    const Parts* part = parts_of(loop_of(iter)->var.get());
    if (part == nullptr) {
      made.iters.push_back(iter);
    } else {
      made.iters.push_back(part->Iter(0, iter.type));
      if (iter.type == ir::IterType::kSpatial) {
        made.iters.push_back(part->Iter(1, iter.type));
      }
    }
  }
  for (const ir::IterVar& iter : made.iters) analyzer.Bind(iter.var, iter.dom);
  for (const ir::Expr& condition : matched) {
    if (!analyzer.CanProve(ir::Substitute(condition, values))) {
      return state.Illegal(block.get(), "cannot show that ",
                           ir::ToString(condition), " holds where it is kept");
    }
  }
  ReplaceExpr replace;
  replace.from = guard;
  replace.to = rest == nullptr
                   ? guard->args[1]
                   : ir::IfThenElseExpr(rest, guard->args[1], guard->args[2]);
  made.body =
      analyzer.Simplify(ir::Substitute(replace.Mutate(block->body), values));
  made.init = analyzer.Simplify(ir::Substitute(block->init, values));
  const ir::BlockPtr result = ir::BlockWithAccesses(std::move(made));
  ir::Stmt nest = result;
  for (size_t i = loops.size(); i-- > 0;) {
    const Parts* part = parts_of(loops[i]->var.get());
    if (part == nullptr) {
      nest = WithBody(*loops[i], std::move(nest));
      continue;
    }
    const bool spatial =
        LoopFeedsIter(loops[i].get(), block.get(), ir::IterType::kSpatial);
    for (int level = spatial ? 1 : 0; level >= 0; --level) {
      nest = ir::MakeFor(part->loops[level], ir::IntConst(part->extents[level]),
                         std::move(nest));
    }
  }
  state.Replace(loops[0].get(), std::move(nest), {{block.get(), result.get()}});
  return absl::OkStatus();
}

}  // namespace tilefarm::schedule
