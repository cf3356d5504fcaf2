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

unsigned char* Warp::Shared(uint32_t address, int bytes, int align) {
  const uint64_t end = uint64_t{address} + static_cast<uint64_t>(bytes);
  if (address < kSharedBase || end > kSharedBase + block->shared.size()) {
    Fail(Fault::kIllegalAddress,
         "shared address " + std::to_string(address) + " of " +
             std::to_string(block->shared.size()) + " bytes from " +
             std::to_string(kSharedBase));
    return nullptr;
  }
  if (address % static_cast<uint32_t>(align) != 0) {
    Fail(Fault::kMisalignedAddress,
         "misaligned shared address " + std::to_string(address));
    return nullptr;
  }
  return block->shared.data() + (address - kSharedBase);
}

unsigned char* Warp::Local(int lane, uint64_t address, int bytes, int align) {
  const auto all = static_cast<uint64_t>(block->kernel->local_bytes);
  if (address < kLocalBase ||
      address + static_cast<uint64_t>(bytes) > kLocalBase + all) {
    Fail(Fault::kIllegalAddress,
         "local address " + std::to_string(address) + " of " +
             std::to_string(all) + " bytes from " + std::to_string(kLocalBase),
         lane);
    return nullptr;
  }
  if (address % static_cast<uint64_t>(align) != 0) {
    Fail(Fault::kMisalignedAddress,
         "misaligned local address " + std::to_string(address), lane);
    return nullptr;
  }
  return LocalMemory(lane) + (address - kLocalBase);
}

const unsigned char* Warp::Constant(uint32_t address, int bytes, int align) {
  const std::vector<unsigned char>& all = *block->kernel->constants;
  const uint64_t end = uint64_t{address} + static_cast<uint64_t>(bytes);
  if (address < kConstantBase || end > kConstantBase + all.size() ||
      address % static_cast<uint32_t>(align) != 0) {
    Fail(Fault::kIllegalAddress,
         "address of constants " + std::to_string(address) + " of " +
             std::to_string(all.size()) + " bytes from " +
             std::to_string(kConstantBase));
    return nullptr;
  }
  return all.data() + (address - kConstantBase);
}

unsigned char* Warp::LocalMemory(int lane) {
  const auto thread = static_cast<size_t>(number * kWarpLanes + lane);
  return block->local.data() +
         thread * static_cast<size_t>(block->kernel->local_bytes);
}

