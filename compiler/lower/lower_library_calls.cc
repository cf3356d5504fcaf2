#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/library_call.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

absl::Status Bad(const std::string& what, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " (", ir::kLibrary, "): ", why));
}

// The marked block at the bottom of a nest that contains nothing else.
const ir::BlockNode* MarkedBlock(const ir::Stmt& stmt,
                                 std::vector<const ir::ForNode*>& loops) {
  const ir::Stmt* at = &stmt;
  while (const auto* loop = ir::As<ir::ForNode>(*at)) {
    loops.push_back(loop);
    at = &loop->body;
  }
  const auto* block = ir::As<ir::BlockNode>(*at);
  return block != nullptr && block->annotations.contains(ir::kLibrary)
             ? block
             : nullptr;
}

// Replaces the nest by a call, if one of its blocks is marked.
absl::StatusOr<ir::Stmt> LowerNest(const ir::Stmt& stmt) {
  std::vector<const ir::ForNode*> loops;
  const ir::BlockNode* block = MarkedBlock(stmt, loops);
  if (block == nullptr) {
    if (ir::LibraryCallsIn(stmt).empty()) return stmt;
    return Bad("a block", "its nest below the root holds more than the block");
  }
  const std::string what = absl::StrCat("block \"", block->name, "\"");
  const std::string* name = block->annotations.at(ir::kLibrary).AsString();
  const auto kernel =
      name == nullptr ? std::nullopt : ir::FindLibraryKernel(*name);
  if (!kernel) return Bad(what, "there is no such kernel");
  const auto form = ir::MatchGemm(*block);
  const absl::Status matched =
      form.ok() ? ir::CheckLibraryNest(*block, loops) : form.status();
  if (!matched.ok()) return Bad(what, std::string(matched.message()));
  return ir::MakeGemmCall(*kernel, *form);
}

}  // namespace

absl::StatusOr<ir::Stmt> LowerLibraryCalls(const ir::Stmt& root) {
  const auto* block = ir::As<ir::BlockNode>(root);
  if (block == nullptr || ir::LibraryCallsIn(root).empty()) return root;
  const auto* seq = ir::As<ir::SeqNode>(block->body);
  std::vector<ir::Stmt> stmts =
      seq != nullptr ? seq->stmts : std::vector<ir::Stmt>{block->body};
  for (ir::Stmt& stmt : stmts) {
    TF_ASSIGN_OR_RETURN(stmt, LowerNest(stmt));
  }
  ir::BlockNode made(*block);
  made.body = ir::MakeSeq(std::move(stmts));
  return ir::BlockOf(std::move(made));
}

}  // namespace tilefarm::lower
