// get_block, get_loops, get_producers, get_consumers, get_child_blocks.
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/loop_primitives.h"

namespace tilefarm::schedule {
namespace {

std::vector<BlockRv> NewBlocks(ScheduleState& state,
                               const std::vector<ir::BlockPtr>& blocks) {
  std::vector<BlockRv> out;
  out.reserve(blocks.size());
  for (const ir::BlockPtr& block : blocks) out.push_back(state.NewBlock(block));
  return out;
}

absl::StatusOr<std::vector<BlockRv>> GetNeighbours(
    ScheduleState& state, BlockRv rv, decltype(&BlockScope::Producers) of) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr block, state.Get(rv));
  TF_ASSIGN_OR_RETURN(const auto scope, ScopeOf(state, block));
  return NewBlocks(state, (BlockScope(state, scope.get()).*of)(block.get()));
}

}  // namespace

absl::StatusOr<BlockRv> GetBlock(ScheduleState& state, std::string_view name,
                                 std::string_view func_name) {
  ir::PrimFuncPtr function = state.module().Find(func_name);
  if (function == nullptr && func_name == "main" &&
      state.module().functions.size() == 1) {
    // Traces may call the only function "main", whatever its name is.
    function = state.module().functions[0];
  }
  if (function == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "get_block: there is no function \"", std::string(func_name), "\""));
  }
  ir::BlockPtr found;
  int count = 0;
  for (const ir::BlockPtr& block : state.BlocksOf(function.get())) {
    if (block->name != name) continue;
    if (count++ == 0) found = block;
  }
  if (count == 1) return state.NewBlock(found);
  if (count > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("get_block: ", count, " blocks of ", function->name,
                     " are named \"", std::string(name), "\""));
  }
  std::string known;
  for (const ir::BlockPtr& block : state.BlocksOf(function.get())) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", block->name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("get_block: ", function->name, " has no block \"",
                   std::string(name), "\"; it has ", known));
}

absl::StatusOr<std::vector<LoopRv>> GetLoops(ScheduleState& state,
                                             BlockRv block_rv) {
  TF_ASSIGN_OR_RETURN(ir::BlockPtr block, state.Get(block_rv));
  std::vector<LoopRv> out;
  for (const ir::ForPtr& loop : state.LoopsAbove(block.get())) {
    out.push_back(state.NewLoop(loop));
  }
  return out;
}

absl::StatusOr<std::vector<BlockRv>> GetProducers(ScheduleState& state,
                                                  BlockRv rv) {
  return GetNeighbours(state, rv, &BlockScope::Producers);
}

absl::StatusOr<std::vector<BlockRv>> GetConsumers(ScheduleState& state,
                                                  BlockRv rv) {
  return GetNeighbours(state, rv, &BlockScope::Consumers);
}

absl::StatusOr<std::vector<BlockRv>> GetChildBlocks(ScheduleState& state,
                                                    BlockOrLoop where) {
  TF_ASSIGN_OR_RETURN(const ir::Stmt stmt, state.Get(where));
  return NewBlocks(state, state.ChildBlocks(stmt.get()));
}

}  // namespace tilefarm::schedule
