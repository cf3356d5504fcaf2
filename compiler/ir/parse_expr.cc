// Parses expressions: operators, literals, variables and loads.
#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/parser_internal.h"

namespace tilefarm::ir {
namespace {

struct Operator {
  std::string_view text;
  BinaryOp op;
  int precedence;
};
// Python's precedences; comparisons, `not` and `**` have methods of their own.
constexpr Operator kOperators[] = {
    {"|", BinaryOp::kBitOr, 4},       {"^", BinaryOp::kBitXor, 5},
    {"&", BinaryOp::kBitAnd, 6},      {"<<", BinaryOp::kShiftLeft, 7},
    {">>", BinaryOp::kShiftRight, 7}, {"+", BinaryOp::kAdd, 8},
    {"-", BinaryOp::kSub, 8},         {"*", BinaryOp::kMul, 9},
    {"/", BinaryOp::kDiv, 9},         {"//", BinaryOp::kFloorDiv, 9},
    {"%", BinaryOp::kFloorMod, 9}};
constexpr Operator kComparisons[] = {
    {"==", BinaryOp::kEQ, 3}, {"!=", BinaryOp::kNE, 3},
    {"<=", BinaryOp::kLE, 3}, {">=", BinaryOp::kGE, 3},
    {"<", BinaryOp::kLT, 3},  {">", BinaryOp::kGT, 3}};
constexpr int kOr = 0;
constexpr int kAnd = 1;
constexpr int kNot = 2;
constexpr int kComparison = 3;
constexpr int kBitOr = 4;

}  // namespace

absl::StatusOr<Value> Parser::Checked(absl::StatusOr<Value> value,
                                      size_t offset) {
  if (!value.ok()) return At(offset, value.status());
  TF_RETURN_IF_ERROR(CountNode());
  if (value->depth > limits_.max_nesting) {
    return Error(offset, absl::StrCat("the expression nests deeper than ",
                                      limits_.max_nesting, " levels"));
  }
  value->offset = static_cast<uint32_t>(offset);
  return value;
}

absl::StatusOr<Value> Parser::ParseExpr() {
  if (nesting_ >= limits_.max_nesting) {
    return ErrorHere(absl::StrCat("expressions nest deeper than ",
                                  limits_.max_nesting, " levels"));
  }
  ++nesting_;
  absl::StatusOr<Value> out = ParseBinary(kOr);
  --nesting_;
  if (out.ok() && AtName("if")) {
    return ErrorHere(
        "the conditional expression is not part of the language; write "
        "T.if_then_else(condition, a, b)");
  }
  return out;
}

absl::StatusOr<Value> Parser::ParseBinary(int min_precedence) {
  if (min_precedence <= kComparison) {
    TF_ASSIGN_OR_RETURN(Value value, ParseNot());
    while ((min_precedence <= kAnd && AtName("and")) ||
           (min_precedence == kOr && AtName("or"))) {
      const bool is_and = AtName("and");
      const size_t at = Peek().offset;
      ++at_;
      TF_ASSIGN_OR_RETURN(Value right, ParseBinary(is_and ? kNot : kAnd));
      TF_ASSIGN_OR_RETURN(
          value, Checked(BuildBinary(is_and ? BinaryOp::kAnd : BinaryOp::kOr,
                                     std::move(value), std::move(right)),
                         at));
    }
    return value;
  }
  TF_ASSIGN_OR_RETURN(Value value, ParseUnary());
  while (Peek().kind == TokenKind::kOp) {
    const std::string_view text = Text();
    const auto* found =
        std::find_if(std::begin(kOperators), std::end(kOperators),
                     [&](const Operator& o) { return o.text == text; });
    if (found == std::end(kOperators) || found->precedence < min_precedence) {
      break;
    }
    const size_t offset = Peek().offset;
    ++at_;
    TF_ASSIGN_OR_RETURN(Value right, ParseBinary(found->precedence + 1));
    if (found->op == BinaryOp::kDiv) {
      const auto integral = [](const Value& v) {
        return v.expr->dtype.is_integral();
      };
      if (integral(value) && integral(right)) {
        if (!value.weak || !right.weak || !AsInt(value.expr) ||
            !AsInt(right.expr)) {
          return Error(offset,
                       "'/' of integers; write // (floor) or T.truncdiv");
        }
        // True division of two literals, as in Python.
        const double quotient = static_cast<double>(*AsInt(value.expr)) /
                                static_cast<double>(*AsInt(right.expr));
        if (*AsInt(right.expr) == 0) return Error(offset, "division by zero");
        value.expr = FloatConst(quotient, DataType::Float(64));
        continue;
      }
    }
    TF_ASSIGN_OR_RETURN(value, Checked(BuildBinary(found->op, std::move(value),
                                                   std::move(right)),
                                       offset));
  }
  return value;
}

absl::StatusOr<Value> Parser::ParseNot() {
  const size_t offset = Peek().offset;
  int count = 0;
  while (TryName("not")) ++count;
  TF_ASSIGN_OR_RETURN(Value value, ParseComparison());
  if (count == 0) return value;
  if (!value.expr->dtype.is_bool()) {
    return Error(offset, absl::StrCat("'not' needs a bool, not ",
                                      value.expr->dtype.ToString()));
  }
  if (count % 2 == 1) value.expr = MakeNot(value.expr);
  ++value.depth;
  return Checked(std::move(value), offset);
}

absl::StatusOr<Value> Parser::ParseComparison() {
  TF_ASSIGN_OR_RETURN(Value left, ParseBinary(kBitOr));
  std::optional<Value> chain;
  while (Peek().kind == TokenKind::kOp) {
    const std::string_view text = Text();
    const auto* found =
        std::find_if(std::begin(kComparisons), std::end(kComparisons),
                     [&](const Operator& o) { return o.text == text; });
    if (found == std::end(kComparisons)) break;
    const size_t offset = Peek().offset;
    ++at_;
    TF_ASSIGN_OR_RETURN(Value right, ParseBinary(kBitOr));
    TF_ASSIGN_OR_RETURN(Value test,
                        Checked(BuildBinary(found->op, left, right), offset));
    if (chain) {
      TF_ASSIGN_OR_RETURN(
          test, Checked(BuildBinary(BinaryOp::kAnd, *chain, std::move(test)),
                        offset));
    }
    chain = std::move(test);
    left = std::move(right);
  }
  if (AtName("in") || AtName("is")) {
    return ErrorHere(absl::StrCat("'", std::string(Text()),
                                  "' is not an operator of the language"));
  }
  return chain ? *std::move(chain) : std::move(left);
}

absl::StatusOr<Value> Parser::ParseUnary() {
  const size_t offset = Peek().offset;
  int minus = 0;
  while (AtOp("-") || AtOp("+")) {
    if (AtOp("-")) ++minus;
    ++at_;
  }
  if (minus == 0 && AtOp("~")) {
    ++at_;
    if (nesting_ >= limits_.max_nesting) {
      return ErrorHere(absl::StrCat("expressions nest deeper than ",
                                    limits_.max_nesting, " levels"));
    }
    ++nesting_;
    absl::StatusOr<Value> operand = ParseUnary();
    --nesting_;
    if (!operand.ok()) return operand;
    return Checked(BuildComplement(*std::move(operand)), offset);
  }
  if (minus == 1 && Peek().kind == TokenKind::kInt && !AtOp("**", 1)) {
    return ParseNumber(true);
  }
  TF_ASSIGN_OR_RETURN(Value value, ParsePower());
  if (minus % 2 == 0) return value;
  return Checked(BuildNegation(std::move(value)), offset);
}

absl::StatusOr<Value> Parser::ParsePower() {
  TF_ASSIGN_OR_RETURN(Value base, ParsePrimary());
  if (!AtOp("**")) return base;
  const size_t offset = Peek().offset;
  ++at_;
  if (nesting_ >= limits_.max_nesting) {
    return ErrorHere(absl::StrCat("expressions nest deeper than ",
                                  limits_.max_nesting, " levels"));
  }
  ++nesting_;
  absl::StatusOr<Value> exponent = ParseUnary();
  --nesting_;
  if (!exponent.ok()) return exponent;
  return Checked(BuildCall(Intrinsic::kPow, {std::move(base), *exponent}),
                 offset);
}

absl::StatusOr<Value> Parser::ParseNumber(bool negative) {
  const Token& token = Peek();
  const size_t offset = token.offset;
  std::string digits;
  for (char c : Text()) {
    if (c != '_') digits += c;
  }
  ++at_;
  Value value;
  value.weak = true;
  if (token.kind == TokenKind::kFloat) {
    value.expr =
        FloatConst(std::strtod(digits.c_str(), nullptr), DataType::Float(64));
    return Checked(std::move(value), offset);
  }
  int base = 10;
  size_t start = 0;
  if (digits.size() > 2 && digits[0] == '0') {
    const char kind = static_cast<char>(digits[1] | 0x20);
    base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    if (base != 10) start = 2;
  }
  uint64_t magnitude = 0;
  bool overflow = digits.size() == start;
  for (size_t i = start; i < digits.size(); ++i) {
    const char c = static_cast<char>(digits[i] | 0x20);
    const int digit = c >= 'a' ? c - 'a' + 10 : digits[i] - '0';
    if (digit >= base) return Error(offset, "malformed number");
    overflow |= __builtin_mul_overflow(magnitude, static_cast<uint64_t>(base),
                                       &magnitude);
    overflow |= __builtin_add_overflow(magnitude, static_cast<uint64_t>(digit),
                                       &magnitude);
  }
  const uint64_t bound = uint64_t{1} << 63;
  if (overflow || magnitude > bound || (magnitude == bound && !negative)) {
    return Error(offset, "the integer does not fit in int64");
  }
  value.expr =
      IntConst(static_cast<int64_t>(negative ? ~magnitude + 1 : magnitude));
  return Checked(std::move(value), offset);
}

// An operand and casts after it: A[i].astype("int32").
absl::StatusOr<Value> Parser::ParsePrimary() {
  TF_ASSIGN_OR_RETURN(Value value, ParseOperand());
  while (AtOp(".") && AtName("astype", 1) && AtOp("(", 2)) {
    const size_t offset = Peek(1).offset;
    at_ += 3;
    TryKeyword({"dtype"});
    TF_ASSIGN_OR_RETURN(const DataType dtype, ParseDType());
    TF_RETURN_IF_ERROR(Expect(")", "after the dtype"));
    TF_ASSIGN_OR_RETURN(value,
                        Checked(BuildCast(dtype, std::move(value)), offset));
  }
  return value;
}

absl::StatusOr<Value> Parser::ParseOperand() {
  const Token& token = Peek();
  switch (token.kind) {
    case TokenKind::kInt:
    case TokenKind::kFloat:
      return ParseNumber(false);
    case TokenKind::kString:
      return ErrorHere("a string is no value here");
    case TokenKind::kName:
      return ParseName();
    default:
      break;
  }
  if (TryOp("(")) {
    TF_ASSIGN_OR_RETURN(Value value, ParseExpr());
    if (AtOp(",")) return ErrorHere("a tuple is no value here");
    TF_RETURN_IF_ERROR(Expect(")", "after the expression"));
    return value;
  }
  return ErrorHere(absl::StrCat("expected an expression, found ", Found()));
}

absl::StatusOr<Value> Parser::ParseName() {
  const std::string_view name = Text();
  const size_t offset = Peek().offset;
  if (name == "True" || name == "False") {
    ++at_;
    Value value;
    value.expr = BoolConst(name == "True");
    return Checked(std::move(value), offset);
  }
  const Symbol* symbol = Lookup(name);
  if (symbol == nullptr) {
    if (!AtOp(".", 1) && !AtOp("(", 1)) {
      if (!static_context_.empty()) {
        return Error(offset, absl::StrCat("'", std::string(name),
                                          "' is not a constant; ",
                                          std::string(static_context_)));
      }
      return Error(offset,
                   absl::StrCat("unknown name '", std::string(name), "'"));
    }
    TF_ASSIGN_OR_RETURN(Callee callee, ParseCallee());
    return ParseCall(callee);
  }
  ++at_;
  if (symbol->kind == Symbol::kHandle) {
    return Error(offset, absl::StrCat("'", std::string(name),
                                      "' is a handle; use the buffer that "
                                      "T.match_buffer makes of it"));
  }
  if (symbol->kind == Symbol::kBuffer) {
    if (!AtOp("[")) {
      return Error(offset, absl::StrCat("'", std::string(name),
                                        "' is a buffer; access it with "
                                        "indices, as in ",
                                        std::string(name), "[...]"));
    }
    return ParseLoad(*symbol, offset);
  }
  if (symbol->kind == Symbol::kNumber) {
    return Checked(symbol->number, offset);
  }
  if (symbol->kind == Symbol::kUnboundVar) {
    return Error(offset, absl::StrCat("'", std::string(name),
                                      "' is a symbolic variable without a "
                                      "value; shapes are static, write the "
                                      "number"));
  }
  if (!static_context_.empty() &&
      !(static_allows_vars_ && symbol->kind != Symbol::kLet)) {
    return Error(offset,
                 absl::StrCat("'", std::string(name), "' is not a constant; ",
                              std::string(static_context_)));
  }
  if (symbol->kind == Symbol::kLoop && !in_binding_ && !blocks_.empty() &&
      symbol->block_depth < static_cast<int>(blocks_.size()) &&
      !blocks_.back()->node.iters.empty()) {
    return Error(offset, absl::StrCat("loop variable '", std::string(name),
                                      "' used inside block \"",
                                      blocks_.back()->node.name,
                                      "\"; bind it with T.axis.spatial or "
                                      "T.axis.reduce"));
  }
  Value value;
  value.expr = symbol->var;
  return Checked(std::move(value), offset);
}

absl::StatusOr<Value> Parser::ParseLoad(const Symbol& symbol, size_t offset) {
  if (!static_context_.empty()) {
    return Error(offset, absl::StrCat("a buffer element is not a constant; ",
                                      std::string(static_context_)));
  }
  int depth = 1;
  TF_ASSIGN_OR_RETURN(Access access, ParseAccess(symbol, &depth));
  Value value;
  value.depth = depth;
  value.expr = Load(access.buffer, std::move(access.indices));
  return Checked(std::move(value), offset);
}

absl::Status Parser::CheckConstIndex(const Expr& index, int64_t low,
                                     int64_t high, const Buffer& buffer,
                                     int dim, size_t offset) const {
  const auto value = AsInt(index);
  if (!value || (*value >= low && *value <= high)) return absl::OkStatus();
  return Error(offset, absl::StrCat("index ", *value, " is out of bounds: ",
                                    "dimension ", dim, " of '", buffer->name,
                                    "' has extent ", buffer->shape[dim]));
}

absl::StatusOr<std::vector<Expr>> Parser::ParseIndices(const Buffer& buffer,
                                                       int* depth) {
  const size_t offset = Peek().offset;
  TF_RETURN_IF_ERROR(Expect("[", "for the indices"));
  std::vector<Expr> indices;
  if (AtOp("(") && AtOp(")", 1) && AtOp("]", 2)) {
    at_ += 3;  // A[()]: no dimensions
  } else {
    while (!AtOp("]")) {
      const size_t at = Peek().offset;
      if (AtOp(":")) {
        return ErrorHere(
            "a slice is no element; slices belong in T.reads and "
            "T.writes");
      }
      TF_ASSIGN_OR_RETURN(Value value, ParseExpr());
      if (AtOp(":")) {
        return ErrorHere(
            "a slice is no element; slices belong in T.reads and "
            "T.writes");
      }
      TF_ASSIGN_OR_RETURN(Expr index, At(at, AsIndex(value, "the index")));
      *depth = std::max(*depth, value.depth + 2);
      const int dim = static_cast<int>(indices.size());
      if (dim < buffer->ndim()) {
        TF_RETURN_IF_ERROR(
            CheckConstIndex(index, 0, buffer->shape[dim] - 1, buffer, dim, at));
      }
      indices.push_back(std::move(index));
      TF_RETURN_IF_ERROR(NextItem("]"));
    }
    TF_RETURN_IF_ERROR(Expect("]", "after the indices"));
  }
  if (static_cast<int>(indices.size()) != buffer->ndim()) {
    return Error(
        offset,
        absl::StrCat("'", buffer->name, "' has ", buffer->ndim(), " dimension",
                     buffer->ndim() == 1 ? "" : "s", ", but there ",
                     indices.size() == 1 ? "is " : "are ", indices.size(),
                     indices.size() == 1 ? " index" : " indices"));
  }
  return indices;
}

absl::StatusOr<Expr> Parser::ParseCondition(std::string_view what) {
  const size_t offset = Peek().offset;
  TF_ASSIGN_OR_RETURN(Value value, ParseExpr());
  if (!value.expr->dtype.is_bool()) {
    return Error(offset, absl::StrCat(std::string(what), " has dtype ",
                                      value.expr->dtype.ToString(),
                                      ", not bool; compare with 0"));
  }
  return value.expr;
}

absl::StatusOr<int64_t> Parser::ParseConstInt(std::string_view what) {
  const size_t offset = Peek().offset;
  TF_ASSIGN_OR_RETURN(Value value, ParseExpr());
  const auto number = AsInt(value.expr);
  if (!number || value.expr->dtype.is_bool()) {
    return Error(
        offset, absl::StrCat(std::string(what), " must be a constant integer"));
  }
  return *number;
}

}  // namespace tilefarm::ir
