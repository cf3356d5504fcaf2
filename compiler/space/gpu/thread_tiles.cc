#include "compiler/space/gpu/thread_tiles.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <ranges>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/cluster_sums.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/gpu/kernels.h"
#include "compiler/space/gpu/products.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

// By default, at most so many for the sake of whole parts.
constexpr int64_t kMostWholeTerms = 40;

// The largest default: 256 threads with 8 x 8 sums each, the tile of 128 x 128
// that cuBLAS and CUTLASS use for float32 (SIMT) products.
constexpr int64_t kDefaultWarps = 8;
constexpr int64_t kDefaultTile = 8;
// A multiprocessor issues for so many warps in a cycle. Beside sums and loads,
// a warp issues about so many instructions for each term, and for what it
// fetches (counted in code of products, tests/perf/gpu_counters.py).
constexpr double kSchedulers = 4, kLoopOverhead = 1, kFetchOverhead = 8;
// What a warp waits for each term, if no other has something to do.
constexpr double kStall = 16;
// What a multiprocessor gets from the second-level cache in a cycle, and the
// cycles until it comes (H100).
constexpr double kCacheBytes = 24, kFetchLatency = 600;
// More registers than this for sums and what is fetched leave too few for the
// rest; what that costs.
constexpr double kFreeRegisters = 64, kSpillCost = 1.5;
// Smaller tiles are chosen where they are faster by more than this.
constexpr double kAsFast = 0.97;
constexpr int64_t kDefaultSteps = 16;
// Without opting in, a kernel has this much shared memory on every target.
constexpr int64_t kDefaultShared = 48 << 10;

// The number of different values of `expr`, less one, if it were linear, while
// each variable of the block has this many values; -1: unknown.
int64_t Spread(const ir::Expr& expr, const ir::BlockNode& block,
               const std::vector<int64_t>& values) {
  if (ir::AsInt(expr)) return 0;
  if (ir::As<ir::VarNode>(expr) != nullptr) {
    for (size_t i = 0; i < block.iters.size(); ++i) {
      if (block.iters[i].var.get() == expr.get()) return values[i] - 1;
    }
    return -1;
  }
  const auto* op = ir::As<ir::BinaryNode>(expr);
  if (op == nullptr) return -1;
  const int64_t a = Spread(op->a, block, values);
  const int64_t b = Spread(op->b, block, values);
  if (a < 0 || b < 0) return -1;
  const int64_t c = ir::AsInt(op->b).value_or(0);
  switch (op->op) {
    case ir::BinaryOp::kAdd:
    case ir::BinaryOp::kSub:
      return a + b;
    case ir::BinaryOp::kMul: {
      const int64_t by = c != 0 ? c : ir::AsInt(op->a).value_or(0);
      return by > 0 ? (a + b) * by : -1;
    }
    case ir::BinaryOp::kFloorDiv:
      return c > 0 ? (a == 0 ? 0 : a / c + 1) : -1;
    case ir::BinaryOp::kFloorMod:
      return c > 0 ? std::min(a, c - 1) : -1;
    default:
      return -1;
  }
}

}  // namespace

