// Scaled dot product attention. One call computes scores, their softmax and the
// weighted sum of the values, each as a stage of its own.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/quantize_expr.h"
#include "compiler/onnx/scope.h"
#include "compiler/onnx/tensor_proto.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;
using ir::Intrinsic;
using te::ReduceAxis;

DataType Wider(DataType a, DataType b) { return a.bits >= b.bits ? a : b; }

// A tensor [batch, heads, sequence, size], which may be given as [batch,
// sequence, heads * size].
struct Heads {
  int64_t batch = 0, heads = 0, sequence = 0, size = 0;

  std::vector<int64_t> shape() const { return {batch, heads, sequence, size}; }
  Expr Read(const te::Tensor& tensor, const Expr& b, const Expr& h,
            const Expr& s, const Expr& d) const {
    if (tensor.ndim() == 4) return tensor({b, h, s, d});
    return tensor({b, s, h * size + d});
  }
};

absl::StatusOr<Heads> ReadHeads(Node& node, int i, int64_t heads,
                                std::string_view attribute) {
  const TensorType& type = node.Type(i);
  TF_RETURN_IF_ERROR(node.status());
  if (!type.dtype.is_float()) {
    return node.Invalid("input ", i, " is ", type.ToString());
  }
  const std::vector<int64_t>& shape = type.shape;
  if (type.ndim() == 4) return Heads{shape[0], shape[1], shape[2], shape[3]};
  if (type.ndim() != 3) {
    return node.Invalid("input ", i, " is ", type.ToString(),
                        ", of neither 3 nor 4 dimensions");
  }
  if (heads < 1 || shape[2] % heads != 0) {
    return node.Invalid(std::string(attribute), "=", heads, " for input ", i,
                        ", which is ", type.ToString());
  }
  return Heads{shape[0], heads, shape[1], shape[2] / heads};
}

struct Problem {
  Heads q, k, v;  // k and v: with the past
  double scale = 1;
  DataType compute;

  std::vector<int64_t> score_shape() const {
    return {q.batch, q.heads, q.sequence, k.sequence};
  }
  // The head of keys and values that query head `h` uses.
  Expr KeyHead(const Expr& h) const {
    const int64_t group = q.heads / k.heads;
    return group == 1 ? h : ir::FloorDiv(h, IntConst(group));
  }
};

absl::Status CheckProblem(Node& node, const Problem& p) {
  if (p.q.batch != p.k.batch || p.q.batch != p.v.batch ||
      p.k.heads != p.v.heads || p.k.sequence != p.v.sequence ||
      p.q.size != p.k.size || p.k.heads < 1 || p.q.heads % p.k.heads != 0) {
    return node.Invalid("queries, keys and values do not fit together");
  }
  if (p.q.size == 0 || p.k.sequence == 0) {
    return node.Unsupported("keys without elements");
  }
  return absl::OkStatus();
}

// Q K^T * scale, in the type of computation.
te::Tensor Scores(const Problem& p, const te::Tensor& q, const te::Tensor& k) {
  const ReduceAxis d("d", p.q.size);
  const te::Tensor product =
      te::Compute("T_scores", p.score_shape(), [&](const te::Indices& i) {
        return te::Sum(
            Times(ir::MakeCast(p.compute, p.q.Read(q, i[0], i[1], i[2], d)),
                  ir::MakeCast(p.compute,
                               p.k.Read(k, i[0], p.KeyHead(i[1]), i[3], d))),
            {d});
      });
  return te::Map(
      product,
      [&](const Expr& e) {
        return Times(e, ir::FloatConst(p.scale, p.compute));
      },
      "T_scale");
}

