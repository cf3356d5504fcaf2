// The division that quantises goes into the constants before it:
//
//   q = round((p * scale[c] + bias[c]) / step)
//   ->  q = round(p * (scale[c] / step) + bias[c] / step)
//
// It goes through sums, too: a residual connection adds two values that were
// dequantised. Where a term has no constant, the division stays.
//
// Results are rounded once less. They differ by one step of q where a value is
// within rounding of the middle between two.
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/access_pattern.h"
#include "compiler/graph/make_call.h"
#include "compiler/graph/nests.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/uses.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;
using ir::BinaryOp;
using ir::Expr;

// Calls that a division goes through.
constexpr int kMostCalls = 16;

int LoadsOf(const Expr& expr, const ir::Buffer& buffer) {
  int loads = 0;
  ir::PostOrderExprs(expr, [&](const Expr& e) {
    const auto* load = As<ir::LoadNode>(e);
    loads += load != nullptr && load->buffer == buffer;
  });
  return loads;
}

// round(x / step): x and step are parameters.
struct Quantization {
  const ir::BinaryNode* division = nullptr;
  size_t x = 0, step = 0;
};

class Replace : public ir::Mutator {
 public:
  Replace(const ir::ExprNode* from, Expr to)
      : from_(from), to_(std::move(to)) {}
  using ir::Mutator::Mutate;
  Expr Mutate(const Expr& expr) override {
    return expr.get() == from_ ? to_ : ir::Mutator::Mutate(expr);
  }

 private:
  const ir::ExprNode* from_;
  const Expr to_;
};

class StepFolder {
 public:
  StepFolder(Graph& graph, const RunFunction& run)
      : graph_(graph), run_(run), uses_(graph) {}

  absl::Status Apply() {
    for (Call& call : graph_.calls) {
      const std::optional<Quantization> found = QuantizationOf(call);
      if (!found) continue;
      Divided divided{call.inputs[found->step]};
      if (!Divide(call.inputs[found->x], divided)) continue;
      TF_ASSIGN_OR_RETURN(const bool fits, MakeConstants(divided));
      if (!fits) continue;
      for (const auto& [place, constant] : divided.constants) {
        graph_.calls[place.first].inputs[place.second] = constant;
      }
      TF_ASSIGN_OR_RETURN(call, WithoutDivision(call, *found));
    }
    return absl::OkStatus();
  }

 private:
  // What changes if a division by `step` moves.
  struct Divided {
    ValueId step;
    std::set<int> calls;
    // By number of call and of parameter: the divided constant.
    std::map<std::pair<int, size_t>, ValueId> constants = {};
  };

  std::optional<Quantization> QuantizationOf(const Call& call) const {
    const Expr stored = StoredBy(*call.function);
    if (stored == nullptr) return std::nullopt;
    std::optional<Quantization> found;
    ir::PostOrderExprs(stored, [&](const Expr& e) {
      const auto* round = As<ir::CallNode>(e);
      if (round == nullptr || round->op != ir::Intrinsic::kNearbyint) return;
      const auto* division = As<ir::BinaryNode>(round->args[0]);
      if (division == nullptr || division->op != BinaryOp::kDiv) return;
      const auto x = ParamOf(call, division->a);
      const auto step = ParamOf(call, division->b);
      if (x && step) found = {division, *x, *step};
    });
    if (!found || !PatternOf(*call.function).elementwise[found->x] ||
        LoadsOf(stored, call.function->params[found->x]) != 1 ||
        !IsStep(call.inputs[found->step])) {
      return std::nullopt;
    }
    return found;
  }

