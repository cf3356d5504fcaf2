// The approximations behind vector_math.h: straight-line code on float32
// vectors, written with a small operator wrapper over llvm::IRBuilder.
// Coefficients are minimax fits (Remez exchange, weighted by the function's
// reciprocal), made for these intervals. Private: has LLVM types.
#ifndef TILEFARM_COMPILER_CODEGEN_FLOAT_KERNELS_H_
#define TILEFARM_COMPILER_CODEGEN_FLOAT_KERNELS_H_

#include "compiler/target/capability.h"
#include "llvm/IR/IRBuilder.h"

namespace tilefarm::codegen {

llvm::Value* EmitExp(llvm::IRBuilder<>& builder, llvm::Value* x,
                     const target::Capabilities& target);
llvm::Value* EmitExp2(llvm::IRBuilder<>& builder, llvm::Value* x,
                      const target::Capabilities& target);
llvm::Value* EmitLog(llvm::IRBuilder<>& builder, llvm::Value* x);
llvm::Value* EmitLog2(llvm::IRBuilder<>& builder, llvm::Value* x);
llvm::Value* EmitLog10(llvm::IRBuilder<>& builder, llvm::Value* x);
llvm::Value* EmitLog1p(llvm::IRBuilder<>& builder, llvm::Value* x);
llvm::Value* EmitTanh(llvm::IRBuilder<>& builder, llvm::Value* x,
                      const target::Capabilities& target);
llvm::Value* EmitSigmoid(llvm::IRBuilder<>& builder, llvm::Value* x,
                         const target::Capabilities& target);
llvm::Value* EmitErf(llvm::IRBuilder<>& builder, llvm::Value* x,
                     const target::Capabilities& target);

// The value is valid in lanes where the second one (a bool) is true.
struct Partial {
  llvm::Value* value;
  llvm::Value* valid;
};
Partial EmitPow(llvm::IRBuilder<>& builder, llvm::Value* x, llvm::Value* y);
// sin(x + quadrants * pi / 2).
Partial EmitSine(llvm::IRBuilder<>& builder, llvm::Value* x, int quadrants);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_FLOAT_KERNELS_H_
