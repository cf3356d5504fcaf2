// Operators that read elements at places that depend on data.
#include <algorithm>

#include "base/status_macros.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/shapes.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;
using ir::Expr;
using ir::IntConst;

absl::Status CheckIndices(Node& node, int input) {
  if (node.Dtype(input).is_float() || node.Dtype(input).is_bool()) {
    return node.Invalid("input ", input, " must have integers");
  }
  return node.status();
}

// Places that lie in equal steps along each dimension of a tensor of indices:
// place[j...] = first + the sum of steps[d] * j[d].
struct Steps {
  int64_t first = 0;
  std::vector<int64_t> steps;
};

// nullopt: the places lie otherwise.
std::optional<Steps> StepsOf(const std::vector<int64_t>& places,
                             const std::vector<int64_t>& shape) {
  if (places.empty()) return std::nullopt;
  Steps found{places[0], std::vector<int64_t>(shape.size())};
  // Distance of neighbours along each dimension, in elements.
  std::vector<size_t> distance(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 0;) {
    if (d + 1 < shape.size()) {
      distance[d] = distance[d + 1] * static_cast<size_t>(shape[d + 1]);
    }
    if (shape[d] > 1) found.steps[d] = places[distance[d]] - places[0];
  }
  for (size_t flat = 0; flat < places.size(); ++flat) {
    int64_t expected = found.first;
    for (size_t d = 0; d < shape.size(); ++d) {
      const size_t j = flat / distance[d] % static_cast<size_t>(shape[d]);
      expected += found.steps[d] * static_cast<int64_t>(j);
    }
    if (places[flat] != expected) return std::nullopt;
  }
  return found;
}

Outputs ConvertGather(Node& node) {
  const TensorType data = node.Type(0);
  const TensorType indices = node.Type(1);
  TF_RETURN_IF_ERROR(CheckIndices(node, 1));
  const int64_t axis = node.NormalizeAxis(node.Int("axis", 0), data.ndim());
  TF_RETURN_IF_ERROR(node.status());
  const auto d = static_cast<size_t>(axis);
  const int64_t extent = data.shape[d];
  std::vector<int64_t> shape = data.shape;
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.shape.begin(),
               indices.shape.end());
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  if (data.num_elements() == 0 && Volume(shape, 0, shape.size()) != 0) {
    return node.Invalid("elements of a dimension that has none");
  }
  // Known places in equal steps are a slice.
  std::optional<Steps> slice;
  std::vector<ValueId> inputs{node.Input(0)};
  if (node.IsConstant(1) && extent > 0) {
    TF_ASSIGN_OR_RETURN(std::vector<int64_t> places, node.ConstInts(1));
    for (int64_t& place : places) {
      if (place < -extent || place >= extent) {
        return node.Invalid("index ", place, " of ", extent, " elements");
      }
      if (place < 0) place += extent;
    }
    slice = StepsOf(places, indices.shape);
  }
  if (!slice.has_value()) inputs.push_back(node.Input(1));
  const auto rank = static_cast<long>(indices.ndim());
  return OneOutput(node.builder().Compute(
      slice.has_value() ? "strided_slice" : "take", {{"axis", axis}}, inputs,
      [&](const graph::Tensors& in) {
        return te::Compute("T_take", shape, [&](const te::Indices& i) {
          te::Indices at(i.begin(), i.begin() + axis);
          if (slice.has_value()) {
            Expr place = IntConst(slice->first);
            for (size_t k = 0; k < slice->steps.size(); ++k) {
              if (slice->steps[k] == 0) continue;
              place = place + i[d + k] * IntConst(slice->steps[k]);
            }
            at.push_back(place);
          } else {
            const Expr index =
                in[1](te::Indices(i.begin() + axis, i.begin() + axis + rank));
            at.push_back(WrapIndex(AsIndex(index), extent));
          }
          at.insert(at.end(), i.begin() + axis + rank, i.end());
          return te::Body(in[0](at));
        });
      }));
}

Outputs ConvertGatherElements(Node& node) {
  const TensorType data = node.Type(0);
  const TensorType indices = node.Type(1);
  TF_RETURN_IF_ERROR(CheckIndices(node, 1));
  const int64_t axis = node.NormalizeAxis(node.Int("axis", 0), data.ndim());
  TF_RETURN_IF_ERROR(node.status());
  const auto d = static_cast<size_t>(axis);
  bool fits = indices.ndim() == data.ndim();
  for (size_t k = 0; fits && k < data.shape.size(); ++k) {
    fits = k == d ? data.shape[k] > 0 || indices.shape[k] == 0
                  : indices.shape[k] <= data.shape[k];
  }
  if (!fits) {
    return node.Invalid("indices ", indices.ToString(), " of ",
                        data.ToString());
  }
  return OneOutput(node.builder().Compute(
      "gather_elements", {{"axis", axis}}, {node.Input(0), node.Input(1)},
      [&](const graph::Tensors& in) {
        return te::Compute(
            "T_gather_elements", indices.shape, [&](const te::Indices& i) {
              te::Indices at = i;
              at[d] = WrapIndex(AsIndex(in[1](i)), data.shape[d]);
              return te::Body(in[0](at));
            });
      }));
}

