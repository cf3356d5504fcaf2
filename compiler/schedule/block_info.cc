#include "compiler/schedule/block_info.h"

#include <algorithm>
#include <unordered_set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/arith/int_set.h"
#include "compiler/arith/iter_map.h"
#include "compiler/ir/regions.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/region_analysis.h"

namespace tilefarm::schedule {
namespace {

using ir::BlockNode;
using ir::BlockPtr;
using ir::BufferNode;
using ir::BufferRegion;
using ir::IterType;
using ir::IterVar;

bool Touches(const std::vector<BufferRegion>& regions,
             const BufferNode* buffer) {
  return std::ranges::any_of(regions, [&](const BufferRegion& region) {
    return region.buffer.get() == buffer;
  });
}

// Why the block is not complete; empty if it is.
std::string WhyNotComplete(const BlockScope& scope, const BlockNode* block) {
  for (const IterVar& iter : block->iters) {
    if (iter.type != IterType::kSpatial) {
      return absl::StrCat("not a complete block: variable ", iter.var->name,
                          " is not data parallel");
    }
  }
  if (!IsDominant(scope, block)) {
    return "not a complete block: another block writes its output too";
  }
  for (const BufferRegion& write : block->writes) {
    if (Touches(block->reads, write.buffer.get())) {
      return absl::StrCat("not a complete block: it reads and writes ",
                          write.buffer->name);
    }
  }
  return "";
}

// Whether a store of the body indexes with a reduce variable.
bool ReduceVarsIndexOutput(const BlockNode* block) {
  std::unordered_set<const ir::VarNode*> reduce;
  for (const IterVar& iter : block->iters) {
    if (iter.type == IterType::kReduce) reduce.insert(iter.var.get());
  }
  bool found = false;
  ir::PreOrder(block->body, [&](const ir::Stmt& stmt) {
    const auto* store = ir::As<ir::StoreNode>(stmt);
    if (store == nullptr || !Touches(block->writes, store->buffer.get())) {
      return true;
    }
    for (const ir::Expr& index : store->indices) {
      ir::PostOrderExprs(index, [&](const ir::Expr& e) {
        const auto* var = ir::As<ir::VarNode>(e);
        found |= var != nullptr && reduce.count(var) != 0;
      });
    }
    return true;
  });
  return found;
}

bool SameRegion(const BufferRegion& a, const BufferRegion& b) {
  bool same = true;
  for (size_t i = 0; i < a.region.size(); ++i) {
    same = same && arith::ExprEqual(a.region[i].min, b.region[i].min) &&
           arith::ExprEqual(a.region[i].extent, b.region[i].extent);
  }
  return same;
}

// A buffer that the body of a block with init both writes and reads, where the
// elements read are not exactly those written; null if there is none.
const ir::BufferNode* ReadsOtherElements(const BlockNode* block) {
  BlockNode update = *block;
  update.init = nullptr;
  const ir::Accesses accesses = ir::DetectAccesses(update);
  for (const BufferRegion& read : accesses.reads) {
    const BufferRegion* write = FindRegion(accesses.writes, read.buffer.get());
    if (write == nullptr
            ? FindRegion(block->writes, read.buffer.get()) != nullptr
            : !SameRegion(read, *write)) {
      return read.buffer.get();
    }
  }
  return nullptr;
}

// Whether the init surely writes every element that the body updates.
bool InitialisesAll(const ScheduleState& state, const BlockNode* block) {
  BlockNode update = *block;
  update.init = nullptr;
  BlockNode init = update;
  init.body = ir::InitAtStart(*block);
  for (const BufferRegion& write : ir::DetectAccesses(update).writes) {
    if (!WritesAll(state, init, write)) return false;
  }
  return true;
}

// Whether the first iteration of the loops has every reduction variable at its
// start, where the init runs. The bindings must be affine.
bool InitRuns(const ScheduleState& state, const BlockNode* block) {
  ir::VarMap first;
  for (const ir::ForPtr& loop : state.LoopsAbove(block)) {
    first[loop->var.get()] = loop->min;
  }
  return std::ranges::all_of(block->iters, [&](const IterVar& iter) {
    if (iter.type != IterType::kReduce) return true;
    const ir::Expr begin = ir::Substitute(iter.binding, first);
    const auto known = ir::AsInt(begin), start = ir::AsInt(iter.dom.min);
    if (known.has_value() && start.has_value()) return *known == *start;
    return arith::Analyzer().ProveEqual(begin, iter.dom.min);
  });
}

// Why init and updates are not those of a reduction, regardless of the rest of
// the scope; empty if they are.
std::string WhyInitIsNotApart(const ScheduleState& state,
                              const BlockNode* block) {
  if (const ir::BufferNode* buffer = ReadsOtherElements(block)) {
    return absl::StrCat("not a reduction block: it reads elements of ",
                        buffer->name, " that other iterations write");
  }
  for (const BufferRegion& read : InitReads(*block)) {
    if (Touches(block->writes, read.buffer.get())) {
      return absl::StrCat("not a reduction block: its init reads ",
                          read.buffer->name, ", which it writes");
    }
  }
  if (!InitialisesAll(state, block)) {
    return "not a reduction block: its init leaves out elements that it "
           "updates";
  }
  if (ReduceVarsIndexOutput(block)) {
    return "not a reduction block: a reduction variable indexes its output";
  }
  return "";
}

std::string WhyNotReduction(const ScheduleState& state, const BlockScope& scope,
                            const BlockNode* block) {
  if (block->init == nullptr) return "not a reduction block: it has no init";
  if (!HasAffineBindings(state, block)) {
    return "not a reduction block: its bindings are not affine";
  }
  for (const IterVar& iter : block->iters) {
    if (iter.type == IterType::kOpaque) {
      return absl::StrCat("not a reduction block: variable ", iter.var->name,
                          " is neither data parallel nor a reduction");
    }
  }
  if (!IsDominant(scope, block)) {
    return "not a reduction block: another block writes its output too";
  }
  if (!InitRuns(state, block)) {
    return "not a reduction block: its init may never run, since a reduction "
           "variable does not begin where its range does";
  }
  const bool apart = state.facts().init_apart.Ask(
      {{state.Ref(block), {}}},
      [&](const auto&) { return WhyInitIsNotApart(state, block).empty(); });
  return apart ? "" : WhyInitIsNotApart(state, block);
}

absl::Status Require(const ScheduleState& state, const BlockNode* block,
                     const std::string& failure) {
  if (failure.empty()) return absl::OkStatus();
  return state.Illegal(block, failure);
}

void PushOnce(std::vector<BlockPtr>& blocks, const BlockPtr& block) {
  if (!absl::c_linear_search(blocks, block)) blocks.push_back(block);
}

}  // namespace

// --- Dependences ---------------------------------------------------------

BlockScope::BlockScope(const ScheduleState& state, const BlockNode* scope)
    : children_(state.ChildBlocks(scope)) {
  for (size_t i = 0; i < children_.size(); ++i) {
    const BlockPtr& child = children_[i];
    const auto from_earlier = [&](const std::vector<BufferRegion>& now,
                                  bool earlier_writes, DepKind kind) {
      for (const BufferRegion& region : now) {
        for (size_t j = 0; j < i; ++j) {
          const BlockPtr& earlier = children_[j];
          if (Touches(earlier_writes ? earlier->writes : earlier->reads,
                      region.buffer.get())) {
            deps_.push_back({earlier, child, kind});
          }
        }
      }
    };
    from_earlier(child->reads, true, DepKind::kRaw);
    from_earlier(child->writes, true, DepKind::kWaw);
    from_earlier(child->writes, false, DepKind::kWar);
  }
}

std::vector<BlockPtr> BlockScope::Producers(const BlockNode* block) const {
  std::vector<BlockPtr> out;
  for (const auto& [src, dst, kind] : deps_) {
    if (dst.get() == block && kind != DepKind::kWar) PushOnce(out, src);
  }
  return out;
}

std::vector<BlockPtr> BlockScope::Consumers(const BlockNode* block) const {
  std::vector<BlockPtr> out;
  for (const auto& [src, dst, kind] : deps_) {
    if (src.get() == block && kind != DepKind::kWar) PushOnce(out, dst);
  }
  return out;
}

std::vector<BlockPtr> BlockScope::Writers(const BufferNode* buffer) const {
  std::vector<BlockPtr> out;
  for (const BlockPtr& child : children_) {
    if (Touches(child->writes, buffer)) out.push_back(child);
  }
  return out;
}

std::vector<BlockPtr> BlockScope::Readers(const BufferNode* buffer) const {
  std::vector<BlockPtr> out;
  for (const BlockPtr& child : children_) {
    if (Touches(child->reads, buffer)) out.push_back(child);
  }
  return out;
}

// --- Bindings ------------------------------------------------------------

absl::Status CheckAffineBindings(const ScheduleState& state,
                                 const BlockNode* block) {
  const std::vector<ir::ForPtr> loops = state.LoopsAbove(block);
  arith::Analyzer analyzer;
  const auto map = arith::DetectIterMap(
      BindingList(*block), RangesOf(loops), block->predicate,
      arith::IterMapLevel::kSurjective, analyzer);
  if (!map.ok()) {
    return state.Illegal(block, "its bindings are not affine: ",
                         std::string(map.status().message()));
  }
  for (const arith::IterSum& sum : *map) {
    if (!sum.splits.empty() && sum.splits[0].scale != 1) {
      return state.Illegal(block,
                           "its bindings are not affine: a variable leaves "
                           "gaps");
    }
  }
  return absl::OkStatus();
}

bool HasAffineBindings(const ScheduleState& state, const BlockNode* block) {
  return state.facts().affine.Ask(
      {{state.Ref(block), state.LoopsAbove(block)}},
      [&](const auto&) { return CheckAffineBindings(state, block).ok(); });
}

// --- Kinds of blocks -----------------------------------------------------

bool IsDominant(const BlockScope& scope, const BlockNode* block) {
  for (const BufferRegion& write : block->writes) {
    for (const BlockPtr& writer : scope.Writers(write.buffer.get())) {
      if (writer.get() != block) return false;
    }
  }
  return true;
}

bool IsComplete(const BlockScope& scope, const BlockNode* block) {
  return WhyNotComplete(scope, block).empty();
}

bool IsReduction(const ScheduleState& state, const BlockScope& scope,
                 const BlockNode* block) {
  return WhyNotReduction(state, scope, block).empty();
}

absl::Status CheckComplete(const ScheduleState& state, const BlockScope& scope,
                           const BlockNode* block) {
  return Require(state, block, WhyNotComplete(scope, block));
}

absl::Status CheckReduction(const ScheduleState& state, const BlockScope& scope,
                            const BlockNode* block) {
  return Require(state, block, WhyNotReduction(state, scope, block));
}

absl::Status CheckCompleteOrReduction(const ScheduleState& state,
                                      const BlockScope& scope,
                                      const BlockNode* block) {
  const std::string complete = WhyNotComplete(scope, block);
  if (complete.empty()) return absl::OkStatus();
  const std::string reduction = WhyNotReduction(state, scope, block);
  if (reduction.empty()) return absl::OkStatus();
  return state.Illegal(block, complete, "; ", reduction);
}

absl::Status CheckIterationsCommute(const ScheduleState& state,
                                    const BlockNode* block) {
  std::vector<BufferRegion> reads = block->reads;
  if (block->init != nullptr) {
    // `reads` of a block with init omits reads of its own results.
    if (const ir::BufferNode* buffer = ReadsOtherElements(block)) {
      return state.Illegal(block, "it reads elements of ", buffer->name,
                           " that other iterations write");
    }
    for (BufferRegion& read : InitReads(*block)) reads.push_back(read);
  }
  for (const BufferRegion& write : block->writes) {
    for (const BufferRegion& read : reads) {
      if (read.buffer != write.buffer) continue;
      if (!SameRegion(read, write)) {
        return state.Illegal(block, "it reads elements of ", read.buffer->name,
                             " that other iterations write");
      }
    }
  }
  return absl::OkStatus();
}

std::vector<BufferRegion> InitReads(const BlockNode& block) {
  BlockNode init = block;
  init.body = ir::InitAtStart(block);
  init.init = nullptr;
  return ir::DetectAccesses(init).reads;
}

absl::Status CheckInitSeparates(const ScheduleState& state,
                                const BlockPtr& block,
                                const std::vector<ir::ForPtr>& loops) {
  TF_RETURN_IF_ERROR(
      Require(state, block.get(), WhyInitIsNotApart(state, block.get())));
  if (RunsAtMostOnce(state, *block, loops) && WritesAreDistinct(*block)) {
    return absl::OkStatus();
  }
  return state.Illegal(block.get(),
                       "the reduction into an element runs more than once in "
                       "the loop");
}

absl::Status CheckCompactDataflow(const ScheduleState& state,
                                  const ir::StmtNode* stmt) {
  const BlockPtr scope_block = state.Scope(stmt);
  if (scope_block == nullptr) return absl::OkStatus();
  const BlockScope scope(state, scope_block.get());
  const std::vector<BlockPtr> blocks = state.ChildBlocks(stmt);
  const auto below = [&](const BlockPtr& block) {
    return absl::c_linear_search(blocks, block);
  };
  for (const BlockPtr& block : blocks) {
    if (IsComplete(scope, block.get()) ||
        IsReduction(state, scope, block.get())) {
      continue;
    }
    // Several blocks may together be the only writers: an init and its update.
    for (const BufferRegion& write : block->writes) {
      for (const BlockPtr& writer : scope.Writers(write.buffer.get())) {
        if (!below(writer)) {
          return CheckCompleteOrReduction(state, scope, block.get());
        }
      }
    }
    for (const IterVar& iter : block->iters) {
      if (iter.type == IterType::kOpaque) {
        return CheckCompleteOrReduction(state, scope, block.get());
      }
    }
  }
  return absl::OkStatus();
}

// --- Buffers and loops ---------------------------------------------------

bool IsOutput(const ScheduleState& state, const BlockNode* block) {
  const BlockPtr scope = state.Scope(block);
  if (scope == nullptr) return true;
  return std::ranges::any_of(block->writes, [&](const BufferRegion& write) {
    return !absl::c_linear_search(scope->allocs, write.buffer);
  });
}

absl::StatusOr<BlockBuffer> GetBuffer(const ScheduleState& state, BlockRv rv,
                                      bool read, int index) {
  TF_ASSIGN_OR_RETURN(const BlockPtr block, state.Get(rv));
  const auto& regions = read ? block->reads : block->writes;
  if (index < 0 || index >= static_cast<int>(regions.size())) {
    return state.Invalid(block.get(), "there is no ", read ? "read" : "write",
                         " buffer ", index, ", the block has ", regions.size());
  }
  return BlockBuffer{block, regions[index].buffer};
}

absl::StatusOr<BlockPtr> ScopeOf(const ScheduleState& state,
                                 const BlockPtr& block) {
  BlockPtr scope = state.Scope(block.get());
  if (scope != nullptr) return scope;
  return state.Illegal(block.get(), "the root block has no scope");
}

bool HasReduceIter(const BlockNode* block) {
  return std::ranges::any_of(block->iters, [](const IterVar& iter) {
    return iter.type != IterType::kSpatial;
  });
}

bool LoopFeedsIter(const ir::ForNode* loop, const BlockNode* block,
                   IterType type) {
  return std::ranges::any_of(block->iters, [&](const IterVar& iter) {
    return iter.type == type && ir::UsesVar(iter.binding, loop->var.get());
  });
}

bool IsOnlyChild(const ScheduleState& state, const ir::StmtNode* stmt,
                 const ir::StmtNode* descendant) {
  for (ir::Stmt node = state.Parent(descendant); node != nullptr;
       node = state.Parent(node.get())) {
    const auto* loop = ir::As<ir::ForNode>(node);
    const ir::Stmt& body = loop != nullptr
                               ? loop->body
                               : static_cast<const BlockNode&>(*node).body;
    if (body.get() != descendant) return false;
    if (node.get() == stmt) return true;
    descendant = node.get();
  }
  return stmt == descendant;
}

}  // namespace tilefarm::schedule
