#include "compiler/driver/tunec_model.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/compile_model.h"
#include "compiler/driver/files.h"
#include "compiler/driver/loaded_model.h"
#include "compiler/driver/npy.h"
#include "compiler/driver/profile_model.h"
#include "compiler/driver/read_model.h"
#include "compiler/driver/time_model.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/printer.h"
#include "cost_model/features.h"
#include "database/explanation.h"
#include "nlohmann/json.hpp"

namespace tilefarm::driver {
namespace {

struct InputFile {
  std::string path;
  NpyArray array;
};

// The files of --run, by the name of their input.
absl::StatusOr<std::map<std::string, InputFile>> ReadInputFiles(
    const TunecFlags& flags) {
  std::map<std::string, InputFile> files;
  for (const std::string& input : flags.run_inputs) {
    TF_ASSIGN_OR_RETURN(const auto parts, SplitNamed(input, "--run"));
    const auto& [name, path] = parts;
    if (files.contains(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--run: ", name, " is given twice"));
    }
    TF_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
    absl::StatusOr<NpyArray> array = ParseNpy(bytes);
    if (!array.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": ", array.status().message()));
    }
    files[name] = {path, *std::move(array)};
  }
  return files;
}

// The graph's inputs, in its order.
absl::StatusOr<std::vector<graph::TensorData>> InputsOf(
    const std::map<std::string, InputFile>& files, const graph::Graph& graph) {
  std::set<std::string> unused;
  for (const auto& [name, file] : files) unused.insert(name);
  std::vector<graph::TensorData> inputs;
  for (graph::ValueId id : graph.inputs) {
    const graph::Value& value = graph.values[id];
    const auto file = files.find(value.name);
    if (file == files.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--run: no file for the input ", value.name, ", ",
                       value.type.ToString()));
    }
    const auto& [path, array] = file->second;
    if (array.type != value.type) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is ", array.type.ToString(), "; the input ",
                       value.name, " is ", value.type.ToString()));
    }
    inputs.push_back(array.data);
    unused.erase(value.name);
  }
  if (!unused.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--run: the model has no input '", *unused.begin(), "'"));
  }
  return inputs;
}

// Names of outputs may have characters that names of files may not.
std::string FileName(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name + ".npy";
}

int64_t Nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Runs the model several times. Prints a table, or returns it for --json.
absl::StatusOr<nlohmann::json> Profile(
    const TunecFlags& flags, std::span<const ModelArtifact::Step> steps,
    const ModelKernels& kernels, const LoadedModel& model,
    const std::function<absl::Status()>& run) {
  TF_ASSIGN_OR_RETURN(const std::vector<RunTimes> runs,
                      TimeSteps(model, run, flags.profile_runs, Nanoseconds));
  const std::vector<KernelTime> times =
      SumByKernel(steps, kernels, runs, cost_model::CountFlops);
  if (!flags.profile_trace.empty()) {
    TF_RETURN_IF_ERROR(
        WriteFile(flags.profile_trace, ChromeTrace(steps, kernels, runs)));
  }
  if (!flags.json) std::cout << PrintProfile(times, runs.size());
  nlohmann::json list = nlohmann::json::array();
  for (const KernelTime& time : times) {
    list.push_back(
        {{"function", time.kernel},
         {"workload", time.workload},
         {"calls", time.calls},
         {"total_seconds", time.total_seconds},
         {"mean_seconds", time.total_seconds / static_cast<double>(time.calls)},
         {"share", time.share},
         {"gflops", time.gflops}});
  }
  return list;
}

struct InputsOfVariant {
  size_t variant = 0;
  std::vector<graph::TensorData> inputs;
};

// The files of --run, and the variant that takes them. The error is that of the
// first.
absl::StatusOr<InputsOfVariant> ReadInputs(const TunecFlags& flags,
                                           const ModelVariants& variants) {
  TF_ASSIGN_OR_RETURN(const auto files, ReadInputFiles(flags));
  absl::Status error;
  for (size_t v = 0; v < variants.graphs.size(); ++v) {
    auto inputs = InputsOf(files, variants.graphs[v]);
    if (inputs.ok()) return InputsOfVariant{v, *std::move(inputs)};
    error.Update(inputs.status());
  }
  if (variants.sizes.empty()) return error;
  return absl::InvalidArgumentError(
      absl::StrCat("--run: none of ", variants.sizes, " takes the inputs; for ",
                   PrintDims(variants.dims[0]), ": ", error.message()));
}

