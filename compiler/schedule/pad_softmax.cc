// pad_softmax: a product with a softmax, such as attention, over whole tiles.
//
//   pad_softmax(O, padding=[1, 16, 1, 16], depth=8)
//
//   for i, j, k in (20, 20, 4): S[i, j] += Q[i, k] * K[j, k]
//   for i, j in (20, 20):       M[i] = max(M[i], x[i, j])      (x made from S)
//   for i, j in (20, 20):       D[i] += exp(x[i, j] - M[i])
//   for i, j in (20, 20):       P[i, j] = exp(x[i, j] - M[i]) / D[i]
//   for i, d, j in (20, 3, 20): O[i, d] += P[i, j] * V[j, d]
//
//   ->  for ax0, ax1: Q_pad = Q or 0; K_pad = K or 0; V_pad = V or 0
//       for i, j, k in (32, 32, 8): S_pad[i, j] += Q_pad[i, k] * K_pad[j, k]
//       for i, j in (32, 32):       M_pad[i] = max(M_pad[i], x'[i, j])
//       for i, j in (32, 32):       D_pad[i] += exp(x'[i, j] - M_pad[i])
//       for i, j in (32, 32):       P_pad = exp(x'[i, j] - M_pad[i]) / D_pad[i]
//       for i, d, j in (32, 3, 32): O_pad[i, d] += P_pad[i, j] * V_pad[j, d]
//       for ax0, ax1 in (20, 3):    O = O_pad
//
// where x'[i, j] is x[i, j] where that is a term, and -inf elsewhere: the
// maximum starts from a finite number, so that such terms are exp(-inf) = 0.
// `padding` has a number for each variable of the product, as pad_einsum has;
// `depth` is that of the variable over which the scores are sums. Rows beyond
// the last are no numbers and are not copied.
//
// Steps:
//   1. Pad the scores (pad_einsum.cc), with a copy back.
//   2. Pad the product, and give the blocks between the two whole tiles; they
//      read the padded scores, without the copy.
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/regions.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/pad_einsum.h"
#include "compiler/schedule/scope_edit.h"
#include "compiler/schedule/softmax_product.h"

namespace tilefarm::schedule {
namespace {

using ir::Expr;
using ir::IterVar;

// Replaces one expression, which is compared by identity.
class ReplaceExpr : public ir::Mutator {
 public:
  ReplaceExpr(const ir::ExprNode* from, Expr to)
      : from_(from), to_(std::move(to)) {}
  Expr Mutate(const Expr& e) override {
    return e.get() == from_ ? to_ : Mutator::Mutate(e);
  }
  using Mutator::Mutate;

 private:
  const ir::ExprNode* from_;
  const Expr to_;
};

// x of `exp(x - m)` or `exp((x - m) * scale)`.
const Expr& ExponentOf(const Expr& exp) {
  const auto* difference =
      ir::As<ir::BinaryNode>(ir::As<ir::CallNode>(exp)->args[0]);
  if (difference->op == ir::BinaryOp::kMul) {
    difference = ir::As<ir::BinaryNode>(difference->a);
  }
  return difference->a;
}

class SoftmaxPadder {
 public:
  SoftmaxPadder(const ScheduleState& state, const MatchedProduct& product,
                int64_t rows, int64_t terms)
      : chain_(product.chain),
        roles_(product.roles),
        function_(*state.FunctionOf(chain_.shares.get())),
        rows_(rows),
        terms_(terms) {}

