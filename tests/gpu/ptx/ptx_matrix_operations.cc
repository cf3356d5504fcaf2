// Matrices and shuffles. Layouts are those of the manual's
// figures; every product is summed in float64 and rounded once.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>

#include "tests/gpu/ptx/ptx_floats.h"
#include "tests/gpu/ptx/ptx_operations.h"
#include "tests/gpu/ptx/ptx_warp.h"

namespace tilefarm::ptx {
namespace {

// Lanes -----------------------------------------------------------------------

enum Shuffle : int64_t { kShuffleUp, kShuffleDown, kButterfly, kIndex };

// args: result, whether another lane was read, value, lane, clamp, members.
// PTX ISA, "shfl.sync".
void ShuffleLanes(Warp& warp, const Instruction& i, uint32_t mask) {
  std::array<uint32_t, kWarpLanes> values;
  std::copy_n(warp.At<uint32_t>(i.args[2]), kWarpLanes, values.begin());
  ForLanes(mask, [&](int l) {
    const uint32_t by = warp.At<uint32_t>(i.args[3])[l] & 31;
    const uint32_t c = warp.At<uint32_t>(i.args[4])[l];
    const uint32_t segment = c >> 8 & 31, clamp = c & 31;
    const auto lane = static_cast<uint32_t>(l);
    const uint32_t most = (lane & segment) | (clamp & ~segment);
    const uint32_t least = lane & segment;
    int64_t from = 0;
    bool inside = false;
    switch (i.more[0]) {
      case kShuffleUp:
        from = static_cast<int64_t>(lane) - by;
        inside = from >= static_cast<int64_t>(most);
        break;
      case kShuffleDown:
        from = lane + by;
        inside = from <= static_cast<int64_t>(most);
        break;
      case kButterfly:
        from = lane ^ by;
        inside = from <= static_cast<int64_t>(most);
        break;
      default:
        from = least | (by & ~segment);
        inside = from <= static_cast<int64_t>(most);
    }
    if (!inside) from = l;
    if ((mask >> from & 1) == 0) {
      warp.Fail(Fault::kLaunchFailed, "reads a lane that is not there", l);
      return;
    }
    warp.At<uint32_t>(i.args[0])[l] = values[static_cast<size_t>(from)];
    warp.At<uint8_t>(i.args[1])[l] = inside;
  });
}

bool MakeShuffle(const Parts& opcode, const Operands& operands, Places& places,
                 Instruction& out) {
  const Type word = ParseType("b32"), predicate = ParseType("pred");
  const size_t results = operands.size() - 4;
  if (operands.size() < 5 || opcode.size() != 4 || opcode[1] != "sync") {
    return false;
  }
  Operand sink;
  sink.kind = Operand::Kind::kSink;
  out.args = {places.Place(operands[0], word),
              places.Place(results == 2 ? operands[1] : sink, predicate)};
  for (size_t k = results; k < operands.size(); ++k) {
    out.args.push_back(places.Place(operands[k], word));
  }
  out.more = {opcode[2] == "up"     ? kShuffleUp
              : opcode[2] == "down" ? kShuffleDown
              : opcode[2] == "bfly" ? kButterfly
                                    : kIndex};
  out.control = Control::kMembers;
  out.run = ShuffleLanes;
  return true;
}

// Products of a warp
// ----------------------------------------------------------

// args: registers, then the address; more: offset, transposed.
void LoadMatrices(Warp& warp, const Instruction& i, uint32_t) {
  const int count = static_cast<int>(i.args.size()) - 1;
  for (int m = 0; m < count; ++m) {
    // Eight rows of 16 bytes, whose addresses eight lanes have.
    unsigned char matrix[8][16];
    for (int row = 0; row < 8; ++row) {
      const unsigned char* from =
          warp.Shared(warp.At<uint32_t>(i.args.back())[8 * m + row] +
                          static_cast<uint32_t>(i.more[0]),
                      16, 16);
      if (from == nullptr) return;
      std::memcpy(matrix[row], from, 16);
    }
    uint16_t* to = warp.At<uint16_t>(i.args[static_cast<size_t>(m)]);
    for (int l = 0; l < kWarpLanes; ++l) {
      for (int k = 0; k < 2; ++k) {
        int row = l / 4, column = l % 4 * 2 + k;
        if (i.more[1] != 0) std::swap(row, column);
        std::memcpy(&to[2 * l + k], &matrix[row][2 * column], 2);
      }
    }
  }
}

enum Element : int64_t {
  kNoElement = -1,
  kFloat16,
  kBFloat16,
  kTf32,
  kSigned,
  kUnsigned
};

int64_t ElementOf(std::string_view type) {
  return type == "f16"    ? kFloat16
         : type == "bf16" ? kBFloat16
         : type == "tf32" ? kTf32
         : type == "s8"   ? kSigned
         : type == "u8"   ? kUnsigned
                          : kNoElement;
}
int ElementBytes(int64_t element) {
  return element == kTf32                              ? 4
         : element == kFloat16 || element == kBFloat16 ? 2
                                                       : 1;
}
double ElementAt(int64_t element, const void* at) {
  switch (element) {
    case kFloat16: {
      Float16 value;
      std::memcpy(&value, at, 2);
      return static_cast<double>(value);
    }
    case kBFloat16: {
      BFloat16 value;
      std::memcpy(&value, at, 2);
      return static_cast<double>(value);
    }
    case kTf32: {
      // The unit reads 19 bits.
      uint32_t word;
      std::memcpy(&word, at, 4);
      return std::bit_cast<float>(word & ~uint32_t{0x1fff});
    }
    case kSigned:
      return *static_cast<const int8_t*>(at);
    default:
      return *static_cast<const uint8_t*>(at);
  }
}

// Integers wrap.
template <typename T>
T SumOf(double terms, T old) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint32_t>(old) +
                          static_cast<uint32_t>(static_cast<int64_t>(terms)));
  } else {
    return static_cast<T>(terms + static_cast<double>(old));
  }
}

