// The operator library: the usual operators as tensor expressions. Shapes must
// fit, which is checked with CHECK, because code builds these programs, not
// users. Layouts are in the names.
#ifndef TILEFARM_COMPILER_TE_OPERATORS_H_
#define TILEFARM_COMPILER_TE_OPERATORS_H_

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "compiler/te/tensor.h"

namespace tilefarm::te {

// --- Elementwise ---------------------------------------------------------

Tensor Map(const Tensor& a, const std::function<ir::Expr(ir::Expr)>& f,
           std::string name = "T_map");
// Shapes broadcast as in NumPy.
Tensor Zip(const Tensor& a, const Tensor& b,
           const std::function<ir::Expr(ir::Expr, ir::Expr)>& f,
           std::string name = "T_zip");
Tensor Add(const Tensor& a, const Tensor& b, std::string name = "T_add");
Tensor Subtract(const Tensor& a, const Tensor& b,
                std::string name = "T_subtract");
Tensor Multiply(const Tensor& a, const Tensor& b,
                std::string name = "T_multiply");
Tensor Divide(const Tensor& a, const Tensor& b, std::string name = "T_divide");
Tensor Relu(const Tensor& a, std::string name = "T_relu");
Tensor Exp(const Tensor& a, std::string name = "T_exp");
Tensor Tanh(const Tensor& a, std::string name = "T_tanh");
Tensor Sigmoid(const Tensor& a, std::string name = "T_sigmoid");
// 0.5 x (1 + erf(x / sqrt 2)) (Hendrycks and Gimpel, 2016).
Tensor Gelu(const Tensor& a, std::string name = "T_gelu");
Tensor CastTo(const Tensor& a, ir::DataType dtype, std::string name = "T_cast");

enum class Activation { kNone, kRelu, kGelu, kTanh, kSigmoid };
Tensor Activate(const Tensor& a, Activation activation);

// --- Products ------------------------------------------------------------

struct MatmulOptions {
  bool transpose_a = false;  // A is [K, M]
  bool transpose_b = false;  // B is [N, K]
  ir::DataType accumulate = ir::DataType::Float(32);
};
// [M, K] x [K, N] -> [M, N]
Tensor Matmul(const Tensor& a, const Tensor& b, MatmulOptions options = {},
              std::string name = "T_matmul");
// [B, M, K] x [B, K, N] -> [B, M, N]
Tensor BatchMatmul(const Tensor& a, const Tensor& b, MatmulOptions options = {},
                   std::string name = "T_batch_matmul");
// activation(x [M, K] x weight [N, K]^T + bias [N])
Tensor Dense(const Tensor& x, const Tensor& weight, const Tensor* bias,
             Activation activation = Activation::kNone);

// --- Convolutions and pooling --------------------------------------------

struct ConvOptions {
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};  // rows, columns; both sides
  std::array<int64_t, 2> dilation = {1, 1};
  int64_t groups = 1;
};
// [N, C, H, W] * [O, C/groups, R, S] -> [N, O, P, Q]
Tensor Conv2dNchw(const Tensor& data, const Tensor& weight,
                  ConvOptions options = {});
// [N, H, W, C] * [R, S, C/groups, O] -> [N, P, Q, O]
Tensor Conv2dNhwc(const Tensor& data, const Tensor& weight,
                  ConvOptions options = {});
// [N, H, W, C] * [R, S, C, M] -> [N, P, Q, C*M]
Tensor DepthwiseConv2dNhwc(const Tensor& data, const Tensor& weight,
                           ConvOptions options = {});

enum class Pooling { kMax, kAverage };
struct PoolOptions {
  std::array<int64_t, 2> window = {2, 2};
  std::array<int64_t, 2> stride = {2, 2};
  std::array<int64_t, 2> padding = {0, 0};
  // Averages divide by the window, padding included.
};
Tensor Pool2dNchw(const Tensor& data, Pooling kind, PoolOptions options);
Tensor Pool2dNhwc(const Tensor& data, Pooling kind, PoolOptions options);
// [N, C, H, W] -> [N, C, 1, 1]
Tensor GlobalAveragePoolNchw(const Tensor& data);

// --- Reductions, normalisation, movement ---------------------------------

// Reduces over `axes` (ascending); `keep_dims` keeps them with extent one.
Tensor ReduceOver(const Tensor& a, Reducer reducer, std::vector<int> axes,
                  bool keep_dims = false, std::string name = "T_reduce");
Tensor Mean(const Tensor& a, std::vector<int> axes, bool keep_dims = false);
// What softmax makes of a row that is -infinity throughout: NaN by the formula,
// or zeros, which attention gives where a query may attend to no key.
enum class RowsOfMinusInfinity { kNan, kZeros };
// Softmax over the last axis, with the maximum subtracted.
Tensor Softmax(const Tensor& a,
               RowsOfMinusInfinity rows = RowsOfMinusInfinity::kNan);
// Normalises over the last axis; gamma and beta are [last].
Tensor LayerNorm(const Tensor& a, const Tensor& gamma, const Tensor& beta,
                 double epsilon = 1e-5);
// result[i...] = a[permuted i...]: dimension d of the result is axes[d] of a.
Tensor Transpose(const Tensor& a, std::vector<int> axes);
// Pads with zeros: `before` and `after` for each dimension.
Tensor Pad(const Tensor& a, std::vector<int64_t> before,
           std::vector<int64_t> after, ir::Expr value,
           std::string name = "T_pad");

}  // namespace tilefarm::te

#endif  // TILEFARM_COMPILER_TE_OPERATORS_H_
