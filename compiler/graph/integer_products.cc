// Products of dequantised tensors multiply what is stored:
//
//   y = sum of ((x - xz) * xs) * ((w - wz[c]) * ws[c])     float32
//   ->  p = sum of (x - xz) * (w - wz[c])                  int32
//       y = p * (xs * ws[c])
//
// x and w have 8 bits; w, scales and zero points are constants. Where x is
// padded, its zero point stands for 0.
//
// Sums of integers are exact: results differ by rounding, and are nearer to
// what the formula says (docs/decisions/graph/integer-products.md).
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/access_pattern.h"
#include "compiler/graph/channel_math.h"
#include "compiler/graph/make_call.h"
#include "compiler/graph/nests.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/uses.h"
#include "compiler/ir/verifier.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;
using ir::DataType;
using ir::Expr;

// (stored - zero) * scale. Scale and zero point have one element, or one for
// each index of dimension `axis` of the tensor.
struct Dequantized {
  ValueId stored = -1;
  ValueId scale = -1;
  std::optional<ValueId> zero;
  std::optional<size_t> axis;
};

bool IsByte(DataType dtype) {
  return dtype == DataType::Int(8) || dtype == DataType::UInt(8);
}

// `expr` without a cast.
const Expr& Uncast(const Expr& expr) {
  const auto* cast = As<ir::CastNode>(expr);
  return cast == nullptr ? expr : cast->value;
}

class FunctionReader {
 public:
  FunctionReader(const Graph& graph, const Call& call)
      : graph_(graph), call_(call) {}

  // nullopt if the call does not dequantise.
  std::optional<Dequantized> Read() {
    const AccessPattern pattern = PatternOf(*call_.function);
    if (!pattern.injective || call_.outputs.size() != 1 ||
        graph_.values[call_.outputs[0]].type.dtype != DataType::Float(32)) {
      return std::nullopt;
    }
    const std::vector<Nest> nests = *NestsOf(*call_.function);
    indices_ = &nests[0].store->indices;
    const auto* product = As<ir::BinaryNode>(nests[0].store->value);
    if (product == nullptr || product->op != ir::BinaryOp::kMul) {
      return std::nullopt;
    }
    Dequantized result;
    const auto scale = Parameter(product->b);
    const auto* number = As<ir::CastNode>(product->a);
    if (!scale || number == nullptr) return std::nullopt;
    result.scale = scale->value;
    result.axis = scale->axis;
    Expr stored = number->value;
    const auto* difference = As<ir::BinaryNode>(stored);
    if (difference != nullptr) {
      const auto zero = Parameter(Uncast(difference->b));
      if (difference->op != ir::BinaryOp::kSub ||
          difference->dtype != DataType::Int(32) || !zero ||
          zero->axis != scale->axis) {
        return std::nullopt;
      }
      result.zero = zero->value;
      stored = difference->a;
    }
    const auto* load = As<ir::LoadNode>(Uncast(stored));
    const std::optional<size_t> param = ParamOf(load);
    if (!param || !pattern.elementwise[*param] || !IsByte(load->dtype)) {
      return std::nullopt;
    }
    result.stored = call_.inputs[*param];
    return result;
  }

 private:
  struct PerTensorOrAxis {
    ValueId value;
    std::optional<size_t> axis;
  };

  std::optional<size_t> ParamOf(const ir::LoadNode* load) const {
    for (size_t p = 0; p < call_.inputs.size(); ++p) {
      if (load != nullptr && load->buffer == call_.function->params[p]) {
        return p;
      }
    }
    return std::nullopt;
  }

  std::optional<PerTensorOrAxis> Parameter(const Expr& expr) const {
    const auto* load = As<ir::LoadNode>(expr);
    const std::optional<size_t> param = ParamOf(load);
    if (!param) return std::nullopt;
    PerTensorOrAxis result{call_.inputs[*param], std::nullopt};
    if (load->buffer->num_elements() == 1) return result;
    if (load->indices.size() != 1) return std::nullopt;
    for (size_t d = 0; d < indices_->size(); ++d) {
      if (load->indices[0] == (*indices_)[d]) result.axis = d;
    }
    if (!result.axis) return std::nullopt;
    return result;
  }