// The profile for --json; null if there is none.
absl::StatusOr<nlohmann::json> RunOnce(const TunecFlags& flags,
                                       const ModelVariants& variants,
                                       const ModelArtifact& artifact,
                                       const ModelKernels& kernels,
                                       const std::string& symbol) {
  TF_ASSIGN_OR_RETURN(const InputsOfVariant read, ReadInputs(flags, variants));
  const graph::Graph& graph = variants.graphs[read.variant];
  TF_ASSIGN_OR_RETURN(const LoadedModel model,
                      LoadedModel::Load(flags.profile ? artifact.profiled_object
                                                      : artifact.shared_object,
                                        symbol, flags.weights));
  // Written before each run, so that a profile finds them where a caller leaves
  // what it has just computed.
  std::vector<std::vector<std::byte>> written;
  std::vector<const void*> in;
  for (const graph::TensorData& input : read.inputs) {
    written.emplace_back(input.bytes().size());
    in.push_back(written.back().data());
  }
  std::vector<const int64_t*> shapes;
  for (const graph::ValueId id : graph.inputs) {
    shapes.push_back(graph.values[id].type.shape.data());
  }
  std::vector<std::vector<std::byte>> storage;
  std::vector<void*> out;
  for (graph::ValueId id : graph.outputs) {
    storage.emplace_back(
        static_cast<size_t>(graph.values[id].type.num_bytes()));
    out.push_back(storage.back().data());
  }
  const auto run = [&] {
    for (size_t i = 0; i < written.size(); ++i) {
      std::ranges::copy(read.inputs[i].bytes(), written[i].begin());
    }
    return variants.sizes.empty() ? model.Run(in, out)
                                  : model.RunShaped(in, shapes, out);
  };
  nlohmann::json profile;
  if (flags.profile) {
    TF_ASSIGN_OR_RETURN(profile, Profile(flags, artifact.steps[read.variant],
                                         kernels, model, run));
  } else {
    TF_RETURN_IF_ERROR(run());
  }
  if (flags.save.empty()) return profile;
  std::error_code error;
  std::filesystem::create_directories(flags.save, error);
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const std::string path =
        (std::filesystem::path(flags.save) / FileName(graph.output_names[i]))
            .string();
    TF_RETURN_IF_ERROR(
        WriteFile(path, PrintNpy(graph.values[graph.outputs[i]].type,
                                 graph::TensorData(std::move(storage[i])))));
  }
  return profile;
}

absl::Status CheckTime(const TunecFlags& flags, const target::Target& target) {
  if (target.device_model.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--time measures on this machine: give --target host, not ",
        flags.target));
  }
  if (!flags.output.empty() || !flags.run_inputs.empty() ||
      !flags.save.empty()) {
    return absl::InvalidArgumentError(
        "--time builds no library and takes no inputs: leave out --output, "
        "--run and --save");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Time(const TunecFlags& flags,
                         const target::Target& target) {
  bool build = true;
  const auto choose =
      [&](const ir::IRModule& module) -> absl::StatusOr<ScheduledModule> {
    TF_ASSIGN_OR_RETURN(ScheduledModule scheduled,
                        ChooseSchedule(flags, module, target));
    TF_ASSIGN_OR_RETURN(build, ReportChoices(flags, scheduled));
    if (!build) return absl::NotFoundError("--require-tuned");
    return scheduled;
  };
  const absl::StatusOr<ModelTimes> times = TimeModel(
      flags.program, flags.dims, target, flags.permissions.floats(), choose);
  if (!build) return kNothingFound;
  TF_RETURN_IF_ERROR(times.status());
  if (flags.json) {
    std::cout << nlohmann::json{{"target", target.Key()},
                                {"fingerprint", Fingerprint()},
                                {"latency_seconds", times->tuned_seconds},
                                {"untuned_seconds", times->untuned_seconds},
                                {"unfused_seconds", times->unfused_seconds}}
                     .dump()
              << "\n";
    return 0;
  }
  std::cout << absl::StrFormat(
      "latency            %s\n"
      "default schedules  %s\n"
      "without fusion     %s\n",
      FormatSeconds(times->tuned_seconds),
      FormatSeconds(times->untuned_seconds),
      FormatSeconds(times->unfused_seconds));
  return 0;
}

absl::Status CheckPass(const std::string& name) {
  if (name.empty() || name == kImportPass) return absl::OkStatus();
  std::vector<std::string> names{std::string(kImportPass)};
  for (const graph::Pass& pass : graph::AllPasses()) {
    if (pass.name == name) return absl::OkStatus();
    names.emplace_back(pass.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--print-after ", name, ": the passes are ", absl::StrJoin(names, ", ")));
}

absl::Status CheckRun(const TunecFlags& flags, const target::Target& target) {
  TF_ASSIGN_OR_RETURN(const target::Target host, target::Parse("host"));
  if (target.HostPart().kind == host.kind) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--run runs the model on this machine: give --target host, not ",
      flags.target));
}

// What the library calls its weights file; empty if there is none.
absl::StatusOr<std::string> WeightsName(const TunecFlags& flags,
                                        const target::Target& target) {
  if (flags.weights.empty()) return "";
  if (target.is_webassembly()) {
    return absl::InvalidArgumentError(
        "--weights: a wasm32 module has its weights inside, since it cannot "
        "map files");
  }
  const std::filesystem::path path(flags.weights);
  if (path.filename().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--weights ", flags.weights, ": the name of a file is expected"));
  }
  const auto whole = [](const std::filesystem::path& name) {
    std::error_code error;
    return std::filesystem::absolute(name, error).lexically_normal();
  };
  if (whole(path) == whole(flags.output)) {
    return absl::InvalidArgumentError(
        "--weights and --output name the same file");
  }
  return path.filename().string();
}

nlohmann::json DescribeChoices(const ScheduledModule& scheduled,
                               const ModelKernels& kernels) {
  nlohmann::json functions = nlohmann::json::array();
  for (size_t i = 0; i < scheduled.choices.size(); ++i) {
    const Choice& choice = scheduled.choices[i];
    nlohmann::json& entry = functions.emplace_back(
        nlohmann::json{{"function", choice.function},
                       {"uses", kernels.uses[i]},
                       {"schedule", choice.schedule},
                       {"reason", choice.reason},
                       {"algorithms", choice.algorithms},
                       {"keeps_floats", choice.keeps_floats}});
    if (!choice.database.empty()) entry["database"] = choice.database;
    if (choice.explanation) {
      entry["explanation"] =
          ParseJson(database::ExplanationToJson(*choice.explanation));
    }
  }
  return functions;
}

}  // namespace

