// Elementwise calls work on the shape that a product made: reshapes between
// them move behind, so that fusion sees the calls one after another.
//
//   p = matmul(...)                [64, 768]
//   r = reshape(p)                 [1, 64, 768]
//   y = add(r, bias)               [1, 64, 768]
//   ->  q = add(p, bias)           [64, 768]
//       y = reshape(q)             [1, 64, 768]
//
// Other operands of that shape are reshaped, too, which needs no code: of
// several reshapes, the one of a product that fusion can merge with the call
// gives its shape. A call stays where it can be merged with a product as it is,
// and where its index arithmetic would need divisions.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/access_pattern.h"
#include "compiler/graph/make_call.h"
#include "compiler/graph/movement.h"
#include "compiler/graph/nests.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/uses.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;
using ir::Expr;

bool IsReshape(const Call& call) {
  return call.op == "reshape" && call.inputs.size() == 1;
}

// The function of an elementwise call, on another shape of its result.
class OnShape {
 public:
  OnShape(const ir::PrimFunc& function, const std::vector<int64_t>& shape)
      : function_(function),
        shape_(shape),
        elementwise_(PatternOf(function).elementwise) {
    const std::vector<Nest> nests = *NestsOf(function);
    value_ = nests[0].store->value;
    for (size_t d = 0; d < shape.size(); ++d) {
      vars_.push_back(ir::MakeVar("i"));
    }
    const Movement movement =
        ReshapeMovement(function.params.back()->shape, shape, vars_);
    for (size_t d = 0; d < movement.indices.size(); ++d) {
      old_vars_[nests[0].block->iters[d].var.get()] = movement.indices[d];
    }
    // Tensors stand for the inputs, to see which indices there would be.
    Tensors inputs;
    for (size_t i = 0; i + 1 < function.params.size(); ++i) {
      const ir::BufferNode& param = *function.params[i];
      inputs.push_back(te::Placeholder(
          param.name, elementwise_[i] ? shape : param.shape, param.dtype));
    }
    ir::PostOrderExprs(ValueAt(inputs, {vars_.begin(), vars_.end()}),
                       [&](const Expr& part) {
                         const auto* binary = As<ir::BinaryNode>(part);
                         if (binary == nullptr) return;
                         is_plain_ &= binary->op != ir::BinaryOp::kFloorDiv &&
                                      binary->op != ir::BinaryOp::kFloorMod;
                       });
  }

  // Whether that needs no divisions of indices.
  bool is_plain() const { return is_plain_; }
  // Whether input `i` is read element by element, and so has the new shape.
  bool elementwise(size_t i) const { return elementwise_[i]; }

  te::Tensor Compute(const Tensors& inputs) const {
    return te::Compute(
        function_.params.back()->name, shape_,
        [&](const te::Indices& i) { return te::Body(ValueAt(inputs, i)); });
  }

 private:
  class Reader;
  Expr ValueAt(const Tensors& inputs, const te::Indices& at) const;

  const ir::PrimFunc& function_;
  const std::vector<int64_t> shape_;
  const std::vector<bool> elementwise_;
  Expr value_;
  std::vector<ir::Var> vars_;  // of the new shape
  ir::VarMap old_vars_;        // as expressions of vars_
  bool is_plain_ = true;
};

// Rewrites the value: old variables become expressions of new ones, and inputs
// become tensors.
class OnShape::Reader : public ir::Mutator {
 public:
  Reader(const OnShape& self, const Tensors& inputs, const te::Indices& at)
      : self_(self), inputs_(inputs), at_(at) {
    for (size_t d = 0; d < at.size(); ++d) {
      new_vars_[self.vars_[d].get()] = at[d];
    }
  }
  using ir::Mutator::Mutate;

 protected:
  Expr MutateVar(const ir::VarNode& var, const Expr& self) override {
    const auto value = self_.old_vars_.find(&var);
    return value == self_.old_vars_.end()
               ? self
               : ir::Substitute(value->second, new_vars_);
  }
  Expr MutateLoad(const ir::LoadNode& load, const Expr&) override {
    const std::vector<ir::Buffer>& params = self_.function_.params;
    const auto i = static_cast<size_t>(
        std::find(params.begin(), params.end(), load.buffer) - params.begin());
    return inputs_[i](self_.elementwise_[i] ? at_ : MutateAll(load.indices));
  }

 private:
  const OnShape& self_;
  const Tensors& inputs_;
  const te::Indices& at_;
  ir::VarMap new_vars_;
};

Expr OnShape::ValueAt(const Tensors& inputs, const te::Indices& at) const {
  return Reader(*this, inputs, at).Mutate(value_);
}

class Sinker {
 public:
  explicit Sinker(Graph graph)
      : graph_(std::move(graph)),
        uses_(graph_),
        reshape_of_(graph_.values.size(), -1) {}