// m16n8: args: 4 results, registers of a, of b, 4 sums; more: registers of a
// and of b, elements of a and of b. Lane l has rows l / 4 and l / 4 + 8, or
// column l / 4, and of each 16 bytes of terms the l % 4-th word.
template <typename T>
void WarpProduct(Warp& warp, const Instruction& i, uint32_t) {
  const auto a_count = static_cast<size_t>(i.more[0]);
  const auto b_count = static_cast<size_t>(i.more[1]);
  const int bytes = ElementBytes(i.more[2]);
  const int in_word = 4 / bytes;
  const int terms = static_cast<int>(b_count) * 4 * in_word;
  double a[16][32], b[32][8];
  for (int l = 0; l < kWarpLanes; ++l) {
    for (int e = 0; e < in_word; ++e) {
      for (size_t r = 0; r < a_count; ++r) {
        const int k =
            (l % 4) * in_word + e + static_cast<int>(r / 2) * 4 * in_word;
        a[l / 4 + 8 * static_cast<int>(r % 2)][k] = ElementAt(
            i.more[2], warp.registers + i.args[4 + r] + 4 * l + e * bytes);
      }
      for (size_t r = 0; r < b_count; ++r) {
        const int k = (l % 4) * in_word + e + static_cast<int>(r) * 4 * in_word;
        b[k][l / 4] =
            ElementAt(i.more[3], warp.registers + i.args[4 + a_count + r] +
                                     4 * l + e * bytes);
      }
    }
  }
  T sums[4][kWarpLanes];
  for (size_t c = 0; c < 4; ++c) {
    std::copy_n(warp.At<T>(i.args[4 + a_count + b_count + c]), kWarpLanes,
                sums[c]);
  }
  for (int l = 0; l < kWarpLanes; ++l) {
    for (int c = 0; c < 4; ++c) {
      const int row = l / 4 + c / 2 * 8, column = l % 4 * 2 + c % 2;
      double sum = 0;
      for (int k = 0; k < terms; ++k) sum += a[row][k] * b[k][column];
      warp.At<T>(i.args[static_cast<size_t>(c)])[l] = SumOf<T>(sum, sums[c][l]);
    }
  }
}

