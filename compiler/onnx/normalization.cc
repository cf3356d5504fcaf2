// Normalisations. Statistics are computed in float32 at least.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"
#include "compiler/onnx/tensor_proto.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::Intrinsic;
using te::Indices;
using te::Reducer;

// 1 / sqrt(variance + epsilon)
Expr InverseDeviation(const Expr& variance, double epsilon) {
  return Call(Intrinsic::kRsqrt, variance + Number(epsilon, variance->dtype));
}

// `a` with the elements as `dtype`; `a` itself if they are.
te::Tensor CastTensor(const te::Tensor& a, DataType dtype) {
  if (a.dtype() == dtype) return a;
  return te::Compute("T_cast", a.shape(), [&](const Indices& i) {
    return te::Body(ir::MakeCast(dtype, a(i)));
  });
}

// InvalidArgument: input `i` is no vector of `extent` floats.
absl::Status CheckVector(Node& node, int i, int64_t extent) {
  TF_RETURN_IF_ERROR(CheckKind(node, i, DtypeKind::kFloat));
  if (node.Shape(i) == std::vector<int64_t>{extent}) return absl::OkStatus();
  return node.Invalid("input ", i, " is ", node.Type(i).ToString(),
                      ", not a vector of ", extent);
}

// --- BatchNormalization --------------------------------------------------

Outputs ConvertBatchNorm(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kFloat));
  const std::vector<int64_t> shape = node.Shape(0);
  if (shape.empty()) return node.Invalid("the input is a scalar");
  // A vector is a batch with one channel.
  const int64_t channels = shape.size() == 1 ? 1 : shape[1];
  for (int i = 1; i <= 4; ++i) {
    TF_RETURN_IF_ERROR(CheckVector(node, i, channels));
  }
  if (node.Int("spatial", 1) != 1) {
    return node.Unsupported("attribute spatial=0");
  }
  const bool training = node.Int("training_mode", 0) != 0;
  bool more_outputs = false;
  for (int i = 1; i < node.num_outputs(); ++i) {
    more_outputs |= node.WantsOutput(i);
  }
  if (node.opset() < 14 && more_outputs) {
    return node.Unsupported("training mode before operator set 14");
  }
  if (more_outputs && !training) {
    return node.Invalid("running statistics without training_mode");
  }
  const double epsilon = node.Float("epsilon", 1e-5F);
  const double momentum = node.Float("momentum", 0.9F);
  const DataType dtype = node.Dtype(0);
  const DataType type = ComputeType(dtype);
  const DataType running_dtype = node.Dtype(3);
  const std::vector<ValueId> inputs = {node.Input(0), node.Input(1),
                                       node.Input(2), node.Input(3),
                                       node.Input(4)};
  std::vector<bool> reduced(shape.size(), true);
  if (shape.size() > 1) reduced[1] = false;
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> outputs,
      node.builder().ComputeAll(
          "nn.batch_norm",
          {{"axis", 1},
           {"epsilon", epsilon},
           {"momentum", momentum},
           {"training", training}},
          inputs, [&](const graph::Tensors& in) {
            const te::Tensor& x = in[0];
            const auto load = [&](const Indices& i) {
              return ir::MakeCast(type, x(i));
            };
            std::optional<te::Moments> batch;
            if (training) {
              batch = te::MomentsOf(shape, reduced, /*keep_dims=*/false, load);
            }
            const auto statistic = [&](const te::Tensor& given,
                                       const te::Tensor* own,
                                       const Expr& channel) {
              if (own == nullptr) return ir::MakeCast(type, given({channel}));
              return own->ndim() == 0 ? (*own)({}) : (*own)({channel});
            };
            const te::Tensor* mean = training ? &batch->mean : nullptr;
            const te::Tensor* variance = training ? &batch->variance : nullptr;
            const te::Tensor scale = te::Compute(
                "T_batch_norm_scale", {channels}, [&](const Indices& i) {
                  return te::Body(
                      ir::MakeCast(type, in[1](i)) *
                      InverseDeviation(statistic(in[4], variance, i[0]),
                                       epsilon));
                });
            graph::Tensors results = {
                te::Compute("T_batch_norm", shape, [&](const Indices& i) {
                  const Expr channel =
                      shape.size() == 1 ? ir::IntConst(0) : i[1];
                  const Expr centred =
                      load(i) - statistic(in[3], mean, channel);
                  return te::Body(ir::MakeCast(
                      dtype, centred * scale({channel}) +
                                 ir::MakeCast(type, in[2]({channel}))));
                })};
            if (!more_outputs) return results;
            const Expr keep = Number(momentum, type);
            const Expr renew = Number(1 - momentum, type);
            const auto running = [&](const te::Tensor& given,
                                     const te::Tensor* own,
                                     const std::string& name) {
              return te::Compute(name, {channels}, [&](const Indices& i) {
                return te::Body(ir::MakeCast(
                    running_dtype, ir::MakeCast(type, given(i)) * keep +
                                       statistic(given, own, i[0]) * renew));
              });
            };
            results.push_back(running(in[3], mean, "T_running_mean"));
            results.push_back(running(in[4], variance, "T_running_var"));
            return results;
          }));
  return std::vector<Imported>(outputs.begin(), outputs.end());
}

