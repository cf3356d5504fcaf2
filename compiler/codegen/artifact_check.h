// Checks a shared object of unknown origin before a device loads it.
//
// What is checked is what the dynamic loader will do, so the file is read by
// its program headers and dynamic section, as the loader reads it; section
// headers are ignored. Every offset and length is checked, and the time is
// linear in the size of the file.
#ifndef TILEFARM_COMPILER_CODEGEN_ARTIFACT_CHECK_H_
#define TILEFARM_COMPILER_CODEGEN_ARTIFACT_CHECK_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "compiler/target/target.h"

namespace tilefarm::codegen {

// InvalidArgument, with the reason, unless the bytes are a 64-bit little-endian
// ELF shared object for the machine of `target` (of a GPU: of its host part)
// that
// - exports every one of `symbols` as a function,
// - needs no library but libc and libm, at no path of its own choice,
// - runs nothing when it is loaded: no constructors, no symbols or relocations
//   that are resolved by its own code, no auditing or filtering objects,
// - has no memory that is writable and executable.
//
// The code itself is not checked: it must run in a sandbox.
absl::Status CheckArtifact(std::string_view bytes, const target::Target& target,
                           std::span<const std::string> symbols);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_ARTIFACT_CHECK_H_
