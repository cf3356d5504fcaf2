// Runs a program and waits for it.
#ifndef TILEFARM_SERVER_CLI_RUN_PROGRAM_H_
#define TILEFARM_SERVER_CLI_RUN_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tilefarm::cli {

struct ProgramRun {
  std::vector<std::string> argv;  // found by PATH; no shell
  std::string folder;             // where it runs; empty: here
  // NAME=VALUE, beside this process's environment.
  std::vector<std::string> environment;
  absl::Duration limit = absl::Minutes(30);
  // Its standard output is returned; otherwise it goes to ours.
  bool takes_output = true;
};

// Returns the standard output of a program that exited with 0. Its standard
// error is ours. NotFound: it cannot be started; Aborted: it exited with
// another status, or died of a signal; DeadlineExceeded: it was killed at the
// limit, with all processes of its group; ResourceExhausted: more than 64 MiB
// of output. If this process gets SIGINT or SIGTERM meanwhile, both end. One
// call at a time.
absl::StatusOr<std::string> RunProgram(const ProgramRun& run);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_RUN_PROGRAM_H_
