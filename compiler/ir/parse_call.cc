// Parses calls in expressions: T.max(...), T.float32(...), T.Cast(...),
// T.Let(...).
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/near_name.h"
#include "base/status_macros.h"
#include "compiler/ir/parser_internal.h"

namespace tilefarm::ir {
namespace {

struct NamedOp {
  std::string_view name;
  BinaryOp op;
};
// Operators by the names of TVM's functions and nodes.
constexpr NamedOp kNamedOps[] = {{"max", BinaryOp::kMax},
                                 {"min", BinaryOp::kMin},
                                 {"Max", BinaryOp::kMax},
                                 {"Min", BinaryOp::kMin},
                                 {"Add", BinaryOp::kAdd},
                                 {"Sub", BinaryOp::kSub},
                                 {"Mul", BinaryOp::kMul},
                                 {"Div", BinaryOp::kDiv},
                                 {"Mod", BinaryOp::kMod},
                                 {"FloorDiv", BinaryOp::kFloorDiv},
                                 {"FloorMod", BinaryOp::kFloorMod},
                                 {"truncdiv", BinaryOp::kDiv},
                                 {"truncmod", BinaryOp::kMod},
                                 {"floordiv", BinaryOp::kFloorDiv},
                                 {"floormod", BinaryOp::kFloorMod},
                                 {"indexdiv", BinaryOp::kFloorDiv},
                                 {"indexmod", BinaryOp::kFloorMod},
                                 {"EQ", BinaryOp::kEQ},
                                 {"NE", BinaryOp::kNE},
                                 {"LT", BinaryOp::kLT},
                                 {"LE", BinaryOp::kLE},
                                 {"GT", BinaryOp::kGT},
                                 {"GE", BinaryOp::kGE},
                                 {"And", BinaryOp::kAnd},
                                 {"Or", BinaryOp::kOr},
                                 {"bitwise_and", BinaryOp::kBitAnd},
                                 {"bitwise_or", BinaryOp::kBitOr},
                                 {"bitwise_xor", BinaryOp::kBitXor},
                                 {"shift_left", BinaryOp::kShiftLeft},
                                 {"shift_right", BinaryOp::kShiftRight}};

// Keywords that TVM's functions have for their first, second and third operand.
constexpr std::array<std::array<std::string_view, 8>, 3> kOperandNames = {{
    {"a", "x", "x1", "lhs", "cond", "condition", "expr", "arg0"},
    {"b", "y", "x2", "rhs", "t", "true_value", "arg1", "exponent"},
    {"c", "z", "f", "false_value", "arg2"},
}};

// Other names of intrinsics.
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"fabs", "abs"}, {"power", "pow"}, {"copy_sign", "copysign"}};

// Functions that are neither named operators nor intrinsics.
constexpr std::string_view kOtherFunctions[] = {
    "Cast",     "Let",       "Not",     "Select",      "acosh",    "asinh",
    "atanh",    "ceildiv",   "boolean", "bitwise_not", "cast",     "infinity",
    "isfinite", "max_value", "let",     "likely",      "min_value"};

}  // namespace

