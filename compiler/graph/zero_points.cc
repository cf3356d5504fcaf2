// Zero points leave the sums of integer products, so that what is stored is
// multiplied as it is, and weights are of 8 bits:
//
//   p = sum of (x - xz) * (w - wz)             int32
//   ->  w' = w - wz                            constant, int8
//       q = sum of x * w'
//       p = q - xz * (sum of w')
//
// That is what instructions for sums of products of 8 bits compute. int32
// wraps, so that both give the same bits. Left as they are: weights that do not
// fit int8 without their zero point.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/make_call.h"
#include "compiler/graph/nests.h"
#include "compiler/graph/passes.h"
#include "compiler/ir/regions.h"
#include "compiler/ir/verifier.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;
using ir::BinaryOp;
using ir::DataType;
using ir::Expr;

const DataType kInt32 = DataType::Int(32);

// load - zero, as int32; null: 0.
struct Centred {
  const ir::LoadNode* load = nullptr;
  Expr zero;
};

std::optional<Centred> CentredOf(Expr expr) {
  Centred result;
  const auto* difference = As<ir::BinaryNode>(expr);
  if (difference != nullptr && difference->op == BinaryOp::kSub) {
    result.zero = difference->b;
    expr = difference->a;
  }
  const auto* cast = As<ir::CastNode>(expr);
  if (cast == nullptr || cast->dtype != kInt32) return std::nullopt;
  result.load = As<ir::LoadNode>(cast->value);
  if (result.load == nullptr || result.load->dtype.bits != 8 ||
      !result.load->dtype.is_integral()) {
    return std::nullopt;
  }
  return result;
}

bool UsesReduceVars(const Expr& expr, const Nest& nest) {
  return std::any_of(nest.block->iters.begin(), nest.block->iters.end(),
                     [&](const ir::IterVar& iter) {
                       return iter.type != ir::IterType::kSpatial &&
                              ir::UsesVar(expr, iter.var.get());
                     });
}

const ir::IterVar* IterOf(const Nest& nest, const Expr& index) {
  for (const ir::IterVar& iter : nest.block->iters) {
    if (index == iter.var) return &iter;
  }
  return nullptr;
}

// Whether the access visits the whole buffer: each index is a variable of its
// own, which has all values.
bool VisitsAll(const ir::BufferNode& buffer, const std::vector<Expr>& indices,
               const Nest& nest) {
  std::set<const ir::IterVar*> seen;
  for (size_t d = 0; d < indices.size(); ++d) {
    const ir::IterVar* iter = IterOf(nest, indices[d]);
    if (iter == nullptr || !seen.insert(iter).second ||
        !ir::IsConstInt(iter->dom.min, 0) ||
        !ir::IsConstInt(iter->dom.extent, buffer.shape[d])) {
      return false;
    }
  }
  return true;
}

// A call while its nests are replaced.
class CallRewriter {
 public:
  CallRewriter(Graph& graph, Call& call, std::vector<Nest> nests,
               const RunFunction& run)
      : graph_(graph), call_(call), nests_(std::move(nests)), run_(run) {
    const ir::PrimFunc& function = *call.function;
    inputs_.assign(function.params.begin(),
                   function.params.begin() +
                       static_cast<std::ptrdiff_t>(call.inputs.size()));
    allocs_ = function.root()->allocs;
  }

