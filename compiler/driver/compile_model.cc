#include "compiler/driver/compile_model.h"

#include <algorithm>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/js_loader.h"
#include "compiler/codegen/link.h"
#include "compiler/codegen/model_object.h"
#include "compiler/codegen/signature.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/emit_objects.h"
#include "compiler/driver/model_weights.h"
#include "compiler/driver/weights_file.h"
#include "compiler/graph/plan_memory.h"
#include "compiler/ir/function_attrs.h"
#include "compiler/ir/layout_free.h"
#include "compiler/ir/structural.h"
#include "compiler/lower/pipeline.h"
#include "compiler/lower/split_prepack.h"

namespace tilefarm::driver {
namespace {

using codegen::ModelOperand;
using graph::Graph;
using graph::MemoryPlan;
using graph::Place;
using graph::Storage;
using graph::ValueId;

ModelOperand OperandAt(const Graph& graph, const Place& place, int64_t bytes,
                       ModelWeights& weights) {
  switch (place.storage) {
    case Storage::kInput:
      return {ModelOperand::Kind::kInput, place.at, bytes};
    case Storage::kOutput:
      return {ModelOperand::Kind::kOutput, place.at, bytes};
    case Storage::kConstant:
      return {ModelOperand::Kind::kWeights,
              weights.OffsetOf(*graph.values[place.at].constant), bytes};
    case Storage::kArena:
    case Storage::kNone:  // a result that nobody reads has a block, too
      break;
  }
  return {ModelOperand::Kind::kArena, place.at, bytes};
}

std::string KernelSymbol(int kernel, const ir::PrimFunc& function) {
  return absl::StrCat("tf_kernel", kernel, "_", function.name);
}

codegen::ModelTensor Describe(const std::string& name,
                              const graph::TensorType& type) {
  return {name, codegen::OnnxNumber(type.dtype), type.shape};
}

// The kernels' code, and which of their parameters are packed.
struct Kernels {
  std::vector<codegen::LoweredFunction> lowered;
  std::vector<std::map<int, ir::PrimFuncPtr>> packs;  // by parameter
};

absl::StatusOr<Kernels> LowerKernels(const ModelKernels& kernels,
                                     const ir::IRModule& scheduled,
                                     const target::Target& target) {
  Kernels made;
  for (size_t i = 0; i < scheduled.functions.size(); ++i) {
    lower::PrepackSplit split{.packed = scheduled.functions[i]};
    // A program that packs is itself no function with parts to be packed.
    if (scheduled.functions[i]->attrs.contains(ir::kLayoutFreeBuffers)) {
      TF_ASSIGN_OR_RETURN(split, lower::SplitPrepack(*scheduled.functions[i]));
    }
    TF_ASSIGN_OR_RETURN(ir::PrimFuncPtr lowered,
                        lower::Lower(*split.packed, target));
    made.lowered.push_back(
        {std::move(lowered),
         KernelSymbol(static_cast<int>(i), *kernels.module.functions[i])});
    std::map<int, ir::PrimFuncPtr>& packs = made.packs.emplace_back();
    for (lower::PackedParam& param : split.params) {
      if (param.pack != nullptr) packs[param.param] = std::move(param.pack);
    }
  }
  return made;
}

struct Tensors {
  std::vector<codegen::ModelTensor> inputs, outputs;
  std::vector<int64_t> input_bytes, output_bytes;
};

Tensors TensorsOf(const Graph& graph) {
  Tensors tensors;
  for (ValueId id : graph.inputs) {
    const graph::Value& value = graph.values[id];
    tensors.inputs.push_back(Describe(value.name, value.type));
    tensors.input_bytes.push_back(value.type.num_bytes());
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const graph::TensorType& type = graph.values[graph.outputs[i]].type;
    tensors.outputs.push_back(Describe(graph.output_names[i], type));
    tensors.output_bytes.push_back(type.num_bytes());
  }
  return tensors;
}

// Opens the dimensions in which `other` has another size.
absl::Status Merge(std::vector<codegen::ModelTensor>& tensors,
                   const std::vector<codegen::ModelTensor>& other) {
  for (size_t i = 0; i < tensors.size() && i < other.size(); ++i) {
    codegen::ModelTensor& tensor = tensors[i];
    if (tensor.shape.size() != other[i].shape.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(tensor.name, " has ", tensor.shape.size(),
                       " dimensions for some "
                       "sizes of open dimensions and ",
                       other[i].shape.size(),
                       " for others; compile these sizes one by one"));
    }
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      if (tensor.shape[d] != other[i].shape[d]) tensor.shape[d] = -1;
    }
    if (tensor.name != other[i].name || tensor.dtype != other[i].dtype) {
      return absl::InvalidArgumentError(absl::StrCat(
          tensor.name, " and ", other[i].name, " are no tensors of one model"));
    }
  }
  if (tensors.size() != other.size()) {
    return absl::InvalidArgumentError("the graphs are not of one model");
  }
  return absl::OkStatus();
}