ThreadTiles::ThreadTiles(const ir::BlockNode& block,
                         const target::GpuLimits& limits, bool fragments,
                         std::vector<int64_t> periods)
    : block_(block),
      limits_(limits),
      fragments_(fragments),
      periods_(std::move(periods)) {
  for (const ir::IterVar& iter : block.iters) {
    axes_.push_back({IterExtent(iter), iter.type == ir::IterType::kReduce});
  }
  if (SumsInCluster(block)) cluster_ = std::exchange(axes_[0].extent, 1);
  for (size_t i = 0; i < block.reads.size(); ++i) {
    const ir::BufferRegion& read = block.reads[i];
    if (absl::c_any_of(block.writes, [&](const ir::BufferRegion& write) {
          return write.buffer == read.buffer;
        })) {
      continue;
    }
    bool reduces = false, shared = false;
    for (size_t a = 0; a < axes_.size(); ++a) {
      const bool used = RegionUses(read, block.iters[a].var.get());
      reduces |= used && axes_[a].reduces;
      shared |= !used && !axes_[a].reduces && axes_[a].extent > 1;
    }
    // Windows that overlap also share elements.
    for (const ir::Range& range : read.region) {
      bool spatial = false, reduce = false;
      for (size_t a = 0; a < axes_.size(); ++a) {
        if (!ir::UsesVar(range.min, block.iters[a].var.get())) continue;
        (axes_[a].reduces ? reduce : spatial) = true;
      }
      shared |= spatial && reduce;
    }
    if (reduces && shared) fetched_.push_back(static_cast<int>(i));
  }
}

absl::StatusOr<ThreadTiles> ThreadTiles::Of(schedule::Schedule& schedule,
                                            schedule::BlockRv block,
                                            const target::GpuLimits& limits,
                                            bool fragments) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  std::vector<int64_t> periods;
  for (size_t a = node->iters.size(); a-- > 0;) {
    if (node->iters[a].type != ir::IterType::kReduce) continue;
    TF_ASSIGN_OR_RETURN(periods, PeriodsOf(schedule, block, a));
    break;
  }
  return ThreadTiles(*node, limits, fragments, std::move(periods));
}

size_t ThreadTiles::PeriodicAxis() const {
  size_t a = axes_.size();
  while (!periods_.empty() && a > 0) {
    if (axes_[--a].reduces) return a;
  }
  return axes_.size();
}

int64_t ThreadTiles::DefaultTerms(size_t axis, int64_t steps) const {
  const int64_t extent = axes_[axis].extent;
  const int64_t terms = std::min(extent, extent <= 4 ? extent : steps);
  if (axis != PeriodicAxis()) return terms;
  for (int64_t more = terms; more <= std::min(extent, kMostWholeTerms);
       ++more) {
    if (extent % more == 0 && more % kVectorElements == 0 &&
        IsWhole(more, periods_)) {
      return more;
    }
  }
  return terms;
}

int64_t ThreadTiles::ElementsFor(int read,
                                 const std::vector<int64_t>& values) const {
  const ir::BufferRegion& region = block_.reads[static_cast<size_t>(read)];
  int64_t elements = 1;
  for (size_t d = 0; d < region.region.size(); ++d) {
    const int64_t whole = region.buffer->shape[d];
    const int64_t spread = Spread(region.region[d].min, block_, values);
    const int64_t width = ir::AsInt(region.region[d].extent).value_or(whole);
    elements *= spread < 0 ? whole : std::min(whole, spread + width);
  }
  return elements;
}

int64_t ThreadTiles::Footprint(int read, const TileFactors& factors) const {
  std::vector<int64_t> values;
  for (const std::vector<int64_t>& f : factors) {
    values.push_back(std::accumulate(f.begin() + 1, f.end(), int64_t{1},
                                     std::multiplies<>()));
  }
  return ElementsFor(read, values);
}

int64_t ThreadTiles::FragmentRegisters(const TileFactors& factors) const {
  if (!fragments_) return 0;
  std::vector<int64_t> values;
  for (size_t a = 0; a < axes_.size(); ++a) {
    values.push_back(axes_[a].reduces
                         ? factors[a][kInnerSteps]
                         : factors[a][kVirtual] * factors[a][kInnerTile]);
  }
  int64_t bytes = 0;
  for (const int read : fetched_) {
    bytes += ElementsFor(read, values) *
             block_.reads[static_cast<size_t>(read)].buffer->dtype.bytes();
  }
  return CeilDiv(bytes, 4);
}

int64_t ThreadTiles::FetchedBytes(const TileFactors& factors,
                                  int stages) const {
  int64_t bytes = 0;
  for (const int read : fetched_) {
    bytes += Footprint(read, factors) * stages *
             block_.reads[static_cast<size_t>(read)].buffer->dtype.bytes();
  }
  return bytes;
}

