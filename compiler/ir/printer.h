// Prints IR as TVMScript text. For programs (not lowered ones), printing,
// parsing and printing again gives the same bytes.
#ifndef TILEFARM_COMPILER_IR_PRINTER_H_
#define TILEFARM_COMPILER_IR_PRINTER_H_

#include <string>

#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

// With the two import lines and the `@I.ir_module` class.
std::string Print(const IRModule& module);
// One function, `@T.prim_func` at column 0, no imports. Also prints lowered
// functions (Alloc, Ramp, predicates), which need not parse.
std::string Print(const PrimFunc& function);
std::string Print(const Stmt& stmt);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_PRINTER_H_