std::vector<std::vector<int64_t>> ShapesOf(
    const std::vector<codegen::ModelTensor>& tensors) {
  std::vector<std::vector<int64_t>> shapes;
  for (const codegen::ModelTensor& tensor : tensors) {
    shapes.push_back(tensor.shape);
  }
  return shapes;
}

// The inputs and outputs of the model, and the shapes of its variants.
absl::StatusOr<codegen::ModelDescription> DescribeTensors(
    std::span<const Graph> graphs, const ModelOptions& options) {
  codegen::ModelDescription model;
  model.symbol = options.symbol;
  Tensors all = TensorsOf(graphs[0]);
  for (const Graph& graph : graphs) {
    const Tensors tensors = TensorsOf(graph);
    codegen::ModelVariant variant{.input_shapes = ShapesOf(tensors.inputs),
                                  .output_shapes = ShapesOf(tensors.outputs),
                                  .input_bytes = tensors.input_bytes,
                                  .output_bytes = tensors.output_bytes};
    for (const codegen::ModelVariant& other : model.variants) {
      if (other.input_shapes == variant.input_shapes) {
        return absl::InvalidArgumentError(
            absl::StrCat("the inputs have the same shapes for several of ",
                         options.sizes, "; leave one of them out"));
      }
    }
    model.variants.push_back(std::move(variant));
    TF_RETURN_IF_ERROR(Merge(all.inputs, tensors.inputs));
    TF_RETURN_IF_ERROR(Merge(all.outputs, tensors.outputs));
  }
  model.inputs = std::move(all.inputs);
  model.outputs = std::move(all.outputs);
  if (graphs.size() > 1) model.sizes = options.sizes;
  return model;
}

absl::StatusOr<std::vector<codegen::ModelStep>> DescribeSteps(
    const Graph& graph, const ModelKernels& kernels,
    std::span<const int> kernel_of_call, const Kernels& code,
    const MemoryPlan& plan, ModelWeights& weights) {
  std::vector<codegen::ModelStep> steps;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    const int kernel = kernel_of_call[i];
    if (kernel < 0) continue;
    codegen::ModelStep step;
    step.kernel = KernelSymbol(kernel, *kernels.module.functions[kernel]);
    const graph::Call& call = graph.calls[i];
    for (size_t p = 0; p < call.inputs.size(); ++p) {
      const graph::Value& input = graph.values[call.inputs[p]];
      const auto pack = code.packs[kernel].find(static_cast<int>(p));
      if (pack == code.packs[kernel].end()) {
        step.operands.push_back(OperandAt(graph, plan.places[call.inputs[p]],
                                          input.type.num_bytes(), weights));
        continue;
      }
      TF_ASSIGN_OR_RETURN(
          const int64_t offset,
          weights.OffsetOfPacked(*input.constant, pack->second));
      step.operands.push_back({ModelOperand::Kind::kWeights, offset,
                               *ir::MemoryBytes(*pack->second->params[1])});
    }
    for (ValueId id : call.outputs) {
      step.operands.push_back(OperandAt(
          graph, plan.places[id], graph.values[id].type.num_bytes(), weights));
    }
    steps.push_back(std::move(step));
  }
  for (const graph::OutputCopy& copy : plan.copies) {
    steps.push_back(
        {.kernel = "",
         .operands = {{ModelOperand::Kind::kOutput, copy.output, copy.bytes},
                      OperandAt(graph, copy.from, copy.bytes, weights)},
         .copied_bytes = copy.bytes});
  }
  return steps;
}

