// Scalar expressions. No operation traps: division by zero gives zero, shift
// counts wrap, conversions saturate.
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/expr_facts.h"
#include "compiler/codegen/opencl_emitter.h"

namespace tilefarm::codegen {
namespace {

constexpr int64_t kMostInt = std::numeric_limits<int32_t>::max();

// T: the type, U: the unsigned one. Signed overflow is not defined in C.
constexpr struct {
  std::string_view name;
  std::string_view text;
} kHelpers[] = {
    // b if either is not a number.
    {"min", "static T tf_min_T(T a, T b) { return a < b ? a : b; }"},
    {"max", "static T tf_max_T(T a, T b) { return a > b ? a : b; }"},
    {"div",
     "static T tf_div_T(T a, T b) {\n"
     "  return b == 0 ? (T)0 : b == (T)-1 ? (T)(0 - (U)a) : (T)(a / b);\n"
     "}"},
    {"udiv", "static T tf_udiv_T(T a, T b) { return b == 0 ? (T)0 : a / b; }"},
    {"mod",
     "static T tf_mod_T(T a, T b) {\n"
     "  return b == 0 || b == (T)-1 ? (T)0 : (T)(a % b);\n"
     "}"},
    {"umod", "static T tf_umod_T(T a, T b) { return b == 0 ? (T)0 : a % b; }"},
    {"floordiv",
     "static T tf_floordiv_T(T a, T b) {\n"
     "  if (b == 0) return 0;\n"
     "  if (b == (T)-1) return (T)(0 - (U)a);\n"
     "  return (T)(a / b - (a % b != 0 && ((a % b) ^ b) < 0));\n"
     "}"},
    {"floormod",
     "static T tf_floormod_T(T a, T b) {\n"
     "  if (b == 0 || b == (T)-1) return 0;\n"
     "  const T rest = (T)(a % b);\n"
     "  return (T)(rest != 0 && (rest ^ b) < 0 ? rest + b : rest);\n"
     "}"},
    {"floorquotient",
     "static T tf_floorquotient_T(T a, T b) { return floor(a / b); }"},
    {"floorrest",
     "static T tf_floorrest_T(T a, T b) { return a - floor(a / b) * b; }"},
    {"sigmoid",
     "static T tf_sigmoid_T(T x) { return (T)1 / ((T)1 + exp(-x)); }"},
    {"round_half",
     "static float tf_round_half(float x) {\n"
     "  ushort bits;\n"
     "  vstore_half_rte(x, 0, (half*)&bits);\n"
     "  return vload_half(0, (const half*)&bits);\n"
     "}"},
    // To nearest, ties to even; what is not a number stays so.
    {"to_bfloat",
     "static ushort tf_to_bfloat(float x) {\n"
     "  const uint bits = as_uint(x);\n"
     "  if (isnan(x)) return (ushort)(bits >> 16 | 0x40);\n"
     "  return (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);\n"
     "}"},
    {"from_bfloat",
     "static float tf_from_bfloat(ushort bits) {\n"
     "  return as_float((uint)bits << 16);\n"
     "}"},
};

std::string_view HelperText(std::string_view name) {
  for (const auto& helper : kHelpers) {
    if (helper.name == name) return helper.text;
  }
  return "";
}

std::string Unsigned(ir::DataType dtype) {
  return OpenClType(ir::DataType::UInt(dtype.bits));
}

std::string InParentheses(const std::string& a, std::string_view op,
                          const std::string& b) {
  return absl::StrCat("(", a, " ", std::string(op), " ", b, ")");
}

std::string IntText(int64_t value, ir::DataType dtype) {
  if (dtype.is_bool()) return value != 0 ? "true" : "false";
  if (dtype.is_uint()) {
    const auto bits = static_cast<uint64_t>(value);
    if (dtype.bits == 64) return absl::StrCat(bits, "ul");
    return absl::StrCat(bits & (~uint64_t{0} >> (64 - dtype.bits)), "u");
  }
  // The least number is no literal.
  if (dtype.bits == 64) {
    if (value == std::numeric_limits<int64_t>::min()) {
      return "(-9223372036854775807l - 1)";
    }
    return value < 0 ? absl::StrCat("(", value, "l)")
                     : absl::StrCat(value, "l");
  }
  if (value == std::numeric_limits<int32_t>::min()) return "(-2147483647 - 1)";
  return value < 0 ? absl::StrCat("(", value, ")") : absl::StrCat(value);
}

}  // namespace

std::string OpenClType(ir::DataType dtype) {
  if (dtype.is_bool()) return "bool";
  if (dtype.is_float()) return dtype.bits == 64 ? "double" : "float";
  const char* name = dtype.bits == 8    ? "char"
                     : dtype.bits == 16 ? "short"
                     : dtype.bits == 32 ? "int"
                                        : "long";
  return absl::StrCat(dtype.is_uint() ? "u" : "", name);
}

std::string OpenClMemoryType(ir::DataType dtype) {
  if (dtype.is_bool()) return "uchar";
  if (dtype.is_float() && dtype.bits == 16) return "ushort";
  return OpenClType(dtype);
}

std::string OpenClEmitter::Prelude() const {
  std::string text = "// OpenCL C 1.2\n";
  if (has_double_) {
    absl::StrAppend(&text, "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
  }
  for (const std::string& helper : helpers_) {
    absl::StrAppend(&text, helper, "\n");
  }
  return text;
}

std::string OpenClEmitter::Call(std::string_view helper, ir::DataType dtype,
                                const std::string& arguments) {
  const std::string type = OpenClType(dtype);
  const std::string_view text = HelperText(helper);
  const bool generic = text.find("_T(") != std::string_view::npos;
  std::string name = absl::StrCat("tf_", std::string(helper));
  if (generic) {
    absl::StrAppend(&name, "_", type);
    std::string definition;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto is_name = [&](size_t at) {
        return at < text.size() &&
               std::isalnum(static_cast<unsigned char>(text[at])) != 0;
      };
      const bool alone = !is_name(i + 1) && (i == 0 || !is_name(i - 1));
      if (text[i] == 'T' && alone) {
        definition += type;
      } else if (text[i] == 'U' && alone) {
        definition += Unsigned(dtype);
      } else {
        definition += text[i];
      }
    }
    helpers_.insert(definition);
  } else {
    helpers_.insert(std::string(text));
  }
  return absl::StrCat(name, "(", arguments, ")");
}

bool OpenClEmitter::Fits(const ir::Expr& expr) {
  return math_->Bounds(expr).Within(-kMostInt, kMostInt);
}

std::string OpenClEmitter::Index(const ir::Expr& expr) {
  std::string text = Text(expr);
  if (text.empty() || text.front() != '(') return text;
  int depth = 0;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return text;
  }
  return text.substr(1, text.size() - 2);
}

