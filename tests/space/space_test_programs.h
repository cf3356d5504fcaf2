// Programs and helpers for the tests of the design space.
#ifndef TILEFARM_TESTS_SPACE_SPACE_TEST_PROGRAMS_H_
#define TILEFARM_TESTS_SPACE_SPACE_TEST_PROGRAMS_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/substitute.h"
#include "base/rng.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"
#include "compiler/te/operators.h"

namespace tilefarm::space {

inline target::Target TestTarget(int cores = 1,
                                 const std::string& cpu = "skylake-avx512") {
  auto target =
      target::Parse("x86-64:" + cpu + ",cores=" + std::to_string(cores));
  EXPECT_TRUE(target.ok()) << target.status();
  return *target;
}

inline ir::PrimFuncPtr Build(const std::vector<te::Tensor>& params) {
  auto function = te::CreatePrimFunc("main", params);
  EXPECT_TRUE(function.ok()) << function.status();
  return *function;
}

inline ir::PrimFuncPtr MatmulRelu(int64_t m, int64_t n, int64_t k) {
  const auto type = ir::DataType::Float(32);
  const te::Tensor a = te::Placeholder("A", {m, k}, type);
  const te::Tensor b = te::Placeholder("B", {k, n}, type);
  return Build({a, b, te::Relu(te::Matmul(a, b, {}, "C"), "D")});
}

inline ir::PrimFuncPtr Matmul(int64_t m, int64_t n, int64_t k) {
  const auto type = ir::DataType::Float(32);
  const te::Tensor a = te::Placeholder("A", {m, k}, type);
  const te::Tensor b = te::Placeholder("B", {k, n}, type);
  return Build({a, b, te::Matmul(a, b, {}, "C")});
}

inline ir::PrimFuncPtr Transposed(int64_t rows, int64_t columns) {
  const te::Tensor a =
      te::Placeholder("A", {rows, columns}, ir::DataType::Float(32));
  return Build({a, te::Transpose(a, {1, 0})});
}

// The same with `params` declared constant.
inline ir::PrimFuncPtr WithConstants(const ir::PrimFuncPtr& program,
                                     std::vector<int> params) {
  auto copy = std::make_shared<ir::PrimFunc>(*program);
  copy->attrs["layout_free_buffers"] =
      ir::Attr(ir::AttrList(params.begin(), params.end()));
  return copy;
}

// Weights are [n, k].
inline ir::PrimFuncPtr Dense(int64_t m, int64_t n, int64_t k) {
  const auto type = ir::DataType::Float(32);
  const te::Tensor a = te::Placeholder("A", {m, k}, type);
  const te::Tensor b = te::Placeholder("B", {n, k}, type);
  te::MatmulOptions options;
  options.transpose_b = true;
  return Build({a, b, te::Matmul(a, b, options, "C")});
}

inline ir::PrimFuncPtr PaddedConv() {
  const auto type = ir::DataType::Float(32);
  const te::Tensor data = te::Placeholder("data", {1, 6, 6, 4}, type);
  const te::Tensor weight = te::Placeholder("weight", {3, 3, 4, 16}, type);
  te::ConvOptions options;
  options.padding = {1, 1};
  return Build({data, weight, te::Relu(te::Conv2dNhwc(data, weight, options))});
}

// Stride 2, followed by a ReLU; two of four taps in a row meet an input.
inline ir::PrimFuncPtr TransposedConv() {
  auto function = ir::ParseFunction(R"(
@T.prim_func
def main(A: T.Buffer((10, 6, 16), "float32"),
         W: T.Buffer((4, 4, 16, 32), "float32"),
         D: T.Buffer((16, 8, 32), "float32")):
    C = T.alloc_buffer((16, 8, 32), "float32")
    for h, w, c, r, s, k in T.grid(16, 8, 32, 4, 4, 16):
        with T.block("C"):
            vh, vw, vc, vr, vs, vk = T.axis.remap("SSSRRR", [h, w, c, r, s, k])
            with T.init():
                C[vh, vw, vc] = T.float32(0)
            C[vh, vw, vc] = C[vh, vw, vc] + T.if_then_else(
                (vh + vr) % 2 == 0 and (vw + vs) % 2 == 0,
                A[(vh + vr) // 2, (vw + vs) // 2, vk],
                T.float32(0)) * W[3 - vr, 3 - vs, vk, vc]
    for h, w, c in T.grid(16, 8, 32):
        with T.block("D"):
            vh, vw, vc = T.axis.remap("SSS", [h, w, c])
            D[vh, vw, vc] = T.max(C[vh, vw, vc], T.float32(0))
)",
                                    "transposed_conv.py");
  EXPECT_TRUE(function.ok()) << function.status();
  return *function;
}

// Sums of type `sum` of products of types `a` and `b`, in TVMScript.
inline std::string NarrowMatmulText(int m, int n, int k, const char* a,
                                    const char* b, const char* sum,
                                    const char* layout_free = "[]") {
  return absl::Substitute(R"(
@T.prim_func
def main(A: T.Buffer(($0, $2), "$3"), B: T.Buffer(($2, $1), "$4"), C: T.Buffer(($0, $1), "$5")):
    T.func_attr({"layout_free_buffers": $6})
    for i, j, k in T.grid($0, $1, $2):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.cast(0, "$5")
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "$5") * T.cast(B[vk, vj], "$5")
)",
                          m, n, k, a, b, sum, layout_free);
}

