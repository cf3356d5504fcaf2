// annotate, unannotate: attributes of blocks and loops. As in TVM, annotating a
// key that is already present keeps the old value.
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/padding.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/loop_primitives.h"

namespace tilefarm::schedule {
namespace {

// Replaces the annotations of a block or loop by the result of `edit`.
template <typename Edit>
absl::Status EditAnnotations(ScheduleState& state, const BlockOrLoop& where,
                             const Edit& edit) {
  if (const auto* block_rv = std::get_if<BlockRv>(&where)) {
    TF_ASSIGN_OR_RETURN(ir::BlockPtr block, state.Get(*block_rv));
    ir::BlockNode copy(*block);
    TF_RETURN_IF_ERROR(edit(copy.annotations, block.get()));
    const ir::BlockPtr changed = ir::BlockOf(std::move(copy));
    state.Replace(block.get(), changed, {{block.get(), changed.get()}});
    return absl::OkStatus();
  }
  TF_ASSIGN_OR_RETURN(ir::ForPtr loop, state.Get(std::get<LoopRv>(where)));
  ir::ForNode copy(*loop);
  TF_RETURN_IF_ERROR(edit(copy.annotations, loop.get()));
  state.Replace(loop.get(),
                std::make_shared<const ir::ForNode>(std::move(copy)));
  return absl::OkStatus();
}

}  // namespace

absl::Status Annotate(ScheduleState& state, BlockOrLoop where,
                      std::string_view key, const AnnValue& value) {
  if (key == ir::kLibrary) {
    // Only call_library may set this annotation: it checks the block.
    return absl::InvalidArgumentError(
        "annotate: the annotation \"tilefarm.library\" is call_library's");
  }
  ir::Attr attr;
  if (const auto* constant = std::get_if<ir::Attr>(&value)) {
    attr = *constant;
  } else {
    TF_ASSIGN_OR_RETURN(const int64_t number,
                        state.Get(std::get<ExprRv>(value)));
    attr = ir::Attr(number);
  }
  return EditAnnotations(
      state, where,
      [&](ir::AttrMap& annotations, const ir::StmtNode* stmt) -> absl::Status {
        const auto* block = ir::As<ir::BlockNode>(stmt);
        if (key == ir::kSkipPadding && block != nullptr &&
            !ir::SkipsExactly(*block)) {
          TF_RETURN_IF_ERROR(state.CheckMayDiffer(stmt, state.kLeavesOut));
        }
        // Other kinds of units multiply the operands as they are.
        if (key == ir::kWarpMatrix && attr != ir::Attr(ir::kByWarps) &&
            attr != ir::Attr(ir::kByWarpgroups)) {
          TF_RETURN_IF_ERROR(
              state.CheckMayDiffer(stmt, state.kRoundsOtherwise));
        }
        annotations.insert({std::string(key), attr});
        return absl::OkStatus();
      });
}

absl::Status Unannotate(ScheduleState& state, BlockOrLoop where,
                        std::string_view key) {
  return EditAnnotations(
      state, where,
      [&](ir::AttrMap& annotations, const ir::StmtNode* stmt) -> absl::Status {
        if (annotations.erase(std::string(key)) == 0) {
          return state.Illegal(stmt, "it has no annotation \"",
                               std::string(key), "\"");
        }
        return absl::OkStatus();
      });
}

}  // namespace tilefarm::schedule