  const Graph& graph_;
  const Call& call_;
  const std::vector<Expr>* indices_ = nullptr;
};

// A nest that copies elements of `source`, with 0 where a condition is false.
struct Padding {
  const ir::LoadNode* source = nullptr;
  Expr inside;  // null: everywhere
};

std::optional<Padding> PaddingOf(const Nest& nest) {
  Padding padding{.source = As<ir::LoadNode>(nest.store->value)};
  if (const auto* choice = As<ir::CallNode>(nest.store->value);
      choice != nullptr && choice->op == ir::Intrinsic::kIfThenElse) {
    const auto* zero = As<ir::FloatConstNode>(choice->args[2]);
    if (zero == nullptr || zero->value != 0) return std::nullopt;
    padding.inside = choice->args[0];
    padding.source = As<ir::LoadNode>(choice->args[1]);
  }
  if (padding.source == nullptr || nest.block->init != nullptr ||
      nest.reads.size() != 1) {
    return std::nullopt;
  }
  return padding;
}

// How many products each sum has.
double TermsOf(const Nest& nest) {
  double terms = 1;
  for (const ir::IterVar& iter : nest.block->iters) {
    if (iter.type != ir::IterType::kSpatial) {
      terms *= static_cast<double>(
          ir::AsInt(iter.dom.extent)
              .value_or(std::numeric_limits<int32_t>::max()));
    }
  }
  return terms;
}

ir::BlockNode Storing(const Nest& nest, const ir::Buffer& buffer, Expr value,
                      ir::Stmt init) {
  ir::BlockNode block(*nest.block);
  block.init = std::move(init);
  block.body = ir::MakeStore(buffer, nest.store->indices, std::move(value));
  return block;
}

class Rewriter {
 public:
  Rewriter(Graph& graph, const RunFunction& run)
      : graph_(graph),
        run_(run),
        uses_(graph),
        is_evaluated_(graph.calls.size()) {}

  absl::Status Apply() {
    std::vector<Call> calls;
    for (size_t c = 0; c < graph_.calls.size(); ++c) {
      TF_ASSIGN_OR_RETURN(std::vector<Call> made, Rewritten(c));
      for (Call& call : made) calls.push_back(std::move(call));
      if (made.empty()) calls.push_back(graph_.calls[c]);
    }
    // What was evaluated is constant, and no longer computed.
    std::vector<Call> kept;
    for (Call& call : calls) {
      const int producer = ProducerOf(call.outputs[0]);
      if (producer < 0 || !is_evaluated_[static_cast<size_t>(producer)]) {
        kept.push_back(std::move(call));
      }
    }
    graph_.calls = std::move(kept);
    return absl::OkStatus();
  }

 private:
  // -1 also for values that the pass has made.
  int ProducerOf(ValueId id) const {
    return static_cast<size_t>(id) < old_values_ ? uses_.producer(id) : -1;
  }

  // Whether the value is a constant, which it becomes if a call of constants
  // computes it.
  absl::StatusOr<bool> IsConstant(ValueId id) {
    if (graph_.values[id].constant != nullptr) return true;
    const int producer = ProducerOf(id);
    if (producer < 0) return false;
    const Call& call = graph_.calls[static_cast<size_t>(producer)];
    for (const ValueId input : call.inputs) {
      if (graph_.values[input].constant == nullptr) return false;
    }
    TF_ASSIGN_OR_RETURN(std::vector<TensorData> results,
                        EvaluateCall(graph_, call, run_));
    for (size_t i = 0; i < results.size(); ++i) {
      graph_.values[call.outputs[i]].constant =
          std::make_shared<const TensorData>(std::move(results[i]));
    }
    is_evaluated_[static_cast<size_t>(producer)] = true;
    return true;
  }

  // nullopt if no call dequantises the value with constants.
  absl::StatusOr<std::optional<Dequantized>> DequantizedOf(ValueId id) {
    const int producer = ProducerOf(id);
    if (producer < 0) return std::nullopt;
    const auto result =
        FunctionReader(graph_, graph_.calls[static_cast<size_t>(producer)])
            .Read();
    if (!result) return std::nullopt;
    TF_ASSIGN_OR_RETURN(bool is_constant, IsConstant(result->scale));
    if (is_constant && result->zero) {
      TF_ASSIGN_OR_RETURN(is_constant, IsConstant(*result->zero));
    }
    if (!is_constant) return std::nullopt;
    return result;
  }

