// Parses TVMScript text to an IRModule.
#ifndef TILEFARM_COMPILER_IR_PARSER_H_
#define TILEFARM_COMPILER_IR_PARSER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

// Parses an `@I.ir_module` class or bare `@T.prim_func` functions and verifies
// the result (verifier.h). Missing T.reads/T.writes are computed from the
// accesses. Never evaluates anything as Python.
//
// Errors are InvalidArgument, formatted as
//   FILE:LINE:COLUMN: error: what is wrong; what to do
//   <the offending line>
//        ^
// `file_name` is only used in messages.
absl::StatusOr<IRModule> ParseModule(std::string_view text,
                                     std::string_view file_name = "<program>",
                                     const Limits& limits = {});

// The same for a module that must have exactly one function.
absl::StatusOr<PrimFuncPtr> ParseFunction(
    std::string_view text, std::string_view file_name = "<program>",
    const Limits& limits = {});

// The functions that expressions may call, without "T.", sorted; beside them,
// the name of a dtype converts a number to it.
std::vector<std::string> FunctionNames();

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_PARSER_H_