bool MakeWarpProduct(const Parts& opcode, const Operands& operands,
                     Places& places, Instruction& out) {
  // mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
  if (opcode.size() != 10 || operands.size() != 4 ||
      !opcode[3].starts_with("m16n8k") || opcode[4] != "row" ||
      opcode[5] != "col" || opcode[6] != opcode[9]) {
    return false;
  }
  const int64_t a = ElementOf(opcode[7]), b = ElementOf(opcode[8]);
  if (a < 0 || b < 0 || ElementBytes(a) != ElementBytes(b)) return false;
  for (const Operand& operand : operands) {
    for (const Operand& one : operand.parts) {
      out.args.push_back(places.Place(one, ParseType("b32")));
    }
  }
  const auto a_count = operands[1].parts.size();
  const auto b_count = operands[2].parts.size();
  const int terms = std::stoi(opcode[3].substr(6));
  if (operands[0].parts.size() != 4 || operands[3].parts.size() != 4 ||
      a_count != 2 * b_count ||
      static_cast<int>(b_count) * 16 != terms * ElementBytes(a)) {
    return false;
  }
  out.more = {static_cast<int64_t>(a_count), static_cast<int64_t>(b_count), a,
              b};
  out.control = Control::kWarpWide;
  out.run = opcode[6] == "f32"   ? WarpProduct<float>
            : opcode[6] == "s32" ? WarpProduct<int32_t>
                                 : nullptr;
  return out.run != nullptr;
}

// Products of a warpgroup
// -----------------------------------------------------

// The shared address of bytes of a matrix that a descriptor describes: `row`
// of m or n, `column` of k, or the other way around where rows run across.
// PTX ISA, "Asynchronous warpgroup-level matrix shared memory layout".
uint32_t Place(uint64_t descriptor, bool across, int row, int column,
               int bytes) {
  const auto start = static_cast<uint32_t>(descriptor & 0x3fff) << 4;
  const auto leading = static_cast<uint32_t>(descriptor >> 16 & 0x3fff) << 4;
  const auto stride = static_cast<uint32_t>(descriptor >> 32 & 0x3fff) << 4;
  uint32_t at = start;
  if (across) {
    const int in_tile = 128 / bytes;
    at += static_cast<uint32_t>(row / in_tile) * leading +
          static_cast<uint32_t>(column / 8) * stride +
          static_cast<uint32_t>(column % 8 * 128 + row % in_tile * bytes);
  } else {
    at += static_cast<uint32_t>(row / 8) * stride +
          static_cast<uint32_t>(row % 8 * 128 + column * bytes);
  }
  // Chunks of 16 bytes change places by the row's number.
  return at ^ (at >> 7 & 7) << 4;
}

bool Gather(Warp& warp, uint64_t descriptor, bool across, int64_t element,
            int first_row, int rows, int terms, std::vector<double>& out) {
  constexpr uint64_t kSwizzle128 = 1;
  if (descriptor >> 62 != kSwizzle128 || (descriptor >> 49 & 7) != 0) {
    warp.Fail(Fault::kIllegalInstruction, "unsupported matrix descriptor");
    return false;
  }
  const int bytes = ElementBytes(element);
  out.resize(static_cast<size_t>(rows) * static_cast<size_t>(terms));
  for (int r = 0; r < rows; ++r) {
    for (int k = 0; k < terms; ++k) {
      const unsigned char* at = warp.Shared(
          Place(descriptor, across, first_row + r, k, bytes), bytes, bytes);
      if (at == nullptr) return false;
      out[static_cast<size_t>(r * terms + k)] = ElementAt(element, at);
    }
  }
  return true;
}

// Of the first operand in registers, four of each lane (PTX ISA, "Register
// fragments and shared memory matrix layouts"): rows l / 4 and 8 below, two
// terms beside each other, then those 8 terms further on.
void GatherRegisters(Warp& warp, const Instruction& i, size_t first,
                     int64_t element, std::vector<double>& out) {
  constexpr int kTerms = 16;
  out.resize(size_t{16} * kTerms);
  for (int r = 0; r < 4; ++r) {
    const auto* words =
        warp.At<uint32_t>(i.args[first + static_cast<size_t>(r)]);
    for (int l = 0; l < kWarpLanes; ++l) {
      const auto* halves = reinterpret_cast<const unsigned char*>(&words[l]);
      const int row = l / 4 + r % 2 * 8, term = l % 4 * 2 + r / 2 * 8;
      for (int p = 0; p < 2; ++p) {
        out[static_cast<size_t>(row * kTerms + term + p)] =
            ElementAt(element, halves + 2 * p);
      }
    }
  }
}

