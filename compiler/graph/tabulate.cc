// What elementwise calls make of bytes becomes a table:
//
//   y = f(x), x of 8 bits
//   ->  y = table[x], table = (f(0), ..., f(255)): a constant
//
// So are the activations of quantised models: between two of their bytes there
// are a dequantisation, functions such as erf, and roundings to bytes in
// between. The table is made call by call, with what each call rounds to.
//
// A chain from a byte back to the same byte, a dequantisation and a
// quantisation by the same scale, is the byte.
//
// Chains that compute less than a lookup costs stay: whole vectors of them take
// a few instructions, a lookup one load for each element.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
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

using ir::Expr;

constexpr int64_t kBytes = 256;
// In operations of one element: those that a vector of eight elements does in
// the time of its eight loads.
constexpr int kLookupCost = 32;

bool IsByte(const TensorType& type) {
  return type.dtype.bits == 8 && type.dtype.is_integral() &&
         !type.dtype.is_bool();
}

// Operations, weighed by what they cost on vectors: a division as 8, a function
// as 16.
int CostOf(const Expr& expr) {
  using ir::BinaryOp, ir::ExprKind, ir::Intrinsic;
  int cost = 0;
  ir::PostOrderExprs(expr, [&](const Expr& e) {
    if (const auto* binary = ir::As<ir::BinaryNode>(e)) {
      switch (binary->op) {
        case BinaryOp::kDiv:
        case BinaryOp::kMod:
        case BinaryOp::kFloorDiv:
        case BinaryOp::kFloorMod:
          cost += 8;
          break;
        default:
          cost += 1;
      }
    } else if (const auto* call = ir::As<ir::CallNode>(e)) {
      switch (call->op) {
        case Intrinsic::kIfThenElse:
        case Intrinsic::kAbs:
        case Intrinsic::kFloor:
        case Intrinsic::kCeil:
        case Intrinsic::kRound:
        case Intrinsic::kNearbyint:
        case Intrinsic::kTrunc:
        case Intrinsic::kFma:
        case Intrinsic::kCopySign:
        case Intrinsic::kIsNan:
        case Intrinsic::kIsInf:
        case Intrinsic::kReinterpret:
          cost += 1;
          break;
        case Intrinsic::kSqrt:
          cost += 8;
          break;
        default:
          cost += 16;
      }
    } else if (e->kind == ExprKind::kCast || e->kind == ExprKind::kSelect) {
      cost += 1;
    }
  });
  return cost;
}

// Whether the value depends on loads alone, not on where it is stored.
bool IsSameEverywhere(const ir::BlockNode& block, const Expr& value) {
  class OutsideLoads : public ir::Visitor {
   public:
    explicit OutsideLoads(const ir::BlockNode& block) : block_(block) {}
    bool found = false;

   protected:
    void VisitVar(const ir::VarNode& var) override {
      found |= std::ranges::any_of(block_.iters, [&](const ir::IterVar& iter) {
        return iter.var.get() == &var;
      });
    }
    void VisitLoad(const ir::LoadNode&) override {}

   private:
    const ir::BlockNode& block_;
  };
  OutsideLoads outside(block);
  outside.Visit(value);
  return !outside.found;
}

// What a call stores, of the elements at `index` of tables in place of its
// inputs; the other inputs have one element.
class InTables : public ir::Mutator {
 public:
  InTables(const std::vector<ir::Buffer>& params, const Tensors& inputs,
           Expr index)
      : params_(params), inputs_(inputs), index_(std::move(index)) {}
  using ir::Mutator::Mutate;

 protected:
  Expr MutateLoad(const ir::LoadNode& load, const Expr&) override {
    const te::Tensor& input = inputs_[static_cast<size_t>(
        std::ranges::find(params_, load.buffer) - params_.begin())];
    te::Indices at(input.shape().size(), ir::IntConst(0));
    if (input.shape() == std::vector<int64_t>{kBytes}) at[0] = index_;
    return input(at);
  }

 private:
  const std::vector<ir::Buffer>& params_;
  const Tensors& inputs_;
  const Expr index_;
};

class Tabulator {
 public:
  Tabulator(Graph& graph, const RunFunction& run)
      : graph_(graph), uses_(graph), run_(run) {}

