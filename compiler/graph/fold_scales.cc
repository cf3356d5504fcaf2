// Scales and shifts after a product by constant weights go into the weights and
// one shift: batch norms after convolutions, above all.
//
//   y = (x * w + b - mean[c]) * scale[c] + beta[c]
//   ->  y = x * w' + b'      w'[c] = w[c] * scale[c]
//                            b'[c] = (b[c] - mean[c]) * scale[c] + beta[c]
//
// Results differ by rounding (docs/decisions/graph/folded-scales.md).
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/channel_math.h"
#include "compiler/graph/make_call.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/uses.h"

namespace tilefarm::graph {
namespace {

ir::Expr Times(const ir::Expr& a, const ir::Expr& b) {
  return ir::MakeBinary(ir::BinaryOp::kMul, a, b);
}
ir::Expr Plus(const ir::Expr& a, const ir::Expr& b) {
  return ir::MakeBinary(ir::BinaryOp::kAdd, a, b);
}

// A vector over channels; nullopt is 1 of a scale and 0 of a shift.
using Channels = std::optional<ValueId>;

class Folder {
 public:
  Folder(Graph& graph, const RunFunction& run)
      : graph_(graph), run_(run), uses_(graph) {}

  // Folds what follows call number `c`, if it is a product. Calls that are no
  // longer needed are marked in `dropped`; others are replaced.
  absl::Status Apply(size_t c, std::vector<bool>& dropped) const {
    const std::optional<ChannelProduct> product =
        ChannelProductOf(graph_, graph_.calls[c]);
    if (!product) return absl::OkStatus();
    std::vector<int> chain;
    TF_ASSIGN_OR_RETURN(const Sums sums, Follow(c, product->result_dim, chain));
    if (!sums.scale) return absl::OkStatus();
    const ValueId weight = graph_.calls[c].inputs[product->weight];
    TF_ASSIGN_OR_RETURN(const ValueId scaled,
                        Scaled(weight, product->weight_dim, *sums.scale));
    if (!AllFinite(graph_.values[scaled]) ||
        (sums.shift && !AllFinite(graph_.values[*sums.shift]))) {
      return absl::OkStatus();
    }
    graph_.calls[c].inputs[product->weight] = scaled;
    const auto last = static_cast<size_t>(chain.back());
    const std::vector<ValueId> result = graph_.calls[last].outputs;
    for (const int member : chain) dropped[static_cast<size_t>(member)] = true;
    if (!sums.shift) {
      graph_.calls[c].outputs = result;
      return absl::OkStatus();
    }
    TF_ASSIGN_OR_RETURN(
        graph_.calls[last],
        AddToChannels(graph_, graph_.calls[c].outputs[0], product->result_dim,
                      *sums.shift, result[0]));
    dropped[last] = false;
    return absl::OkStatus();
  }

 private:
  // What the calls after a product do, all together.
  struct Sums {
    Channels scale, shift;
  };

  // The calls up to the last one that scales, into `chain`.
  absl::StatusOr<Sums> Follow(size_t c, int dim,
                              std::vector<int>& chain) const {
    Sums sums, folded;
    std::vector<int> followed;
    ValueId value = graph_.calls[c].outputs[0];
    while (const std::optional<int> next = uses_.OnlyReader(value)) {
      const Call call = graph_.calls[static_cast<size_t>(*next)];
      const std::optional<ChannelAffine> affine =
          ChannelAffineOf(graph_, call, value, dim);
      if (!affine) break;
      followed.push_back(*next);
      const int64_t channels =
          graph_.values[value].type.shape[static_cast<size_t>(dim)];
      const ir::Expr& scale = affine->scale;
      const ir::Expr& shift = affine->shift;
      // Both sums as they were before this call.
      const Sums before = sums;
      if (scale != nullptr) {
        TF_ASSIGN_OR_RETURN(
            sums.scale,
            ChannelConstant(graph_, call, *affine, channels, before.scale, run_,
                            [&](const ir::Expr& old, const ReadParams& read) {
                              return old == nullptr ? read(scale)
                                                    : Times(old, read(scale));
                            }));
      }
      if (before.shift || shift != nullptr) {
        TF_ASSIGN_OR_RETURN(
            sums.shift,
            ChannelConstant(
                graph_, call, *affine, channels, before.shift, run_,
                [&](const ir::Expr& old, const ReadParams& read) {
                  if (old == nullptr) return read(shift);
                  const ir::Expr scaled =
                      scale == nullptr ? old : Times(old, read(scale));
                  return shift == nullptr ? scaled : Plus(scaled, read(shift));
                }));
      }
      value = call.outputs[0];
      if (affine->scale != nullptr) {
        folded = sums;
        chain = followed;
      }
    }
    return folded;
  }

  // weight[..., c, ...] * scale[c]
  absl::StatusOr<ValueId> Scaled(ValueId weight, int dim, ValueId scale) const {
    return MakeConstant(
        graph_, "scaled", {weight, scale}, run_, [&](const Tensors& in) {
          return te::Compute(
              "scaled", in[0].shape(), [&](const te::Indices& i) {
                return te::Body(
                    Times(in[0](i), in[1]({i[static_cast<size_t>(dim)]})));
              });
        });
  }

  Graph& graph_;
  const RunFunction& run_;
  const Uses uses_;
};

}  // namespace

absl::StatusOr<Graph> FoldScales(Graph graph, const RunFunction& run) {
  const Folder folder(graph, run);
  std::vector<bool> dropped(graph.calls.size());
  for (size_t c = 0; c < graph.calls.size(); ++c) {
    if (!dropped[c]) TF_RETURN_IF_ERROR(folder.Apply(c, dropped));
  }
  std::vector<Call> kept;
  for (size_t c = 0; c < graph.calls.size(); ++c) {
    if (!dropped[c]) kept.push_back(std::move(graph.calls[c]));
  }
  graph.calls = std::move(kept);
  return graph;
}

}  // namespace tilefarm::graph
