// Asynchronous copies, tensor maps, and barriers in memory.
#include <algorithm>
#include <array>
#include <cstring>

#include "tests/gpu/ptx/ptx_operations.h"
#include "tests/gpu/ptx/ptx_warp.h"

namespace tilefarm::ptx {
namespace {

// Asynchronous copies
// ---------------------------------------------------------

// args: to, from, bytes that are read (the others are zero); more: offsets of
// both, bytes. They land when they are waited for; until then, nobody knows
// what is there.
void CopyToShared(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    CopyAsync copy;
    copy.to =
        warp.At<uint32_t>(i.args[0])[l] + static_cast<uint32_t>(i.more[0]);
    copy.bytes = static_cast<int>(i.more[2]);
    const auto read = static_cast<int>(warp.At<uint32_t>(i.args[2])[l]);
    unsigned char* to = warp.Shared(copy.to, copy.bytes, copy.bytes);
    if (to == nullptr) return;
    if (read > copy.bytes) {
      warp.Fail(Fault::kIllegalInstruction, "reads more than it writes", l);
      return;
    }
    const uint64_t address =
        warp.At<uint64_t>(i.args[1])[l] + static_cast<uint64_t>(i.more[1]);
    if (address % static_cast<uint64_t>(copy.bytes) != 0) {
      warp.Fail(Fault::kMisalignedAddress, "misaligned global address", l);
      return;
    }
    if (read > 0) {
      const unsigned char* from = warp.Global(address, read, 1);
      if (from == nullptr) return;
      std::memcpy(copy.data.data(), from, static_cast<size_t>(read));
    }
    std::memset(to, kPoison, static_cast<size_t>(copy.bytes));
    warp.copies[static_cast<size_t>(l)].open.push_back(copy);
  });
}
void CommitCopies(Warp& warp, const Instruction&, uint32_t mask) {
  ForLanes(mask, [&](int l) { warp.copies[static_cast<size_t>(l)].Commit(); });
}
void WaitForCopies(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    warp.copies[static_cast<size_t>(l)].Wait(
        static_cast<size_t>(i.more[0]), [&](const CopyAsync& copy) {
          std::memcpy(warp.Shared(copy.to, copy.bytes, copy.bytes),
                      copy.data.data(), static_cast<size_t>(copy.bytes));
        });
  });
}

// Boxes -----------------------------------------------------------------------

// The next row of a box, or the next pixel's of im2col: along the bounding box,
// whose last pixels end at the tensor's end and the upper corner. `at` are
// coordinates of the pixel, without the offsets.
void Advance(const TensorMap& map,
             std::array<int64_t, TensorMap::kMostDims>& at,
             const BoxLoad& load) {
  for (uint32_t d = 1; d < map.dims; ++d) {
    if (map.im2col == 0 || d + 1 == map.dims) {
      const int64_t end = load.origin[d] + int64_t{map.box[d]};
      if (++at[d] < end || d + 1 == map.dims) return;
      at[d] = load.origin[d];
      continue;
    }
    at[d] += map.steps[d - 1];
    if (at[d] < static_cast<int64_t>(map.sizes[d]) + map.upper[d - 1]) return;
    at[d] = map.lower[d - 1];
  }
}

template <typename F>
int64_t WalkBox(Warp& warp, const BoxLoad& load, F access) {
  const TensorMap& map = *load.map;
  std::array<int64_t, TensorMap::kMostDims> at = {};
  std::copy(load.origin.begin(), load.origin.end(), at.begin());
  const int64_t bytes = BoxBytes(map);
  for (int64_t offset = 0; offset < bytes; offset += map.element_bytes) {
    uint64_t address = map.address;
    bool inside = true;
    for (uint32_t d = 0; d < map.dims; ++d) {
      const bool shifted = map.im2col != 0 && d > 0 && d + 1 < map.dims;
      const int64_t x = at[d] + (shifted ? load.offsets[d - 1] : 0);
      inside &= x >= 0 && static_cast<uint64_t>(x) < map.sizes[d];
      address += static_cast<uint64_t>(x) * map.strides[d];
    }
    uint32_t place = load.to + static_cast<uint32_t>(offset);
    place ^= (place >> 7 & 7) << 4;
    const auto size = static_cast<int>(map.element_bytes);
    unsigned char* shared = warp.Shared(place, size, size);
    if (shared == nullptr) return -1;
    unsigned char* global = inside ? warp.Global(address, size, size) : nullptr;
    if (inside && global == nullptr) return -1;
    access(shared, global, map.element_bytes);
    if (++at[0] < load.origin[0] + int64_t{map.box[0]}) continue;
    at[0] = load.origin[0];
    Advance(map, at, load);
  }
  return bytes;
}

