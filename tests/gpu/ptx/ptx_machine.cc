#include "tests/gpu/ptx/ptx_machine.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

namespace tilefarm::ptx {

void Warp::Fail(Fault fault, const std::string& what, int lane) {
  if (block->fault != Fault::kNone) return;
  block->fault = fault;
  block->fault_text =
      (lane < 0 ? "warp " + std::to_string(number)
                : "thread " + std::to_string(number * kWarpLanes + lane)) +
      ", `" + (current == nullptr ? "" : std::string(current->text)) +
      "`: " + what;
}

bool Block::Started() const {
  return std::any_of(warps.begin(), warps.end(),
                     [](const auto& warp) { return warp->executed > 0; });
}

bool Block::Ended() const {
  return std::all_of(warps.begin(), warps.end(),
                     [](const auto& warp) { return warp->live == 0; });
}

namespace {

constexpr int kAlignment = 64;

uint64_t ValueOf(const Preset& preset, const Block& block, const Warp& warp,
                 int lane) {
  const auto thread = static_cast<unsigned>(warp.number * kWarpLanes + lane);
  const auto& shape = block.threads;
  switch (preset.kind) {
    case Preset::Kind::kConstant:
      return preset.value;
    case Preset::Kind::kLane:
      return static_cast<uint64_t>(lane);
    case Preset::Kind::kParameter: {
      // The vector has room to align it.
      const auto data = reinterpret_cast<uint64_t>(block.parameters.data());
      return (data + kAlignment - 1) / kAlignment * kAlignment + preset.value;
    }
    case Preset::Kind::kThread:
      break;
  }
  if (preset.value == 0) return thread % shape[3];
  if (preset.value == 1) return thread / shape[3] % shape[4];
  if (preset.value == 2) return thread / shape[3] / shape[4];
  return shape[preset.value];
}

std::unique_ptr<Warp> MakeWarp(Block& block, int number, int threads) {
  auto warp = std::make_unique<Warp>();
  warp->block = &block;
  warp->number = number;
  const int lanes = std::min(threads - number * kWarpLanes, kWarpLanes);
  warp->live = lanes == kWarpLanes ? kAllLanes : (uint32_t{1} << lanes) - 1;
  const size_t bytes = block.kernel->file_bytes + kAlignment;
  warp->file = std::make_unique<unsigned char[]>(bytes);
  std::memset(warp->file.get(), kPoison, bytes);
  const auto address = reinterpret_cast<uintptr_t>(warp->file.get());
  warp->registers = warp->file.get() + (kAlignment - address % kAlignment);
  for (const Preset& preset : block.kernel->presets) {
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      const uint64_t value = ValueOf(preset, block, *warp, lane);
      std::memcpy(warp->registers + preset.place +
                      static_cast<size_t>(lane * preset.width),
                  &value, static_cast<size_t>(preset.width));
    }
  }
  return warp;
}

// Blocks that run together.
class ClusterRun {
 public:
  ClusterRun(std::vector<Block>& blocks, uint64_t seed, Counters* counters)
      : blocks_(blocks), random_(seed), counters_(counters) {}

  // The block that has a fault; null: none.
  const Block* Run() {
    std::vector<Warp*> turns;
    for (const Block& block : blocks_) {
      for (const auto& warp : block.warps) turns.push_back(warp.get());
    }
    for (;;) {
      std::shuffle(turns.begin(), turns.end(), random_);
      FavourABlock();
      bool moved = false, alive = false;
      for (Warp* warp : turns) {
        alive |= warp->live != 0;
        if (favoured_ != nullptr && warp->block != favoured_) continue;
        Wake(*warp);
        if (Faulty(*warp)) return warp->block;
        if (Ready(*warp) == 0) continue;
        moved = true;
        Step(*warp, 16 + static_cast<int>(random_() % 512));
        if (Faulty(*warp)) return warp->block;
      }
      if (!alive) return Finish();
      if (moved) continue;
      if (favoured_ != nullptr) {
        favoured_ = nullptr;
        continue;
      }
      const Block* landed = LandOne();
      if (landed == nullptr) return Deadlock();
      if (landed->fault != Fault::kNone) return landed;
    }
  }

