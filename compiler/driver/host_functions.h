// Runs single functions on this machine while a model is compiled: constants
// that are too large for the interpreter.
#ifndef TILEFARM_COMPILER_DRIVER_HOST_FUNCTIONS_H_
#define TILEFARM_COMPILER_DRIVER_HOST_FUNCTIONS_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::driver {

// Compiles the function as scheduled, loads it, and runs it once on dense
// row-major buffers, one per parameter. InvalidArgument: a program that does
// not compile. Unavailable: it could not be loaded.
absl::Status RunOnHost(const ir::PrimFunc& function,
                       std::span<const std::span<std::byte>> buffers);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_HOST_FUNCTIONS_H_
