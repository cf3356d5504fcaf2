// What a warp reaches by an address, loads, stores, and moves between
// registers.
#include <algorithm>
#include <cstring>
#include <string>

#include "tests/gpu/ptx/ptx_numbers.h"
#include "tests/gpu/ptx/ptx_operations.h"
#include "tests/gpu/ptx/ptx_warp.h"

namespace tilefarm::ptx {
namespace {

constexpr uint32_t kOffsetMask = (uint32_t{1} << kRankShift) - 1;

std::string OfBlock(const Block& block) {
  return " of block " + std::to_string(block.rank) + " of a cluster of " +
         std::to_string(block.cluster->size());
}

// What a warp of any block of the cluster reaches. `lane`: -1: not known.
unsigned char* SharedOf(Block& block, uint32_t address, int bytes, int align,
                        Warp& warp, int lane) {
  const bool own = warp.block == &block;
  const uint64_t end = uint64_t{address} + static_cast<uint64_t>(bytes);
  if (address < kSharedBase || end > kSharedBase + block.shared.size()) {
    warp.Fail(Fault::kIllegalAddress,
              "shared address " + std::to_string(address) +
                  (own ? "" : OfBlock(block)) + " of " +
                  std::to_string(block.shared.size()) + " bytes from " +
                  std::to_string(kSharedBase),
              lane);
    return nullptr;
  }
  if (address % static_cast<uint32_t>(align) != 0) {
    warp.Fail(Fault::kMisalignedAddress,
              "misaligned shared address " + std::to_string(address) +
                  (own ? "" : OfBlock(block)),
              lane);
    return nullptr;
  }
  return block.shared.data() + (address - kSharedBase);
}

}  // namespace

unsigned char* Warp::Shared(uint32_t address, int bytes, int align) {
  if (address >> kRankShift == block->rank + 1) address &= kOffsetMask;
  return SharedOf(*block, address, bytes, align, *this, /*lane=*/-1);
}

unsigned char* Warp::SharedOfCluster(int lane, uint32_t address, int bytes,
                                     int align) {
  const uint32_t above = address >> kRankShift;
  const uint32_t rank = above == 0 ? block->rank : above - 1;
  std::vector<Block>& blocks = *block->cluster;
  if (rank >= blocks.size()) {
    Fail(Fault::kIllegalAddress,
         "block " + std::to_string(rank) + " of a cluster of " +
             std::to_string(blocks.size()),
         lane);
    return nullptr;
  }
  Block& other = blocks[rank];
  if (&other != block && (!other.Started() || other.Ended())) {
    Fail(Fault::kIllegalAddress,
         std::string("the block has ") +
             (other.Started() ? "ended" : "not started") + ": address" +
             OfBlock(other),
         lane);
    return nullptr;
  }
  return SharedOf(other, address & kOffsetMask, bytes, align, *this, lane);
}

unsigned char* Warp::Generic(int lane, uint64_t address, int bytes, int align) {
  if (address < kProcessEnd) return reinterpret_cast<unsigned char*>(address);
  const uint64_t shared = address - kSharedWindow;
  if (shared >> kRankShift == 0 || shared >> 32 != 0) {
    Fail(Fault::kIllegalAddress,
         "generic address " + std::to_string(address) + " of no memory", lane);
    return nullptr;
  }
  return SharedOfCluster(lane, static_cast<uint32_t>(shared), bytes, align);
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

// Memory ----------------------------------------------------------------------

enum class Space { kShared, kCluster, kGlobal, kLocal, kConstant, kPlain };

// Shared memory is addressed by 32 bits, local memory by more[4] bytes.
// Parameters have addresses of this process, and so has local memory where it
// is not said to be local.
template <Space space>
auto* Reach(Warp& warp, const Instruction& i, int lane, int bytes) {
  const int64_t offset = i.more[0];
  if constexpr (space == Space::kShared) {
    return warp.Shared(
        warp.At<uint32_t>(i.args[0])[lane] + static_cast<uint32_t>(offset),
        bytes, bytes);
  } else if constexpr (space == Space::kCluster) {
    return warp.SharedOfCluster(
        lane,
        warp.At<uint32_t>(i.args[0])[lane] + static_cast<uint32_t>(offset),
        bytes, bytes);
  } else if constexpr (space == Space::kGlobal) {
    return warp.Global(
        warp.At<uint64_t>(i.args[0])[lane] + static_cast<uint64_t>(offset),
        bytes, bytes);
  } else if constexpr (space == Space::kConstant) {
    return warp.Constant(
        warp.At<uint32_t>(i.args[0])[lane] + static_cast<uint32_t>(offset),
        bytes, bytes);
  } else if constexpr (space == Space::kLocal) {
    const uint64_t address = i.more[4] == 4
                                 ? warp.At<uint32_t>(i.args[0])[lane]
                                 : warp.At<uint64_t>(i.args[0])[lane];
    return warp.Local(lane, address + static_cast<uint64_t>(offset), bytes,
                      bytes);
  } else {
    return warp.Generic(
        lane,
        warp.At<uint64_t>(i.args[0])[lane] + static_cast<uint64_t>(offset),
        bytes, bytes);
  }
}

// more[0]: to local addresses, from those of this process.
void ConvertLocal(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    const auto memory = reinterpret_cast<uint64_t>(warp.LocalMemory(l));
    const uint64_t by = memory - kLocalBase;
    const uint64_t from = warp.At<uint64_t>(i.args[1])[l];
    warp.At<uint64_t>(i.args[0])[l] = i.more[0] != 0 ? from - by : from + by;
  });
}

