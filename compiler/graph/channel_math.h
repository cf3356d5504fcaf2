// Calls that are linear in what they read, channel by channel: products by
// constant weights, and scales and shifts after them.
#ifndef TILEFARM_COMPILER_GRAPH_CHANNEL_MATH_H_
#define TILEFARM_COMPILER_GRAPH_CHANNEL_MATH_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "compiler/graph/builder.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::graph {

// A sum of products in which each channel of the result has weights of its own:
//
//   y[..., c, ...] = sum of w[..., c, ...] * x[...]
//
// Matrix products and convolutions are such calls.
struct ChannelProduct {
  int weight = 0;      // the parameter w
  int weight_dim = 0;  // the dimension of w that is c
  int result_dim = 0;  // the same of y
  // Whether x is read at the same places for every channel.
  bool shares_data = false;
};

// nullopt if the call is no such product of float32 or float64 by a constant.
std::optional<ChannelProduct> ChannelProductOf(const Graph& graph,
                                               const Call& call);
// The same where `may_be_weight` says which parameters are as good as constant.
std::optional<ChannelProduct> ChannelProductOf(
    const Call& call, const std::function<bool(size_t param)>& may_be_weight);

// An elementwise call that scales and shifts each channel by constants:
//
//   y[..., c, ...] = x[..., c, ...] * scale + shift
struct ChannelAffine {
  int input = 0;  // the parameter x
  // Of the other parameters, which are constants, at `channel`; null: 1, 0.
  ir::Expr scale, shift;
  ir::Var channel;
};

// nullopt if the call does not do that to `value`, with c its dimension `dim`,
// in float32 or float64.
std::optional<ChannelAffine> ChannelAffineOf(const Graph& graph,
                                             const Call& call, ValueId value,
                                             int dim);

// Reads an expression of a ChannelAffine within a tensor expression.
using ReadParams = std::function<ir::Expr(const ir::Expr&)>;

// A vector over channels, a new constant: `define` makes an element of that of
// `before` (null if there is none) and of expressions of `affine`, which is of
// `call`.
absl::StatusOr<ValueId> ChannelConstant(
    Graph& graph, const Call& call, const ChannelAffine& affine,
    int64_t channels, std::optional<ValueId> before, const RunFunction& run,
    const std::function<ir::Expr(const ir::Expr& before,
                                 const ReadParams& read)>& define);

// The call that adds shift[c] to value[..., c, ...], c being dimension `dim`.
absl::StatusOr<Call> AddToChannels(
    Graph& graph, ValueId value, int dim, ValueId shift,
    std::optional<ValueId> output = std::nullopt);

}  // namespace tilefarm::graph

#endif  // TILEFARM_COMPILER_GRAPH_CHANNEL_MATH_H_
