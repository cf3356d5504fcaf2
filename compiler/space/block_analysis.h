// What the rules ask about a block.
#ifndef TILEFARM_COMPILER_SPACE_BLOCK_ANALYSIS_H_
#define TILEFARM_COMPILER_SPACE_BLOCK_ANALYSIS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilefarm::space {

// Every variable bound to one loop of its own, as in a fresh program.
bool HasTrivialBindings(const ir::BlockNode& block);
// Has init and at least one reduce variable.
bool IsReduction(const ir::BlockNode& block);
// One store, no init, spatial variables only, writes its buffer at exactly its
// variables (a permutation counts): one element an iteration.
bool IsElementwise(const ir::BlockNode& block);
// Its one store is at plain variables (or 0), whatever their order.
bool WritesAtVariables(const ir::BlockNode& block);
bool UsesIfThenElse(const ir::BlockNode& block);
// Calls exp, tanh, erf, pow and their like: too dear to be computed twice.
bool UsesCostlyIntrinsic(const ir::BlockNode& block);
// A reduction in which some read does not depend on some spatial variable, so
// that tiles reuse data: matmul, convolutions, not plain sums.
bool HasDataReuse(const ir::BlockNode& block);
// Domain of a block variable; its extents are constants in programs.
int64_t IterExtent(const ir::IterVar& iter);
// Product of the extents of the variables of one type.
int64_t ProductOf(const ir::BlockNode& block, ir::IterType type);
// The read (index into `block.reads`) worth packing: it is indexed by the last
// spatial variable and a reduce variable, but not by every other spatial
// variable, so that a packed panel is used again. -1: none.
int OperandToPack(const ir::BlockNode& block);
// How often the block multiplies each number of a read (index into
// `block.reads`): iterations of the variables that do not index it.
int64_t UsesOfRead(const ir::BlockNode& block, int read);
// The reads that may be laid out ahead of time: of layout-free parameters, and
// reduced over.
std::vector<int> OperandsToPrepack(const ir::PrimFunc& function,
                                   const ir::BlockNode& block);
// Names of the blocks that write outputs of more than `bytes` bytes each which
// nothing reads, with little work for each element: what may go around the
// caches.
std::vector<std::string> StreamedBlocks(const ir::PrimFunc& function,
                                        int64_t bytes);
// A rule chose its tiles, or it packs panels for such a block.
bool IsTiled(const ir::BlockNode& block);
// Shares its outermost loop with a tiled block, whose rule chose its place.
bool InTiledNest(const ir::PrimFunc& function, const ir::BlockNode& block);
// Whether block variable `var` occurs in the region.
bool RegionUses(const ir::BufferRegion& region, const ir::VarNode* var);

// Names of the blocks directly below the root, in program order.
std::vector<std::string> TopBlockNames(const ir::PrimFunc& function);
// Every block but the root, nested ones too.
std::vector<ir::BlockPtr> AllBlocks(const ir::PrimFunc& function);
bool IsOutput(const ir::PrimFunc& function, const ir::BufferNode* buffer);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_BLOCK_ANALYSIS_H_