Outputs ConvertGatherND(Node& node) {
  const TensorType data = node.Type(0);
  const TensorType indices = node.Type(1);
  TF_RETURN_IF_ERROR(CheckIndices(node, 1));
  const int64_t batch = node.Int("batch_dims", 0);
  if (data.ndim() == 0 || indices.ndim() == 0 || batch < 0 ||
      batch >= std::min(data.ndim(), indices.ndim())) {
    return node.Invalid("batch_dims is ", batch, " for ranks ", data.ndim(),
                        " and ", indices.ndim());
  }
  const int64_t depth = indices.shape.back();
  if (depth < 1 || depth > data.ndim() - batch ||
      !std::equal(data.shape.begin(), data.shape.begin() + batch,
                  indices.shape.begin())) {
    return node.Invalid("indices ", indices.ToString(), " of ",
                        data.ToString());
  }
  std::vector<int64_t> shape(indices.shape.begin(), indices.shape.end() - 1);
  const auto lead = static_cast<long>(shape.size());
  shape.insert(shape.end(), data.shape.begin() + batch + depth,
               data.shape.end());
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  if (data.num_elements() == 0 && Volume(shape, 0, shape.size()) != 0) {
    return node.Invalid("elements of a tensor that has none");
  }
  return OneOutput(node.builder().Compute(
      "gather_nd", {{"batch_dims", batch}}, {node.Input(0), node.Input(1)},
      [&](const graph::Tensors& in) {
        return te::Compute("T_gather_nd", shape, [&](const te::Indices& i) {
          te::Indices at(i.begin(), i.begin() + batch);
          for (int64_t k = 0; k < depth; ++k) {
            te::Indices entry(i.begin(), i.begin() + lead);
            entry.push_back(IntConst(k));
            at.push_back(WrapIndex(AsIndex(in[1](entry)),
                                   data.shape[static_cast<size_t>(batch + k)]));
          }
          at.insert(at.end(), i.begin() + lead, i.end());
          return te::Body(in[0](at));
        });
      }));
}

Outputs ConvertTrilu(Node& node) {
  const TensorType type = node.Type(0);
  if (type.ndim() < 2) return node.Invalid("the input is no matrix");
  const bool upper = node.Int("upper", 1) != 0;
  std::vector<ValueId> inputs{node.Input(0)};
  IntInput k(std::vector<int64_t>{0});
  if (node.HasInput(1)) {
    TF_ASSIGN_OR_RETURN(k, IntInput::Read(node, 1, inputs));
    if (k.size() != 1) return node.Invalid("k is no number");
  }
  const auto row = static_cast<size_t>(type.ndim()) - 2;
  return OneOutput(node.builder().Compute(
      upper ? "triu" : "tril", {}, inputs, [&](const graph::Tensors& in) {
        return te::Compute("T_trilu", type.shape, [&](const te::Indices& i) {
          const Expr diagonal = i[row + 1] - i[row];
          const Expr bound = k.At(in, 0);
          return te::Body(
              Choose(upper ? ir::GE(diagonal, bound) : ir::LE(diagonal, bound),
                     in[0](i), ir::ConstOf(type.dtype, 0)));
        });
      }));
}

Outputs ConvertReverseSequence(Node& node) {
  const TensorType type = node.Type(0);
  const int64_t batch = node.Int("batch_axis", 1);
  const int64_t time = node.Int("time_axis", 0);
  if (type.ndim() < 2 || batch + time != 1 || batch * time != 0) {
    return node.Invalid("batch_axis ", batch, " and time_axis ", time,
                        " must be 0 and 1, for rank 2 or more");
  }
  const auto b = static_cast<size_t>(batch);
  const auto t = static_cast<size_t>(time);
  if (node.Shape(1) != std::vector<int64_t>{type.shape[b]}) {
    return node.Invalid("one length per sequence is needed");
  }
  TF_RETURN_IF_ERROR(CheckIndices(node, 1));
  return OneOutput(node.builder().Compute(
      "reverse_sequence", {{"batch_axis", batch}, {"seq_axis", time}},
      {node.Input(0), node.Input(1)}, [&](const graph::Tensors& in) {
        return te::Compute(
            "T_reverse_sequence", type.shape, [&](const te::Indices& i) {
              const Expr length = AsIndex(in[1]({i[b]}));
              te::Indices at = i;
              at[t] = ClampIndex(
                  Choose(ir::LT(i[t], length), length - 1 - i[t], i[t]),
                  type.shape[t]);
              return te::Body(in[0](at));
            });
      }));
}

