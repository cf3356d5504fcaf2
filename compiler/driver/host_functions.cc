#include "compiler/driver/host_functions.h"

#include <memory>
#include <vector>

#include "base/status_macros.h"
#include "compiler/driver/compile_model.h"
#include "compiler/driver/loaded_model.h"
#include "compiler/target/target.h"

namespace tilefarm::driver {

absl::Status RunOnHost(const ir::PrimFunc& function,
                       std::span<const std::span<std::byte>> buffers) {
  // A model of one call, whose outputs are all buffers: the function may write
  // any of them.
  graph::Graph graph;
  graph::Call call{.op = function.name,
                   .function = std::make_shared<const ir::PrimFunc>(function)};
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const ir::BufferNode& param = *function.params[i];
    const auto id = static_cast<graph::ValueId>(graph.values.size());
    graph.values.push_back({param.name, {param.dtype, param.shape}, nullptr});
    call.outputs.push_back(id);
    graph.outputs.push_back(id);
    graph.output_names.push_back(param.name);
    outputs.push_back(buffers[i].data());
  }
  graph.calls.push_back(std::move(call));
  TF_ASSIGN_OR_RETURN(const target::Target host, target::Parse("host,cores=1"));
  const ModelKernels kernels = ExtractKernels(graph);
  TF_ASSIGN_OR_RETURN(
      const ModelArtifact artifact,
      CompileModel(graph, kernels, kernels.module, {.target = host}));
  TF_ASSIGN_OR_RETURN(const LoadedModel model,
                      LoadedModel::Load(artifact.shared_object, "model"));
  return model.Run(inputs, outputs);
}

}  // namespace tilefarm::driver
