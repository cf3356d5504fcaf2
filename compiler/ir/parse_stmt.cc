// Parses statements: suites, conditions, assignments.
#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/parser_internal.h"

namespace tilefarm::ir {
namespace {

struct AugmentedOp {
  std::string_view text;
  BinaryOp op;
};
constexpr AugmentedOp kAugmentedOps[] = {
    {"+=", BinaryOp::kAdd},        {"-=", BinaryOp::kSub},
    {"*=", BinaryOp::kMul},        {"/=", BinaryOp::kDiv},
    {"//=", BinaryOp::kFloorDiv},  {"%=", BinaryOp::kFloorMod},
    {"&=", BinaryOp::kBitAnd},     {"|=", BinaryOp::kBitOr},
    {"^=", BinaryOp::kBitXor},     {"<<=", BinaryOp::kShiftLeft},
    {">>=", BinaryOp::kShiftRight}};

}  // namespace

absl::Status Parser::CountNode() {
  if (++nodes_ > limits_.max_nodes) {
    return ErrorHere(absl::StrCat("the program has more than ",
                                  limits_.max_nodes, " nodes"));
  }
  return absl::OkStatus();
}

absl::Status Parser::EnterStatement(size_t offset, int levels) {
  TF_RETURN_IF_ERROR(CountNode());
  statement_depth_ += levels;
  if (statement_depth_ > limits_.max_nesting) {
    return Error(offset, absl::StrCat("statements nest deeper than ",
                                      limits_.max_nesting, " levels"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Stmt> Parser::ParseSuite() {
  TF_RETURN_IF_ERROR(Expect(":", "before the body"));
  ++suite_depth_;
  const size_t mark = ScopeMark();
  Stmt body;
  if (Peek().kind == TokenKind::kNewline) {
    ++at_;
    if (Peek().kind != TokenKind::kIndent) {
      return ErrorHere("expected an indented body");
    }
    ++at_;
    TF_ASSIGN_OR_RETURN(body, ParseStatements());
    if (Peek().kind == TokenKind::kDedent) ++at_;
  } else {
    std::vector<Stmt> stmts;
    std::vector<PendingLet> lets;
    TF_RETURN_IF_ERROR(ParseStatement(stmts, lets));
    statement_depth_ -= static_cast<int>(lets.size());
    body = MakeSeq(std::move(stmts));
  }
  CloseScope(mark);
  --suite_depth_;
  return body;
}

absl::StatusOr<Stmt> Parser::ParseStatements() {
  std::vector<Stmt> stmts;
  std::vector<PendingLet> lets;
  while (Peek().kind != TokenKind::kDedent && Peek().kind != TokenKind::kEnd) {
    TF_RETURN_IF_ERROR(ParseStatement(stmts, lets));
  }
  for (; !lets.empty(); lets.pop_back()) {
    PendingLet& let = lets.back();
    std::vector<Stmt> rest(
        std::make_move_iterator(stmts.begin() + static_cast<long>(let.start)),
        std::make_move_iterator(stmts.end()));
    stmts.resize(let.start);
    stmts.push_back(std::make_shared<const LetStmtNode>(
        let.var, let.value, MakeSeq(std::move(rest))));
    --statement_depth_;
  }
  return MakeSeq(std::move(stmts));
}

absl::Status Parser::ParseStatement(std::vector<Stmt>& out,
                                    std::vector<PendingLet>& lets) {
  TF_RETURN_IF_ERROR(CountNode());
  const Token& token = Peek();
  if (token.kind == TokenKind::kIndent) {
    return ErrorHere("unexpected indentation");
  }
  if (token.kind == TokenKind::kNewline) {
    ++at_;
    return absl::OkStatus();
  }
  if (token.kind == TokenKind::kString) {
    ++at_;
    return ExpectLineEnd();
  }
  if (AtName("for")) {
    TF_ASSIGN_OR_RETURN(Stmt loop, ParseFor());
    out.push_back(std::move(loop));
    return absl::OkStatus();
  }
  if (AtName("if")) {
    TF_ASSIGN_OR_RETURN(Stmt branch, ParseIf());
    out.push_back(std::move(branch));
    return absl::OkStatus();
  }
  if (AtName("with")) return ParseWith(out);
  if (AtName("import") || AtName("from")) {
    SkipLine();
    return absl::OkStatus();
  }
  if (TryName("pass")) return ExpectLineEnd();
  if (AtName("assert") && !AtOp("=", 1) && !AtOp("[", 1)) {
    const size_t offset = Peek().offset;
    ++at_;
    TF_RETURN_IF_ERROR(ParseAssertion(offset));
    return ExpectLineEnd();
  }
  for (std::string_view word :
       {"while", "return", "break", "continue", "def", "class", "del", "try",
        "raise", "lambda", "yield", "global", "elif", "else", "async", "await",
        "match"}) {
    if (AtName(word) && !AtOp("=", 1) && !AtOp("[", 1)) {
      return ErrorHere(absl::StrCat("'", std::string(word),
                                    "' is not part of the language"));
    }
  }
  if (token.kind == TokenKind::kOp && AtOp("@")) {
    return ErrorHere("functions do not nest");
  }
  if (token.kind != TokenKind::kName) {
    return ErrorHere(absl::StrCat("expected a statement, found ", Found()));
  }
  const Symbol* symbol = Lookup(Text());
  if (symbol != nullptr && symbol->kind == Symbol::kBuffer && AtOp("[", 1)) {
    TF_ASSIGN_OR_RETURN(Stmt store, ParseStoreStatement());
    out.push_back(std::move(store));
    return ExpectLineEnd();
  }
  if (AtOp("=", 1) || AtOp(",", 1)) return ParseAssignment(out, lets);
  if (AtOp(":", 1)) return ParseLet(lets, out.size());
  if (AtOp("[", 1)) {
    return ErrorHere(
        absl::StrCat("unknown buffer '", std::string(Text()), "'"));
  }
  if (symbol != nullptr) {
    for (const AugmentedOp& augmented : kAugmentedOps) {
      if (AtOp(augmented.text, 1)) {
        return ErrorHere("variables are assigned once; accumulate in a buffer");
      }
    }
    return ErrorHere("an expression alone does nothing");
  }
  return ParseCallStatement(out);
}

absl::StatusOr<Stmt> Parser::ParseStoreStatement() {
  const size_t offset = Peek().offset;
  const Symbol symbol = *Lookup(Text());
  ++at_;
  int depth = 1;
  TF_ASSIGN_OR_RETURN(Access access, ParseAccess(symbol, &depth));
  const Buffer& buffer = access.buffer;
  std::vector<Expr>& indices = access.indices;
  const size_t op_at = Peek().offset;
  Value value;
  if (TryOp("=")) {
    TF_ASSIGN_OR_RETURN(value, ParseExpr());
    if (AtOp("=")) return ErrorHere("one assignment a line");
  } else {
    const auto* found =
        std::find_if(std::begin(kAugmentedOps), std::end(kAugmentedOps),
                     [&](const AugmentedOp& o) { return AtOp(o.text); });
    if (found == std::end(kAugmentedOps)) {
      return ErrorHere(
          absl::StrCat("expected '=' after the element, found ", Found()));
    }
    ++at_;
    TF_ASSIGN_OR_RETURN(Value right, ParseExpr());
    Value old;
    old.expr = Load(buffer, indices);
    old.depth = depth;
    if (found->op == BinaryOp::kDiv && buffer->dtype.is_integral()) {
      return Error(op_at, "'/' of integers; write // (floor) or T.truncdiv");
    }
    TF_ASSIGN_OR_RETURN(
        value, Checked(BuildBinary(found->op, std::move(old), std::move(right)),
                       op_at));
  }
  TF_ASSIGN_OR_RETURN(Expr stored,
                      At(op_at, Adapt(value, buffer->dtype,
                                      absl::StrCat("the value stored to '",
                                                   buffer->name, "'"))));
  TF_RETURN_IF_ERROR(EnterStatement(offset));
  --statement_depth_;
  return MakeStore(buffer, std::move(indices), std::move(stored));
}

absl::StatusOr<Stmt> Parser::ParseIf() {
  const size_t offset = Peek().offset;
  ++at_;
  TF_RETURN_IF_ERROR(EnterStatement(offset));
  TF_ASSIGN_OR_RETURN(Expr condition, ParseCondition("the condition"));
  TF_ASSIGN_OR_RETURN(Stmt then_case, ParseSuite());
  Stmt else_case;
  if (AtName("elif")) {
    TF_ASSIGN_OR_RETURN(else_case, ParseIf());
  } else if (TryName("else")) {
    TF_ASSIGN_OR_RETURN(else_case, ParseSuite());
    if (IsNoOp(else_case)) else_case = nullptr;
  }
  --statement_depth_;
  return MakeIf(std::move(condition), std::move(then_case),
                std::move(else_case));
}

absl::Status Parser::ParseAssignment(std::vector<Stmt>& out,
                                     std::vector<PendingLet>& lets) {
  const size_t start = at_;
  std::vector<std::string> names;
  std::vector<size_t> offsets;
  do {
    offsets.push_back(Peek().offset);
    TF_ASSIGN_OR_RETURN(std::string name, ExpectName("a name"));
    names.push_back(std::move(name));
  } while (TryOp(",") && !AtOp("="));
  TF_RETURN_IF_ERROR(Expect("=", "in the assignment"));
  const bool call = Peek().kind == TokenKind::kName &&
                    Lookup(Text()) == nullptr && AtOp(".", 1);
  if (call) {
    const size_t before = at_;
    TF_ASSIGN_OR_RETURN(Callee callee, ParseCallee());
    if (callee.name.starts_with("axis.")) {
      TF_RETURN_IF_ERROR(ParseAxisAssignment(names, offsets, callee));
      return ExpectLineEnd();
    }
    if (names.size() == 1) {
      if (callee.name == "alloc_buffer" ||
          callee.name == "sblock_alloc_buffer") {
        TF_RETURN_IF_ERROR(ParseAllocBuffer(names[0], offsets[0]));
        return ExpectLineEnd();
      }
      if (callee.name == "match_buffer") {
        TF_RETURN_IF_ERROR(ParseMatchBuffer(names[0], offsets[0]));
        return ExpectLineEnd();
      }
      if (IsBufferDeclaration(callee.name)) {
        TF_RETURN_IF_ERROR(
            ParseBufferDeclaration(callee, names[0], offsets[0]));
        return ExpectLineEnd();
      }
      if ((callee.name == "var" || callee.name == "Var") && AtOp("(")) {
        TF_RETURN_IF_ERROR(ParseUnboundVar(names[0], offsets[0]));
        return ExpectLineEnd();
      }
    }
    at_ = before;
  }
  if (names.size() > 1) {
    return Error(offsets[1], "only T.axis.remap assigns several names");
  }
  if (Lookup(names[0]) != nullptr) {
    return Error(offsets[0], absl::StrCat("'", names[0],
                                          "' is already defined; variables "
                                          "are assigned once"));
  }
  at_ = start;
  return ParseLet(lets, out.size());
}

bool Parser::IsBufferDeclaration(std::string_view name) {
  return name == "allocate" || name == "decl_buffer" || name == "buffer_decl" ||
         name == "Buffer";
}

absl::Status Parser::ParseBufferDeclaration(const Callee& callee,
                                            const std::string& name,
                                            size_t offset) {
  if (callee.name == "allocate") return ParseAllocate(name, offset);
  return ParseDeclBuffer(callee, name, offset);
}

// x = T.var("int32"): a name to which a later T.let gives a value.
absl::Status Parser::ParseUnboundVar(const std::string& name, size_t offset) {
  TF_RETURN_IF_ERROR(Expect("(", "for the dtype"));
  TryKeyword({"dtype"});
  DataType dtype = DataType::Int(32);
  if (!AtOp(")")) {
    TF_ASSIGN_OR_RETURN(dtype, ParseDType());
  }
  TF_RETURN_IF_ERROR(Expect(")", "after the dtype"));
  Symbol symbol{Symbol::kUnboundVar};
  symbol.var = MakeLetVar(name, dtype);
  return Declare(name, offset, std::move(symbol));
}

// x = value, or x: T.int32 = value. The let's body is the rest of the suite.
absl::Status Parser::ParseLet(std::vector<PendingLet>& lets, size_t stmts) {
  const size_t offset = Peek().offset;
  TF_ASSIGN_OR_RETURN(std::string name, ExpectName("a name"));
  std::optional<DataType> dtype;
  if (TryOp(":")) {
    // x: T.int32, x: T.int32() and x: T.let[T.int32].
    const bool let =
        AtName("T") && AtOp(".", 1) && AtName("let", 2) && AtOp("[", 3);
    if (let) at_ += 4;
    TF_ASSIGN_OR_RETURN(dtype, ParseDType());
    if (let) {
      TF_RETURN_IF_ERROR(Expect("]", "after the dtype"));
    } else if (AtOp("(") && AtOp(")", 1)) {
      at_ += 2;
    }
  }
  TF_RETURN_IF_ERROR(Expect("=", "in the assignment"));
  const size_t value_at = Peek().offset;
  TF_ASSIGN_OR_RETURN(Value value, ParseExpr());
  if (!dtype) {
    dtype = value.weak && value.expr->dtype.is_float() ? DataType::Float(32)
                                                       : value.expr->dtype;
  }
  TF_ASSIGN_OR_RETURN(
      Expr adapted,
      At(value_at,
         Adapt(value, *dtype, absl::StrCat("the value of '", name, "'"))));
  TF_RETURN_IF_ERROR(EnterStatement(offset));
  Symbol symbol{Symbol::kLet};
  symbol.var = MakeLetVar(name, *dtype);
  symbol.block_depth = static_cast<int>(blocks_.size());
  lets.push_back({symbol.var, std::move(adapted), stmts});
  TF_RETURN_IF_ERROR(Declare(name, offset, std::move(symbol)));
  return ExpectLineEnd();
}

absl::Status Parser::ParseCallStatement(std::vector<Stmt>& out) {
  TF_ASSIGN_OR_RETURN(Callee callee, ParseCallee());
  const std::string& name = callee.name;
  if (!AtOp("(")) {
    return Error(callee.offset, absl::StrCat("unknown statement '", name, "'"));
  }
  if (!callee.prefixed) {
    return Error(callee.offset, absl::StrCat("unknown function '", name, "'"));
  }
  if (name == "reads" || name == "writes") {
    TF_RETURN_IF_ERROR(RequireBlockLevel(callee.offset, "T." + name));
    TF_RETURN_IF_ERROR(ParseRegions(name == "reads"));
  } else if (name == "where") {
    TF_RETURN_IF_ERROR(RequireBlockLevel(callee.offset, "T.where"));
    TF_RETURN_IF_ERROR(ParseWhere());
  } else if (name == "block_attr" || name == "sblock_attr") {
    TF_RETURN_IF_ERROR(RequireBlockLevel(callee.offset, "T.block_attr"));
    TF_RETURN_IF_ERROR(ParseBlockAttr());
  } else if (name == "func_attr") {
    if (blocks_.size() != 1 || suite_depth_ != blocks_[0]->suite_depth) {
      return Error(callee.offset,
                   "T.func_attr belongs at the start of the function");
    }
    TF_RETURN_IF_ERROR(ParseFuncAttr());
  } else if (name == "evaluate") {
    TF_RETURN_IF_ERROR(Expect("(", "for the expression"));
    TF_ASSIGN_OR_RETURN(Value value, ParseExpr());
    TF_RETURN_IF_ERROR(Expect(")", "after the expression"));
    if (As<IntConstNode>(value.expr) == nullptr &&
        As<FloatConstNode>(value.expr) == nullptr) {
      out.push_back(std::make_shared<const EvaluateNode>(value.expr));
    }
  } else if (name == "bind") {
    TF_RETURN_IF_ERROR(RequireBlockLevel(callee.offset, "T.bind"));
    TF_RETURN_IF_ERROR(ParseBind());
  } else if (name == "preflattened_buffer") {
    TF_RETURN_IF_ERROR(ParsePreflattened());
  } else if (name == "Assert") {
    TF_RETURN_IF_ERROR(Expect("(", "for the condition"));
    TF_RETURN_IF_ERROR(ParseAssertion(callee.offset));
    TF_RETURN_IF_ERROR(Expect(")", "after the assertion"));
  } else if (name.starts_with("axis.")) {
    return Error(callee.offset, "an axis needs a name: v = T.axis....");
  } else if (name.starts_with("block") || name.starts_with("sblock") ||
             name == "init") {
    return Error(callee.offset,
                 absl::StrCat("write 'with T.", name, "(...):'"));
  } else {
    return UnknownCall(callee);
  }
  return ExpectLineEnd();
}

absl::Status Parser::ParseWith(std::vector<Stmt>& out) {
  const size_t offset = Peek().offset;
  ++at_;
  TF_ASSIGN_OR_RETURN(Callee callee, ParseCallee());
  const std::string& name = callee.name;
  if (callee.prefixed && (name == "block" || name == "sblock")) {
    const bool root_level = blocks_.size() == 1 &&
                            suite_depth_ == blocks_[0]->suite_depth &&
                            !blocks_[0]->explicit_root;
    if (root_level && AtOp("(") && Peek(1).kind == TokenKind::kString &&
        Text(1).substr(1) == "root\"" && AtOp(")", 2)) {
      return ParseRootBlock(out, offset);
    }
    TF_ASSIGN_OR_RETURN(Stmt block, ParseBlock(offset));
    out.push_back(std::move(block));
    return absl::OkStatus();
  }
  if (callee.prefixed && name == "init") return ParseInit(offset);
  if (callee.prefixed && (name == "LetStmt" || name == "let")) {
    return ParseWithLet(out, offset);
  }
  if (callee.prefixed && name == "Assert") {
    TF_RETURN_IF_ERROR(Expect("(", "for the condition"));
    TF_RETURN_IF_ERROR(ParseAssertion(callee.offset));
    TF_RETURN_IF_ERROR(Expect(")", "after the assertion"));
    TF_ASSIGN_OR_RETURN(Stmt body, ParseSuite());
    out.push_back(std::move(body));
    return absl::OkStatus();
  }
  if (callee.prefixed && IsBufferDeclaration(name)) {
    const size_t mark = ScopeMark();
    // The name follows the arguments.
    const size_t arguments = at_;
    SkipBrackets();
    if (!TryName("as")) return ErrorHere("expected 'as' and the buffer");
    const size_t name_at = Peek().offset;
    TF_ASSIGN_OR_RETURN(const std::string buffer, ExpectName("a buffer"));
    const size_t body_at = at_;
    at_ = arguments;
    TF_RETURN_IF_ERROR(ParseBufferDeclaration(callee, buffer, name_at));
    at_ = body_at;
    TF_ASSIGN_OR_RETURN(Stmt body, ParseSuite());
    CloseScope(mark);
    out.push_back(std::move(body));
    return absl::OkStatus();
  }
  if (callee.prefixed && IsLoweredOnly(name)) return UnknownCall(callee);
  return Error(callee.offset,
               absl::StrCat("'with ", callee.prefixed ? "T." : "", name,
                            "' is not part of the language; T.block and "
                            "T.init are"));
}

// with T.LetStmt(value) as x:, or with T.let(x, value): after x = T.var(...).
absl::Status Parser::ParseWithLet(std::vector<Stmt>& out, size_t offset) {
  TF_RETURN_IF_ERROR(Expect("(", "for the value"));
  const Symbol* declared = Peek().kind == TokenKind::kName && AtOp(",", 1)
                               ? Lookup(Text())
                               : nullptr;
  if (declared != nullptr && declared->kind == Symbol::kUnboundVar) {
    const std::string name(Text());
    at_ += 2;
    const size_t value_at = Peek().offset;
    TF_ASSIGN_OR_RETURN(const Value value, ParseExpr());
    TF_RETURN_IF_ERROR(Expect(")", "after the value"));
    TF_ASSIGN_OR_RETURN(
        Expr adapted,
        At(value_at, Adapt(value, declared->var->dtype,
                           absl::StrCat("the value of '", name, "'"))));
    TF_RETURN_IF_ERROR(EnterStatement(offset));
    const Symbol unbound = BindVar(name);
    TF_ASSIGN_OR_RETURN(Stmt body, ParseSuite());
    symbols_.at(name) = unbound;
    --statement_depth_;
    out.push_back(std::make_shared<const LetStmtNode>(
        unbound.var, std::move(adapted), std::move(body)));
    return absl::OkStatus();
  }
  TF_ASSIGN_OR_RETURN(Value value, ParseExpr());
  TF_RETURN_IF_ERROR(Expect(")", "after the value"));
  if (!TryName("as")) return ErrorHere("expected 'as' and the variable");
  const size_t name_at = Peek().offset;
  TF_ASSIGN_OR_RETURN(std::string var_name, ExpectName("a variable"));
  const DataType dtype = value.weak && value.expr->dtype.is_float()
                             ? DataType::Float(32)
                             : value.expr->dtype;
  TF_ASSIGN_OR_RETURN(Expr adapted,
                      At(offset, Adapt(value, dtype, "the value")));
  TF_RETURN_IF_ERROR(EnterStatement(offset));
  const size_t mark = ScopeMark();
  Symbol symbol{Symbol::kLet};
  symbol.var = MakeLetVar(var_name, dtype);
  symbol.block_depth = static_cast<int>(blocks_.size());
  const Var var = symbol.var;
  TF_RETURN_IF_ERROR(Declare(var_name, name_at, std::move(symbol)));
  TF_ASSIGN_OR_RETURN(Stmt body, ParseSuite());
  CloseScope(mark);
  --statement_depth_;
  out.push_back(
      std::make_shared<const LetStmtNode>(var, adapted, std::move(body)));
  return absl::OkStatus();
}

// Binds `name`, declared with T.var, to a new variable. Returns the symbol to
// restore at the end of the scope.
Parser::Symbol Parser::BindVar(const std::string& name) {
  Symbol& symbol = symbols_.at(name);
  symbol.var = MakeLetVar(name, symbol.var->dtype);
  const Symbol unbound = symbol;
  symbol.kind = Symbol::kLet;
  symbol.block_depth = static_cast<int>(blocks_.size());
  return unbound;
}

// An assertion is not checked at run time: it must be provable here.
absl::Status Parser::ParseAssertion(size_t offset) {
  in_binding_ = true;
  absl::StatusOr<Expr> condition = ParseCondition("the assertion");
  in_binding_ = false;
  if (!condition.ok()) return condition.status();
  if (TryOp(",") && !AtOp(")") && Peek().kind != TokenKind::kNewline) {
    TryKeyword({"message"});
    TF_RETURN_IF_ERROR(ExpectString("the message").status());
    TryOp(",");
  }
  if (Holds(*condition)) return absl::OkStatus();
  return Error(offset,
               "the assertion is not seen to hold for all iterations; "
               "assertions at run time are not part of the language");
}

bool Parser::Holds(const Expr& condition) const {
  if (const auto value = AsInt(condition)) return *value != 0;
  const auto* test = As<BinaryNode>(condition);
  if (test == nullptr) return false;
  if (test->op == BinaryOp::kAnd) return Holds(test->a) && Holds(test->b);
  if (test->op == BinaryOp::kOr) return Holds(test->a) || Holds(test->b);
  if (!test->a->dtype.is_index()) return false;
  const auto a = ConstBounds(test->a);
  const auto b = ConstBounds(test->b);
  if (!a.ok() || !b.ok()) return false;
  switch (test->op) {
    case BinaryOp::kLT:
      return a->second < b->first;
    case BinaryOp::kLE:
      return a->second <= b->first;
    case BinaryOp::kGT:
      return a->first > b->second;
    case BinaryOp::kGE:
      return a->first >= b->second;
    case BinaryOp::kNE:
      return a->second < b->first || a->first > b->second;
    default:
      return false;
  }
}

}  // namespace tilefarm::ir
