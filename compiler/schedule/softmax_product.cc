#include "compiler/schedule/softmax_product.h"

#include <optional>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/own_loops.h"
#include "compiler/schedule/reducer.h"

namespace tilefarm::schedule {
namespace {

using ir::Expr;
using ir::IterVar;
using ir::VarNode;

bool Reads(const Expr& e, const ir::BufferNode* buffer) {
  bool reads = false;
  ir::PostOrderExprs(e, [&](const Expr& x) {
    const auto* load = ir::As<ir::LoadNode>(x);
    reads |= load != nullptr && load->buffer.get() == buffer;
  });
  return reads;
}

class ProductMatcher {
 public:
  ProductMatcher(const ScheduleState& state, const ir::BlockPtr& product)
      : state_(state),
        block_(product),
        scope_(state, state.Scope(product.get()).get()) {}

  absl::Status Match() {
    TF_RETURN_IF_ERROR(MatchProduct());
    TF_RETURN_IF_ERROR(SortVariables());
    TF_RETURN_IF_ERROR(MatchShares());
    TF_RETURN_IF_ERROR(MatchScores());
    return CheckOthers();
  }
  SoftmaxProduct chain;
  ProductRoles roles;

 private:
  absl::Status Refuse(std::string_view reason) const {
    return state_.Illegal(block_.get(), reason);
  }

  // The variable of `block` that is each index, with its role; an error if an
  // index is another expression.
  absl::Status Follow(const ir::BlockNode& block,
                      const std::vector<Expr>& indices,
                      const std::vector<const IterVar*>& parts) {
    for (size_t d = 0; d < indices.size(); ++d) {
      const auto iter = absl::c_find_if(block.iters, [&](const IterVar& i) {
        return i.var.get() == indices[d].get();
      });
      if (iter == block.iters.end()) {
        if (ir::IsConstInt(indices[d], 0)) continue;
        return state_.Illegal(&block, "an index is not one of its variables");
      }
      if (parts[d] == nullptr) {
        if (IsUnit(*iter)) continue;
        return state_.Illegal(&block, iter->var->name,
                              " is no variable of the product");
      }
      if (!arith::ExprEqual(iter->dom.extent, parts[d]->dom.extent)) {
        return state_.Illegal(&block, iter->var->name,
                              " has another range than the product's ",
                              parts[d]->var->name);
      }
      roles.of[iter->var.get()] = parts[d];
    }
    return absl::OkStatus();
  }

  // The roles of indices, null where it is 0.
  absl::StatusOr<std::vector<const IterVar*>> PartsOf(
      const std::vector<Expr>& indices) const {
    std::vector<const IterVar*> parts;
    for (const Expr& index : indices) {
      const auto* var = ir::As<VarNode>(index);
      parts.push_back(var == nullptr ? nullptr : roles.Of(var));
      if (parts.back() == nullptr && var == nullptr &&
          !ir::IsConstInt(index, 0)) {
        return Refuse("its operand is indexed by no plain variables");
      }
    }
    return parts;
  }

  absl::Status MatchProduct() {
    RowReduction& product = chain.product;
    product.block = block_;
    TF_ASSIGN_OR_RETURN(product.loops, CheckOwnLoops(state_, block_));
    TF_RETURN_IF_ERROR(CheckNoAnnotations(state_, block_));
    const std::optional<Reducer> reducer = MatchReducer(*block_);
    if (!reducer || reducer->op != ir::BinaryOp::kAdd) {
      return Refuse("it is no sum");
    }
    product.reducer = *reducer;
    for (const IterVar& iter : block_->iters) {
      if (!ir::IsConstInt(iter.dom.min, 0) || !ir::AsInt(iter.dom.extent)) {
        return Refuse("a variable does not start at 0");
      }
      roles.of[iter.var.get()] = &iter;
      if (iter.type != ir::IterType::kReduce) continue;
      if (product.reduce != nullptr)
        return Refuse("it sums over two variables");
      product.reduce = &iter;
    }
    if (product.reduce == nullptr) return Refuse("it sums over no variable");
    roles.terms = product.reduce;
    const auto* terms = ir::As<ir::BinaryNode>(reducer->value);
    if (terms == nullptr || terms->op != ir::BinaryOp::kMul) {
      return Refuse("its terms are no products");
    }
    // The factor that a softmax makes.
    for (const auto& [factor, other] :
         {std::pair{terms->a, terms->b}, {terms->b, terms->a}}) {
      const Expr& value = WithoutCasts(factor);
      const auto* load = ir::As<ir::LoadNode>(value);
      if (load == nullptr || Reads(other, load->buffer.get())) continue;
      const std::vector<ir::BlockPtr> writers =
          scope_.Writers(load->buffer.get());
      if (writers.size() != 1 || IsOutput(state_, writers[0].get())) continue;
      const auto* store = ir::As<ir::StoreNode>(writers[0]->body);
      if (store == nullptr || writers[0]->init != nullptr) continue;
      const auto* ratio = ir::As<ir::BinaryNode>(WithoutCasts(store->value));
      if (ratio == nullptr || ratio->op != ir::BinaryOp::kDiv) continue;
      chain.shares = writers[0];
      chain.share = value;
      other_ = other;
      return absl::OkStatus();
    }
    return Refuse("no factor is made by a block that divides by a sum");
  }

