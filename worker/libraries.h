// Finds the libraries of kernels that candidates may call on this device.
#ifndef TILEFARM_WORKER_LIBRARIES_H_
#define TILEFARM_WORKER_LIBRARIES_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tilefarm::worker {

// Names and versions that a runner started by this command finds
// (runner/libraries.h): in a separate process, on the device itself. Empty: it
// does not answer within some seconds.
std::map<std::string, std::string> RunnersLibraries(
    std::vector<std::string> runner_command);

// Parses its answer, one "NAME VERSION" per line; other lines are ignored.
std::map<std::string, std::string> ParseLibraries(std::string_view text);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_LIBRARIES_H_