OpenClEmitter::Value OpenClEmitter::Emit(const ir::Expr& expr) {
  if (!status_.ok()) return {"0"};
  has_double_ |= expr->dtype.element() == ir::DataType::Float(64);
  switch (expr->kind) {
    case ir::ExprKind::kVar: {
      const auto it = vars_.find(ir::As<ir::VarNode>(expr));
      if (it != vars_.end()) return it->second;
      return {Fail(absl::InternalError(
          absl::StrCat("variable ", ir::As<ir::VarNode>(expr)->name,
                       " has no value here")))};
    }
    case ir::ExprKind::kIntConst: {
      const int64_t value = ir::As<ir::IntConstNode>(expr)->value;
      const bool narrow =
          expr->dtype.is_index() && value >= -kMostInt && value <= kMostInt;
      return {IntText(value, narrow ? ir::DataType::Int(32) : expr->dtype),
              narrow};
    }
    case ir::ExprKind::kFloatConst:
      return {Constant(*ir::As<ir::FloatConstNode>(expr))};
    case ir::ExprKind::kBinary:
      return EmitBinary(*ir::As<ir::BinaryNode>(expr));
    case ir::ExprKind::kNot:
      return {absl::StrCat("!", Text(ir::As<ir::NotNode>(expr)->a))};
    case ir::ExprKind::kCast:
      return EmitCast(*ir::As<ir::CastNode>(expr));
    case ir::ExprKind::kSelect: {
      const auto* e = ir::As<ir::SelectNode>(expr);
      return Choice(e->condition, e->true_value, e->false_value);
    }
    case ir::ExprKind::kCall:
      return EmitCall(*ir::As<ir::CallNode>(expr));
    case ir::ExprKind::kLoad:
      return EmitLoad(*ir::As<ir::LoadNode>(expr));
    case ir::ExprKind::kLet: {
      const auto* e = ir::As<ir::LetNode>(expr);
      if (hoisted_.contains(expr.get())) return Emit(e->body);
      if (lazy_ == 0) {
        Define(e->var, e->value);
      } else {
        vars_[e->var.get()] = Emit(e->value);
      }
      return Emit(e->body);
    }
    case ir::ExprKind::kMachineOp:
      return EmitMachineOp(*ir::As<ir::MachineOpNode>(expr));
    case ir::ExprKind::kRamp:
    case ir::ExprKind::kBroadcast:
      break;
  }
  return {Fail(absl::InternalError("a vector where a scalar is expected"))};
}

