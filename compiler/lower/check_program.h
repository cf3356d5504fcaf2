// Whether a program can be compiled: the one answer that tunec, tune-opt,
// submit and import give.
#ifndef TILEFARM_COMPILER_LOWER_CHECK_PROGRAM_H_
#define TILEFARM_COMPILER_LOWER_CHECK_PROGRAM_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::lower {

// InvalidArgument, naming the function, where compiling it as it is written
// would fail: an access that certainly leaves its buffer, a loop that a CPU
// cannot run as asked, a parallel loop whose iterations write one element. A
// schedule may hide such an error behind a guard, so this looks at the program
// before any schedule is applied.
absl::Status CheckProgram(const ir::IRModule& module);

// ir::ParseModule, which verifies too, and CheckProgram.
absl::StatusOr<ir::IRModule> ReadProgram(
    std::string_view text, std::string_view file_name = "<program>",
    const ir::Limits& limits = {});

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_CHECK_PROGRAM_H_
