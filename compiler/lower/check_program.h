// Whether a program can be compiled: the check shared by tunec, tune-opt,
// submit and import.
#ifndef TILEFARM_COMPILER_LOWER_CHECK_PROGRAM_H_
#define TILEFARM_COMPILER_LOWER_CHECK_PROGRAM_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::lower {

// InvalidArgument, naming the function, if the unscheduled program cannot be
// compiled: an access that certainly leaves its buffer, a loop kind that a CPU
// cannot run, or a parallel loop whose iterations write the same element. A
// schedule may hide such an error behind a guard, so the check is done before
// any schedule is applied.
absl::Status CheckProgram(const ir::IRModule& module);

// ir::ParseModule, which also verifies, and CheckProgram.
absl::StatusOr<ir::IRModule> ReadProgram(
    std::string_view text, std::string_view file_name = "<program>",
    const ir::Limits& limits = {});

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_CHECK_PROGRAM_H_