  bool IsZero(ValueId zero) const {
    for (const std::byte byte : graph_.values[zero].constant->bytes()) {
      if (byte != std::byte{0}) return false;
    }
    return true;
  }

  // Instead of call number `c`; none if it stays.
  absl::StatusOr<std::vector<Call>> Rewritten(size_t c) {
    const Call call = graph_.calls[c];
    std::vector<std::optional<Dequantized>> from;
    for (const ValueId input : call.inputs) {
      TF_ASSIGN_OR_RETURN(from.emplace_back(), DequantizedOf(input));
    }
    std::vector<bool> is_weight;
    for (const std::optional<Dequantized>& input : from) {
      is_weight.push_back(false);
      if (!input) continue;
      TF_ASSIGN_OR_RETURN(is_weight.back(), IsConstant(input->stored));
    }
    const std::optional<ChannelProduct> product =
        ChannelProductOf(call, [&](size_t param) { return is_weight[param]; });
    if (!product ||
        graph_.values[call.outputs[0]].type.dtype != DataType::Float(32)) {
      return std::vector<Call>();
    }
    const auto weight = static_cast<size_t>(product->weight);
    const Dequantized& w = *from[weight];
    const auto channel = static_cast<size_t>(product->weight_dim);
    if (w.axis && *w.axis != channel) return std::vector<Call>();

    // What the weights are multiplied by.
    const ir::PrimFunc& function = *call.function;
    const std::vector<Nest> nests = *NestsOf(function);
    const Nest& sum = nests.back();
    const Factors factors = *SummedProductOf(sum);
    const auto* w_load = As<ir::LoadNode>(factors.a);
    const auto* x_load = As<ir::LoadNode>(factors.b);
    if (w_load == nullptr || w_load->buffer != function.params[weight]) {
      std::swap(w_load, x_load);
    }
    std::optional<Padding> padding;
    if (x_load != nullptr && nests.size() == 2 &&
        nests[0].store->buffer == x_load->buffer) {
      padding = PaddingOf(nests[0]);
    }
    if (x_load == nullptr || (nests.size() != 1 && !padding)) {
      return std::vector<Call>();
    }
    const ir::Buffer& source =
        padding ? padding->source->buffer : x_load->buffer;
    size_t data = 0;
    while (data < call.inputs.size() && function.params[data] != source) {
      ++data;
    }
    if (data == call.inputs.size() || data == weight || !from[data] ||
        from[data]->axis || call.inputs.size() != 2) {
      return std::vector<Call>();
    }
    const Dequantized& x = *from[data];
    // Differences of 8 bits are less than 256.
    if (TermsOf(sum) * 255 * 255 > std::numeric_limits<int32_t>::max()) {
      return std::vector<Call>();
    }

    // The function of what is stored. Zero points follow as parameters.
    const DataType i32 = DataType::Int(32);
    Call integer = call;
    std::vector<ir::Buffer> params, allocs;
    const auto stored = [&](const ir::BufferNode& buffer, ValueId id) {
      return ir::MakeBuffer(buffer.name, graph_.values[id].type.dtype,
                            buffer.shape);
    };
    for (size_t p = 0; p < call.inputs.size(); ++p) {
      integer.inputs[p] = from[p]->stored;
      params.push_back(stored(*function.params[p], from[p]->stored));
    }
    // The zero point of what is read at `index` of its axis; null: 0.
    const auto zero_point = [&](const Dequantized& tensor, const char* name,
                                const Expr& index) -> Expr {
      if (!tensor.zero || IsZero(*tensor.zero)) return nullptr;
      const TensorType& type = graph_.values[*tensor.zero].type;
      params.push_back(ir::MakeBuffer(name, type.dtype, type.shape));
      integer.inputs.push_back(*tensor.zero);
      return ir::Load(params.back(),
                      std::vector<Expr>(type.shape.size(),
                                        tensor.axis ? index : ir::IntConst(0)));
    };
    const Expr x_zero = zero_point(x, "x_zero", nullptr);
    const Expr w_zero = zero_point(w, "w_zero", w_load->indices[channel]);
    std::vector<ir::Stmt> stmts;
    ir::Buffer factor = params[data];
    if (padding) {
      const DataType dtype = factor->dtype;
      Expr value = ir::Load(params[data], padding->source->indices);
      if (padding->inside != nullptr) {
        value = ir::IfThenElseExpr(
            padding->inside, value,
            x_zero == nullptr ? ir::IntConst(0, dtype) : x_zero);
      }
      factor = stored(*x_load->buffer, x.stored);
      allocs.push_back(factor);
      stmts.push_back(
          WithBlock(nests[0], Storing(nests[0], factor, value, nullptr)));
    }
    const auto centred = [&](const ir::Buffer& buffer,
                             const std::vector<Expr>& indices,
                             const Expr& zero) {
      const Expr value = ir::MakeCast(i32, ir::Load(buffer, indices));
      return zero == nullptr ? value : value - ir::MakeCast(i32, zero);
    };
    const TensorType type = graph_.values[call.outputs[0]].type;
    const ir::Buffer result =
        ir::MakeBuffer(function.params.back()->name, i32, type.shape);
    params.push_back(result);
    const std::vector<Expr>& at = sum.store->indices;
    const Expr term = ir::MakeBinary(
        ir::BinaryOp::kMul, centred(factor, x_load->indices, x_zero),
        centred(params[weight], w_load->indices, w_zero));
    stmts.push_back(WithBlock(
        sum, Storing(sum, result, ir::Load(result, at) + term,
                     ir::MakeStore(result, at, ir::IntConst(0, i32)))));
    integer.function = FunctionOf(function.name, std::move(params),
                                  std::move(allocs), std::move(stmts));
    TF_RETURN_IF_ERROR(ir::Verify(*integer.function));
    graph_.values.push_back({"integers", {i32, type.shape}, nullptr});
    integer.outputs = {static_cast<ValueId>(graph_.values.size()) - 1};
    TF_ASSIGN_OR_RETURN(
        Call scaled,
        Scaled(integer.outputs[0], x, w,
               static_cast<size_t>(product->result_dim), call.outputs[0]));
    return std::vector<Call>{std::move(integer), std::move(scaled)};
  }

