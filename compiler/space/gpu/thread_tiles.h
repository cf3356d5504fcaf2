// The tiles of tile_for_threads: how they are drawn, and what of a GPU they
// need. Of each spatial loop:
//
//   factors   blocks, virtual threads, warps, lanes, registers
//   warps and lanes together are the threads of a block; the tile of a thread,
//   its elements for each virtual thread, is in its registers
//
// Of each reduce loop: fetches, and two loops over what one fetch brings.
#ifndef TILEFARM_COMPILER_SPACE_GPU_THREAD_TILES_H_
#define TILEFARM_COMPILER_SPACE_GPU_THREAD_TILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/rng.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/gpu.h"

namespace tilefarm::space {

// One list of factors for each variable of the block.
using TileFactors = std::vector<std::vector<int64_t>>;

// A value type, made from the block before it is tiled.
class ThreadTiles {
 public:
  static constexpr int kSpatialFactors = 5;
  static constexpr int kReduceFactors = 3;
  // Larger factors would not fit the registers.
  static constexpr int kMaxInnermostFactor = 64;
  // Copies of what is fetched.
  static constexpr int kMostStages = 4;

  // `fragments`: the operands of a step are copied into registers, too.
  // `periods`: of the last reduce variable (PeriodsOf).
  ThreadTiles(const ir::BlockNode& block, const target::GpuLimits& limits,
              bool fragments, std::vector<int64_t> periods);
  // Of a block of a schedule.
  static absl::StatusOr<ThreadTiles> Of(schedule::Schedule& schedule,
                                        schedule::BlockRv block,
                                        const target::GpuLimits& limits,
                                        bool fragments);

  // The reads (indices into `block.reads`) that are fetched into shared memory:
  // those that several threads need.
  const std::vector<int>& fetched() const { return fetched_; }

  // Whether the terms are those of windows.
  bool has_periods() const { return !periods_.empty(); }

  // Good tiles for products of any size, by an estimate of their time.
  TileFactors Default() const;
  // The copies of shared buffers that hide the time of a fetch.
  int64_t DefaultStages(const TileFactors& factors) const;
  // One warp, with one sum and one step for each thread.
  TileFactors Smallest() const;
  // nullopt if no tiles that fit were drawn.
  std::optional<TileFactors> Draw(int stages, Rng& rng) const;
  // Why the tiles exceed a limit; empty if they fit. `stages`: the copies of
  // each shared buffer.
  std::string WhyNot(const TileFactors& factors, int stages) const;

 private:
  // Positions of the factors.
  enum Spatial { kBlocks, kVirtual, kWarps, kLanes, kInnerTile };
  enum Reduce { kFetches, kOuterSteps, kInnerSteps };
  // Elements of float32 that a thread loads at once.
  static constexpr int64_t kVectorElements = 4;

  struct Axis {
    int64_t extent = 1;
    bool reduces = false;
  };

  // About the cycles that the GPU needs, and those of what is multiplied
  // between two fetches.
  struct Time {
    double total = 0, step = 0;
  };
  Time TimeOf(const TileFactors& factors) const;
  // The lanes of a warp to these axes, and nothing else yet.
  TileFactors DealLanes(const std::vector<size_t>& tiled) const;
  // Decides the terms of a fetch.
  void SetTerms(TileFactors& factors) const;
  // Of shared memory: for the operands; with the results that a cluster adds
  // up.
  int64_t FetchedBytes(const TileFactors& factors, int stages) const;
  int64_t SharedBytes(const TileFactors& factors, int stages) const;
  // The iterations of the tiles over those of the loops.
  double Waste(const TileFactors& factors) const;
  // The elements of a read that all threads need between two fetches.
  int64_t Footprint(int read, const TileFactors& factors) const;
  // The registers of a thread for a step's operands.
  int64_t FragmentRegisters(const TileFactors& factors) const;
  // The elements of a read for so many values of each variable.
  int64_t ElementsFor(int read, const std::vector<int64_t>& values) const;
  // Terms of a fetch of the axis: about `steps`, or all; whole parts, where
  // some are not much larger.
  int64_t DefaultTerms(size_t axis, int64_t steps) const;
  // Any size of whole parts; nullopt: there is none.
  std::optional<int64_t> DrawWholeTerms(int64_t extent, Rng& rng) const;
  // The axis to which the periods belong; none: the number of axes.
  size_t PeriodicAxis() const;
  // The axes that are worth a thread tile, the contiguous one first.
  std::vector<size_t> TiledAxes() const;

  // Keeps the variables alive that regions mention.
  ir::BlockNode block_;
  target::GpuLimits limits_;
  bool fragments_;
  std::vector<int64_t> periods_;
  std::vector<Axis> axes_;
  // The blocks of a cluster, which have the values of the first variable, if
  // the block sums in one: its axis then has one.
  int64_t cluster_ = 1;
  std::vector<int> fetched_;
};

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_GPU_THREAD_TILES_H_
