// Parses the text of a trace: straight-line calls, in tokens of ir's lexer.
// Never evaluates anything as Python.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>
#include <unordered_map>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/lexer.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/trace.h"

namespace tilefarm::schedule {
namespace {

using ir::Token;
using ir::TokenKind;

constexpr int kMaxListDepth = 32;

class Parser {
 public:
  explicit Parser(std::string_view text) : source_(text, "trace") {}

  absl::StatusOr<Trace> Parse() {
    TF_ASSIGN_OR_RETURN(tokens_, ir::Tokenize(source_, ir::Limits()));
    Trace trace;
    while (Peek().kind != TokenKind::kEnd) {
      if (Peek().kind == TokenKind::kNewline ||
          Peek().kind == TokenKind::kIndent ||
          Peek().kind == TokenKind::kDedent) {
        ++next_;
        continue;
      }
      const std::string_view word = Text();
      if (word == "def" || word == "from" || word == "import") {
        while (Peek().kind != TokenKind::kNewline) ++next_;
        continue;
      }
      TF_ASSIGN_OR_RETURN(Instruction instruction, Line());
      trace.instructions.push_back(std::move(instruction));
    }
    return trace;
  }

 private:
  // --- Tokens ---
  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  std::string_view Text() const { return source_.Of(Peek()); }
  bool At(std::string_view op, size_t ahead = 0) const {
    return Peek(ahead).kind == TokenKind::kOp && source_.Of(Peek(ahead)) == op;
  }
  bool Take(std::string_view op) {
    if (!At(op)) return false;
    ++next_;
    return true;
  }
  absl::Status Expect(std::string_view op, std::string_view where) {
    if (Take(op)) return absl::OkStatus();
    return Error(
        absl::StrCat("expected '", std::string(op), "' ", std::string(where)));
  }
  absl::StatusOr<Token> Name(std::string_view what) {
    if (Peek().kind == TokenKind::kName) return tokens_[next_++];
    return Error(absl::StrCat("expected ", std::string(what)));
  }
  absl::Status Error(const Token& at, std::string_view what) const {
    return source_.Error(at.offset, what);
  }
  absl::Status Error(std::string_view what) const {
    return Error(Peek(), what);
  }

  // --- Lines ---
  // [outputs =] sch.primitive(arguments)
  absl::StatusOr<Instruction> Line() {
    std::vector<Token> names;
    bool tuple = false;
    do {
      TF_ASSIGN_OR_RETURN(const Token name, Name("a name"));
      names.push_back(name);
      tuple |= At(",");
    } while (Take(",") && !At("="));
    const bool assigns = Take("=");
    if (assigns) {
      TF_RETURN_IF_ERROR(Name("a call").status());
    } else if (names.size() != 1) {
      return Error("expected '=' after the results' names");
    }
    TF_RETURN_IF_ERROR(Expect(".", "after the schedule's name"));
    const Token call = Peek();
    const Primitive* primitive = FindPrimitive(Text());
    if (primitive == nullptr) {
      return Error(
          absl::StrCat("unknown primitive \"", std::string(Text()), "\""));
    }
    ++next_;
    Instruction instruction;
    instruction.primitive = std::string(primitive->name);
    TF_RETURN_IF_ERROR(Arguments(*primitive, call, instruction));
    if (Peek().kind != TokenKind::kNewline) {
      return Error("expected the end of the line");
    }
    if (!assigns) return instruction;
    if (primitive->outputs == Outputs::kNone) {
      return Error(names[0],
                   absl::StrCat(instruction.primitive, " has no result"));
    }
    if (primitive->outputs == Outputs::kOne && (names.size() != 1 || tuple)) {
      return Error(names[0],
                   absl::StrCat(instruction.primitive, " has one result"));
    }
    for (const Token& name : names) {
      const Rv rv{primitive->output_kind, next_id_++};
      variables_[std::string(source_.Of(name))] = rv;
      instruction.outputs.push_back(rv);
    }
    return instruction;
  }