OpenClEmitter::Value OpenClEmitter::Choice(const ir::Expr& condition,
                                           const ir::Expr& a,
                                           const ir::Expr& b) {
  const std::string chosen = Text(condition);
  return Lazily([&]() -> Value {
    const Value first = Emit(a), second = Emit(b);
    // The type of the result is that of both sides.
    const bool is_long = a->dtype.is_index() && first.narrow != second.narrow;
    return {
        absl::StrCat("(", chosen, " ? ", is_long ? "(long)" : "", first.text,
                     " : ", is_long ? "(long)" : "", second.text, ")"),
        first.narrow && second.narrow};
  });
}

std::string OpenClEmitter::Constant(const ir::FloatConstNode& e) {
  const bool is_double = e.dtype.bits == 64;
  const double value =
      is_double ? e.value : static_cast<double>(static_cast<float>(e.value));
  if (std::isnan(value)) return is_double ? "(double)NAN" : "NAN";
  if (std::isinf(value)) {
    return absl::StrCat("(", value < 0 ? "-" : "",
                        is_double ? "(double)INFINITY)" : "INFINITY)");
  }
  std::string text = is_double ? absl::StrFormat("%.17g", value)
                               : absl::StrFormat("%.9g", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (!is_double) text += "f";
  return text.front() == '-' ? absl::StrCat("(", text, ")") : text;
}

OpenClEmitter::Value OpenClEmitter::EmitBinary(const ir::BinaryNode& e) {
  using ir::BinaryOp;
  const ir::DataType dtype = e.a->dtype;
  if (e.op == BinaryOp::kAnd || e.op == BinaryOp::kOr) {
    const std::string a = Text(e.a);
    return Lazily([&]() -> Value {
      return {
          InParentheses(a, e.op == BinaryOp::kAnd ? "&&" : "||", Text(e.b))};
    });
  }
  Value a = Emit(e.a), b = Emit(e.b);
  if (dtype.is_float()) {
    return {EmitFloatBinary(e.op, a.text, b.text, dtype)};
  }
  if (!dtype.is_index()) {
    return {EmitIntBinary(e.op, a.text, b.text, dtype, /*wraps=*/true)};
  }
  const bool compares = ir::IsComparison(e.op);
  const ir::Expr self = ir::MakeBinary(e.op, e.a, e.b);
  const arith::Interval bounds =
      compares ? arith::Interval{} : math_->Bounds(self);
  const bool narrow =
      a.narrow && b.narrow && (compares || bounds.Within(-kMostInt, kMostInt));
  if (!narrow) {
    if (a.narrow) a.text = absl::StrCat("(long)", a.text);
    if (b.narrow) b.text = absl::StrCat("(long)", b.text);
  }
  const ir::DataType type = narrow ? ir::DataType::Int(32) : dtype;
  const auto constant = ir::AsInt(e.b);
  const bool floors =
      e.op == BinaryOp::kFloorDiv || e.op == BinaryOp::kFloorMod;
  if (floors && constant && *constant > 0 && math_->Bounds(e.a).lo >= 0) {
    const bool power = (*constant & (*constant - 1)) == 0;
    if (!power) {
      return {InParentheses(a.text, e.op == BinaryOp::kFloorDiv ? "/" : "%",
                            b.text),
              narrow};
    }
    return {e.op == BinaryOp::kFloorDiv
                ? InParentheses(a.text, ">>",
                                absl::StrCat(std::countr_zero(
                                    static_cast<uint64_t>(*constant))))
                : InParentheses(a.text, "&", IntText(*constant - 1, type)),
            narrow};
  }
  return {EmitIntBinary(e.op, a.text, b.text, type,
                        /*wraps=*/!compares && !narrow && !bounds.bounded()),
          narrow && !compares};
}

std::string OpenClEmitter::EmitFloatBinary(ir::BinaryOp op,
                                           const std::string& a,
                                           const std::string& b,
                                           ir::DataType dtype) {
  using ir::BinaryOp;
  const std::string both = absl::StrCat(a, ", ", b);
  switch (op) {
    case BinaryOp::kAdd:
      return InParentheses(a, "+", b);
    case BinaryOp::kSub:
      return InParentheses(a, "-", b);
    case BinaryOp::kMul:
      return InParentheses(a, "*", b);
    case BinaryOp::kDiv:
      return InParentheses(a, "/", b);
    case BinaryOp::kMod:
      return absl::StrCat("fmod(", both, ")");
    case BinaryOp::kFloorDiv:
      return Call("floorquotient", dtype, both);
    case BinaryOp::kFloorMod:
      return Call("floorrest", dtype, both);
    case BinaryOp::kMin:
      return Call("min", dtype, both);
    case BinaryOp::kMax:
      return Call("max", dtype, both);
    default:
      break;
  }
  if (ir::IsComparison(op)) {
    return InParentheses(a, ir::BinaryOpName(op), b);
  }
  return Fail(absl::InvalidArgumentError(
      absl::StrCat("operator ", std::string(ir::BinaryOpName(op)),
                   " is not defined for floats")));
}

std::string OpenClEmitter::EmitIntBinary(ir::BinaryOp op, const std::string& a,
                                         const std::string& b,
                                         ir::DataType dtype, bool wraps) {
  using ir::BinaryOp;
  const std::string type = OpenClType(dtype);
  const std::string both = absl::StrCat(a, ", ", b);
  const std::string_view sign = ir::BinaryOpName(op);
  // In an unsigned type of at least 32 bits, then back.
  const auto wrapping = [&](const std::string& right) {
    if (!wraps) return InParentheses(a, sign, right);
    const std::string wide = dtype.bits == 64 ? "(ulong)" : "(uint)";
    return absl::StrCat("(", type, ")",
                        InParentheses(wide + a, sign, wide + right));
  };
  const auto narrowed = [&](const std::string& text) {
    return dtype.bits < 32 ? absl::StrCat("(", type, ")", text) : text;
  };
  const auto count = [&] {
    return InParentheses(b, "&", IntText(dtype.bits - 1, dtype));
  };
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul:
      return wrapping(b);
    case BinaryOp::kDiv:
      return Call(dtype.is_int() ? "div" : "udiv", dtype, both);
    case BinaryOp::kMod:
      return Call(dtype.is_int() ? "mod" : "umod", dtype, both);
    case BinaryOp::kFloorDiv:
      return Call(dtype.is_int() ? "floordiv" : "udiv", dtype, both);
    case BinaryOp::kFloorMod:
      return Call(dtype.is_int() ? "floormod" : "umod", dtype, both);
    case BinaryOp::kMin:
      return Call("min", dtype, both);
    case BinaryOp::kMax:
      return Call("max", dtype, both);
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
      return narrowed(InParentheses(a, sign, b));
    case BinaryOp::kShiftLeft:
      return absl::StrCat(
          "(", type, ")",
          InParentheses(
              absl::StrCat(dtype.bits == 64 ? "(ulong)" : "(uint)", a), "<<",
              count()));
    case BinaryOp::kShiftRight:
      return narrowed(InParentheses(a, ">>", count()));
    default:
      return InParentheses(a, sign, b);  // comparisons
  }
}