// A window of the cache, which starts at a place per sequence, is replaced.
// Each element of the result asks whether it lies in that window, which makes
// all of them independent.
Outputs ConvertTensorScatter(Node& node) {
  const TensorType cache = node.Type(0);
  const TensorType update = node.Type(1);
  const int64_t axis = node.NormalizeAxis(node.Int("axis", -2), cache.ndim());
  TF_RETURN_IF_ERROR(node.status());
  const std::string mode = node.String("mode", "linear");
  if (mode != "linear" && mode != "circular") {
    return node.Invalid("attribute mode is ", mode);
  }
  const auto d = static_cast<size_t>(axis);
  std::vector<int64_t> expected = cache.shape;
  if (update.ndim() == cache.ndim()) expected[d] = update.shape[d];
  if (axis == 0 || update.dtype != cache.dtype || update.shape != expected ||
      update.shape[d] > cache.shape[d]) {
    return node.Invalid("the update ", update.ToString(),
                        " does not fit the cache ", cache.ToString());
  }
  if (update.num_elements() == 0) return std::vector<Imported>{node.Input(0)};
  std::vector<ValueId> inputs{node.Input(0), node.Input(1)};
  if (node.HasInput(2)) {
    TF_RETURN_IF_ERROR(CheckIndices(node, 2));
    if (node.Shape(2) != std::vector<int64_t>{cache.shape[0]}) {
      return node.Invalid("one write index per sequence is needed");
    }
    inputs.push_back(node.Input(2));
  }
  return OneOutput(node.builder().Compute(
      "tensor_scatter", {{"axis", axis}, {"mode", mode}}, inputs,
      [&](const graph::Tensors& in) {
        return te::Compute(
            "T_tensor_scatter", cache.shape, [&](const te::Indices& i) {
              Expr place = i[d];
              if (in.size() > 2) place = place - AsIndex(in[2]({i[0]}));
              if (mode == "circular") {
                place = ir::FloorMod(place, IntConst(cache.shape[d]));
              }
              te::Indices at = i;
              at[d] = ClampIndex(place, update.shape[d]);
              const Expr inside =
                  ir::And(ir::LE(IntConst(0), place),
                          ir::LT(place, IntConst(update.shape[d])));
              return te::Body(ir::IfThenElseExpr(inside, in[1](at), in[0](i)));
            });
      }));
}

Outputs ConvertArrayFeatureExtractor(Node& node) {
  const TensorType data = node.Type(0);
  TF_RETURN_IF_ERROR(CheckIndices(node, 1));
  if (data.ndim() == 0) return node.Invalid("the data is a number");
  const int64_t count = node.Type(1).num_elements();
  TF_ASSIGN_OR_RETURN(const ValueId list,
                      ReshapeTo(node, node.Input(1), {count}));
  const int64_t extent = data.shape.back();
  std::vector<int64_t> shape = data.shape;
  shape.back() = count;
  TF_RETURN_IF_ERROR(CheckShape(node, shape));
  if (data.num_elements() == 0 && Volume(shape, 0, shape.size()) != 0) {
    return node.Invalid("elements of a tensor that has none");
  }
  TF_ASSIGN_OR_RETURN(
      const ValueId taken,
      node.builder().Compute(
          "take", {{"axis", data.ndim() - 1}}, {node.Input(0), list},
          [&](const graph::Tensors& in) {
            return te::Compute("T_take", shape, [&](const te::Indices& i) {
              te::Indices at = i;
              at.back() = WrapIndex(AsIndex(in[1]({i.back()})), extent);
              return te::Body(in[0](at));
            });
          }));
  if (data.ndim() == 1) shape.insert(shape.begin(), 1);
  return OneOutput(ReshapeTo(node, taken, shape));
}

}  // namespace

std::vector<Converter> IndexingConverters() {
  return {
      {"ArrayFeatureExtractor", ConvertArrayFeatureExtractor, "ai.onnx.ml"},
      {"Gather", ConvertGather},
      {"GatherElements", ConvertGatherElements},
      {"GatherND", ConvertGatherND},
      {"ReverseSequence", ConvertReverseSequence},
      {"TensorScatter", ConvertTensorScatter},
      {"Trilu", ConvertTrilu},
  };
}

}  // namespace tilefarm::onnx