// probabilities * V, of type `to`; of rank 3 if `packed`.
te::Tensor WeightedValues(const Problem& p, const te::Tensor& probabilities,
                          const te::Tensor& v, bool packed, DataType to) {
  const DataType type = probabilities.dtype();
  const ReduceAxis s("s", p.k.sequence);
  const te::Tensor sum = te::Compute(
      "T_attention", {p.q.batch, p.q.heads, p.q.sequence, p.v.size},
      [&](const te::Indices& i) {
        return te::Sum(
            Times(probabilities({i[0], i[1], i[2], s}),
                  ir::MakeCast(type,
                               p.v.Read(v, i[0], p.KeyHead(i[1]), s, i[3]))),
            {s});
      });
  if (packed) {
    return te::Compute(
        "T_reshape", {p.q.batch, p.q.sequence, p.q.heads * p.v.size},
        [&](const te::Indices& i) {
          return te::Body(ir::MakeCast(
              to, sum({i[0], ir::FloorDiv(i[2], IntConst(p.v.size)), i[1],
                       ir::FloorMod(i[2], IntConst(p.v.size))})));
        });
  }
  return to == type ? sum : te::CastTo(sum, to);
}

// --- Attention -----------------------------------------------------------

// The past, then the new elements; [batch, heads, sequence, size].
absl::StatusOr<ValueId> Concatenated(Node& node, int past, int input,
                                     const Heads& own) {
  const int64_t before = past < 0 ? 0 : node.Shape(past)[2];
  std::vector<int64_t> shape = own.shape();
  shape[2] += before;
  std::vector<ValueId> inputs{node.Input(input)};
  if (before > 0) inputs.push_back(node.Input(past));
  if (own.sequence == 0 && before > 0) return node.Input(past);
  if (before == 0 && node.Rank(input) == 4) return node.Input(input);
  return node.builder().Compute(
      "concat", {{"axis", ir::Attr(2)}}, inputs, [&](const graph::Tensors& in) {
        return te::Compute("T_concat", shape, [&](const te::Indices& i) {
          const Expr recent = own.Read(in[0], i[0], i[1], i[2] - before, i[3]);
          if (before == 0) return te::Body(recent);
          return te::Body(ir::IfThenElseExpr(ir::LT(i[2], IntConst(before)),
                                             in[1](i), recent));
        });
      });
}

// Checks the cache of keys or values and returns the length of its sequence.
absl::StatusOr<int64_t> PastLength(Node& node, int past, const Heads& own,
                                   DataType dtype) {
  const TensorType& type = node.Type(past);
  TF_RETURN_IF_ERROR(node.status());
  if (type.dtype != dtype || type.ndim() != 4 || type.shape[0] != own.batch ||
      type.shape[1] != own.heads || type.shape[3] != own.size) {
    return node.Invalid("input ", past, " is ", type.ToString());
  }
  return type.shape[2];
}