absl::StatusOr<int> RunModel(const TunecFlags& flags) {
  if (flags.as_is || !flags.trace.empty()) {
    return absl::InvalidArgumentError(
        "--as-is and --trace are for programs, not for models");
  }
  TF_ASSIGN_OR_RETURN(const target::Target target, target::Parse(flags.target));
  if (flags.time) TF_RETURN_IF_ERROR(CheckTime(flags, target));
  if (!flags.run_inputs.empty()) TF_RETURN_IF_ERROR(CheckRun(flags, target));
  TF_RETURN_IF_ERROR(CheckPass(flags.print_after));
  const auto print = [&](std::string_view pass, const graph::Graph& now) {
    if (pass == flags.print_after) std::cout << graph::Print(now);
  };
  TF_ASSIGN_OR_RETURN(
      const ModelVariants variants,
      ReadModelVariants(flags.program, flags.dims, target, print));
  if (!flags.dot.empty()) {
    if (variants.graphs.size() > 1) {
      return absl::InvalidArgumentError(
          "--dot draws one graph: give one size for each --dim");
    }
    TF_RETURN_IF_ERROR(
        WriteFile(flags.dot, graph::PrintDot(variants.graphs[0])));
  }
  if (flags.time) return Time(flags, target);
  if (flags.output.empty() && flags.run_inputs.empty() && !flags.explain) {
    return 0;
  }
  const ModelKernels kernels = ExtractKernels(variants.graphs, target.is_gpu());
  TF_ASSIGN_OR_RETURN(ScheduledModule scheduled,
                      ChooseSchedule(flags, kernels.module, target));
  TF_ASSIGN_OR_RETURN(const bool build, ReportChoices(flags, scheduled));
  if (!build) return kNothingFound;
  // The explanation is all that was asked for.
  if (flags.output.empty() && flags.run_inputs.empty()) {
    if (flags.json) {
      std::cout << nlohmann::json{{"target", target.Key()},
                                  {"fingerprint", Fingerprint()},
                                  {"functions",
                                   DescribeChoices(scheduled, kernels)}}
                       .dump()
                << "\n";
    }
    return 0;
  }
  ModelOptions options;
  options.target = target;
  options.symbol = flags.symbol.empty() ? "model" : flags.symbol;
  options.sizes = variants.sizes;
  TF_ASSIGN_OR_RETURN(options.weights_name, WeightsName(flags, target));
  options.archive = IsArchive(flags.output);
  options.profile = flags.profile;
  TF_ASSIGN_OR_RETURN(
      const ModelArtifact artifact,
      CompileModel(variants.graphs, kernels, scheduled.module, options));
  if (!flags.output.empty()) {
    TF_RETURN_IF_ERROR(WriteFile(HeaderPath(flags, target), artifact.header));
    if (!flags.weights.empty()) {
      TF_RETURN_IF_ERROR(WriteFile(flags.weights, artifact.weights_file));
    }
    TF_RETURN_IF_ERROR(
        WriteFile(flags.output,
                  options.archive ? artifact.archive : artifact.shared_object,
                  !options.archive));
    TF_RETURN_IF_ERROR(WriteLock(flags, kernels.module, target, scheduled));
  }
  nlohmann::json profile;
  if (!flags.run_inputs.empty() || !flags.save.empty()) {
    TF_ASSIGN_OR_RETURN(
        profile, RunOnce(flags, variants, artifact, kernels, options.symbol));
  }
  if (flags.json) {
    nlohmann::json result{{"output", flags.output},
                          {"weights", flags.weights},
                          {"target", target.Key()},
                          {"fingerprint", Fingerprint()},
                          {"code_digest", artifact.code_digest},
                          {"weight_bytes", artifact.weight_bytes},
                          {"arena_bytes", artifact.arena_bytes},
                          {"largest_live_bytes", artifact.largest_live_bytes},
                          {"functions", DescribeChoices(scheduled, kernels)}};
    if (flags.profile) result["profile"] = std::move(profile);
    std::cout << result.dump() << "\n";
  }
  return 0;
}

}  // namespace tilefarm::driver