// --- Normalisation over the last dimensions ------------------------------

// LayerNormalization, and RMSNormalization, which does not subtract the mean.
template <bool kRms>
Outputs ConvertLayerNorm(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kFloat));
  TF_RETURN_IF_ERROR(CheckKind(node, 1, DtypeKind::kFloat));
  const std::vector<int64_t> shape = node.Shape(0);
  const int64_t axis = node.NormalizeAxis(node.Int("axis", -1), node.Rank(0));
  TF_RETURN_IF_ERROR(node.status());
  const double epsilon = node.Float("epsilon", 1e-5F);
  const auto stash = DtypeOf(static_cast<int>(node.Int("stash_type", 1)));
  if (!stash.has_value() || !stash->is_float()) {
    return node.Unsupported("attribute stash_type=", node.Int("stash_type", 1));
  }
  const bool has_bias = !kRms && node.HasInput(2);
  TF_RETURN_IF_ERROR(CheckBroadcastsTo(node, 1, shape));
  if (has_bias) {
    TF_RETURN_IF_ERROR(CheckKind(node, 2, DtypeKind::kFloat));
    TF_RETURN_IF_ERROR(CheckBroadcastsTo(node, 2, shape));
  }
  const DataType dtype = kRms ? node.Dtype(1) : node.Dtype(0);
  const DataType type =
      node.Dtype(0).bits == 64 ? DataType::Float(64) : ComputeType(*stash);
  std::vector<ValueId> inputs = {node.Input(0), node.Input(1)};
  if (has_bias) inputs.push_back(node.Input(2));
  std::vector<bool> reduced(shape.size());
  std::vector<int64_t> axes;
  for (size_t d = static_cast<size_t>(axis); d < shape.size(); ++d) {
    reduced[d] = true;
    axes.push_back(static_cast<int64_t>(d));
  }
  const bool wants_mean = !kRms && node.WantsOutput(1);
  const bool wants_deviation = !kRms && node.WantsOutput(2);
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> outputs,
      node.builder().ComputeAll(
          kRms ? "nn.rms_norm" : "nn.layer_norm",
          {{"axes", IntList(axes)}, {"epsilon", epsilon}}, inputs,
          [&](const graph::Tensors& in) {
            const auto load = [&](const Indices& i) {
              return ir::MakeCast(type, in[0](i));
            };
            std::optional<te::Tensor> mean, variance;
            if (kRms) {
              double count = 1;
              for (int64_t d : axes) {
                count *= static_cast<double>(shape[static_cast<size_t>(d)]);
              }
              const te::Tensor squares = te::ReduceElements(
                  "T_square_sum", shape, reduced, true, Reducer::kSum,
                  [&](const Indices& i) { return load(i) * load(i); });
              variance = te::Compute(
                  "T_mean_square", squares.shape(), [&](const Indices& i) {
                    return te::Body(Divide(squares(i), Number(count, type)));
                  });
            } else {
              te::Moments moments = te::MomentsOf(shape, reduced, true, load);
              mean = moments.mean;
              variance = moments.variance;
            }
            const te::Tensor deviation = te::Compute(
                "T_rsqrt", variance->shape(), [&](const Indices& i) {
                  return te::Body(InverseDeviation((*variance)(i), epsilon));
                });
            graph::Tensors results = {te::Compute(
                kRms ? "T_rms_norm" : "T_layer_norm", shape,
                [&](const Indices& i) {
                  Expr value = load(i);
                  if (!kRms) value = value - te::BroadcastLoad(*mean, i);
                  value = value * te::BroadcastLoad(deviation, i) *
                          ir::MakeCast(type, te::BroadcastLoad(in[1], i));
                  if (has_bias) {
                    value =
                        value + ir::MakeCast(type, te::BroadcastLoad(in[2], i));
                  }
                  return te::Body(ir::MakeCast(dtype, value));
                })};
            if (wants_mean) results.push_back(CastTensor(*mean, *stash));
            if (wants_deviation) {
              results.push_back(CastTensor(deviation, *stash));
            }
            return results;
          }));
  std::vector<Imported> all = {outputs[0]};
  if (wants_mean || wants_deviation) {
    all.push_back(wants_mean ? Imported(outputs[1]) : Imported());
  }
  if (wants_deviation) all.emplace_back(outputs.back());
  return all;
}