  // The padded product reads `pad` instead of the shares; the blocks in front
  // of it read `scores` instead of what `chain.scores` copies from it.
  void Edit(const ir::Buffer& pad, const ir::Buffer& scores, ScopeEditor& edit,
            BlockReuse& reuse) {
    const ir::Buffer shares =
        ir::As<ir::StoreNode>(chain_.shares->body)->buffer;
    edit.RemoveAlloc(shares.get());
    buffers_[shares.get()] = pad;
    if (scores != nullptr) {
      const ir::Buffer copied =
          ir::As<ir::StoreNode>(chain_.scores->body)->buffer;
      scores_ = copied.get();
      buffers_[copied.get()] = scores;
      edit.RemoveAlloc(copied.get());
      edit.Replace(chain_.scores_loops[0].get(), ir::NoOp());
    }
    for (const RowReduction* whole :
         {&chain_.softmax.largest, &chain_.softmax.total}) {
      Grow(*whole, edit);
    }
    const Softmax& softmax = chain_.softmax;
    const auto replace = [&](const ir::BlockPtr& block,
                             const std::vector<ir::ForPtr>& loops,
                             const Expr& exponent) {
      const ir::BlockPtr made = Padded(block, exponent);
      reuse.emplace_back(block.get(), made.get());
      edit.Replace(loops[0].get(), NestOfDomain(loops, made));
    };
    replace(softmax.largest.block, softmax.largest.loops,
            softmax.largest.reducer.value);
    replace(softmax.total.block, softmax.total.loops,
            ExponentOf(softmax.total.reducer.value));
    const auto* ratio = ir::As<ir::BinaryNode>(
        WithoutCasts(ir::As<ir::StoreNode>(chain_.shares->body)->value));
    replace(chain_.shares, chain_.shares_loops, ExponentOf(ratio->a));
  }

 private:
  // The new extent of a variable.
  int64_t ExtentOf(const IterVar& iter) const {
    const IterVar* part = roles_.Of(iter.var.get());
    if (part == roles_.rows) return rows_;
    return part == roles_.terms ? terms_ : DomainSize(iter);
  }

  // Maxima and sums of as many rows.
  void Grow(const RowReduction& whole, ScopeEditor& edit) {
    const ir::Buffer& buffer = whole.buffer();
    ir::BufferNode grown = *buffer;
    for (size_t d = 0; d < grown.shape.size(); ++d) {
      for (const IterVar& iter : whole.block->iters) {
        if (whole.store().indices[d] == iter.var) {
          grown.shape[d] = ExtentOf(iter);
        }
      }
    }
    if (grown.shape == buffer->shape) return;
    grown.name = FreshBufferName(function_, absl::StrCat(buffer->name, "_pad"));
    const ir::Buffer made = std::make_shared<const ir::BufferNode>(grown);
    edit.RemoveAlloc(buffer.get());
    edit.AddAlloc(made);
    buffers_[buffer.get()] = made;
  }

  // -inf where there is no term, and where x reads something else than the
  // scores, where there is no row.
  Expr Guarded(const ir::BlockNode& block, const Expr& exponent) const {
    bool reads_rows = false;
    Expr row, term;
    for (const IterVar& iter : block.iters) {
      const IterVar* part = roles_.Of(iter.var.get());
      if (part == roles_.rows) row = iter.var;
      if (part == roles_.terms) term = iter.var;
    }
    ir::PostOrderExprs(exponent, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      reads_rows |= load != nullptr && load->buffer.get() != scores_;
    });
    Expr is_term = ir::BoolConst(true);
    const auto add = [&](const Expr& index, const IterVar& of, int64_t grown) {
      if (index == nullptr || grown == DomainSize(of)) return;
      is_term = ir::And(is_term, ir::LT(index, ir::IntConst(DomainSize(of))));
    };
    add(term, *roles_.terms, terms_);
    if (reads_rows) add(row, *roles_.rows, rows_);
    if (ir::IsConstInt(is_term, 1)) return exponent;
    return ir::IfThenElseExpr(
        is_term, exponent,
        ir::FloatConst(-std::numeric_limits<double>::infinity(),
                       exponent->dtype));
  }

  ir::BlockPtr Padded(const ir::BlockPtr& block, const Expr& exponent) const {
    ReplaceExpr replace(exponent.get(), Guarded(*block, exponent));
    ir::BlockNode made = *block;
    made.body = replace.Mutate(made.body);
    for (IterVar& iter : made.iters) {
      iter.dom.extent = ir::IntConst(ExtentOf(iter));
    }
    made.body = ir::ReplaceBuffers(made.body, buffers_);
    if (made.init != nullptr) {
      made.init = ir::ReplaceBuffers(made.init, buffers_);
    }
    return ir::BlockWithAccesses(std::move(made));
  }

