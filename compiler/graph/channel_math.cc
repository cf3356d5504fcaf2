#include "compiler/graph/channel_math.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/graph/access_pattern.h"
#include "compiler/graph/make_call.h"
#include "compiler/graph/nests.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;
using ir::BinaryOp;
using ir::Expr;

bool IsWideFloat(ir::DataType dtype) {
  return dtype == ir::DataType::Float(32) || dtype == ir::DataType::Float(64);
}

// The load of `weight` in a sum of products `load * rest`, with the rest; null
// if the nest is no such sum.
const ir::LoadNode* WeightOfTerm(const Nest& nest, const ir::BufferNode* weight,
                                 Expr* rest) {
  const std::optional<Factors> factors = SummedProductOf(nest);
  if (!factors) return nullptr;
  for (const auto& [factor, other] :
       {std::pair(factors->a, factors->b), std::pair(factors->b, factors->a)}) {
    const auto* load = As<ir::LoadNode>(factor);
    if (load == nullptr || load->buffer.get() != weight) continue;
    if (ir::Loads(other, weight)) return nullptr;
    *rest = other;
    return load;
  }
  return nullptr;
}

// scale * x + shift; null: 1 and 0. `has_x` is false if x does not occur.
struct Linear {
  bool has_x = false;
  Expr scale, shift;
};

class LinearReader {
 public:
  explicit LinearReader(const ir::BufferNode* x) : x_(x) {}

  std::optional<Linear> Read(const Expr& expr) const {
    if (const auto* load = As<ir::LoadNode>(expr);
        load != nullptr && load->buffer.get() == x_) {
      return Linear{.has_x = true};
    }
    if (!ir::Loads(expr, x_)) return Linear{.shift = expr};
    const auto* node = As<ir::BinaryNode>(expr);
    if (node == nullptr) return std::nullopt;
    const std::optional<Linear> a = Read(node->a), b = Read(node->b);
    if (!a || !b) return std::nullopt;
    switch (node->op) {
      case BinaryOp::kAdd:
        if (a->has_x && b->has_x) return std::nullopt;
        return a->has_x ? Shifted(*a, BinaryOp::kAdd, b->shift)
                        : Shifted(*b, BinaryOp::kAdd, a->shift);
      case BinaryOp::kSub:
        if (!a->has_x || b->has_x) return std::nullopt;
        return Shifted(*a, BinaryOp::kSub, b->shift);
      case BinaryOp::kMul:
        if (a->has_x && b->has_x) return std::nullopt;
        return a->has_x ? Scaled(*a, BinaryOp::kMul, b->shift)
                        : Scaled(*b, BinaryOp::kMul, a->shift);
      case BinaryOp::kDiv:
        if (!a->has_x || b->has_x) return std::nullopt;
        return Scaled(*a, BinaryOp::kDiv, b->shift);
      default:
        return std::nullopt;
    }
  }

 private:
  static Linear Shifted(Linear linear, BinaryOp op, const Expr& by) {
    if (linear.shift == nullptr) {
      linear.shift = op == BinaryOp::kAdd
                         ? by
                         : ir::MakeBinary(op, ir::FloatConst(0, by->dtype), by);
    } else {
      linear.shift = ir::MakeBinary(op, linear.shift, by);
    }
    return linear;
  }
  static Linear Scaled(Linear linear, BinaryOp op, const Expr& by) {
    const Expr one = ir::FloatConst(1, by->dtype);
    linear.scale =
        op == BinaryOp::kMul && linear.scale == nullptr
            ? by
            : ir::MakeBinary(op, linear.scale ? linear.scale : one, by);
    if (linear.shift != nullptr) {
      linear.shift = ir::MakeBinary(op, linear.shift, by);
    }
    return linear;
  }

  const ir::BufferNode* x_;
};

}  // namespace

