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

// The dependences between the child blocks of a block, by the buffers they
// read and write.
class BlockScope {
 public:
  BlockScope(const ScheduleState& state, const ir::BlockNode* scope);

  const std::vector<ir::BlockPtr>& children() const { return children_; }
  const std::vector<Dependency>& dependencies() const { return deps_; }
  // Blocks this one reads from or overwrites (RAW, WAW), and the other way
  // round, each once, in the order of the dependences.
  std::vector<ir::BlockPtr> Producers(const ir::BlockNode* block) const;
  std::vector<ir::BlockPtr> Consumers(const ir::BlockNode* block) const;
  // Children that write the buffer.
  std::vector<ir::BlockPtr> Writers(const ir::BufferNode* buffer) const;
  std::vector<ir::BlockPtr> Readers(const ir::BufferNode* buffer) const;

 private:
  std::vector<ir::BlockPtr> children_;
  std::vector<Dependency> deps_;
};

// The bindings are quasi-affine, independent and surjective on the loops
// above the block (up to its scope), given its predicate and those loops'
// ranges.
bool HasAffineBindings(const ScheduleState& state, const ir::BlockNode* block);
// FailedPrecondition with the reason.
absl::Status CheckAffineBindings(const ScheduleState& state,
                                 std::string_view primitive,
                                 const ir::BlockNode* block);

// The only writer, within its scope, of every buffer it writes.
bool IsDominant(const BlockScope& scope, const ir::BlockNode* block);
// All variables spatial, dominant, and no buffer both read and written.
bool IsComplete(const BlockScope& scope, const ir::BlockNode* block);
// Has an init, affine bindings, only spatial and reduce variables, is
// dominant, and indexes its outputs with spatial variables alone.
bool IsReduction(const ScheduleState& state, const BlockScope& scope,
                 const ir::BlockNode* block);
// FailedPrecondition that says which condition fails.
absl::Status CheckComplete(const ScheduleState& state,
                           std::string_view primitive, const BlockScope& scope,
                           const ir::BlockNode* block);
absl::Status CheckReduction(const ScheduleState& state,
                            std::string_view primitive, const BlockScope& scope,
                            const ir::BlockNode* block);
absl::Status CheckCompleteOrReduction(const ScheduleState& state,
                                      std::string_view primitive,
                                      const BlockScope& scope,
                                      const ir::BlockNode* block);

// Where the block reads a buffer that it writes, each iteration reads only what
// itself writes (an in-place update or a reduction), so that the order of
// iterations does not matter. Else FailedPrecondition.
absl::Status CheckIterationsCommute(const ScheduleState& state,
                                    std::string_view primitive,
                                    const ir::BlockNode* block);

// What the init reads, in terms of the block's variables.
std::vector<ir::BufferRegion> InitReads(const ir::BlockNode& block);

// All initialisations below `loops`, which surround the block, may run before
// its first update there: every instance runs once, starts an element of its
// own, updates nothing else, and no initialisation reads what an update writes.
// Else FailedPrecondition.
absl::Status CheckInitSeparates(const ScheduleState& state,
                                std::string_view primitive,
                                const ir::BlockPtr& block,
                                const std::vector<ir::ForPtr>& loops);

// The blocks below `stmt` (a loop or block), as one, dominate what they write
// within the scope: each is complete or a reduction, or all writers of a
// buffer lie below.
absl::Status CheckCompactDataflow(const ScheduleState& state,
                                  std::string_view primitive,
                                  const ir::StmtNode* stmt);

// Everything that `consumer` reads from producers in its scope has been
// written by them before, in the same iteration of their common loops.
// An answer is remembered in the state's facts, as that of HasAffineBindings
// is.
bool IsRegionCovered(const ScheduleState& state, const ir::BlockNode* consumer);
// All children of the scope are complete or reductions and all reads of them
// are covered: blocks may be moved across each other.
absl::Status CheckStagePipeline(const ScheduleState& state,
                                std::string_view primitive,
                                const ir::BlockNode* scope);

// Writes a parameter or a buffer allocated outside of the scope.
bool IsOutput(const ScheduleState& state, const ir::BlockNode* block);
// A block, and one of the buffers that it reads or writes. InvalidArgument
// where it has no such read or write.
struct BlockBuffer {
  ir::BlockPtr block;
  ir::Buffer buffer;
};
absl::StatusOr<BlockBuffer> GetBuffer(const ScheduleState& state,
                                      std::string_view primitive, BlockRv block,
                                      bool read, int index);
// The block around it; FailedPrecondition for the root.
absl::StatusOr<ir::BlockPtr> ScopeOf(const ScheduleState& state,
                                     std::string_view primitive,
                                     const ir::BlockPtr& block);
// A reduce iteration variable, or any binding that needs order.
bool HasReduceIter(const ir::BlockNode* block);
// The loop occurs in the binding of a variable of that type.
bool LoopFeedsIter(const ir::ForNode* loop, const ir::BlockNode* block,
                   ir::IterType type);
// Only one child statement lies on the way from `stmt` down to `descendant`:
// nothing else happens inside.
bool IsOnlyChild(const ScheduleState& state, const ir::StmtNode* stmt,
                 const ir::StmtNode* descendant);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_BLOCK_INFO_H_
