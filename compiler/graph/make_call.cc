#include "compiler/graph/make_call.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace tilefarm::graph {
namespace {

template <typename T>
bool AllFiniteAs(std::span<const std::byte> bytes) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    if (!std::isfinite(value)) return false;
  }
  return true;
}

class TensorReader : public ir::Mutator {
 public:
  TensorReader(const std::vector<ir::Buffer>& params, const Tensors& tensors,
               const ir::VarMap& vars)
      : params_(params), tensors_(tensors), vars_(vars) {}
  using ir::Mutator::Mutate;

 protected:
  ir::Expr MutateVar(const ir::VarNode& var, const ir::Expr& self) override {
    const auto replaced = vars_.find(&var);
    return replaced == vars_.end() ? self : replaced->second;
  }
  ir::Expr MutateLoad(const ir::LoadNode& load, const ir::Expr&) override {
    const auto at = std::find(params_.begin(), params_.end(), load.buffer);
    TF_CHECK(at != params_.end());
    return tensors_[static_cast<size_t>(at - params_.begin())](
        MutateAll(load.indices));
  }

 private:
  const std::vector<ir::Buffer>& params_;
  const Tensors& tensors_;
  const ir::VarMap& vars_;
};

}  // namespace

absl::StatusOr<Call> MakeCall(Graph& graph, std::string op, ir::AttrMap attrs,
                              const std::vector<ValueId>& inputs,
                              const Define& define,
                              std::optional<ValueId> output) {
  Tensors params;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = graph.values[inputs[i]].type;
    TF_CHECK(type.num_elements() > 0);
    params.push_back(
        te::Placeholder(absl::StrCat("in", i), type.shape, type.dtype));
  }
  const te::Tensor result = define(params);
  TF_CHECK(result.op() != nullptr);
  params.push_back(result);
  std::string name = op;
  std::replace(name.begin(), name.end(), '.', '_');
  TF_ASSIGN_OR_RETURN(ir::PrimFuncPtr function,
                      te::CreatePrimFunc(std::move(name), params));
  if (!output) {
    graph.values.push_back({op, {result.dtype(), result.shape()}, nullptr});
    output = static_cast<ValueId>(graph.values.size()) - 1;
  }
  return Call{
      std::move(op), std::move(attrs), std::move(function), inputs, {*output}};
}

absl::StatusOr<ValueId> MakeConstant(Graph& graph, std::string name,
                                     const std::vector<ValueId>& inputs,
                                     const RunFunction& run,
                                     const Define& define) {
  TF_ASSIGN_OR_RETURN(const Call call,
                      MakeCall(graph, std::move(name), {}, inputs, define));
  TF_ASSIGN_OR_RETURN(std::vector<TensorData> results,
                      EvaluateCall(graph, call, run));
  graph.values[call.outputs[0]].constant =
      std::make_shared<const TensorData>(std::move(results[0]));
  return call.outputs[0];
}

bool AllFinite(const Value& constant) {
  const std::span<const std::byte> bytes = constant.constant->bytes();
  return constant.type.dtype.bits == 64 ? AllFiniteAs<double>(bytes)
                                        : AllFiniteAs<float>(bytes);
}

ir::Expr ReadInTensors(const ir::Expr& expr,
                       const std::vector<ir::Buffer>& params,
                       const Tensors& tensors, const ir::VarMap& vars) {
  return TensorReader(params, tensors, vars).Mutate(expr);
}

absl::StatusOr<Call> MakeReshape(Graph& graph, ValueId input, ValueId output) {
  const std::vector<int64_t> shape = graph.values[output].type.shape;
  ir::AttrList extents;
  for (const int64_t extent : shape) extents.emplace_back(extent);
  return MakeCall(
      graph, "reshape", {{"shape", ir::Attr(std::move(extents))}}, {input},
      [&](const Tensors& in) {
        return te::Compute("T_reshape", shape, [&](const te::Indices& i) {
          ir::Expr position = ir::IntConst(0);
          for (size_t d = 0; d < shape.size(); ++d) {
            position = position * shape[d] + i[d];
          }
          te::Indices at(in[0].shape().size());
          for (size_t d = at.size(); d-- > 0;) {
            const ir::Expr extent = ir::IntConst(in[0].shape()[d]);
            at[d] = ir::FloorMod(position, extent);
            position = ir::FloorDiv(position, extent);
          }
          return te::Body(in[0](at));
        });
      },
      output);
}

}  // namespace tilefarm::graph