int64_t ThreadTiles::SharedBytes(const TileFactors& factors, int stages) const {
  if (cluster_ == 1) return FetchedBytes(factors, stages);
  int64_t results = block_.writes[0].buffer->dtype.bytes();
  for (size_t a = 0; a < axes_.size(); ++a) {
    if (axes_[a].reduces) continue;
    for (size_t f = kVirtual; f < factors[a].size(); ++f) {
      results *= factors[a][f];
    }
  }
  return FetchedBytes(factors, stages) + results;
}

double ThreadTiles::Waste(const TileFactors& factors) const {
  double waste = 1;
  for (size_t a = 0; a < axes_.size(); ++a) {
    double product = 1;
    for (const int64_t factor : factors[a]) {
      product *= static_cast<double>(factor);
    }
    waste *= product / static_cast<double>(axes_[a].extent);
  }
  return waste;
}

std::string ThreadTiles::WhyNot(const TileFactors& factors, int stages) const {
  int64_t threads = 1, sums = 1;
  for (size_t a = 0; a < axes_.size(); ++a) {
    const std::vector<int64_t>& f = factors[a];
    const size_t wanted = axes_[a].reduces ? kReduceFactors : kSpatialFactors;
    if (f.size() != wanted) return "a tile has another number of factors";
    if (axes_[a].reduces) continue;
    threads *= f[kWarps] * f[kLanes];
    sums *= f[kVirtual] * f[kInnerTile];
  }
  if (threads > limits_.block_threads) {
    return absl::StrCat(threads, " threads of a block, the target has ",
                        limits_.block_threads);
  }
  if (threads % limits_.warp_lanes != 0) {
    return absl::StrCat(threads, " threads are no whole warps of ",
                        limits_.warp_lanes);
  }
  const int64_t used =
      CeilDiv(sums * block_.writes[0].buffer->dtype.bytes(), 4) +
      FragmentRegisters(factors);
  const int64_t registers = LocalRegisters(limits_, threads);
  if (used > registers) {
    return absl::StrCat(used, " registers of a thread, the target has ",
                        registers);
  }
  const int64_t shared = SharedBytes(factors, stages);
  if (shared > limits_.block_shared) {
    return absl::StrCat(shared, " bytes of shared memory, the target has ",
                        limits_.block_shared);
  }
  return "";
}

std::vector<size_t> ThreadTiles::TiledAxes() const {
  std::vector<size_t> spatial;
  for (size_t a = axes_.size(); a-- > 0;) {
    if (!axes_[a].reduces && axes_[a].extent > 1) spatial.push_back(a);
  }
  if (spatial.size() < 2) return spatial;
  // Beside the last axis, the longest one that other reads than its own use,
  // and not all: products of all pairs then reuse both operands.
  const size_t last = spatial[0];
  const auto reuse = [&](size_t axis) {
    bool apart = false, all = true;
    for (const int read : fetched_) {
      const ir::BufferRegion& region = block_.reads[static_cast<size_t>(read)];
      const bool used = RegionUses(region, block_.iters[axis].var.get());
      apart |= used && !RegionUses(region, block_.iters[last].var.get());
      all &= used;
    }
    return apart && !all;
  };
  std::stable_sort(spatial.begin() + 1, spatial.end(), [&](size_t a, size_t b) {
    const bool x = reuse(a), y = reuse(b);
    return x != y ? x : axes_[a].extent > axes_[b].extent;
  });
  return spatial;
}

