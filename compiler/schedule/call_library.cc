// call_library: a matrix product is computed by a kernel of a library that the
// device has.
//
//   call_library(C, "openblas.sgemm")
//
//   for i, j, k in T.grid(M, N, K):      for i, j, k in T.grid(M, N, K):
//     C[i, j] += A[i, k] * B[k, j]   ->    {"tilefarm.library":
//                                           "openblas.sgemm"}
//                                          C[i, j] += A[i, k] * B[k, j]
//
// The semantics of the program do not change; lowering turns the nest into the
// call. No other transformation of the block is allowed: each loop must be
// bound to one variable of the block.
//
// Steps:
//   1. Check that the kernel exists, that the block is below the root in a nest
//      that contains nothing else, and that the kernel computes its product.
//   2. Mark the block.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/library_call.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"

namespace tilefarm::schedule {
namespace {

// Step 1: check the nest and the product.
absl::Status CheckStands(const ScheduleState& state,
                         const ir::BlockPtr& block) {
  const ir::BlockPtr scope = state.Scope(block.get());
  if (scope == nullptr || state.Parent(scope.get()) != nullptr) {
    return state.Illegal(block.get(),
                         "the block is not directly below the root");
  }
  std::vector<const ir::ForNode*> loops;
  for (const ir::ForPtr& loop : state.LoopsAbove(block.get())) {
    loops.push_back(loop.get());
  }
  if (!loops.empty() && !IsOnlyChild(state, loops.front(), block.get())) {
    return state.Illegal(block.get(), "its loops hold another statement");
  }
  const auto form = ir::MatchGemm(*block);
  const absl::Status matched =
      form.ok() ? ir::CheckLibraryNest(*block, loops) : form.status();
  return matched.ok() ? matched : state.Illegal(block.get(), matched);
}

}  // namespace

absl::Status CallLibrary(ScheduleState& state, BlockRv block_rv,
                         std::string_view kernel) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr block, state.Get(block_rv));
  if (!ir::FindLibraryKernel(kernel)) {
    std::string known;
    for (const ir::LibraryKernel& one : ir::LibraryKernels()) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", std::string(one.name));
    }
    return state.Invalid(block.get(), "no kernel \"", std::string(kernel),
                         "\"; there are: ", known);
  }
  TF_RETURN_IF_ERROR(CheckStands(state, block));
  if (block->annotations.contains(ir::kLibrary)) {
    return state.Illegal(block.get(), "a library computes it already");
  }
  ir::BlockNode copy(*block);
  copy.annotations.insert({ir::kLibrary, ir::Attr(std::string(kernel))});
  const ir::BlockPtr marked = ir::BlockOf(std::move(copy));
  state.Replace(block.get(), marked, {{block.get(), marked.get()}});
  return absl::OkStatus();
}

absl::Status CheckLibraryBlocks(const ScheduleState& state) {
  for (const ir::PrimFuncPtr& function : state.module().functions) {
    for (const ir::BlockPtr& block : state.BlocksOf(function.get())) {
      if (!block->annotations.contains(ir::kLibrary)) continue;
      const absl::Status stands = CheckStands(state, block);
      if (stands.ok()) continue;
      return state.Illegal(block.get(),
                           "a library computes the block, so its nest stays as "
                           "it is");
    }
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::schedule
