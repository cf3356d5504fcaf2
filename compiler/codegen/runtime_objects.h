// The embedded runtime as object code. Private to this folder.
#ifndef TILEFARM_COMPILER_CODEGEN_RUNTIME_OBJECTS_H_
#define TILEFARM_COMPILER_CODEGEN_RUNTIME_OBJECTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"

namespace tilefarm::codegen {

// One ELF object for each source file of the runtime, optimised for the target.
// Its functions are hidden: only the kernel that is linked with them can call
// them. Made once per target and process, because every candidate needs the
// same objects. Thread-safe; the result lives as long as the process.
// `with_gpu`: also what artifacts of GPUs call, for the target of their host.
absl::StatusOr<const std::vector<std::string>*> RuntimeObjects(
    const target::Target& target, bool with_gpu = false);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_RUNTIME_OBJECTS_H_