OpenClEmitter::Value OpenClEmitter::EmitCast(const ir::CastNode& e) {
  const ir::DataType to = e.dtype, from = e.value->dtype;
  const Value value = Emit(e.value);
  has_double_ |= from == ir::DataType::Float(64);
  if (to.is_bool()) return {InParentheses(value.text, "!=", "0")};
  std::string text = absl::StrCat("(", OpenClType(to), ")", value.text);
  if (from.is_float() && to.is_integral()) {
    // What is not a number becomes 0.
    return {absl::StrCat("convert_", OpenClType(to), "_sat(", value.text, ")")};
  }
  if (to.is_index() && from.is_integral() && from.bits <= 32 &&
      !(from.is_uint() && from.bits == 32)) {
    return {absl::StrCat("(int)", value.text), /*narrow=*/true};
  }
  if (!RoundsTo16Bits(e)) {
    return {to.is_float() && from.is_float() && from.bits <= 32 && to.bits <= 32
                ? value.text
                : text};
  }
  if (to == ir::DataType::BFloat16()) {
    return {Call("from_bfloat", to, Call("to_bfloat", to, text))};
  }
  return {Call("round_half", to, text)};
}

OpenClEmitter::Value OpenClEmitter::EmitLoad(const ir::LoadNode& e) {
  if (e.indices.size() != 1) {
    return {Fail(absl::InternalError(
        absl::StrCat("buffer ", e.buffer->name, " was not flattened")))};
  }
  if (e.predicate == nullptr || ir::AsInt(e.predicate) == 1) {
    return {LoadText(e.buffer, Index(e.indices[0]))};
  }
  const std::string condition = Text(e.predicate);
  return Lazily([&]() -> Value {
    return {absl::StrCat("(", condition, " ? ",
                         LoadText(e.buffer, Index(e.indices[0])), " : 0)")};
  });
}

