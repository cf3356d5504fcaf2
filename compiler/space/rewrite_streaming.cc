#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {

// If the root is annotated so, the nests that write outputs which no block
// reads get streaming stores.
absl::Status RewriteStreaming(schedule::Schedule& schedule,
                              const std::string& function) {
  TF_ASSIGN_OR_RETURN(const schedule::BlockRv root,
                      schedule.GetBlock("root", function));
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(root));
  const auto found = node->annotations.find(kStream);
  if (found == node->annotations.end()) return absl::OkStatus();
  const bool streams = found->second.AsInt().value_or(0) != 0;
  TF_RETURN_IF_ERROR(schedule.Unannotate(root, kStream));
  if (!streams) return absl::OkStatus();
  // The rule that set the annotation has checked the size of the outputs.
  for (const std::string& name :
       StreamedBlocks(*schedule.module().Find(function), /*bytes=*/0)) {
    TF_ASSIGN_OR_RETURN(const schedule::BlockRv block,
                        schedule.GetBlock(name, function));
    TF_ASSIGN_OR_RETURN(const std::vector<schedule::LoopRv> loops,
                        schedule.GetLoops(block));
    if (loops.empty()) continue;
    TF_RETURN_IF_ERROR(
        schedule.Annotate(loops[0], ir::kStreamingStores, ir::Attr(1)));
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