// In the order of DescribeSteps.
std::vector<ModelArtifact::Step> StepsOf(const Graph& graph,
                                         std::span<const int> kernel_of_call,
                                         const MemoryPlan& plan) {
  std::vector<ModelArtifact::Step> steps;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    const int kernel = kernel_of_call[i];
    if (kernel < 0) continue;
    const graph::Call& call = graph.calls[i];
    steps.push_back({kernel, call.op});
    for (const ValueId id : call.inputs) {
      const graph::Value& value = graph.values[id];
      if (!value.constant) steps.back().inputs.push_back(value.name);
    }
    for (const ValueId id : call.outputs) {
      steps.back().outputs.push_back(graph.values[id].name);
    }
  }
  for (size_t i = 0; i < plan.copies.size(); ++i) {
    steps.push_back({-1, "copy of an output"});
  }
  return steps;
}

// Every L2 cache holds what is smaller.
constexpr int64_t kLarge = 256 << 10;
// More than the caches keep for one core while a model runs again and again.
constexpr int64_t kManyConstants = 16 << 20;

// Whether the results are read within the model and so large that it matters.
bool StaysInside(const Graph& graph, const graph::Call& call) {
  return std::ranges::any_of(call.outputs, [&](ValueId id) {
    return graph.values[id].type.num_bytes() > kLarge &&
           !std::ranges::count(graph.outputs, id);
  });
}

int64_t ConstantBytes(const graph::Value& value) {
  return value.constant == nullptr ? 0 : value.type.num_bytes();
}

// What measuring, and packing when the model is compiled, must know of a call.
void AnnotateUse(const Graph& graph, const graph::Call& call,
                 int64_t model_bytes, ir::PrimFunc& function) {
  ir::AttrList constants;
  int64_t kernel_bytes = 0;
  for (size_t p = 0; p < call.inputs.size(); ++p) {
    const graph::Value& input = graph.values[call.inputs[p]];
    if (input.constant == nullptr) continue;
    constants.emplace_back(static_cast<int64_t>(p));
    kernel_bytes += ConstantBytes(input);
  }
  // Constants may have another layout than the program's.
  if (!constants.empty()) {
    function.attrs[ir::kLayoutFreeBuffers] = ir::Attr(std::move(constants));
  }
  if (model_bytes > kManyConstants && kernel_bytes > kLarge) {
    function.attrs[ir::kColdConstants] = ir::Attr(int64_t{1});
  }
  if (StaysInside(graph, call)) {
    function.attrs[ir::kResultsAreRead] = ir::Attr(int64_t{1});
  }
}

// `known`: the number of each kernel by the hash of its workload.
void AddKernels(const Graph& graph, bool for_gpu,
                std::map<std::string, int>& known, ModelKernels& kernels) {
  const MemoryPlan plan = graph::PlanMemory(graph);
  int64_t model_bytes = 0;  // of constants
  for (const graph::Value& value : graph.values) {
    model_bytes += ConstantBytes(value);
  }
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    if (plan.is_alias[i]) {
      kernels.kernel_of_call.push_back(-1);
      continue;
    }
    auto named = std::make_shared<ir::PrimFunc>(*graph.calls[i].function);
    if (!for_gpu) AnnotateUse(graph, graph.calls[i], model_bytes, *named);
    const auto [entry, is_new] =
        known.emplace(ir::WorkloadHash(*named),
                      static_cast<int>(kernels.module.functions.size()));
    if (is_new) {
      // Names of functions in a module are unique.
      named->name = absl::StrCat(named->name, "_", entry->second);
      named->attrs["global_symbol"] = ir::Attr(named->name);
      kernels.module.functions.push_back(std::move(named));
      kernels.uses.push_back(0);
    }
    kernels.kernel_of_call.push_back(entry->second);
    ++kernels.uses[entry->second];
  }
}

}  // namespace

