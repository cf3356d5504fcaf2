// Values with error bounds, and the operations of the language on them.
#ifndef TILEFARM_COMPILER_ORACLE_ARITHMETIC_INTERNAL_H_
#define TILEFARM_COMPILER_ORACLE_ARITHMETIC_INTERNAL_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/expr.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace tilefarm::oracle {

struct Value {
  // Floats of every dtype are doubles, integers have their own width, bools are
  // i1.
  llvm::Value* value = nullptr;
  // The maximum distance of a correct implementation's value from `value`, a
  // double; for a bool, an i1: whether it may be the opposite. Null: exact.
  llvm::Value* error = nullptr;
  // Whether it is computed from the element that a reduction accumulates into,
  // and whether only by adding to it.
  bool accumulator = false;
  bool summed = false;
};

// Whether it computes in float64; other floats, 16-bit ones too, use float32.
inline bool IsDouble(ir::DataType dtype) { return dtype.bits == 64; }

// Emits operations at the builder's insertion point.
class Arithmetic {
 public:
  Arithmetic(llvm::Module& module, llvm::IRBuilder<>& builder)
      : module_(module), b_(builder) {}

  // Floats are not rounded to their dtype: for accumulated values, since the
  // schedule chooses the order of accumulation.
  void set_unrounded(bool unrounded) { unrounded_ = unrounded; }

  // `dtype` is that of the operands. The right operand of kAnd and kOr is
  // already evaluated.
  Value Binary(ir::BinaryOp op, ir::DataType dtype, const Value& a,
               const Value& b);
  Value Not(const Value& a);
  Value Cast(ir::DataType to, ir::DataType from, const Value& a);
  // Numbers of one sign are in the order of their bits, so that the bound is
  // the farther end's distance where the sign is known, else infinity.
  Value Reinterpret(ir::DataType to, ir::DataType from, const Value& a);
  Value Select(ir::DataType dtype, const Value& condition, const Value& a,
               const Value& b);
  // Every intrinsic except kIfThenElse. `dtype` is that of the operands. Sets
  // `status` to InvalidArgument if the intrinsic is not defined for it.
  Value Call(ir::Intrinsic op, ir::DataType dtype,
             const std::vector<Value>& args, absl::Status* status);
  // Rounds a float to its dtype.
  Value Round(ir::DataType dtype, const Value& a);
  // The bound of `sum`, of `terms` terms in any order, whose value was `before`
  // without the latest term. The error of `sum` is that of the terms alone;
  // this adds the effect of rounding partial sums to `dtype`.
  llvm::Value* BoundOfSum(ir::DataType dtype, const Value& sum,
                          llvm::Value* before, double terms);

  // Elements in memory in their own format: 16-bit floats are i16, bools i8.
  llvm::Type* MemoryType(ir::DataType dtype);
  llvm::Value* FromMemory(ir::DataType dtype, llvm::Value* stored);
  // `value` is rounded to the dtype.
  llvm::Value* ToMemory(ir::DataType dtype, llvm::Value* value);
  // The type of a Value of the dtype.
  llvm::Type* RegisterType(ir::DataType dtype);

  // The bound of a rounded value whose exact one an implementation may round
  // to the dtype at another scale.
  Value AtAnyScale(ir::DataType dtype, const Value& a);

  // The error; 0 or false if it is null.
  llvm::Value* ErrorOf(const Value& a);
  llvm::Value* Double(double value);
  // The larger one; infinity if either is NaN.
  llvm::Value* Larger(llvm::Value* a, llvm::Value* b);
  // The error; 0 if `value` is not finite, since only its position is compared;
  // infinity if `error` is NaN.
  llvm::Value* WhereFinite(llvm::Value* value, llvm::Value* error);

 private:
  using Function = std::function<llvm::Value*(llvm::Value*)>;

  llvm::Value* Abs(llvm::Value* a);
  llvm::Value* Unary(llvm::Intrinsic::ID id, llvm::Value* a);
  llvm::Value* Library(const char* name, std::vector<llvm::Value*> args);
  llvm::Value* RoundTo(ir::DataType dtype, llvm::Value* value);
  llvm::Value* Own(ir::DataType dtype, llvm::Value* value, double roundings);
  llvm::Value* Either(llvm::Value* a, llvm::Value* b);
  llvm::Value* AsDouble(ir::DataType dtype, llvm::Value* value);
  Value Rounded(ir::DataType dtype, llvm::Value* value, llvm::Value* error,
                double roundings = 1);
  // `positive`: f is not defined below 0.
  Value Monotone(const Value& x, const Function& f, bool positive = false);
  Value FloatBinary(ir::BinaryOp op, ir::DataType dtype, const Value& a,
                    const Value& b);
  Value Quotient(ir::DataType dtype, const Value& a, const Value& b);
  Value Remainder(ir::DataType dtype, const Value& a, const Value& b,
                  bool floors);
  Value Compare(ir::BinaryOp op, ir::DataType dtype, const Value& a,
                const Value& b);
  Value IntBinary(ir::BinaryOp op, ir::DataType dtype, const Value& a,
                  const Value& b);
  llvm::Value* IntDivision(ir::BinaryOp op, bool is_signed, llvm::Value* a,
                           llvm::Value* b);
  Value IntCall(ir::Intrinsic op, ir::DataType dtype,
                const std::vector<Value>& args, absl::Status* status);
  Value TwoArguments(ir::Intrinsic op, ir::DataType dtype, const Value& x,
                     const Value& y);
  // Null if it is not a function of one float.
  Function FunctionOf(ir::Intrinsic op);

  llvm::Module& module_;
  llvm::IRBuilder<>& b_;
  bool unrounded_ = false;
};

}  // namespace tilefarm::oracle

#endif  // TILEFARM_COMPILER_ORACLE_ARITHMETIC_INTERNAL_H_