// more: columns, terms, elements of a and b, a and b across, sign of a and b,
// sums of floats, a in registers.
template <typename T>
void WarpgroupProduct(Warp& warp, const PendingProduct& product) {
  const Instruction& i = *product.instruction;
  const int columns = static_cast<int>(i.more[0]);
  const int terms = static_cast<int>(i.more[1]);
  // Each warp has 16 of the 64 rows.
  std::vector<double> a, b;
  if (i.more[9] != 0) {
    GatherRegisters(warp, i, static_cast<size_t>(columns) / 2, i.more[2], a);
  } else if (!Gather(warp, product.a, i.more[4] != 0, i.more[2],
                     warp.number % 4 * 16, 16, terms, a)) {
    return;
  }
  if (!Gather(warp, product.b, i.more[5] != 0, i.more[3], 0, columns, terms,
              b)) {
    return;
  }
  for (int n = 0; n < columns / 8; ++n) {
    for (int c = 0; c < 4; ++c) {
      T* sums = warp.At<T>(i.args[static_cast<size_t>(4 * n + c)]);
      for (int l = 0; l < kWarpLanes; ++l) {
        const int row = l / 4 + c / 2 * 8;
        const int column = 8 * n + l % 4 * 2 + c % 2;
        double sum = 0;
        for (int k = 0; k < terms; ++k) {
          sum += a[static_cast<size_t>(row * terms + k)] *
                 b[static_cast<size_t>(column * terms + k)];
        }
        sum *= static_cast<double>(i.more[6] * i.more[7]);
        sums[l] = SumOf<T>(sum, product.adds ? sums[l] : T{0});
      }
    }
  }
}

void RunProduct(Warp& warp, const PendingProduct& product) {
  const bool is_float = product.instruction->more[8] != 0;
  is_float ? WarpgroupProduct<float>(warp, product)
           : WarpgroupProduct<int32_t>(warp, product);
}

// Enqueued: shared memory and registers are read when it is waited for, which
// is the latest that the unit may do so.
void IssueProduct(Warp& warp, const Instruction& i, uint32_t) {
  // The last ones: the first operand or its last register, the second one, and
  // whether sums are added to.
  const size_t last = i.args.size() - 1;
  const bool in_registers = i.more[9] != 0;
  warp.products.open.push_back(
      {&i, in_registers ? 0 : warp.At<uint64_t>(i.args[last - 2])[0],
       warp.At<uint64_t>(i.args[last - 1])[0],
       warp.At<uint8_t>(i.args[last])[0] != 0});
}
void CommitProducts(Warp& warp, const Instruction&, uint32_t) {
  warp.products.Commit();
}
void WaitForProducts(Warp& warp, const Instruction& i, uint32_t) {
  warp.products.Wait(
      static_cast<size_t>(i.more[0]),
      [&](const PendingProduct& product) { RunProduct(warp, product); });
}
void Nothing(Warp&, const Instruction&, uint32_t) {}

// "barrier.cluster.arrive.release.aligned"; executed by PtxMachine.
bool MakeClusterBarrier(const Parts& opcode, const Operands& operands,
                        Instruction& out) {
  if (opcode.size() < 3 || !operands.empty()) return false;
  const bool arrives = opcode[2] == "arrive";
  if (!arrives && opcode[2] != "wait") return false;
  for (size_t k = 3; k < opcode.size(); ++k) {
    const std::string& part = opcode[k];
    const bool orders =
        arrives ? part == "release" || part == "relaxed" : part == "acquire";
    const bool known =
        (orders && k == 3) || (part == "aligned" && k + 1 == opcode.size());
    if (!known) return false;
  }
  out.more = {Has(opcode, "aligned")};
  out.control = arrives ? Control::kArriveCluster : Control::kWaitCluster;
  out.run = Nothing;
  return true;
}

