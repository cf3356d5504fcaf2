// Measures a suite.
#ifndef TILEFARM_SERVER_CLI_REGRESS_RUN_H_
#define TILEFARM_SERVER_CLI_REGRESS_RUN_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/cli/regress_options.h"
#include "server/regression/report.h"
#include "server/regression/suite.h"

namespace tilefarm::cli {

inline constexpr char kDefaultBranch[] = "main";

struct SuiteRun {
  std::string baseline_branch;
  bool appends = true;      // the points are added to the branch's history
  bool skips_same = false;  // see RegressContext
};

// The results of all benchmarks, which may have failed. InvalidArgument: the
// suite or an option is wrong. An error of the server after the measurements is
// a failure of every benchmark, whose point is lost.
absl::StatusOr<regression::Report> RunSuite(const Common& common,
                                            const RegressOptions& options,
                                            const SuiteRun& run);

// Prints and writes the report, and tells the webhook. The gate's exit code, or
// that of wrong usage.
int Conclude(const Common& common, const RegressOptions& options,
             const regression::Report& report, int exit_code);

// The error rates of all comparisons.
regression::GateOptions GateOf(const RegressOptions& options);

// Writes a line for people to standard error.
void Say(const std::string& line);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_REGRESS_RUN_H_