  const SoftmaxProduct& chain_;
  const ProductRoles& roles_;
  const ir::PrimFunc& function_;
  const int64_t rows_, terms_;
  const ir::BufferNode* scores_ = nullptr;
  ir::BufferMap buffers_;
};

// The number of the variable's padding.
absl::StatusOr<int64_t> PaddingOf(const ScheduleState& state,
                                  const ir::BlockPtr& product,
                                  const std::vector<int64_t>& padding,
                                  const IterVar* variable) {
  for (size_t i = 0; i < product->iters.size(); ++i) {
    if (&product->iters[i] == variable) return padding[i];
  }
  return state.Illegal(product.get(), "a variable is missing");
}

// What the padded block accesses instead of the buffer; null: the buffer
// itself.
ir::Buffer PadOf(const PaddedEinsum& padded, const ir::BufferNode* buffer) {
  for (const auto& [of, pad] : padded.pads) {
    if (of == buffer) return pad;
  }
  return nullptr;
}

}  // namespace

absl::Status PadSoftmax(ScheduleState& state, BlockRv block_rv,
                        const std::vector<int64_t>& padding, int64_t depth) {
  TF_ASSIGN_OR_RETURN(ir::BlockPtr product, state.Get(block_rv));
  if (padding.size() != product->iters.size()) {
    return state.Invalid(product.get(), "padding has ", padding.size(),
                         " numbers for ", product->iters.size(), " variables");
  }
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr scope, ScopeOf(state, product));
  TF_RETURN_IF_ERROR(CheckStagePipeline(state, scope.get()));
  TF_ASSIGN_OR_RETURN(MatchedProduct found,
                      MatchSoftmaxProduct(state, product));
  for (const IterVar* iter : found.roles.common) {
    TF_ASSIGN_OR_RETURN(const int64_t number,
                        PaddingOf(state, product, padding, iter));
    if (number < 1 || DomainSize(*iter) % number == 0) continue;
    return state.Invalid(
        product.get(), "padding ", number, " of ", iter->var->name,
        ", which counts softmaxes, is no divisor of ", DomainSize(*iter));
  }
  TF_ASSIGN_OR_RETURN(const int64_t row_padding,
                      PaddingOf(state, product, padding, found.roles.rows));
  TF_ASSIGN_OR_RETURN(const int64_t term_padding,
                      PaddingOf(state, product, padding, found.roles.terms));

  // Step 1.
  ir::Buffer scores;
  if (found.chain.scores != nullptr && found.chain.scores->init != nullptr) {
    const ir::BlockPtr& block = found.chain.scores;
    std::vector<int64_t> of_scores;
    for (const IterVar& iter : block->iters) {
      const IterVar* part = found.roles.Of(iter.var.get());
      of_scores.push_back(part == found.roles.rows             ? row_padding
                          : part == found.roles.terms          ? term_padding
                          : iter.type == ir::IterType::kReduce ? depth
                                                               : 1);
    }
    const ir::BufferNode* written = block->writes[0].buffer.get();
    TF_ASSIGN_OR_RETURN(const PaddedEinsum padded,
                        PadEinsum(state, block, of_scores));
    scores = PadOf(padded, written);
    product = state.Latest(product);
    TF_ASSIGN_OR_RETURN(found, MatchSoftmaxProduct(state, product));
  }

  // Step 2.
  const auto whole = [](const IterVar& iter, int64_t number) {
    return (DomainSize(iter) + number - 1) / number * number;
  };
  ScopeEditor edit;
  const ir::BufferNode* shares =
      ir::As<ir::StoreNode>(found.chain.shares->body)->buffer.get();
  TF_ASSIGN_OR_RETURN(const PaddedEinsum padded,
                      PadEinsumIn(state, product, padding, shares, edit));
  BlockReuse reuse = {{product.get(), padded.block.get()}};
  const ir::Buffer pad = PadOf(padded, shares);
  if (pad != nullptr) {
    SoftmaxPadder padder(state, found, whole(*found.roles.rows, row_padding),
                         whole(*found.roles.terms, term_padding));
    padder.Edit(pad, scores, edit, reuse);
  }
  const ir::BlockPtr latest = state.Scope(product.get());
  state.Replace(latest.get(), edit.Apply(*latest), reuse);
  return absl::OkStatus();
}

}  // namespace tilefarm::schedule