  absl::Status Apply() {
    for (const Call& call : graph_.calls) Derive(call);
    std::vector<std::pair<size_t, Call>> lookups;
    for (size_t c = 0; c < graph_.calls.size(); ++c) {
      const ValueId value = graph_.calls[c].outputs[0];
      if (!bytes_.contains(value) || !IsReadOutside(value)) continue;
      TF_ASSIGN_OR_RETURN(const bool is_byte, IsTheByte(value));
      if (is_byte) same_[value] = bytes_.at(value);
      if (is_byte || !CostsALookup(value)) continue;
      TF_ASSIGN_OR_RETURN(looked_up_[value], TableOf(value));
      TF_ASSIGN_OR_RETURN(Call lookup, Lookup(value));
      lookups.emplace_back(c, std::move(lookup));
    }
    for (auto& [c, lookup] : lookups) graph_.calls[c] = std::move(lookup);
    for (Call& call : graph_.calls) {
      for (ValueId& input : call.inputs) {
        if (const auto at = same_.find(input); at != same_.end()) {
          input = at->second;
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  // Finds whether each element of the call's result depends on the same element
  // of one byte alone.
  void Derive(const Call& call) {
    const AccessPattern pattern = PatternOf(*call.function);
    if (!pattern.injective || call.outputs.size() != 1) return;
    const Nest nest = NestsOf(*call.function)->front();
    if (!IsSameEverywhere(*nest.block, nest.store->value)) return;
    std::optional<ValueId> byte;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const ValueId input = call.inputs[i];
      if (IsOneConstant(input)) continue;
      const std::optional<ValueId> from = ByteOf(input);
      if (!pattern.elementwise[i] || !from || (byte && byte != from)) return;
      byte = from;
    }
    if (byte) bytes_[call.outputs[0]] = *byte;
  }

  bool IsOneConstant(ValueId id) const {
    return graph_.values[id].constant != nullptr &&
           graph_.values[id].type.num_elements() == 1;
  }

  // What the value derives from, or itself if it is a byte.
  std::optional<ValueId> ByteOf(ValueId id) const {
    if (const auto known = bytes_.find(id); known != bytes_.end()) {
      return known->second;
    }
    const Value& value = graph_.values[id];
    if (!IsByte(value.type) || value.constant != nullptr) return std::nullopt;
    return id;
  }

  // Whether anything but calls that derive from the same byte needs the value.
  bool IsReadOutside(ValueId value) const {
    return uses_.is_output(value) ||
           std::ranges::any_of(uses_.readers(value), [&](int reader) {
             const auto derived = bytes_.find(graph_.calls[reader].outputs[0]);
             return derived == bytes_.end() ||
                    derived->second != bytes_.at(value);
           });
  }

  // Whether the value is always the byte that it derives from.
  absl::StatusOr<bool> IsTheByte(ValueId value) {
    const ValueId byte = bytes_.at(value);
    if (graph_.values[value].type != graph_.values[byte].type) return false;
    TF_ASSIGN_OR_RETURN(const ValueId table, TableOf(value));
    return std::ranges::equal(
        graph_.values[table].constant->bytes(),
        graph_.values[tables_.at(byte)].constant->bytes());
  }

  // Whether the calls between bytes, or what is looked up, and the value cost
  // that.
  bool CostsALookup(ValueId value) const {
    int cost = 0;
    for (const int c : CallsTo(value, looked_up_)) {
      cost += CostOf(StoredBy(*graph_.calls[c].function));
    }
    return cost >= kLookupCost;
  }

  // The calls between the byte, or values that are known, and the value, in
  // order.
  std::set<int> CallsTo(ValueId value,
                        const std::map<ValueId, ValueId>& known) const {
    std::set<int> calls;
    std::vector<ValueId> values{value};
    while (!values.empty()) {
      const ValueId next = values.back();
      values.pop_back();
      if (!bytes_.contains(next) || known.contains(next)) continue;
      const int c = uses_.producer(next);
      if (!calls.insert(c).second) continue;
      values.insert(values.end(), graph_.calls[c].inputs.begin(),
                    graph_.calls[c].inputs.end());
    }
    return calls;
  }

  // The value for each value of the byte that it derives from, by its bits.
  absl::StatusOr<ValueId> TableOf(ValueId value) {
    const ValueId byte = bytes_.at(value);
    if (!tables_.contains(byte)) {
      tables_[byte] = AllValues(graph_.values[byte].type.dtype);
    }
    for (const int c : CallsTo(value, tables_)) {
      const Call& call = graph_.calls[c];
      std::vector<ValueId> inputs = call.inputs;
      for (ValueId& input : inputs) {
        if (!IsOneConstant(input)) input = tables_.at(input);
      }
      const Expr stored = StoredBy(*call.function);
      TF_ASSIGN_OR_RETURN(
          tables_[call.outputs[0]],
          MakeConstant(graph_, "table", inputs, run_, [&](const Tensors& in) {
            return te::Compute("table", {kBytes}, [&](const te::Indices& i) {
              return te::Body(
                  InTables(call.function->params, in, i[0]).Mutate(stored));
            });
          }));
    }
    return tables_.at(value);
  }

  ValueId AllValues(ir::DataType dtype) {
    std::vector<std::byte> bytes(kBytes);
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(i);
    }
    graph_.values.push_back(
        {"bytes",
         {dtype, {kBytes}},
         std::make_shared<const TensorData>(std::move(bytes))});
    return static_cast<ValueId>(graph_.values.size()) - 1;
  }

  absl::StatusOr<Call> Lookup(ValueId value) {
    const ValueId byte = bytes_.at(value);
    const std::vector<int64_t> shape = graph_.values[byte].type.shape;
    return MakeCall(
        graph_, "lookup", {}, {byte, looked_up_.at(value)},
        [&](const Tensors& in) {
          return te::Compute("T_lookup", shape, [&](const te::Indices& i) {
            const Expr bits = ir::MakeCast(ir::DataType::UInt(8), in[0](i));
            return te::Body(in[1]({ir::MakeCast(ir::DataType::Int(64), bits)}));
          });
        },
        value);
  }

  Graph& graph_;
  const Uses uses_;
  const RunFunction& run_;
  std::map<ValueId, ValueId> bytes_;  // what each value derives from
  std::map<ValueId, ValueId> tables_;
  std::map<ValueId, ValueId> same_;       // as which byte
  std::map<ValueId, ValueId> looked_up_;  // in which table
};

}  // namespace

absl::StatusOr<Graph> Tabulate(Graph graph, const RunFunction& run) {
  TF_RETURN_IF_ERROR(Tabulator(graph, run).Apply());
  return graph;
}

}  // namespace tilefarm::graph
