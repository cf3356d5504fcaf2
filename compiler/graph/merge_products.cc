// Products of one value by constant weights become one product, whose weights
// are joined: the queries, keys and values of an attention layer.
//
//   a = x * u + c, b = x * v + d
//   ->  y = x * [u v] + [c d], a = y[:, :n], b = y[:, n:]
//
// The value is read once instead of once for each product, and the work splits
// into larger parts. The slices are copies only where nothing that moves
// elements reads them (compose_movement.cc).
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/channel_math.h"
#include "compiler/graph/make_call.h"
#include "compiler/graph/nests.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/uses.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

using ir::As;

// The function of a channel product with another number of channels.
class Resizer : public ir::Mutator {
 public:
  Resizer(const ir::PrimFunc& function, const ChannelProduct& product,
          int64_t channels)
      : channels_(channels) {
    const Nest nest = NestsOf(function)->back();
    var_ = As<ir::VarNode>(
        nest.store->indices[static_cast<size_t>(product.result_dim)]);
    for (const ir::IterVar& iter : nest.block->iters) {
      if (iter.var.get() == var_) loop_ = As<ir::VarNode>(iter.binding);
    }
    Resize(function.params[static_cast<size_t>(product.weight)],
           product.weight_dim);
    Resize(function.params.back(), product.result_dim);
  }
  using ir::Mutator::Mutate;

  // Whether the channels have a loop of their own.
  bool has_loop() const { return loop_ != nullptr; }

  ir::PrimFuncPtr Apply(const ir::PrimFunc& function) {
    auto result = std::make_shared<ir::PrimFunc>(function);
    for (ir::Buffer& param : result->params) param = MutateBuffer(param);
    result->body = Mutate(function.body);
    return result;
  }

 protected:
  ir::Buffer MutateBuffer(const ir::Buffer& buffer) override {
    const auto resized = resized_.find(buffer.get());
    return resized == resized_.end() ? buffer : resized->second;
  }
  ir::Expr MutateLoad(const ir::LoadNode& load, const ir::Expr&) override {
    return ir::Load(MutateBuffer(load.buffer), MutateAll(load.indices));
  }
  ir::Stmt MutateFor(const ir::ForNode& loop, const ir::Stmt& self) override {
    const ir::Stmt inner = ir::Mutator::MutateFor(loop, self);
    if (loop.var.get() != loop_) return inner;
    auto copy = std::make_shared<ir::ForNode>(*As<ir::ForNode>(inner));
    copy->extent = ir::IntConst(channels_);
    return copy;
  }
  ir::Stmt MutateBlock(const ir::BlockNode& block,
                       const ir::Stmt& self) override {
    ir::BlockNode copy(
        *As<ir::BlockNode>(ir::Mutator::MutateBlock(block, self)));
    for (ir::IterVar& iter : copy.iters) {
      if (iter.var.get() == var_) iter.dom.extent = ir::IntConst(channels_);
    }
    return ir::BlockOf(std::move(copy));
  }

 private:
  void Resize(const ir::Buffer& buffer, int dim) {
    auto copy = std::make_shared<ir::BufferNode>(*buffer);
    copy->shape[static_cast<size_t>(dim)] = channels_;
    resized_[buffer.get()] = std::move(copy);
  }

  const int64_t channels_;
  const ir::VarNode* var_ = nullptr;   // of the block
  const ir::VarNode* loop_ = nullptr;  // that it is bound to
  ir::BufferMap resized_;
};

// One of several products of the same value.
struct Member {
  int call = 0;
  ChannelProduct product;
  int64_t channels = 0;
  // The only reader of the product, if it adds a constant to each channel.
  std::optional<int> bias_call;
  ChannelAffine bias;
};

class Merger {
 public:
  Merger(Graph& graph, const RunFunction& run)
      : graph_(graph), run_(run), uses_(graph) {}

