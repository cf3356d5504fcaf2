// Expressions: addresses of elements, and the conditions of evaluation.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/oracle/translator_internal.h"

namespace tilefarm::oracle {

using ir::As;
using ir::Expr;

namespace {

bool HasLoad(const Expr& expr) {
  bool found = false;
  ir::PostOrderExprs(
      expr, [&](const Expr& e) { found |= e->kind == ir::ExprKind::kLoad; });
  return found;
}

}  // namespace

int64_t Span(const ir::BufferNode& buffer) { return buffer.memory_elements(); }

llvm::Value* Translator::Offset(const ir::BufferNode& buffer,
                                const std::vector<Expr>& indices,
                                llvm::Value** doubt) {
  *doubt = nullptr;
  if (static_cast<int>(indices.size()) != buffer.ndim()) {
    return Fail(absl::StrCat("an access of '", buffer.name, "' has ",
                             indices.size(), " indices"),
                Number(0));
  }
  std::vector<int64_t> strides = buffer.strides;
  if (strides.empty()) {
    strides.assign(indices.size(), 1);
    for (size_t d = indices.size(); d-- > 1;) {
      strides[d - 1] = strides[d] * buffer.shape[d];
    }
  }
  llvm::Value* offset = Number(buffer.elem_offset);
  for (size_t d = 0; d < indices.size(); ++d) {
    const Value index = Emit(indices[d]);
    offset = b_.CreateAdd(
        offset, b_.CreateMul(b_.CreateSExtOrTrunc(index.value, b_.getInt64Ty()),
                             Number(strides[d])));
    if (index.error == nullptr) continue;
    llvm::Value* moves = b_.CreateFCmpUGT(index.error, math_.Double(0));
    *doubt = *doubt == nullptr ? moves : b_.CreateOr(*doubt, moves);
  }
  return offset;
}

// `raw`: an accumulated value without rounding to the buffer's dtype.
Value Translator::ReadPlace(const ir::BufferNode& buffer, llvm::Value* offset,
                            bool raw) {
  const Place& place = places_.at(&buffer);
  llvm::Value* stored =
      b_.CreateLoad(place.type, At(place.type, place.values, offset));
  Value result;
  result.value = place.own_format ? math_.FromMemory(buffer.dtype, stored)
                                  : b_.CreateFPExt(stored, b_.getDoubleTy());
  if (place.errors != nullptr) {
    result.error = b_.CreateLoad(b_.getDoubleTy(),
                                 At(b_.getDoubleTy(), place.errors, offset));
    if (buffer.dtype.is_bool()) {
      result.error = b_.CreateFCmpUGT(result.error, math_.Double(0));
    }
  }
  if (raw || !IsAccumulator(&buffer)) return result;
  if (result.error != nullptr) {
    result.error = math_.WhereFinite(result.value, result.error);
  }
  return math_.Round(buffer.dtype, result);
}

Value Translator::EmitLoad(const ir::LoadNode& load) {
  const ir::BufferNode* buffer = load.buffer.get();
  if (load.predicate != nullptr || !places_.contains(buffer)) {
    return Fail(absl::StrCat("a load of '", buffer->name,
                             "' that is not part of a program as written"),
                Value{llvm::PoisonValue::get(math_.RegisterType(load.dtype))});
  }
  llvm::Value* doubt = nullptr;
  llvm::Value* offset = Offset(*buffer, load.indices, &doubt);
  const bool own =
      accumulating_ != nullptr && ReadsElementOf(load, *accumulating_);
  Value result = ReadPlace(*buffer, offset, /*raw=*/own);
  result.accumulator = own;
  if (doubt == nullptr) return result;
  if (load.dtype.is_bool()) {
    result.error = b_.CreateOr(math_.ErrorOf(result), doubt);
  } else {
    result.error =
        b_.CreateSelect(doubt, math_.Double(INFINITY), math_.ErrorOf(result));
  }
  return result;
}

// Evaluates the right operand only if the left one does not decide.
Value Translator::EmitLogical(const ir::BinaryNode& e) {
  const Value a = Emit(e.a);
  Value b;
  if (HasLoad(e.b)) {
    llvm::Value* matters =
        e.op == ir::BinaryOp::kAnd ? a.value : b_.CreateNot(a.value);
    b = Guarded(matters, e.dtype, [&] { return Emit(e.b); });
  } else {
    b = Emit(e.b);
  }
  return math_.Binary(e.op, e.dtype, a, b);
}

// Accesses memory only if a correct implementation may.
Value Translator::EmitIfThenElse(const ir::CallNode& e) {
  const Value condition = Emit(e.args[0]);
  if (!status_.ok()) return condition;
  const auto side = [&](const Expr& expr, llvm::Value* taken) {
    if (!HasLoad(expr)) return Emit(expr);
    if (condition.error != nullptr) taken = b_.CreateOr(taken, condition.error);
    return Guarded(taken, expr->dtype, [&] { return Emit(expr); });
  };
  const Value a = side(e.args[1], condition.value);
  const Value b = side(e.args[2], b_.CreateNot(condition.value));
  return math_.Select(e.dtype, condition, a, b);
}

Value Translator::Emit(const Expr& expr) {
  const Value nothing = {
      llvm::PoisonValue::get(math_.RegisterType(expr->dtype.element()))};
  if (!status_.ok()) return nothing;
  switch (expr->kind) {
    case ir::ExprKind::kVar: {
      const auto found = vars_.find(As<ir::VarNode>(expr));
      if (found != vars_.end()) return found->second;
      return Fail(absl::StrCat("variable '", As<ir::VarNode>(expr)->name,
                               "' has no value"),
                  nothing);
    }
    case ir::ExprKind::kIntConst:
      return {llvm::ConstantInt::get(
          math_.RegisterType(expr->dtype),
          static_cast<uint64_t>(As<ir::IntConstNode>(expr)->value),
          /*IsSigned=*/true)};
    case ir::ExprKind::kFloatConst: {
      const double value = As<ir::FloatConstNode>(expr)->value;
      return {
          math_.Double(expr->dtype.bits == 64
                           ? value
                           : static_cast<double>(static_cast<float>(value)))};
    }
    case ir::ExprKind::kBinary: {
      const auto& e = *As<ir::BinaryNode>(expr);
      if (e.op == ir::BinaryOp::kAnd || e.op == ir::BinaryOp::kOr) {
        return EmitLogical(e);
      }
      const Value a = Emit(e.a);
      const Value b = Emit(e.b);
      if (!status_.ok()) return nothing;
      return math_.Binary(e.op, e.a->dtype, a, b);
    }
    case ir::ExprKind::kNot:
      return math_.Not(Emit(As<ir::NotNode>(expr)->a));
    case ir::ExprKind::kCast: {
      const Expr& operand = As<ir::CastNode>(expr)->value;
      const Value value = Emit(operand);
      return status_.ok() ? math_.Cast(expr->dtype, operand->dtype, value)
                          : nothing;
    }
    case ir::ExprKind::kSelect: {
      const auto& e = *As<ir::SelectNode>(expr);
      const Value condition = Emit(e.condition);
      const Value a = Emit(e.true_value);
      const Value b = Emit(e.false_value);
      return status_.ok() ? math_.Select(e.dtype, condition, a, b) : nothing;
    }
    case ir::ExprKind::kCall: {
      const auto& e = *As<ir::CallNode>(expr);
      if (e.op == ir::Intrinsic::kIfThenElse) return EmitIfThenElse(e);
      std::vector<Value> args;
      for (const Expr& arg : e.args) args.push_back(Emit(arg));
      if (!status_.ok() || args.empty()) return nothing;
      if (e.op == ir::Intrinsic::kReinterpret) {
        return math_.Reinterpret(e.dtype, e.args[0]->dtype, args[0]);
      }
      return math_.Call(e.op, e.args[0]->dtype, args, &status_);
    }
    case ir::ExprKind::kLoad:
      return EmitLoad(*As<ir::LoadNode>(expr));
    case ir::ExprKind::kLet: {
      const auto& e = *As<ir::LetNode>(expr);
      vars_[e.var.get()] = Emit(e.value);
      return Emit(e.body);
    }
    case ir::ExprKind::kRamp:
    case ir::ExprKind::kBroadcast:
    case ir::ExprKind::kMachineOp:
      break;
  }
  return Fail(std::string("lowered code is not part of a program as written"),
              nothing);
}

}  // namespace tilefarm::oracle
