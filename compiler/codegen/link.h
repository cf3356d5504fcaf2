// Object code -> shared object, by LLD in this process.
#ifndef TILEFARM_COMPILER_CODEGEN_LINK_H_
#define TILEFARM_COMPILER_CODEGEN_LINK_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"

namespace tilefarm::codegen {

// A shared object that exports the object's external symbols, contains the
// runtime functions that it calls, and needs libc and libm at most (by soname
// and without symbol versions, so any version will do). The same object gives
// the same bytes.
// Thread-safe: links run one at a time, since LLD's state is global. Internal:
// LLD's message; Unavailable: no space for temporary files.
absl::StatusOr<std::string> LinkSharedObject(std::string_view object,
                                             const target::Target& target);

// SHA-256 of the parts of the shared object that determine what it computes:
// code, constants, exported and needed names; in hexadecimal.
absl::StatusOr<std::string> CodeDigest(std::string_view shared_object);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_LINK_H_