// Lanes may convert what they do not access: what has no result is an address
// of no memory.
constexpr uint64_t kNowhere = ~uint64_t{0};

uint32_t PlaceIn(unsigned rank, uint64_t address) {
  return (std::min(rank, 0xfeU) + 1) << kRankShift |
         (static_cast<uint32_t>(address) & kOffsetMask);
}
bool IsGenericShared(uint64_t address) {
  return address >= kSharedWindow && address - kSharedWindow <= ~uint32_t{0};
}

// more[0]: to shared addresses, from generic ones. The latter have the block's
// rank, the former of the own block do not.
void ConvertShared(Warp& warp, const Instruction& i, uint32_t mask) {
  const unsigned rank = warp.block->rank;
  ForLanes(mask, [&](int l) {
    const uint64_t from = warp.At<uint64_t>(i.args[1])[l];
    uint64_t& to = warp.At<uint64_t>(i.args[0])[l];
    if (i.more[0] == 0) {
      to = kSharedWindow + (from <= kOffsetMask ? PlaceIn(rank, from) : from);
    } else if (!IsGenericShared(from)) {
      to = kNowhere;
    } else {
      to = from - kSharedWindow;
      if (to >> kRankShift == rank + 1) to &= kOffsetMask;
    }
  });
}

// args: result, address, rank; T: of shared addresses.
template <typename T>
void MapShared(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    warp.At<T>(i.args[0])[l] =
        PlaceIn(warp.At<uint32_t>(i.args[2])[l], warp.At<T>(i.args[1])[l]);
  });
}
void MapGeneric(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int l) {
    const uint64_t from = warp.At<uint64_t>(i.args[1])[l];
    const unsigned rank = warp.At<uint32_t>(i.args[2])[l];
    warp.At<uint64_t>(i.args[0])[l] =
        IsGenericShared(from) ? kSharedWindow + PlaceIn(rank, from) : kNowhere;
  });
}

