// Operators of sequence models other than attention itself: rotary position
// embedding, causal convolution with a state, linear attention.
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "base/status_macros.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/quantize_expr.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;
using ir::Intrinsic;

bool IsFloatOfAtMost32Bits(DataType dtype) {
  return dtype.is_float() && dtype.bits <= 32;
}

Outputs ConvertRotaryEmbedding(Node& node) {
  // X, cos_cache, sin_cache, position_ids
  const TensorType x = node.Type(0);
  const TensorType cos = node.Type(1);
  const bool interleaved = node.Int("interleaved", 0) != 0;
  int64_t rotated = node.Int("rotary_embedding_dim", 0);
  const int64_t num_heads = node.Int("num_heads", 0);
  TF_RETURN_IF_ERROR(node.status());
  if (!x.dtype.is_float() || (x.ndim() != 3 && x.ndim() != 4)) {
    return node.Invalid("input 0 is ", x.ToString());
  }
  const bool packed = x.ndim() == 3;
  if (packed && (num_heads < 1 || x.shape[2] % num_heads != 0)) {
    return node.Invalid("num_heads=", num_heads, ", the input is ",
                        x.ToString());
  }
  const int64_t batch = x.shape[0];
  const int64_t sequence = x.shape[packed ? 1 : 2];
  const int64_t size = packed ? x.shape[2] / num_heads : x.shape[3];
  if (rotated == 0) rotated = size;
  if (rotated < 0 || rotated > size || rotated % 2 != 0) {
    return node.Invalid("rotary_embedding_dim=", rotated, ", the head size is ",
                        size);
  }
  const int64_t half = rotated / 2;
  const bool has_positions = node.HasInput(3);
  std::vector<int64_t> expected{batch, sequence, half};
  if (has_positions) {
    if (node.Dtype(3) != DataType::Int(64) ||
        node.Shape(3) != std::vector<int64_t>{batch, sequence}) {
      return node.Invalid("position_ids is ", node.Type(3).ToString());
    }
    if (cos.ndim() != 2 || cos.shape[0] < 1) {
      return node.Invalid("cos_cache is ", cos.ToString());
    }
    expected = {cos.shape[0], half};
  }
  if (cos != TensorType{x.dtype, expected} || node.Type(2) != cos) {
    return node.Invalid("cos_cache is ", cos.ToString(), ", sin_cache is ",
                        node.Type(2).ToString());
  }
  std::vector<ValueId> inputs{node.Input(0), node.Input(1), node.Input(2)};
  if (has_positions) inputs.push_back(node.Input(3));
  TF_RETURN_IF_ERROR(node.status());
  if (half == 0) return std::vector<Imported>{node.Input(0)};
  const DataType type =
      x.dtype == DataType::Float(64) ? x.dtype : DataType::Float(32);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "nn.rotary_embedding", {{"interleaved", ir::Attr(interleaved)}},
          inputs, [&](const graph::Tensors& in) {
            return te::Compute("T_rotary", x.shape, [&](const te::Indices& i) {
              const Expr d = packed ? ir::FloorMod(i[2], IntConst(size)) : i[3];
              const auto read = [&](const Expr& at) {
                te::Indices index = i;
                index.back() =
                    packed ? ir::FloorDiv(i[2], IntConst(size)) * size + at
                           : at;
                return ir::MakeCast(type, in[0](index));
              };
              // The pair of elements that is rotated, and its angle. The index
              // of the partner stays below the head's size.
              const Expr angle =
                  ir::Min(interleaved ? ir::FloorDiv(d, IntConst(2))
                                      : ir::FloorMod(d, IntConst(half)),
                          IntConst(half - 1));
              const Expr first = interleaved ? angle * 2 : angle;
              const Expr second = interleaved ? angle * 2 + 1 : angle + half;
              te::Indices at{i[0], packed ? i[1] : i[2], angle};
              if (has_positions) {
                const Expr position = in[3]({at[0], at[1]});
                const int64_t count = cos.shape[0];
                at = {ir::Max(IntConst(0),
                              ir::Min(position, IntConst(count - 1))),
                      angle};
              }
              const Expr c = ir::MakeCast(type, in[1](at));
              const Expr s = ir::MakeCast(type, in[2](at));
              const Expr is_first =
                  interleaved
                      ? ir::EQ(ir::FloorMod(d, IntConst(2)), IntConst(0))
                      : ir::LT(d, IntConst(half));
              const Expr real =
                  Minus(Times(c, read(first)), Times(s, read(second)));
              const Expr imaginary =
                  Plus(Times(s, read(first)), Times(c, read(second)));
              const Expr value = ir::MakeCast(
                  x.dtype, ir::MakeSelect(is_first, real, imaginary));
              if (rotated == size) return te::Body(value);
              return te::Body(ir::IfThenElseExpr(ir::LT(d, IntConst(rotated)),
                                                 value, in[0](i)));
            });
          }));
  return std::vector<Imported>{y};
}

