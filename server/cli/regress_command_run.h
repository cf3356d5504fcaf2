// One run of a suite's command that prints Google Benchmark's JSON.
#ifndef TILEFARM_SERVER_CLI_REGRESS_COMMAND_RUN_H_
#define TILEFARM_SERVER_CLI_REGRESS_COMMAND_RUN_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/regression/suite.h"

namespace tilefarm::cli {

// Whether the command has {dir}, for which a build folder stands.
bool NamesDirectory(const regression::SuiteBenchmark& benchmark);

// The samples of each of its benchmarks: seconds of one iteration.
using CommandSamples = std::map<std::string, std::vector<double>>;

// Runs the command in `folder`, with {dir} as `directory`. Errors of
// RunProgram; InvalidArgument: it prints something else; Aborted: a benchmark
// reports an error.
absl::StatusOr<CommandSamples> RunBenchmarks(
    const regression::SuiteBenchmark& benchmark, const std::string& folder,
    const std::string& directory);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_REGRESS_COMMAND_RUN_H_