unsigned char* Warp::Global(uint64_t address, int bytes, int align) {
  const auto end = address + static_cast<uint64_t>(bytes);
  if (address % static_cast<uint64_t>(align) != 0) {
    Fail(Fault::kMisalignedAddress,
         "misaligned global address " + std::to_string(address));
    return nullptr;
  }
  for (const auto& [first, last] : ranges) {
    if (address >= first && end <= last) {
      return reinterpret_cast<unsigned char*>(address);
    }
  }
  const auto range = block->memory->Find(address);
  if (address < range.first || end > range.second) {
    const auto distance =
        range.second == 0
            ? std::string("no allocation")
            : "byte " + std::to_string(address - range.first) + " of " +
                  std::to_string(range.second - range.first);
    Fail(Fault::kIllegalAddress, "global address: " + distance);
    return nullptr;
  }
  ranges[next_range++ % ranges.size()] = range;
  return reinterpret_cast<unsigned char*>(address);
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

class BlockRun {
 public:
  BlockRun(Block& block, uint64_t seed, Counters* counters)
      : block_(block), random_(seed), counters_(counters) {}

  void Run() {
    std::vector<Warp*> turns;
    for (const auto& warp : block_.warps) turns.push_back(warp.get());
    while (block_.fault == Fault::kNone) {
      std::shuffle(turns.begin(), turns.end(), random_);
      bool moved = false, alive = false;
      for (Warp* warp : turns) {
        Wake(*warp);
        if (block_.fault != Fault::kNone) return;
        alive |= warp->live != 0;
        if (Ready(*warp) == 0) continue;
        moved = true;
        Step(*warp, 16 + static_cast<int>(random_() % 512));
        if (block_.fault != Fault::kNone) return;
      }
      if (!alive) break;
      if (!moved && !LandOne()) return Deadlock();
    }
    Finish();
  }

 private:
  static uint32_t Ready(const Warp& warp) {
    return warp.live & ~(warp.for_warp | warp.for_block | warp.for_phase);
  }

  // Copies land as late as they may: when nobody can go on without one.
  bool LandOne() {
    if (block_.loads.empty()) return false;
    const size_t i = random_() % block_.loads.size();
    const BoxLoad load = block_.loads[i];
    block_.loads.erase(block_.loads.begin() + static_cast<std::ptrdiff_t>(i));
    const int64_t bytes = LoadBox(*block_.warps[0], load);
    if (bytes < 0) return true;
    PhaseBarrier& barrier = block_.phase_barriers[load.barrier];
    barrier.bytes -= bytes;
    barrier.Settle();
    return true;
  }

  void Deadlock() {
    std::string where;
    for (const auto& warp : block_.warps) {
      if (warp->live == 0 || where.size() > 400) continue;
      const int lane = __builtin_ctz(warp->live);
      warp->current =
          &block_.kernel
               ->code[static_cast<size_t>(warp->pc[static_cast<size_t>(lane)])];
      where += (where.empty() ? "" : "; ") + std::to_string(warp->number) +
               " at `" + std::string(warp->current->text) + "`";
    }
    block_.fault = Fault::kLaunchFailed;
    block_.fault_text = "all warps wait: " + where;
  }

  // What is still on its way when threads return.
  void Finish() {
    for (const auto& warp : block_.warps) {
      for (auto& stores : warp->stores) {
        stores.Wait(0, [&](const BoxLoad& store) { StoreBox(*warp, store); });
      }
    }
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
      warp.current = &block_.kernel->code[static_cast<size_t>(warp.pc[lane])];
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
    while (budget > 0 && block_.fault == Fault::kNone) {
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
    const std::vector<Instruction>& code = block_.kernel->code;
    int executed = 0;
    while (executed < budget && pc < next && block_.fault == Fault::kNone) {
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
        Go(warp, lanes & ~mask, pc + 1);
        return;
      case Control::kTrap:
        if (mask != 0) warp.Fail(Fault::kLaunchFailed, "trap");
        Go(warp, lanes & ~mask, pc + 1);
        return;
      case Control::kWaitPhase:
        Go(warp, lanes & ~mask, pc + 1);
        warp.for_phase |= mask;
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
      expected = static_cast<int>(block_.threads[3] * block_.threads[4] *
                                  block_.threads[5]);
    }
    warp.for_block |= here;
    warp.barrier = number;
    int& arrived = block_.arrived[number];
    arrived += __builtin_popcount(here);
    if (number > 15 || arrived > expected) {
      warp.Fail(Fault::kLaunchFailed, "more threads than the barrier is for");
      return;
    }
    if (arrived < expected) return;
    arrived = 0;
    for (const auto& other : block_.warps) {
      if (other->for_block == 0 || other->barrier != number) continue;
      ForLanes(other->for_block,
               [&](int l) { ++other->pc[static_cast<size_t>(l)]; });
      other->for_block = 0;
    }
  }

  Block& block_;
  std::mt19937_64 random_;
  Counters* counters_;
};

}  // namespace

Outcome Run(const Kernel& kernel, const Launch& launch, const Memory& memory) {
  Outcome out;
  const auto threads = static_cast<int>(launch.threads[0] * launch.threads[1] *
                                        launch.threads[2]);
  if (kernel.most_threads > 0 && threads > kernel.most_threads) {
    return {Fault::kLaunchFailed, "more threads than .maxntid"};
  }
  Block block;
  block.kernel = &kernel;
  block.memory = &memory;
  block.parameters.resize(
      static_cast<size_t>(kernel.parameter_bytes + 2 * kAlignment));
  for (size_t d = 0; d < 3; ++d) {
    block.threads[3 + d] = launch.threads[d];
    block.threads[9 + d] = launch.grid[d];
  }
  const auto data = reinterpret_cast<uintptr_t>(block.parameters.data());
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    std::memcpy(block.parameters.data() +
                    (kAlignment - data % kAlignment) % kAlignment +
                    kernel.parameters[i].offset,
                launch.arguments[i],
                static_cast<size_t>(kernel.parameters[i].bytes));
  }
  std::mt19937_64 random(launch.seed);
  const unsigned blocks = launch.grid[0] * launch.grid[1] * launch.grid[2];
  const unsigned step = launch.most_blocks > 0 && launch.most_blocks < blocks
                            ? blocks / launch.most_blocks
                            : 1;
  for (unsigned number = step / 2; number < blocks; number += step) {
    block.threads[6] = number % launch.grid[0];
    block.threads[7] = number / launch.grid[0] % launch.grid[1];
    block.threads[8] = number / launch.grid[0] / launch.grid[1];
    block.shared.assign(launch.shared_bytes, kPoison);
    block.local.assign(static_cast<size_t>(kernel.local_bytes * threads),
                       kPoison);
    block.phase_barriers.clear();
    block.arrived.clear();
    block.loads.clear();
    block.warps.clear();
    for (int w = 0; w * kWarpLanes < threads; ++w) {
      block.warps.push_back(MakeWarp(block, w, threads));
    }
    BlockRun(block, random(), launch.counters).Run();
    ++out.blocks;
    for (const auto& warp : block.warps) out.instructions += warp->executed;
    if (block.fault != Fault::kNone) {
      out.fault = block.fault;
      out.what = kernel.name + ", block " + std::to_string(block.threads[6]) +
                 " " + std::to_string(block.threads[7]) + " " +
                 std::to_string(block.threads[8]) + ", " + block.fault_text;
      return out;
    }
  }
  return out;
}

}  // namespace tilefarm::ptx
