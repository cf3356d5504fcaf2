#include "compiler/schedule/tensor_intrin.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "base/check.h"
#include "compiler/ir/parser.h"

namespace tilefarm::schedule {
namespace {

struct IntrinText {
  const char* name;
  const char* description;
  const char* implementation;
};

// The explicit list. Implementations put the widest contiguous dimension
// innermost and vectorized, and reductions around it unrolled, so that the
// accumulators stay in registers.
constexpr IntrinText kIntrins[] = {
    // C[4, 4] += A[4, 4] * B[4, 4], rows of C as vectors.
    {"matmul4x4",
     R"(
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"),
         C: T.Buffer((4, 4), "float32")):
    for i, j, k in T.grid(4, 4, 4):
        with T.block("update"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)",
     R"(
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"),
         C: T.Buffer((4, 4), "float32")):
    for k in T.unroll(4):
        for i in T.unroll(4):
            for j in T.vectorized(4):
                with T.block("update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)"},
    // Four products of bytes into one 32-bit sum.
    {"dot_4x1x1_uint8_int8_int32",
     R"(
@T.prim_func
def main(A: T.Buffer((4,), "uint8"), B: T.Buffer((4,), "int8"),
         C: T.Buffer((1,), "int32")):
    for k in T.serial(4):
        with T.block("update"):
            vk = T.axis.reduce(4, k)
            C[0] = C[0] + T.cast(A[vk], "int32") * T.cast(B[vk], "int32")
)",
     R"(
@T.prim_func
def main(A: T.Buffer((4,), "uint8"), B: T.Buffer((4,), "int8"),
         C: T.Buffer((1,), "int32")):
    with T.block("dot"):
        T.reads(C[0], A[0:4], B[0:4])
        T.writes(C[0])
        C[0] = C[0] + (T.cast(A[0], "int32") * T.cast(B[0], "int32") +
                       T.cast(A[1], "int32") * T.cast(B[1], "int32") +
                       T.cast(A[2], "int32") * T.cast(B[2], "int32") +
                       T.cast(A[3], "int32") * T.cast(B[3], "int32"))
)"},
};

// A register of sums, each of `group` products: one instruction. A group of A
// for all of them, a group of B for each.
struct DotIntrin {
  const char* name;
  int lanes;
  int group;
  const char* a;
  const char* b;
  const char* sum;
  target::Capability capability;
};

using enum target::Capability;

constexpr DotIntrin kDotIntrins[] = {
    // vpdpbusd. Narrower registers have it without AVX-512, too.
    {"dot_16x4_vnni", 16, 4, "uint8", "int8", "int32", kMixedByteDot512},
    {"dot_8x4_vnni", 8, 4, "uint8", "int8", "int32", kMixedByteDot256},
    // vpdpbssd, vpdpbuud.
    {"dot_8x4_i8i8s32_vnni", 8, 4, "int8", "int8", "int32", kByteDot256},
    {"dot_8x4_u8u8s32_vnni", 8, 4, "uint8", "uint8", "int32", kByteDot256},
    // vpdpwssd.
    {"dot_16x2_vnni", 16, 2, "int16", "int16", "int32", kInt16Dot512},
    // vdpbf16ps. It adds the second product first, rounds after each, and
    // takes subnormal numbers for zero on both ends: an error below 2^-125 a
    // product, far within what verification allows for rounding unless all of
    // an output is that small.
    {"dot_16x2_bf16", 16, 2, "bfloat16", "bfloat16", "float32",
     kBFloat16Dot512},
    // sdot, udot, usdot.
    {"dot_4x4_i8i8s32_sdot", 4, 4, "int8", "int8", "int32", kByteDot128},
    {"dot_4x4_u8u8s32_udot", 4, 4, "uint8", "uint8", "int32", kByteDot128},
    {"dot_4x4_u8i8s32_usdot", 4, 4, "uint8", "int8", "int32", kMixedByteDot128},
};

std::string DotDescription(const DotIntrin& dot) {
  return absl::Substitute(R"(
@T.prim_func
def main(A: T.Buffer(($1,), "$2"), B: T.Buffer(($0, $1), "$3"),
         C: T.Buffer(($0,), "$4")):
    for i, k in T.grid($0, $1):
        with T.block("update"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi] = C[vi] + T.cast(A[vk], "$4") * T.cast(B[vi, vk], "$4")
)",
                          dot.lanes, dot.group, dot.a, dot.b, dot.sum);
}

// In the order of the instruction.
std::string DotImplementation(const DotIntrin& dot) {
  std::string sum = "C[vi]";
  for (int k = dot.group - 1; k >= 0; --k) {
    absl::StrAppend(
        &sum,
        absl::Substitute(R"( + T.cast(A[$0], "$1") * T.cast(B[vi, $0], "$1"))",
                         k, dot.sum));
  }
  return absl::Substitute(R"(
@T.prim_func
def main(A: T.Buffer(($1,), "$2"), B: T.Buffer(($0, $1), "$3"),
         C: T.Buffer(($0,), "$4")):
    for i in T.vectorized($0, annotations={"tilefarm.dot_product": 1}):
        with T.block("dot"):
            vi = T.axis.spatial($0, i)
            T.reads(C[vi], A[0:$1], B[vi, 0:$1])
            T.writes(C[vi])
            C[vi] = $5
)",
                          dot.lanes, dot.group, dot.a, dot.b, dot.sum, sum);
}