// args: address, registers; more: offset, bytes of an element, then of each
// register, and whether elements are extended by their sign.
template <Space space>
void Load(Warp& warp, const Instruction& i, uint32_t mask) {
  const auto count = i.args.size() - 1;
  const auto bytes = static_cast<size_t>(i.more[1]);
  const auto width = static_cast<size_t>(i.more[2]);
  const bool is_signed = i.more[3] != 0;
  ForLanes(mask, [&](int l) {
    const unsigned char* from =
        Reach<space>(warp, i, l, static_cast<int>(bytes * count));
    if (from == nullptr) return;
    for (size_t k = 0; k < count; ++k, from += bytes) {
      unsigned char* to =
          warp.registers + i.args[k + 1] + static_cast<size_t>(l) * width;
      std::memcpy(to, from, bytes);
      if (width > bytes) {
        const bool is_negative = is_signed && (to[bytes - 1] & 0x80) != 0;
        std::memset(to + bytes, is_negative ? 0xff : 0, width - bytes);
      }
    }
  });
}
template <Space space>
void Store(Warp& warp, const Instruction& i, uint32_t mask) {
  const auto count = i.args.size() - 1;
  const auto bytes = static_cast<size_t>(i.more[1]);
  const auto width = static_cast<size_t>(i.more[2]);
  ForLanes(mask, [&](int l) {
    unsigned char* to =
        Reach<space>(warp, i, l, static_cast<int>(bytes * count));
    if (to == nullptr) return;
    for (size_t k = 0; k < count; ++k, to += bytes) {
      std::memcpy(
          to, warp.registers + i.args[k + 1] + static_cast<size_t>(l) * width,
          bytes);
    }
  });
}

}  // namespace

bool MakeAccess(const Parts& opcode, const Operands& operands, Places& places,
                Instruction& out) {
  const bool is_load = opcode[0] == "ld";
  if (operands.size() != 2) return false;
  const Operand& address = operands[is_load ? 1 : 0];
  const Operand& value = operands[is_load ? 0 : 1];
  if (address.kind != Operand::Kind::kAddress || address.parts.size() != 1) {
    return false;
  }
  const Type type = ParseType(opcode.back());
  const bool cluster = Has(opcode, "shared::cluster");
  const bool shared =
      cluster || Has(opcode, "shared") || Has(opcode, "shared::cta");
  const bool global = Has(opcode, "global");
  if (type.kind == 0) return false;
  if (Has(opcode, "volatile") || Has(opcode, "acquire") ||
      Has(opcode, "release")) {
    return false;
  }
  int64_t offset = 0;
  const Operand& base = address.parts.front();
  const bool constant = Has(opcode, "const");
  const bool is_word =
      shared || constant || (Has(opcode, "local") && base.width == 4);
  out.args = {places.Base(address, is_word, &offset)};
  const bool is_vector = value.kind == Operand::Kind::kVector;
  const Operands values = is_vector ? value.parts : Operands{value};
  int width = type.bytes();
  for (const Operand& one : values) {
    out.args.push_back(places.Place(one, type));
    if (one.width > 0) width = one.width;
  }
  for (const Operand& one : values) {
    if (one.width > 0 && one.width != width) return false;
    // Constants have the width of their type.
    if (one.width == 0 && width != type.bytes()) return false;
  }
  out.more = {offset, type.bytes(), width, type.kind == 's', is_word ? 4 : 8};
  if (cluster) {
    out.run = is_load ? Load<Space::kCluster> : Store<Space::kCluster>;
  } else if (shared) {
    out.run = is_load ? Load<Space::kShared> : Store<Space::kShared>;
  } else if (global) {
    out.run = is_load ? Load<Space::kGlobal> : Store<Space::kGlobal>;
  } else if (constant && is_load) {
    out.run = Load<Space::kConstant>;
  } else if (Has(opcode, "local")) {
    out.run = is_load ? Load<Space::kLocal> : Store<Space::kLocal>;
  } else if (Has(opcode, "param") || opcode.size() == 2 ||
             opcode[1].starts_with('v')) {
    // Without a space: registers in memory and those of Memory, which are
    // addresses of this process, and shared memory of the cluster.
    out.run = is_load ? Load<Space::kPlain> : Store<Space::kPlain>;
  } else {
    return false;
  }
  return true;
}

