// What a tune-runner says of itself and its device, before it is started to
// measure.
#ifndef TILEFARM_WORKER_RUNNER_QUERY_H_
#define TILEFARM_WORKER_RUNNER_QUERY_H_

#include <string>
#include <vector>

namespace tilefarm::worker {

// The standard output of `runner_command` with `question` as a further
// argument: what comes within some seconds, empty where it cannot be started.
std::string AskRunner(std::vector<std::string> runner_command,
                      const std::string& question);

// How that runner confines candidates (isolation.h); "none" where it does not
// say.
std::string RunnersIsolation(std::vector<std::string> runner_command);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_QUERY_H_
