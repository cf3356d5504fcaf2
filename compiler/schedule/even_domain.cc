#include "compiler/schedule/even_domain.h"

#include <cstdint>
#include <numeric>

#include "compiler/ir/visitor.h"

namespace tilefarm::schedule {

std::optional<arith::VarRanges> EvenDomain(const std::vector<ir::Expr>& indices,
                                           const arith::VarRanges& domain) {
  arith::VarRanges even = domain;
  bool changed = false;
  for (auto& [var, range] : even) {
    const std::optional<int64_t> extent = ir::AsInt(range.extent);
    if (!extent || !ir::IsConstInt(range.min, 0)) continue;
    int64_t unit = 1;
    bool fits = true;
    for (const ir::Expr& index : indices) {
      ir::PostOrderExprs(index, [&](const ir::Expr& expr) {
        const auto* node = ir::As<ir::BinaryNode>(expr);
        if (node == nullptr || node->a.get() != var.get() ||
            (node->op != ir::BinaryOp::kFloorDiv &&
             node->op != ir::BinaryOp::kFloorMod)) {
          return;
        }
        const int64_t divisor = ir::AsInt(node->b).value_or(0);
        fits = fits && divisor > 0 && divisor <= 2 * *extent;
        if (fits) unit = std::lcm(unit, divisor);
        fits = fits && unit <= 2 * *extent;
      });
    }
    const int64_t rounded = (*extent + unit - 1) / unit * unit;
    if (!fits || rounded > 2 * *extent) return std::nullopt;
    changed |= rounded != *extent;
    range.extent = ir::IntConst(rounded);
  }
  return changed ? std::optional(std::move(even)) : std::nullopt;
}

}  // namespace tilefarm::schedule
