// Expressions: constants, conversions, conditions, calls.
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/emitter.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::codegen {
namespace {

// The number in every lane of a constant.
std::optional<double> NumberOf(const ir::Expr& expr) {
  if (const auto* same = ir::As<ir::BroadcastNode>(expr)) {
    return NumberOf(same->value);
  }
  const auto* number = ir::As<ir::FloatConstNode>(expr);
  if (number == nullptr) return std::nullopt;
  return number->value;
}

// Whether min(max(x, low), high), or the other way round, keeps a float in a
// type of less than 32 bits. It does even where x is not a number, since min
// and max then give their second operand.
bool IsClampedTo(ir::DataType to, const ir::Expr& value) {
  if (!value->dtype.is_float() || !to.is_integral() || to.is_bool() ||
      to.bits >= 32) {
    return false;
  }
  const auto* outer = ir::As<ir::BinaryNode>(value);
  const auto* inner =
      outer == nullptr ? nullptr : ir::As<ir::BinaryNode>(outer->a);
  if (inner == nullptr ||
      !((outer->op == ir::BinaryOp::kMin && inner->op == ir::BinaryOp::kMax) ||
        (outer->op == ir::BinaryOp::kMax && inner->op == ir::BinaryOp::kMin))) {
    return false;
  }
  const double span = std::ldexp(1, to.bits);
  const double least = to.is_int() ? -span / 2 : 0;
  const auto fits = [&](const ir::Expr& bound) {
    const std::optional<double> number = NumberOf(bound);
    return number && *number >= least && *number <= least + span - 1;
  };
  return fits(outer->b) && fits(inner->b);
}

}  // namespace

llvm::Type* Emitter::RegisterType(ir::DataType dtype) {
  llvm::Type* element = nullptr;
  if (dtype.is_float()) {
    element = dtype.bits == 64 ? builder_.getDoubleTy() : builder_.getFloatTy();
  } else {
    element = builder_.getIntNTy(dtype.bits);
  }
  return dtype.lanes > 1 ? llvm::FixedVectorType::get(element, dtype.lanes)
                         : element;
}

llvm::Value* Emitter::Splat(llvm::Value* value, int lanes) {
  return lanes > 1 ? builder_.CreateVectorSplat(lanes, value) : value;
}

llvm::Value* Emitter::Emit(const ir::Expr& expr) {
  if (!status_.ok()) return llvm::PoisonValue::get(RegisterType(expr->dtype));
  switch (expr->kind) {
    case ir::ExprKind::kVar: {
      const auto it = frame_->vars.find(ir::As<ir::VarNode>(expr));
      if (it != frame_->vars.end()) return it->second;
      return Fail(absl::InternalError(
                      absl::StrCat("variable ", ir::As<ir::VarNode>(expr)->name,
                                   " has no value here")),
                  RegisterType(expr->dtype));
    }
    case ir::ExprKind::kIntConst:
      return llvm::ConstantInt::get(RegisterType(expr->dtype),
                                    ir::As<ir::IntConstNode>(expr)->value,
                                    /*IsSigned=*/true);
    case ir::ExprKind::kFloatConst:
      return EmitConstant(*ir::As<ir::FloatConstNode>(expr));
    case ir::ExprKind::kBinary: {
      const auto* e = ir::As<ir::BinaryNode>(expr);
      if (e->op == ir::BinaryOp::kAnd || e->op == ir::BinaryOp::kOr) {
        return EmitLogical(*e);
      }
      llvm::Value* a = Emit(e->a);
      llvm::Value* b = Emit(e->b);
      if (!e->a->dtype.is_index()) {
        return EmitBinary(e->op, e->a->dtype, a, b);
      }
      return Known({static_cast<int>(e->op), nullptr, a, b}, [&] {
        llvm::Value* narrow = EmitNarrow(e->op, a, b);
        return narrow != nullptr ? narrow
                                 : EmitBinary(e->op, e->a->dtype, a, b);
      });
    }
    case ir::ExprKind::kNot:
      return builder_.CreateNot(Emit(ir::As<ir::NotNode>(expr)->a));
    case ir::ExprKind::kCast: {
      const auto* e = ir::As<ir::CastNode>(expr);
      llvm::Value* value = Emit(e->value);
      if (IsClampedTo(expr->dtype, e->value)) {
        return EmitTruncation(expr->dtype, value);
      }
      value = EmitCast(expr->dtype, e->value->dtype, value);
      if (!RoundsTo16Bits(*e)) return value;
      return FromMemory(ToMemory(value, expr->dtype.element()),
                        expr->dtype.element());
    }
    case ir::ExprKind::kSelect: {
      const auto* e = ir::As<ir::SelectNode>(expr);
      llvm::Value* condition = Emit(e->condition);
      llvm::Value* a = Emit(e->true_value);
      llvm::Value* b = Emit(e->false_value);
      return EmitIndexSelect(condition, a, b);
    }
    case ir::ExprKind::kCall:
      return EmitCall(*ir::As<ir::CallNode>(expr));
    case ir::ExprKind::kMachineOp:
      return EmitMachineOp(*ir::As<ir::MachineOpNode>(expr));
    case ir::ExprKind::kLoad:
      return EmitLoad(*ir::As<ir::LoadNode>(expr));
    case ir::ExprKind::kLet: {
      const auto* e = ir::As<ir::LetNode>(expr);
      frame_->vars[e->var.get()] = Emit(e->value);
      return Emit(e->body);
    }
    case ir::ExprKind::kRamp: {
      const auto* e = ir::As<ir::RampNode>(expr);
      const int lanes = expr->dtype.lanes;
      llvm::Value* base = Splat(Emit(e->base), lanes);
      llvm::Value* stride = Splat(Emit(e->stride), lanes);
      std::vector<llvm::Constant*> steps;
      for (int lane = 0; lane < lanes; ++lane) {
        steps.push_back(
            llvm::ConstantInt::get(RegisterType(expr->dtype.element()), lane));
      }
      llvm::Value* steps_vector = llvm::ConstantVector::get(steps);
      return builder_.CreateAdd(base, builder_.CreateMul(stride, steps_vector));
    }
    case ir::ExprKind::kBroadcast:
      return Splat(Emit(ir::As<ir::BroadcastNode>(expr)->value),
                   expr->dtype.lanes);
  }
  return nullptr;
}

llvm::Value* Emitter::EmitConstant(const ir::FloatConstNode& e) {
  return llvm::ConstantFP::get(RegisterType(e.dtype.element()), e.value);
}

// Uninitialised memory has undefined values, and a branch on one would be
// undefined behaviour of the whole function. Freezing makes it a definite
// value.
llvm::Value* Emitter::EmitCondition(const ir::Expr& condition) {
  bool from_memory = false;
  ir::PostOrderExprs(condition, [&](const ir::Expr& e) {
    const bool data =
        e->kind == ir::ExprKind::kVar && !e->dtype.element().is_index();
    from_memory |= data || e->kind == ir::ExprKind::kLoad;
  });
  llvm::Value* value = Emit(condition);
  return from_memory ? builder_.CreateFreeze(value) : value;
}

llvm::Value* Emitter::EmitLogical(const ir::BinaryNode& e) {
  const bool is_and = e.op == ir::BinaryOp::kAnd;
  llvm::Value* a = EmitCondition(e.a);
  if (!HasLoad(e.b)) {
    llvm::Value* b = Emit(e.b);
    return is_and ? builder_.CreateAnd(a, b) : builder_.CreateOr(a, b);
  }
  llvm::Value* wanted = is_and ? a : builder_.CreateNot(a);
  if (!e.dtype.is_vector()) {
    return Guarded(wanted, a, [&] { return Emit(e.b); });
  }
  frame_->masks.push_back(wanted);
  llvm::Value* b = Emit(e.b);
  frame_->masks.pop_back();
  return is_and ? builder_.CreateAnd(a, b) : builder_.CreateOr(a, b);
}

llvm::Value* Emitter::EmitIfThenElse(const ir::CallNode& e) {
  const ir::Expr& then_expr = e.args[1];
  const ir::Expr& else_expr = e.args[2];
  llvm::Value* condition = EmitCondition(e.args[0]);
  const bool then_loads = HasLoad(then_expr);
  const bool else_loads = HasLoad(else_expr);
  if (!then_loads && !else_loads) {
    llvm::Value* a = Emit(then_expr);
    llvm::Value* b = Emit(else_expr);
    return EmitIndexSelect(condition, a, b);
  }
  if (condition->getType()->isVectorTy()) {
    // Inactive lanes must not access memory, so the mask applies to every
    // access below.
    const auto masked = [&](const ir::Expr& side, llvm::Value* mask) {
      frame_->masks.push_back(mask);
      llvm::Value* value = Emit(side);
      frame_->masks.pop_back();
      return value;
    };
    llvm::Value* a = masked(then_expr, condition);
    llvm::Value* b = masked(else_expr, builder_.CreateNot(condition));
    return builder_.CreateSelect(condition, a, b);
  }
  if (!else_loads) {
    llvm::Value* b = Emit(else_expr);
    const auto then = [&] { return Emit(then_expr); };
    llvm::Value* value =
        EmitWithoutBranch(condition, HasPlainLoads(then_expr), b, then);
    return value != nullptr ? value : Guarded(condition, b, then);
  }
  if (!then_loads) {
    llvm::Value* a = Emit(then_expr);
    return Guarded(builder_.CreateNot(condition), a,
                   [&] { return Emit(else_expr); });
  }
  llvm::Value* zero = llvm::Constant::getNullValue(RegisterType(e.dtype));
  llvm::Value* a = Guarded(condition, zero, [&] { return Emit(then_expr); });
  return Guarded(builder_.CreateNot(condition), a,
                 [&] { return Emit(else_expr); });
}

// Integers are left to LLVM: of halves that are added in ever shorter vectors
// its x86 backend (19.1) makes vpdpbusd and vpsadbw, but then adds only as many
// of their sums as the last vector has lanes. Floats: combines the upper half
// with the lower half until one lane is left.
llvm::Value* Emitter::EmitLaneReduction(ir::BinaryOp op, ir::DataType dtype,
                                        llvm::Value* vector) {
  if (dtype.is_int() || dtype.is_uint()) {
    switch (op) {
      case ir::BinaryOp::kAdd:
        return builder_.CreateAddReduce(vector);
      case ir::BinaryOp::kMul:
        return builder_.CreateMulReduce(vector);
      case ir::BinaryOp::kMin:
        return builder_.CreateIntMinReduce(vector, dtype.is_int());
      case ir::BinaryOp::kMax:
        return builder_.CreateIntMaxReduce(vector, dtype.is_int());
      default:
        break;
    }
  }
  int lanes = dtype.lanes;
  while (lanes > 1 && lanes % 2 == 0) {
    lanes /= 2;
    std::vector<int> low, high;
    for (int i = 0; i < lanes; ++i) {
      low.push_back(i);
      high.push_back(lanes + i);
    }
    vector = EmitBinary(op, dtype.with_lanes(lanes),
                        builder_.CreateShuffleVector(vector, low),
                        builder_.CreateShuffleVector(vector, high));
  }
  llvm::Value* result = builder_.CreateExtractElement(vector, uint64_t{0});
  for (int i = 1; i < lanes; ++i) {
    result = EmitBinary(op, dtype.element(), result,
                        builder_.CreateExtractElement(vector, i));
  }
  return result;
}

llvm::Value* Emitter::EmitMachineOp(const ir::MachineOpNode& e) {
  using ir::MachineOp;
  const auto reduce = [&](ir::BinaryOp op) {
    return EmitLaneReduction(op, e.args[0]->dtype, Emit(e.args[0]));
  };
  switch (e.op) {
    case MachineOp::kDotProduct:
      return EmitDotProduct(e);
    case MachineOp::kPairDotProduct:
      return EmitPairDotProduct(e);
    case MachineOp::kTileProduct:
      return EmitTileProduct(e);
    case MachineOp::kTransposed:
      return EmitTransposed(e);
    case MachineOp::kInterleave: {
      llvm::Value* a = Emit(e.args[0]);
      return EmitInterleave(a, Emit(e.args[1]));
    }
    case MachineOp::kLaneSum:
      return reduce(ir::BinaryOp::kAdd);
    case MachineOp::kLaneProduct:
      return reduce(ir::BinaryOp::kMul);
    case MachineOp::kLaneMin:
      return reduce(ir::BinaryOp::kMin);
    case MachineOp::kLaneMax:
      return reduce(ir::BinaryOp::kMax);
    case MachineOp::kClusterLoad:
      return EmitClusterLoad(e);
    case MachineOp::kShuffleXor:
      return EmitShuffleXor(e);
    case MachineOp::kLoadMatrix:
    case MachineOp::kWarpProduct:
    case MachineOp::kRoundTf32:
    case MachineOp::kWords:
    case MachineOp::kConcat:
    case MachineOp::kSlice:
      return EmitFragmentOp(e);
    case MachineOp::kUniform:
      return EmitUniform(e);
    case MachineOp::kFragment:
      return EmitFragment(e);
    case MachineOp::kAsync:
      return Emit(e.args[0]);  // where it cannot be asynchronous
    case MachineOp::kLibraryGemm:
    case MachineOp::kPrefetch:
    case MachineOp::kBarrier:
    case MachineOp::kClusterBarrier:
    case MachineOp::kCommit:
    case MachineOp::kWait:
    case MachineOp::kBarrierInit:
    case MachineOp::kBarrierExpect:
    case MachineOp::kBarrierArrive:
    case MachineOp::kBarrierWait:
    case MachineOp::kCopyBox:
    case MachineOp::kCopyWindows:
    case MachineOp::kBoxFence:
    case MachineOp::kStoreBox:
    case MachineOp::kBoxStoreCommit:
    case MachineOp::kBoxStoreWait:
    case MachineOp::kWarpgroupBarrier:
    case MachineOp::kProductFence:
    case MachineOp::kWarpgroupProduct:
    case MachineOp::kProductCommit:
    case MachineOp::kProductWait:
      break;  // statements
  }
  return Fail(absl::InternalError(absl::StrCat(
                  "T.", std::string(ir::MachineOpName(e.op)), " has no value")),
              RegisterType(e.dtype));
}

llvm::Value* Emitter::EmitCall(const ir::CallNode& e) {
  using ir::Intrinsic;
  if (e.op == Intrinsic::kIfThenElse) return EmitIfThenElse(e);
  std::vector<llvm::Value*> args;
  for (const ir::Expr& arg : e.args) args.push_back(Emit(arg));
  llvm::Value* x = args[0];
  const ir::DataType dtype = e.args[0]->dtype;
  if (e.op == Intrinsic::kReinterpret) {
    return builder_.CreateBitCast(x, RegisterType(e.dtype));
  }
  const auto unary = [&](llvm::Intrinsic::ID id) {
    return builder_.CreateUnaryIntrinsic(id, x);
  };
  if (!dtype.is_float()) {
    switch (e.op) {
      case Intrinsic::kAbs:
        if (!dtype.is_int()) return x;
        return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x,
                                              builder_.getFalse());
      case Intrinsic::kPopcount:
        return unary(llvm::Intrinsic::ctpop);
      case Intrinsic::kClz:
        return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x,
                                              builder_.getFalse());
      case Intrinsic::kFloor:
      case Intrinsic::kCeil:
      case Intrinsic::kRound:
      case Intrinsic::kNearbyint:
      case Intrinsic::kTrunc:
        return x;
      case Intrinsic::kFma:
        return builder_.CreateAdd(builder_.CreateMul(x, args[1]), args[2]);
      case Intrinsic::kIsNan:
      case Intrinsic::kIsInf:
        return llvm::Constant::getNullValue(RegisterType(e.dtype));
      default:
        return Fail(absl::InvalidArgumentError(
                        absl::StrCat("T.", std::string(ir::IntrinsicName(e.op)),
                                     " is not defined for ", dtype.ToString())),
                    RegisterType(e.dtype));
    }
  }
  llvm::Value* one = llvm::ConstantFP::get(x->getType(), 1.0);
  switch (e.op) {
    case Intrinsic::kSqrt:
      return unary(llvm::Intrinsic::sqrt);
    case Intrinsic::kRsqrt:
      return builder_.CreateFDiv(one, unary(llvm::Intrinsic::sqrt));
    case Intrinsic::kAbs:
      return unary(llvm::Intrinsic::fabs);
    case Intrinsic::kFloor:
      return unary(llvm::Intrinsic::floor);
    case Intrinsic::kCeil:
      return unary(llvm::Intrinsic::ceil);
    case Intrinsic::kRound:
      return unary(llvm::Intrinsic::round);
    case Intrinsic::kNearbyint:
      return unary(llvm::Intrinsic::nearbyint);
    case Intrinsic::kTrunc:
      return unary(llvm::Intrinsic::trunc);
    case Intrinsic::kFma:
      return builder_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()},
                                      {x, args[1], args[2]});
    case Intrinsic::kCopySign:
      return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x,
                                            args[1]);
    case Intrinsic::kIsNan:
      return builder_.CreateFCmpUNO(x, x);
    case Intrinsic::kIsInf:
      return builder_.CreateFCmpOEQ(
          unary(llvm::Intrinsic::fabs),
          llvm::ConstantFP::getInfinity(x->getType()));
    default:
      break;
  }
  if (device_ != nullptr && x->getType()->getScalarType()->isFloatTy()) {
    llvm::Value* value = e.op == Intrinsic::kExp    ? device_->Exp(x, builder_)
                         : e.op == Intrinsic::kExp2 ? device_->Exp2(x, builder_)
                                                    : nullptr;
    if (value != nullptr) return value;
  }
  if (llvm::Value* value = math_.Emit(builder_, e.op, args)) return value;
  return Fail(absl::InvalidArgumentError(
                  absl::StrCat("T.", std::string(ir::IntrinsicName(e.op)),
                               " is not defined for ", dtype.ToString())),
              RegisterType(e.dtype));
}

