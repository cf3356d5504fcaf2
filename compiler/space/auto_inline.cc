#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/padding.h"
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
Alternatives InlinePadding(const std::string& function, Schedule schedule,
                           const std::string& name) {
  std::vector<Schedule> results;
  Schedule attempt = schedule;
  TF_ASSIGN_OR_RETURN(BlockRv block, attempt.GetBlock(name, function));
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, attempt.Get(block));
  TF_ASSIGN_OR_RETURN(std::vector<BlockRv> readers,
                      attempt.GetConsumers(block));
  if (!readers.empty() &&
      !IsOutput(*attempt.module().Find(function),
                node->writes[0].buffer.get()) &&
      attempt.ComputeInline(block).ok()) {
    TF_ASSIGN_OR_RETURN(const bool skips, SkipPadding(attempt, readers));
    if (skips) results.push_back(std::move(attempt));
  }
  results.push_back(std::move(schedule));
  return results;
}

}  // namespace

// Inlines an elementwise block whose result is intermediate and cheap into its
// consumers. A block with if_then_else (padding) stays, for its conditions
// would be evaluated in the innermost loops of every consumer; but where the
// consumers may skip it, that is a second way to go on.
Alternatives AutoInline(const RuleContext& context, schedule::Schedule schedule,
                        const std::string& name) {
  schedule::Schedule attempt = schedule;
  TF_ASSIGN_OR_RETURN(schedule::BlockRv block,
                      attempt.GetBlock(name, context.function));
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, attempt.Get(block));
  if (!IsElementwise(*node) || node->writes.size() != 1 ||
      UsesCostlyIntrinsic(*node) || !HasTrivialBindings(*node)) {
    return std::vector{std::move(schedule)};
  }
  if (UsesIfThenElse(*node)) {
    return InlinePadding(context.function, std::move(schedule), name);
  }
  const ir::PrimFuncPtr function = schedule.module().Find(context.function);
  if (!IsOutput(*function, node->writes[0].buffer.get())) {
    if (attempt.ComputeInline(block).ok()) return std::vector{attempt};
  }
  return std::vector{std::move(schedule)};
}

absl::Status InlineProducers(schedule::Schedule& schedule,
                             schedule::BlockRv block,
                             bool (*which)(const ir::BlockNode& producer)) {
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> producers,
                      schedule.GetProducers(block));
  for (const BlockRv producer : producers) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(producer));
    if (!IsElementwise(*node) || !which(*node)) continue;
    // An error leaves the schedule unchanged.
    schedule.ComputeInline(producer).IgnoreError();
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
