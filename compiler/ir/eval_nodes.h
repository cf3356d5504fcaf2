// Nodes of compiled expressions, made from lambdas. Private to eval*.cc.
#ifndef TILEFARM_COMPILER_IR_EVAL_NODES_H_
#define TILEFARM_COMPILER_IR_EVAL_NODES_H_

#include <memory>
#include <utility>

#include "compiler/ir/eval.h"

namespace tilefarm::ir {

template <typename F>
struct IntNode final : IntEval {
  explicit IntNode(F f) : f_(std::move(f)) {}
  int64_t Eval(Frame& frame) const override { return f_(frame); }
  F f_;
};
template <typename F>
IntEvalPtr MakeInt(F f) {
  return std::make_unique<IntNode<F>>(std::move(f));
}
template <typename F>
struct FloatNode final : FloatEval {
  explicit FloatNode(F f) : f_(std::move(f)) {}
  double Eval(Frame& frame) const override { return f_(frame); }
  F f_;
};
template <typename F>
FloatEvalPtr MakeFloat(F f) {
  return std::make_unique<FloatNode<F>>(std::move(f));
}

// All dtypes but float64 compute in float32.
inline bool IsSingle(DataType dtype) { return dtype.bits < 64; }

inline bool IsUnsigned64(DataType dtype) {
  return dtype.is_uint() && dtype.bits == 64;
}

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_EVAL_NODES_H_
