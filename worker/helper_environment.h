// What helper processes are told of the worker's environment, in which tokens
// and other people's secrets may be: nothing that is not listed here.
#ifndef TILEFARM_WORKER_HELPER_ENVIRONMENT_H_
#define TILEFARM_WORKER_HELPER_ENVIRONMENT_H_

#include <string>
#include <vector>

namespace tilefarm::worker {

// As "NAME=VALUE". A builder is told nothing, except a sanitizer's options in a
// sanitizer's build.
std::vector<std::string> BuilderEnvironment();

// A runner's command may be ssh or another program that needs to know where it
// is and who calls it; kernels of libraries read the settings of their threads.
// A command that needs more can set it: `env NAME=VALUE COMMAND`.
std::vector<std::string> RunnerEnvironment();

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_HELPER_ENVIRONMENT_H_
