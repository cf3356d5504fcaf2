// Joins without copies: what a concatenation joins is computed in its result.
//
//   a = conv(...)                  # (1, 55, 55, 64)
//   b = conv(...)                  # (1, 55, 55, 64)
//   y = concat(a, b)               # (1, 55, 55, 128)
//
// The functions that write or read `a` and `b` get parameters with the strides
// and the offset of that part of `y`, and the concatenation needs no code. Its
// inputs that cannot be computed there (inputs and constants of the graph, what
// a reshape renames, elements in another order) are copied one by one.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/make_call.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/uses.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;

// One input of a concatenation.
struct Piece {
  ir::Buffer from;
  int64_t start = 0, extent = 0;  // along the axis of the result
  // The dimension of the result that each of its dimensions follows.
  std::vector<size_t> dims;

  bool in_order() const { return std::ranges::is_sorted(dims); }
};

struct Join {
  size_t axis = 0;
  std::vector<Piece> pieces;  // in the order of their starts
};

// Reads a concatenation from its only store: choices by the position along one
// axis, where each branch reads one input.
//
//   y[i, c] = if_then_else(c < 64, a[i, c], b[i, c - 64])
class JoinReader {
 public:
  explicit JoinReader(const ir::StoreNode& store) : store_(store) {
    for (const ir::Expr& index : store.indices) {
      vars_.push_back(As<ir::VarNode>(index));
    }
  }

  std::optional<Join> Read() {
    for (const ir::VarNode* var : vars_) {
      if (var == nullptr || std::ranges::count(vars_, var) != 1) return {};
    }
    const std::optional<Choice> first = ChoiceOf(store_.value);
    if (!first) return std::nullopt;
    const auto axis = PositionOf(first->var);
    if (!axis) return std::nullopt;
    join_.axis = *axis;
    if (!Add(store_.value, 0, store_.buffer->shape[*axis])) return {};
    return std::move(join_);
  }

 private:
  struct Choice {
    const ir::VarNode* var;
    int64_t bound;  // var < bound
    const ir::Expr &below, &above;
  };

  static std::optional<Choice> ChoiceOf(const ir::Expr& value) {
    const auto* call = As<ir::CallNode>(value);
    if (call == nullptr || call->op != ir::Intrinsic::kIfThenElse) return {};
    const auto* less = As<ir::BinaryNode>(call->args[0]);
    if (less == nullptr || less->op != ir::BinaryOp::kLT) return {};
    const auto* var = As<ir::VarNode>(less->a);
    const std::optional<int64_t> bound = ir::AsInt(less->b);
    if (var == nullptr || !bound) return {};
    return Choice{var, *bound, call->args[1], call->args[2]};
  }

  std::optional<size_t> PositionOf(const ir::VarNode* var) const {
    const auto at = std::ranges::find(vars_, var);
    if (at == vars_.end()) return std::nullopt;
    return static_cast<size_t>(at - vars_.begin());
  }

  // Adds the pieces at positions low <= p < high.
  bool Add(const ir::Expr& value, int64_t low, int64_t high) {
    if (const std::optional<Choice> choice = ChoiceOf(value)) {
      return choice->var == vars_[join_.axis] && low < choice->bound &&
             choice->bound < high && Add(choice->below, low, choice->bound) &&
             Add(choice->above, choice->bound, high);
    }
    const auto* load = As<ir::LoadNode>(value);
    if (load == nullptr || load->indices.size() != vars_.size()) return false;
    Piece piece{.from = load->buffer, .start = low, .extent = high - low};
    for (size_t d = 0; d < vars_.size(); ++d) {
      const std::optional<size_t> dim = DimOf(load->indices[d], low);
      if (!dim || std::ranges::count(piece.dims, *dim) != 0) return false;
      const int64_t extent =
          *dim == join_.axis ? piece.extent : store_.buffer->shape[*dim];
      if (load->buffer->shape[d] != extent) return false;
      piece.dims.push_back(*dim);
    }
    for (const Piece& other : join_.pieces) {
      if (other.from == piece.from) return false;
    }
    join_.pieces.push_back(std::move(piece));
    return true;
  }