  // The input that the expression loads an element of.
  static std::optional<size_t> ParamOf(const Call& call, const Expr& expr) {
    const auto* load = As<ir::LoadNode>(expr);
    if (load == nullptr) return std::nullopt;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (call.function->params[i] == load->buffer) return i;
    }
    return std::nullopt;
  }

  // A constant whose quotients neither overflow nor lose digits.
  bool IsStep(ValueId id) const {
    const Value& value = graph_.values[id];
    if (value.constant == nullptr || value.type.num_elements() != 1 ||
        value.type.dtype != ir::DataType::Float(32)) {
      return false;
    }
    float step;
    std::memcpy(&step, value.constant->bytes().data(), sizeof(step));
    return step >= 0x1p-60f && step <= 0x1p60f;
  }

  // Whether the value can be computed divided, and by which constants.
  bool Divide(ValueId value, Divided& divided) const {
    const int c = uses_.producer(value);
    if (c < 0 || !uses_.OnlyReader(value) ||
        divided.calls.size() >= kMostCalls ||
        graph_.values[value].type.dtype != ir::DataType::Float(32)) {
      return false;
    }
    if (!divided.calls.insert(c).second) return true;
    const Expr stored = StoredBy(*graph_.calls[c].function);
    return stored != nullptr && DivideTerm(c, stored, stored, divided);
  }

  bool DivideTerm(int c, const Expr& term, const Expr& stored,
                  Divided& divided) const {
    const Call& call = graph_.calls[c];
    if (const auto param = ParamOf(call, term)) {
      const ValueId input = call.inputs[*param];
      if (graph_.values[input].constant == nullptr) {
        return PatternOf(*call.function).elementwise[*param] &&
               Divide(input, divided);
      }
      divided.constants[{c, *param}] = -1;
      return LoadsOf(stored, call.function->params[*param]) == 1;
    }
    const auto* node = As<ir::BinaryNode>(term);
    if (node == nullptr) return false;
    const auto divide = [&](const Expr& part) {
      return DivideTerm(c, part, stored, divided);
    };
    switch (node->op) {
      case BinaryOp::kAdd:
      case BinaryOp::kSub:
        return divide(node->a) && divide(node->b);
      case BinaryOp::kMul:
        for (const Expr& factor : {node->b, node->a}) {
          const auto param = ParamOf(call, factor);
          if (param && graph_.values[call.inputs[*param]].constant != nullptr) {
            return divide(factor);
          }
        }
        return false;
      case BinaryOp::kMax:
      case BinaryOp::kMin:
        // Of zero, which stays itself.
        return (IsZero(node->a) || divide(node->a)) &&
               (IsZero(node->b) || divide(node->b));
      default:
        return false;
    }
  }

  static bool IsZero(const Expr& expr) {
    const auto* number = As<ir::FloatConstNode>(expr);
    return number != nullptr && number->value == 0;
  }

  // Whether all are finite.
  absl::StatusOr<bool> MakeConstants(Divided& divided) const {
    for (auto& [place, constant] : divided.constants) {
      const ValueId old = graph_.calls[place.first].inputs[place.second];
      const std::vector<int64_t> shape = graph_.values[old].type.shape;
      TF_ASSIGN_OR_RETURN(
          constant,
          MakeConstant(
              graph_, graph_.values[old].name, {old, divided.step}, run_,
              [&](const Tensors& in) {
                return te::Compute("scale", shape, [&](const te::Indices& i) {
                  const te::Indices zero(in[1].shape().size(), ir::IntConst(0));
                  return te::Body(
                      ir::MakeBinary(BinaryOp::kDiv, in[0](i), in[1](zero)));
                });
              }));
      if (!AllFinite(graph_.values[constant])) return false;
    }
    return true;
  }

  absl::StatusOr<Call> WithoutDivision(const Call& call,
                                       const Quantization& found) const {
    const Nest nest = NestsOf(*call.function)->front();
    const Expr stored =
        Replace(found.division, found.division->a).Mutate(nest.store->value);
    std::vector<ir::Buffer> params;
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (LoadsOf(stored, call.function->params[i]) == 0) continue;
      params.push_back(call.function->params[i]);
      inputs.push_back(call.inputs[i]);
    }
    return MakeCall(
        graph_, call.op, call.attrs, inputs,
        [&](const Tensors& in) {
          return te::Compute(
              nest.store->buffer->name, nest.store->buffer->shape,
              [&](const te::Indices& i) {
                ir::VarMap at;
                for (size_t d = 0; d < i.size(); ++d) {
                  at[nest.block->iters[d].var.get()] = i[d];
                }
                return te::Body(ReadInTensors(stored, params, in, at));
              });
        },
        call.outputs[0]);
  }

  Graph& graph_;
  const RunFunction& run_;
  const Uses uses_;
};

}  // namespace

absl::StatusOr<Graph> FoldSteps(Graph graph, const RunFunction& run) {
  TF_RETURN_IF_ERROR(StepFolder(graph, run).Apply());
  return graph;
}

}  // namespace tilefarm::graph
