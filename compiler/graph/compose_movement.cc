// A call that moves elements reads from where the elements were before other
// such calls, if its indices stay sums and products:
//
//   b = slice(a), c = reshape(b), d = transpose(c)   ->   d = rearrange(a)
//
// What moves elements back to their order becomes a reshape of the first value,
// or the value itself.
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/make_call.h"
#include "compiler/graph/movement.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/uses.h"

namespace tilefarm::graph {
namespace {

struct Source {
  ValueId input = 0;
  Movement movement;
};

class Composer {
 public:
  explicit Composer(const Graph& graph) : graph_(graph), uses_(graph) {
    for (const Call& call : graph.calls) {
      movements_.push_back(MovementOf(*call.function));
    }
  }

  // The earliest value that call number `c` can read instead of its input;
  // nullopt if there is none, or if `c` moves nothing.
  std::optional<Source> SourceOf(size_t c) const {
    if (!movements_[c]) return std::nullopt;
    const bool is_free = graph_.calls[c].op == "reshape";
    Movement now = *movements_[c];
    ValueId from = graph_.calls[c].inputs[0];
    std::optional<Source> best;
    // Elements that a reshape passes on are not copied: reading its input
    // gains nothing by itself.
    bool passes_copy = false;
    while (true) {
      const int producer = uses_.producer(from);
      if (producer < 0 || !movements_[static_cast<size_t>(producer)]) break;
      const Call& before = graph_.calls[static_cast<size_t>(producer)];
      now = Compose(*movements_[static_cast<size_t>(producer)], now);
      from = before.inputs[0];
      passes_copy |= before.op != "reshape";
      const bool renames = KeepsBytes(now);
      const bool gains = is_free ? renames : renames || passes_copy;
      if (gains &&
          (renames || (HasPlainIndices(now) && before.op != "reshape"))) {
        best = Source{from, now};
      }
    }
    return best;
  }

 private:
  const Graph& graph_;
  const Uses uses_;
  std::vector<std::optional<Movement>> movements_;  // per call
};

}  // namespace

absl::StatusOr<Graph> ComposeMovement(Graph graph) {
  const Composer composer(graph);
  std::vector<std::optional<Source>> sources;
  for (size_t c = 0; c < graph.calls.size(); ++c) {
    sources.push_back(composer.SourceOf(c));
  }
  for (size_t c = 0; c < graph.calls.size(); ++c) {
    if (!sources[c]) continue;
    const ValueId output = graph.calls[c].outputs[0];
    TF_ASSIGN_OR_RETURN(graph.calls[c],
                        KeepsBytes(sources[c]->movement)
                            ? MakeReshape(graph, sources[c]->input, output)
                            : MakeRearrange(graph, sources[c]->input,
                                            sources[c]->movement, output));
  }
  return graph;
}

}  // namespace tilefarm::graph
