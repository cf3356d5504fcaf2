#include "compiler/schedule/tensor_intrin.h"

#include "absl/strings/str_cat.h"
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
    // Sixteen such sums at once: a VNNI register.
    {"dot_16x4_vnni",
     R"(
@T.prim_func
def main(A: T.Buffer((4,), "uint8"), B: T.Buffer((16, 4), "int8"),
         C: T.Buffer((16,), "int32")):
    for i, k in T.grid(16, 4):
        with T.block("update"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi] = C[vi] + T.cast(A[vk], "int32") * T.cast(B[vi, vk], "int32")
)",
     R"(
@T.prim_func
def main(A: T.Buffer((4,), "uint8"), B: T.Buffer((16, 4), "int8"),
         C: T.Buffer((16,), "int32")):
    for i in T.vectorized(16):
        with T.block("dot"):
            vi = T.axis.spatial(16, i)
            T.reads(C[vi], A[0:4], B[vi, 0:4])
            T.writes(C[vi])
            C[vi] = C[vi] + (
                T.cast(A[0], "int32") * T.cast(B[vi, 0], "int32") +
                T.cast(A[1], "int32") * T.cast(B[vi, 1], "int32") +
                T.cast(A[2], "int32") * T.cast(B[vi, 2], "int32") +
                T.cast(A[3], "int32") * T.cast(B[vi, 3], "int32"))
)"},
    // The signed form, four sums: an ARM dot product.
    {"dot_4x4_i8i8s32_sdot",
     R"(
@T.prim_func
def main(A: T.Buffer((4,), "int8"), B: T.Buffer((4, 4), "int8"),
         C: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 4):
        with T.block("update"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi] = C[vi] + T.cast(A[vk], "int32") * T.cast(B[vi, vk], "int32")
)",
     R"(
@T.prim_func
def main(A: T.Buffer((4,), "int8"), B: T.Buffer((4, 4), "int8"),
         C: T.Buffer((4,), "int32")):
    for i in T.vectorized(4):
        with T.block("dot"):
            vi = T.axis.spatial(4, i)
            T.reads(C[vi], A[0:4], B[vi, 0:4])
            T.writes(C[vi])
            C[vi] = C[vi] + (
                T.cast(A[0], "int32") * T.cast(B[vi, 0], "int32") +
                T.cast(A[1], "int32") * T.cast(B[vi, 1], "int32") +
                T.cast(A[2], "int32") * T.cast(B[vi, 2], "int32") +
                T.cast(A[3], "int32") * T.cast(B[vi, 3], "int32"))
)"},
};

std::vector<TensorIntrin> ParseAll() {
  std::vector<TensorIntrin> result;
  for (const IntrinText& text : kIntrins) {
    auto description = ir::ParseFunction(text.description, text.name);
    auto implementation = ir::ParseFunction(text.implementation, text.name);
    TF_CHECK(description.ok() && implementation.ok());
    result.push_back({text.name, *description, *implementation});
  }
  return result;
}

}  // namespace

const std::vector<TensorIntrin>& TensorIntrins() {
  static const auto& intrins = *new std::vector<TensorIntrin>(ParseAll());
  return intrins;
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

}  // namespace tilefarm::schedule