OpenClEmitter::Value OpenClEmitter::EmitMachineOp(const ir::MachineOpNode& e) {
  using ir::MachineOp;
  const auto reduce = [&](ir::BinaryOp op) -> Value {
    // In halves, as others do it.
    std::vector<ir::Expr> lanes;
    for (int i = 0; i < e.args[0]->dtype.lanes; ++i) {
      lanes.push_back(Lane(e.args[0], i));
    }
    while (lanes.size() % 2 == 0) {
      const size_t half = lanes.size() / 2;
      for (size_t i = 0; i < half; ++i) {
        lanes[i] = ir::MakeBinary(op, lanes[i], lanes[half + i]);
      }
      lanes.resize(half);
    }
    ir::Expr all = lanes[0];
    for (size_t i = 1; i < lanes.size(); ++i) {
      all = ir::MakeBinary(op, all, lanes[i]);
    }
    return Emit(all);
  };
  switch (e.op) {
    case MachineOp::kLaneSum:
      return reduce(ir::BinaryOp::kAdd);
    case MachineOp::kLaneProduct:
      return reduce(ir::BinaryOp::kMul);
    case MachineOp::kLaneMin:
      return reduce(ir::BinaryOp::kMin);
    case MachineOp::kLaneMax:
      return reduce(ir::BinaryOp::kMax);
    default:
      return Emit(MachineOpLane(e, 0));
  }
}

