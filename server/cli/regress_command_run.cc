#include "server/cli/regress_command_run.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "server/cli/run_program.h"
#include "server/regression/google_benchmark.h"

namespace tilefarm::cli {
namespace {

constexpr char kDirectory[] = "{dir}";

}  // namespace

bool NamesDirectory(const regression::SuiteBenchmark& benchmark) {
  return std::any_of(benchmark.command.begin(), benchmark.command.end(),
                     [](const std::string& argument) {
                       return argument.find(kDirectory) != std::string::npos;
                     });
}

absl::StatusOr<CommandSamples> RunBenchmarks(
    const regression::SuiteBenchmark& benchmark, const std::string& folder,
    const std::string& directory) {
  ProgramRun run;
  run.folder = folder;
  for (const std::string& argument : benchmark.command) {
    run.argv.push_back(
        absl::StrReplaceAll(argument, {{kDirectory, directory}}));
  }
  TF_ASSIGN_OR_RETURN(const std::string output, RunProgram(run));
  TF_ASSIGN_OR_RETURN(const regression::BenchmarkRun parsed,
                      regression::ParseGoogleBenchmark(output));
  CommandSamples samples;
  for (const regression::BenchmarkSamples& one : parsed.benchmarks) {
    if (!one.error.empty()) {
      return absl::AbortedError(absl::StrCat(one.name, ": ", one.error));
    }
    samples[one.name] = one.seconds;
  }
  return samples;
}

}  // namespace tilefarm::cli
