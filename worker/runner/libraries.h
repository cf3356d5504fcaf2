// Finds the libraries of kernels on this device (base/device_libraries.h).
#ifndef TILEFARM_WORKER_RUNNER_LIBRARIES_H_
#define TILEFARM_WORKER_RUNNER_LIBRARIES_H_

#include <map>
#include <string>

namespace tilefarm::worker {

// Names and versions of the libraries that can be loaded and are built as the
// calls of compiler/runtime expect. Loads them into this process, which should
// end soon.
std::map<std::string, std::string> FindLibraries();

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_LIBRARIES_H_
