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
#include "compiler/driver/compile.h"
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

// ONNX's number of the dtype (TensorProto.DataType).
int32_t OnnxNumber(ir::DataType dtype) {
  if (dtype.is_bool()) return 9;
  switch (dtype.code) {
    case ir::TypeCode::kBFloat:
      return 16;
    case ir::TypeCode::kFloat:
      return dtype.bits == 16 ? 10 : dtype.bits == 32 ? 1 : 11;
    case ir::TypeCode::kInt:
      return dtype.bits == 8    ? 3
             : dtype.bits == 16 ? 5
             : dtype.bits == 32 ? 6
                                : 7;
    case ir::TypeCode::kUInt:
      return dtype.bits == 8    ? 2
             : dtype.bits == 16 ? 4
             : dtype.bits == 32 ? 12
                                : 13;
  }
  return 0;
}

ModelOperand OperandAt(const Place& place, ModelWeights& weights) {
  switch (place.storage) {
    case Storage::kInput:
      return {ModelOperand::Kind::kInput, place.at};
    case Storage::kOutput:
      return {ModelOperand::Kind::kOutput, place.at};
    case Storage::kConstant:
      return {ModelOperand::Kind::kWeights,
              weights.OffsetOf(static_cast<ValueId>(place.at))};
    case Storage::kArena:
    case Storage::kNone:  // a result that nobody reads has a block, too
      break;
  }
  return {ModelOperand::Kind::kArena, place.at};
}

std::string KernelSymbol(int kernel, const ir::PrimFunc& function) {
  return absl::StrCat("tf_kernel", kernel, "_", function.name);
}

codegen::ModelTensor Describe(const std::string& name,
                              const graph::TensorType& type) {
  return {name, OnnxNumber(type.dtype), type.shape};
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

absl::StatusOr<codegen::ModelDescription> DescribeModel(
    const Graph& graph, const ModelKernels& kernels, const Kernels& code,
    const MemoryPlan& plan, const std::string& symbol, ModelWeights& weights) {
  codegen::ModelDescription model;
  model.symbol = symbol;
  model.arena_bytes = plan.arena_bytes;
  for (ValueId id : graph.inputs) {
    model.inputs.push_back(
        Describe(graph.values[id].name, graph.values[id].type));
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    model.outputs.push_back(
        Describe(graph.output_names[i], graph.values[graph.outputs[i]].type));
  }
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    const int kernel = kernels.kernel_of_call[i];
    if (kernel < 0) continue;
    codegen::ModelStep step;
    step.kernel = KernelSymbol(kernel, *kernels.module.functions[kernel]);
    const graph::Call& call = graph.calls[i];
    for (size_t p = 0; p < call.inputs.size(); ++p) {
      const auto pack = code.packs[kernel].find(static_cast<int>(p));
      if (pack == code.packs[kernel].end()) {
        step.operands.push_back(
            OperandAt(plan.places[call.inputs[p]], weights));
        continue;
      }
      TF_ASSIGN_OR_RETURN(const int64_t offset,
                          weights.OffsetOfPacked(call.inputs[p], pack->second));
      step.operands.push_back({ModelOperand::Kind::kWeights, offset});
    }
    for (ValueId id : call.outputs) {
      step.operands.push_back(OperandAt(plan.places[id], weights));
    }
    model.steps.push_back(std::move(step));
  }
  for (const graph::OutputCopy& copy : plan.copies) {
    model.steps.push_back(
        {.kernel = "",
         .operands = {{ModelOperand::Kind::kOutput, copy.output},
                      OperandAt(copy.from, weights)},
         .copied_bytes = copy.bytes});
  }
  model.weights = weights.pieces();
  return model;
}

// In the order of DescribeModel.
std::vector<ModelArtifact::Step> StepsOf(const Graph& graph,
                                         const ModelKernels& kernels,
                                         const MemoryPlan& plan) {
  std::vector<ModelArtifact::Step> steps;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    const int kernel = kernels.kernel_of_call[i];
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

}  // namespace

