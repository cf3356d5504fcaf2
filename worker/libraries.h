// Which libraries of kernels candidates may call on this device.
#ifndef TILEFARM_WORKER_LIBRARIES_H_
#define TILEFARM_WORKER_LIBRARIES_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tilefarm::worker {

// Names and versions as the runner that this command starts finds them
// (runner/libraries.h): in a process of its own, on the device itself. None
// where it does not answer within some seconds.
std::map<std::string, std::string> RunnersLibraries(
    std::vector<std::string> runner_command);

// Its answer, one "NAME VERSION" a line; other lines are ignored.
std::map<std::string, std::string> ParseLibraries(std::string_view text);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_LIBRARIES_H_
