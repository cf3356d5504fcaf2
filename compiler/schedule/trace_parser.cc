// Text -> Trace. A hand-written reader of straight-line calls: never evaluates
// anything as Python.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/trace.h"

namespace tilefarm::schedule {
namespace {

constexpr size_t kMaxTextBytes = 4 << 20;
constexpr int kMaxListDepth = 32;

bool IsNameStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool IsNameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool IsDigit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<Trace> Parse() {
    if (text_.size() > kMaxTextBytes) {
      return absl::InvalidArgumentError("trace: the text exceeds 4 MiB");
    }
    Trace trace;
    while (true) {
      SkipBlank(/*newlines=*/true);
      if (AtEnd()) return trace;
      const std::string_view word = PeekName();
      if (word == "def" || word == "from" || word == "import") {
        SkipLine();
        continue;
      }
      TF_ASSIGN_OR_RETURN(Instruction instruction, Line());
      trace.instructions.push_back(std::move(instruction));
    }
  }

 private:
  // --- Characters ---
  bool AtEnd() const { return pos_ >= text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[pos_]; }

  void SkipLine() {
    while (!AtEnd() && Peek() != '\n') ++pos_;
  }
  // Spaces and comments, and newlines where they mean nothing.
  void SkipBlank(bool newlines) {
    while (!AtEnd()) {
      const char c = Peek();
      if (c == '#') {
        SkipLine();
      } else if (c == ' ' || c == '\t' || c == '\r' ||
                 (c == '\n' && newlines)) {
        ++pos_;
      } else if (c == '\\' && pos_ + 1 < text_.size() &&
                 text_[pos_ + 1] == '\n') {
        pos_ += 2;
      } else {
        return;
      }
    }
  }
  bool Take(char c) {
    SkipBlank(depth_ > 0);
    if (Peek() != c) return false;
    ++pos_;
    return true;
  }
  absl::Status Expect(char c, std::string_view where) {
    if (Take(c)) return absl::OkStatus();
    return Error(pos_, absl::StrCat("expected '", std::string(1, c), "' ",
                                    std::string(where)));
  }
  std::string_view PeekName() const {
    size_t end = pos_;
    if (end < text_.size() && IsNameStart(text_[end])) {
      while (end < text_.size() && IsNameChar(text_[end])) ++end;
    }
    return text_.substr(pos_, end - pos_);
  }

  absl::Status Error(size_t where, std::string_view what) const {
    size_t line = 1;
    size_t start = 0;
    for (size_t i = 0; i < where && i < text_.size(); ++i) {
      if (text_[i] != '\n') continue;
      ++line;
      start = i + 1;
    }
    const size_t end = std::min(text_.find('\n', start), text_.size());
    const size_t column = where - start + 1;
    return absl::InvalidArgumentError(absl::StrCat(
        "trace:", line, ":", column, ": error: ", std::string(what), "\n",
        std::string(text_.substr(start, end - start)), "\n",
        std::string(column - 1, ' '), "^"));
  }

  // --- Lines ---
  // [outputs =] sch.primitive(arguments)
  absl::StatusOr<Instruction> Line() {
    depth_ = 0;
    std::vector<std::pair<std::string_view, size_t>> names;
    bool tuple = false;
    while (true) {
      SkipBlank(false);
      const std::string_view name = PeekName();
      if (name.empty()) return Error(pos_, "expected a name");
      names.push_back({name, pos_});
      pos_ += name.size();
      if (Take(',')) {
        tuple = true;
        SkipBlank(false);
        if (Peek() != '=') continue;
      }
      break;
    }
    const bool assigns = Take('=');
    std::string_view receiver = names.back().first;
    if (assigns) {
      SkipBlank(false);
      receiver = PeekName();
      if (receiver.empty()) return Error(pos_, "expected a call");
      pos_ += receiver.size();
    } else if (names.size() != 1) {
      return Error(pos_, "expected '=' after the results' names");
    }
    TF_RETURN_IF_ERROR(Expect('.', "after the schedule's name"));
    const size_t call_pos = pos_;
    const std::string_view call = PeekName();
    const Primitive* primitive = FindPrimitive(call);
    if (primitive == nullptr) {
      return Error(call_pos, absl::StrCat("unknown primitive \"",
                                          std::string(call), "\""));
    }
    pos_ += call.size();
    Instruction instruction;
    instruction.primitive = std::string(primitive->name);
    TF_RETURN_IF_ERROR(Arguments(*primitive, call_pos, instruction));
    SkipBlank(false);
    if (!AtEnd() && Peek() != '\n') {
      return Error(pos_, "expected the end of the line");
    }
    if (!assigns) return instruction;
    if (primitive->outputs == Outputs::kNone) {
      return Error(names[0].second,
                   absl::StrCat(instruction.primitive, " has no result"));
    }
    if (primitive->outputs == Outputs::kOne && (names.size() != 1 || tuple)) {
      return Error(names[0].second,
                   absl::StrCat(instruction.primitive, " has one result"));
    }
    for (const auto& [name, where] : names) {
      const Rv rv{primitive->output_kind, next_id_++};
      variables_[std::string(name)] = rv;
      instruction.outputs.push_back(rv);
    }
    return instruction;
  }

