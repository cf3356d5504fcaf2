// Sums whose parts the blocks of a cluster compute, added up in the same
// kernel: what split_reduction_over_blocks.cc otherwise leaves to a second one.
//
//   for blockIdx.x:
//     for clusterCtaIdx.x = k_0: ...       (the nest of C_rf[k_0, ..], tiled)
//     for clusterCtaIdx.x, threadIdx:      (all threads of the cluster)
//       for k_0: C_local += C_rf[k_0, ..]  (of all blocks' shared memory)
//       D = C_local                        (or the elementwise consumer)
#ifndef TILEFARM_COMPILER_SPACE_GPU_CLUSTER_SUMS_H_
#define TILEFARM_COMPILER_SPACE_GPU_CLUSTER_SUMS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"

namespace tilefarm::space {

// On a product whose sums the blocks of clusters compute in parts, until it is
// tiled: how many, and 1 if all terms are divided as one (SplitInParts).
inline constexpr char kClusterSplit[] = "tilefarm.cluster_split";
// On the block that computes these parts, whose first variable is the part.
inline constexpr char kClusterParts[] = "tilefarm.cluster_parts";
// On the block that writes what is added up, until RewriteClusterSums.
inline constexpr char kClusterSum[] = "tilefarm.cluster_sum";

inline bool SumsInCluster(const ir::BlockNode& block) {
  return block.annotations.contains(kClusterParts);
}
// Whether a rule has yet to do that.
inline bool AwaitsCluster(const ir::BlockNode& block) {
  return SumsInCluster(block) || block.annotations.contains(kClusterSplit);
}

// The block of the parts, if the block has kClusterSplit; else nullopt.
absl::StatusOr<std::optional<schedule::BlockRv>> SplitForCluster(
    schedule::Schedule& schedule, schedule::BlockRv block);

// Binds the outer loops, which are around all others, to blocks. Of a block
// that sums in a cluster, the first of them is the part. The loop over blocks.
absl::StatusOr<schedule::LoopRv> BindToBlocks(
    schedule::Schedule& schedule, schedule::BlockRv block,
    const std::vector<schedule::LoopRv>& outer);

// Adds up what `writer` writes, the parts of `block` below the loop over
// blocks, in the cluster. `result`: the block that writes the sums; nullopt: an
// elementwise consumer, or a copy.
absl::Status SumInCluster(schedule::Schedule& schedule, schedule::BlockRv block,
                          schedule::BlockRv writer, schedule::LoopRv blocks,
                          std::optional<schedule::BlockRv> result);

// Postproc: when the number of threads is known.
absl::Status RewriteClusterSums(schedule::Schedule& schedule,
                                const std::string& function);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_GPU_CLUSTER_SUMS_H_
