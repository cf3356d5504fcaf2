// Identity of programs: structural equality and the workload hash.
#ifndef TILEFARM_COMPILER_IR_STRUCTURAL_H_
#define TILEFARM_COMPILER_IR_STRUCTURAL_H_

#include <string>

#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

// Equal except for names of variables, buffers, blocks and the function, with
// the same binding structure.
bool StructuralEqual(const PrimFunc& a, const PrimFunc& b);
bool StructuralEqual(const Expr& a, const Expr& b);  // free vars by pointer
bool StructuralEqual(const Stmt& a, const Stmt& b);

// The canonical form of a function: reads and writes are recomputed, names
// normalised (buffers b0.., variables v0.., blocks by order), and attributes
// dropped that change neither results nor possible buffer layouts. The function
// is named "main".
PrimFuncPtr Canonicalize(const PrimFunc& function);

// SHA-256 in hexadecimal of the canonical function's printed text: the same
// on every platform.
std::string WorkloadHash(const PrimFunc& function);
// SHA-256 of the function's text without normalisation: the identity of a
// scheduled program.
std::string ProgramHash(const PrimFunc& function);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_STRUCTURAL_H_