  // The dimension of the result whose position the index is; along the axis,
  // the position less `start`.
  std::optional<size_t> DimOf(const ir::Expr& index, int64_t start) const {
    ir::Expr var = index;
    int64_t shift = 0;
    if (const auto* minus = As<ir::BinaryNode>(index);
        minus != nullptr && minus->op == ir::BinaryOp::kSub) {
      var = minus->a;
      shift = ir::AsInt(minus->b).value_or(-1);
    }
    const auto dim = PositionOf(As<ir::VarNode>(var));
    if (!dim || shift != (*dim == join_.axis ? start : 0)) return std::nullopt;
    return dim;
  }

  const ir::StoreNode& store_;
  std::vector<const ir::VarNode*> vars_;
  Join join_;
};

// The concatenation that the function is, if it is one and nothing else.
std::optional<Join> JoinOf(const ir::PrimFunc& function) {
  const ir::StoreNode* only = nullptr;
  int stores = 0;
  bool plain = true;
  ir::PreOrder(function.body, [&](const ir::Stmt& stmt) {
    if (const auto* store = As<ir::StoreNode>(stmt)) {
      only = store;
      ++stores;
    }
    if (const auto* block = As<ir::BlockNode>(stmt)) {
      plain &= block->init == nullptr && ir::IsConstInt(block->predicate, 1);
    }
    plain &= stmt->kind != ir::StmtKind::kIf;
    return true;
  });
  if (stores != 1 || !plain || only->buffer != function.params.back()) {
    return std::nullopt;
  }
  std::optional<Join> join = JoinReader(*only).Read();
  if (join && join->pieces.size() + 1 != function.params.size()) return {};
  return join;
}

class InPlaceJoiner {
 public:
  explicit InPlaceJoiner(Graph graph) : graph_(std::move(graph)) {}

  absl::StatusOr<Graph> Run() && {
    const Uses uses(graph_);
    for (size_t id = 0; id < graph_.values.size(); ++id) {
      fits_.push_back(FitsAPart(uses, static_cast<ValueId>(id)));
    }
    std::vector<std::vector<Call>> copies(graph_.calls.size());
    // What is itself a part of another result is seen after that one.
    for (size_t i = graph_.calls.size(); i-- > 0;) {
      TF_ASSIGN_OR_RETURN(copies[i], JoinInPlace(graph_.calls[i]));
    }
    std::vector<Call> calls;
    for (size_t i = 0; i < graph_.calls.size(); ++i) {
      std::ranges::move(copies[i], std::back_inserter(calls));
      calls.push_back(std::move(graph_.calls[i]));
    }
    graph_.calls = std::move(calls);
    for (Call& call : graph_.calls) UseParts(call);
    return std::move(graph_);
  }

 private:
  // Whether all that touches the value can do so where the value is a part.
  bool FitsAPart(const Uses& uses, ValueId id) const {
    const auto renames = [&](int call) {
      return graph_.calls[static_cast<size_t>(call)].op == "reshape";
    };
    return uses.producer(id) >= 0 && !renames(uses.producer(id)) &&
           std::ranges::none_of(uses.readers(id), renames) &&
           !uses.is_output(id);
  }

