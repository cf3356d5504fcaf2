// Object code -> shared object, archive or WebAssembly module, by LLD in this
// process.
#ifndef TILEFARM_COMPILER_CODEGEN_LINK_H_
#define TILEFARM_COMPILER_CODEGEN_LINK_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"

namespace tilefarm::codegen {

// A shared object that exports the objects' external symbols, contains the
// runtime functions that it calls, and needs at most libc and libm (by soname
// and without symbol versions, so that any version will do) and libraries of
// kernels. The same objects give the same bytes. Thread-safe: links run one at
// a time, since LLD's state is global. Internal: LLD's message; Unavailable: no
// space for temporary files.
//
// For wasm32 a module that exports its memory, too, with functions to reserve
// parts of it, and imports functions of libm as those of "env".
absl::StatusOr<std::string> LinkSharedObject(
    std::span<const std::string> objects, const target::Target& target);

// The same for linking into a program: an archive with one ELF object, in which
// only the objects' external symbols are global, so that any number of archives
// fit into one program. It needs libc and libm, and libraries of kernels, as
// above. InvalidArgument: wasm32, which has none.
absl::StatusOr<std::string> LinkArchive(std::span<const std::string> objects,
                                        const target::Target& target);

// SHA-256 of the parts of the shared object that determine what it computes:
// code, constants, exported and needed names; in hexadecimal.
absl::StatusOr<std::string> CodeDigest(std::string_view shared_object);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_LINK_H_
