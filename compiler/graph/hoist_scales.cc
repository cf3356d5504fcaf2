// Scales of parts of a product's result are applied to the result, before its
// parts are moved apart: where they are rounded as they were, and fused into
// the product, or folded into its weights (fold_scales.cc). Exporters scale the
// queries and keys of attention so, after heads are taken out of rows.
//
//   y = matmul(x, w) + b            ->  y = (matmul(x, w) + b) * [s, .., t, ..,
//   1] q[h, i, d] = y[i, h * 64 + d]       q[h, i, d] = y[i, h * 64 + d] k[h,
//   d, j] = y[j, 768 + h * 64 + d]     ... v[h, j, d] = y[j, 1536 + h * 64 + d]
//   attention(q * s, k * t, v)          attention(q, k, v)
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/arith/index_math.h"
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

// x[..] * scale or x[..] / scale, with a constant of one element.
struct ScalarScale {
  ir::BinaryOp op = ir::BinaryOp::kMul;
  ValueId value = -1, scale = -1;
};

std::optional<ScalarScale> ScalarScaleOf(const Graph& graph, const Call& call) {
  const AccessPattern pattern = PatternOf(*call.function);
  if (!pattern.injective || call.inputs.size() != 2 ||
      call.outputs.size() != 1) {
    return std::nullopt;
  }
  const auto nests = NestsOf(*call.function);
  if (!nests) return std::nullopt;
  const auto* node = As<ir::BinaryNode>((*nests)[0].store->value);
  if (node == nullptr ||
      (node->op != ir::BinaryOp::kMul && node->op != ir::BinaryOp::kDiv) ||
      !node->dtype.is_float()) {
    return std::nullopt;
  }
  const auto input_of = [&](const ir::Expr& e) -> std::optional<size_t> {
    const auto* load = As<ir::LoadNode>(e);
    for (size_t i = 0; load != nullptr && i < call.inputs.size(); ++i) {
      if (call.function->params[i] == load->buffer) return i;
    }
    return std::nullopt;
  };
  const auto a = input_of(node->a), b = input_of(node->b);
  if (!a || !b || *a == *b) return std::nullopt;
  for (const auto& [x, scale] : {std::pair(*a, *b), std::pair(*b, *a)}) {
    const Value& constant = graph.values[call.inputs[scale]];
    const bool is_divisor = node->op == ir::BinaryOp::kDiv && scale == *a;
    if (constant.constant != nullptr && constant.type.num_elements() == 1 &&
        pattern.elementwise[x] && !is_divisor &&
        graph.values[call.inputs[x]].type ==
            graph.values[call.outputs[0]].type) {
      return ScalarScale{node->op, call.inputs[x], call.inputs[scale]};
    }
  }
  return std::nullopt;
}

// What a call that moves nothing reads of a result, as a box, first and last of
// each dimension.
struct Reader {
  int call = -1;  // -1: it is an output of the graph
  std::vector<arith::Interval> box;
  std::optional<ScalarScale> scale;  // of moved elements
};

class ScaleHoister {
 public:
  ScaleHoister(Graph& graph, const RunFunction& run)
      : graph_(graph), run_(run), uses_(graph) {}

  absl::StatusOr<Graph> Apply() && {
    std::vector<Call> calls;
    const size_t count = graph_.calls.size();
    std::vector<bool> dropped(count);
    for (size_t c = 0; c < count; ++c) {
      if (dropped[c]) continue;
      calls.push_back(graph_.calls[c]);
      if (!MakesProduct(static_cast<int>(c))) continue;
      const ValueId result = graph_.calls[c].outputs[0];
      if (uses_.is_output(result)) continue;
      std::vector<Reader> readers;
      if (!FollowMovement(result, readers)) continue;
      const std::optional<size_t> dim = DimOf(result, readers);
      if (!dim) continue;
      TF_ASSIGN_OR_RETURN(Call scaled, Scale(result, *dim, readers));
      for (const Reader& reader : readers) {
        if (!reader.scale) continue;
        dropped[static_cast<size_t>(reader.call)] = true;
        same_.emplace_back(
            graph_.calls[static_cast<size_t>(reader.call)].outputs[0],
            reader.scale->value);
      }
      // What read the result reads the scaled one.
      for (const int reader : uses_.readers(result)) {
        for (ValueId& input :
             graph_.calls[static_cast<size_t>(reader)].inputs) {
          if (input == result) input = scaled.outputs[0];
        }
      }
      calls.push_back(std::move(scaled));
    }
    for (Call& call : calls) {
      for (ValueId& input : call.inputs) {
        for (const auto& [from, to] : same_) {
          if (input == from) input = to;
        }
      }
    }
    graph_.calls = std::move(calls);
    return std::move(graph_);
  }

 private:
  // Whether the call has a product of sums, or only computes element by element
  // what such a call made.
  bool MakesProduct(int c) const {
    while (c >= 0) {
      const Call& call = graph_.calls[static_cast<size_t>(c)];
      const auto nests = NestsOf(*call.function);
      if (call.outputs.size() != 1 || !nests) return false;
      if (std::ranges::any_of(*nests, [](const Nest& nest) {
            return SummedProductOf(nest).has_value();
          })) {
        return true;
      }
      const AccessPattern pattern = PatternOf(*call.function);
      if (!pattern.injective || MovementOf(*call.function)) return false;
      int before = -1;
      for (size_t i = 0; i < call.inputs.size(); ++i) {
        if (pattern.elementwise[i]) {
          before = std::max(before, uses_.producer(call.inputs[i]));
        }
      }
      c = before;
    }
    return false;
  }

