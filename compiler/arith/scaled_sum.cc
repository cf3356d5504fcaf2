#include "compiler/arith/scaled_sum.h"

#include <algorithm>

#include "compiler/arith/analyzer.h"

namespace tilefarm::arith {

bool IsElementOf(const ir::Expr& e, const ir::StoreNode& store) {
  const auto* load = ir::As<ir::LoadNode>(e);
  return load != nullptr && load->buffer == store.buffer &&
         load->predicate == nullptr &&
         std::ranges::equal(load->indices, store.indices, ExprEqual);
}

std::optional<ScaledSum> AsScaledSum(const ir::StoreNode& store) {
  const auto* sum = ir::As<ir::BinaryNode>(store.value);
  if (store.predicate != nullptr || sum == nullptr ||
      sum->op != ir::BinaryOp::kAdd) {
    return std::nullopt;
  }
  for (const bool first : {true, false}) {
    const ir::Expr& scaled = first ? sum->a : sum->b;
    const auto* product = ir::As<ir::BinaryNode>(scaled);
    const auto* part = ir::As<ir::LoadNode>(first ? sum->b : sum->a);
    if (product == nullptr || product->op != ir::BinaryOp::kMul ||
        part == nullptr || part->predicate != nullptr ||
        part->buffer == store.buffer ||
        part->buffer->dtype != store.buffer->dtype) {
      continue;
    }
    const bool element_first = IsElementOf(product->a, store);
    if (!element_first && !IsElementOf(product->b, store)) continue;
    return ScaledSum{scaled, element_first ? product->b : product->a, part};
  }
  return std::nullopt;
}

}  // namespace tilefarm::arith
