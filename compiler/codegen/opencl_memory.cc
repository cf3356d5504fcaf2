// Loads of vectors, which stay vectors, and the lanes of all other expressions.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/expr_facts.h"
#include "compiler/codegen/opencl_emitter.h"

namespace tilefarm::codegen {
namespace {

// Vectors of OpenCL C.
constexpr std::array kVectorLanes = {2, 3, 4, 8, 16};

bool IsHalf(ir::DataType dtype) {
  return dtype.element() == ir::DataType::Float(16);
}
bool IsBFloat(ir::DataType dtype) {
  return dtype.element() == ir::DataType::BFloat16();
}

}  // namespace

std::string OpenClEmitter::VectorPointer(const ir::Buffer& buffer,
                                         const ir::Expr& first, int lanes,
                                         bool is_const, bool* dereferenced) {
  const Memory& memory = memory_.at(buffer.get());
  // Private memory becomes registers, unless something points to it.
  if (memory.space == "__private" ||
      std::ranges::find(kVectorLanes, lanes) == kVectorLanes.end()) {
    return "";
  }
  const int64_t bytes = buffer->dtype.bytes();
  const int64_t alignment =
      memory.aligned ? std::gcd(DivisorOf(first) * bytes, kDeviceAlignment)
                     : bytes;
  *dereferenced =
      !IsHalf(buffer->dtype) && lanes != 3 && alignment % (lanes * bytes) == 0;
  const std::string space =
      absl::StrCat(is_const ? "const " : "", memory.space, " ");
  const std::string at = absl::StrCat(memory.name, " + ", Index(first));
  if (IsHalf(buffer->dtype))
    return absl::StrCat("(", space, "half*)(", at, ")");
  if (!*dereferenced) return at;
  return absl::StrCat("(", space, OpenClMemoryType(buffer->dtype), lanes, "*)(",
                      at, ")");
}

std::string OpenClEmitter::VectorLoad(const ir::LoadNode& e) {
  if (!e.dtype.is_vector() || e.indices.size() != 1 ||
      (e.predicate != nullptr && ir::AsUniformInt(e.predicate) != 1)) {
    return "";
  }
  const std::optional<RampForm> ramp = AsRamp(e.indices[0]);
  if (!ramp || !ir::IsConstInt(ramp->stride, 1)) return "";
  bool dereferenced = false;
  const int lanes = e.dtype.lanes;
  const std::string pointer = VectorPointer(e.buffer, ramp->base, lanes,
                                            /*is_const=*/true, &dereferenced);
  if (pointer.empty()) return "";
  if (dereferenced) return absl::StrCat("*", pointer);
  return absl::StrCat(IsHalf(e.dtype) ? "vload_half" : "vload", lanes, "(0, ",
                      pointer, ")");
}

void OpenClEmitter::Hoist(const ir::Expr& expr) {
  if (hoisted_.contains(expr.get())) return;
  const auto keep_vector = [&](const std::string& text) {
    const ir::DataType dtype = expr->dtype;
    const std::string name = NewName("t");
    Line(absl::StrCat("const ",
                      IsHalf(dtype) ? "float" : OpenClMemoryType(dtype),
                      dtype.lanes, " ", name, " = ", text, ";"));
    hoisted_[expr.get()] = name;
  };
  switch (expr->kind) {
    case ir::ExprKind::kVar:
    case ir::ExprKind::kIntConst:
    case ir::ExprKind::kFloatConst:
      return;
    case ir::ExprKind::kLoad: {
      const auto* e = ir::As<ir::LoadNode>(expr);
      if (!expr->dtype.is_vector()) return;
      const std::string text = VectorLoad(*e);
      if (!text.empty()) keep_vector(text);
      return;
    }
    case ir::ExprKind::kBroadcast: {
      const auto* e = ir::As<ir::BroadcastNode>(expr);
      if (!HasLoad(e->value)) return;
      Hoist(e->value);
      hoisted_[expr.get()] = Keep(e->value->dtype, Text(e->value));
      return;
    }
    case ir::ExprKind::kCall: {
      const auto* e = ir::As<ir::CallNode>(expr);
      if (e->op != ir::Intrinsic::kIfThenElse) {
        for (const ir::Expr& arg : e->args) Hoist(arg);
        return;
      }
      Hoist(e->args[0]);
      const std::string text = GuardedLoad(*e);
      if (!text.empty()) keep_vector(text);
      return;
    }
    case ir::ExprKind::kBinary: {
      const auto* e = ir::As<ir::BinaryNode>(expr);
      Hoist(e->a);
      const bool lazy =
          e->op == ir::BinaryOp::kAnd || e->op == ir::BinaryOp::kOr;
      if (!lazy) Hoist(e->b);
      return;
    }
    case ir::ExprKind::kNot:
      return Hoist(ir::As<ir::NotNode>(expr)->a);
    case ir::ExprKind::kCast:
      return Hoist(ir::As<ir::CastNode>(expr)->value);
    case ir::ExprKind::kSelect: {
      const auto* e = ir::As<ir::SelectNode>(expr);
      Hoist(e->condition);
      Hoist(e->true_value);
      Hoist(e->false_value);
      return;
    }
    case ir::ExprKind::kLet: {
      const auto* e = ir::As<ir::LetNode>(expr);
      Hoist(e->value);
      Define(e->var, e->value);
      hoisted_[expr.get()] = "";  // it is defined
      return Hoist(e->body);
    }
    case ir::ExprKind::kRamp: {
      const auto* e = ir::As<ir::RampNode>(expr);
      Hoist(e->base);
      return Hoist(e->stride);
    }
    case ir::ExprKind::kMachineOp:
      for (const ir::Expr& arg : ir::As<ir::MachineOpNode>(expr)->args) {
        Hoist(arg);
      }
      return;
  }
}

// A choice between vectors by a condition of all lanes. Empty: it is none, or
// its sides are no simple loads and numbers.
std::string OpenClEmitter::GuardedLoad(const ir::CallNode& e) {
  if (!e.dtype.is_vector() || IsBFloat(e.dtype) || e.dtype.is_bool()) return "";
  const ir::Expr& condition = e.args[0];
  const auto* same = ir::As<ir::BroadcastNode>(condition);
  if (condition->dtype.is_vector() && same == nullptr) return "";
  const auto side = [&](const ir::Expr& value) -> std::string {
    if (const auto* load = ir::As<ir::LoadNode>(value)) {
      return VectorLoad(*load);
    }
    const auto* number = ir::As<ir::BroadcastNode>(value);
    if (number == nullptr || HasLoad(number->value)) return "";
    return absl::StrCat("(",
                        IsHalf(e.dtype) ? "float" : OpenClMemoryType(e.dtype),
                        e.dtype.lanes, ")(", Text(number->value), ")");
  };
  return Lazily([&]() -> std::string {
    const std::string a = side(e.args[1]);
    const std::string b = side(e.args[2]);
    if (a.empty() || b.empty()) return "";
    return absl::StrCat(Text(Lane(condition, 0)), " ? ", a, " : ", b);
  });
}

ir::Expr OpenClEmitter::HoistedLane(const ir::Expr& vector, int lane) {
  constexpr char kDigits[] = "0123456789abcdef";
  const ir::DataType dtype = vector->dtype.element();
  std::string text = hoisted_.at(vector.get());
  if (vector->kind != ir::ExprKind::kBroadcast) {
    absl::StrAppend(&text, ".s", std::string(1, kDigits[lane]));
    if (IsBFloat(dtype)) text = Call("from_bfloat", dtype, text);
    if (dtype.is_bool()) text = absl::StrCat("(", text, " != 0)");
  }
  ir::Var var = ir::MakeLetVar("lane", dtype);
  vars_[var.get()] = {std::move(text), /*narrow=*/false};
  kept_.push_back(var);
  return var;
}

ir::Expr OpenClEmitter::Lane(const ir::Expr& expr, int lane) {
  if (!expr->dtype.is_vector()) return expr;
  const ir::DataType dtype = expr->dtype.element();
  const auto of = [&](const ir::Expr& e) { return Lane(e, lane); };
  const auto known = hoisted_.find(expr.get());
  if (known != hoisted_.end() && !known->second.empty()) {
    return HoistedLane(expr, lane);
  }
  switch (expr->kind) {
    case ir::ExprKind::kVar:
      return LanesOf(*ir::As<ir::VarNode>(expr)).at(static_cast<size_t>(lane));
    case ir::ExprKind::kIntConst:
      return ir::IntConst(ir::As<ir::IntConstNode>(expr)->value, dtype);
    case ir::ExprKind::kFloatConst:
      return ir::FloatConst(ir::As<ir::FloatConstNode>(expr)->value, dtype);
    case ir::ExprKind::kBinary: {
      const auto* e = ir::As<ir::BinaryNode>(expr);
      return dtype.is_index() ? ir::FoldBinary(e->op, of(e->a), of(e->b))
                              : ir::MakeBinary(e->op, of(e->a), of(e->b));
    }
    case ir::ExprKind::kNot:
      return ir::MakeNot(of(ir::As<ir::NotNode>(expr)->a));
    case ir::ExprKind::kCast:
      return ir::MakeCast(dtype, of(ir::As<ir::CastNode>(expr)->value));
    case ir::ExprKind::kSelect: {
      const auto* e = ir::As<ir::SelectNode>(expr);
      return ir::MakeSelect(of(e->condition), of(e->true_value),
                            of(e->false_value));
    }
    case ir::ExprKind::kCall: {
      const auto* e = ir::As<ir::CallNode>(expr);
      std::vector<ir::Expr> args;
      for (const ir::Expr& arg : e->args) args.push_back(of(arg));
      return std::make_shared<const ir::CallNode>(e->op, std::move(args),
                                                  dtype);
    }
    case ir::ExprKind::kLoad: {
      const auto* e = ir::As<ir::LoadNode>(expr);
      std::vector<ir::Expr> indices;
      for (const ir::Expr& index : e->indices) indices.push_back(of(index));
      return std::make_shared<const ir::LoadNode>(
          e->buffer, std::move(indices), dtype,
          e->predicate == nullptr ? nullptr : of(e->predicate));
    }
    case ir::ExprKind::kLet: {
      const auto* e = ir::As<ir::LetNode>(expr);
      if (known != hoisted_.end()) return of(e->body);
      const auto var = e->var->dtype.is_vector()
                           ? LanesOf(*e->var).at(static_cast<size_t>(lane))
                           : e->var;
      return ir::MakeLet(var, of(e->value), of(e->body));
    }
    case ir::ExprKind::kRamp: {
      const auto* e = ir::As<ir::RampNode>(expr);
      return e->base + e->stride * lane;
    }
    case ir::ExprKind::kBroadcast:
      return ir::As<ir::BroadcastNode>(expr)->value;
    case ir::ExprKind::kMachineOp:
      return MachineOpLane(*ir::As<ir::MachineOpNode>(expr), lane);
  }
  return nullptr;
}

ir::Expr OpenClEmitter::MachineOpLane(const ir::MachineOpNode& e, int lane) {
  using ir::MachineOp;
  switch (e.op) {
    case MachineOp::kAsync:  // arrives at once
      return Lane(e.args[0], lane);
    case MachineOp::kInterleave:
      return Lane(e.args[static_cast<size_t>(lane % 2)], lane / 2);
    case MachineOp::kSlice:
      return Lane(e.args[0], lane + static_cast<int>(*ir::AsInt(e.args[1])));
    case MachineOp::kConcat: {
      const int first = e.args[0]->dtype.lanes;
      return lane < first ? Lane(e.args[0], lane)
                          : Lane(e.args[1], lane - first);
    }
    default:
      Fail(absl::InvalidArgumentError(absl::StrCat(
          "OpenCL C has no T.", std::string(ir::MachineOpName(e.op)))));
      return ir::ConstOf(e.dtype.element(), 0);
  }
}

const std::vector<ir::Var>& OpenClEmitter::LanesOf(const ir::VarNode& var) {
  std::vector<ir::Var>& lanes = lanes_[&var];
  while (lanes.size() < var.dtype.lanes) {
    lanes.push_back(ir::MakeLetVar(var.name, var.dtype.element()));
  }
  return lanes;
}

std::string OpenClEmitter::LoadText(const ir::Buffer& buffer,
                                    const std::string& index) {
  const Memory& memory = memory_.at(buffer.get());
  if (IsHalf(buffer->dtype)) {
    return absl::StrCat("vload_half(", index, ", (const ", memory.space,
                        " half*)", memory.name, ")");
  }
  const std::string stored = absl::StrCat(memory.name, "[", index, "]");
  if (IsBFloat(buffer->dtype)) {
    return Call("from_bfloat", buffer->dtype, stored);
  }
  return buffer->dtype.is_bool() ? absl::StrCat("(", stored, " != 0)") : stored;
}

}  // namespace tilefarm::codegen
