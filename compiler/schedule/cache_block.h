// Builds and places blocks that copy a buffer into another one; shared by
// cache_read, cache_write and reindex.
#ifndef TILEFARM_COMPILER_SCHEDULE_CACHE_BLOCK_H_
#define TILEFARM_COMPILER_SCHEDULE_CACHE_BLOCK_H_

#include <string>
#include <vector>

#include "compiler/arith/int_set.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/own_loops.h"
#include "compiler/schedule/schedule_state.h"

namespace tilefarm::schedule {

// for ax0, ax1, ...: to[v0, v1, ...] = from[v0, v1, ...] over the region,
// guarded if the region may exceed `whole`, the elements that may be copied.
// Beyond the dimensions of `from`, the elements are 0.
BlockNest MakeCopy(const std::string& name, const ir::Buffer& from,
                   const ir::Buffer& to, const arith::Region& region,
                   const arith::Region& whole, arith::Analyzer analyzer);

// Where to put a copy of what `writer` writes: in `parent` (a loop or the scope
// block), before statement `position` of its body. This is right after the
// writer, in the innermost body that also contains one of `readers`, or at the
// end of the scope if there are no readers.
struct CopyPlace {
  ir::Stmt parent;
  int position;
  // The loops at or above the place, and those between it and the writer.
  std::vector<ir::ForPtr> outer, inner;
};
CopyPlace PlaceAfter(const ScheduleState& state, const ir::BlockPtr& scope,
                     const ir::BlockPtr& writer,
                     const std::vector<ir::BlockPtr>& readers);

// The other blocks that read what `writer` writes to the buffer: blocks after
// it, and blocks that share a loop with it and read in a later iteration.
std::vector<ir::BlockPtr> ReadersOfResult(const ScheduleState& state,
                                          const BlockScope& deps,
                                          const ir::BlockPtr& writer,
                                          const ir::BufferNode* buffer);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_CACHE_BLOCK_H_
