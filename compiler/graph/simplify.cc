// Calls that change nothing go, and calls that only rename elements become
// reshapes, which need no code:
//
//   x * 1, x / 1, x + 0, x - 0, pow(x, 1)       x
//   where(true, x, y)                           x
//   a slice, broadcast or reshape to x's shape  x
//   transpose [N, 1, C] -> [N, C, 1]            reshape
//
// The factor or addend may be any constant whose elements are all equal.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/access_pattern.h"
#include "compiler/graph/make_call.h"
#include "compiler/graph/movement.h"
#include "compiler/graph/nests.h"
#include "compiler/graph/passes.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;
using ir::BinaryOp;
using ir::Expr;

template <typename T>
T First(const Value& value) {
  T element;
  std::memcpy(&element, value.constant->bytes().data(), sizeof(T));
  return element;
}

// The element of a constant whose elements are all equal; null otherwise, and
// for types that no rule below is about.
Expr UniformElement(const Value& value) {
  const std::span<const std::byte> bytes = value.constant->bytes();
  const auto width = static_cast<size_t>(value.type.dtype.bytes());
  if (bytes.size() < width || value.type.num_elements() == 0 ||
      std::memcmp(bytes.data(), bytes.data() + width, bytes.size() - width) !=
          0) {
    return nullptr;
  }
  const ir::DataType dtype = value.type.dtype;
  if (dtype == ir::DataType::Float(32)) {
    return ir::FloatConst(First<float>(value), dtype);
  }
  if (dtype == ir::DataType::Float(64)) {
    return ir::FloatConst(First<double>(value), dtype);
  }
  if (dtype == ir::DataType::Int(32)) {
    return ir::IntConst(First<int32_t>(value), dtype);
  }
  if (dtype == ir::DataType::Int(64)) {
    return ir::IntConst(First<int64_t>(value), dtype);
  }
  if (dtype.is_bool()) return ir::BoolConst(First<uint8_t>(value) != 0);
  return nullptr;
}

bool IsNumber(const Expr& expr, double number) {
  if (const auto* value = As<ir::FloatConstNode>(expr)) {
    return value->value == number;
  }
  return ir::IsConstInt(expr, static_cast<int64_t>(number));
}

// Puts in the elements of uniform constants, and drops operations that keep
// their operand. The sign of a zero may change (float-results.md).
class Neutral : public ir::Mutator {
 public:
  explicit Neutral(
      const std::vector<std::pair<const ir::BufferNode*, Expr>>& uniform)
      : uniform_(uniform) {}
  using ir::Mutator::Mutate;

 protected:
  Expr MutateLoad(const ir::LoadNode& load, const Expr& self) override {
    for (const auto& [buffer, element] : uniform_) {
      if (load.buffer.get() == buffer) return element;
    }
    return self;
  }
  Expr MutateBinary(const ir::BinaryNode& node, const Expr&) override {
    const Expr a = Mutate(node.a), b = Mutate(node.b);
    switch (node.op) {
      case BinaryOp::kMul:
        if (IsNumber(a, 1)) return b;
        if (IsNumber(b, 1)) return a;
        break;
      case BinaryOp::kAdd:
        if (IsNumber(a, 0)) return b;
        if (IsNumber(b, 0)) return a;
        break;
      case BinaryOp::kSub:
        if (IsNumber(b, 0)) return a;
        break;
      case BinaryOp::kDiv:
        if (IsNumber(b, 1)) return a;
        break;
      default:
        break;
    }
    return ir::MakeBinary(node.op, a, b);
  }
  Expr MutateSelect(const ir::SelectNode& select, const Expr&) override {
    return Chosen(Mutate(select.condition), Mutate(select.true_value),
                  Mutate(select.false_value), ir::MakeSelect);
  }
  Expr MutateCall(const ir::CallNode& call, const Expr&) override {
    std::vector<Expr> args = MutateAll(call.args);
    if (call.op == ir::Intrinsic::kIfThenElse) {
      return Chosen(args[0], args[1], args[2], ir::IfThenElseExpr);
    }
    if (call.op == ir::Intrinsic::kPow && IsNumber(args[1], 1)) return args[0];
    return ir::MakeCallLike(call, std::move(args));
  }

