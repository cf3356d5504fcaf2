// Which libraries of kernels this device has (base/device_libraries.h).
#ifndef TILEFARM_WORKER_RUNNER_LIBRARIES_H_
#define TILEFARM_WORKER_RUNNER_LIBRARIES_H_

#include <map>
#include <string>

namespace tilefarm::worker {

// By name, with their versions: those that load and are built in the way that
// the calls of compiler/runtime expect. Loads them into this process, which
// had better end soon.
std::map<std::string, std::string> FindLibraries();

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_LIBRARIES_H_