Outputs ConvertCausalConvWithState(Node& node) {
  // input, weight, bias, past_state
  const TensorType x = node.Type(0);
  const TensorType w = node.Type(1);
  const std::string activation = node.String("activation", "none");
  TF_RETURN_IF_ERROR(node.status());
  const bool silu = activation == "silu" || activation == "swish";
  if (!silu && activation != "none") {
    return node.Invalid("activation=", activation);
  }
  if (!IsFloatOfAtMost32Bits(x.dtype) || x.ndim() != 3 || w.dtype != x.dtype ||
      w.ndim() != 3 || w.shape[0] != x.shape[1] || w.shape[1] != 1 ||
      w.shape[2] < 1) {
    return node.Invalid("a convolution of ", x.ToString(), " with ",
                        w.ToString());
  }
  const int64_t before = w.shape[2] - 1;
  const int64_t length = x.shape[2];
  const TensorType state{x.dtype, {x.shape[0], x.shape[1], before}};
  std::vector<int64_t> padded_shape = x.shape;
  if (__builtin_add_overflow(length, before, &padded_shape[2])) {
    return node.Invalid("the kernel is too large");
  }
  CallInputs inputs;
  inputs.Add(node.Input(0));
  const int weight = inputs.Add(node.Input(1));
  int bias = -1, past = -1;
  if (node.HasInput(2)) {
    if (node.Type(2) != TensorType{x.dtype, {x.shape[1]}}) {
      return node.Invalid("the bias is ", node.Type(2).ToString());
    }
    bias = inputs.Add(node.Input(2));
  }
  if (node.HasInput(3)) {
    if (node.Type(3) != state) {
      return node.Invalid("past_state is ", node.Type(3).ToString());
    }
    if (before > 0) past = inputs.Add(node.Input(3));
  }
  TF_RETURN_IF_ERROR(node.status());
  const DataType f32 = DataType::Float(32);
  const te::ReduceAxis k("k", w.shape[2]);
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> results,
      node.builder().ComputeAll(
          "nn.causal_conv1d", {{"activation", ir::Attr(activation)}},
          inputs.values(), [&](const graph::Tensors& in) {
            const te::Tensor padded =
                before == 0
                    ? in[0]
                    : te::Compute(
                          "pad_temp", padded_shape, [&](const te::Indices& i) {
                            const Expr old = past >= 0
                                                 ? in[past](i)
                                                 : ir::ConstOf(x.dtype, 0);
                            if (length == 0) return te::Body(old);
                            return te::Body(ir::IfThenElseExpr(
                                ir::LT(i[2], IntConst(before)), old,
                                in[0]({i[0], i[1], i[2] - before})));
                          });
            const te::Tensor sum =
                te::Compute("causal_conv", x.shape, [&](const te::Indices& i) {
                  return te::Sum(
                      Times(ToFloat32(padded({i[0], i[1], i[2] + Expr(k)})),
                            ToFloat32(in[weight]({i[1], IntConst(0), k}))),
                      {k});
                });
            const te::Tensor y =
                te::Compute("T_activate", x.shape, [&](const te::Indices& i) {
                  Expr value = sum(i);
                  if (bias >= 0) {
                    value = Plus(value, ToFloat32(in[bias]({i[1]})));
                  }
                  if (silu) {
                    // The activation sees the rounded result.
                    value = ir::MakeCast(f32, ir::MakeCast(x.dtype, value));
                    value = Times(value,
                                  ir::MakeCall(Intrinsic::kSigmoid, {value}));
                  }
                  return te::Body(ir::MakeCast(x.dtype, value));
                });
            graph::Tensors all{y};
            if (node.WantsOutput(1)) {
              all.push_back(te::Compute(
                  "present_state", state.shape, [&](const te::Indices& i) {
                    return te::Body(padded({i[0], i[1], i[2] + length}));
                  }));
            }
            return all;
          }));
  return std::vector<Imported>(results.begin(), results.end());
}

// --- LinearAttention -----------------------------------------------------

std::string BufferText(const TensorType& type) {
  return absl::StrCat("T.Buffer((", absl::StrJoin(type.shape, ", "), ",), \"",
                      type.dtype.ToString(), "\")");
}

