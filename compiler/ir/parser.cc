// Parses modules, functions, parameters and attributes; the parser's basics.
#include "compiler/ir/parser.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/dim_align.h"
#include "compiler/ir/parser_internal.h"
#include "compiler/ir/verifier.h"

namespace tilefarm::ir {

// --- Tokens --------------------------------------------------------------

bool Parser::TryOp(std::string_view op) {
  if (!AtOp(op)) return false;
  ++at_;
  return true;
}

bool Parser::TryName(std::string_view name) {
  if (!AtName(name)) return false;
  ++at_;
  return true;
}

std::string Parser::Found() const {
  switch (Peek().kind) {
    case TokenKind::kNewline:
      return "the end of the line";
    case TokenKind::kIndent:
      return "more indentation";
    case TokenKind::kDedent:
      return "less indentation";
    case TokenKind::kEnd:
      return "the end of the program";
    default:
      return absl::StrCat("'", std::string(Text().substr(0, 40)), "'");
  }
}

absl::Status Parser::Expect(std::string_view op, std::string_view where) {
  if (TryOp(op)) return absl::OkStatus();
  return ErrorHere(absl::StrCat("expected '", std::string(op), "' ",
                                std::string(where), ", found ", Found()));
}

absl::Status Parser::ExpectLineEnd() {
  TryOp(";");
  if (Peek().kind == TokenKind::kNewline) {
    ++at_;
    return absl::OkStatus();
  }
  if (Peek().kind == TokenKind::kEnd) return absl::OkStatus();
  return ErrorHere(
      absl::StrCat("expected the end of the line, found ", Found()));
}

absl::StatusOr<std::string> Parser::ExpectName(std::string_view what) {
  if (Peek().kind != TokenKind::kName) {
    return ErrorHere(
        absl::StrCat("expected ", std::string(what), ", found ", Found()));
  }
  std::string name(Text());
  ++at_;
  return name;
}

absl::StatusOr<std::string> Parser::ExpectString(std::string_view what) {
  if (Peek().kind != TokenKind::kString) {
    return ErrorHere(absl::StrCat("expected ", std::string(what),
                                  " in quotes, found ", Found()));
  }
  const Token& token = Peek();
  ++at_;
  return StringValue(source_, token);
}

bool Parser::TryKeyword(std::initializer_list<std::string_view> names) {
  if (!AtOp("=", 1)) return false;
  for (std::string_view name : names) {
    if (!AtName(name)) continue;
    at_ += 2;
    return true;
  }
  return false;
}

absl::Status Parser::NextItem(std::string_view close) {
  if (TryOp(",") || AtOp(close)) return absl::OkStatus();
  return ErrorHere(absl::StrCat("expected ',' or '", std::string(close),
                                "', found ", Found()));
}

void Parser::SkipLine() {
  while (Peek().kind != TokenKind::kNewline && Peek().kind != TokenKind::kEnd) {
    ++at_;
  }
  if (Peek().kind == TokenKind::kNewline) ++at_;
}

void Parser::SkipBrackets() {
  int open = 0;
  do {
    if (AtOp("(") || AtOp("[") || AtOp("{")) ++open;
    if (AtOp(")") || AtOp("]") || AtOp("}")) --open;
    ++at_;
  } while (open > 0 && Peek().kind != TokenKind::kEnd);
}

absl::Status Parser::At(size_t offset, const absl::Status& status) const {
  if (status.ok()) return status;
  const absl::string_view message = status.message();
  // Errors of inner expressions already have a position.
  if (message.find(": error: ") != absl::string_view::npos) return status;
  return Error(offset, std::string(message));
}

// --- Names ---------------------------------------------------------------

absl::Status Parser::Declare(const std::string& name, size_t offset,
                             Symbol symbol) {
  if (name == "_") return absl::OkStatus();
  static constexpr std::string_view kReserved[] = {
      "T",      "tir",    "tirx", "for",   "if",    "in",   "and",
      "or",     "not",    "with", "class", "def",   "True", "False",
      "None",   "as",     "is",   "pass",  "while", "else", "elif",
      "return", "import", "from", "range", "lambda"};
  for (std::string_view reserved : kReserved) {
    if (name == reserved) {
      return Error(offset, absl::StrCat("'", name, "' is a reserved name"));
    }
  }
  if (!symbols_.emplace(name, std::move(symbol)).second) {
    return Error(offset, absl::StrCat("'", name,
                                      "' is already defined here; names are "
                                      "given once"));
  }
  declared_.push_back(name);
  return absl::OkStatus();
}

void Parser::CloseScope(size_t mark) {
  while (declared_.size() > mark) {
    symbols_.erase(declared_.back());
    declared_.pop_back();
  }
}

const Parser::Symbol* Parser::Lookup(std::string_view name) const {
  const auto found = symbols_.find(std::string(name));
  return found == symbols_.end() ? nullptr : &found->second;
}

bool Parser::IsPrefix(std::string_view name) {
  return name == "T" || name == "tir" || name == "tirx" || name == "s_tir" ||
         name == "ty" || name == "I" || name == "tvm" || name == "R";
}

absl::StatusOr<Parser::Callee> Parser::ParseCallee() {
  Callee callee;
  callee.offset = Peek().offset;
  TF_ASSIGN_OR_RETURN(std::string first, ExpectName("a name"));
  std::vector<std::string> parts = {first};
  while (TryOp(".")) {
    TF_ASSIGN_OR_RETURN(std::string part, ExpectName("a name after '.'"));
    parts.push_back(std::move(part));
  }
  callee.prefixed = parts.size() > 1 && IsPrefix(parts[0]);
  if (parts.size() > 1 && !callee.prefixed) {
    return Error(callee.offset,
                 absl::StrCat("unknown name '", parts[0],
                              "'; functions of the language start with T."));
  }
  callee.name = parts.back();
  if (parts.size() > 2 && parts[parts.size() - 2] == "axis") {
    callee.name = "axis." + callee.name;
  }
  return callee;
}

// --- Modules -------------------------------------------------------------

absl::StatusOr<IRModule> Parser::ParseProgram() {
  IRModule module;
  while (Peek().kind != TokenKind::kEnd) {
    TF_RETURN_IF_ERROR(ParseTopLevel(module));
  }
  if (module.functions.empty()) {
    return ErrorHere("the program has no @T.prim_func function");
  }
  return module;
}

absl::Status Parser::ParseDecorator(std::string& kind) {
  const size_t offset = Peek().offset;
  TF_RETURN_IF_ERROR(Expect("@", "for a decorator"));
  TF_ASSIGN_OR_RETURN(kind, ExpectName("a decorator"));
  while (TryOp(".")) {
    TF_ASSIGN_OR_RETURN(kind, ExpectName("a decorator"));
  }
  // TVM 0.8 printed @tvm.script.tir before functions and before classes.
  if (kind == "tir") kind = ClassFollows() ? "ir_module" : "prim_func";
  if (kind != "ir_module" && kind != "prim_func") {
    return Error(offset, absl::StrCat("unknown decorator '", kind,
                                      "'; @I.ir_module and @T.prim_func are "
                                      "known"));
  }
  // The arguments (private=True, s_tir=True) have no meaning here.
  if (AtOp("(")) SkipBrackets();
  return ExpectLineEnd();
}

bool Parser::ClassFollows() const {
  size_t ahead = 0;
  while (Peek(ahead).kind == TokenKind::kNewline) ++ahead;
  return AtName("class", ahead);
}

// M, N = 128, 2 * 64
absl::Status Parser::ParseNumbers() {
  std::vector<std::pair<std::string, size_t>> names;
  do {
    const size_t offset = Peek().offset;
    TF_ASSIGN_OR_RETURN(std::string name, ExpectName("a name"));
    names.emplace_back(std::move(name), offset);
  } while (TryOp(","));
  TF_RETURN_IF_ERROR(Expect("=", "after the name"));
  std::vector<Value> numbers;
  do {
    const size_t offset = Peek().offset;
    static_context_ =
        "outside of functions, names stand for numbers (docs/language.md)";
    absl::StatusOr<Value> value = ParseExpr();
    static_context_ = {};
    TF_RETURN_IF_ERROR(value.status());
    if (value->expr->dtype.is_bool() ||
        (!AsInt(value->expr) && As<FloatConstNode>(value->expr) == nullptr)) {
      return Error(offset, "a number is expected");
    }
    numbers.push_back(*std::move(value));
  } while (TryOp(","));
  if (names.size() != numbers.size()) {
    return Error(names[0].second, absl::StrCat(names.size(), " names, but ",
                                               numbers.size(), " numbers"));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    Symbol symbol{Symbol::kNumber};
    symbol.number = std::move(numbers[i]);
    TF_RETURN_IF_ERROR(
        Declare(names[i].first, names[i].second, std::move(symbol)));
  }
  return ExpectLineEnd();
}

// What a line outside of functions is that the language does not have.
absl::Status Parser::NoProgram() const {
  const size_t offset = Peek().offset;
  for (size_t ahead = 0; Peek(ahead).kind != TokenKind::kNewline &&
                         Peek(ahead).kind != TokenKind::kEnd;
       ++ahead) {
    if (AtName("te", ahead) && AtOp(".", ahead + 1)) {
      return Error(offset,
                   "this builds a tensor expression, in Python; a program is "
                   "TVMScript, as te.create_prim_func(...).script() prints it "
                   "(docs/language.md)");
    }
  }
  return Error(offset, absl::StrCat("expected @I.ir_module or @T.prim_func, "
                                    "found ",
                                    Found(), " (docs/language.md)"));
}

absl::Status Parser::ParseTopLevel(IRModule& module) {
  if (AtName("import") || AtName("from") || Peek().kind == TokenKind::kString) {
    SkipLine();
    return absl::OkStatus();
  }
  if (Peek().kind == TokenKind::kNewline) {
    ++at_;
    return absl::OkStatus();
  }
  if (Peek().kind == TokenKind::kIndent) {
    return ErrorHere("unexpected indentation");
  }
  if (AtName("class") || AtName("def")) {
    return ErrorHere(absl::StrCat(
        "a ", std::string(Text()), " needs the decorator ",
        AtName("class") ? "@I.ir_module" : "@T.prim_func", " before it"));
  }
  if (Peek().kind == TokenKind::kName && AtOp("=", 1) &&
      (AtName("TypeVar", 2) || AtName("T", 2))) {
    return ErrorHere("symbolic variables are not supported; shapes are static");
  }
  if (Peek().kind == TokenKind::kName && !IsPrefix(Text()) &&
      (AtOp(",", 1) || (AtOp("=", 1) && !AtName("te", 2)))) {
    return ParseNumbers();
  }
  if (!AtOp("@")) return NoProgram();
  std::string kind;
  TF_RETURN_IF_ERROR(ParseDecorator(kind));
  if (kind == "prim_func") return ParseFunction(module);
  return ParseClass(module);
}

absl::Status Parser::ParseClass(IRModule& module) {
  if (!TryName("class")) {
    return ErrorHere(
        absl::StrCat("expected a class after @ir_module, found ", Found()));
  }
  TF_RETURN_IF_ERROR(ExpectName("the module's name").status());
  if (AtOp("(")) SkipBrackets();
  TF_RETURN_IF_ERROR(Expect(":", "after the module's name"));
  TF_RETURN_IF_ERROR(ExpectLineEnd());
  if (Peek().kind != TokenKind::kIndent) {
    return ErrorHere("expected an indented module body");
  }
  ++at_;
  while (Peek().kind != TokenKind::kDedent) {
    if (Peek().kind == TokenKind::kString || AtName("import") ||
        AtName("from") || AtName("pass")) {
      SkipLine();
      continue;
    }
    if (Peek().kind == TokenKind::kNewline) {
      ++at_;
      continue;
    }
    if (AtName("I") && AtOp(".", 1)) {
      // I.module_attrs({...}) and similar calls do not affect programs.
      TF_RETURN_IF_ERROR(ParseCallee().status());
      if (!AtOp("(")) return ErrorHere("expected a call");
      SkipBrackets();
      TF_RETURN_IF_ERROR(ExpectLineEnd());
      continue;
    }
    if (!AtOp("@")) {
      return ErrorHere(absl::StrCat("expected @T.prim_func, found ", Found()));
    }
    const size_t offset = Peek().offset;
    std::string kind;
    TF_RETURN_IF_ERROR(ParseDecorator(kind));
    if (kind != "prim_func") return Error(offset, "modules do not nest");
    TF_RETURN_IF_ERROR(ParseFunction(module));
  }
  ++at_;
  return absl::OkStatus();
}

// --- Functions -----------------------------------------------------------

absl::Status Parser::ParseFunction(IRModule& module) {
  if (!TryName("def")) {
    return ErrorHere(
        absl::StrCat("expected def after @prim_func, found ", Found()));
  }
  const size_t offset = Peek().offset;
  const size_t mark = declared_.size();
  FunctionState state;
  TF_ASSIGN_OR_RETURN(state.func.name, ExpectName("the function's name"));
  if (module.Find(state.func.name) != nullptr) {
    return Error(offset, absl::StrCat("the module has two functions '",
                                      state.func.name, "'"));
  }
  if (static_cast<int>(module.functions.size()) >= limits_.max_functions) {
    return Error(offset, absl::StrCat("more than ", limits_.max_functions,
                                      " functions"));
  }
  for (size_t i = at_; i + 2 < tokens_.size(); ++i) {
    const std::string_view text = source_.Of(tokens_[i]);
    if (tokens_[i].kind != TokenKind::kName) continue;
    if (text == "def") break;
    if ((text == "block" || text == "sblock") &&
        tokens_[i + 2].kind == TokenKind::kString) {
      TF_ASSIGN_OR_RETURN(std::string name,
                          StringValue(source_, tokens_[i + 2]));
      state.given_names.insert(std::move(name));
    }
  }
  state.used_names.insert("root");
  function_ = &state;
  loops_ = 0;
  TF_RETURN_IF_ERROR(ParseParameters());
  if (TryOp("->") && !TryName("None")) {
    return ErrorHere("a prim_func returns None; results are buffers");
  }
  BlockState root;
  root.node.name = "root";
  root.node.predicate = BoolConst(true);
  root.is_root = true;
  root.suite_depth = suite_depth_ + 1;
  blocks_.push_back(&root);
  TF_ASSIGN_OR_RETURN(root.node.body, ParseSuite());
  blocks_.pop_back();
  CloseScope(mark);
  for (size_t i = 0; i < state.params.size(); ++i) {
    if (state.params[i] == nullptr) {
      return Error(offset, absl::StrCat("the handle '", state.param_names[i],
                                        "' has no T.match_buffer"));
    }
  }
  state.func.params = std::move(state.params);
  TF_ASSIGN_OR_RETURN(
      state.func.body,
      At(offset, ApplyDimAlign(BlockOf(std::move(root.node)), limits_)));
  function_ = nullptr;
  auto func = std::make_shared<const PrimFunc>(std::move(state.func));
  TF_RETURN_IF_ERROR(At(offset, Verify(*func, limits_)));
  module.functions.push_back(std::move(func));
  return absl::OkStatus();
}

absl::Status Parser::ParseParameters() {
  TF_RETURN_IF_ERROR(Expect("(", "for the parameters"));
  while (!AtOp(")")) {
    const size_t offset = Peek().offset;
    TF_ASSIGN_OR_RETURN(std::string name, ExpectName("a parameter"));
    TF_RETURN_IF_ERROR(Expect(":", "and a T.Buffer type"));
    const size_t type_at = Peek().offset;
    TF_ASSIGN_OR_RETURN(Callee type, ParseCallee());
    Symbol symbol{Symbol::kBuffer};
    if (type.name == "handle") {
      if (AtOp("(")) SkipBrackets();
      symbol.kind = Symbol::kHandle;
      symbol.param_index = function_->params.size();
    } else if (type.name == "Buffer") {
      TF_ASSIGN_OR_RETURN(symbol.buffer, ParseBufferType(name));
    } else if (DataType::Parse(type.name)) {
      return Error(type_at,
                   "scalar parameters are not supported: shapes are "
                   "static, values come in buffers");
    } else {
      return Error(type_at, "expected T.Buffer(...) or T.handle");
    }
    if (AtOp("=")) return ErrorHere("parameters have no default values");
    function_->params.push_back(symbol.buffer);
    function_->param_names.push_back(name);
    TF_RETURN_IF_ERROR(Declare(name, offset, std::move(symbol)));
    TF_RETURN_IF_ERROR(NextItem(")"));
  }
  return Expect(")", "after the parameters");
}

// --- Entry points --------------------------------------------------------

absl::StatusOr<IRModule> ParseModule(std::string_view text,
                                     std::string_view file_name,
                                     const Limits& limits) {
  // The functions of a model have its name, but they are text.
  if (file_name.ends_with(".onnx") && text.starts_with('\x08')) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(file_name),
                     ": error: a model is no program; `tune run` and `tunec` "
                     "take models, and tune or build their functions"));
  }
  const SourceText source(text, file_name);
  TF_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source, limits));
  if (tokens.size() <= 2) return source.Error(0, "the program is empty");
  return Parser(source, limits, std::move(tokens)).ParseProgram();
}

absl::StatusOr<PrimFuncPtr> ParseFunction(std::string_view text,
                                          std::string_view file_name,
                                          const Limits& limits) {
  TF_ASSIGN_OR_RETURN(IRModule module, ParseModule(text, file_name, limits));
  if (module.functions.size() != 1) {
    return SourceText(text, file_name)
        .Error(0, absl::StrCat("the program has ", module.functions.size(),
                               " functions where one is expected"));
  }
  return module.functions[0];
}

}  // namespace tilefarm::ir