  // Products that can be merged, at least two in each group.
  std::vector<std::vector<Member>> Groups() const {
    std::vector<std::vector<Member>> groups;
    for (size_t c = 0; c < graph_.calls.size(); ++c) {
      std::optional<Member> member = MemberOf(static_cast<int>(c));
      if (!member) continue;
      bool joined = false;
      for (std::vector<Member>& group : groups) {
        if (!Alike(group[0], *member)) continue;
        group.push_back(*member);
        joined = true;
        break;
      }
      if (!joined) groups.push_back({*std::move(member)});
    }
    std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
    return groups;
  }

  // The calls that compute what the group computes: the product, the addend,
  // the slices.
  absl::StatusOr<std::vector<Call>> Merge(
      const std::vector<Member>& group) const {
    const Member& first = group[0];
    const Call& product = graph_.calls[first.call];
    const int dim = first.product.result_dim;
    int64_t channels = 0;
    std::vector<ValueId> weights, shifts;
    for (const Member& member : group) {
      channels += member.channels;
      weights.push_back(
          graph_.calls[member.call].inputs[member.product.weight]);
      if (!member.bias_call) continue;
      TF_ASSIGN_OR_RETURN(shifts.emplace_back(), ShiftOf(member));
    }
    std::vector<Call> calls(1);
    Call& merged = calls[0];
    merged.op = product.op;
    merged.attrs = product.attrs;
    merged.function = Resized(first, channels);
    merged.inputs = product.inputs;
    TF_ASSIGN_OR_RETURN(merged.inputs[first.product.weight],
                        Joined(weights, first.product.weight_dim));
    TensorType type = graph_.values[product.outputs[0]].type;
    type.shape[static_cast<size_t>(dim)] = channels;
    graph_.values.push_back({product.op, type, nullptr});
    ValueId all = static_cast<ValueId>(graph_.values.size()) - 1;
    merged.outputs = {all};
    if (!shifts.empty()) {
      TF_ASSIGN_OR_RETURN(const ValueId shift, Joined(shifts, 0));
      TF_ASSIGN_OR_RETURN(Call add, AddToChannels(graph_, all, dim, shift));
      all = add.outputs[0];
      calls.push_back(std::move(add));
    }
    int64_t begin = 0;
    for (const Member& member : group) {
      const int last = member.bias_call.value_or(member.call);
      TF_ASSIGN_OR_RETURN(
          Call slice, Slice(all, dim, begin, graph_.calls[last].outputs[0]));
      calls.push_back(std::move(slice));
      begin += member.channels;
    }
    return calls;
  }

 private:
  // The constant that a member's bias call adds, one element per channel.
  absl::StatusOr<ValueId> ShiftOf(const Member& member) const {
    return ChannelConstant(graph_, graph_.calls[*member.bias_call], member.bias,
                           member.channels, std::nullopt, run_,
                           [&](const ir::Expr&, const ReadParams& read) {
                             return read(member.bias.shift);
                           });
  }

  // The constants, joined along `dim`.
  absl::StatusOr<ValueId> Joined(const std::vector<ValueId>& parts,
                                 int dim) const {
    const auto d = static_cast<size_t>(dim);
    TensorType type = graph_.values[parts[0]].type;
    type.shape[d] = 0;
    // The bytes of a part's rows: its dimensions from `dim` on.
    std::vector<int64_t> row_bytes;
    for (const ValueId part : parts) {
      const std::vector<int64_t>& shape = graph_.values[part].type.shape;
      type.shape[d] += shape[d];
      int64_t bytes = type.dtype.bytes();
      for (size_t i = d; i < shape.size(); ++i) bytes *= shape[i];
      row_bytes.push_back(bytes);
    }
    int64_t rows = 1;
    for (size_t i = 0; i < d; ++i) rows *= type.shape[i];
    std::vector<std::byte> joined;
    joined.reserve(static_cast<size_t>(type.num_bytes()));
    for (int64_t row = 0; row < rows; ++row) {
      for (size_t p = 0; p < parts.size(); ++p) {
        const auto bytes = graph_.values[parts[p]].constant->bytes().subspan(
            static_cast<size_t>(row * row_bytes[p]),
            static_cast<size_t>(row_bytes[p]));
        joined.insert(joined.end(), bytes.begin(), bytes.end());
      }
    }
    graph_.values.push_back(
        {"joined", type,
         std::make_shared<const TensorData>(std::move(joined))});
    return static_cast<ValueId>(graph_.values.size()) - 1;
  }