Outputs ConvertAttention(Node& node) {
  // Q, K, V, attn_mask, past_key, past_value, nonpad_kv_seqlen
  const int64_t q_heads = node.Int("q_num_heads", 0);
  const int64_t kv_heads = node.Int("kv_num_heads", 0);
  const bool causal = node.Int("is_causal", 0) != 0;
  const int64_t left = node.Int("left_window_size", -1);
  const int64_t right = node.Int("right_window_size", -1);
  const double softcap = node.Float("softcap", 0);
  const int64_t mode = node.Int("qk_matmul_output_mode", 0);
  Problem p;
  TF_ASSIGN_OR_RETURN(p.q, ReadHeads(node, 0, q_heads, "q_num_heads"));
  TF_ASSIGN_OR_RETURN(const Heads new_k,
                      ReadHeads(node, 1, kv_heads, "kv_num_heads"));
  TF_ASSIGN_OR_RETURN(const Heads new_v,
                      ReadHeads(node, 2, kv_heads, "kv_num_heads"));
  const DataType dtype = node.Dtype(0);
  if (node.Dtype(1) != dtype) return node.Invalid("Q and K differ in type");
  const bool packed = node.Rank(0) == 3;
  if (node.HasInput(4) != node.HasInput(5)) {
    return node.Invalid("one of past_key and past_value is missing");
  }
  if (mode < 0 || mode > 3) {
    return node.Invalid("qk_matmul_output_mode=", mode);
  }
  if (left < -1 || right < -1) {
    return node.Invalid("a window of ", left, " to the left and ", right,
                        " to the right");
  }
  p.k = new_k;
  p.v = new_v;
  int64_t past = 0;
  int past_key = -1, past_value = -1;
  if (node.HasInput(4)) {
    past_key = 4;
    past_value = 5;
    TF_ASSIGN_OR_RETURN(past, PastLength(node, 4, new_k, node.Dtype(1)));
    TF_ASSIGN_OR_RETURN(const int64_t past_v,
                        PastLength(node, 5, new_v, node.Dtype(2)));
    p.k.sequence += past;
    p.v.sequence += past_v;
  }
  p.scale = node.Float("scale", 1 / std::sqrt(static_cast<double>(p.q.size)));
  p.compute = Wider(SumType(dtype), SumType(node.Dtype(2)));
  DataType softmax_type = p.compute;
  if (const int64_t given = node.Int("softmax_precision", 0); given != 0) {
    const std::optional<DataType> precision = DtypeOf(static_cast<int>(given));
    if (!precision.has_value() || !precision->is_float()) {
      return node.Invalid("softmax_precision=", given);
    }
    softmax_type = Wider(softmax_type, *precision);
  }
  TF_RETURN_IF_ERROR(node.status());
  TF_RETURN_IF_ERROR(CheckProblem(node, p));
  const bool needs_key = past > 0 || node.WantsOutput(1);
  const bool needs_value = past > 0 || node.WantsOutput(2);
  ValueId key = node.Input(1), value = node.Input(2);
  if (needs_key) {
    TF_ASSIGN_OR_RETURN(key, Concatenated(node, past_key, 1, new_k));
  }
  if (needs_value) {
    TF_ASSIGN_OR_RETURN(value, Concatenated(node, past_value, 2, new_v));
  }
  std::vector<ValueId> inputs{node.Input(0), key, value};
  int mask = -1, lengths = -1;
  std::vector<int64_t> mask_shape;
  if (node.HasInput(3)) {
    mask_shape = node.Shape(3);
    std::vector<int64_t> padded = mask_shape;
    // Since operator set 24 what a mask is too short for is masked out.
    if (node.opset() >= 24 && !padded.empty() && padded.back() < p.k.sequence) {
      padded.back() = p.k.sequence;
    }
    if (padded.size() > 4 ||
        BroadcastShapes(padded, p.score_shape()) != p.score_shape()) {
      return node.Invalid("the mask is ", node.Type(3).ToString());
    }
    mask = static_cast<int>(inputs.size());
    inputs.push_back(node.Input(3));
  }
  if (node.HasInput(6)) {
    if (node.Dtype(6) != DataType::Int(64) ||
        node.Shape(6) != std::vector<int64_t>{p.q.batch}) {
      return node.Invalid("nonpad_kv_seqlen is ", node.Type(6).ToString());
    }
    lengths = static_cast<int>(inputs.size());
    inputs.push_back(node.Input(6));
  }
  const bool mask_is_short = mask >= 0 && node.opset() >= 24 &&
                             !mask_shape.empty() &&
                             mask_shape.back() < p.k.sequence;
  const Expr nothing =
      ir::FloatConst(-std::numeric_limits<double>::infinity(), p.compute);
  // The score where the mask has a key take part.
  const auto masked = [&](const Expr& score, const te::Tensor& tensor,
                          const te::Indices& i) {
    if (tensor.shape().end() !=
        std::find(tensor.shape().begin(), tensor.shape().end(), 0)) {
      return nothing;  // a mask of no columns
    }
    te::Indices at;
    const size_t skip = 4 - tensor.ndim();
    for (int d = 0; d < tensor.ndim(); ++d) {
      const bool last_padded = mask_is_short && d == tensor.ndim() - 1;
      at.push_back(tensor.dim(d) == 1 && !last_padded ? IntConst(0)
                                                      : i[skip + d]);
    }
    const Expr element = tensor(at);
    // A score that is masked out may be NaN, so nothing is added to it.
    const Expr result = element->dtype.is_bool()
                            ? ir::MakeSelect(element, score, nothing)
                            : Plus(score, ir::MakeCast(p.compute, element));
    if (!mask_is_short) return result;
    return ir::IfThenElseExpr(ir::LT(i[3], IntConst(mask_shape.back())), result,
                              nothing);
  };
  const bool windowed = left >= 0 || right >= 0;
  // Whether a query may be left without any key.
  const bool may_be_empty = mask >= 0 || lengths >= 0 || windowed;
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> results,
      node.builder().ComputeAll(
          "nn.attention",
          {{"scale", ir::Attr(p.scale)},
           {"is_causal", ir::Attr(causal)},
           {"softcap", ir::Attr(softcap)},
           {"left_window_size", ir::Attr(left)},
           {"right_window_size", ir::Attr(right)},
           {"q_num_heads", ir::Attr(p.q.heads)},
           {"kv_num_heads", ir::Attr(p.k.heads)}},
          inputs, [&](const graph::Tensors& in) {
            const te::Tensor scores = Scores(p, in[0], in[1]);
            te::Tensor capped = scores;
            if (softcap > 0) {
              const Expr cap = ir::FloatConst(softcap, p.compute);
              capped = te::Map(
                  scores,
                  [&](const Expr& e) {
                    return Times(ir::MakeCall(Intrinsic::kTanh, {Over(e, cap)}),
                                 cap);
                  },
                  "T_softcap");
            }
            te::Tensor biased = capped;
            if (may_be_empty || causal) {
              biased = te::Compute(
                  "T_bias", p.score_shape(), [&](const te::Indices& i) {
                    Expr score = capped(i);
                    if (mask >= 0) score = masked(score, in[mask], i);
                    const auto keep_if = [&](const Expr& condition) {
                      score = ir::MakeSelect(condition, score, nothing);
                    };
                    // Keys before those of the queries' own.
                    const Expr offset = lengths >= 0 && past_key < 0
                                            ? in[lengths]({i[0]}) - p.q.sequence
                                            : IntConst(past);
                    const Expr place = i[2] + offset;
                    if (causal) keep_if(ir::LE(i[3], place));
                    if (left >= 0) keep_if(ir::LE(place, i[3] + left));
                    if (right >= 0) keep_if(ir::LE(i[3], place + right));
                    if (lengths >= 0) {
                      keep_if(ir::LT(i[3], in[lengths]({i[0]})));
                    }
                    return te::Body(score);
                  });
            }
            const te::Tensor probabilities = te::Softmax(
                softmax_type == p.compute ? biased
                                          : te::CastTo(biased, softmax_type),
                may_be_empty ? te::RowsOfMinusInfinity::kZeros
                             : te::RowsOfMinusInfinity::kNan);
            graph::Tensors all{
                WeightedValues(p, probabilities, in[2], packed, dtype)};
            if (node.WantsOutput(3)) {
              const te::Tensor stages[] = {scores, capped, biased,
                                           probabilities};
              const te::Tensor& stage = stages[mode];
              // A stage of its own: others read this one.
              all.push_back(te::CastTo(stage, dtype, "T_qk"));
            }
            return all;
          }));
  std::vector<Imported> outputs{results[0], Imported(), Imported()};
  if (node.WantsOutput(1)) outputs[1] = key;
  if (node.WantsOutput(2)) outputs[2] = value;
  if (node.WantsOutput(3)) outputs.push_back(results[1]);
  return outputs;
}