 private:
  static Expr Chosen(const Expr& condition, const Expr& a, const Expr& b,
                     Expr (*make)(Expr, Expr, Expr)) {
    const std::optional<int64_t> value = ir::AsInt(condition);
    if (!value) return make(condition, a, b);
    return *value != 0 ? a : b;
  }

  const std::vector<std::pair<const ir::BufferNode*, Expr>>& uniform_;
};

// The input whose elements the call moves, and how; nullopt if it computes.
struct Moved {
  ValueId input = 0;
  Movement movement;
};
std::optional<Moved> MovedBy(const Graph& graph, const Call& call) {
  const ir::PrimFunc& function = *call.function;
  if (!PatternOf(function).injective) return std::nullopt;
  const auto nests = NestsOf(function);
  if (!nests) return std::nullopt;
  std::vector<std::pair<const ir::BufferNode*, Expr>> uniform;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Value& value = graph.values[call.inputs[i]];
    if (value.constant == nullptr) continue;
    if (Expr element = UniformElement(value)) {
      uniform.emplace_back(function.params[i].get(), std::move(element));
    }
  }
  const Nest& nest = (*nests)[0];
  const Expr value = Neutral(uniform).Mutate(nest.store->value);
  const auto* load = As<ir::LoadNode>(value);
  if (load == nullptr) return std::nullopt;
  const auto at =
      std::find(function.params.begin(), function.params.end(), load->buffer);
  // The same function, with the value in place of what it computed.
  ir::PrimFunc plain = function;
  plain.params = {load->buffer, function.params.back()};
  ir::BlockNode block(*nest.block);
  block.body = ir::MakeStore(nest.store->buffer, nest.store->indices, value);
  std::vector<ir::ForPtr> loops;
  for (const auto* loop = As<ir::ForNode>(nest.loops); loop != nullptr;
       loop = As<ir::ForNode>(loop->body)) {
    loops.push_back(std::make_shared<const ir::ForNode>(*loop));
  }
  ir::Stmt body = ir::BlockOf(std::move(block));
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    auto copy = std::make_shared<ir::ForNode>(**loop);
    copy->body = std::move(body);
    body = std::move(copy);
  }
  ir::BlockNode root(*function.root());
  root.body = std::move(body);
  plain.body = ir::BlockOf(std::move(root));
  std::optional<Movement> movement = MovementOf(plain);
  if (!movement) return std::nullopt;
  return Moved{call.inputs[static_cast<size_t>(at - function.params.begin())],
               *std::move(movement)};
}

}  // namespace

absl::StatusOr<Graph> Simplify(Graph graph) {
  std::vector<bool> is_output(graph.values.size());
  for (const ValueId id : graph.outputs) is_output[id] = true;
  // The value that stands for each value.
  std::vector<ValueId> same(graph.values.size());
  std::iota(same.begin(), same.end(), 0);
  std::vector<Call> kept;
  for (Call& call : graph.calls) {
    for (ValueId& id : call.inputs) id = same[id];
    const std::optional<Moved> moved = MovedBy(graph, call);
    if (!moved || !KeepsBytes(moved->movement)) {
      kept.push_back(std::move(call));
      continue;
    }
    const ValueId output = call.outputs[0];
    const Value& from = graph.values[moved->input];
    const Value& to = graph.values[output];
    // Outputs keep a value of their own: what it is called outside is theirs.
    if (from.type == to.type && !is_output[output]) {
      same[output] = moved->input;
      continue;
    }
    if (call.op != "reshape" && from.type.dtype == to.type.dtype) {
      TF_ASSIGN_OR_RETURN(call, MakeReshape(graph, moved->input, output));
    }
    kept.push_back(std::move(call));
  }
  graph.calls = std::move(kept);
  return graph;
}

}  // namespace tilefarm::graph