  absl::StatusOr<Graph> Run() {
    for (const Call& call : graph_.calls) {
      if (PatternOf(*call.function).injective) continue;
      anchored_.insert(call.outputs.begin(), call.outputs.end());
    }
    for (Call& call : std::exchange(graph_.calls, {})) {
      TF_RETURN_IF_ERROR(Add(std::move(call)));
    }
    return std::move(graph_);
  }

 private:
  // Appends the call, or what stands for it.
  absl::Status Add(Call call) {
    if (IsReshape(call)) {
      // A reshape of a reshape reads the first value.
      if (const ValueId from = reshape_of(call.inputs[0]); from >= 0) {
        TF_ASSIGN_OR_RETURN(call, MakeReshape(graph_, from, call.outputs[0]));
      }
      Register(std::move(call));
      return absl::OkStatus();
    }
    const std::optional<size_t> by = ReshapedOperand(call);
    if (!by) {
      graph_.calls.push_back(std::move(call));
      return absl::OkStatus();
    }
    const ValueId source = reshape_of(call.inputs[*by]);
    const std::vector<int64_t> shape = graph_.values[source].type.shape;
    const OnShape moved(*call.function, shape);
    if (!moved.is_plain()) {
      graph_.calls.push_back(std::move(call));
      return absl::OkStatus();
    }
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (!moved.elementwise(i)) {
        inputs.push_back(call.inputs[i]);
        continue;
      }
      TF_ASSIGN_OR_RETURN(inputs.emplace_back(),
                          InShape(call.inputs[i], shape));
    }
    TF_ASSIGN_OR_RETURN(Call sunk, MakeCall(graph_, call.op, call.attrs, inputs,
                                            [&](const Tensors& in) {
                                              return moved.Compute(in);
                                            }));
    const ValueId result = sunk.outputs[0];
    if (anchored_.contains(source)) anchored_.insert(result);
    graph_.calls.push_back(std::move(sunk));
    TF_ASSIGN_OR_RETURN(Call back,
                        MakeReshape(graph_, result, call.outputs[0]));
    Register(std::move(back));
    return absl::OkStatus();
  }

  ValueId reshape_of(ValueId id) const {
    return static_cast<size_t>(id) < reshape_of_.size()
               ? reshape_of_[static_cast<size_t>(id)]
               : -1;
  }

  void Register(Call reshape) {
    reshape_of_.resize(graph_.values.size(), -1);
    // Only values that calls compute are worth following.
    const ValueId from = reshape.inputs[0];
    const bool is_input =
        std::count(graph_.inputs.begin(), graph_.inputs.end(), from) > 0;
    if (!is_input && graph_.values[from].constant == nullptr) {
      reshape_of_[static_cast<size_t>(reshape.outputs[0])] = from;
    }
    graph_.calls.push_back(std::move(reshape));
  }

  // The operand whose shape the call should have before it was reshaped. The
  // first one that fusion can merge with the call decides, which may need no
  // reshape, or else the first reshape.
  std::optional<size_t> ReshapedOperand(const Call& call) const {
    const AccessPattern pattern = PatternOf(*call.function);
    if (!pattern.injective) return std::nullopt;
    std::optional<size_t> first;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (!pattern.elementwise[i]) continue;
      const ValueId id = call.inputs[i];
      const ValueId source = reshape_of(id);
      const bool is_reshape = source >= 0;
      if (IsReadOnce(id) &&
          (is_reshape ? anchored_.contains(source) && IsReadOnce(source)
                      : anchored_.contains(id))) {
        return is_reshape ? std::optional(i) : std::nullopt;
      }
      if (is_reshape && !first) first = i;
    }
    return first;
  }

  // Of values that this pass makes, the reshape back is the only reader.
  bool IsReadOnce(ValueId id) const {
    return static_cast<size_t>(id) >= uses_.size() ||
           uses_.OnlyReader(id).has_value();
  }

  // The value with another shape.
  absl::StatusOr<ValueId> InShape(ValueId id,
                                  const std::vector<int64_t>& shape) {
    const ValueId from = reshape_of(id);
    if (from >= 0 && graph_.values[from].type.shape == shape) return from;
    TensorType type = graph_.values[id].type;
    type.shape = shape;
    graph_.values.push_back({graph_.values[id].name, type, nullptr});
    const auto made = static_cast<ValueId>(graph_.values.size()) - 1;
    if (const auto& constant = graph_.values[id].constant) {
      graph_.values[made].constant = constant;
      return made;
    }
    TF_ASSIGN_OR_RETURN(Call reshape, MakeReshape(graph_, id, made));
    graph_.calls.push_back(std::move(reshape));
    return made;
  }

  Graph graph_;
  const Uses uses_;                  // of the graph as it was
  std::vector<ValueId> reshape_of_;  // per value; -1: no reshape
  // What calls that are not injective make, and elementwise calls of it.
  std::set<ValueId> anchored_;
};

}  // namespace

absl::StatusOr<Graph> SinkReshapes(Graph graph) {
  return Sinker(std::move(graph)).Run();
}

}  // namespace tilefarm::graph