  absl::Status Arguments(const Primitive& primitive, size_t call_pos,
                         Instruction& instruction) {
    const size_t count = primitive.parameters.size();
    std::vector<std::optional<Arg>> values(count);
    TF_RETURN_IF_ERROR(Expect('(', "after the primitive's name"));
    depth_ = 1;
    size_t next = 0;
    bool keywords = false;
    while (!Take(')')) {
      SkipBlank(true);
      const size_t where = pos_;
      const std::string_view word = PeekName();
      std::string_view keyword;
      if (!word.empty()) {
        const size_t back = pos_;
        pos_ += word.size();
        if (Take('=')) {
          keyword = word;
        } else {
          pos_ = back;
        }
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
      if (Take(',')) continue;
      TF_RETURN_IF_ERROR(Expect(')', "after the arguments"));
      break;
    }
    depth_ = 0;
    for (size_t i = 0; i < count; ++i) {
      const Parameter& parameter = primitive.parameters[i];
      if (!values[i].has_value()) {
        if (parameter.has_default) {
          values[i] = Arg{parameter.default_value};
        } else if (parameter.variadic) {
          values[i] = Arg{ArgList{}};
        } else {
          return Error(call_pos,
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

  absl::StatusOr<ir::Attr> Constant(const Arg& arg, size_t where) {
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
    SkipBlank(true);
    if (nesting > kMaxListDepth) return Error(pos_, "lists nest too deeply");
    const char c = Peek();
    if (c == '"' || c == '\'') return String();
    if (c == '[' || c == '(') return List(nesting);
    if (c == '-' || c == '+' || c == '.' || IsDigit(c)) return Number();
    const size_t where = pos_;
    const std::string_view name = PeekName();
    if (name.empty()) return Error(where, "expected a value");
    if (name == "lambda") return Lambda();
    pos_ += name.size();
    if (Peek() == '.') return IndexMapCall(where);
    if (name == "None") return Arg{ir::Attr()};
    if (name == "True") return Arg{ir::Attr(true)};
    if (name == "False") return Arg{ir::Attr(false)};
    const auto found = variables_.find(std::string(name));
    if (found == variables_.end()) {
      return Error(where,
                   absl::StrCat("unknown name \"", std::string(name), "\""));
    }
    return Arg{found->second};
  }

  absl::StatusOr<Arg> List(int nesting) {
    const char close = Peek() == '[' ? ']' : ')';
    ++pos_;
    ++depth_;
    ArgList list;
    while (!Take(close)) {
      TF_ASSIGN_OR_RETURN(Arg item, Value(nesting + 1));
      list.push_back(std::move(item));
      if (Take(',')) continue;
      TF_RETURN_IF_ERROR(Expect(close, "after the list"));
      break;
    }
    --depth_;
    // Constants are one attribute, so that equal texts give equal traces.
    ir::AttrList constants;
    for (const Arg& item : list) {
      const auto* attr = std::get_if<ir::Attr>(&item.value);
      if (attr == nullptr) return Arg{std::move(list)};
      constants.push_back(*attr);
    }
    return Arg{ir::Attr(std::move(constants))};
  }

  absl::StatusOr<Arg> String() {
    const size_t where = pos_;
    const char quote = text_[pos_++];
    std::string out;
    while (!AtEnd() && Peek() != quote && Peek() != '\n') {
      char c = text_[pos_++];
      if (c == '\\' && !AtEnd()) {
        c = text_[pos_++];
        if (c == 'n') c = '\n';
        if (c == 't') c = '\t';
      }
      out += c;
    }
    if (AtEnd() || Peek() != quote) return Error(where, "the string is open");
    ++pos_;
    return Arg{ir::Attr(std::move(out))};
  }

  absl::StatusOr<Arg> Number() {
    const size_t where = pos_;
    size_t end = pos_;
    if (text_[end] == '-' || text_[end] == '+') ++end;
    bool is_float = false;
    while (end < text_.size() &&
           (IsNameChar(text_[end]) || text_[end] == '.' ||
            ((text_[end] == '-' || text_[end] == '+') &&
             (text_[end - 1] == 'e' || text_[end - 1] == 'E')))) {
      is_float |= text_[end] == '.' || text_[end] == 'e' || text_[end] == 'E';
      ++end;
    }
    size_t start = pos_;
    if (text_[start] == '+') ++start;
    const char* first = text_.data() + start;
    const char* last = text_.data() + end;
    pos_ = end;
    if (is_float) {
      double value = 0;
      const auto result = std::from_chars(first, last, value);
      if (result.ec != std::errc() || result.ptr != last) {
        return Error(where, "not a number");
      }
      return Arg{ir::Attr(value)};
    }
    int64_t value = 0;
    const auto result = std::from_chars(first, last, value);
    if (result.ec != std::errc() || result.ptr != last) {
      return Error(where, "not a 64-bit integer");
    }
    return Arg{ir::Attr(value)};
  }

  // tvm.tirx.IndexMap.from_func(lambda ..., inverse_index_map=...): the map is
  // the first argument, and its inverse follows from it.
  absl::StatusOr<Arg> IndexMapCall(size_t where) {
    std::string_view name;
    while (Peek() == '.') {
      ++pos_;
      name = PeekName();
      pos_ += name.size();
    }
    if (name != "from_func" || !Take('(')) {
      return Error(where, "unknown name or call");
    }
    ++depth_;
    SkipBlank(true);
    if (PeekName() != "lambda") return Error(pos_, "expected a lambda");
    TF_ASSIGN_OR_RETURN(Arg map, Lambda());
    while (Take(',')) {
      SkipBlank(true);
      const std::string_view keyword = PeekName();
      pos_ += keyword.size();
      if (keyword.empty()) break;
      TF_RETURN_IF_ERROR(Expect('=', "after the argument's name"));
      TF_RETURN_IF_ERROR(Value(kMaxListDepth).status());
    }
    TF_RETURN_IF_ERROR(Expect(')', "after the index map"));
    --depth_;
    return map;
  }

  // The text of `lambda i, j: expression`, up to the comma or parenthesis
  // that ends it.
  absl::StatusOr<Arg> Lambda() {
    const size_t where = pos_;
    while (!AtEnd() && Peek() != ':' && Peek() != '\n') ++pos_;
    int nesting = 0;
    while (!AtEnd()) {
      const char c = Peek();
      if (c == '(' || c == '[') ++nesting;
      if (c == ')' || c == ']') {
        if (nesting == 0) break;
        --nesting;
      }
      if (c == ',' && nesting == 0) break;
      ++pos_;
    }
    if (AtEnd()) return Error(where, "the lambda is open");
    size_t end = pos_;
    while (end > where && text_[end - 1] == ' ') --end;
    return Arg{ir::Attr(std::string(text_.substr(where, end - where)))};
  }

  const std::string_view text_;
  size_t pos_ = 0;
  int depth_ = 0;  // of parentheses: newlines inside mean nothing
  int next_id_ = 0;
  std::unordered_map<std::string, Rv> variables_;
};

}  // namespace

absl::StatusOr<Trace> Trace::Parse(std::string_view text) {
  return Parser(text).Parse();
}

}  // namespace tilefarm::schedule