bool MakeWarpgroupOperation(const Parts& opcode, const Operands& operands,
                            Places& places, Instruction& out) {
  out.control = Control::kWarpWide;
  if (opcode[1] == "fence" || opcode[1] == "commit_group") {
    out.run = opcode[1] == "fence" ? Nothing : CommitProducts;
    return operands.empty();
  }
  if (opcode[1] == "wait_group") {
    if (operands.size() != 1) return false;
    out.more = {static_cast<int64_t>(operands[0].value)};
    out.run = WaitForProducts;
    return true;
  }
  // wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 d, a, b, p, ...
  if (opcode[1] != "mma_async" || opcode.size() != 8 || operands.size() < 4 ||
      operands[0].kind != Operand::Kind::kVector ||
      (operands[1].kind != Operand::Kind::kRegister &&
       operands[1].kind != Operand::Kind::kVector)) {
    return false;
  }
  int columns = 0, terms = 0;
  if (std::sscanf(opcode[4].c_str(), "m64n%dk%d", &columns, &terms) != 2 ||
      operands[0].parts.size() * 2 != static_cast<size_t>(columns)) {
    return false;
  }
  const int64_t a = ElementOf(opcode[6]), b = ElementOf(opcode[7]);
  if (a < 0 || b < 0 || terms * ElementBytes(a) != 32) return false;
  for (const Operand& one : operands[0].parts) {
    out.args.push_back(places.Place(one, ParseType("b32")));
  }
  const bool in_registers = operands[1].kind == Operand::Kind::kVector;
  if (in_registers) {
    if (operands[1].parts.size() != 4 || ElementBytes(a) != 2) return false;
    for (const Operand& one : operands[1].parts) {
      out.args.push_back(places.Place(one, ParseType("b32")));
    }
  } else {
    out.args.push_back(places.Place(operands[1], ParseType("b64")));
  }
  out.args.push_back(places.Place(operands[2], ParseType("b64")));
  out.args.push_back(places.Place(operands[3], ParseType("pred")));
  // Signs of floats, then which operands in memory run across; integers have
  // neither.
  const auto flag = [&](size_t k, int64_t otherwise) {
    return k < operands.size() ? static_cast<int64_t>(operands[k].value)
                               : otherwise;
  };
  out.more = {columns,
              terms,
              a,
              b,
              in_registers ? 0 : flag(6, 0),
              flag(in_registers ? 6 : 7, 0),
              flag(4, 1),
              flag(5, 1),
              opcode[5] == "f32",
              in_registers};
  out.run = IssueProduct;
  return opcode[5] == "f32" || opcode[5] == "s32";
}

}  // namespace

bool MakeMatrixOperation(const Parts& opcode, const Operands& operands,
                         Places& places, Instruction& out) {
  const std::string& name = opcode[0];
  // Kernels run one after another, so that there is nothing to wait for.
  const bool waits = name == "griddepcontrol" &&
                     (Has(opcode, "wait") || Has(opcode, "launch_dependents"));
  if (name == "fence" || name == "membar" || waits) {
    out.run = Nothing;
    return true;
  }
  if (name == "shfl") return MakeShuffle(opcode, operands, places, out);
  if (name == "barrier" && Has(opcode, "cluster")) {
    return MakeClusterBarrier(opcode, operands, out);
  }
  if (name == "bar" || name == "barrier") {
    // args: number, lanes; more[0]: whether the lanes are given.
    if (!Has(opcode, "sync") || operands.empty() || operands.size() > 2) {
      return false;
    }
    const Type word = ParseType("u32");
    out.args = {places.Place(operands[0], word),
                places.Place(operands.back(), word)};
    out.more = {operands.size() == 2};
    out.control = Control::kBarrier;
    out.run = Nothing;
    return true;
  }
  if (name == "ldmatrix") {
    if (operands.size() != 2 || !Has(opcode, "m8n8") || !Has(opcode, "b16")) {
      return false;
    }
    const bool is_vector = operands[0].kind == Operand::Kind::kVector;
    for (const Operand& one :
         is_vector ? operands[0].parts : Operands{operands[0]}) {
      out.args.push_back(places.Place(one, ParseType("b32")));
    }
    int64_t offset = 0;
    out.args.push_back(places.Base(operands[1], /*shared=*/true, &offset));
    out.more = {offset, Has(opcode, "trans")};
    out.control = Control::kWarpWide;
    out.run = LoadMatrices;
    return true;
  }
  if (name == "mma") return MakeWarpProduct(opcode, operands, places, out);
  if (name == "wgmma") {
    return MakeWarpgroupOperation(opcode, operands, places, out);
  }
  if (name == "mbarrier") {
    return MakePhaseBarrier(opcode, operands, places, out);
  }
  return name == "cp" && MakeCopy(opcode, operands, places, out);
}

}  // namespace tilefarm::ptx