  absl::Status Arguments(const Primitive& primitive, const Token& call,
                         Instruction& instruction) {
    const size_t count = primitive.parameters.size();
    std::vector<std::optional<Arg>> values(count);
    TF_RETURN_IF_ERROR(Expect("(", "after the primitive's name"));
    size_t next = 0;
    bool keywords = false;
    while (!Take(")")) {
      const Token where = Peek();
      std::string_view keyword;
      if (where.kind == TokenKind::kName && At("=", 1)) {
        keyword = Text();
        next_ += 2;
      }
      TF_ASSIGN_OR_RETURN(Arg arg, Value(0));
      if (keyword == "decision" && primitive.has_decision) {
        TF_ASSIGN_OR_RETURN(instruction.decision, Constant(arg, where));
      } else if (!keyword.empty()) {
        keywords = true;
        const size_t index = IndexOf(primitive, keyword);
        if (index == count) {
          return Error(
              where, absl::StrCat(instruction.primitive, " has no argument \"",
                                  std::string(keyword), "\""));
        }
        if (values[index].has_value()) {
          return Error(where, absl::StrCat("argument \"", std::string(keyword),
                                           "\" is given twice"));
        }
        values[index] = std::move(arg);
      } else if (keywords) {
        return Error(where, "a positional argument after a keyword");
      } else if (next >= count) {
        return Error(where, "too many arguments");
      } else if (primitive.parameters[next].variadic) {
        if (!values[next].has_value()) values[next] = Arg{ArgList{}};
        std::get<ArgList>(values[next]->value).push_back(std::move(arg));
      } else {
        values[next++] = std::move(arg);
      }
      if (Take(",")) continue;
      TF_RETURN_IF_ERROR(Expect(")", "after the arguments"));
      break;
    }
    for (size_t i = 0; i < count; ++i) {
      const Parameter& parameter = primitive.parameters[i];
      if (!values[i].has_value()) {
        if (parameter.has_default) {
          values[i] = Arg{parameter.default_value};
        } else if (parameter.variadic) {
          values[i] = Arg{ArgList{}};
        } else {
          return Error(call,
                       absl::StrCat(instruction.primitive, " needs argument \"",
                                    std::string(parameter.name), "\""));
        }
      }
      instruction.args.push_back(
          {std::string(parameter.name), *std::move(values[i])});
    }
    return absl::OkStatus();
  }

