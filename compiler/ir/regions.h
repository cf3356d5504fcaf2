// The accesses of statements.
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

// The regions that a block's init and body access, as expressions of its block
// variables and outer variables: one region per buffer, in order of first
// access; loops inside the body are widened to their bounds. Reads of the
// block's own reduction target are listed as in TVM: in an update block, but
// not in a block with init. Excludes buffers that the block itself allocates.
Accesses DetectAccesses(const BlockNode& block);

// The initialisation with every reduce variable at its minimum, where it runs.
// The block must have one.
Stmt InitAtStart(const BlockNode& block);

// `block` with detected reads and writes.
BlockPtr BlockWithAccesses(BlockNode block);

// Whether every region of `detected` is within a region of `declared`, as far
// as constants and equal expressions prove it.
bool RegionsCover(const std::vector<BufferRegion>& declared,
                  const std::vector<BufferRegion>& detected);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_REGIONS_H_
