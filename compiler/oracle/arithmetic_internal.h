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
  // Floats of every dtype are doubles, integers have their own width, bools
  // one bit.
  llvm::Value* value = nullptr;
  // How far a correct implementation's value may be from `value`: a double. Of
  // a bool: whether it may be the other one, a bit. Null: it is exact.
  llvm::Value* error = nullptr;
  // It is computed from the element that a reduction accumulates into; in
  // particular by adding to it.
  bool accumulator = false;
  bool summed = false;
};

// Of what computes in float64; all others, 16-bit floats too, do in float32.
inline bool IsDouble(ir::DataType dtype) { return dtype.bits == 64; }

// Emits operations where the builder stands.
class Arithmetic {
 public:
  Arithmetic(llvm::Module& module, llvm::IRBuilder<>& builder)
      : module_(module), b_(builder) {}

  // Floats are not rounded to their dtype: in what a reduction accumulates,
  // whose order is the schedule's to choose.
  void set_unrounded(bool unrounded) { unrounded_ = unrounded; }

  // `dtype` is that of the operands. The right side of kAnd and kOr is
  // evaluated already.
  Value Binary(ir::BinaryOp op, ir::DataType dtype, const Value& a,
               const Value& b);
  Value Not(const Value& a);
  Value Cast(ir::DataType to, ir::DataType from, const Value& a);
  Value Select(ir::DataType dtype, const Value& condition, const Value& a,
               const Value& b);
  // Every intrinsic but kIfThenElse. `dtype` is that of the operands.
  // InvalidArgument in `status` where it is not defined for it.
  Value Call(ir::Intrinsic op, ir::DataType dtype,
             const std::vector<Value>& args, absl::Status* status);
  // A float rounded to its dtype.
  Value Round(ir::DataType dtype, const Value& a);
  // The bound of `sum`, of `terms` numbers in any order, after one more was
  // added to what was `before`. Its error is that of the numbers alone: this
  // adds what the rounding of partial sums to `dtype` makes.
  llvm::Value* BoundOfSum(ir::DataType dtype, const Value& sum,
                          llvm::Value* before, double terms);

  // Elements in memory in their own format: 16-bit floats are i16, bools i8.
  llvm::Type* MemoryType(ir::DataType dtype);
  llvm::Value* FromMemory(ir::DataType dtype, llvm::Value* stored);
  // `value` is rounded to the dtype.
  llvm::Value* ToMemory(ir::DataType dtype, llvm::Value* value);
  // What a Value of the dtype holds.
  llvm::Type* RegisterType(ir::DataType dtype);

  // 0 or false where it is null.
  llvm::Value* ErrorOf(const Value& a);
  llvm::Value* Double(double value);
  // The larger one, infinity where either is not a number.
  llvm::Value* Larger(llvm::Value* a, llvm::Value* b);
  // 0 where `value` is no finite number, which is compared for its place alone;
  // infinity where `error` is no number.
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
  // `positive`: f has no value below 0.
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
  // Null where it is no function of one float.
  Function FunctionOf(ir::Intrinsic op);

  llvm::Module& module_;
  llvm::IRBuilder<>& b_;
  bool unrounded_ = false;
};

}  // namespace tilefarm::oracle

#endif  // TILEFARM_COMPILER_ORACLE_ARITHMETIC_INTERNAL_H_
