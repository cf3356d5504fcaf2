// Whole files, for the commands.
#ifndef TILEFARM_COMPILER_DRIVER_FILES_H_
#define TILEFARM_COMPILER_DRIVER_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilefarm::driver {

// NotFound, with the path and the reason.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// All or nothing: written beside the file, then renamed over it. Unavailable,
// with the path and the reason; InvalidArgument for what exists and is no
// regular file.
absl::Status WriteFile(const std::string& path, const std::string& bytes,
                       bool executable = false);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_FILES_H_
