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
// The program stays what it computes; lowering makes the call of the nest. So
// nothing else may happen to the block: its loops are its variables' own.
//
// Steps:
//   1. Check that the kernel exists, that the block stands below the root in a
//      nest that holds nothing else, and that it is a product which the kernel
//      computes.
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

constexpr char kPrimitive[] = "call_library";

}  // namespace

absl::Status CallLibrary(ScheduleState& state, BlockRv block_rv,
                         std::string_view kernel) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr block,
                      state.Get(kPrimitive, block_rv));
  if (!ir::FindLibraryKernel(kernel)) {
    std::string known;
    for (const ir::LibraryKernel& one : ir::LibraryKernels()) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", std::string(one.name));
    }
    return state.Invalid(kPrimitive, block.get(),
                         absl::StrCat("no kernel \"", std::string(kernel),
                                      "\"; there are: ", known));
  }
  const ir::BlockPtr scope = state.Scope(block.get());
  if (scope == nullptr || state.Parent(scope.get()) != nullptr) {
    return state.Illegal(kPrimitive, block.get(),
                         "the block is not directly below the root");
  }
  std::vector<const ir::ForNode*> loops;
  for (const ir::ForPtr& loop : state.LoopsAbove(block.get())) {
    loops.push_back(loop.get());
  }
  if (!loops.empty() && !IsOnlyChild(state, loops.front(), block.get())) {
    return state.Illegal(kPrimitive, block.get(),
                         "its loops hold another statement");
  }
  const auto form = ir::MatchGemm(*block);
  const absl::Status matched =
      form.ok() ? ir::CheckLibraryNest(*block, loops) : form.status();
  if (!matched.ok()) {
    const absl::string_view reason = matched.message();
    return state.Illegal(kPrimitive, block.get(),
                         std::string_view(reason.data(), reason.size()));
  }
  if (block->annotations.contains(ir::kLibrary)) {
    return state.Illegal(kPrimitive, block.get(),
                         "a library computes it already");
  }
  ir::BlockNode copy(*block);
  copy.annotations.insert({ir::kLibrary, ir::Attr(std::string(kernel))});
  const ir::BlockPtr marked = ir::BlockOf(std::move(copy));
  state.Replace(block.get(), marked, {{block.get(), marked.get()}});
  return absl::OkStatus();
}

}  // namespace tilefarm::schedule