// --- FlexAttention -------------------------------------------------------

// What the subgraph makes of the scores or probabilities.
absl::StatusOr<ValueId> Modified(Node& node, std::string_view attribute,
                                 ValueId value) {
  const pb::GraphProto* graph = node.Graph(attribute);
  TF_RETURN_IF_ERROR(node.status());
  if (graph == nullptr) return value;
  TF_ASSIGN_OR_RETURN(const std::vector<Imported> outputs,
                      node.scope().ImportSubgraph(*graph, {Imported(value)}));
  if (outputs.size() != 1 || !outputs[0].is_tensor() ||
      outputs[0].small_type != 0 ||
      node.builder().type(outputs[0].tensor) != node.builder().type(value)) {
    return node.Invalid(std::string(attribute),
                        " must keep the type and shape of its input");
  }
  return outputs[0].tensor;
}

Outputs ConvertFlexAttention(Node& node) {
  Problem p;
  for (int i = 0; i < 3; ++i) {
    if (node.Rank(i) != 4) return node.Invalid("inputs must have 4 dimensions");
  }
  TF_ASSIGN_OR_RETURN(p.q, ReadHeads(node, 0, 0, ""));
  TF_ASSIGN_OR_RETURN(p.k, ReadHeads(node, 1, 0, ""));
  TF_ASSIGN_OR_RETURN(p.v, ReadHeads(node, 2, 0, ""));
  const DataType dtype = node.Dtype(0);
  if (node.Dtype(1) != dtype || node.Dtype(2) != dtype) {
    return node.Invalid("inputs of different types");
  }
  p.scale = node.Float("scale", 1 / std::sqrt(static_cast<double>(p.q.size)));
  p.compute = SumType(dtype);
  DataType precision = p.compute;
  if (const int64_t given = node.Int("softmax_precision", 0); given != 0) {
    const std::optional<DataType> type = DtypeOf(static_cast<int>(given));
    if (!type.has_value() || !type->is_float()) {
      return node.Invalid("softmax_precision=", given);
    }
    precision = *type;
  }
  TF_RETURN_IF_ERROR(node.status());
  TF_RETURN_IF_ERROR(CheckProblem(node, p));
  GraphBuilder& builder = node.builder();
  TF_ASSIGN_OR_RETURN(
      ValueId scores,
      builder.Compute(
          "nn.attention_scores", {{"scale", ir::Attr(p.scale)}},
          {node.Input(0), node.Input(1)}, [&](const graph::Tensors& in) {
            const te::Tensor result = Scores(p, in[0], in[1]);
            return precision == p.compute ? result
                                          : te::CastTo(result, precision);
          }));
  TF_ASSIGN_OR_RETURN(scores, Modified(node, "score_mod", scores));
  TF_ASSIGN_OR_RETURN(
      ValueId probabilities,
      builder.Compute("nn.softmax", {{"axis", ir::Attr(3)}}, {scores},
                      [&](const graph::Tensors& in) {
                        const te::Tensor wide =
                            precision.bits >= 32
                                ? in[0]
                                : te::CastTo(in[0], DataType::Float(32));
                        const te::Tensor result = te::Softmax(wide);
                        return precision.bits >= 32
                                   ? result
                                   : te::CastTo(result, precision);
                      }));
  TF_ASSIGN_OR_RETURN(probabilities, Modified(node, "prob_mod", probabilities));
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      builder.Compute("matmul", {}, {probabilities, node.Input(2)},
                      [&](const graph::Tensors& in) {
                        const te::Tensor wide =
                            precision.bits >= 32
                                ? in[0]
                                : te::CastTo(in[0], DataType::Float(32));
                        return WeightedValues(p, wide, in[1], false, dtype);
                      }));
  return std::vector<Imported>{y};
}

}  // namespace

std::vector<Converter> AttentionConverters() {
  return {
      {"Attention", ConvertAttention},
      {"FlexAttention", ConvertFlexAttention, "ai.onnx.preview"},
  };
}

}  // namespace tilefarm::onnx
