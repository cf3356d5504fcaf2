// What legality checks ask about blocks: dependences, affine bindings,
// complete and reduction blocks, region cover. Computed from the module when
// asked; nothing is cached.
#ifndef TILEFARM_COMPILER_SCHEDULE_BLOCK_INFO_H_
#define TILEFARM_COMPILER_SCHEDULE_BLOCK_INFO_H_

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

enum class DepKind : uint8_t { kRaw, kWaw, kWar };

struct Dependency {
  ir::BlockPtr src;  // comes first in program order
  ir::BlockPtr dst;
  DepKind kind;
};

// The dependences between the child blocks of a block, through the buffers that
// they read and write.
class BlockScope {
 public:
  BlockScope(const ScheduleState& state, const ir::BlockNode* scope);

  const std::vector<ir::BlockPtr>& children() const { return children_; }
  const std::vector<Dependency>& dependencies() const { return deps_; }
  // The blocks that this one reads from or overwrites (RAW, WAW), and the
  // reverse; each once, in the order of the dependences.
  std::vector<ir::BlockPtr> Producers(const ir::BlockNode* block) const;
  std::vector<ir::BlockPtr> Consumers(const ir::BlockNode* block) const;
  // The child blocks that write the buffer.
  std::vector<ir::BlockPtr> Writers(const ir::BufferNode* buffer) const;
  std::vector<ir::BlockPtr> Readers(const ir::BufferNode* buffer) const;

 private:
  std::vector<ir::BlockPtr> children_;
  std::vector<Dependency> deps_;
};

// Whether the bindings are quasi-affine, independent and surjective over the
// loops between the block and its scope, given its predicate and the ranges of
// these loops.
bool HasAffineBindings(const ScheduleState& state, const ir::BlockNode* block);
// FailedPrecondition with the reason.
absl::Status CheckAffineBindings(const ScheduleState& state,
                                 const ir::BlockNode* block);

// The block is the only writer in its scope of every buffer it writes.
bool IsDominant(const BlockScope& scope, const ir::BlockNode* block);
// All variables are spatial, the block is dominant and does not read its
// outputs.
bool IsComplete(const BlockScope& scope, const ir::BlockNode* block);
// The block has an init, affine bindings and only spatial and reduce variables,
// is dominant, and indexes its outputs with spatial variables alone.
bool IsReduction(const ScheduleState& state, const BlockScope& scope,
                 const ir::BlockNode* block);
// FailedPrecondition that names the violated condition.
absl::Status CheckComplete(const ScheduleState& state, const BlockScope& scope,
                           const ir::BlockNode* block);
absl::Status CheckReduction(const ScheduleState& state, const BlockScope& scope,
                            const ir::BlockNode* block);
absl::Status CheckCompleteOrReduction(const ScheduleState& state,
                                      const BlockScope& scope,
                                      const ir::BlockNode* block);

// If the block reads a buffer that it writes, each iteration reads only the
// elements that it writes itself (an in-place update or a reduction), so that
// the order of iterations does not matter. Otherwise FailedPrecondition.
absl::Status CheckIterationsCommute(const ScheduleState& state,
                                    const ir::BlockNode* block);

// What the init reads, as regions over the block's variables.
std::vector<ir::BufferRegion> InitReads(const ir::BlockNode& block);

// All initialisations below `loops`, which surround the block, may run before
// its first update there: every instance runs once, initialises its own
// element, updates nothing else, and no initialisation reads what an update
// writes. Otherwise FailedPrecondition.
absl::Status CheckInitSeparates(const ScheduleState& state,
                                const ir::BlockPtr& block,
                                const std::vector<ir::ForPtr>& loops);

// The blocks below `stmt` (a loop or block), taken as one, are the only writers
// in the scope of what they write: each is complete or a reduction, or all
// writers of a buffer lie below `stmt`.
absl::Status CheckCompactDataflow(const ScheduleState& state,
                                  const ir::StmtNode* stmt);

// Everything that `consumer` reads from producers in its scope was written
// before by them, in the same iteration of their common loops. The state's
// facts cache the answer, as they do for HasAffineBindings. `only`: what it
// reads of this buffer.
bool IsRegionCovered(const ScheduleState& state, const ir::BlockNode* consumer,
                     const ir::BufferNode* only = nullptr);
// All children of the scope are complete or reductions, and all their reads are
// covered, so blocks may be moved across each other.
absl::Status CheckStagePipeline(const ScheduleState& state,
                                const ir::BlockNode* scope);

// Whether it writes a parameter or a buffer allocated outside of the scope.
bool IsOutput(const ScheduleState& state, const ir::BlockNode* block);
// A block and one of the buffers that it reads or writes. InvalidArgument if
// the block has no such read or write.
struct BlockBuffer {
  ir::BlockPtr block;
  ir::Buffer buffer;
};
absl::StatusOr<BlockBuffer> GetBuffer(const ScheduleState& state, BlockRv block,
                                      bool read, int index);
// The block around it; FailedPrecondition for the root.
absl::StatusOr<ir::BlockPtr> ScopeOf(const ScheduleState& state,
                                     const ir::BlockPtr& block);
// Whether it has a reduce variable, or an opaque one.
bool HasReduceIter(const ir::BlockNode* block);
// Whether the loop occurs in the binding of a variable of this type.
bool LoopFeedsIter(const ir::ForNode* loop, const ir::BlockNode* block,
                   ir::IterType type);
// Whether each statement on the path from `stmt` down to `descendant` is the
// only child of its parent.
bool IsOnlyChild(const ScheduleState& state, const ir::StmtNode* stmt,
                 const ir::StmtNode* descendant);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_BLOCK_INFO_H_
