// Dtypes of expressions during parsing: bare literals are weak and take the
// dtype of the other operand. Private to the parser. Errors have no position;
// the parser adds it.
#ifndef TILEFARM_COMPILER_IR_TYPING_H_
#define TILEFARM_COMPILER_IR_TYPING_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/expr.h"

namespace tilefarm::ir {

// An expression under construction. A weak one consists of bare literals only
// (a constant, or a choice between constants); by itself it is int64 or
// float32.
struct Value {
  Expr expr;
  bool weak = false;
  int depth = 1;        // of the tree, which the nesting limit bounds
  uint32_t offset = 0;  // in the text
};

// Converts a number to a constant of `dtype`, rounded; an error if an integer
// does not fit.
absl::StatusOr<Expr> ConvertConst(const Expr& constant, DataType dtype);

// Makes the dtypes equal or says which T.Cast to write. A weak operand takes
// the other's dtype; int32 with int64 becomes int64.
absl::Status Unify(Value& a, Value& b);

// `value` as `dtype`, for a store, an annotated variable or an argument:
// literals adapt, int32 widens to int64, an index (an int64 expression that
// loads no int64) narrows to any integer. `what` starts the error message.
absl::StatusOr<Expr> Adapt(const Value& value, DataType dtype,
                           const std::string& what);

// An index or extent: int64; narrower integers widen.
absl::StatusOr<Expr> AsIndex(const Value& value, const std::string& what);

// `a op b` with checked operand kinds; constants fold, and division by a
// constant zero is an error.
absl::StatusOr<Value> BuildBinary(BinaryOp op, Value a, Value b);
// A call of an elementwise intrinsic other than if_then_else.
absl::StatusOr<Value> BuildCall(Intrinsic op, std::vector<Value> args);
// asinh, acosh or atanh, expressed by logarithms, since they are no intrinsics.
absl::StatusOr<Value> BuildInverseHyperbolic(const std::string& name, Value a);
// if_then_else or Select.
absl::StatusOr<Value> BuildChoice(bool select, Value condition, Value a,
                                  Value b);
absl::StatusOr<Value> BuildNegation(Value a);
// ~a for an integer, not a for a bool.
absl::StatusOr<Value> BuildComplement(Value a);
absl::StatusOr<Value> BuildCast(DataType dtype, Value a);
// The bits of `a` as `dtype`, of the same width; a literal or an index takes
// that width.
absl::StatusOr<Value> BuildReinterpret(DataType dtype, Value a);

// The nearest value of a float dtype (16-bit ones included).
double RoundTo(DataType dtype, double value);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_TYPING_H_
