// Loads, stores, and moves between registers.
#include <cstring>

#include "tests/gpu/ptx/ptx_numbers.h"
#include "tests/gpu/ptx/ptx_operations.h"
#include "tests/gpu/ptx/ptx_warp.h"

namespace tilefarm::ptx {
namespace {

// Memory ----------------------------------------------------------------------

enum class Space { kShared, kGlobal, kLocal, kConstant, kPlain };

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
    return reinterpret_cast<unsigned char*>(warp.At<uint64_t>(i.args[0])[lane] +
                                            static_cast<uint64_t>(offset));
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
  const bool shared = Has(opcode, "shared") || Has(opcode, "shared::cta");
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
  if (shared) {
    out.run = is_load ? Load<Space::kShared> : Store<Space::kShared>;
  } else if (global) {
    out.run = is_load ? Load<Space::kGlobal> : Store<Space::kGlobal>;
  } else if (constant && is_load) {
    out.run = Load<Space::kConstant>;
  } else if (Has(opcode, "local")) {
    out.run = is_load ? Load<Space::kLocal> : Store<Space::kLocal>;
  } else if (Has(opcode, "param") || opcode.size() == 2 ||
             opcode[1].starts_with('v')) {
    // Without a space: only registers in memory are addressed so by us, and
    // those of Memory, which are addresses of this process too.
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
  if (operands.size() != 2 || type.kind == 0 || type.bits != 64 ||
      Has(opcode, "shared")) {
    return false;
  }
  out.args = {places.Place(operands[0], type), places.Place(operands[1], type)};
  out.more = {Has(opcode, "to")};
  out.run = Has(opcode, "local") ? ConvertLocal : Move<uint64_t>;
  return true;
}

}  // namespace tilefarm::ptx