  static size_t IndexOf(const Primitive& primitive, std::string_view keyword) {
    const auto& parameters = primitive.parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].name == keyword && !parameters[i].variadic) return i;
    }
    return parameters.size();
  }

  absl::StatusOr<ir::Attr> Constant(const Arg& arg, const Token& where) {
    if (const auto* attr = std::get_if<ir::Attr>(&arg.value)) return *attr;
    const auto* list = std::get_if<ArgList>(&arg.value);
    if (list == nullptr) return Error(where, "a decision is a constant");
    ir::AttrList out;
    for (const Arg& item : *list) {
      TF_ASSIGN_OR_RETURN(ir::Attr attr, Constant(item, where));
      out.push_back(std::move(attr));
    }
    return ir::Attr(std::move(out));
  }

  // --- Values ---
  absl::StatusOr<Arg> Value(int nesting) {
    if (nesting > kMaxListDepth) return Error("lists nest too deeply");
    const Token token = Peek();
    if (token.kind == TokenKind::kString) {
      ++next_;
      TF_ASSIGN_OR_RETURN(std::string value, ir::StringValue(source_, token));
      return Arg{ir::Attr(std::move(value))};
    }
    if (At("[") || At("(")) return List(nesting);
    if (At("-") || At("+") || token.kind == TokenKind::kInt ||
        token.kind == TokenKind::kFloat) {
      return Number();
    }
    if (token.kind != TokenKind::kName) return Error("expected a value");
    const std::string_view name = Text();
    if (name == "lambda") return Lambda();
    ++next_;
    if (At(".")) return IndexMapCall(token);
    if (name == "None") return Arg{ir::Attr()};
    if (name == "True") return Arg{ir::Attr(true)};
    if (name == "False") return Arg{ir::Attr(false)};
    const auto found = variables_.find(std::string(name));
    if (found != variables_.end()) return Arg{found->second};
    return Error(token,
                 absl::StrCat("unknown name \"", std::string(name), "\""));
  }

  absl::StatusOr<Arg> List(int nesting) {
    const std::string_view close = At("[") ? "]" : ")";
    ++next_;
    ArgList list;
    while (!Take(close)) {
      TF_ASSIGN_OR_RETURN(Arg item, Value(nesting + 1));
      list.push_back(std::move(item));
      if (Take(",")) continue;
      TF_RETURN_IF_ERROR(Expect(close, "after the list"));
      break;
    }
    // Constants become one attribute, so that equal texts give equal traces.
    ir::AttrList constants;
    for (const Arg& item : list) {
      const auto* attr = std::get_if<ir::Attr>(&item.value);
      if (attr == nullptr) return Arg{std::move(list)};
      constants.push_back(*attr);
    }
    return Arg{ir::Attr(std::move(constants))};
  }

  absl::StatusOr<Arg> Number() {
    const Token where = Peek();
    std::string text = Take("-") ? "-" : "";
    if (text.empty()) Take("+");
    const TokenKind kind = Peek().kind;
    absl::StrAppend(&text, std::string(Text()));
    const auto read = [&](auto value) -> std::optional<Arg> {
      const char* end = text.data() + text.size();
      const auto result = std::from_chars(text.data(), end, value);
      if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
      return Arg{ir::Attr(value)};
    };
    const std::optional<Arg> number =
        kind == TokenKind::kFloat ? read(double{}) : read(int64_t{});
    if (!number) {
      return Error(where, kind == TokenKind::kFloat ? "not a number"
                                                    : "not a 64-bit integer");
    }
    ++next_;
    return *number;
  }

  // tvm.tirx.IndexMap.from_func(lambda ..., inverse_index_map=...): only the
  // first argument, the map, is used, since its inverse follows from it.
  absl::StatusOr<Arg> IndexMapCall(const Token& where) {
    std::string_view name;
    while (Take(".")) {
      TF_ASSIGN_OR_RETURN(const Token part, Name("a name"));
      name = source_.Of(part);
    }
    if (name != "from_func" || !Take("(")) {
      return Error(where, "unknown name or call");
    }
    if (Text() != "lambda") return Error("expected a lambda");
    TF_ASSIGN_OR_RETURN(Arg map, Lambda());
    while (Take(",") && !At(")")) {
      TF_RETURN_IF_ERROR(Name("an argument's name").status());
      TF_RETURN_IF_ERROR(Expect("=", "after the argument's name"));
      TF_RETURN_IF_ERROR(Value(kMaxListDepth).status());
    }
    TF_RETURN_IF_ERROR(Expect(")", "after the index map"));
    return map;
  }

  // The text of `lambda i, j: expression`, up to the comma or parenthesis that
  // ends it.
  absl::StatusOr<Arg> Lambda() {
    const Token first = Peek();
    while (Peek().kind != TokenKind::kNewline && !At(":")) ++next_;
    size_t end = first.offset;
    for (int nesting = 0; Peek().kind != TokenKind::kNewline; ++next_) {
      if (At("(") || At("[")) ++nesting;
      if ((At(")") || At("]")) && nesting-- == 0) break;
      if (At(",") && nesting == 0) break;
      end = Peek().offset + Peek().length;
    }
    return Arg{ir::Attr(
        std::string(source_.text().substr(first.offset, end - first.offset)))};
  }

  const ir::SourceText source_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  int next_id_ = 0;
  std::unordered_map<std::string, Rv> variables_;
};

}  // namespace

absl::StatusOr<Trace> Trace::Parse(std::string_view text) {
  return Parser(text).Parse();
}

}  // namespace tilefarm::schedule
