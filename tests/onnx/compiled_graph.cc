#include "tests/onnx/compiled_graph.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/driver/choose_schedule.h"
#include "compiler/driver/compile_model.h"
#include "compiler/driver/host_functions.h"
#include "compiler/driver/read_model.h"
#include "compiler/graph/passes.h"
#include "compiler/ir/float_rule.h"
#include "compiler/target/target.h"

namespace tilefarm::testing {
namespace {

// Bytes before and after each output, and their value. A cache line keeps the
// alignment of the output.
constexpr size_t kMargin = 64;
constexpr std::byte kMarginValue{0xa5};

}  // namespace

absl::StatusOr<CompiledGraph> CompiledGraph::Compile(
    graph::Graph graph, Schedules schedules, const std::string& target_text) {
  TF_ASSIGN_OR_RETURN(const target::Target target, target::Parse(target_text));
  TF_ASSIGN_OR_RETURN(graph,
                      graph::Optimize(std::move(graph), driver::RunOnHost,
                                      driver::GraphOptionsFor(target)));
  const driver::ModelKernels kernels =
      driver::ExtractKernels(graph, target.is_gpu());
  ir::IRModule module = kernels.module;
  if (schedules == Schedules::kDefault) {
    TF_ASSIGN_OR_RETURN(
        const driver::ScheduledModule scheduled,
        driver::ScheduleByDefault(kernels.module, target,
                                  ir::FloatRule::kAsWritten, "test"));
    module = scheduled.module;
  }
  TF_ASSIGN_OR_RETURN(
      const driver::ModelArtifact artifact,
      driver::CompileModel(graph, kernels, module, {.target = target}));
  TF_ASSIGN_OR_RETURN(
      driver::LoadedModel model,
      driver::LoadedModel::Load(artifact.shared_object, "model"));
  return CompiledGraph(std::move(graph), std::move(model));
}

absl::StatusOr<std::vector<graph::TensorData>> CompiledGraph::Run(
    std::span<const graph::TensorData> inputs) const {
  std::vector<const void*> in;
  for (const graph::TensorData& input : inputs) {
    in.push_back(input.bytes().data());
  }
  std::vector<std::vector<std::byte>> storage;
  std::vector<void*> out;
  for (graph::ValueId id : graph_.outputs) {
    const auto bytes = static_cast<size_t>(graph_.values[id].type.num_bytes());
    storage.emplace_back(bytes + 2 * kMargin, kMarginValue);
    out.push_back(storage.back().data() + kMargin);
  }
  TF_RETURN_IF_ERROR(model_.Run(in, out));
  std::vector<graph::TensorData> outputs;
  for (size_t i = 0; i < storage.size(); ++i) {
    const std::vector<std::byte>& bytes = storage[i];
    const auto is_margin = [](std::byte b) { return b == kMarginValue; };
    if (!std::all_of(bytes.begin(), bytes.begin() + kMargin, is_margin) ||
        !std::all_of(bytes.end() - kMargin, bytes.end(), is_margin)) {
      return absl::InternalError(
          absl::StrCat("the model wrote outside of output ", i));
    }
    outputs.emplace_back(
        std::vector(bytes.begin() + kMargin, bytes.end() - kMargin));
  }
  return outputs;
}

}  // namespace tilefarm::testing
