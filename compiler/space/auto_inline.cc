#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/padding.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {

using schedule::BlockRv;
using schedule::Schedule;

namespace {

// Marks the blocks among `readers`, which may skip what is 0; false where one
// of them adds no products, or must add those that are not 0.
absl::StatusOr<bool> SkipPadding(Schedule& schedule,
                                 const std::vector<BlockRv>& readers) {
  for (const BlockRv reader : readers) {
    TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(reader));
    const auto* store = ir::As<ir::StoreNode>(node->body);
    if (store == nullptr || !ir::MatchPaddedTerm(*store) ||
        !schedule.Annotate(reader, ir::kSkipPadding, ir::Attr(1)).ok()) {
      return false;
    }
  }
  return true;
}

// Padding that sums of products read: a copy with its zeros, or the products
// at the border left out, where lowering cuts the loops at the border.
Alternatives InlinePadding(RuleSite site) {
  TF_ASSIGN_OR_RETURN(std::vector<BlockRv> readers,
                      site.schedule.GetConsumers(site.block));
  if (readers.empty() || !site.schedule.ComputeInline(site.block).ok()) {
    return DoesNotApply();
  }
  TF_ASSIGN_OR_RETURN(const bool skips, SkipPadding(site.schedule, readers));
  if (!skips) return DoesNotApply();
  return std::vector{std::move(site.schedule), std::move(site.unchanged)};
}

bool Divides(const ir::BlockNode& block) {
  bool divides = false;
  ir::PostOrderExprs(block.body, [&](const ir::Expr& expr) {
    const auto* binary = ir::As<ir::BinaryNode>(expr);
    divides |= binary != nullptr && binary->op == ir::BinaryOp::kDiv &&
               ir::As<ir::FloatConstNode>(binary->b) == nullptr;
  });
  return divides;
}

// Whether a reader uses each element many times, as a product does.
absl::StatusOr<bool> IsReused(Schedule schedule, BlockRv block) {
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> readers,
                      schedule.GetConsumers(block));
  for (const BlockRv reader : readers) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(reader));
    if (HasDataReuse(*node)) return true;
  }
  return false;
}

}  // namespace

// Inlines an elementwise block whose result is intermediate and cheap into its
// consumers. Divisions are not repeated by a product that uses their results
// many times. A block with if_then_else (padding) stays, for its conditions
// would be evaluated in the innermost loops of every consumer; but where the
// consumers may skip it, that is a second way to go on.
Alternatives AutoInline(const RuleContext& context, RuleSite site) {
  const ir::BlockPtr node = site.node;
  if (!IsElementwise(*node) || node->writes.size() != 1 ||
      UsesCostlyIntrinsic(*node) || !HasTrivialBindings(*node) ||
      IsOutput(*site.schedule.module().Find(context.function),
               node->writes[0].buffer.get())) {
    return DoesNotApply();
  }
  if (UsesIfThenElse(*node)) return InlinePadding(std::move(site));
  if (Divides(*node)) {
    TF_ASSIGN_OR_RETURN(const bool reused, IsReused(site.schedule, site.block));
    if (reused) return DoesNotApply();
  }
  if (!site.schedule.ComputeInline(site.block).ok()) return DoesNotApply();
  return std::vector{std::move(site.schedule)};
}

absl::Status InlineProducers(schedule::Schedule& schedule,
                             schedule::BlockRv block,
                             bool (*which)(const ir::BlockNode& producer)) {
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> producers,
                      schedule.GetProducers(block));
  for (const BlockRv producer : producers) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(producer));
    if (!IsElementwise(*node) || !which(*node) ||
        node->annotations.contains(kLaidOut)) {
      continue;
    }
    // An error leaves the schedule unchanged.
    schedule.ComputeInline(producer).IgnoreError();
  }
  return absl::OkStatus();
}

absl::StatusOr<ir::BlockPtr> InlineAllProducers(
    schedule::Schedule& schedule, schedule::BlockRv block,
    bool (*which)(const ir::BlockNode& producer)) {
  for (;;) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr before, schedule.Get(block));
    TF_RETURN_IF_ERROR(InlineProducers(schedule, block, which));
    TF_ASSIGN_OR_RETURN(ir::BlockPtr after, schedule.Get(block));
    if (after->body == before->body) return after;
  }
}

}  // namespace tilefarm::space
