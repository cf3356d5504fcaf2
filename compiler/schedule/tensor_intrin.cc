#include "compiler/schedule/tensor_intrin.h"

#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "base/check.h"
#include "compiler/ir/parser.h"

namespace tilefarm::schedule {
namespace {

struct IntrinText {
  const char* name;
  const char* parameters;
  const char* description;
  const char* implementation;
};

// The explicit list. Implementations put the widest contiguous dimension
// innermost and vectorized, and reductions around it unrolled, so that the
// accumulators stay in registers.
constexpr IntrinText kIntrins[] = {
    // C[4, 4] += A[4, 4] * B[4, 4], rows of C as vectors.
    {"matmul4x4",
     R"(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"),
        C: T.Buffer((4, 4), "float32"))",
     R"(
    for i, j, k in T.grid(4, 4, 4):
        with T.block("update"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)",
     R"(
    for k in T.unroll(4):
        for i in T.unroll(4):
            for j in T.vectorized(4):
                with T.block("update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)"},
    // Four products of bytes into one 32-bit sum.
    {"dot_4x1x1_uint8_int8_int32",
     R"(A: T.Buffer((4,), "uint8"), B: T.Buffer((4,), "int8"),
        C: T.Buffer((1,), "int32"))",
     R"(
    for k in T.serial(4):
        with T.block("update"):
            vk = T.axis.reduce(4, k)
            C[0] = C[0] + T.cast(A[vk], "int32") * T.cast(B[vk], "int32")
)",
     R"(
    with T.block("dot"):
        T.reads(C[0], A[0:4], B[0:4])
        T.writes(C[0])
        C[0] = C[0] + (T.cast(A[0], "int32") * T.cast(B[0], "int32") +
                       T.cast(A[1], "int32") * T.cast(B[1], "int32") +
                       T.cast(A[2], "int32") * T.cast(B[2], "int32") +
                       T.cast(A[3], "int32") * T.cast(B[3], "int32"))
)"},
};

// One instruction: a register of sums, each of `group` products, with a group
// of A for all of them and a group of B for each; or a tile of 16 such
// registers of a matrix unit, each of 16 groups.
struct ProductIntrin {
  const char* name;
  int lanes;
  int group;
  const char* a;
  const char* b;
  const char* sum;
  target::Capability capability;
  bool is_tile = false;
};

using enum target::Capability;

constexpr int kTileRegisters = 8;

constexpr ProductIntrin kProducts[] = {
    // vpdpbusd. Narrower registers have it without AVX-512, too.
    {"dot_16x4_vnni", 16, 4, "uint8", "int8", "int32", kMixedByteDot512},
    {"dot_8x4_vnni", 8, 4, "uint8", "int8", "int32", kMixedByteDot256},
    // vpdpbssd, vpdpbuud.
    {"dot_8x4_i8i8s32_vnni", 8, 4, "int8", "int8", "int32", kByteDot256},
    {"dot_8x4_u8u8s32_vnni", 8, 4, "uint8", "uint8", "int32", kByteDot256},
    // vpdpwssd.
    {"dot_16x2_vnni", 16, 2, "int16", "int16", "int32", kInt16Dot512},
    // Where there is none of them: vpmaddwd of the bytes, widened in registers.
    {"dot_16x4_u8i8s32_madd", 16, 4, "uint8", "int8", "int32",
     kInt16PairProduct512},
    {"dot_16x4_i8i8s32_madd", 16, 4, "int8", "int8", "int32",
     kInt16PairProduct512},
    {"dot_16x4_u8u8s32_madd", 16, 4, "uint8", "uint8", "int32",
     kInt16PairProduct512},
    {"dot_8x4_u8i8s32_madd", 8, 4, "uint8", "int8", "int32",
     kInt16PairProduct256},
    {"dot_8x4_i8i8s32_madd", 8, 4, "int8", "int8", "int32",
     kInt16PairProduct256},
    {"dot_8x4_u8u8s32_madd", 8, 4, "uint8", "uint8", "int32",
     kInt16PairProduct256},
    {"dot_16x2_i16i16s32_madd", 16, 2, "int16", "int16", "int32",
     kInt16PairProduct512},
    {"dot_8x2_i16i16s32_madd", 8, 2, "int16", "int16", "int32",
     kInt16PairProduct256},
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
    // tdpbusd, tdpbssd, tdpbf16ps.
    {"amx_16x16x64_u8i8s32", 16, 4, "uint8", "int8", "int32", kByteTile, true},
    {"amx_16x16x64_i8i8s32", 16, 4, "int8", "int8", "int32", kByteTile, true},
    {"amx_16x16x32_bf16", 16, 2, "bfloat16", "bfloat16", "float32",
     kBFloat16Tile, true},
};