std::vector<std::string> FunctionNames() {
  std::vector<std::string> names(std::begin(kOtherFunctions),
                                 std::end(kOtherFunctions));
  for (const NamedOp& named : kNamedOps) names.emplace_back(named.name);
  for (const auto& [alias, target] : kAliases) names.emplace_back(alias);
  for (int i = 0; i <= static_cast<int>(Intrinsic::kReinterpret); ++i) {
    names.emplace_back(IntrinsicName(static_cast<Intrinsic>(i)));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

absl::StatusOr<std::vector<Value>> Parser::ParseArgs(Callee& callee,
                                                     int count) {
  TF_RETURN_IF_ERROR(Expect("(", "for the arguments"));
  std::vector<std::optional<Value>> slots;
  size_t position = 0;
  while (!AtOp(")")) {
    size_t slot = position++;
    if (Peek().kind == TokenKind::kName && AtOp("=", 1)) {
      if (TryKeyword({"dtype"})) {
        callee.dtype_offset = Peek().offset;
        TF_ASSIGN_OR_RETURN(callee.dtype, ParseDType());
        TF_RETURN_IF_ERROR(NextItem(")"));
        continue;
      }
      for (slot = 0; slot < std::size(kOperandNames); ++slot) {
        const auto& names = kOperandNames[slot];
        if (std::find(names.begin(), names.end(), Text()) != names.end()) break;
      }
      if (static_cast<int>(slot) >= count ||
          (slot < slots.size() && slots[slot])) {
        return ErrorHere(absl::StrCat("T.", callee.name, " takes no argument '",
                                      std::string(Text()), "' here"));
      }
      at_ += 2;
    }
    TF_ASSIGN_OR_RETURN(Value value, ParseExpr());
    slots.resize(std::max(slots.size(), slot + 1));
    slots[slot] = std::move(value);
    TF_RETURN_IF_ERROR(NextItem(")"));
  }
  TF_RETURN_IF_ERROR(Expect(")", "after the arguments"));
  std::vector<Value> args;
  for (std::optional<Value>& slot : slots) {
    if (slot) args.push_back(*std::move(slot));
  }
  if (static_cast<int>(args.size()) != count || slots.size() != args.size()) {
    return Error(callee.offset,
                 absl::StrCat("T.", callee.name, " takes ", count, " argument",
                              count == 1 ? "" : "s", ", not ", args.size()));
  }
  return args;
}

// Converts the result of a call to the dtype that TVM 0.8 to 0.10 printed
// besides its arguments.
absl::StatusOr<Value> Parser::WithDType(const Callee& callee, Value value) {
  const DataType from = value.expr->dtype;
  const DataType to = *callee.dtype;
  // Index arithmetic is int64 here, independent of TVM's index type.
  if (from == to || (from.is_index() && to == DataType::Int(32))) return value;
  if (value.weak) {
    TF_ASSIGN_OR_RETURN(value.expr,
                        At(callee.dtype_offset,
                           Adapt(value, to, absl::StrCat("T.", callee.name))));
    value.weak = false;
    return value;
  }
  return Error(callee.dtype_offset,
               absl::StrCat("T.", callee.name, " gives ", from.ToString(),
                            " here, not ", to.ToString()));
}

bool Parser::IsLoweredOnly(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "Broadcast", "Ramp",       "Shuffle",       "allocate_const", "attr",
      "broadcast", "env_thread", "launch_thread", "load",           "prefetch",
      "ramp",      "realize",    "store",         "vload",          "vscale"};
  return std::find(std::begin(kNames), std::end(kNames), name) !=
         std::end(kNames);
}

absl::Status Parser::UnknownCall(const Callee& callee) const {
  const std::string& name = callee.name;
  for (std::string_view part :
       {"call_", "tvm_", "extern", "packed", "Call", "intrin", "asm"}) {
    if (name.find(part) != std::string::npos) {
      return Error(callee.offset,
                   absl::StrCat("'", name,
                                "': calls of code outside the "
                                "program are not part of the language"));
    }
  }
  if (IsLoweredOnly(name)) {
    return Error(
        callee.offset,
        absl::StrCat("'T.", name,
                     "' exists in lowered code only; write blocks "
                     "and loops (T.parallel, T.vectorized, T.thread_binding)"));
  }
  if (!callee.prefixed) {
    return Error(callee.offset, absl::StrCat("unknown name '", name, "'"));
  }
  return Error(callee.offset,
               absl::StrCat("unknown function 'T.", name, "'",
                            SuggestName(name, FunctionNames()),
                            " (the language: docs/language.md)"));
}

absl::StatusOr<Value> Parser::ParseCall(Callee callee) {
  TF_ASSIGN_OR_RETURN(Value value, ParseCallOf(callee));
  if (!callee.dtype) return value;
  return WithDType(callee, std::move(value));
}

absl::StatusOr<Value> Parser::ParseCallOf(Callee& callee) {
  const std::string& name = callee.name;
  const size_t offset = callee.offset;
  if (!callee.prefixed && name != "max" && name != "min" && name != "abs") {
    return UnknownCall(callee);
  }
  if (name == "inf" || name == "nan") {
    return Error(offset, "write T.float32(\"inf\") or T.infinity(\"float32\")");
  }
  if (!AtOp("(")) {
    return ErrorHere(absl::StrCat("expected '(' after 'T.", name, "'"));
  }
  if (const auto dtype = DataType::Parse(name)) {
    return ParseTypedLiteral(callee, *dtype);
  }
  if (name == "boolean") return ParseTypedLiteral(callee, DataType::Bool());
  if (name == "Cast" || name == "cast" || name == "reinterpret") {
    return ParseCastCall(callee);
  }
  if (name == "Let") return ParseLetExpr(callee);
  if (name == "let") return ParseOldLetExpr(callee);
  if (name == "infinity" || name == "min_value" || name == "max_value") {
    TF_RETURN_IF_ERROR(Expect("(", "for the dtype"));
    TryKeyword({"dtype"});
    TF_ASSIGN_OR_RETURN(DataType dtype, ParseDType());
    TF_RETURN_IF_ERROR(Expect(")", "after the dtype"));
    Value value;
    const bool low = name == "min_value";
    if (dtype.is_float()) {
      double largest = dtype.bits == 64   ? std::numeric_limits<double>::max()
                       : dtype.bits == 32 ? std::numeric_limits<float>::max()
                       : dtype == DataType::Float(16) ? 65504.0
                                                      : 0x1.FEp127;
      if (name == "infinity") largest = std::numeric_limits<double>::infinity();
      value.expr = FloatConst(low ? -largest : largest, dtype);
    } else if (name == "infinity") {
      return Error(offset, "T.infinity needs a float dtype");
    } else if (dtype.is_bool()) {
      value.expr = BoolConst(!low);
    } else if (dtype.is_uint()) {
      value.expr = IntConst(
          low ? 0 : static_cast<int64_t>(~uint64_t{0} >> (64 - dtype.bits)),
          dtype);
    } else {
      const int64_t high =
          static_cast<int64_t>(~uint64_t{0} >> (65 - dtype.bits));
      value.expr = IntConst(low ? -high - 1 : high, dtype);
    }
    return Checked(std::move(value), offset);
  }
  if (name == "Select" || name == "if_then_else") {
    TF_ASSIGN_OR_RETURN(std::vector<Value> args, ParseArgs(callee, 3));
    return Checked(BuildChoice(name == "Select", args[0], args[1], args[2]),
                   offset);
  }
  if (name == "likely") {
    TF_ASSIGN_OR_RETURN(std::vector<Value> args, ParseArgs(callee, 1));
    return args[0];
  }
  if (name == "Not") {
    TF_ASSIGN_OR_RETURN(std::vector<Value> args, ParseArgs(callee, 1));
    if (!args[0].expr->dtype.is_bool()) {
      return Error(offset, "T.Not needs a bool");
    }
    args[0].expr = MakeNot(args[0].expr);
    ++args[0].depth;
    return Checked(args[0], offset);
  }
  if (name == "isfinite") {
    TF_ASSIGN_OR_RETURN(std::vector<Value> args, ParseArgs(callee, 1));
    TF_ASSIGN_OR_RETURN(Value nan,
                        At(offset, BuildCall(Intrinsic::kIsNan, {args[0]})));
    TF_ASSIGN_OR_RETURN(Value inf,
                        At(offset, BuildCall(Intrinsic::kIsInf, {args[0]})));
    nan.expr = MakeNot(nan.expr);
    inf.expr = MakeNot(inf.expr);
    return Checked(BuildBinary(BinaryOp::kAnd, nan, inf), offset);
  }
  if (name == "ceildiv") {
    TF_ASSIGN_OR_RETURN(std::vector<Value> args, ParseArgs(callee, 2));
    Value one;
    one.expr = IntConst(1);
    one.weak = true;
    TF_ASSIGN_OR_RETURN(
        Value sum, At(offset, BuildBinary(BinaryOp::kAdd, args[0], args[1])));
    TF_ASSIGN_OR_RETURN(sum, At(offset, BuildBinary(BinaryOp::kSub, sum, one)));
    return Checked(BuildBinary(BinaryOp::kFloorDiv, sum, args[1]), offset);
  }
  for (const NamedOp& named : kNamedOps) {
    if (named.name != name) continue;
    TF_ASSIGN_OR_RETURN(std::vector<Value> args, ParseArgs(callee, 2));
    return Checked(BuildBinary(named.op, args[0], args[1]), offset);
  }
  if (name == "bitwise_not") {
    TF_ASSIGN_OR_RETURN(std::vector<Value> args, ParseArgs(callee, 1));
    return Checked(BuildComplement(std::move(args[0])), offset);
  }
  if (name == "asinh" || name == "acosh" || name == "atanh") {
    TF_ASSIGN_OR_RETURN(std::vector<Value> args, ParseArgs(callee, 1));
    return Checked(BuildInverseHyperbolic(name, std::move(args[0])), offset);
  }
  std::string_view canonical = name;
  for (const auto& [alias, target] : kAliases) {
    if (name == alias) canonical = target;
  }
  if (const auto intrinsic = FindIntrinsic(canonical)) {
    TF_ASSIGN_OR_RETURN(std::vector<Value> args,
                        ParseArgs(callee, IntrinsicArity(*intrinsic)));
    return Checked(BuildCall(*intrinsic, std::move(args)), offset);
  }
  return UnknownCall(callee);
}

absl::StatusOr<Value> Parser::ParseTypedLiteral(const Callee& callee,
                                                DataType dtype) {
  TF_RETURN_IF_ERROR(Expect("(", "for the value"));
  if (AtOp(")")) {
    return Error(callee.offset,
                 absl::StrCat("T.", callee.name,
                              "() makes a symbolic "
                              "variable; shapes are static, write the number"));
  }
  const size_t offset = Peek().offset;
  Value value;
  // T.float32("inf") and T.float32(float("inf")).
  const bool wrapped = AtName("float") && AtOp("(", 1) &&
                       Peek(2).kind == TokenKind::kString && AtOp(")", 3);
  if (wrapped) at_ += 2;
  if (Peek().kind == TokenKind::kString && dtype.is_float()) {
    TF_ASSIGN_OR_RETURN(std::string text, ExpectString("a number"));
    double number = 0;
    if (!absl::SimpleAtod(text, &number)) {
      return Error(offset, absl::StrCat("'", text, "' is no number"));
    }
    if (std::isnan(number)) number = std::numeric_limits<double>::quiet_NaN();
    if (wrapped) ++at_;
    value.expr = FloatConst(number, DataType::Float(64));
    value.weak = true;
    TF_ASSIGN_OR_RETURN(
        value.expr,
        At(offset, Adapt(value, dtype,
                         absl::StrCat("the argument of T.", callee.name))));
    value.weak = false;
  } else if (dtype == DataType::UInt(64) && Peek().kind == TokenKind::kInt &&
             AtOp(")", 1) && Peek().length == 20) {
    // A literal above the range of int64.
    uint64_t number = 0;
    for (char c : Text()) {
      if (c < '0' || c > '9' ||
          __builtin_mul_overflow(number, uint64_t{10}, &number) ||
          __builtin_add_overflow(number, static_cast<uint64_t>(c - '0'),
                                 &number)) {
        return Error(offset, "the integer does not fit in uint64");
      }
    }
    ++at_;
    value.expr = IntConst(static_cast<int64_t>(number), dtype);
  } else {
    TF_ASSIGN_OR_RETURN(value, ParseExpr());
    if (dtype.is_bool() && value.weak && AsInt(value.expr)) {
      value.expr = BoolConst(*AsInt(value.expr) != 0);
    } else if (value.weak) {
      TF_ASSIGN_OR_RETURN(
          value.expr,
          At(offset, Adapt(value, dtype,
                           absl::StrCat("the argument of T.", callee.name))));
    } else {
      value.expr = MakeCast(dtype, value.expr);
      ++value.depth;
    }
    value.weak = false;
  }
  TF_RETURN_IF_ERROR(Expect(")", "after the value"));
  return Checked(std::move(value), callee.offset);
}

absl::StatusOr<Value> Parser::ParseCastCall(const Callee& callee) {
  TF_RETURN_IF_ERROR(Expect("(", "for the arguments"));
  std::optional<DataType> dtype;
  // T.Cast(dtype, value) and T.cast(value, dtype); T.reinterpret likewise.
  if (TryKeyword({"dtype"}) || Peek().kind == TokenKind::kString) {
    TF_ASSIGN_OR_RETURN(dtype, ParseDType());
    TF_RETURN_IF_ERROR(Expect(",", "after the dtype"));
  }
  TryKeyword({"value"});
  TF_ASSIGN_OR_RETURN(Value value, ParseExpr());
  if (!dtype) {
    TF_RETURN_IF_ERROR(Expect(",", "after the value"));
    TryKeyword({"dtype"});
    TF_ASSIGN_OR_RETURN(dtype, ParseDType());
  }
  TryOp(",");
  TF_RETURN_IF_ERROR(Expect(")", "after the arguments"));
  return Checked(callee.name == "reinterpret"
                     ? BuildReinterpret(*dtype, std::move(value))
                     : BuildCast(*dtype, std::move(value)),
                 callee.offset);
}

// T.let(x, value, body) after x = T.var(...).
absl::StatusOr<Value> Parser::ParseOldLetExpr(const Callee& callee) {
  TF_RETURN_IF_ERROR(Expect("(", "for the arguments"));
  const size_t name_at = Peek().offset;
  TF_ASSIGN_OR_RETURN(const std::string name, ExpectName("a variable"));
  const Symbol* symbol = Lookup(name);
  if (symbol == nullptr || symbol->kind != Symbol::kUnboundVar) {
    return Error(name_at,
                 absl::StrCat("'", name, "' was not declared with T.var"));
  }
  TF_RETURN_IF_ERROR(Expect(",", "after the variable"));
  const size_t value_at = Peek().offset;
  TF_ASSIGN_OR_RETURN(Value value, ParseExpr());
  TF_ASSIGN_OR_RETURN(
      value.expr,
      At(value_at, Adapt(value, symbol->var->dtype,
                         absl::StrCat("the value of '", name, "'"))));
  TF_RETURN_IF_ERROR(Expect(",", "after the value"));
  const Symbol unbound = BindVar(name);
  absl::StatusOr<Value> body = ParseExpr();
  symbols_.at(name) = unbound;
  if (!body.ok()) return body;
  TF_RETURN_IF_ERROR(Expect(")", "after the body"));
  if (body->weak && body->expr->dtype.is_float()) {
    TF_ASSIGN_OR_RETURN(body->expr,
                        Adapt(*body, DataType::Float(32), "the body"));
  }
  Value out;
  out.expr = MakeLet(unbound.var, value.expr, body->expr);
  out.depth = 1 + std::max(value.depth, body->depth);
  return Checked(std::move(out), callee.offset);
}

// T.Let(body, where={x: value}): the value follows the body that uses it.
absl::StatusOr<Value> Parser::ParseLetExpr(const Callee& callee) {
  TF_RETURN_IF_ERROR(Expect("(", "for the arguments"));
  const size_t body_at = at_;
  // Find ", where={" at this level.
  int open = 0;
  for (; Peek().kind != TokenKind::kEnd; ++at_) {
    if (AtOp("(") || AtOp("[") || AtOp("{")) ++open;
    if (AtOp(")") || AtOp("]") || AtOp("}")) {
      if (open-- == 0) break;
    }
    if (open == 0 && AtOp(",") && AtName("where", 1) && AtOp("=", 2)) break;
  }
  if (!AtOp(",")) {
    return Error(callee.offset, "T.Let needs where={variable: value}");
  }
  at_ += 3;
  TF_RETURN_IF_ERROR(Expect("{", "for the variable"));
  const size_t name_at = Peek().offset;
  TF_ASSIGN_OR_RETURN(std::string name, ExpectName("a variable"));
  TF_RETURN_IF_ERROR(Expect(":", "after the variable"));
  const size_t value_at = Peek().offset;
  TF_ASSIGN_OR_RETURN(Value value, ParseExpr());
  TF_ASSIGN_OR_RETURN(
      value.expr, At(value_at, Adapt(value,
                                     value.weak && value.expr->dtype.is_float()
                                         ? DataType::Float(32)
                                         : value.expr->dtype,
                                     "the value")));
  if (AtOp(",")) {
    return ErrorHere("one variable in a T.Let; nest them for more");
  }
  TF_RETURN_IF_ERROR(Expect("}", "after the value"));
  TryOp(",");
  TF_RETURN_IF_ERROR(Expect(")", "after the arguments"));
  const size_t after = at_;
  const size_t mark = ScopeMark();
  Symbol symbol{Symbol::kLet};
  symbol.var = MakeLetVar(name, value.expr->dtype);
  symbol.block_depth = static_cast<int>(blocks_.size());
  const Var var = symbol.var;
  TF_RETURN_IF_ERROR(Declare(name, name_at, std::move(symbol)));
  at_ = body_at;
  TF_ASSIGN_OR_RETURN(Value body, ParseExpr());
  CloseScope(mark);
  if (!AtOp(",") || !AtName("where", 1)) {
    return ErrorHere(absl::StrCat("expected where=..., found ", Found()));
  }
  at_ = after;
  if (body.weak && body.expr->dtype.is_float()) {
    TF_ASSIGN_OR_RETURN(body.expr,
                        Adapt(body, DataType::Float(32), "the body"));
  }
  Value out;
  out.expr = MakeLet(var, value.expr, body.expr);
  out.depth = 1 + std::max(value.depth, body.depth);
  return Checked(std::move(out), callee.offset);
}

}  // namespace tilefarm::ir
