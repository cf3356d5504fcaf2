// What statements read and write.
#ifndef TILEFARM_COMPILER_IR_REGIONS_H_
#define TILEFARM_COMPILER_IR_REGIONS_H_

#include <utility>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

struct Accesses {
  std::vector<BufferRegion> reads;
  std::vector<BufferRegion> writes;
};

// The regions a block's init and body touch, in terms of its block variables
// and outer variables, one region a buffer in order of first access; loops
// inside the body are widened to their bounds. Reads of the block's own
// reduction target are listed as TVM lists them: not in a block with init,
// listed in an update block. Buffers that the block itself allocates do not
// count.
Accesses DetectAccesses(const BlockNode& block);

// The initialisation as it runs: where every reduce variable is at its minimum.
// The block must have one.
Stmt InitAtStart(const BlockNode& block);

// `block` with its reads and writes as detected.
BlockPtr BlockWithAccesses(BlockNode block);

// Every region of `detected` lies within a region of `declared`, as far as
// constants and equal expressions show it.
bool RegionsCover(const std::vector<BufferRegion>& declared,
                  const std::vector<BufferRegion>& detected);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_REGIONS_H_
