// Parts of a function that read constants only are computed at compile time:
//
//   y = batch_norm(x, gamma, beta, mean, variance)   two nests, the first is
//                                                    scale[c] = gamma[c] / ...
//   ->  y = (x - mean[c]) * scale[c] + beta[c]       one, elementwise in x
//
// Not where the result would be larger than what it is computed from: weights
// of 8 bits less their zero points take four times their memory.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/nests.h"
#include "compiler/graph/passes.h"
#include "compiler/ir/verifier.h"

namespace tilefarm::graph {
namespace {

int64_t Bytes(const ir::BufferNode& buffer) {
  return buffer.num_elements() * buffer.dtype.bytes();
}

class Hoister {
 public:
  Hoister(Graph& graph, const RunFunction& run) : graph_(graph), run_(run) {}

  absl::Status Apply(Call& call) const {
    const auto nests = NestsOf(*call.function);
    if (!nests || nests->size() < 2) return absl::OkStatus();
    // The constants, and what was computed of them.
    std::map<ir::Buffer, ValueId> values;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (graph_.values[call.inputs[i]].constant != nullptr) {
        values[call.function->params[i]] = call.inputs[i];
      }
    }
    std::vector<const Nest*> kept;
    for (const Nest& nest : *nests) {
      if (!IsHoisted(*call.function, nest, values)) {
        kept.push_back(&nest);
        continue;
      }
      TF_ASSIGN_OR_RETURN(values[nest.store->buffer], Evaluate(nest, values));
    }
    if (kept.size() == nests->size()) return absl::OkStatus();
    return Rebuild(call, kept, values);
  }

 private:
  static bool IsHoisted(const ir::PrimFunc& function, const Nest& nest,
                        const std::map<ir::Buffer, ValueId>& values) {
    const std::vector<ir::Buffer>& allocs = function.root()->allocs;
    if (std::find(allocs.begin(), allocs.end(), nest.store->buffer) ==
            allocs.end() ||
        nest.reads.empty()) {
      return false;
    }
    int64_t in = 0;
    for (const ir::Buffer& read : nest.reads) {
      if (!values.contains(read)) return false;
      in += Bytes(*read);
    }
    return Bytes(*nest.store->buffer) <= in;
  }

  absl::StatusOr<ValueId> Evaluate(
      const Nest& nest, const std::map<ir::Buffer, ValueId>& values) const {
    std::vector<ir::Buffer> params = nest.reads;
    params.push_back(nest.store->buffer);
    Call call;
    call.function = FunctionOf("hoisted", std::move(params), {}, {nest.loops});
    TF_RETURN_IF_ERROR(ir::Verify(*call.function));
    for (const ir::Buffer& read : nest.reads) {
      call.inputs.push_back(values.at(read));
    }
    const ir::BufferNode& made = *nest.store->buffer;
    graph_.values.push_back({made.name, {made.dtype, made.shape}, nullptr});
    const auto id = static_cast<ValueId>(graph_.values.size()) - 1;
    call.outputs = {id};
    TF_ASSIGN_OR_RETURN(std::vector<TensorData> results,
                        EvaluateCall(graph_, call, run_));
    graph_.values[id].constant =
        std::make_shared<const TensorData>(std::move(results[0]));
    return id;
  }

  // The call with the kept nests alone.
  absl::Status Rebuild(Call& call, const std::vector<const Nest*>& kept,
                       const std::map<ir::Buffer, ValueId>& values) const {
    const ir::PrimFunc& old = *call.function;
    std::set<ir::Buffer> read;
    std::vector<ir::Stmt> nests;
    for (const Nest* nest : kept) {
      read.insert(nest->reads.begin(), nest->reads.end());
      nests.push_back(nest->loops);
    }
    std::vector<ir::Buffer> params, allocs;
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (!read.contains(old.params[i])) continue;
      params.push_back(old.params[i]);
      inputs.push_back(call.inputs[i]);
    }
    for (const ir::Buffer& buffer : old.root()->allocs) {
      const auto value = values.find(buffer);
      if (value == values.end()) {
        allocs.push_back(buffer);
      } else if (read.contains(buffer)) {
        params.push_back(buffer);
        inputs.push_back(value->second);
      }
    }
    for (size_t i = call.inputs.size(); i < old.params.size(); ++i) {
      params.push_back(old.params[i]);
    }
    auto function = std::make_shared<ir::PrimFunc>(*FunctionOf(
        old.name, std::move(params), std::move(allocs), std::move(nests)));
    function->attrs = old.attrs;
    call.function = std::move(function);
    call.inputs = std::move(inputs);
    return ir::Verify(*call.function);
  }

  Graph& graph_;
  const RunFunction& run_;
};

}  // namespace

absl::StatusOr<Graph> HoistConstants(Graph graph, const RunFunction& run) {
  const Hoister hoister(graph, run);
  for (Call& call : graph.calls) TF_RETURN_IF_ERROR(hoister.Apply(call));
  return graph;
}

}  // namespace tilefarm::graph