 private:
  static bool Faulty(const Warp& warp) {
    return warp.block->fault != Fault::kNone;
  }
  static uint32_t Ready(const Warp& warp) {
    return warp.live & ~(warp.for_warp | warp.for_block | warp.for_phase |
                         warp.for_cluster);
  }

  // A block may be far ahead of the others: at times, and for some rounds, only
  // its warps take turns, as long as they can.
  void FavourABlock() {
    if (blocks_.size() == 1 || random_() % 8 != 0) return;
    const size_t i = random_() % (blocks_.size() + 1);
    favoured_ = i == blocks_.size() ? nullptr : &blocks_[i];
  }

  // Copies land as late as they may: when nobody can go on without one. The
  // block to which one did; null: there is none.
  const Block* LandOne() {
    std::vector<Block*> waiting;
    for (Block& block : blocks_) {
      if (!block.loads.empty() && !block.Ended()) waiting.push_back(&block);
    }
    if (waiting.empty()) return nullptr;
    Block& block =
        *waiting[waiting.size() > 1 ? random_() % waiting.size() : 0];
    const size_t i = random_() % block.loads.size();
    const BoxLoad load = block.loads[i];
    block.loads.erase(block.loads.begin() + static_cast<std::ptrdiff_t>(i));
    const int64_t bytes = LoadBox(*block.warps[0], load);
    if (bytes < 0) return &block;
    PhaseBarrier& barrier = block.phase_barriers[load.barrier];
    barrier.bytes -= bytes;
    barrier.Settle();
    return &block;
  }

  // Reported by the first block that waits.
  const Block* Deadlock() {
    std::string where;
    Block* first = nullptr;
    for (Block& block : blocks_) {
      if (block.Ended()) continue;
      if (first == nullptr) first = &block;
      if (blocks_.size() > 1) {
        where += (where.empty() ? "block " : "; block ") +
                 std::to_string(block.rank) + " of the cluster: ";
      }
      where += WhereWarpsWait(block);
    }
    first->fault = Fault::kLaunchFailed;
    first->fault_text = "all warps wait: " + where;
    return first;
  }
  static std::string WhereWarpsWait(Block& block) {
    std::string where;
    for (const auto& warp : block.warps) {
      if (warp->live == 0 || where.size() > 400) continue;
      const int lane = __builtin_ctz(warp->live);
      warp->current =
          &block.kernel
               ->code[static_cast<size_t>(warp->pc[static_cast<size_t>(lane)])];
      where += (where.empty() ? "" : "; ") + std::to_string(warp->number) +
               " at `" + std::string(warp->current->text) + "`";
    }
    return where;
  }

  // What is still on its way when threads return.
  const Block* Finish() {
    for (const Block& block : blocks_) {
      for (const auto& warp : block.warps) {
        for (auto& stores : warp->stores) {
          stores.Wait(0, [&](const BoxLoad& store) { StoreBox(*warp, store); });
        }
      }
      if (block.fault != Fault::kNone) return &block;
    }
    return nullptr;
  }

  static bool Completed(Warp& warp, const Instruction& i, int lane) {
    const auto found =
        warp.block->phase_barriers.find(warp.At<uint32_t>(i.args[1])[lane]);
    if (found == warp.block->phase_barriers.end()) {
      warp.Fail(Fault::kLaunchFailed, "there is no barrier", lane);
      return false;
    }
    const uint32_t parity = warp.At<uint32_t>(i.args[2])[lane] & 1;
    return (found->second.phase & 1) != parity;
  }

  void Wake(Warp& warp) {
    ForLanes(warp.for_phase, [&](int l) {
      const auto lane = static_cast<size_t>(l);
      warp.current =
          &warp.block->kernel->code[static_cast<size_t>(warp.pc[lane])];
      if (!Completed(warp, *warp.current, l)) return;
      warp.At<uint8_t>(warp.current->args[0])[l] = 1;
      warp.for_phase &= ~(uint32_t{1} << l);
      ++warp.pc[lane];
    });
  }

  static uint32_t At(const Warp& warp, uint32_t lanes, int pc) {
    uint32_t out = 0;
    ForLanes(lanes, [&](int l) {
      if (warp.pc[static_cast<size_t>(l)] == pc) out |= uint32_t{1} << l;
    });
    return out;
  }
  static void Go(Warp& warp, uint32_t lanes, int pc) {
    ForLanes(lanes, [&](int l) { warp.pc[static_cast<size_t>(l)] = pc; });
  }

