#include "server/cli/regress_build.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "compiler/driver/choose_schedule.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/compile_model.h"
#include "compiler/driver/files.h"
#include "compiler/driver/read_model.h"
#include "compiler/driver/remote_best.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/rounding_spread.h"
#include "compiler/schedule/trace.h"
#include "server/cli/input.h"
#include "server/cli/regress_model.h"
#include "server/cli/run_program.h"

namespace tilefarm::cli {
namespace {

namespace fs = std::filesystem;
using regression::SuiteBenchmark;

// A new folder, which the destructor removes.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string path =
        (fs::temp_directory_path() / "tilefarm-regress-XXXXXX").string();
    if (mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~ScratchFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  // Empty: it could not be made.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The function that the benchmark names, or the only one.
absl::StatusOr<ir::PrimFuncPtr> FunctionOf(const ir::IRModule& module,
                                           const SuiteBenchmark& benchmark) {
  std::vector<std::string> names;
  for (const ir::PrimFuncPtr& function : module.functions) {
    if (function->name == benchmark.function) return function;
    names.push_back(function->name);
  }
  if (benchmark.function.empty() && module.functions.size() == 1) {
    return module.functions.front();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      benchmark.program, ": ",
      benchmark.function.empty()
          ? "it has several functions; name one with `function`"
          : absl::StrCat("there is no function ", benchmark.function),
      ": ", absl::StrJoin(names, ", ")));
}

}  // namespace

absl::StatusOr<ArtifactBuilder::Schedule> ArtifactBuilder::FindBest(
    const ir::IRModule& module, const target::Target& target) const {
  driver::Permissions permissions;
  // Of another compiler, too: this one builds it again.
  permissions.allow_stale = true;
  TF_ASSIGN_OR_RETURN(
      const driver::ScheduledModule scheduled,
      driver::ScheduleFromRecords(module, target, driver::Fingerprint(),
                                  permissions, driver::BestOfServer(server_)));
  const driver::Choice& choice = scheduled.choices.front();
  if (choice.schedule != "record") return Schedule{};
  return Schedule{.program = choice.program, .trace = choice.trace};
}

absl::StatusOr<BuiltArtifact> ArtifactBuilder::Build(
    const SuiteBenchmark& benchmark) const {
  TF_ASSIGN_OR_RETURN(const target::Target target,
                      target::Parse(benchmark.target));
  if (benchmark.kind == SuiteBenchmark::Kind::kModel) {
    return BuildModel(benchmark, target);
  }
  TF_ASSIGN_OR_RETURN(const ProgramInput input, ReadProgram(benchmark.program));
  TF_ASSIGN_OR_RETURN(const ir::PrimFuncPtr function,
                      FunctionOf(input.module, benchmark));
  const ir::IRModule module{{function}};
  if (benchmark.kind == SuiteBenchmark::Kind::kPinned) {
    TF_ASSIGN_OR_RETURN(const std::string trace, ReadTrace(benchmark.trace));
    return BuildWith(ir::Print(module), trace, target);
  }
  TF_ASSIGN_OR_RETURN(const Schedule best, FindBest(module, target));
  return BuildWith(best.trace.empty() ? ir::Print(module) : best.program,
                   best.trace, target);
}

absl::StatusOr<BuiltArtifact> ArtifactBuilder::BuildWith(
    const std::string& program, const std::string& trace,
    const target::Target& target) const {
  BuiltArtifact artifact;
  artifact.program = program;
  artifact.trace = trace;
  artifact.target = target.Key();
  TF_ASSIGN_OR_RETURN(const ir::IRModule module, ir::ParseModule(program));
  if (module.functions.size() != 1) {
    return absl::InvalidArgumentError("a benchmark is of one function");
  }
  artifact.workload = ir::WorkloadHash(*module.functions.front());
  if (!trace.empty()) {
    TF_ASSIGN_OR_RETURN(const schedule::Trace parsed,
                        schedule::Trace::Parse(trace));
    artifact.spread = schedule::RoundingSpread(parsed);
  }
  TF_RETURN_IF_ERROR(tunec_.empty() ? CompileHere(module, target, artifact)
                                    : CompileByTunec(artifact));
  artifact.sha256 = Sha256Hex(artifact.bytes);
  artifact.symbols = {artifact.symbol};
  return artifact;
}

absl::StatusOr<BuiltArtifact> ArtifactBuilder::BuildModel(
    const SuiteBenchmark& benchmark, const target::Target& target) const {
  if (!tunec_.empty()) {
    return absl::InvalidArgumentError(
        "models are compiled by this tune, not by --tunec");
  }
  std::vector<std::string> dims;
  for (const auto& [name, size] : benchmark.dimensions) {
    dims.push_back(absl::StrCat(name, "=", size));
  }
  TF_ASSIGN_OR_RETURN(const driver::ModelVariants variants,
                      driver::ReadModelVariants(benchmark.model, dims, target));
  const graph::Graph& graph = variants.graphs.front();
  const driver::ModelKernels kernels =
      driver::ExtractKernels(graph, target.is_gpu());
  driver::Permissions permissions;
  permissions.allow_stale = true;
  TF_ASSIGN_OR_RETURN(
      const driver::ScheduledModule scheduled,
      driver::ScheduleFromRecords(kernels.module, target, driver::Fingerprint(),
                                  permissions, driver::BestOfServer(server_)));
  BuiltArtifact artifact;
  artifact.symbol = "model";
  TF_ASSIGN_OR_RETURN(
      driver::ModelArtifact compiled,
      driver::CompileModel(graph, kernels, scheduled.module,
                           {.target = target, .symbol = artifact.symbol}));
  artifact.bytes = std::move(compiled.shared_object);
  artifact.sha256 = Sha256Hex(artifact.bytes);
  artifact.target = target.Key();
  artifact.fingerprint = driver::Fingerprint();
  for (const char* suffix : {"_inputs", "_outputs", "_input", "_output",
                             "_create", "_run", "_destroy", "_error"}) {
    artifact.symbols.push_back(artifact.symbol + suffix);
  }
  v1::ModelSignature model;
  const auto describe = [&](graph::ValueId id,
                            v1::ModelSignature::Tensor& tensor) {
    const graph::TensorType& type = graph.values[id].type;
    tensor.set_dtype(type.dtype.ToString());
    tensor.set_elements(static_cast<uint64_t>(type.num_elements()));
  };
  for (const graph::ValueId id : graph.inputs)
    describe(id, *model.add_inputs());
  for (const graph::ValueId id : graph.outputs) {
    describe(id, *model.add_outputs());
  }
  artifact.program = SignatureText(model);
  artifact.workload = Sha256Hex(artifact.program);
  return artifact;
}

absl::Status ArtifactBuilder::CompileHere(const ir::IRModule& module,
                                          const target::Target& target,
                                          BuiltArtifact& artifact) const {
  // What a pinned trace changes of floats is intended, and is verified.
  TF_ASSIGN_OR_RETURN(
      const driver::ScheduledModule scheduled,
      artifact.trace.empty()
          ? driver::ScheduleByDefault(module, target, ir::FloatRule::kAsWritten,
                                      "")
          : driver::ScheduleByTrace(module, target, ir::FloatRule::kMayDiffer,
                                    artifact.trace));
  driver::CompileOptions options;
  options.target = target;
  TF_ASSIGN_OR_RETURN(driver::Artifact compiled,
                      driver::Compile(scheduled.module, options));
  artifact.bytes = std::move(compiled.shared_object);
  artifact.symbol = compiled.symbols.front();
  artifact.fingerprint = driver::Fingerprint();
  return absl::OkStatus();
}

absl::Status ArtifactBuilder::CompileByTunec(BuiltArtifact& artifact) const {
  const ScratchFolder folder;
  if (folder.path().empty()) {
    return absl::UnavailableError("no temporary folder can be made");
  }
  const std::string program = folder.path() + "/program.py";
  const std::string trace = folder.path() + "/program.trace";
  const std::string output = folder.path() + "/artifact.so";
  artifact.symbol = "benchmark";
  TF_RETURN_IF_ERROR(
      driver::WriteFile(program, artifact.program, /*executable=*/false));
  std::vector<std::string> argv = {
      tunec_,     program,         "--target", artifact.target,
      "--symbol", artifact.symbol, "-o",       output};
  if (!artifact.trace.empty()) {
    TF_RETURN_IF_ERROR(
        driver::WriteFile(trace, artifact.trace, /*executable=*/false));
    argv.insert(argv.end(), {"--trace", trace, "--allow-rounding"});
  }
  // Without a server in the environment, tunec uses the default schedule.
  TF_RETURN_IF_ERROR(RunProgram({.argv = argv,
                                 .environment = {"TUNE_SERVER="},
                                 .limit = absl::Minutes(10)})
                         .status());
  TF_ASSIGN_OR_RETURN(artifact.bytes, driver::ReadFile(output));
  TF_ASSIGN_OR_RETURN(
      const std::string version,
      RunProgram({.argv = {tunec_, "--version"}, .limit = absl::Minutes(1)}));
  constexpr char kFingerprint[] = "fingerprint ";
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(version, '\n'))) {
    if (line.rfind(kFingerprint, 0) == 0) {
      artifact.fingerprint = line.substr(sizeof kFingerprint - 1);
    }
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::cli