namespace {

template <typename T>
void Move(Warp& warp, const Instruction& i, uint32_t mask) {
  T* to = warp.At<T>(i.args[0]);
  const T* from = warp.At<T>(i.args[1]);
  ForLanes(mask, [&](int l) { to[l] = from[l]; });
}

// mov: of words, from a vector of parts to a word, and back.
void Pack(Warp& warp, const Instruction& i, uint32_t mask) {
  const auto width = static_cast<size_t>(i.more[0]);
  const size_t count = i.args.size() - 1;
  ForLanes(mask, [&](int l) {
    unsigned char bytes[8];
    for (size_t k = 0; k < count; ++k) {
      std::memcpy(
          bytes + k * width,
          warp.registers + i.args[k + 1] + static_cast<size_t>(l) * width,
          width);
    }
    std::memcpy(
        warp.registers + i.args[0] + static_cast<size_t>(l) * width * count,
        bytes, width * count);
  });
}
void Unpack(Warp& warp, const Instruction& i, uint32_t mask) {
  const auto width = static_cast<size_t>(i.more[0]);
  const size_t count = i.args.size() - 1;
  ForLanes(mask, [&](int l) {
    unsigned char bytes[8];
    std::memcpy(
        bytes,
        warp.registers + i.args[0] + static_cast<size_t>(l) * width * count,
        width * count);
    for (size_t k = 0; k < count; ++k) {
      std::memcpy(
          warp.registers + i.args[k + 1] + static_cast<size_t>(l) * width,
          bytes + k * width, width);
    }
  });
}

}  // namespace

bool MakeMove(const Parts& opcode, const Operands& operands, Places& places,
              Instruction& out) {
  const Type type = ParseType(opcode.back());
  if (operands.size() != 2 || type.kind == 0) return false;
  for (const bool to_vector : {true, false}) {
    const Operand& vector = operands[to_vector ? 0 : 1];
    if (vector.kind != Operand::Kind::kVector) continue;
    const auto count = static_cast<int>(vector.parts.size());
    const Type part{'b', type.bits / count};
    out.args = {places.Place(operands[to_vector ? 1 : 0], type)};
    for (const Operand& one : vector.parts) {
      if (one.width > 0 && one.width != part.bytes()) return false;
      out.args.push_back(places.Place(one, part));
    }
    out.more = {part.bytes()};
    out.run = to_vector ? Unpack : Pack;
    return true;
  }
  out.args = {places.Place(operands[0], type), places.Place(operands[1], type)};
  const Type bits{'b', type.bits * type.count};
  return WithInteger(bits, [&]<typename T>(T) { out.run = Move<T>; });
}

bool MakeAddressConversion(const Parts& opcode, const Operands& operands,
                           Places& places, Instruction& out) {
  const Type type = ParseType(opcode.back());
  if (operands.size() != 2 || type.kind == 0 || type.bits != 64) return false;
  const bool shared = Has(opcode, "shared") || Has(opcode, "shared::cta") ||
                      Has(opcode, "shared::cluster");
  out.args = {places.Place(operands[0], type), places.Place(operands[1], type)};
  out.more = {Has(opcode, "to")};
  out.run = shared                 ? ConvertShared
            : Has(opcode, "local") ? ConvertLocal
                                   : Move<uint64_t>;
  return true;
}

// "mapa": without a space, of generic addresses.
bool MakeClusterAddress(const Parts& opcode, const Operands& operands,
                        Places& places, Instruction& out) {
  const Type type = ParseType(opcode.back());
  const bool shared = Has(opcode, "shared::cluster");
  if (operands.size() != 3 || opcode.size() != (shared ? 3U : 2U) ||
      type.kind != 'u' || type.bits < 32) {
    return false;
  }
  for (size_t k = 0; k < 2; ++k) {
    const int width = operands[k].width;
    if (width > 0 && width != type.bytes()) return false;
  }
  // Names are shared addresses.
  if (!shared &&
      (type.bits != 64 || operands[1].kind != Operand::Kind::kRegister)) {
    return false;
  }
  out.args = {places.Place(operands[0], type), places.Place(operands[1], type),
              places.Place(operands[2], ParseType("u32"))};
  out.run = !shared           ? MapGeneric
            : type.bits == 32 ? MapShared<uint32_t>
                              : MapShared<uint64_t>;
  return true;
}

}  // namespace tilefarm::ptx
