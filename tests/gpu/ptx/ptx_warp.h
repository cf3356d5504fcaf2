// The state of a kernel while it is executed: warps, their block, memory.
#ifndef TILEFARM_TESTS_GPU_PTX_PTX_WARP_H_
#define TILEFARM_TESTS_GPU_PTX_PTX_WARP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/gpu/ptx/ptx_module.h"

namespace tilefarm::ptx {

inline constexpr uint32_t kAllLanes = ~uint32_t{0};
// What memory and registers have that nobody has written: NaN in all types.
inline constexpr unsigned char kPoison = 0xff;

// Errors of the Driver API that a kernel, or its launch, can make.
enum class Fault : int {
  kNone = 0,
  kIllegalAddress = 700,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kLaunchFailed = 719,
  kInvalidClusterSize = 912,
};

// Global memory.
class Memory {
 public:
  virtual ~Memory() = default;
  // First byte and end of the allocation with this address; {0, 0}: none.
  virtual std::pair<uintptr_t, uintptr_t> Find(uintptr_t address) const = 0;
};

// What cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col write here, in the
// first bytes of 128. Of the second, `box` has the channels first and the
// pixels last.
struct TensorMap {
  static constexpr int kMostDims = 5;
  static constexpr uint32_t kMagic = 0x70616d74;
  static constexpr int kMostSpatial = 3;
  uint32_t magic = 0;
  uint8_t element_bytes = 0;
  uint8_t dims = 0;
  uint8_t im2col = 0;
  uint8_t steps[kMostSpatial] = {};
  int16_t lower[kMostSpatial] = {}, upper[kMostSpatial] = {};
  uint16_t box[kMostDims] = {};
  uint64_t address = 0;
  uint64_t sizes[kMostDims] = {};
  uint64_t strides[kMostDims] = {};  // bytes; [0]: of an element
};
static_assert(sizeof(TensorMap) <= 128);

// A barrier in shared memory ("mbarrier").
struct PhaseBarrier {
  int64_t count = 0;    // arrivals of a phase
  int64_t pending = 0;  // arrivals to come
  int64_t bytes = 0;    // of copies to come
  uint32_t phase = 0;
  void Settle() {
    if (pending > 0 || bytes != 0) return;
    pending = count;
    ++phase;
  }
};

// A tensor map's box on its way to shared memory.
struct BoxLoad {
  const TensorMap* map = nullptr;
  std::array<int32_t, TensorMap::kMostDims> origin = {};
  std::array<uint16_t, TensorMap::kMostSpatial> offsets = {};
  uint32_t to = 0;
  uint32_t barrier = 0;
};

struct Warp;

struct Block {
  std::vector<Block>* cluster = nullptr;  // that it is one of
  unsigned rank = 0;                      // its number there
  const Kernel* kernel = nullptr;
  const Memory* memory = nullptr;
  std::array<unsigned, 26> threads = {};  // as Preset::kThread: [3] on
  std::vector<unsigned char> shared;      // from kSharedBase
  std::vector<unsigned char> local;
  std::vector<unsigned char> parameters;
  std::vector<std::unique_ptr<Warp>> warps;
  std::map<uint32_t, PhaseBarrier> phase_barriers;
  std::map<uint32_t, int> arrived;  // lanes at "bar.sync", by its number
  std::vector<BoxLoad> loads;       // that have not landed
  Fault fault = Fault::kNone;
  std::string fault_text;

  bool Started() const;
  bool Ended() const;  // all threads have returned
};

// One of the matrix products of a warpgroup that are not waited for.
struct PendingProduct {
  const Instruction* instruction = nullptr;
  uint64_t a = 0, b = 0;  // descriptors
  bool adds = true;
};

struct CopyAsync {
  uint32_t to = 0;
  int bytes = 0;
  std::array<unsigned char, 16> data = {};
};

// What is enqueued in groups, of which one waits until at most n are left.
template <typename T>
struct Groups {
  std::vector<T> open;
  std::deque<std::vector<T>> committed;
  void Commit() {
    committed.push_back(std::move(open));
    open.clear();
  }
  template <typename Run>
  void Wait(size_t left, Run run) {
    while (committed.size() > left) {
      for (const T& one : committed.front()) run(one);
      committed.pop_front();
    }
  }
};

struct Warp {
  Block* block = nullptr;
  int number = 0;     // in its block
  uint32_t live = 0;  // lanes that have not returned
  // Lanes that wait at pc: for the others of the warp, at a barrier of the
  // block, for a phase, or for the cluster.
  uint32_t for_warp = 0, for_block = 0, for_phase = 0, for_cluster = 0;
  // Lanes between their arrival at the cluster's barrier and the end of their
  // wait for it, and those of them for which all others have arrived.
  uint32_t arrived = 0, released = 0;
  uint32_t barrier = 0;  // number of the block's, of `for_block`
  std::array<int, kWarpLanes> pc = {};
  std::unique_ptr<unsigned char[]> file;
  unsigned char* registers = nullptr;  // aligned, in `file`
  int64_t executed = 0;                // instructions
  const Instruction* current = nullptr;
  // The allocations of the last accesses.
  std::array<std::pair<uintptr_t, uintptr_t>, 4> ranges = {};
  size_t next_range = 0;

  std::array<Groups<CopyAsync>, kWarpLanes> copies;
  std::array<Groups<BoxLoad>, kWarpLanes> stores;  // `to`: where they read
  Groups<PendingProduct> products;

  template <typename T>
  T* At(uint32_t place) {
    return reinterpret_cast<T*>(registers + place);
  }

  // Null: a fault, which is set. The access must be aligned to `align`.
  unsigned char* Shared(uint32_t address, int bytes, int align);
  // Of any block of the cluster.
  unsigned char* SharedOfCluster(int lane, uint32_t address, int bytes,
                                 int align);
  // Addresses of this process are not checked.
  unsigned char* Generic(int lane, uint64_t address, int bytes, int align);
  unsigned char* Global(uint64_t address, int bytes, int align);
  unsigned char* Local(int lane, uint64_t address, int bytes, int align);
  unsigned char* LocalMemory(int lane);
  const unsigned char* Constant(uint32_t address, int bytes, int align);
  void Fail(Fault fault, const std::string& what, int lane = -1);
};

// Calls f(lane) for each lane of the mask, ascending.
template <typename F>
inline void ForLanes(uint32_t mask, F f) {
  if (mask == kAllLanes) {
    for (int lane = 0; lane < kWarpLanes; ++lane) f(lane);
    return;
  }
  for (; mask != 0; mask &= mask - 1) f(__builtin_ctz(mask));
}

// Fills a box of shared memory from global memory, or global memory from it.
// Elements outside of the tensor are zero, and not written. The bytes of a box;
// -1: a fault.
int64_t LoadBox(Warp& warp, const BoxLoad& load);
int64_t StoreBox(Warp& warp, const BoxLoad& store);
int64_t BoxBytes(const TensorMap& map);

}  // namespace tilefarm::ptx

#endif  // TILEFARM_TESTS_GPU_PTX_PTX_WARP_H_