  // Runs the lanes that are farthest behind, so that others catch up.
  void Step(Warp& warp, int budget) {
    while (budget > 0 && !Faulty(warp)) {
      const uint32_t ready = Ready(warp);
      if (ready == 0) return;
      int pc = std::numeric_limits<int>::max();
      ForLanes(ready, [&](int l) {
        pc = std::min(pc, warp.pc[static_cast<size_t>(l)]);
      });
      const uint32_t lanes = At(warp, ready, pc);
      int next = std::numeric_limits<int>::max();
      ForLanes(ready & ~lanes, [&](int l) {
        next = std::min(next, warp.pc[static_cast<size_t>(l)]);
      });
      budget -= Advance(warp, lanes, pc, next, budget);
    }
  }

  // Executes from `pc` until the lanes part, wait, or come to `next`. How many
  // instructions that were.
  int Advance(Warp& warp, uint32_t lanes, int pc, int next, int budget) {
    const std::vector<Instruction>& code = warp.block->kernel->code;
    int executed = 0;
    while (executed < budget && pc < next && !Faulty(warp)) {
      const Instruction& i = code[static_cast<size_t>(pc)];
      warp.current = &i;
      ++executed;
      uint32_t mask = lanes;
      if (i.guard >= 0) {
        const uint8_t* guard = warp.At<uint8_t>(static_cast<uint32_t>(i.guard));
        ForLanes(lanes, [&](int l) {
          if ((guard[l] != 0) == i.negated) mask &= ~(uint32_t{1} << l);
        });
      }
      if (i.control == Control::kNext) {
        Count(warp, i, mask);
        if (mask != 0) i.run(warp, i, mask);
        ++pc;
        continue;
      }
      if (i.control == Control::kBranch) {
        Count(warp, i, lanes);
        if (mask == lanes || mask == 0) {
          pc = mask == 0 ? pc + 1 : i.target;
          continue;
        }
        Go(warp, mask, i.target);
        Go(warp, lanes & ~mask, pc + 1);
        warp.executed += executed;
        return executed;
      }
      Go(warp, lanes, pc);
      Wait(warp, i, lanes, mask, pc);
      warp.executed += executed;
      return executed;
    }
    Go(warp, lanes, pc);
    warp.executed += executed;
    return executed;
  }

  // The lanes are at `pc`; those in `mask` execute what is there.
  void Wait(Warp& warp, const Instruction& i, uint32_t lanes, uint32_t mask,
            int pc) {
    switch (i.control) {
      case Control::kReturn:
        warp.live &= ~mask;
        warp.arrived &= ~mask;
        warp.released &= ~mask;
        Go(warp, lanes & ~mask, pc + 1);
        ReleaseCluster();
        return;
      case Control::kTrap:
        if (mask != 0) warp.Fail(Fault::kLaunchFailed, "trap");
        Go(warp, lanes & ~mask, pc + 1);
        return;
      case Control::kWaitPhase:
        Go(warp, lanes & ~mask, pc + 1);
        warp.for_phase |= mask;
        return;
      case Control::kArriveCluster:
      case Control::kWaitCluster:
        if (i.more[0] != 0) break;
        Go(warp, lanes & ~mask, pc + 1);
        if (mask == 0) return;
        Count(warp, i, mask);
        MeetCluster(warp, i, mask);
        return;
      default:
        break;
    }
    // Lanes of the warp that are here, or have been waiting here.
    const uint32_t waiting = At(warp, warp.for_warp, pc);
    const uint32_t here = waiting | mask;
    Go(warp, lanes & ~mask, pc + 1);
    if (mask != lanes && i.control != Control::kMembers) {
      warp.Fail(Fault::kLaunchFailed, "not all lanes of the warp execute it");
      return;
    }
    if (!Complete(warp, i, here)) {
      warp.for_warp |= here;
      return;
    }
    warp.for_warp &= ~here;
    Count(warp, i, here);
    if (i.control == Control::kBarrier) {
      Barrier(warp, i, here);
      return;
    }
    if (i.control == Control::kArriveCluster ||
        i.control == Control::kWaitCluster) {
      MeetCluster(warp, i, here);
      return;
    }
    i.run(warp, i, here);
    Go(warp, here, pc + 1);
  }

