// Elementary functions on float32 vectors of any width, as LLVM IR.
//
// Each (function, lanes) becomes one internal function of the module, always
// inlined, without tables and (except for rare arguments of pow, sin and cos)
// without branches. Results for infinities, NaN, zeros and subnormals are those
// of C's functions, except the sign of NaN. runtime/README.md states the error
// bounds; tests check them.
//
// float64, and functions without an approximation here, call the C library
// lane by lane. Private: has LLVM types.
#ifndef TILEFARM_COMPILER_CODEGEN_VECTOR_MATH_H_
#define TILEFARM_COMPILER_CODEGEN_VECTOR_MATH_H_

#include <vector>

#include "compiler/codegen/float_kernels.h"
#include "compiler/ir/expr.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace tilefarm::codegen {

class VectorMath {
 public:
  VectorMath(llvm::Module& module, const target::Capabilities& target)
      : module_(module), target_(target) {}

  // Null if `op` is not an elementary function (kSqrt, kAbs, ... are single
  // instructions). Arguments are float or double, scalars or vectors.
  llvm::Value* Emit(llvm::IRBuilder<>& builder, ir::Intrinsic op,
                    const std::vector<llvm::Value*>& args);

 private:
  llvm::Value* LibraryCall(llvm::IRBuilder<>& builder, ir::Intrinsic op,
                           const std::vector<llvm::Value*>& args);
  llvm::Function* Approximation(ir::Intrinsic op, llvm::Type* type);
  // Calls the C library for all lanes: the out-of-line path for arguments that
  // an approximation does not support.
  llvm::Function* SlowPath(ir::Intrinsic op, llvm::Type* type);

  llvm::Module& module_;
  target::Capabilities target_;
};

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_VECTOR_MATH_H_