  // Unbounded where nothing is read.
  static std::vector<arith::Interval> BoxOf(const Movement& movement) {
    if (std::ranges::count(movement.result_shape, 0) > 0) {
      return std::vector<arith::Interval>(movement.indices.size());
    }
    arith::IndexMath math;
    for (size_t d = 0; d < movement.vars.size(); ++d) {
      math.Bind(movement.vars[d].get(), 0, movement.result_shape[d] - 1);
    }
    std::vector<arith::Interval> box;
    for (const ir::Expr& index : movement.indices) {
      box.push_back(math.Bounds(index));
    }
    return box;
  }

  // All that read the result, directly or moved. False: one is not known.
  bool FollowMovement(ValueId result, std::vector<Reader>& readers) const {
    const std::vector<int64_t>& shape = graph_.values[result].type.shape;
    Movement identity{.input_shape = shape, .result_shape = shape};
    for (size_t d = 0; d < shape.size(); ++d) {
      identity.vars.push_back(ir::MakeVar("i"));
      identity.indices.emplace_back(identity.vars.back());
    }
    Follow(result, identity, /*moved=*/false, readers);
    // One operation scales them all.
    std::optional<ir::BinaryOp> op;
    for (Reader& reader : readers) {
      if (!reader.scale) continue;
      if (op.value_or(reader.scale->op) != reader.scale->op) {
        reader.scale.reset();
      } else {
        op = reader.scale->op;
      }
    }
    return std::ranges::all_of(readers, [](const Reader& reader) {
      return std::ranges::all_of(reader.box, [](const arith::Interval& range) {
        return range.bounded();
      });
    });
  }

  void Follow(ValueId value, const Movement& movement, bool moved,
              std::vector<Reader>& readers) const {
    if (uses_.is_output(value)) readers.push_back({.box = BoxOf(movement)});
    for (const int c : uses_.readers(value)) {
      const Call& call = graph_.calls[static_cast<size_t>(c)];
      if (const std::optional<Movement> next = MovementOf(*call.function)) {
        Follow(call.outputs[0], Compose(movement, *next), true, readers);
        continue;
      }
      Reader reader{.call = c, .box = BoxOf(movement)};
      if (moved && !uses_.is_output(call.outputs[0])) {
        reader.scale = ScalarScaleOf(graph_, call);
        if (reader.scale && reader.scale->value != value) reader.scale.reset();
      }
      readers.push_back(std::move(reader));
    }
  }

  // The dimension of the result that tells apart what is scaled from all else;
  // nullopt: nothing is, or there is none.
  std::optional<size_t> DimOf(ValueId result,
                              const std::vector<Reader>& readers) const {
    const bool scales = std::ranges::any_of(
        readers, [](const Reader& reader) { return reader.scale.has_value(); });
    const size_t dims = graph_.values[result].type.shape.size();
    for (size_t d = dims; scales && d-- > 0;) {
      const bool apart = std::ranges::all_of(readers, [&](const Reader& a) {
        return !a.scale || std::ranges::all_of(readers, [&](const Reader& b) {
          return &a == &b || a.box[d].hi < b.box[d].lo ||
                 b.box[d].hi < a.box[d].lo;
        });
      });
      if (apart) return d;
    }
    return std::nullopt;
  }

  // The result, scaled by a constant along the dimension.
  absl::StatusOr<Call> Scale(ValueId result, size_t dim,
                             const std::vector<Reader>& readers) const {
    std::vector<ValueId> scales;
    ir::BinaryOp op = ir::BinaryOp::kMul;
    for (const Reader& reader : readers) {
      if (!reader.scale) continue;
      scales.push_back(reader.scale->scale);
      op = reader.scale->op;
    }
    const TensorType type = graph_.values[result].type;
    TF_ASSIGN_OR_RETURN(
        const ValueId channels,
        MakeConstant(graph_, "scales", scales, run_, [&](const Tensors& in) {
          return te::Compute(
              "scales", {type.shape[dim]}, [&](const te::Indices& i) {
                ir::Expr value = ir::FloatConst(1, type.dtype);
                size_t number = 0;
                for (const Reader& reader : readers) {
                  if (!reader.scale) continue;
                  const te::Tensor& scale = in[number++];
                  const arith::Interval& range = reader.box[dim];
                  value = ir::MakeSelect(
                      ir::And(ir::GE(i[0], ir::IntConst(range.lo)),
                              ir::LE(i[0], ir::IntConst(range.hi))),
                      scale(te::Indices(scale.shape().size(), ir::IntConst(0))),
                      value);
                }
                return te::Body(value);
              });
        }));
    return MakeCall(
        graph_, op == ir::BinaryOp::kMul ? "multiply" : "divide", {},
        {result, channels}, [&](const Tensors& in) {
          return te::Compute(
              "T_scale", in[0].shape(), [&](const te::Indices& i) {
                return te::Body(ir::MakeBinary(op, in[0](i), in[1]({i[dim]})));
              });
        });
  }

  Graph& graph_;
  const RunFunction& run_;
  const Uses uses_;
  std::vector<std::pair<ValueId, ValueId>> same_;
};

}  // namespace

absl::StatusOr<Graph> HoistScales(Graph graph, const RunFunction& run) {
  return ScaleHoister(graph, run).Apply();
}

}  // namespace tilefarm::graph
