// A driver's library and its functions, found at run time.
#ifndef TILEFARM_WORKER_RUNNER_DRIVER_LIBRARY_H_
#define TILEFARM_WORKER_RUNNER_DRIVER_LIBRARY_H_

#include <dlfcn.h>
#include <stdlib.h>

#include <string>

namespace tilefarm::worker {

class DriverLibrary {
 public:
  // The file that the environment's variable names, otherwise `file`. `scope`:
  // RTLD_GLOBAL or RTLD_LOCAL. The library stays in the process.
  DriverLibrary(const char* variable, const char* file, int scope) {
    const char* const chosen = getenv(variable);
    path_ = chosen == nullptr || chosen[0] == '\0' ? file : chosen;
    library_ = dlopen(path_.c_str(), RTLD_NOW | scope);
    if (library_ == nullptr) error_ = path_ + " is not here: " + dlerror();
  }

  template <typename Function>
  void Take(Function*& function, const char* name) {
    if (library_ == nullptr) return;
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr && error_.empty()) {
      error_ = path_ + " has no function " + name;
    }
  }

  // The first one; empty: none.
  const std::string& error() const { return error_; }

 private:
  std::string path_;
  void* library_ = nullptr;
  std::string error_;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_DRIVER_LIBRARY_H_
