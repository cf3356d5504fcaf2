// fission: a block of independent statements becomes one block for each, below
// its own loops (loop distribution).
//
//   fission(sums)
//
//   for i, k:                              for i, k:
//     sums: init S[i] = 0; Q[i] = 0          sums_S: init S[i] = 0
//           S[i] += A[i, k]            ->            S[i] += A[i, k]
//           Q[i] += A[i, k] * A[i, k]      for i, k:
//                                            sums_Q: init Q[i] = 0
//                                                    Q[i] += A[i, k] * A[i, k]
//
// Steps:
//   1. Check that the body is several stores to different buffers, the
//      initialisation at most one store to each of them, and that no statement
//      reads what another one writes. Then no order between them matters.
//   2. Check that nothing else is below the loops, so that they can be copied.
//   3. Make a block for each statement, with the accesses that it needs, below
//      copies of the loops; the first one keeps the old variables.
//
// The results are the new blocks; variables of the old block follow the first.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/scope_edit.h"

namespace tilefarm::schedule {
namespace {

struct Part {
  ir::Buffer buffer;
  ir::Stmt init;  // may be null
  ir::Stmt body;

  bool Loads(const ir::BufferNode* of) const {
    return ir::Loads(body, of) || (init != nullptr && ir::Loads(init, of));
  }
};

// Step 1.
absl::StatusOr<std::vector<Part>> PartsOf(const ScheduleState& state,
                                          const ir::BlockNode& block) {
  const auto refuse = [&](const auto&... reason) {
    return state.Illegal(&block, reason...);
  };
  if (!block.allocs.empty()) return refuse("the block allocates buffers");
  std::vector<Part> parts;
  const auto part_of = [&](const ir::Buffer& buffer) {
    return std::ranges::find(parts, buffer, &Part::buffer);
  };
  for (const ir::Stmt& stmt : Statements(block.body)) {
    const auto* store = ir::As<ir::StoreNode>(stmt);
    if (store == nullptr || part_of(store->buffer) != parts.end()) {
      return refuse("its body is not one store for each of several buffers");
    }
    parts.push_back({store->buffer, nullptr, stmt});
  }
  if (parts.size() < 2) return refuse("its body is a single statement");
  if (block.init != nullptr) {
    for (const ir::Stmt& stmt : Statements(block.init)) {
      const auto* store = ir::As<ir::StoreNode>(stmt);
      const auto part = store == nullptr ? parts.end() : part_of(store->buffer);
      if (part == parts.end() || part->init != nullptr) {
        return refuse("its initialisation is not one store for each buffer");
      }
      part->init = stmt;
    }
  }
  for (const Part& part : parts) {
    for (const Part& other : parts) {
      if (part.buffer == other.buffer) continue;
      if (part.Loads(other.buffer.get())) {
        return refuse("the statement that writes ", part.buffer->name,
                      " reads ", other.buffer->name,
                      ", which another one writes");
      }
    }
  }
  return parts;
}

ir::BlockPtr BlockOfPart(const ir::BlockNode& block, const Part& part,
                         std::string name) {
  ir::BlockNode own = block;
  own.name = std::move(name);
  own.init = part.init;
  own.body = part.body;
  const auto other = [&](const ir::BufferRegion& region) {
    return region.buffer != part.buffer && !part.Loads(region.buffer.get());
  };
  std::erase_if(own.reads, other);
  std::erase_if(own.writes, other);
  return ir::BlockOf(std::move(own));
}

}  // namespace

absl::StatusOr<std::vector<BlockRv>> Fission(ScheduleState& state,
                                             BlockRv block_rv) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr block, state.Get(block_rv));
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr scope, ScopeOf(state, block));
  TF_ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(state, *block));
  TF_RETURN_IF_ERROR(CheckOnlyLoopsAbove(state, block.get()));
  const std::vector<ir::ForPtr> loops = state.LoopsAbove(block.get());
  const ir::StmtNode* top = block.get();
  if (!loops.empty()) top = loops[0].get();
  if (!IsOnlyChild(state, top, block.get())) {
    return state.Illegal(block.get(), "its loops have other blocks below them");
  }

  std::vector<ir::BlockPtr> blocks;
  std::vector<ir::Stmt> nests;
  for (const Part& part : parts) {
    // Statements write different buffers, so their names differ.
    const std::string name = FreshBlockName(
        scope, absl::StrCat(block->name, "_", part.buffer->name));
    ir::Stmt nest = BlockOfPart(*block, part, name);
    for (size_t i = loops.size(); i-- > 0;) {
      nest = WithBody(*loops[i], std::move(nest));
    }
    if (!nests.empty()) nest = CopyWithFreshVars(nest);
    nests.push_back(nest);
    ir::PreOrder(nest, [&](const ir::Stmt& stmt) {
      if (stmt->kind != ir::StmtKind::kBlock) return true;
      blocks.push_back(std::static_pointer_cast<const ir::BlockNode>(stmt));
      return false;
    });
  }
  ScopeEditor edit;
  const ir::Stmt parent = state.Parent(top);
  const int position = PositionOf(BodyOf(parent.get()), top);
  for (size_t k = 1; k < nests.size(); ++k) {
    edit.Insert(parent.get(), position + 1, nests[k]);
  }
  edit.Replace(top, nests[0]);
  state.Replace(scope.get(), edit.Apply(*scope),
                {{block.get(), blocks[0].get()}});
  std::vector<BlockRv> results;
  for (const ir::BlockPtr& made : blocks) {
    results.push_back(state.NewBlock(made));
  }
  return results;
}

}  // namespace tilefarm::schedule