  // output = integers * (xs * ws[c]), c being dimension `dim`.
  absl::StatusOr<Call> Scaled(ValueId integers, const Dequantized& x,
                              const Dequantized& w, size_t dim,
                              ValueId output) {
    const int64_t channels = graph_.values[integers].type.shape[dim];
    TF_ASSIGN_OR_RETURN(
        const ValueId scale,
        MakeConstant(
            graph_, "scale", {x.scale, w.scale}, run_, [&](const Tensors& in) {
              return te::Compute(
                  "scale", {channels}, [&](const te::Indices& i) {
                    const auto read = [&](const te::Tensor& tensor,
                                          bool per_channel) {
                      return tensor(
                          te::Indices(tensor.shape().size(),
                                      per_channel ? i[0] : ir::IntConst(0)));
                    };
                    return te::Body(
                        ir::MakeBinary(ir::BinaryOp::kMul, read(in[0], false),
                                       read(in[1], w.axis.has_value())));
                  });
            }));
    return MakeCall(
        graph_, "dequantize", {}, {integers, scale},
        [&](const Tensors& in) {
          return te::Compute(
              "T_dequantize", in[0].shape(), [&](const te::Indices& i) {
                return te::Body(
                    ir::MakeBinary(ir::BinaryOp::kMul,
                                   ir::MakeCast(DataType::Float(32), in[0](i)),
                                   in[1]({i[dim]})));
              });
        },
        output);
  }

  Graph& graph_;
  const RunFunction& run_;
  const Uses uses_;
  const size_t old_values_ = graph_.values.size();  // before this pass
  std::vector<bool> is_evaluated_;                  // by call
};

}  // namespace

absl::StatusOr<Graph> MultiplyIntegers(Graph graph, const RunFunction& run) {
  TF_RETURN_IF_ERROR(Rewriter(graph, run).Apply());
  // Otherwise fold-constants would dequantise weights that nothing reads.
  return DropUnused(std::move(graph));
}

}  // namespace tilefarm::graph