  absl::StatusOr<Call> Slice(ValueId value, int dim, int64_t begin,
                             ValueId output) const {
    const std::vector<int64_t> shape = graph_.values[output].type.shape;
    const auto d = static_cast<size_t>(dim);
    return MakeCall(
        graph_, "strided_slice",
        {{"axis", int64_t{dim}}, {"begin", begin}, {"end", begin + shape[d]}},
        {value},
        [&](const Tensors& in) {
          return te::Compute("T_slice", shape, [&](const te::Indices& i) {
            te::Indices at = i;
            at[d] = i[d] + begin;
            return te::Body(in[0](at));
          });
        },
        output);
  }

  std::optional<Member> MemberOf(int c) const {
    const Call& call = graph_.calls[static_cast<size_t>(c)];
    const auto product = ChannelProductOf(graph_, call);
    if (!product || !product->shares_data || call.inputs.size() != 2 ||
        call.inputs[0] == call.inputs[1]) {
      return std::nullopt;
    }
    Member member{.call = c, .product = *product};
    member.channels = call.function->params.back()
                          ->shape[static_cast<size_t>(product->result_dim)];
    if (!Resizer(*call.function, *product, 1).has_loop()) return std::nullopt;
    const ValueId value = call.outputs[0];
    if (const auto reader = uses_.OnlyReader(value)) {
      const auto affine =
          ChannelAffineOf(graph_, graph_.calls[static_cast<size_t>(*reader)],
                          value, product->result_dim);
      if (affine && affine->scale == nullptr && affine->shift != nullptr) {
        member.bias_call = reader;
        member.bias = *affine;
      }
    }
    return member;
  }

  ValueId DataOf(const Member& member) const {
    return graph_.calls[member.call].inputs[1 - member.product.weight];
  }

  // Whether the products are of the same value, and equal but for the number of
  // channels.
  bool Alike(const Member& a, const Member& b) const {
    return DataOf(a) == DataOf(b) && a.product.weight == b.product.weight &&
           a.product.weight_dim == b.product.weight_dim &&
           a.product.result_dim == b.product.result_dim &&
           a.bias_call.has_value() == b.bias_call.has_value() &&
           ir::StructuralEqual(*Resized(a, 1), *Resized(b, 1));
  }

  ir::PrimFuncPtr Resized(const Member& member, int64_t channels) const {
    const ir::PrimFunc& function = *graph_.calls[member.call].function;
    return Resizer(function, member.product, channels).Apply(function);
  }

  Graph& graph_;
  const RunFunction& run_;
  const Uses uses_;
};

}  // namespace

absl::StatusOr<Graph> MergeProducts(Graph graph, const RunFunction& run) {
  const Merger merger(graph, run);
  // The merged calls run where the first product of their group ran: their
  // inputs are its inputs and constants.
  std::vector<bool> dropped(graph.calls.size());
  std::map<int, std::vector<Call>> merged;
  for (const std::vector<Member>& group : merger.Groups()) {
    TF_ASSIGN_OR_RETURN(merged[group[0].call], merger.Merge(group));
    for (const Member& member : group) {
      dropped[static_cast<size_t>(member.call)] = true;
      if (member.bias_call) {
        dropped[static_cast<size_t>(*member.bias_call)] = true;
      }
    }
  }
  std::vector<Call> calls;
  for (size_t c = 0; c < graph.calls.size(); ++c) {
    const auto made = merged.find(static_cast<int>(c));
    if (made != merged.end()) {
      for (Call& call : made->second) calls.push_back(std::move(call));
    } else if (!dropped[c]) {
      calls.push_back(std::move(graph.calls[c]));
    }
  }
  graph.calls = std::move(calls);
  return graph;
}

}  // namespace tilefarm::graph
