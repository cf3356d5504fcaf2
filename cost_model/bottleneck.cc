#include "cost_model/bottleneck.h"

#include <algorithm>

#include "cost_model/features.h"
#include "cost_model/store_view.h"

namespace tilefarm::cost_model {
namespace {

// A store that only moves data into a buffer of the program.
bool IsCopy(const LoopNest& nest, const NestStore& store) {
  return store.ops.float_ops() + store.ops.int_ops() == 0 && !store.is_init &&
         store.accesses.size() == 2 &&
         nest.buffers[static_cast<size_t>(store.accesses[0].buffer)]
             .intermediate;
}

// Bytes that come into a cache: each line of the smallest part of the nest that
// does not fit once for each execution of that part. Lines that one iteration
// of its outermost loop shares with the next are still there.
double BytesInto(const StoreView& view, int level, double capacity) {
  size_t part = view.depth();
  while (part > 0 && view.Fits(part, level, capacity)) --part;
  const double runs = view.iterations(0) / view.iterations(part);
  double bytes = 0;
  for (size_t a = 0; a < view.store().accesses.size(); ++a) {
    const Footprint& touched = view.At(a, part);
    bytes += runs * std::max(touched.lines * kLineBytes, touched.bytes);
  }
  return bytes;
}

double TotalCycles(const std::vector<StoreCost>& stores) {
  double cycles = 1;
  for (const StoreCost& store : stores) {
    cycles += CyclesOf(store);
    if (store.starts_parallel) cycles += kParallelCycles;
  }
  return cycles;
}

// The stores without the cost. `is_copy`: for each.
std::vector<StoreCost> Without(Bottleneck what, std::vector<StoreCost> stores,
                               const std::vector<bool>& is_copy,
                               const target::Target& target) {
  for (size_t i = 0; i < stores.size(); ++i) {
    StoreCost& store = stores[i];
    switch (what) {
      case Bottleneck::kArithmetic:
        store.arithmetic = 0;
        break;
      case Bottleneck::kMemory:
        store.traffic[2] = 0;
        break;
      case Bottleneck::kL3:
        store.traffic[1] = 0;
        break;
      case Bottleneck::kL2:
        store.traffic[0] = 0;
        break;
      case Bottleneck::kLoadStore:
        store.ports = 0;
        break;
      case Bottleneck::kLatency:
        store.latency = 0;
        break;
      case Bottleneck::kPacking:
        if (is_copy[i]) {
          const bool starts = store.starts_parallel;
          store = StoreCost{.bands = 0};
          store.starts_parallel = starts;
        }
        break;
      case Bottleneck::kTail: {
        store.masked = 0;
        store.guards = 0;
        // The same elements in whole vectors, each of them once.
        const double kept = (1 - store.lane_waste) / (1 + store.repeated);
        store.arithmetic *= kept;
        store.ports *= kept;
        store.latency *= 1 / (1 + store.repeated);
        break;
      }
      case Bottleneck::kImbalance:
        store.imbalance = 0;
        if (!store.is_parallel && target.cores > 1) {
          store.is_parallel = true;
          store.cores = target.cores;
        }
        break;
      case Bottleneck::kSpills:
        store.spills = 0;
        break;
      case Bottleneck::kOverhead:
        store.loops = 0;
        store.runs = 0;
        store.starts_parallel = false;
        break;
    }
  }
  // Using the other cores costs the start of a loop.
  if (what == Bottleneck::kImbalance && !stores.empty() &&
      std::none_of(stores.begin(), stores.end(), [](const StoreCost& store) {
        return store.starts_parallel;
      })) {
    stores[0].starts_parallel = target.cores > 1;
  }
  return stores;
}

Bottleneck Choose(const std::vector<WithoutCost>& without) {
  for (const WithoutCost& one : without) {
    if (IsLoss(one.cost) && one.share >= kLossShare) return one.cost;
  }
  for (const WithoutCost& one : without) {
    if (!IsLoss(one.cost)) return one.cost;
  }
  return without.empty() ? Bottleneck::kOverhead : without[0].cost;
}

}  // namespace

std::string_view BottleneckName(Bottleneck bottleneck) {
  switch (bottleneck) {
    case Bottleneck::kArithmetic:
      return "FMA ports";
    case Bottleneck::kMemory:
      return "memory";
    case Bottleneck::kL3:
      return "L3 cache";
    case Bottleneck::kL2:
      return "L2 cache";
    case Bottleneck::kLoadStore:
      return "load and store ports";
    case Bottleneck::kLatency:
      return "latency chain";
    case Bottleneck::kPacking:
      return "packing";
    case Bottleneck::kTail:
      return "tail";
    case Bottleneck::kImbalance:
      return "imbalance";
    case Bottleneck::kSpills:
      return "register spills";
    case Bottleneck::kOverhead:
      return "overhead";
  }
  return "?";
}

std::string_view BottleneckAdvice(Bottleneck bottleneck) {
  switch (bottleneck) {
    case Bottleneck::kArithmetic:
      return "The arithmetic units are the limit: only fewer operations "
             "(another algorithm), narrower types or more cores are faster.";
    case Bottleneck::kMemory:
      return "Data from memory is the limit: reuse it while it is in a cache "
             "(tiles, fusion with producers and consumers), or make it "
             "smaller (narrower types).";
    case Bottleneck::kL3:
      return "Data from the third cache is the limit: smaller tiles that fit "
             "the second one.";
    case Bottleneck::kL2:
      return "Data from the second cache is the limit: smaller tiles that fit "
             "the first one.";
    case Bottleneck::kLoadStore:
      return "Loads and stores of registers are the limit: a larger register "
             "tile uses each loaded value more often.";
    case Bottleneck::kLatency:
      return "Each step waits for the one before on the same sum: more sums at "
             "once (vectors, an unrolled tile, rfactor).";
    case Bottleneck::kPacking:
      return "Copies to other layouts take much of the time: copy less often, "
             "or pack constants ahead of time (layout_free_buffers).";
    case Bottleneck::kTail:
      return "Vectors or tiles that are partly empty: factors that divide the "
             "sizes, or padded sizes.";
    case Bottleneck::kImbalance:
      return "Cores wait or have no work: a number of parallel iterations that "
             "is a multiple of the cores, or much larger.";
    case Bottleneck::kSpills:
      return "The register tile does not fit the registers: a smaller tile.";
    case Bottleneck::kOverhead:
      return "Loops, reductions and threads start too often for what they do: "
             "longer inner loops, fewer parallel ones.";
  }
  return "";
}

bool IsLoss(Bottleneck bottleneck) {
  return bottleneck >= Bottleneck::kLatency;
}

BottleneckReport FindBottleneck(const LoopNest& nest,
                                const target::Target& target,
                                const CoreModel& core) {
  BottleneckReport report;
  report.stores = CostsOf(FeaturesOf(nest, target), target, core);
  const int64_t caches[] = {target.caches.l1_bytes, target.caches.l2_bytes,
                            target.caches.l3_bytes};
  const double all_bytes = BytesOf(nest);
  for (size_t i = 0; i < report.stores.size(); ++i) {
    StoreCost& store = report.stores[i];
    const StoreView view(nest, nest.stores[i]);
    for (int level = 0; level < 3; ++level) {
      const auto capacity = static_cast<double>(caches[level]);
      // A run finds in a cache what the run before left there.
      const double bytes =
          all_bytes <= capacity ? 0 : BytesInto(view, level, capacity);
      store.traffic[level] =
          bytes / BytesPerCycle(core, level, store.is_parallel);
      store.bytes[level] = bytes;
    }
    report.store_cycles.push_back(CyclesOf(store));
  }
  report.cycles = TotalCycles(report.stores);
  std::vector<bool> is_copy;
  for (const NestStore& store : nest.stores) {
    is_copy.push_back(IsCopy(nest, store));
  }
  for (const Bottleneck what : kBottlenecks) {
    const double cycles =
        TotalCycles(Without(what, report.stores, is_copy, target));
    const double share = 1 - cycles / report.cycles;
    if (share > 1e-6) report.without.push_back({what, cycles, share});
  }
  std::stable_sort(report.without.begin(), report.without.end(),
                   [](const WithoutCost& a, const WithoutCost& b) {
                     return a.share > b.share;
                   });
  report.bottleneck = Choose(report.without);
  return report;
}

}  // namespace tilefarm::cost_model