// args: address, map, barrier or another sink, coordinates, offsets of im2col;
// more[0]: how many of these.
bool ReadBox(Warp& warp, const Instruction& i, int lane, BoxLoad& out) {
  out.to = warp.At<uint32_t>(i.args[0])[lane];
  out.map =
      reinterpret_cast<const TensorMap*>(warp.At<uint64_t>(i.args[1])[lane]);
  const auto offsets = static_cast<size_t>(i.more[0]);
  const size_t dims = i.args.size() - 3 - offsets;
  if (out.map->magic != TensorMap::kMagic || out.map->dims != dims ||
      (out.map->im2col != 0) != (offsets > 0)) {
    warp.Fail(Fault::kIllegalInstruction,
              "not a tensor map of this rank and mode", lane);
    return false;
  }
  if (out.to % 128 != 0) {
    warp.Fail(Fault::kMisalignedAddress, "a box must be aligned to 128 bytes",
              lane);
    return false;
  }
  for (size_t d = 0; d < dims; ++d) {
    out.origin[d] = warp.At<int32_t>(i.args[3 + d])[lane];
  }
  for (size_t d = 0; d < offsets; ++d) {
    out.offsets[d] = warp.At<uint16_t>(i.args[3 + dims + d])[lane];
    // The coordinates are those of a pixel of the bounding box.
    const int64_t from = int64_t{out.origin[d + 1]} - out.map->lower[d];
    if (from < 0 || from % out.map->steps[d] != 0 ||
        out.origin[d + 1] >=
            static_cast<int64_t>(out.map->sizes[d + 1]) + out.map->upper[d]) {
      warp.Fail(Fault::kIllegalInstruction, "a copy that begins at no pixel",
                lane);
      return false;
    }
  }
  return true;
}
void IssueLoad(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    BoxLoad load;
    if (!ReadBox(warp, i, l, load)) return;
    load.barrier = warp.At<uint32_t>(i.args[2])[l];
    if (warp.block->phase_barriers.count(load.barrier) == 0) {
      warp.Fail(Fault::kLaunchFailed, "there is no barrier", l);
      return;
    }
    // As above: nobody knows what is there until it has landed.
    WalkBox(warp, load,
            [](unsigned char* shared, unsigned char*, size_t bytes) {
              std::memset(shared, kPoison, bytes);
            });
    warp.block->loads.push_back(load);
  });
}
void IssueStore(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    BoxLoad store;
    if (!ReadBox(warp, i, l, store)) return;
    warp.stores[static_cast<size_t>(l)].open.push_back(store);
  });
}
void CommitStores(Warp& warp, const Instruction&, uint32_t mask) {
  ForLanes(mask, [&](int l) { warp.stores[static_cast<size_t>(l)].Commit(); });
}
void WaitForStores(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    warp.stores[static_cast<size_t>(l)].Wait(
        static_cast<size_t>(i.more[0]),
        [&](const BoxLoad& store) { StoreBox(warp, store); });
  });
}

}  // namespace

bool MakeCopy(const Parts& opcode, const Operands& operands, Places& places,
              Instruction& out) {
  const bool bulk = Has(opcode, "bulk");
  const bool waits = Has(opcode, "wait_group");
  if (waits || Has(opcode, "commit_group")) {
    out.run = bulk    ? waits ? WaitForStores : CommitStores
              : waits ? WaitForCopies
                      : CommitCopies;
    if (waits && operands.size() != 1) return false;
    if (waits) out.more = {static_cast<int64_t>(operands[0].value)};
    return true;
  }
  const Type word = ParseType("u32");
  if (!bulk) {
    if (operands.size() < 3 || !Has(opcode, "global")) return false;
    const int64_t bytes = static_cast<int64_t>(operands[2].value);
    if (bytes != 4 && bytes != 8 && bytes != 16) return false;
    if (Has(opcode, "cg") && bytes != 16) return false;
    int64_t to = 0, from = 0;
    out.args = {places.Base(operands[0], /*shared=*/true, &to),
                places.Base(operands[1], /*shared=*/false, &from),
                places.Place(operands[operands.size() > 3 ? 3 : 2], word)};
    out.more = {to, from, bytes};
    out.run = CopyToShared;
    return true;
  }
  if (!Has(opcode, "tensor") || Has(opcode, "multicast::cluster")) {
    return false;
  }
  const bool loads = Has(opcode, "mbarrier::complete_tx::bytes");
  const bool im2col = Has(opcode, "im2col");
  if (im2col && !loads) return false;
  if (operands.size() != (im2col ? 4U : loads ? 3U : 2U)) return false;
  const Operand& shared = operands[loads ? 0 : 1];
  const Operand& map = operands[loads ? 1 : 0];
  if (map.parts.size() != 2 || map.value != 0 || shared.value != 0) {
    return false;
  }
  int64_t ignored = 0;
  out.args = {
      places.Base(shared, /*shared=*/true, &ignored),
      places.Base(map, /*shared=*/false, &ignored),
      places.Base(loads ? operands[2] : shared, /*shared=*/true, &ignored)};
  for (const Operand& coordinate : map.parts[1].parts) {
    out.args.push_back(places.Place(coordinate, word));
  }
  out.more = {0};
  if (im2col) {
    const Operands& offsets = operands[3].parts;
    out.more = {static_cast<int64_t>(offsets.size())};
    for (const Operand& offset : offsets) {
      out.args.push_back(places.Place(offset, ParseType("u16")));
    }
    if (offsets.size() + 2 != map.parts[1].parts.size()) return false;
  }
  out.run = loads ? IssueLoad : IssueStore;
  return true;
}