TensorIntrin Parse(const std::string& name, const std::string& parameters,
                   const std::string& description,
                   const std::string& implementation) {
  const auto parse = [&](const std::string& body) {
    return ir::ParseFunction(
        absl::StrCat("@T.prim_func\ndef main(", parameters, "):", body), name);
  };
  auto described = parse(description);
  auto implemented = parse(implementation);
  TF_CHECK(described.ok() && implemented.ok());
  return {name, *described, *implemented, std::nullopt, 0};
}

TensorIntrin ParseProduct(const ProductIntrin& product) {
  // In the order of the instruction.
  std::string sum = "C[vi]";
  for (int k = product.group - 1; k >= 0; --k) {
    absl::StrAppend(
        &sum,
        absl::Substitute(R"( + T.cast(A[$0], "$1") * T.cast(B[vi, $0], "$1"))",
                         k, product.sum));
  }
  const auto fill = [&](const char* text) {
    return absl::Substitute(text, product.lanes, product.group, product.a,
                            product.b, product.sum, sum,
                            product.lanes * product.group);
  };
  TensorIntrin intrin =
      product.is_tile
          ? Parse(product.name, fill(R"(A: T.Buffer(($0, $6), "$2"),
                          B: T.Buffer(($0, $0, $1), "$3"),
                          C: T.Buffer(($0, $0), "$4"))"),
                  fill(R"(
    for i, j, k in T.grid($0, $0, $6):
        with T.block("update"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "$4") * T.cast(B[vk // $1, vj, vk % $1], "$4")
)"),
                  fill(R"(
    for i in T.serial($0, annotations={"tilefarm.matrix_product": 1}):
        for j in T.vectorized($0):
            for k, g in T.grid($0, $1):
                with T.block("update"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    vk = T.axis.reduce($6, k * $1 + g)
                    C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "$4") * T.cast(B[vk // $1, vj, vk % $1], "$4")
)"))
          : Parse(product.name,
                  fill(R"(A: T.Buffer(($1,), "$2"), B: T.Buffer(($0, $1), "$3"),
                          C: T.Buffer(($0,), "$4"))"),
                  fill(R"(
    for i, k in T.grid($0, $1):
        with T.block("update"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi] = C[vi] + T.cast(A[vk], "$4") * T.cast(B[vi, vk], "$4")
)"),
                  fill(R"(
    for i in T.vectorized($0, annotations={"tilefarm.dot_product": 1}):
        with T.block("dot"):
            vi = T.axis.spatial($0, i)
            T.reads(C[vi], A[0:$1], B[vi, 0:$1])
            T.writes(C[vi])
            C[vi] = $5
)"));
  intrin.capability = product.capability;
  if (product.is_tile) intrin.registers = kTileRegisters;
  return intrin;
}

std::vector<TensorIntrin> ParseAll() {
  std::vector<TensorIntrin> result;
  for (const IntrinText& text : kIntrins) {
    result.push_back(Parse(text.name, text.parameters, text.description,
                           text.implementation));
  }
  for (const ProductIntrin& product : kProducts) {
    result.push_back(ParseProduct(product));
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