ModelKernels ExtractKernels(std::span<const Graph> graphs, bool for_gpu) {
  ModelKernels kernels;
  std::map<std::string, int> known;
  for (const Graph& graph : graphs) AddKernels(graph, for_gpu, known, kernels);
  return kernels;
}

absl::StatusOr<ModelArtifact> CompileModel(std::span<const Graph> graphs,
                                           const ModelKernels& kernels,
                                           const ir::IRModule& scheduled,
                                           const ModelOptions& options) {
  TF_RETURN_IF_ERROR(CheckSymbol(options.symbol));
  if (graphs.size() > 1 && options.target.is_webassembly()) {
    return absl::InvalidArgumentError(
        "--dim: a wasm32 module is compiled for one size of each dimension");
  }
  TF_ASSIGN_OR_RETURN(codegen::ModelDescription model,
                      DescribeTensors(graphs, options));
  TF_ASSIGN_OR_RETURN(const Kernels code,
                      LowerKernels(kernels, scheduled, options.target));
  const codegen::Options codegen_options{options.target, /*hidden=*/true};
  const int64_t alignment = codegen::ModelAlignment(options.target);
  ModelArtifact artifact;
  ModelWeights weights(alignment);
  std::span<const int> kernel_of_call = kernels.kernel_of_call;
  for (size_t g = 0; g < graphs.size(); ++g) {
    const Graph& graph = graphs[g];
    const MemoryPlan plan = graph::PlanMemory(graph, alignment);
    TF_ASSIGN_OR_RETURN(
        model.variants[g].steps,
        DescribeSteps(graph, kernels, kernel_of_call, code, plan, weights));
    artifact.steps.push_back(StepsOf(graph, kernel_of_call, plan));
    kernel_of_call = kernel_of_call.subspan(graph.calls.size());
    artifact.arena_bytes = std::max(artifact.arena_bytes, plan.arena_bytes);
    artifact.largest_live_bytes =
        std::max(artifact.largest_live_bytes, plan.largest_live_bytes);
  }
  model.arena_bytes = artifact.arena_bytes;
  model.weights = weights.pieces();
  if (!options.weights_name.empty()) {
    WeightsFile file = MakeWeightsFile(model.weights);
    artifact.weights_file = std::move(file.bytes);
    model.weights_file = {options.weights_name, std::move(file.digest)};
  }
  std::vector<std::string> objects;
  if (!code.lowered.empty()) {
    TF_ASSIGN_OR_RETURN(objects, EmitObjects(code.lowered, codegen_options));
  }
  TF_ASSIGN_OR_RETURN(objects.emplace_back(),
                      codegen::EmitModelObject(model, codegen_options));
  const target::Target host = options.target.HostPart();
  TF_ASSIGN_OR_RETURN(artifact.shared_object,
                      codegen::LinkSharedObject(objects, host));
  TF_ASSIGN_OR_RETURN(artifact.code_digest,
                      codegen::CodeDigest(artifact.shared_object));
  if (options.archive) {
    TF_ASSIGN_OR_RETURN(artifact.archive, codegen::LinkArchive(objects, host));
  }
  if (options.profile) {
    model.profiled = true;
    TF_ASSIGN_OR_RETURN(objects.back(),
                        codegen::EmitModelObject(model, codegen_options));
    TF_ASSIGN_OR_RETURN(artifact.profiled_object,
                        codegen::LinkSharedObject(objects, host));
  }
  artifact.header = options.target.is_webassembly()
                        ? codegen::JsModelLoader(model.symbol)
                        : codegen::ModelHeader(model, options.target);
  artifact.weight_bytes = weights.bytes();
  return artifact;
}

}  // namespace tilefarm::driver