// For each step of the sequence the state decays, takes in the outer product of
// key and value, and is read with the query: an ordered loop, which tensor
// expressions cannot say.
Outputs ConvertLinearAttention(Node& node) {
  // query, key, value, past_state, decay, beta
  const TensorType q = node.Type(0), k = node.Type(1), v = node.Type(2);
  const int64_t q_heads = node.Int("q_num_heads", 0);
  const int64_t heads = node.Int("kv_num_heads", 0);
  const std::string rule = node.String("update_rule", "gated_delta");
  node.Ignore("chunk_size");  // about speed
  double scale = node.Float("scale", 0);
  TF_RETURN_IF_ERROR(node.status());
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") {
    return node.Invalid("update_rule=", rule);
  }
  if (node.HasInput(4) != gated || node.HasInput(5) != delta) {
    return node.Invalid("decay and beta do not fit update_rule=", rule);
  }
  if (q_heads < 1 || heads < 1 || q_heads % heads != 0) {
    return node.Invalid("q_num_heads=", q_heads, ", kv_num_heads=", heads);
  }
  if (q.ndim() != 3 || k.ndim() != 3 || v.ndim() != 3 ||
      !IsFloatOfAtMost32Bits(q.dtype) || !IsFloatOfAtMost32Bits(k.dtype) ||
      !IsFloatOfAtMost32Bits(v.dtype) || q.shape[2] % q_heads != 0 ||
      k.shape[2] % heads != 0 || v.shape[2] % heads != 0 ||
      q.shape[2] / q_heads != k.shape[2] / heads || k.shape[0] != q.shape[0] ||
      v.shape[0] != q.shape[0] || k.shape[1] != q.shape[1] ||
      v.shape[1] != q.shape[1]) {
    return node.Invalid("inputs ", q.ToString(), ", ", k.ToString(), ", ",
                        v.ToString());
  }
  const int64_t batch = q.shape[0], steps = q.shape[1];
  const int64_t key_size = k.shape[2] / heads, value_size = v.shape[2] / heads;
  if (batch == 0 || steps == 0 || key_size == 0 || value_size == 0) {
    return node.Unsupported("inputs without elements");
  }
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(key_size));
  TensorType state{q.dtype, {batch, heads, key_size, value_size}};
  std::vector<ValueId> inputs{node.Input(0), node.Input(1), node.Input(2)};
  std::string params = absl::StrCat(
      "q: ", BufferText(q), ", k: ", BufferText(k), ", v: ", BufferText(v));
  std::string initial = "T.float32(0)";
  if (node.HasInput(3)) {
    state.dtype = node.Dtype(3);
    if (node.Shape(3) != state.shape || !IsFloatOfAtMost32Bits(state.dtype)) {
      return node.Invalid("past_state is ", node.Type(3).ToString());
    }
    inputs.push_back(node.Input(3));
    absl::StrAppend(&params, ", past: ", BufferText(state));
    initial = "T.Cast(\"float32\", past[b, h, i, j])";
  }
  std::string decay_index;
  if (gated) {
    const TensorType& decay = node.Type(4);
    if (decay.ndim() != 3 || decay.shape[0] != batch ||
        decay.shape[1] != steps || !IsFloatOfAtMost32Bits(decay.dtype) ||
        (decay.shape[2] != heads && decay.shape[2] != k.shape[2])) {
      return node.Invalid("decay is ", decay.ToString());
    }
    decay_index =
        decay.shape[2] == heads ? "h" : absl::StrCat("h * ", key_size, " + i");
    inputs.push_back(node.Input(4));
    absl::StrAppend(&params, ", decay: ", BufferText(decay));
  }
  std::string beta_index;
  if (delta) {
    const TensorType& beta = node.Type(5);
    if (beta.ndim() != 3 || beta.shape[0] != batch || beta.shape[1] != steps ||
        !IsFloatOfAtMost32Bits(beta.dtype) ||
        (beta.shape[2] != heads && beta.shape[2] != 1)) {
      return node.Invalid("beta is ", beta.ToString());
    }
    beta_index = beta.shape[2] == 1 ? "0" : "h";
    inputs.push_back(node.Input(5));
    absl::StrAppend(&params, ", beta: ", BufferText(beta));
  }
  TF_RETURN_IF_ERROR(node.status());
  const TensorType y{q.dtype, {batch, steps, q_heads * value_size}};
  // $0 batch, $1 heads, $2 key size, $3 value size, $4 steps.
  std::string text = absl::StrCat("@T.prim_func\ndef linear_attention(", params,
                                  ", y: ", BufferText(y),
                                  ", present: ", BufferText(state), "):\n");
  const auto append = [&](std::string_view format, const auto&... more) {
    absl::SubstituteAndAppend(
        &text, absl::string_view(format.data(), format.size()), batch, heads,
        key_size, value_size, steps, more...);
  };
  append(R"(  S = T.alloc_buffer(($0, $1, $2, $3), dtype="float32")
  U = T.alloc_buffer(($0, $1, $3), dtype="float32")
  O = T.alloc_buffer(($0, $5, $3), dtype="float32")
  for b0, h0, i0, j0 in T.grid($0, $1, $2, $3):
    with T.block("state"):
      b, h, i, j = T.axis.remap("SSSS", [b0, h0, i0, j0])
      S[b, h, i, j] = $6
  for t0 in range($4):
)",
         q_heads, initial);
  if (gated) {
    append(R"(    for b0, h0, i0, j0 in T.grid($0, $1, $2, $3):
      with T.block("decay"):
        t = T.axis.opaque($4, t0)
        b, h, i, j = T.axis.remap("SSSS", [b0, h0, i0, j0])
        S[b, h, i, j] = S[b, h, i, j] * T.exp(T.Cast("float32", decay[b, t, $5]))
)",
           decay_index);
  }
  if (delta) {
    append(R"(    for b0, h0, j0, i0 in T.grid($0, $1, $3, $2):
      with T.block("retrieve"):
        t = T.axis.opaque($4, t0)
        b, h, j, i = T.axis.remap("SSSR", [b0, h0, j0, i0])
        with T.init():
          U[b, h, j] = T.float32(0)
        U[b, h, j] = U[b, h, j] + S[b, h, i, j] * T.Cast("float32", k[b, t, h * $2 + i])
)");
  }
  // The value to write: corrected by what the state already gives for the key.
  const std::string value =
      absl::StrCat("T.Cast(\"float32\", v[b, t, h * ", value_size, " + j])");
  append(R"(    for b0, h0, j0 in T.grid($0, $1, $3):
      with T.block("value"):
        t = T.axis.opaque($4, t0)
        b, h, j = T.axis.remap("SSS", [b0, h0, j0])
        U[b, h, j] = $5
    for b0, h0, i0, j0 in T.grid($0, $1, $2, $3):
      with T.block("write"):
        t = T.axis.opaque($4, t0)
        b, h, i, j = T.axis.remap("SSSS", [b0, h0, i0, j0])
        S[b, h, i, j] = S[b, h, i, j] + T.Cast("float32", k[b, t, h * $2 + i]) * U[b, h, j]
    for b0, h0, j0, i0 in T.grid($0, $6, $3, $2):
      with T.block("read"):
        t = T.axis.opaque($4, t0)
        b, h, j, i = T.axis.remap("SSSR", [b0, h0, j0, i0])
        with T.init():
          O[b, h, j] = T.float32(0)
        O[b, h, j] = O[b, h, j] + T.Cast("float32", q[b, t, h * $2 + i]) * S[b, h // $7, i, j]
    for b0, h0, j0 in T.grid($0, $6, $3):
      with T.block("output"):
        t = T.axis.opaque($4, t0)
        b, h, j = T.axis.remap("SSS", [b0, h0, j0])
)",
         delta ? absl::StrCat("T.Cast(\"float32\", beta[b, t, ", beta_index,
                              "]) * (", value, " - U[b, h, j])")
               : value,
         q_heads, q_heads / heads);
  append(
      R"(        y[b, t, h * $3 + j] = T.Cast("$5", O[b, h, j] * T.float32($6))
  for b0, h0, i0, j0 in T.grid($0, $1, $2, $3):
    with T.block("present"):
      b, h, i, j = T.axis.remap("SSSS", [b0, h0, i0, j0])
      present[b, h, i, j] = T.Cast("$7", S[b, h, i, j])
)",
      q.dtype.ToString(), absl::StrFormat("%.17g", scale),
      state.dtype.ToString());
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> results,
      node.builder().CallText("nn.linear_attention",
                              {{"update_rule", ir::Attr(rule)}}, inputs, text));
  return std::vector<Imported>(results.begin(), results.end());
}

}  // namespace

std::vector<Converter> LinearAttentionConverters() {
  return {
      {"CausalConvWithState", ConvertCausalConvWithState},
      {"LinearAttention", ConvertLinearAttention},
      {"RotaryEmbedding", ConvertRotaryEmbedding},
  };
}

}  // namespace tilefarm::onnx