  void Count(Warp& warp, const Instruction& i, uint32_t mask) {
    if (counters_ != nullptr && mask != 0) counters_->Count(warp, i, mask);
  }

  static bool Complete(Warp& warp, const Instruction& i, uint32_t here) {
    if (i.control == Control::kMembers) {
      bool all = true;
      ForLanes(here, [&](int l) {
        const uint32_t members = warp.At<uint32_t>(i.args.back())[l];
        all &= (members & ~here) == 0;
        if ((members >> l & 1) == 0) {
          warp.Fail(Fault::kLaunchFailed, "the lane is not a member", l);
        }
      });
      return all;
    }
    if (i.control == Control::kWarpWide && warp.live != kAllLanes) {
      warp.Fail(Fault::kLaunchFailed, "lanes of the warp have returned");
    }
    return here == warp.live;
  }

  void Barrier(Warp& warp, const Instruction& i, uint32_t here) {
    const uint32_t number = warp.At<uint32_t>(i.args[0])[__builtin_ctz(here)];
    int expected = 0;
    if (i.more[0] != 0) {
      expected =
          static_cast<int>(warp.At<uint32_t>(i.args[1])[__builtin_ctz(here)]);
    } else {
      const auto& shape = warp.block->threads;
      expected = static_cast<int>(shape[3] * shape[4] * shape[5]);
    }
    warp.for_block |= here;
    warp.barrier = number;
    int& arrived = warp.block->arrived[number];
    arrived += __builtin_popcount(here);
    if (number > 15 || arrived > expected) {
      warp.Fail(Fault::kLaunchFailed, "more threads than the barrier is for");
      return;
    }
    if (arrived < expected) return;
    arrived = 0;
    for (const auto& other : warp.block->warps) {
      if (other->for_block == 0 || other->barrier != number) continue;
      ForLanes(other->for_block,
               [&](int l) { ++other->pc[static_cast<size_t>(l)]; });
      other->for_block = 0;
    }
  }

  // The cluster's barrier.
  void MeetCluster(Warp& warp, const Instruction& i, uint32_t here) {
    const bool arrives = i.control == Control::kArriveCluster;
    const uint32_t wrong = here & (arrives ? warp.arrived : ~warp.arrived);
    if (wrong != 0) {
      warp.Fail(
          Fault::kLaunchFailed,
          arrives ? "arrives twice without a wait" : "waits without an arrival",
          __builtin_ctz(wrong));
      return;
    }
    if (arrives) {
      warp.arrived |= here;
      ForLanes(here, [&](int l) { ++warp.pc[static_cast<size_t>(l)]; });
      ReleaseCluster();
    } else {
      warp.for_cluster |= here;
      PassCluster(warp);
    }
  }

  // When all threads that have not returned have arrived.
  void ReleaseCluster() {
    for (const Block& block : blocks_) {
      for (const auto& warp : block.warps) {
        if ((warp->arrived & ~warp->released) != warp->live) return;
      }
    }
    for (const Block& block : blocks_) {
      for (const auto& warp : block.warps) {
        warp->released = warp->arrived;
        PassCluster(*warp);
      }
    }
  }

  static void PassCluster(Warp& warp) {
    const uint32_t passing = warp.for_cluster & warp.released;
    ForLanes(passing, [&](int l) { ++warp.pc[static_cast<size_t>(l)]; });
    warp.for_cluster &= ~passing;
    warp.arrived &= ~passing;
    warp.released &= ~passing;
  }

  std::vector<Block>& blocks_;
  Block* favoured_ = nullptr;  // null: all blocks take turns
  std::mt19937_64 random_;
  Counters* counters_;
};

// What does not change from block to block.
std::vector<Block> MakeCluster(const Kernel& kernel, const Launch& launch,
                               const Memory& memory, unsigned size) {
  std::vector<Block> blocks(size);
  for (Block& block : blocks) {
    block.rank = static_cast<unsigned>(&block - blocks.data());
    block.kernel = &kernel;
    block.memory = &memory;
    for (size_t d = 0; d < 3; ++d) {
      const unsigned in_cluster = d == 0 ? size : 1;
      block.threads[3 + d] = launch.threads[d];
      block.threads[9 + d] = launch.grid[d];
      block.threads[15 + d] = launch.grid[d] / in_cluster;
      block.threads[21 + d] = in_cluster;
    }
    block.threads[18] = block.threads[24] = block.rank;
    block.threads[25] = size;
    block.parameters.resize(
        static_cast<size_t>(kernel.parameter_bytes + 2 * kAlignment));
    const auto data = reinterpret_cast<uintptr_t>(block.parameters.data());
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      std::memcpy(block.parameters.data() +
                      (kAlignment - data % kAlignment) % kAlignment +
                      kernel.parameters[i].offset,
                  launch.arguments[i],
                  static_cast<size_t>(kernel.parameters[i].bytes));
    }
  }
  return blocks;
}