ModelKernels ExtractKernels(const Graph& graph) {
  ModelKernels kernels;
  const MemoryPlan plan = graph::PlanMemory(graph);
  int64_t model_bytes = 0;  // of constants
  for (const graph::Value& value : graph.values) {
    model_bytes += ConstantBytes(value);
  }
  std::map<std::string, int> known;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    if (plan.is_alias[i]) {
      kernels.kernel_of_call.push_back(-1);
      continue;
    }
    auto named = std::make_shared<ir::PrimFunc>(*graph.calls[i].function);
    // Constants may have another layout than the program's: they are packed
    // when the model is compiled.
    ir::AttrList constants;
    int64_t kernel_bytes = 0;
    for (size_t p = 0; p < graph.calls[i].inputs.size(); ++p) {
      const graph::Value& input = graph.values[graph.calls[i].inputs[p]];
      if (input.constant == nullptr) continue;
      constants.emplace_back(static_cast<int64_t>(p));
      kernel_bytes += ConstantBytes(input);
    }
    if (!constants.empty()) {
      named->attrs[ir::kLayoutFreeBuffers] = ir::Attr(std::move(constants));
    }
    if (model_bytes > kManyConstants && kernel_bytes > kLarge) {
      named->attrs[ir::kColdConstants] = ir::Attr(int64_t{1});
    }
    if (StaysInside(graph, graph.calls[i])) {
      named->attrs[ir::kResultsAreRead] = ir::Attr(int64_t{1});
    }
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
  return kernels;
}

absl::StatusOr<ModelArtifact> CompileModel(const Graph& graph,
                                           const ModelKernels& kernels,
                                           const ir::IRModule& scheduled,
                                           const ModelOptions& options) {
  TF_RETURN_IF_ERROR(CheckSymbol(options.symbol));
  const MemoryPlan plan = graph::PlanMemory(graph);
  TF_ASSIGN_OR_RETURN(const Kernels code,
                      LowerKernels(kernels, scheduled, options.target));
  const codegen::Options codegen_options{options.target, /*hidden=*/true};
  ModelWeights weights(graph);
  TF_ASSIGN_OR_RETURN(
      codegen::ModelDescription model,
      DescribeModel(graph, kernels, code, plan, options.symbol, weights));
  ModelArtifact artifact;
  if (!options.weights_name.empty()) {
    WeightsFile file = MakeWeightsFile(model.weights);
    artifact.weights_file = std::move(file.bytes);
    model.weights_file = {options.weights_name, std::move(file.digest)};
  }
  std::vector<std::string> objects(1);
  TF_ASSIGN_OR_RETURN(objects[0],
                      codegen::EmitModelObject(model, codegen_options));
  if (!code.lowered.empty()) {
    TF_ASSIGN_OR_RETURN(std::string object,
                        codegen::EmitObject(code.lowered, codegen_options));
    objects.push_back(std::move(object));
  }
  TF_ASSIGN_OR_RETURN(artifact.shared_object,
                      codegen::LinkSharedObject(objects, options.target));
  TF_ASSIGN_OR_RETURN(artifact.code_digest,
                      codegen::CodeDigest(artifact.shared_object));
  if (options.archive) {
    TF_ASSIGN_OR_RETURN(artifact.archive,
                        codegen::LinkArchive(objects, options.target));
  }
  if (options.profile) {
    model.profiled = true;
    TF_ASSIGN_OR_RETURN(objects[0],
                        codegen::EmitModelObject(model, codegen_options));
    TF_ASSIGN_OR_RETURN(artifact.profiled_object,
                        codegen::LinkSharedObject(objects, options.target));
  }
  artifact.header = options.target.is_webassembly()
                        ? codegen::JsModelLoader(model.symbol)
                        : codegen::ModelHeader(model);
  artifact.steps = StepsOf(graph, kernels, plan);
  artifact.weight_bytes = weights.bytes();
  artifact.arena_bytes = plan.arena_bytes;
  artifact.largest_live_bytes = plan.largest_live_bytes;
  return artifact;
}

}  // namespace tilefarm::driver
