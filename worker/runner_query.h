// Asks a tune-runner about itself and its device, before it is started to
// measure.
#ifndef TILEFARM_WORKER_RUNNER_QUERY_H_
#define TILEFARM_WORKER_RUNNER_QUERY_H_

#include <string>
#include <vector>

namespace tilefarm::worker {

// The standard output of `runner_command` with `question` as another argument,
// as far as it arrives within some seconds; empty: it cannot be started.
std::string AskRunner(std::vector<std::string> runner_command,
                      const std::string& question);

// How that runner isolates candidates (isolation.h); "none": it does not say.
std::string RunnersIsolation(std::vector<std::string> runner_command);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_QUERY_H_