  absl::Status Apply() {
    std::vector<ir::Stmt> stmts;
    bool changed = false;
    for (const Nest& nest : nests_) {
      TF_ASSIGN_OR_RETURN(std::vector<ir::Stmt> made, Rewritten(nest));
      changed |= !made.empty();
      if (made.empty()) made.push_back(nest.loops);
      stmts.insert(stmts.end(), made.begin(), made.end());
    }
    if (!changed) return absl::OkStatus();
    const ir::PrimFunc& old = *call_.function;
    std::vector<ir::Buffer> params;
    std::vector<ValueId> inputs;
    const ir::Stmt body = ir::MakeSeq(stmts);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      // Zero points that are part of a constant now are no longer read.
      if (!ir::Loads(body, inputs_[i].get())) continue;
      params.push_back(inputs_[i]);
      inputs.push_back(call_.inputs[i]);
    }
    for (size_t i = 0; i < call_.outputs.size(); ++i) {
      params.push_back(
          old.params[old.params.size() - call_.outputs.size() + i]);
    }
    auto function = std::make_shared<ir::PrimFunc>(
        *FunctionOf(old.name, std::move(params), allocs_, std::move(stmts)));
    function->attrs = old.attrs;
    TF_RETURN_IF_ERROR(ir::Verify(*function));
    call_.function = std::move(function);
    call_.inputs = std::move(inputs);
    return absl::OkStatus();
  }

 private:
  // Instead of the nest; none if it stays.
  absl::StatusOr<std::vector<ir::Stmt>> Rewritten(const Nest& nest) {
    const std::optional<Factors> factors = SummedProductOf(nest);
    if (!factors || nest.store->buffer->dtype != kInt32 ||
        !HasPlainLoops(nest) ||
        !VisitsAll(*nest.store->buffer, nest.store->indices, nest)) {
      return std::vector<ir::Stmt>();
    }
    const auto a = CentredOf(factors->a), b = CentredOf(factors->b);
    if (!a || !b) return std::vector<ir::Stmt>();
    for (const auto& [x, w] : {std::pair(*a, *b), std::pair(*b, *a)}) {
      if (x.zero == nullptr && w.zero == nullptr &&
          w.load->dtype == DataType::Int(8)) {
        continue;
      }
      if ((x.zero != nullptr && UsesReduceVars(x.zero, nest)) ||
          !IsWeight(w, nest)) {
        continue;
      }
      TF_ASSIGN_OR_RETURN(const std::optional<ValueId> weight, Weight(w));
      if (weight) return WithoutZeroPoints(nest, x, w, *weight);
    }
    return std::vector<ir::Stmt>();
  }

  bool IsConstant(const ir::Buffer& buffer) const {
    const auto at = std::find(inputs_.begin(), inputs_.end(), buffer);
    return at != inputs_.end() &&
           graph_.values[call_
                             .inputs[static_cast<size_t>(at - inputs_.begin())]]
                   .constant != nullptr;
  }

  // Whether it depends on constants and on variables of `indices` only.
  bool IsConstantAt(const Expr& expr, const std::vector<Expr>& indices) const {
    bool is_constant = true;
    ir::PostOrderExprs(expr, [&](const Expr& part) {
      if (const auto* load = As<ir::LoadNode>(part)) {
        is_constant &= IsConstant(load->buffer);
      } else if (As<ir::VarNode>(part) != nullptr) {
        is_constant &=
            std::find(indices.begin(), indices.end(), part) != indices.end();
      }
    });
    return is_constant;
  }

  // Whether the operand is a constant that only this nest reads, each element
  // at its own indices.
  bool IsWeight(const Centred& w, const Nest& nest) const {
    const auto reads = [&](const Nest& other) {
      return other.block != nest.block &&
             std::find(other.reads.begin(), other.reads.end(),
                       w.load->buffer) != other.reads.end();
    };
    return IsConstant(w.load->buffer) &&
           VisitsAll(*w.load->buffer, w.load->indices, nest) &&
           std::none_of(nests_.begin(), nests_.end(), reads) &&
           (w.zero == nullptr || (IsConstantAt(w.zero, w.load->indices) &&
                                  !UsesReduceVars(w.zero, nest)));
  }

  // A constant of the constant inputs, over dimensions of these extents; the
  // expression's variables `vars` are the indices.
  absl::StatusOr<ValueId> Constant(
      const std::vector<int64_t>& shape, const std::vector<Expr>& vars,
      const std::vector<Expr>& parts,
      const std::function<te::Body(const std::vector<Expr>&)>& define) const {
    std::vector<ir::Buffer> params;
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const bool is_read =
          std::any_of(parts.begin(), parts.end(), [&](const Expr& part) {
            return part != nullptr && ir::Loads(part, inputs_[i].get());
          });
      if (!is_read) continue;
      params.push_back(inputs_[i]);
      inputs.push_back(call_.inputs[i]);
    }
    return MakeConstant(graph_, "weight", inputs, run_, [&](const Tensors& in) {
      return te::Compute("weight", shape, [&](const te::Indices& i) {
        ir::VarMap at;
        for (size_t d = 0; d < vars.size(); ++d) {
          at[As<ir::VarNode>(vars[d])] = i[d];
        }
        std::vector<Expr> read;
        for (const Expr& part : parts) {
          read.push_back(part == nullptr ? nullptr
                                         : ReadInTensors(part, params, in, at));
        }
        return define(read);
      });
    });
  }

  // w - zero as int8; nullopt if an element does not fit.
  absl::StatusOr<std::optional<ValueId>> Weight(const Centred& w) const {
    const ir::Buffer& buffer = w.load->buffer;
    const ValueId old = call_.inputs[static_cast<size_t>(
        std::find(inputs_.begin(), inputs_.end(), buffer) - inputs_.begin())];
    if (w.zero == nullptr && buffer->dtype == DataType::Int(8)) return old;
    TF_ASSIGN_OR_RETURN(
        const ValueId wide,
        Constant(buffer->shape, w.load->indices,
                 {ir::Load(buffer, w.load->indices), w.zero},
                 [](const std::vector<Expr>& read) {
                   const Expr value = ir::MakeCast(kInt32, read[0]);
                   return te::Body(read[1] == nullptr ? value
                                                      : value - read[1]);
                 }));
    std::vector<std::byte> narrow;
    const std::span<const std::byte> bytes =
        graph_.values[wide].constant->bytes();
    for (size_t at = 0; at < bytes.size(); at += sizeof(int32_t)) {
      int32_t value;
      std::memcpy(&value, bytes.data() + at, sizeof(value));
      if (value < INT8_MIN || value > INT8_MAX) return std::nullopt;
      narrow.push_back(static_cast<std::byte>(static_cast<int8_t>(value)));
    }
    graph_.values[wide].constant = nullptr;
    const std::span<const std::byte> before =
        graph_.values[old].constant->bytes();
    if (buffer->dtype == DataType::Int(8) &&
        std::equal(before.begin(), before.end(), narrow.begin())) {
      return old;
    }
    graph_.values.push_back(
        {graph_.values[old].name,
         {DataType::Int(8), buffer->shape},
         std::make_shared<const TensorData>(std::move(narrow))});
    return static_cast<ValueId>(graph_.values.size()) - 1;
  }

  absl::StatusOr<std::vector<ir::Stmt>> WithoutZeroPoints(const Nest& nest,
                                                          const Centred& x,
                                                          const Centred& w,
                                                          ValueId weight) {
    const ir::Buffer& result = nest.store->buffer;
    const std::vector<Expr>& at = nest.store->indices;
    const ir::Buffer narrow = AddInput(weight, w.load->buffer->name);
    const Expr data = ir::Load(x.load->buffer, x.load->indices);
    const Expr product =
        ir::MakeBinary(BinaryOp::kMul, ir::MakeCast(kInt32, data),
                       ir::MakeCast(kInt32, ir::Load(narrow, w.load->indices)));
    const bool subtracts = x.zero != nullptr;
    const ir::Buffer raw =
        subtracts ? ir::MakeBuffer(result->name + "_raw", kInt32, result->shape)
                  : result;
    ir::BlockNode sum(*nest.block);
    sum.body = ir::MakeStore(raw, at, ir::Load(raw, at) + product);
    sum.init = ir::MakeStore(raw, at, ir::IntConst(0, kInt32));
    std::vector<ir::Stmt> stmts{WithBlock(nest, std::move(sum))};
    if (!subtracts) return stmts;
    allocs_.push_back(raw);

    // The sums of weights, over what the products are summed over.
    std::vector<Expr> vars;
    std::vector<int64_t> shape;
    for (size_t d = 0; d < w.load->indices.size(); ++d) {
      const Expr& index = w.load->indices[d];
      if (IterOf(nest, index)->type != ir::IterType::kSpatial) continue;
      vars.push_back(index);
      shape.push_back(narrow->shape[d]);
    }
    const bool is_constant = IsConstantAt(x.zero, vars);
    TF_ASSIGN_OR_RETURN(const ValueId sums, WeightSums(w, narrow, vars, shape));
    ValueId subtrahend = sums;
    if (is_constant) {
      const ir::Buffer totals = AddInput(sums, "weight_sums");
      TF_ASSIGN_OR_RETURN(
          subtrahend, Constant(shape, vars, {ir::Load(totals, vars), x.zero},
                               [](const std::vector<Expr>& read) {
                                 return te::Body(ir::MakeBinary(
                                     BinaryOp::kMul, read[0], read[1]));
                               }));
    }
    const ir::Buffer totals = AddInput(subtrahend, "zero_point_sums");
    Expr off = ir::Load(totals, vars);
    if (!is_constant) off = ir::MakeBinary(BinaryOp::kMul, off, x.zero);
    stmts.push_back(Elementwise(nest, ir::Load(raw, at) - off));
    return stmts;
  }

  // sum of w, over the dimensions that `vars` are not indices of.
  absl::StatusOr<ValueId> WeightSums(const Centred& w, const ir::Buffer& narrow,
                                     const std::vector<Expr>& vars,
                                     const std::vector<int64_t>& shape) const {
    const ValueId weight = call_.inputs[static_cast<size_t>(
        std::find(inputs_.begin(), inputs_.end(), narrow) - inputs_.begin())];
    return MakeConstant(
        graph_, "weight_sums", {weight}, run_, [&](const Tensors& in) {
          return te::Compute("weight_sums", shape, [&](const te::Indices& i) {
            std::vector<te::ReduceAxis> reduced;
            te::Indices at;
            for (size_t d = 0; d < w.load->indices.size(); ++d) {
              const Expr& index = w.load->indices[d];
              const auto kept = std::find(vars.begin(), vars.end(), index);
              if (kept != vars.end()) {
                at.push_back(i[static_cast<size_t>(kept - vars.begin())]);
              } else {
                reduced.emplace_back("r", narrow->shape[d]);
                at.push_back(reduced.back());
              }
            }
            const Expr value = ir::MakeCast(kInt32, in[0](at));
            return reduced.empty() ? te::Body(value) : te::Sum(value, reduced);
          });
        });
  }

  // A nest over the spatial variables that stores `value` in the result.
  static ir::Stmt Elementwise(const Nest& nest, const Expr& value) {
    ir::BlockNode block;
    block.name = nest.block->name + "_centred";
    block.predicate = ir::BoolConst(true);
    ir::VarMap fresh;
    std::vector<std::pair<ir::Var, Expr>> loops;
    for (const ir::IterVar& iter : nest.block->iters) {
      if (iter.type != ir::IterType::kSpatial) continue;
      const ir::Var var = ir::MakeVar(iter.var->name);
      loops.emplace_back(ir::MakeVar("i"), iter.dom.extent);
      fresh[iter.var.get()] = var;
      block.iters.push_back(
          {var, iter.dom, ir::IterType::kSpatial, loops.back().first});
    }
    block.body = ir::Substitute(
        ir::MakeStore(nest.store->buffer, nest.store->indices, value), fresh);
    ir::Stmt stmt = ir::BlockWithAccesses(std::move(block));
    for (size_t i = loops.size(); i-- > 0;) {
      stmt = ir::MakeFor(loops[i].first, loops[i].second, std::move(stmt));
    }
    return stmt;
  }

  ir::Buffer AddInput(ValueId id, const std::string& name) {
    const TensorType& type = graph_.values[id].type;
    inputs_.push_back(ir::MakeBuffer(name, type.dtype, type.shape));
    call_.inputs.push_back(id);
    return inputs_.back();
  }

  Graph& graph_;
  Call& call_;
  const std::vector<Nest> nests_;
  const RunFunction& run_;
  std::vector<ir::Buffer> inputs_, allocs_;
};

}  // namespace

absl::StatusOr<Graph> SplitZeroPoints(Graph graph, const RunFunction& run) {
  std::vector<Call> calls = std::move(graph.calls);
  graph.calls.clear();
  for (Call& call : calls) {
    auto nests = NestsOf(*call.function);
    if (!nests) continue;
    TF_RETURN_IF_ERROR(
        CallRewriter(graph, call, *std::move(nests), run).Apply());
  }
  graph.calls = std::move(calls);
  return graph;
}

}  // namespace tilefarm::graph
