#include "compiler/graph/merge_calls.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/ir/verifier.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

// Gives every block a name that no other block of the function has.
class NameBlocks : public ir::Mutator {
 public:
  explicit NameBlocks(std::set<std::string>& taken) : taken_(taken) {}

 protected:
  ir::Stmt MutateBlock(const ir::BlockNode& block,
                       const ir::Stmt& self) override {
    const ir::Stmt inner = ir::Mutator::MutateBlock(block, self);
    std::string name = block.name;
    for (int i = 1; !taken_.insert(name).second; ++i) {
      name = absl::StrCat(block.name, "_", i);
    }
    ir::BlockNode renamed(*ir::As<ir::BlockNode>(inner));
    renamed.name = std::move(name);
    return ir::BlockOf(std::move(renamed));
  }

 private:
  std::set<std::string>& taken_;
};

}  // namespace

absl::StatusOr<Call> MergeCalls(const Graph& graph,
                                const std::vector<int>& members,
                                const std::vector<ValueId>& outputs) {
  Call merged;
  std::map<ValueId, ir::Buffer> buffers;
  std::set<ValueId> computed;
  std::vector<std::string> names;
  ir::BlockNode root;
  root.name = "root";
  root.predicate = ir::BoolConst(true);
  auto function = std::make_shared<ir::PrimFunc>();
  for (int member : members) {
    for (ValueId id : graph.calls[member].outputs) computed.insert(id);
  }
  std::vector<ir::Stmt> bodies;
  std::set<std::string> block_names{"root"};
  for (int member : members) {
    const Call& call = graph.calls[member];
    names.push_back(call.op);
    ir::BufferMap replaced;
    for (size_t i = 0; i < call.function->params.size(); ++i) {
      const ir::Buffer& param = call.function->params[i];
      const ValueId id = i < call.inputs.size()
                             ? call.inputs[i]
                             : call.outputs[i - call.inputs.size()];
      ir::Buffer& buffer = buffers[id];
      if (buffer == nullptr) {
        const bool from_outside = computed.count(id) == 0;
        buffer = ir::MakeBuffer(from_outside
                                    ? absl::StrCat("in", merged.inputs.size())
                                    : param->name,
                                param->dtype, param->shape);
        if (from_outside) {
          merged.inputs.push_back(id);
          function->params.push_back(buffer);
        } else if (std::find(outputs.begin(), outputs.end(), id) ==
                   outputs.end()) {
          root.allocs.push_back(buffer);
        }
      }
      replaced[param.get()] = buffer;
    }
    const ir::BlockNode* body = call.function->root();
    if (body == nullptr) {
      return absl::InternalError(
          absl::StrCat(call.function->name, " has no root block"));
    }
    root.allocs.insert(root.allocs.end(), body->allocs.begin(),
                       body->allocs.end());
    bodies.push_back(NameBlocks(block_names)
                         .Mutate(ir::ReplaceBuffers(body->body, replaced)));
  }
  for (ValueId id : outputs) function->params.push_back(buffers[id]);
  root.body = ir::MakeSeq(std::move(bodies));
  function->body = ir::BlockOf(std::move(root));
  merged.op = absl::StrJoin(names, "+");
  std::string name = merged.op;
  std::ranges::replace_if(
      name, [](char c) { return c == '.' || c == '+'; }, '_');
  // Symbols of fused functions stay readable.
  constexpr size_t kLongestName = 60;
  function->name = name.substr(0, kLongestName);
  function->attrs["global_symbol"] = ir::Attr(function->name);
  function->attrs["tir.noalias"] = ir::Attr(true);
  TF_RETURN_IF_ERROR(ir::Verify(*function));
  merged.function = std::move(function);
  merged.outputs = outputs;
  return merged;
}

absl::StatusOr<Graph> MergeGroups(Graph graph,
                                  const std::vector<std::vector<int>>& groups) {
  // A group's function runs where its last member ran.
  std::vector<int> group_at(graph.calls.size(), -1);
  std::vector<bool> is_member(graph.calls.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    for (int member : groups[g]) is_member[member] = true;
    group_at[groups[g].back()] = static_cast<int>(g);
  }
  std::vector<Call> calls;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    if (group_at[i] >= 0) {
      TF_ASSIGN_OR_RETURN(Call merged, MergeCalls(graph, groups[group_at[i]],
                                                  graph.calls[i].outputs));
      calls.push_back(std::move(merged));
    } else if (!is_member[i]) {
      calls.push_back(graph.calls[i]);
    }
  }
  graph.calls = std::move(calls);
  TF_RETURN_IF_ERROR(Verify(graph));
  return graph;
}

}  // namespace tilefarm::graph