inline ir::PrimFuncPtr NarrowMatmul(int m, int n, int k, const char* a,
                                    const char* b, const char* sum) {
  auto function =
      ir::ParseFunction(NarrowMatmulText(m, n, k, a, b, sum), "main.py");
  EXPECT_TRUE(function.ok()) << function.status();
  return *function;
}

// A byte convolution with padding of one, followed by a ReLU.
inline ir::PrimFuncPtr NarrowConvRelu(int size, int in, int out) {
  auto function = ir::ParseFunction(absl::Substitute(R"(
@T.prim_func
def main(A: T.Buffer(($0, $0, $2), "uint8"), W: T.Buffer((3, 3, $2, $3), "int8"), D: T.Buffer(($0, $0, $3), "int32")):
    P = T.alloc_buffer(($1, $1, $2), "uint8")
    C = T.alloc_buffer(($0, $0, $3), "int32")
    for h, w, c in T.grid($1, $1, $2):
        with T.block("P"):
            vh, vw, vc = T.axis.remap("SSS", [h, w, c])
            P[vh, vw, vc] = T.if_then_else(1 <= vh and vh < $0 + 1 and 1 <= vw and vw < $0 + 1, A[vh - 1, vw - 1, vc], T.uint8(0))
    for h, w, o, r, s, c in T.grid($0, $0, $3, 3, 3, $2):
        with T.block("C"):
            vh, vw, vo, vr, vs, vc = T.axis.remap("SSSRRR", [h, w, o, r, s, c])
            with T.init():
                C[vh, vw, vo] = 0
            C[vh, vw, vo] = C[vh, vw, vo] + T.cast(P[vh + vr, vw + vs, vc], "int32") * T.cast(W[vr, vs, vc, vo], "int32")
    for h, w, o in T.grid($0, $0, $3):
        with T.block("D"):
            vh, vw, vo = T.axis.remap("SSS", [h, w, o])
            D[vh, vw, vo] = T.max(C[vh, vw, vo], 0)
)",
                                                     size, size + 2, in, out),
                                    "main.py");
  EXPECT_TRUE(function.ok()) << function.status();
  return *function;
}

inline ir::PrimFuncPtr Norm(int64_t rows, int64_t columns) {
  const te::Tensor a =
      te::Placeholder("A", {rows, columns}, ir::DataType::Float(32));
  return Build({a, te::ReduceOver(a, te::Reducer::kSum, {1}, false, "S")});
}

inline ir::PrimFuncPtr SmallSoftmax() {
  const te::Tensor a = te::Placeholder("A", {6, 40}, ir::DataType::Float(32));
  return Build({a, te::Softmax(a)});
}

// softmax(relu(a b)) c, with `keys` columns of b.
inline ir::PrimFuncPtr AttentionHead(int64_t rows, int64_t keys,
                                     int64_t depth) {
  const auto type = ir::DataType::Float(32);
  const te::Tensor a = te::Placeholder("A", {rows, depth}, type);
  const te::Tensor b = te::Placeholder("B", {depth, keys}, type);
  const te::Tensor c = te::Placeholder("C", {keys, depth}, type);
  const te::Tensor scores = te::Relu(te::Matmul(a, b, {}, "S"));
  return Build({a, b, c, te::Matmul(te::Softmax(scores), c, {}, "O")});
}

// The contents of the last buffer after running the program on random numbers.
// `special`, if not 0, replaces a few elements of the second parameter: so few
// that sums show each of them.
inline std::vector<float> Outputs(const ir::PrimFunc& function,
                                  float special = 0) {
  Rng rng(7);
  std::vector<std::vector<float>> buffers;
  std::vector<std::span<std::byte>> spans;
  for (const ir::Buffer& param : function.params) {
    std::vector<float> values(param->num_elements());
    for (float& value : values) {
      value = static_cast<float>(rng.Uniform() * 2 - 1);
    }
    buffers.push_back(std::move(values));
  }
  for (size_t i = 0; special != 0 && i < buffers[1].size(); i += 1009) {
    buffers[1][i] = special;
  }
  for (std::vector<float>& values : buffers) {
    spans.push_back(std::as_writable_bytes(std::span(values)));
  }
  const absl::Status status = ir::Interpret(function, spans);
  EXPECT_TRUE(status.ok()) << status << "\n" << ir::Print(function);
  return buffers.back();
}

inline void ExpectSameOutputs(const ir::PrimFunc& a, const ir::PrimFunc& b) {
  const std::vector<float> x = Outputs(a), y = Outputs(b);
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(x[i], y[i], 1e-4) << "element " << i << "\n" << ir::Print(b);
  }
}

}  // namespace tilefarm::space

#endif  // TILEFARM_TESTS_SPACE_SPACE_TEST_PROGRAMS_H_