  absl::Status SortVariables() {
    const auto& indices = ir::As<ir::LoadNode>(chain.share)->indices;
    for (const IterVar& iter : block_->iters) {
      if (iter.type == ir::IterType::kReduce) continue;
      const bool in_share = absl::c_any_of(indices, [&](const Expr& index) {
        return index.get() == iter.var.get();
      });
      if (!in_share && !IsUnit(iter)) {
        roles.columns.push_back(&iter);
      } else if (IsUnit(iter) || ir::UsesVar(other_, iter.var.get())) {
        roles.common.push_back(&iter);
      } else if (roles.rows == nullptr) {
        roles.rows = &iter;
      } else {
        return Refuse(absl::StrCat(roles.rows->var->name, " and ",
                                   iter.var->name, " are both over rows"));
      }
    }
    return roles.rows != nullptr ? absl::OkStatus()
                                 : Refuse("no variable is over rows");
  }

  // P, and with it the softmax.
  absl::Status MatchShares() {
    const ir::BlockNode& shares = *chain.shares;
    TF_ASSIGN_OR_RETURN(chain.shares_loops,
                        CheckLoopsOfVariables(state_, chain.shares));
    TF_RETURN_IF_ERROR(CheckNoAnnotations(state_, chain.shares));
    const auto* store = ir::As<ir::StoreNode>(shares.body);
    TF_ASSIGN_OR_RETURN(const auto parts,
                        PartsOf(ir::As<ir::LoadNode>(chain.share)->indices));
    TF_RETURN_IF_ERROR(Follow(shares, store->indices, parts));
    const auto* ratio = ir::As<ir::BinaryNode>(WithoutCasts(store->value));
    const auto* sum = ir::As<ir::LoadNode>(ratio->b);
    const std::vector<ir::BlockPtr> writers =
        sum == nullptr ? std::vector<ir::BlockPtr>()
                       : scope_.Writers(sum->buffer.get());
    if (writers.size() != 1) {
      return state_.Illegal(&shares, "it divides by no sum");
    }
    TF_ASSIGN_OR_RETURN(chain.softmax, MatchSoftmax(state_, writers[0]));
    const RowReduction& total = chain.softmax.total;
    TF_ASSIGN_OR_RETURN(const auto of_sum, PartsOf(sum->indices));
    TF_RETURN_IF_ERROR(Follow(*total.block, total.store().indices, of_sum));
    roles.of[total.reduce->var.get()] = roles.terms;
    if (chain.softmax.extent != DomainSize(*roles.terms)) {
      return state_.Illegal(&shares, "the sum is not over the same terms");
    }
    // The same exponential as in the sum.
    if (!arith::ExprEqual(InRoles(shares, ratio->a),
                          InRoles(*total.block, total.reducer.value))) {
      return state_.Illegal(
          &shares, "it divides no exponential of the sum ", total.block->name,
          "; a block that makes the exponentials can be inlined into both");
    }
    // Maxima and sums have one element for each row.
    for (const auto& [var, other] : chain.softmax.to_largest) {
      const auto found = roles.of.find(var);
      if (found != roles.of.end()) {
        roles.of[ir::As<VarNode>(other)] = found->second;
      }
    }
    roles.of[chain.softmax.largest.reduce->var.get()] = roles.terms;
    if (!(chain.product.buffer()->dtype == total.buffer()->dtype)) {
      return Refuse(
          absl::StrCat("it is not of the type of the sum ", total.block->name));
    }
    for (const IterVar& iter : total.block->iters) {
      const IterVar* part = roles.Of(iter.var.get());
      if (part == nullptr && !IsUnit(iter)) {
        return state_.Illegal(total.block.get(), iter.var->name,
                              " is no variable of the product");
      }
    }
    return absl::OkStatus();
  }

