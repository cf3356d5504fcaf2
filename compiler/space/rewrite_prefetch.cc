#include <algorithm>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

using schedule::LoopRv;

// For shorter rows, the hardware prefetcher detects the loops over rows.
constexpr int64_t kLeastRowBytes = 256;

// Whether it reads a parameter that exceeds the L2 cache, with a last index
// that follows the reduction.
bool IsReadByRows(const ir::PrimFunc& function, const ir::BlockNode& block,
                  const ir::BufferRegion& read, const LoopView& inner,
                  const target::Target& target) {
  const ir::BufferNode& buffer = *read.buffer;
  if (!absl::c_linear_search(function.params, read.buffer) ||
      buffer.num_elements() * buffer.dtype.bytes() <= target.caches.l2_bytes ||
      read.region.empty()) {
    return false;
  }
  if (inner.extent * buffer.dtype.bytes() < kLeastRowBytes) return false;
  return std::ranges::any_of(inner.iters, [&](int i) {
    const ir::IterVar& iter = block.iters[static_cast<size_t>(i)];
    return iter.type == ir::IterType::kReduce &&
           ir::UsesVar(read.region.back().min, iter.var.get());
  });
}

bool Moves(const ir::BlockNode& block, const ir::BufferRegion& read,
           const LoopView& loop) {
  return std::ranges::any_of(loop.iters, [&](int i) {
    return RegionUses(read, block.iters[static_cast<size_t>(i)].var.get());
  });
}

absl::Status PrefetchRows(schedule::Schedule& schedule,
                          const std::string& function,
                          const ir::BlockNode& node,
                          const target::Target& target) {
  const ir::PrimFuncPtr program = schedule.module().Find(function);
  TF_ASSIGN_OR_RETURN(schedule::BlockRv block,
                      schedule.GetBlock(node.name, function));
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  size_t inner = loops.size();
  while (inner > 0 &&
         (loops[inner - 1].extent == 1 || !loops[inner - 1].reduces)) {
    --inner;
  }
  if (inner == 0) return absl::OkStatus();
  --inner;
  for (const ir::BufferRegion& read : node.reads) {
    if (!IsReadByRows(*program, node, read, loops[inner], target)) continue;
    for (size_t l = inner; l-- > 0;) {
      if (loops[l].extent == 1 || loops[l].reduces ||
          !Moves(node, read, loops[l])) {
        continue;
      }
      // The next iteration of other threads is not known.
      if (loops[l].kind != ir::ForKind::kSerial) break;
      return schedule.Annotate(loops.rvs[l], ir::kPrefetchNext, ir::Attr(1));
    }
  }
  return absl::OkStatus();
}

}  // namespace

// Prefetches the rows of a large operand that is not packed, one tile ahead:
// annotates the loop that moves from tile to tile, outside of the innermost
// reduction, to fetch what its next iteration reads.
absl::Status RewritePrefetch(schedule::Schedule& schedule,
                             const std::string& function,
                             const target::Target& target) {
  for (const ir::BlockPtr& node :
       AllBlocks(*schedule.module().Find(function))) {
    if (!node->annotations.contains(kTilingStructure) ||
        node->annotations.contains(kAutoTensorize)) {
      continue;
    }
    TF_RETURN_IF_ERROR(PrefetchRows(schedule, function, *node, target));
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