llvm::Value* Emitter::EmitNarrowing(ir::DataType to, llvm::Value* value) {
  llvm::Type* const type = value->getType();
  const double span = std::ldexp(1, to.bits);
  const double least = to.is_int() ? -span / 2 : 0;
  llvm::Value* low = llvm::ConstantFP::get(type, least);
  llvm::Value* high = llvm::ConstantFP::get(type, least + span - 1);
  // A comparison with NaN is false.
  llvm::Value* clamped =
      builder_.CreateSelect(builder_.CreateFCmpOGT(value, low), value, low);
  clamped = builder_.CreateSelect(builder_.CreateFCmpOLT(clamped, high),
                                  clamped, high);
  if (least != 0) {
    clamped =
        builder_.CreateSelect(builder_.CreateFCmpORD(value, value), clamped,
                              llvm::Constant::getNullValue(type));
  }
  return EmitTruncation(to, clamped);
}

llvm::Value* Emitter::EmitTruncation(ir::DataType to, llvm::Value* value) {
  const ir::DataType wide = ir::DataType::Int(32).with_lanes(to.lanes);
  return builder_.CreateTrunc(builder_.CreateFPToSI(value, RegisterType(wide)),
                              RegisterType(to));
}

llvm::Value* Emitter::EmitCast(ir::DataType to, ir::DataType from,
                               llvm::Value* value) {
  llvm::Type* type = RegisterType(to);
  if (to.is_bool()) {
    llvm::Value* zero = llvm::Constant::getNullValue(value->getType());
    return from.is_float() ? builder_.CreateFCmpUNE(value, zero)
                           : builder_.CreateICmpNE(value, zero);
  }
  if (from.is_float() && to.is_float()) {
    // 16-bit floats are held in float32.
    return builder_.CreateFPCast(value, type);
  }
  if (from.is_float()) {
    // Out-of-range values saturate and NaN gives 0: defined everywhere.
    if (to.bits < 32) return EmitNarrowing(to, value);
    return builder_.CreateIntrinsic(
        to.is_int() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
        {type, value->getType()}, {value});
  }
  if (to.is_float()) {
    return from.is_int() ? builder_.CreateSIToFP(value, type)
                         : builder_.CreateUIToFP(value, type);
  }
  return from.is_int() ? builder_.CreateSExtOrTrunc(value, type)
                       : builder_.CreateZExtOrTrunc(value, type);
}

}  // namespace tilefarm::codegen
