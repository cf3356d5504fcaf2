// Programs for the tests of GPU schedules, small and of usual sizes.
#ifndef TILEFARM_TESTS_SPACE_GPU_TEST_PROGRAMS_H_
#define TILEFARM_TESTS_SPACE_GPU_TEST_PROGRAMS_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/space/space_test_programs.h"

namespace tilefarm::space {

inline target::Target GpuTarget(const std::string& text = "sim:sm_80") {
  auto target = target::Parse(text);
  EXPECT_TRUE(target.ok()) << target.status();
  return *target;
}

inline te::Tensor Input(const char* name, std::vector<int64_t> shape) {
  return te::Placeholder(name, std::move(shape), ir::DataType::Float(32));
}

inline ir::PrimFuncPtr BatchedMatmul(int64_t b, int64_t m, int64_t n,
                                     int64_t k) {
  const te::Tensor x = Input("A", {b, m, k}), y = Input("B", {b, k, n});
  return Build({x, y, te::BatchMatmul(x, y)});
}

inline ir::PrimFuncPtr ConvNhwc(int64_t size, int64_t in, int64_t out) {
  const te::Tensor data = Input("data", {1, size, size, in});
  const te::Tensor weight = Input("weight", {3, 3, in, out});
  te::ConvOptions options;
  options.padding = {1, 1};
  return Build({data, weight, te::Relu(te::Conv2dNhwc(data, weight, options))});
}

inline ir::PrimFuncPtr ConvNchw(int64_t size, int64_t in, int64_t out) {
  const te::Tensor data = Input("data", {1, in, size, size});
  const te::Tensor weight = Input("weight", {out, in, 3, 3});
  te::ConvOptions options;
  options.stride = {2, 2};
  options.padding = {1, 1};
  return Build({data, weight, te::Conv2dNchw(data, weight, options)});
}

inline ir::PrimFuncPtr DepthwiseConv(int64_t size, int64_t channels) {
  const te::Tensor data = Input("data", {1, size, size, channels});
  const te::Tensor weight = Input("weight", {3, 3, channels, 1});
  te::ConvOptions options;
  options.padding = {1, 1};
  return Build({data, weight, te::DepthwiseConv2dNhwc(data, weight, options)});
}

inline ir::PrimFuncPtr SoftmaxOf(int64_t rows, int64_t columns) {
  const te::Tensor a = Input("A", {rows, columns});
  return Build({a, te::Softmax(a)});
}

inline ir::PrimFuncPtr LayerNormOf(int64_t rows, int64_t columns) {
  const te::Tensor a = Input("A", {rows, columns});
  const te::Tensor gamma = Input("gamma", {columns});
  const te::Tensor beta = Input("beta", {columns});
  return Build({a, gamma, beta, te::LayerNorm(a, gamma, beta)});
}

inline ir::PrimFuncPtr ElementwiseChain(int64_t rows, int64_t columns) {
  const te::Tensor a = Input("A", {rows, columns});
  const te::Tensor b = Input("B", {rows, columns});
  return Build({a, b, te::Gelu(te::Add(te::Exp(a), b))});
}

inline ir::PrimFuncPtr Attention(int64_t heads, int64_t length, int64_t dim) {
  const te::Tensor q = Input("Q", {heads, length, dim});
  const te::Tensor k = Input("K", {heads, length, dim});
  const te::Tensor v = Input("V", {heads, length, dim});
  te::MatmulOptions transposed;
  transposed.transpose_b = true;
  const te::Tensor scores = te::BatchMatmul(q, k, transposed, "scores");
  return Build({q, k, v, te::BatchMatmul(te::Softmax(scores), v, {}, "out")});
}

inline ir::PrimFuncPtr ColumnSums(int64_t rows, int64_t columns) {
  const te::Tensor a = Input("A", {rows, columns});
  return Build({a, te::ReduceOver(a, te::Reducer::kSum, {0}, false, "S")});
}

struct GpuProgram {
  std::string name;
  ir::PrimFuncPtr usual;  // of a size worth tuning
  ir::PrimFuncPtr small;  // the interpreter runs it
};

inline std::vector<GpuProgram> GpuPrograms() {
  return {
      {"matmul", Matmul(1024, 1024, 1024), Matmul(32, 32, 16)},
      {"odd_matmul", Matmul(127, 33, 65), Matmul(19, 33, 13)},
      {"matmul_relu", MatmulRelu(512, 384, 256), MatmulRelu(20, 32, 12)},
      {"dense", Dense(128, 768, 3072), Dense(17, 24, 10)},
      {"batched_matmul", BatchedMatmul(12, 128, 128, 64),
       BatchedMatmul(2, 17, 32, 12)},
      {"conv_nhwc", ConvNhwc(56, 64, 64), ConvNhwc(9, 4, 8)},
      {"conv_nchw", ConvNchw(56, 64, 128), ConvNchw(9, 4, 8)},
      {"depthwise", DepthwiseConv(56, 64), DepthwiseConv(9, 8)},
      {"softmax", SoftmaxOf(128, 768), SoftmaxOf(6, 70)},
      {"layer_norm", LayerNormOf(128, 768), LayerNormOf(6, 70)},
      {"row_sum", Norm(64, 100000), Norm(3, 1000)},
      {"column_sum", ColumnSums(100000, 24), ColumnSums(300, 13)},
      {"vector_matrix", MatmulRelu(1, 4096, 1024), MatmulRelu(1, 20, 70)},
      {"chain", ElementwiseChain(1024, 1024), ElementwiseChain(24, 36)},
      {"transpose", Transposed(1024, 768), Transposed(70, 40)},
      {"attention", Attention(12, 128, 64), Attention(2, 20, 8)},
  };
}

}  // namespace tilefarm::space

#endif  // TILEFARM_TESTS_SPACE_GPU_TEST_PROGRAMS_H_