// A tile of 16 x 16 sums of a matrix unit, each of 16 groups.
struct TileIntrin {
  const char* name;
  int group;
  const char* a;
  const char* b;
  const char* sum;
  target::Capability capability;
};

constexpr int kTileRegisters = 8;

constexpr TileIntrin kTileIntrins[] = {
    // tdpbusd, tdpbssd, tdpbf16ps.
    {"amx_16x16x64_u8i8s32", 4, "uint8", "int8", "int32", kByteTile},
    {"amx_16x16x64_i8i8s32", 4, "int8", "int8", "int32", kByteTile},
    {"amx_16x16x32_bf16", 2, "bfloat16", "bfloat16", "float32", kBFloat16Tile},
};

std::string TileDescription(const TileIntrin& tile) {
  return absl::Substitute(R"(
@T.prim_func
def main(A: T.Buffer((16, $1), "$2"), B: T.Buffer((16, 16, $0), "$3"),
         C: T.Buffer((16, 16), "$4")):
    for i, j, k in T.grid(16, 16, $1):
        with T.block("update"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "$4") * T.cast(B[vk // $0, vj, vk % $0], "$4")
)",
                          tile.group, 16 * tile.group, tile.a, tile.b,
                          tile.sum);
}

std::string TileImplementation(const TileIntrin& tile) {
  return absl::Substitute(R"(
@T.prim_func
def main(A: T.Buffer((16, $1), "$2"), B: T.Buffer((16, 16, $0), "$3"),
         C: T.Buffer((16, 16), "$4")):
    for i in T.serial(16, annotations={"tilefarm.matrix_product": 1}):
        for j in T.vectorized(16):
            for k, g in T.grid(16, $0):
                with T.block("update"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    vk = T.axis.reduce($1, k * $0 + g)
                    C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "$4") * T.cast(B[vk // $0, vj, vk % $0], "$4")
)",
                          tile.group, 16 * tile.group, tile.a, tile.b,
                          tile.sum);
}

TensorIntrin Parse(const std::string& name, const std::string& description,
                   const std::string& implementation,
                   std::optional<target::Capability> capability) {
  auto described = ir::ParseFunction(description, name);
  auto implemented = ir::ParseFunction(implementation, name);
  TF_CHECK(described.ok() && implemented.ok());
  return {name, *described, *implemented, capability, 0};
}

std::vector<TensorIntrin> ParseAll() {
  std::vector<TensorIntrin> result;
  for (const IntrinText& text : kIntrins) {
    result.push_back(
        Parse(text.name, text.description, text.implementation, std::nullopt));
  }
  for (const DotIntrin& dot : kDotIntrins) {
    result.push_back(Parse(dot.name, DotDescription(dot),
                           DotImplementation(dot), dot.capability));
  }
  for (const TileIntrin& tile : kTileIntrins) {
    result.push_back(Parse(tile.name, TileDescription(tile),
                           TileImplementation(tile), tile.capability));
    result.back().registers = kTileRegisters;
  }
  return result;
}

}  // namespace

const std::vector<TensorIntrin>& TensorIntrins() {
  static const auto& intrins = *new std::vector<TensorIntrin>(ParseAll());
  return intrins;
}

std::optional<ProductShape> ShapeOf(const TensorIntrin& intrin) {
  const auto& params = intrin.description->params;
  if (params.size() != 3) return std::nullopt;
  const ir::BufferNode &a = *params[0], &b = *params[1], &sum = *params[2];
  if (sum.ndim() < 1 || sum.ndim() > 2 || a.ndim() != sum.ndim() ||
      b.ndim() != sum.ndim() + 1 ||
      b.shape[b.shape.size() - 2] != sum.shape.back()) {
    return std::nullopt;
  }
  ProductShape shape;
  if (sum.ndim() == 2) shape.rows = sum.shape[0];
  shape.lanes = sum.shape.back();
  shape.products = a.shape.back();
  shape.group = b.shape.back();
  shape.a = a.dtype;
  shape.b = b.dtype;
  shape.sum = sum.dtype;
  return shape;
}

absl::StatusOr<const TensorIntrin*> FindTensorIntrin(std::string_view name) {
  std::string known;
  for (const TensorIntrin& intrin : TensorIntrins()) {
    if (intrin.name == name) return &intrin;
    absl::StrAppend(&known, known.empty() ? "" : ", ", intrin.name);
  }
  return absl::NotFoundError(absl::StrCat(
      "no tensor intrinsic \"", std::string(name), "\"; there are: ", known));
}

absl::Status CheckCapabilities(const Trace& trace,
                               const target::Capabilities& capabilities) {
  for (const Instruction& instruction : trace.instructions) {
    if (instruction.primitive != "tensorize") continue;
    for (const auto& [key, arg] : instruction.args) {
      const auto* attr = std::get_if<ir::Attr>(&arg.value);
      if (key != "tensor_intrin" || attr == nullptr ||
          attr->AsString() == nullptr) {
        continue;
      }
      const auto intrin = FindTensorIntrin(*attr->AsString());
      // Unknown ones are replay's to refuse.
      if (!intrin.ok() || !(*intrin)->capability) continue;
      const target::Capability needed = *(*intrin)->capability;
      if (!capabilities.Has(needed)) {
        return absl::InvalidArgumentError(
            absl::StrCat("tensorize: intrinsic ", (*intrin)->name,
                         " needs a target with ", target::Requirement(needed)));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::schedule