  // Makes the inputs of the call, if it is a concatenation, parts of its
  // result. Returns the copies that must stand before it.
  absl::StatusOr<std::vector<Call>> JoinInPlace(Call& call) {
    std::vector<Call> copies;
    const std::optional<Join> join = JoinOf(*call.function);
    if (!join) return copies;
    std::vector<ValueId> parts;
    std::vector<bool> direct;
    for (const Piece& piece : join->pieces) {
      const auto param = std::ranges::find(call.function->params, piece.from);
      const ValueId id = call.inputs[param - call.function->params.begin()];
      parts.push_back(id);
      // A value can be one part of one result.
      direct.push_back(piece.in_order() && id < std::ssize(fits_) &&
                       fits_[id] && !graph_.values[id].part &&
                       std::ranges::count(parts, id) == 1);
    }
    if (std::ranges::count(direct, true) == 0) return copies;
    const std::vector<int64_t> shape =
        graph_.values[call.outputs[0]].type.shape;
    for (size_t k = 0; k < parts.size(); ++k) {
      const Piece& piece = join->pieces[k];
      std::vector<int64_t> extents = shape;
      extents[join->axis] = piece.extent;
      if (!direct[k]) {
        TF_ASSIGN_OR_RETURN(Call copy, CopyOf(parts[k], piece, extents));
        parts[k] = copy.outputs[0];
        copies.push_back(std::move(copy));
      }
      graph_.values[parts[k]].part =
          PartAt(call.outputs[0], join->axis, piece.start);
    }
    // Now the inputs have the order of the result, in its dimensions.
    TF_ASSIGN_OR_RETURN(Call joined,
                        MakeCall(
                            graph_, kJoin, call.attrs, parts,
                            [&](const Tensors& in) {
                              return te::Compute(
                                  "T_concat", shape, [&](const te::Indices& i) {
                                    return te::Body(ElementOf(in, *join, i));
                                  });
                            },
                            call.outputs[0]));
    call = std::move(joined);
    return copies;
  }

  static ir::Expr ElementOf(const Tensors& in, const Join& join,
                            const te::Indices& i) {
    ir::Expr element;
    for (size_t k = in.size(); k-- > 0;) {
      te::Indices at = i;
      at[join.axis] = i[join.axis] - join.pieces[k].start;
      ir::Expr own = in[k](at);
      element = element == nullptr
                    ? std::move(own)
                    : ir::IfThenElseExpr(
                          ir::LT(i[join.axis],
                                 ir::IntConst(join.pieces[k + 1].start)),
                          std::move(own), std::move(element));
    }
    return element;
  }

  absl::StatusOr<Call> CopyOf(ValueId from, const Piece& piece,
                              const std::vector<int64_t>& extents) {
    ir::AttrList axes;
    std::vector<size_t> order(piece.dims.size());
    for (size_t d = 0; d < piece.dims.size(); ++d) order[piece.dims[d]] = d;
    for (const size_t d : order) axes.emplace_back(static_cast<int64_t>(d));
    return MakeCall(graph_, "permute_dims", {{"axes", ir::Attr(axes)}}, {from},
                    [&](const Tensors& in) {
                      return te::Compute("T_part", extents,
                                         [&](const te::Indices& i) {
                                           te::Indices at;
                                           for (const size_t dim : piece.dims) {
                                             at.push_back(i[dim]);
                                           }
                                           return te::Body(in[0](at));
                                         });
                    });
  }

  Part PartAt(ValueId whole, size_t axis, int64_t start) const {
    const Value& value = graph_.values[whole];
    Part part;
    if (value.part) {
      part = *value.part;
    } else {
      part.whole = whole;
      part.strides.assign(value.type.shape.size(), 1);
      for (size_t d = part.strides.size(); d-- > 1;) {
        part.strides[d - 1] = part.strides[d] * value.type.shape[d];
      }
    }
    part.elem_offset += start * part.strides[axis];
    return part;
  }

  // Gives the function of the call parameters that are where the parts are.
  void UseParts(Call& call) const {
    ir::BufferMap moved;
    auto function = std::make_shared<ir::PrimFunc>(*call.function);
    for (size_t p = 0; p < function->params.size(); ++p) {
      const ValueId id = p < call.inputs.size()
                             ? call.inputs[p]
                             : call.outputs[p - call.inputs.size()];
      if (!graph_.values[id].part) continue;
      ir::Buffer& param = function->params[p];
      auto buffer = std::make_shared<ir::BufferNode>(*param);
      PlaceBuffer(*graph_.values[id].part, *buffer);
      moved[param.get()] = buffer;
      param = std::move(buffer);
    }
    if (moved.empty()) return;
    function->body = ir::ReplaceBuffers(function->body, moved);
    call.function = std::move(function);
  }

  Graph graph_;
  std::vector<bool> fits_;  // per value of the original graph
};

}  // namespace

absl::StatusOr<Graph> JoinInPlace(Graph graph) {
  return InPlaceJoiner(std::move(graph)).Run();
}

}  // namespace tilefarm::graph