// --- Normalisation over the positions of an image ------------------------

// The channels of each instance in `groups` groups, each with its own mean and
// variance; `per_group`: so have scale and bias.
Outputs GroupNorm(Node& node, const std::string& op, int64_t groups,
                  bool per_group) {
  const std::vector<int64_t> shape = node.Shape(0);
  const int64_t channels = shape[1];
  const int64_t group = channels / groups;
  const double epsilon = node.Float("epsilon", 1e-5F);
  const DataType dtype = node.Dtype(0);
  const DataType type = ComputeType(dtype);
  // [batch, group, channel of the group, positions...]
  std::vector<int64_t> grouped = {shape[0], groups, group};
  grouped.insert(grouped.end(), shape.begin() + 2, shape.end());
  std::vector<bool> reduced(grouped.size(), true);
  reduced[0] = reduced[1] = false;
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          op, {{"groups", groups}, {"axis", 1}, {"epsilon", epsilon}},
          {node.Input(0), node.Input(1), node.Input(2)},
          [&](const graph::Tensors& in) {
            const te::Moments moments = te::MomentsOf(
                grouped, reduced, /*keep_dims=*/false, [&](const Indices& i) {
                  Indices at = {i[0], i[1] * group + i[2]};
                  at.insert(at.end(), i.begin() + 3, i.end());
                  return ir::MakeCast(type, in[0](at));
                });
            const te::Tensor deviation = te::Compute(
                "T_rsqrt", {shape[0], groups}, [&](const Indices& i) {
                  return te::Body(
                      InverseDeviation(moments.variance(i), epsilon));
                });
            return te::Compute("T_norm", shape, [&](const Indices& i) {
              const Expr of = ir::FloorDiv(i[1], ir::IntConst(group));
              const Expr parameter = per_group ? of : i[1];
              const Expr normal =
                  (ir::MakeCast(type, in[0](i)) - moments.mean({i[0], of})) *
                  deviation({i[0], of});
              return te::Body(ir::MakeCast(
                  dtype, normal * ir::MakeCast(type, in[1]({parameter})) +
                             ir::MakeCast(type, in[2]({parameter}))));
            });
          }));
  return OneOutput(y);
}