std::optional<ChannelProduct> ChannelProductOf(
    const Call& call, const std::function<bool(size_t param)>& may_be_weight) {
  if (call.outputs.size() != 1) return std::nullopt;
  const auto nests = NestsOf(*call.function);
  if (!nests || nests->empty()) return std::nullopt;
  const Nest& nest = nests->back();
  const ir::BufferNode& result = *call.function->params.back();
  if (nest.store->buffer.get() != &result || !IsWideFloat(result.dtype)) {
    return std::nullopt;
  }
  for (size_t p = 0; p < call.inputs.size(); ++p) {
    const ir::Buffer& weight = call.function->params[p];
    if (weight->dtype != result.dtype || !may_be_weight(p)) continue;
    // No other nest may read the weights.
    const bool elsewhere =
        std::any_of(nests->begin(), nests->end() - 1, [&](const Nest& other) {
          return std::count(other.reads.begin(), other.reads.end(), weight) > 0;
        });
    Expr rest;
    const ir::LoadNode* load =
        elsewhere ? nullptr : WeightOfTerm(nest, weight.get(), &rest);
    if (load == nullptr) continue;
    for (size_t d = 0; d < nest.store->indices.size(); ++d) {
      const auto* var = As<ir::VarNode>(nest.store->indices[d]);
      if (var == nullptr) continue;
      const auto uses = [&](const Expr& index) {
        return ir::UsesVar(index, var);
      };
      const auto at = std::find(load->indices.begin(), load->indices.end(),
                                nest.store->indices[d]);
      if (at == load->indices.end() ||
          std::count_if(load->indices.begin(), load->indices.end(), uses) !=
              1 ||
          std::count_if(nest.store->indices.begin(), nest.store->indices.end(),
                        uses) != 1) {
        continue;
      }
      const auto dim = static_cast<size_t>(at - load->indices.begin());
      if (weight->shape[dim] != result.shape[d]) continue;
      return ChannelProduct{.weight = static_cast<int>(p),
                            .weight_dim = static_cast<int>(dim),
                            .result_dim = static_cast<int>(d),
                            .shares_data = !uses(rest)};
    }
  }
  return std::nullopt;
}

std::optional<ChannelProduct> ChannelProductOf(const Graph& graph,
                                               const Call& call) {
  return ChannelProductOf(call, [&](size_t param) {
    return graph.values[call.inputs[param]].constant != nullptr;
  });
}

std::optional<ChannelAffine> ChannelAffineOf(const Graph& graph,
                                             const Call& call, ValueId value,
                                             int dim) {
  const AccessPattern pattern = PatternOf(*call.function);
  if (!pattern.injective || call.outputs.size() != 1 ||
      !IsWideFloat(graph.values[value].type.dtype) ||
      graph.values[call.outputs[0]].type != graph.values[value].type) {
    return std::nullopt;
  }
  ChannelAffine affine{.input = -1};
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] != value) {
      if (graph.values[call.inputs[i]].constant == nullptr) return std::nullopt;
      continue;
    }
    if (affine.input >= 0 || !pattern.elementwise[i]) return std::nullopt;
    affine.input = static_cast<int>(i);
  }
  if (affine.input < 0) return std::nullopt;
  const std::vector<Nest> nests = *NestsOf(*call.function);
  const Nest& nest = nests[0];
  const ir::BufferNode* x = call.function->params[affine.input].get();
  const std::optional<Linear> linear = LinearReader(x).Read(nest.store->value);
  if (!linear || !linear->has_x) return std::nullopt;
  affine.scale = linear->scale;
  affine.shift = linear->shift;
  for (size_t i = 0; i < nest.block->iters.size(); ++i) {
    const ir::Var& var = nest.block->iters[i].var;
    if (static_cast<int>(i) == dim) {
      affine.channel = var;
      continue;
    }
    for (const Expr& part : {affine.scale, affine.shift}) {
      if (part != nullptr && ir::UsesVar(part, var.get())) return std::nullopt;
    }
  }
  return affine;
}

absl::StatusOr<ValueId> ChannelConstant(
    Graph& graph, const Call& call, const ChannelAffine& affine,
    int64_t channels, std::optional<ValueId> before, const RunFunction& run,
    const std::function<ir::Expr(const ir::Expr& before,
                                 const ReadParams& read)>& define) {
  std::vector<ValueId> inputs;
  std::vector<ir::Buffer> params;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (static_cast<int>(i) == affine.input) continue;
    params.push_back(call.function->params[i]);
    inputs.push_back(call.inputs[i]);
  }
  if (before) inputs.push_back(*before);
  return MakeConstant(graph, "channels", inputs, run, [&](const Tensors& in) {
    return te::Compute("channels", {channels}, [&](const te::Indices& i) {
      const ReadParams read = [&](const Expr& expr) {
        return ReadInTensors(expr, params, in, {{affine.channel.get(), i[0]}});
      };
      return te::Body(define(before ? in.back()({i[0]}) : Expr(), read));
    });
  });
}

absl::StatusOr<Call> AddToChannels(Graph& graph, ValueId value, int dim,
                                   ValueId shift,
                                   std::optional<ValueId> output) {
  const auto d = static_cast<size_t>(dim);
  return MakeCall(
      graph, "add", {}, {value, shift},
      [&](const Tensors& in) {
        return te::Compute("T_add", in[0].shape(), [&](const te::Indices& i) {
          return te::Body(
              ir::MakeBinary(BinaryOp::kAdd, in[0](i), in[1]({i[d]})));
        });
      },
      output);
}

}  // namespace tilefarm::graph
