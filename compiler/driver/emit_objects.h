// Functions as objects of an artifact.
#ifndef TILEFARM_COMPILER_DRIVER_EMIT_OBJECTS_H_
#define TILEFARM_COMPILER_DRIVER_EMIT_OBJECTS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/codegen.h"

namespace tilefarm::driver {

// Objects for options.target.HostPart(), to be linked by LinkSharedObject or
// LinkArchive. Of a GPU's functions they have the device's code and the
// functions that launch it (codegen/host_stub.h); machine code where an
// assembler is at hand, else text for the driver. Errors of EmitObject,
// EmitDeviceModule, AssemblePtx and EmitHostStub; InvalidArgument: matrix
// products that do not fit the registers.
absl::StatusOr<std::vector<std::string>> EmitObjects(
    std::span<const codegen::LoweredFunction> functions,
    const codegen::Options& options);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_EMIT_OBJECTS_H_