// InvalidArgument: input 0 has no batch and channels.
absl::Status CheckImage(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kFloat));
  if (node.Rank(0) >= 2) return absl::OkStatus();
  return node.Invalid("the input has rank ", node.Rank(0), ", not 2 or more");
}

Outputs ConvertInstanceNorm(Node& node) {
  TF_RETURN_IF_ERROR(CheckImage(node));
  const int64_t channels = node.Shape(0)[1];
  TF_RETURN_IF_ERROR(CheckVector(node, 1, channels));
  TF_RETURN_IF_ERROR(CheckVector(node, 2, channels));
  if (channels == 0) return OneOutput(node.Input(0));
  return GroupNorm(node, "nn.instance_norm", channels, /*per_group=*/false);
}

Outputs ConvertGroupNorm(Node& node) {
  node.Ignore("stash_type");  // sums have at least float32
  TF_RETURN_IF_ERROR(CheckImage(node));
  const int64_t channels = node.Shape(0)[1];
  const int64_t groups = node.Int("num_groups", 0);
  if (groups <= 0 || channels % groups != 0) {
    return node.Invalid("attribute num_groups=", groups, " with ", channels,
                        " channels");
  }
  const bool per_group = node.opset() < 21;
  TF_RETURN_IF_ERROR(CheckVector(node, 1, per_group ? groups : channels));
  TF_RETURN_IF_ERROR(CheckVector(node, 2, per_group ? groups : channels));
  if (channels == 0) return OneOutput(node.Input(0));
  return GroupNorm(node, "nn.group_norm", groups, per_group);
}

Outputs ConvertMeanVarianceNorm(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kFloat));
  const std::vector<int64_t> shape = node.Shape(0);
  std::vector<int64_t> axes = {0, 2, 3};
  if (node.HasAttr("axes")) axes = node.Ints("axes");
  std::vector<bool> reduced(shape.size());
  for (int64_t axis : axes) {
    const int64_t d = node.NormalizeAxis(axis, node.Rank(0));
    TF_RETURN_IF_ERROR(node.status());
    reduced[static_cast<size_t>(d)] = true;
  }
  const DataType dtype = node.Dtype(0);
  const DataType type = ComputeType(dtype);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "mean_variance_norm", {{"axes", IntList(axes)}}, {node.Input(0)},
          [&](const graph::Tensors& in) {
            const auto load = [&](const Indices& i) {
              return ir::MakeCast(type, in[0](i));
            };
            const te::Moments moments =
                te::MomentsOf(shape, reduced, true, load);
            return te::Compute("T_norm", shape, [&](const Indices& i) {
              const Expr deviation =
                  Call(Intrinsic::kSqrt,
                       te::BroadcastLoad(moments.variance, i)) +
                  Number(1e-9, type);
              return te::Body(ir::MakeCast(
                  dtype, Divide(load(i) - te::BroadcastLoad(moments.mean, i),
                                deviation)));
            });
          }));
  return OneOutput(y);
}

// --- Norms ---------------------------------------------------------------