namespace {

// Barriers in memory
// ----------------------------------------------------------

PhaseBarrier* BarrierAt(Warp& warp, const Instruction& i, size_t arg,
                        int lane) {
  const uint32_t address = warp.At<uint32_t>(i.args[arg])[lane];
  const auto found = warp.block->phase_barriers.find(address);
  if (found == warp.block->phase_barriers.end()) {
    warp.Fail(Fault::kLaunchFailed, "there is no barrier", lane);
    return nullptr;
  }
  return &found->second;
}
void InitBarrier(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    const uint32_t address = warp.At<uint32_t>(i.args[0])[l];
    if (warp.Shared(address, 8, 8) == nullptr) return;
    PhaseBarrier& barrier = warp.block->phase_barriers[address];
    barrier = PhaseBarrier();
    barrier.count = barrier.pending = warp.At<uint32_t>(i.args[1])[l];
  });
}
// args: barrier, bytes (or the barrier again); more[0]: whether it has bytes.
void Arrive(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    PhaseBarrier* barrier = BarrierAt(warp, i, 0, l);
    if (barrier == nullptr) return;
    if (i.more[0] != 0) barrier->bytes += warp.At<uint32_t>(i.args[1])[l];
    if (--barrier->pending < 0) {
      warp.Fail(Fault::kLaunchFailed, "more arrivals than are expected", l);
      return;
    }
    barrier->Settle();
  });
}

}  // namespace

bool MakePhaseBarrier(const Parts& opcode, const Operands& operands,
                      Places& places, Instruction& out) {
  const Type word = ParseType("u32");
  int64_t offset = 0;
  if (opcode[1] == "init" && operands.size() == 2) {
    out.args = {places.Base(operands[0], /*shared=*/true, &offset),
                places.Place(operands[1], word)};
    out.run = InitBarrier;
  } else if (opcode[1] == "arrive" && operands.size() >= 2 &&
             operands[0].kind == Operand::Kind::kSink) {
    const bool has_bytes = Has(opcode, "expect_tx");
    if (has_bytes != (operands.size() == 3)) return false;
    out.args = {places.Base(operands[1], /*shared=*/true, &offset)};
    out.args.push_back(has_bytes ? places.Place(operands[2], word)
                                 : out.args[0]);
    out.more = {has_bytes};
    out.run = Arrive;
  } else if (opcode[1] == "try_wait" && Has(opcode, "parity") &&
             operands.size() == 3) {
    // By PtxMachine. args: result, barrier, parity.
    out.args = {places.Place(operands[0], ParseType("pred")),
                places.Base(operands[1], /*shared=*/true, &offset),
                places.Place(operands[2], word)};
    out.control = Control::kWaitPhase;
  } else {
    return false;
  }
  return offset == 0;
}

int64_t BoxBytes(const TensorMap& map) {
  int64_t bytes = map.element_bytes;
  for (uint32_t d = 0; d < map.dims; ++d) bytes *= map.box[d];
  return bytes;
}

int64_t LoadBox(Warp& warp, const BoxLoad& load) {
  return WalkBox(
      warp, load,
      [](unsigned char* shared, const unsigned char* global, size_t bytes) {
        global == nullptr ? std::memset(shared, 0, bytes)
                          : std::memcpy(shared, global, bytes);
      });
}

int64_t StoreBox(Warp& warp, const BoxLoad& store) {
  return WalkBox(
      warp, store,
      [](const unsigned char* shared, unsigned char* global, size_t bytes) {
        if (global != nullptr) std::memcpy(global, shared, bytes);
      });
}

}  // namespace tilefarm::ptx