OpenClEmitter::Value OpenClEmitter::EmitCall(const ir::CallNode& e) {
  using ir::Intrinsic;
  if (e.op == Intrinsic::kIfThenElse) {
    return Choice(e.args[0], e.args[1], e.args[2]);
  }
  std::vector<std::string> args;
  for (const ir::Expr& arg : e.args) args.push_back(Text(arg));
  const ir::DataType dtype = e.args[0]->dtype;
  if (e.op == Intrinsic::kReinterpret) {
    return {absl::StrCat("as_", OpenClType(e.dtype), "((", OpenClType(dtype),
                         ")", args[0], ")")};
  }
  if (dtype.is_float()) return {EmitFloatCall(e, args)};
  if (dtype.is_index()) {
    for (std::string& arg : args) arg = absl::StrCat("(long)", arg);
  }
  const std::string type = absl::StrCat("(", OpenClType(e.dtype), ")");
  switch (e.op) {
    case Intrinsic::kAbs:
      return {dtype.is_int() ? absl::StrCat(type, "abs(", args[0], ")")
                             : args[0]};
    case Intrinsic::kPopcount:
      return {absl::StrCat(type, "popcount(", args[0], ")")};
    case Intrinsic::kClz:
      return {absl::StrCat(type, "clz(", args[0], ")")};
    case Intrinsic::kFloor:
    case Intrinsic::kCeil:
    case Intrinsic::kRound:
    case Intrinsic::kNearbyint:
    case Intrinsic::kTrunc:
      return {args[0]};
    case Intrinsic::kFma:
      return {EmitIntBinary(ir::BinaryOp::kAdd,
                            EmitIntBinary(ir::BinaryOp::kMul, args[0], args[1],
                                          dtype, /*wraps=*/true),
                            args[2], dtype, /*wraps=*/true)};
    case Intrinsic::kIsNan:
    case Intrinsic::kIsInf:
      return {"false"};
    default:
      return {Fail(absl::InvalidArgumentError(
          absl::StrCat("T.", std::string(ir::IntrinsicName(e.op)),
                       " is not defined for ", dtype.ToString())))};
  }
}

std::string OpenClEmitter::EmitFloatCall(const ir::CallNode& e,
                                         const std::vector<std::string>& args) {
  using ir::Intrinsic;
  const ir::DataType dtype = e.args[0]->dtype;
  const std::string all = absl::StrJoin(args, ", ");
  switch (e.op) {
    case Intrinsic::kSigmoid:
      return Call("sigmoid", dtype, all);
    case Intrinsic::kAbs:
      return absl::StrCat("fabs(", all, ")");
    case Intrinsic::kNearbyint:
      return absl::StrCat("rint(", all, ")");
    case Intrinsic::kIsNan:
    case Intrinsic::kIsInf:
      return absl::StrCat("(", std::string(ir::IntrinsicName(e.op)), "(", all,
                          ") != 0)");
    case Intrinsic::kPopcount:
    case Intrinsic::kClz:
    case Intrinsic::kIfThenElse:
    case Intrinsic::kReinterpret:
      return Fail(absl::InvalidArgumentError(
          absl::StrCat("T.", std::string(ir::IntrinsicName(e.op)),
                       " is not defined for ", dtype.ToString())));
    default:
      // The others have the names of OpenCL's functions.
      return absl::StrCat(std::string(ir::IntrinsicName(e.op)), "(", all, ")");
  }
}

}  // namespace tilefarm::codegen