Outputs ConvertLpNorm(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kFloat));
  const int64_t p = node.Int("p", 2);
  if (p != 1 && p != 2) return node.Invalid("attribute p=", p);
  const std::vector<int64_t> shape = node.Shape(0);
  const int64_t axis = node.NormalizeAxis(node.Int("axis", -1), node.Rank(0));
  TF_RETURN_IF_ERROR(node.status());
  std::vector<bool> reduced(shape.size());
  reduced[static_cast<size_t>(axis)] = true;
  const DataType dtype = node.Dtype(0);
  const DataType type = ComputeType(dtype);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "lp_norm", {{"p", p}, {"axis", axis}}, {node.Input(0)},
          [&](const graph::Tensors& in) {
            const auto load = [&](const Indices& i) {
              return ir::MakeCast(type, in[0](i));
            };
            const te::Tensor sum = te::ReduceElements(
                "T_norm_sum", shape, reduced, true, Reducer::kSum,
                [&](const Indices& i) {
                  return p == 1 ? Call(Intrinsic::kAbs, load(i))
                                : load(i) * load(i);
                });
            return te::Compute("T_lp_norm", shape, [&](const Indices& i) {
              Expr norm = te::BroadcastLoad(sum, i);
              if (p == 2) norm = Call(Intrinsic::kSqrt, norm);
              // Vectors of zeros stay zero.
              const Expr zero = ir::ConstOf(type, 0);
              return te::Body(
                  ir::MakeCast(dtype, ir::MakeSelect(ir::EQ(norm, zero), zero,
                                                     Divide(load(i), norm))));
            });
          }));
  return OneOutput(y);
}

// Local response normalisation (Krizhevsky et al., 2012): sums squares over
// `size` channels around each one.
Outputs ConvertLrn(Node& node) {
  TF_RETURN_IF_ERROR(CheckImage(node));
  const int64_t size = node.Int("size", 0);
  if (size <= 0) return node.Invalid("attribute size=", size);
  const double alpha = node.Float("alpha", 1e-4F);
  const double beta = node.Float("beta", 0.75);
  const double bias = node.Float("bias", 1);
  const std::vector<int64_t> shape = node.Shape(0);
  const int64_t channels = shape[1];
  // Channels further away do not exist.
  const int64_t before = std::min((size - 1) / 2, channels);
  const int64_t after = std::min(size - 1 - (size - 1) / 2, channels);
  const DataType dtype = node.Dtype(0);
  const DataType type = ComputeType(dtype);
  std::vector<int64_t> windows = shape;
  windows.push_back(before + 1 + after);
  std::vector<bool> reduced(windows.size());
  reduced.back() = true;
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "nn.lrn",
          {{"size", size}, {"alpha", alpha}, {"beta", beta}, {"bias", bias}},
          {node.Input(0)}, [&](const graph::Tensors& in) {
            const te::Tensor& x = in[0];
            const te::Tensor squares = te::ReduceElements(
                "T_square_sum", windows, reduced, /*keep_dims=*/false,
                Reducer::kSum, [&](const Indices& i) {
                  Indices at(i.begin(), i.end() - 1);
                  at[1] = at[1] + i.back() - before;
                  const Expr inside =
                      ir::And(ir::GE(at[1], ir::IntConst(0)),
                              ir::LT(at[1], ir::IntConst(channels)));
                  const Expr e = ir::MakeCast(type, x(at));
                  return ir::IfThenElseExpr(inside, e * e,
                                            ir::ConstOf(type, 0));
                });
            return te::Compute("T_lrn", shape, [&](const Indices& i) {
              const Expr base =
                  squares(i) * Number(alpha / static_cast<double>(size), type) +
                  Number(bias, type);
              return te::Body(ir::MakeCast(
                  dtype, Divide(ir::MakeCast(type, x(i)),
                                ir::MakeCall(Intrinsic::kPow,
                                             {base, Number(beta, type)}))));
            });
          }));
  return OneOutput(y);
}

}  // namespace

std::vector<Converter> NormalizationConverters() {
  return {
      {"BatchNormalization", ConvertBatchNorm},
      {"LayerNormalization", ConvertLayerNorm<false>},
      {"RMSNormalization", ConvertLayerNorm<true>},
      {"InstanceNormalization", ConvertInstanceNorm},
      {"GroupNormalization", ConvertGroupNorm},
      {"MeanVarianceNormalization", ConvertMeanVarianceNorm},
      {"LpNormalization", ConvertLpNorm},
      {"LRN", ConvertLrn},
  };
}

}  // namespace tilefarm::onnx
