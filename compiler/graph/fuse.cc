// Fusion: calls that pass a value on element by element become one function, so
// that the value stays in registers or in the cache.
//
// A group grows from its first call along the consumers of its value. Each
// consumer must be elementwise in what it reads of the group. If a value has
// several consumers, all of them must end in one value again (the group is a
// region with one exit: post-dominance, as in TVM's FuseOps); the group keeps
// what it had at the last such point. Groups that begin with a product or
// another reduction grow first, since their members cost them least.
//
// Then a group takes in what only it reads element by element, if that reads
// its own inputs along rows: the dequantisation of a residual, or a gather of
// rows.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/graph/access_pattern.h"
#include "compiler/graph/merge_calls.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/uses.h"

namespace tilefarm::graph {
namespace {

class Fuser {
 public:
  explicit Fuser(const Graph& graph)
      : graph_(graph), uses_(graph), group_(graph.calls.size(), -1) {
    for (const Call& call : graph.calls) {
      patterns_.push_back(PatternOf(*call.function));
    }
  }

  // Groups of at least two calls, each ascending.
  std::vector<std::vector<int>> Groups() {
    std::vector<std::vector<int>> groups;
    for (const bool injective : {false, true}) {
      for (size_t i = 0; i < graph_.calls.size(); ++i) {
        if (group_[i] >= 0 || patterns_[i].injective != injective ||
            !MayBegin(graph_.calls[i])) {
          continue;
        }
        std::vector<int> members = Grow(static_cast<int>(i));
        if (members.size() < 2) continue;
        for (int member : members) {
          group_[member] = static_cast<int>(groups.size());
        }
        groups.push_back(std::move(members));
      }
    }
    for (size_t g = 0; g < groups.size(); ++g) {
      TakeIn(static_cast<int>(g), groups[g]);
    }
    return groups;
  }

 private:
  bool MayBegin(const Call& call) const {
    // A reshape alone costs nothing; in a group it would be computed.
    return call.outputs.size() == 1 && call.op != "reshape";
  }

  // Whether the call may join a group that computes `values`.
  bool MayJoin(int call, const std::set<ValueId>& values) const {
    const Call& candidate = graph_.calls[call];
    if (group_[call] >= 0 || candidate.op == "reshape" ||
        !patterns_[call].injective) {
      return false;
    }
    for (size_t i = 0; i < candidate.inputs.size(); ++i) {
      if (values.count(candidate.inputs[i]) != 0 &&
          !patterns_[call].elementwise[i]) {
        return false;
      }
    }
    return true;
  }

  std::vector<int> Grow(int first) const {
    std::vector<int> members = {first};
    std::vector<int> accepted = members;
    std::set<ValueId> computed = {graph_.calls[first].outputs[0]};
    // Computed values that a call outside the members needs.
    std::set<ValueId> open = computed;
    while (true) {
      int next = -1;
      for (ValueId id : open) {
        if (uses_.is_output(id)) return accepted;
        for (int consumer : uses_.readers(id)) {
          if (std::find(members.begin(), members.end(), consumer) !=
              members.end()) {
            continue;
          }
          if (next < 0 || consumer < next) next = consumer;
        }
      }
      if (next < 0 || !MayJoin(next, computed)) return accepted;
      members.push_back(next);
      computed.insert(graph_.calls[next].outputs[0]);
      open.insert(graph_.calls[next].outputs[0]);
      for (auto id = open.begin(); id != open.end();) {
        const auto inside = [&](int consumer) {
          return std::find(members.begin(), members.end(), consumer) !=
                 members.end();
        };
        const bool closed = !uses_.is_output(*id) &&
                            !uses_.readers(*id).empty() &&
                            std::all_of(uses_.readers(*id).begin(),
                                        uses_.readers(*id).end(), inside);
        id = closed ? open.erase(id) : std::next(id);
      }
      if (open.size() == 1 &&
          *open.begin() == graph_.calls[members.back()].outputs[0]) {
        accepted = members;
      }
    }
  }

  // Adds producers of what members read element by element.
  void TakeIn(int group, std::vector<int>& members) {
    for (size_t m = 0; m < members.size(); ++m) {
      const Call& reader = graph_.calls[members[m]];
      for (size_t i = 0; i < reader.inputs.size(); ++i) {
        const int producer = uses_.producer(reader.inputs[i]);
        if (producer < 0 || !MayBeTakenIn(producer, group)) continue;
        group_[producer] = group;
        members.push_back(producer);
      }
    }
    std::sort(members.begin(), members.end());
  }

  // Whether only the group reads the call's result, element by element, and the
  // call reads along rows in all but constants. What transposes stays apart: in
  // a fused loop nest one side of it has no neighbours in memory.
  bool MayBeTakenIn(int call, int group) const {
    const Call& candidate = graph_.calls[call];
    if (group_[call] >= 0 || !MayBegin(candidate) ||
        uses_.is_output(candidate.outputs[0]) || !patterns_[call].injective) {
      return false;
    }
    for (size_t i = 0; i < candidate.inputs.size(); ++i) {
      if (!patterns_[call].unit_stride[i] &&
          graph_.values[candidate.inputs[i]].constant == nullptr) {
        return false;
      }
    }
    const ValueId value = candidate.outputs[0];
    const auto is_member = [&](int reader) {
      const std::vector<ValueId>& inputs = graph_.calls[reader].inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] == value && !patterns_[reader].elementwise[i]) {
          return false;
        }
      }
      return group_[reader] == group;
    };
    return std::all_of(uses_.readers(value).begin(), uses_.readers(value).end(),
                       is_member);
  }

  const Graph& graph_;
  const Uses uses_;
  std::vector<AccessPattern> patterns_;  // per call
  std::vector<int> group_;               // per call; -1: none
};

}  // namespace

absl::StatusOr<Graph> FuseCalls(Graph graph) {
  const std::vector<std::vector<int>> groups = Fuser(graph).Groups();
  TF_ASSIGN_OR_RETURN(graph, MergeGroups(std::move(graph), groups));
  return FuseChains(std::move(graph));
}

}  // namespace tilefarm::graph