ThreadTiles::Time ThreadTiles::TimeOf(const TileFactors& factors) const {
  double blocks = static_cast<double>(cluster_), threads = 1, sums = 1,
         terms = 1, fetched_terms = 1;
  std::vector<int64_t> own;
  for (size_t a = 0; a < axes_.size(); ++a) {
    const std::vector<int64_t>& f = factors[a];
    if (axes_[a].reduces) {
      terms *= static_cast<double>(axes_[a].extent);
      fetched_terms *= static_cast<double>(f[kOuterSteps] * f[kInnerSteps]);
      own.push_back(1);
      continue;
    }
    blocks *= static_cast<double>(f[kBlocks]);
    threads *= static_cast<double>(f[kWarps] * f[kLanes]);
    own.push_back(f[kVirtual] * f[kInnerTile]);
    sums *= static_cast<double>(own.back());
  }
  const double warps = threads / limits_.warp_lanes;
  double loads = 0, elements = 0, bytes = 0;
  for (const int read : fetched_) {
    const auto needed = static_cast<double>(ElementsFor(read, own));
    loads += std::ceil(needed / kVectorElements);
    const double tile =
        static_cast<double>(Footprint(read, factors)) / fetched_terms;
    elements += tile;
    bytes +=
        tile * block_.reads[static_cast<size_t>(read)].buffer->dtype.bytes();
  }
  const double rounds = std::ceil(blocks / limits_.multiprocessors);
  // Blocks that are resident together wait together.
  const double resident =
      std::clamp(std::floor(limits_.threads / threads), 1.0, rounds);
  // For one term, of one warp. Parts that are no whole vectors are fetched
  // element by element.
  const double fetch = std::fmod(fetched_terms, kVectorElements) == 0
                           ? kFetchOverhead
                           : 2 * kFetchOverhead;
  const double issued = sums + loads + kLoopOverhead +
                        elements / limits_.warp_lanes * fetch / warps;
  const double busy =
      std::max({std::ceil(resident * warps / kSchedulers) * issued,
                issued + kStall, resident * bytes / kCacheBytes});
  double step = busy * fetched_terms;
  // Without asynchronous copies, what is on its way is in registers, and so are
  // the addresses.
  const double on_its_way = elements * fetched_terms / threads;
  if (!limits_.async_copies && sums + 2 * on_its_way > kFreeRegisters) {
    step *= kSpillCost;
  }
  const double waits =
      kFetchLatency / (limits_.async_copies ? kMostStages - 1 : 1);
  return {.total =
              terms / fetched_terms * rounds / resident * std::max(step, waits),
          .step = step};
}

void ThreadTiles::SetTerms(TileFactors& factors) const {
  // Small loops, such as windows, as a whole; then the first long one.
  int64_t steps = kDefaultSteps;
  for (size_t i = axes_.size(); i-- > 0;) {
    if (!axes_[i].reduces) continue;
    const int64_t extent = axes_[i].extent;
    int64_t own = DefaultTerms(i, steps);
    const auto set = [&] { factors[i] = {CeilDiv(extent, own), own, 1}; };
    set();
    while (own > 1 && FetchedBytes(factors, 2) >
                          std::min(kDefaultShared, limits_.block_shared)) {
      own = CeilDiv(own, 2);
      set();
    }
    steps = std::max<int64_t>(1, steps / own);
  }
}

TileFactors ThreadTiles::DealLanes(const std::vector<size_t>& tiled) const {
  TileFactors factors;
  for (const Axis& axis : axes_) {
    factors.push_back(axis.reduces
                          ? std::vector<int64_t>{axis.extent, 1, 1}
                          : std::vector<int64_t>{axis.extent, 1, 1, 1, 1});
  }
  int64_t lanes = limits_.warp_lanes;
  if (tiled.empty()) {
    // One output: lanes idle.
    for (size_t a = 0; a < axes_.size(); ++a) {
      if (axes_[a].reduces) continue;
      factors[a][kLanes] = lanes;
      break;
    }
    return factors;
  }
  const auto grow = [&](size_t axis, int64_t& left) {
    if (left < 2 || factors[axis][kLanes] >= axes_[axis].extent) return false;
    factors[axis][kLanes] *= 2;
    left /= 2;
    return true;
  };
  // 8 lanes of the contiguous axis, 4 of the other, and what does not fit
  // wherever it does.
  int64_t first = lanes / 4;
  while (grow(tiled[0], first)) lanes /= 2;
  bool more = true;
  while (more && lanes > 1) {
    more = false;
    for (size_t i = 1; i < tiled.size(); ++i) {
      while (grow(tiled[i], lanes)) more = true;
    }
    while (grow(tiled[0], lanes)) more = true;
  }
  factors[tiled[0]][kLanes] *= lanes;  // what is left: lanes that idle
  return factors;
}

