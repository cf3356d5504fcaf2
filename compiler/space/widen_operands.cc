#include <vector>

#include "absl/algorithm/container.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {

// Copies the 16-bit operands of a product that reuses them and sums in float32.
// Lowering keeps the copies in float32, so that an element is widened once
// instead of in every tile; the search decides where to make the copies.
// Operands that multi_level_tiling packs have a copy already.
Alternatives WidenOperands(const RuleContext& context, RuleSite site) {
  auto& [unchanged, schedule, block, node] = site;
  if (!HasDataReuse(*node)) return DoesNotApply();
  std::vector<const ir::BufferNode*> narrow;
  ir::PostOrderExprs(node->body, [&](const ir::Expr& e) {
    const auto* cast = ir::As<ir::CastNode>(e);
    const auto* load =
        cast == nullptr ? nullptr : ir::As<ir::LoadNode>(cast->value);
    if (load != nullptr && cast->dtype == ir::DataType::Float(32) &&
        load->dtype.is_float() && load->dtype.bits == 16) {
      narrow.push_back(load->buffer.get());
    }
  });
  std::vector<int> packed =
      OperandsToPrepack(*schedule.module().Find(context.function), *node);
  packed.push_back(OperandToPack(*node));
  bool copied = false;
  for (size_t i = 0; i < node->reads.size(); ++i) {
    const ir::BufferNode* buffer = node->reads[i].buffer.get();
    if (absl::c_linear_search(packed, static_cast<int>(i)) ||
        !absl::c_linear_search(narrow, buffer)) {
      continue;
    }
    if (!schedule.CacheRead(block, static_cast<int>(i), "global").ok()) {
      return DoesNotApply();
    }
    copied = true;
  }
  if (!copied) return DoesNotApply();
  return std::vector{std::move(schedule)};
}

}  // namespace tilefarm::space