// A block of the cluster with this number is about to start.
void Start(Block& block, unsigned cluster, const Launch& launch) {
  auto& at = block.threads;
  at[12] = cluster % at[15];
  at[13] = at[7] = cluster / at[15] % at[16];
  at[14] = at[8] = cluster / at[15] / at[16];
  at[6] = at[12] * at[25] + block.rank;
  const auto threads = static_cast<int>(at[3] * at[4] * at[5]);
  block.shared.assign(launch.shared_bytes, kPoison);
  block.local.assign(static_cast<size_t>(block.kernel->local_bytes * threads),
                     kPoison);
  block.phase_barriers.clear();
  block.arrived.clear();
  block.loads.clear();
  block.warps.clear();
  for (int w = 0; w * kWarpLanes < threads; ++w) {
    block.warps.push_back(MakeWarp(block, w, threads));
  }
}

}  // namespace

Outcome Run(const Kernel& kernel, const Launch& launch, const Memory& memory) {
  const auto& [x, y, z] = launch.grid;
  const auto threads = static_cast<int>(launch.threads[0] * launch.threads[1] *
                                        launch.threads[2]);
  if (kernel.most_threads > 0 && threads > kernel.most_threads) {
    return {Fault::kLaunchFailed, "more threads than .maxntid"};
  }
  const std::string wrong_cluster = ClusterTrouble(kernel, x, launch.cluster);
  if (!wrong_cluster.empty()) {
    return {Fault::kInvalidClusterSize, kernel.name + ": " + wrong_cluster};
  }
  const unsigned size = std::max({kernel.cluster, launch.cluster, 1U});
  std::vector<Block> blocks = MakeCluster(kernel, launch, memory, size);
  for (Block& block : blocks) block.cluster = &blocks;
  Outcome out;
  std::mt19937_64 random(launch.seed);
  const unsigned clusters = x / size * y * z;
  const unsigned most = (launch.most_blocks + size - 1) / size;
  const unsigned step = most > 0 && most < clusters ? clusters / most : 1;
  for (unsigned number = step / 2; number < clusters; number += step) {
    for (Block& block : blocks) Start(block, number, launch);
    const Block* faulty = ClusterRun(blocks, random(), launch.counters).Run();
    out.blocks += size;
    for (const Block& block : blocks) {
      for (const auto& warp : block.warps) out.instructions += warp->executed;
    }
    if (faulty != nullptr) {
      out.fault = faulty->fault;
      out.what = kernel.name + ", block " + std::to_string(faulty->threads[6]) +
                 " " + std::to_string(faulty->threads[7]) + " " +
                 std::to_string(faulty->threads[8]) + ", " + faulty->fault_text;
      return out;
    }
  }
  return out;
}

std::string ClusterTrouble(const Kernel& kernel, unsigned grid_x,
                           unsigned cluster) {
  const unsigned size = std::max({kernel.cluster, cluster, 1U});
  if (kernel.needs_cluster && kernel.cluster == 0 && cluster == 0) {
    return "it has .explicitcluster, and nobody says of how many blocks";
  }
  if (kernel.cluster != 0 && cluster != 0 && cluster != kernel.cluster) {
    return "launched with clusters of " + std::to_string(cluster) +
           " blocks, compiled for " + std::to_string(kernel.cluster);
  }
  if (size > kMostBlocksOfCluster) {
    return "a cluster of " + std::to_string(size) + " blocks";
  }
  if (grid_x % size != 0) {
    return std::to_string(grid_x) + " blocks along x are no multiple of the " +
           std::to_string(size) + " of a cluster";
  }
  return "";
}

}  // namespace tilefarm::ptx