TileFactors ThreadTiles::Default() const {
  const std::vector<size_t> tiled = TiledAxes();
  const TileFactors lanes = DealLanes(tiled);
  const size_t both = std::min<size_t>(tiled.size(), 2);
  // Numbers of an axis: sums of a thread, and warps.
  struct Numbers {
    int64_t tile = 1, warps = 1;
  };
  std::vector<std::vector<Numbers>> ways(2, {Numbers{}});
  for (size_t i = 0; i < both; ++i) {
    ways[i].clear();
    for (int64_t warps = 1; warps <= kDefaultWarps; warps *= 2) {
      for (int64_t tile = 1; tile <= kDefaultTile; tile *= 2) {
        const int64_t fewer = lanes[tiled[i]][kLanes] * warps * tile / 2;
        // Not twice what the axis has.
        if (warps * tile == 1 || fewer < axes_[tiled[i]].extent) {
          ways[i].push_back({tile, warps});
        }
      }
    }
  }
  std::optional<TileFactors> best;
  double least = 0;
  // The largest tiles first, of those as fast.
  for (const Numbers& first : ways[0] | std::views::reverse) {
    for (const Numbers& second : ways[1] | std::views::reverse) {
      if (first.warps * second.warps > kDefaultWarps) continue;
      TileFactors factors = lanes;
      for (size_t i = 0; i < both; ++i) {
        const Numbers& numbers = i == 0 ? first : second;
        factors[tiled[i]][kInnerTile] = numbers.tile;
        factors[tiled[i]][kWarps] = numbers.warps;
      }
      for (size_t a = 0; a < axes_.size(); ++a) {
        if (axes_[a].reduces) continue;
        std::vector<int64_t>& f = factors[a];
        f[kBlocks] = CeilDiv(axes_[a].extent, f[kWarps] * f[kLanes] *
                                                  f[kVirtual] * f[kInnerTile]);
        // Tiles as vectors that are apart by those of the other threads.
        if (f[kInnerTile] % kVectorElements != 0) continue;
        f[kVirtual] *= f[kInnerTile] / kVectorElements;
        f[kInnerTile] = kVectorElements;
      }
      SetTerms(factors);
      const double cycles = TimeOf(factors).total;
      if (best && (cycles >= least * kAsFast || !WhyNot(factors, 2).empty())) {
        continue;
      }
      best = std::move(factors);
      least = cycles;
    }
  }
  return *std::move(best);
}

int64_t ThreadTiles::DefaultStages(const TileFactors& factors) const {
  const double parts = std::ceil(kFetchLatency / TimeOf(factors).step);
  return limits_.async_copies
             ? std::clamp<int64_t>(1 + static_cast<int64_t>(parts), 2,
                                   kMostStages)
             : 2;
}

TileFactors ThreadTiles::Smallest() const {
  TileFactors factors;
  bool first = true;
  for (const Axis& axis : axes_) {
    if (axis.reduces) {
      factors.push_back({axis.extent, 1, 1});
      continue;
    }
    const int64_t lanes = std::exchange(first, false) ? limits_.warp_lanes : 1;
    factors.push_back({CeilDiv(axis.extent, lanes), 1, 1, lanes, 1});
  }
  return factors;
}

}  // namespace tilefarm::space
