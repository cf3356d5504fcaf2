// What the emitters of LLVM IR and of OpenCL C ask of expressions.
#ifndef TILEFARM_COMPILER_CODEGEN_EXPR_FACTS_H_
#define TILEFARM_COMPILER_CODEGEN_EXPR_FACTS_H_

#include <cstdint>
#include <optional>

#include "compiler/ir/expr.h"

namespace tilefarm::codegen {

// An index of the form base + stride * lane, where both are scalars.
struct RampForm {
  ir::Expr base;
  ir::Expr stride;
};
// Recognises Ramp, Broadcast and their sums and products; nullopt otherwise.
std::optional<RampForm> AsRamp(const ir::Expr& index);

// A number that the index is a multiple of, whatever its variables are.
int64_t DivisorOf(const ir::Expr& index);

// Whether evaluating the expression reads memory.
bool HasLoad(const ir::Expr& expr);
// Whether it is an element of global memory, or elements side by side, at an
// index that is not loaded, of a buffer that has as many.
bool IsPlainLoad(const ir::LoadNode& load);
// Whether it is arithmetic of such loads: it costs little where nobody needs
// it.
bool HasPlainLoads(const ir::Expr& expr);
// Whether the cast is to a 16-bit float, which may not have the value.
bool RoundsTo16Bits(const ir::CastNode& cast);

// In the memory of GPUs, of parameters, workspaces and what a thread allocates;
// also the widest access.
inline constexpr int64_t kDeviceAlignment = 16;

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_EXPR_FACTS_H_
