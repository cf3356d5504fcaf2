// Queries of the rules about a block.
#ifndef TILEFARM_COMPILER_SPACE_BLOCK_ANALYSIS_H_
#define TILEFARM_COMPILER_SPACE_BLOCK_ANALYSIS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilefarm::space {

// Whether every variable is bound to its own loop, as in a new program.
bool HasTrivialBindings(const ir::BlockNode& block);
// Whether it has an init and at least one reduce variable.
bool IsReduction(const ir::BlockNode& block);
// Whether the block is one store without init, has only spatial variables, and
// its indices are these variables in any order: one element per iteration.
bool IsElementwise(const ir::BlockNode& block);
// The same, but an index may also be two variables as digits: a * 8 + b, where
// b runs from 0 to 7.
bool IsElementwiseByDigits(const ir::BlockNode& block);
// Whether all indices of its only store are plain variables or 0, in any order.
bool WritesAtVariables(const ir::BlockNode& block);
bool UsesIfThenElse(const ir::BlockNode& block);
// Whether it calls exp, tanh, erf, pow or similar: too costly to recompute.
bool UsesCostlyIntrinsic(const ir::BlockNode& block);
// Whether it is a reduction in which some read does not depend on some spatial
// variable, so that tiles reuse data: matmul and convolutions, not plain sums.
bool HasDataReuse(const ir::BlockNode& block);
// The extent of a block variable's domain, which is a constant in programs.
int64_t IterExtent(const ir::IterVar& iter);
// Product of the extents of the variables of one type.
int64_t ProductOf(const ir::BlockNode& block, ir::IterType type);
// The read (index into `block.reads`) worth packing: its indices use the last
// spatial variable and a reduce variable, but not every other spatial variable,
// so that a packed panel is reused. -1: there is none.
int OperandToPack(const ir::BlockNode& block);
// How often the block uses each element of a read (index into `block.reads`):
// iterations of the variables that do not index it.
int64_t UsesOfRead(const ir::BlockNode& block, int read);
// The reads that may be laid out ahead of time: those of layout-free parameters
// in a reduction.
std::vector<int> OperandsToPrepack(const ir::PrimFunc& function,
                                   const ir::BlockNode& block);
// Names of the blocks that write outputs of more than `bytes` bytes each, which
// no block reads, with little work per element: candidates for streaming stores
// that bypass the caches.
std::vector<std::string> StreamedBlocks(const ir::PrimFunc& function,
                                        int64_t bytes);
// Whether a rule chose its tiles, or it packs panels for a tiled block.
bool IsTiled(const ir::BlockNode& block);
// Whether it shares its outermost loop with a tiled block: a rule placed it.
bool InTiledNest(const ir::PrimFunc& function, const ir::BlockNode& block);
// The variable (index into `block.iters`) that is the expression; nullopt: it
// is another one.
std::optional<size_t> VariableOf(const ir::BlockNode& block,
                                 const ir::Expr& expr);
// The read (index into `block.reads`) that the load is of; -1: none.
int ReadOf(const ir::BlockNode& block, const ir::LoadNode& load);
// Whether block variable `var` occurs in the region.
bool RegionUses(const ir::BufferRegion& region, const ir::VarNode* var);

// Names of the blocks directly below the root, and of all blocks except the
// root: in the order of rules, consumers before their producers.
std::vector<std::string> TopBlockNames(const ir::PrimFunc& function);
std::vector<std::string> AllBlockNames(const ir::PrimFunc& function);
// Every block except the root, including nested ones.
std::vector<ir::BlockPtr> AllBlocks(const ir::PrimFunc& function);
bool IsOutput(const ir::PrimFunc& function, const ir::BufferNode* buffer);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_BLOCK_ANALYSIS_H_