  // An expression of the block in terms of the product's variables.
  Expr InRoles(const ir::BlockNode& block, const Expr& e) const {
    ir::VarMap vars;
    for (const IterVar& iter : block.iters) {
      if (IsUnit(iter)) vars[iter.var.get()] = ir::IntConst(0);
    }
    for (const auto& [var, iter] : roles.of) {
      vars[var] = IsUnit(*iter) ? ir::IntConst(0) : Expr(iter->var);
    }
    return arith::Analyzer().Simplify(ir::Substitute(e, vars));
  }

  absl::Status MatchScores() {
    absl::Status status;
    ir::PostOrderExprs(chain.softmax.exponent, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      if (load == nullptr || !status.ok()) return;
      const std::vector<ir::BlockPtr> writers =
          scope_.Writers(load->buffer.get());
      // Others may stay where they are.
      if (writers.size() != 1 || IsOutput(state_, writers[0].get())) return;
      auto parts = PartsOf(load->indices);
      if (!parts.ok() || !absl::c_linear_search(*parts, roles.terms) ||
          !absl::c_linear_search(*parts, roles.rows)) {
        return;
      }
      if (chain.scores != nullptr) {
        if (chain.scores != writers[0]) {
          status = Refuse(absl::StrCat("both ", chain.scores->name, " and ",
                                       writers[0]->name,
                                       " make what the exponents read"));
        }
        return;
      }
      const auto* store = ir::As<ir::StoreNode>(writers[0]->body);
      auto loops = CheckLoopsOfVariables(state_, writers[0]);
      if (store == nullptr || !loops.ok() ||
          !Follow(*writers[0], store->indices, *parts).ok()) {
        return;
      }
      chain.scores = writers[0];
      chain.scores_loops = *std::move(loops);
    });
    return status;
  }

  absl::Status CheckOthers() const {
    std::vector<ir::BlockPtr> moved = {chain.softmax.largest.block,
                                       chain.softmax.total.block, chain.shares};
    if (chain.scores != nullptr) moved.push_back(chain.scores);
    for (const ir::BlockPtr& block : moved) {
      if (IsOutput(state_, block.get())) {
        return state_.Illegal(block.get(), "its result is the function's");
      }
    }
    for (const Dependency& dep : scope_.dependencies()) {
      if (!absl::c_linear_search(moved, dep.src) ||
          absl::c_linear_search(moved, dep.dst)) {
        continue;
      }
      if (dep.kind == DepKind::kRaw && dep.dst == block_) continue;
      return Refuse(absl::StrCat(
          "block ", dep.dst->name,
          dep.kind == DepKind::kRaw ? " reads the result of "
                                    : " overwrites what block ",
          dep.src->name, dep.kind == DepKind::kRaw ? "" : " accesses"));
    }
    return absl::OkStatus();
  }

  const ScheduleState& state_;
  const ir::BlockPtr block_;
  const BlockScope scope_;
  Expr other_;  // the factor beside the share
};

}  // namespace

const Expr& WithoutCasts(const Expr& e) {
  const auto* cast = ir::As<ir::CastNode>(e);
  return cast == nullptr ? e : WithoutCasts(cast->value);
}

absl::StatusOr<MatchedProduct> MatchSoftmaxProduct(
    const ScheduleState& state, const ir::BlockPtr& product) {
  ProductMatcher matcher(state, product);
  TF_RETURN_IF_ERROR(matcher.Match());
  return MatchedProduct{std::move(matcher.chain), std::move(matcher.roles)};
}

}  // namespace tilefarm::schedule
