// Making and placing blocks that copy a buffer into another one: what
// cache_read, cache_write and reindex share.
#ifndef TILEFARM_COMPILER_SCHEDULE_CACHE_BLOCK_H_
#define TILEFARM_COMPILER_SCHEDULE_CACHE_BLOCK_H_

#include <string>
#include <vector>

#include "compiler/arith/int_set.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

// A nest of loops that runs one block.
struct CopyNest {
  ir::Stmt nest;
  ir::BlockPtr block;
};

// for ax0, ax1, ...: to[v0, v1, ...] = from[v0, v1, ...] over the region,
// guarded where it may leave `whole`, the elements that may be copied.
CopyNest MakeCopy(const std::string& name, const ir::Buffer& from,
                  const ir::Buffer& to, const arith::Region& region,
                  const arith::Region& whole, arith::Analyzer analyzer);

// Where a copy of what `writer` writes goes: in `parent` (a loop or the scope
// block), before statement `position` of its body. That is right after the
// writer, in the innermost body that also has one of `readers`; at the end of
// the scope where there are none.
struct CopyPlace {
  ir::Stmt parent;
  int position;
  // The loops at or above the place, and those from there to the writer.
  std::vector<ir::ForPtr> outer, inner;
};
CopyPlace PlaceAfter(const ScheduleState& state, const ir::BlockPtr& scope,
                     const ir::BlockPtr& writer,
                     const std::vector<ir::BlockPtr>& readers);

// The other blocks that read what `writer` writes to the buffer: those behind
// it, and, in a later iteration, those that share a loop with it.
std::vector<ir::BlockPtr> ReadersOfResult(const ScheduleState& state,
                                          const BlockScope& deps,
                                          const ir::BlockPtr& writer,
                                          const ir::BufferNode* buffer);

// The block with accesses to `old_buffer` redirected to `new_buffer` at the
// same indices, regions included.
ir::Stmt RedirectBuffer(const ir::Stmt& stmt, const ir::Buffer& old_buffer,
                        const ir::Buffer& new_buffer);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_CACHE_BLOCK_H_
