#include "compiler/ir/lexer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace tilefarm::ir {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool IsNameChar(char c) { return IsNameStart(c) || IsDigit(c); }
int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The length of the well-formed UTF-8 sequence at `at`; 0 if there is none.
size_t Utf8Length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto tail = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(at + 1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!tail(at + 1) || !tail(at + 2)) return 0;
    if (first == 0xE0 && byte(at + 1) < 0xA0) return 0;
    if (first == 0xED && byte(at + 1) > 0x9F) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!tail(at + 1) || !tail(at + 2) || !tail(at + 3)) return 0;
    if (first == 0xF0 && byte(at + 1) < 0x90) return 0;
    if (first == 0xF4 && byte(at + 1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

// A printable line: one column per code point, without control characters.
std::string Displayable(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size();) {
    const size_t length = Utf8Length(line, i);
    const unsigned char c = static_cast<unsigned char>(line[i]);
    if (length == 0) {
      out += '?';
      ++i;
    } else if (length == 1 && (c < 0x20 || c == 0x7F)) {
      out += ' ';
      ++i;
    } else {
      out += line.substr(i, length);
      i += length;
    }
  }
  return out;
}

size_t CountColumns(std::string_view text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++count) {
    i += std::max<size_t>(1, Utf8Length(text, i));
  }
  return count;
}

class Lexer {
 public:
  Lexer(const SourceText& source, const Limits& limits)
      : source_(source), text_(source.text()), limits_(limits) {}

  absl::StatusOr<std::vector<Token>> Run() {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3;
    while (at_ < text_.size()) TF_RETURN_IF_ERROR(Line());
    if (!open_.empty()) {
      return Error(open_.back(), "this bracket is never closed");
    }
    Add(TokenKind::kNewline, at_, 0);
    for (; indents_.size() > 1; indents_.pop_back()) {
      Add(TokenKind::kDedent, at_, 0);
    }
    Add(TokenKind::kEnd, at_, 0);
    return std::move(tokens_);
  }

 private:
  absl::Status Error(size_t offset, std::string_view message) const {
    return source_.Error(offset, message);
  }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void Add(TokenKind kind, size_t offset, size_t length) {
    tokens_.push_back(
        {static_cast<uint32_t>(offset), static_cast<uint32_t>(length), kind});
  }
  bool AtLineEnd() const {
    return at_ >= text_.size() || text_[at_] == '\n' ||
           (text_[at_] == '\r' && Peek(1) == '\n');
  }
  void SkipLineEnd() {
    if (Peek() == '\r') ++at_;
    if (at_ < text_.size()) ++at_;
  }
  void SkipComment() {
    while (!AtLineEnd()) ++at_;
  }

  // One physical line. Inside brackets, indentation and line ends are ignored.
  absl::Status Line() {
    const size_t start = at_;
    while (Peek() == ' ') ++at_;
    const size_t width = at_ - start;
    const bool tab = Peek() == '\t';
    const size_t tab_at = at_;
    while (Peek() == ' ' || Peek() == '\t' || Peek() == '\f') ++at_;
    if (AtLineEnd()) {
      SkipLineEnd();
      return absl::OkStatus();
    }
    if (Peek() == '#') {
      SkipComment();
      SkipLineEnd();
      return absl::OkStatus();
    }
    if (open_.empty() && !continued_) {
      if (tab) return Error(tab_at, "tab in the indentation; use spaces");
      TF_RETURN_IF_ERROR(Indentation(width));
    }
    continued_ = false;
    while (!AtLineEnd()) {
      const char c = Peek();
      if (c == ' ' || c == '\t' || c == '\f') {
        ++at_;
      } else if (c == '#') {
        SkipComment();
      } else if (c == '\\') {
        ++at_;
        if (!AtLineEnd()) return Error(at_ - 1, "stray backslash");
        SkipLineEnd();
        continued_ = true;
        return absl::OkStatus();
      } else {
        TF_RETURN_IF_ERROR(OneToken());
      }
    }
    if (open_.empty()) Add(TokenKind::kNewline, at_, 0);
    SkipLineEnd();
    return absl::OkStatus();
  }

  absl::Status Indentation(size_t width) {
    if (width > indents_.back()) {
      if (indents_.size() > static_cast<size_t>(limits_.max_nesting)) {
        return Error(at_, absl::StrCat("statements nest deeper than ",
                                       limits_.max_nesting, " levels"));
      }
      indents_.push_back(width);
      Add(TokenKind::kIndent, at_, 0);
      return absl::OkStatus();
    }
    while (width < indents_.back()) {
      indents_.pop_back();
      Add(TokenKind::kDedent, at_, 0);
    }
    if (width != indents_.back()) {
      return Error(at_, "this indentation matches no outer line");
    }
    return absl::OkStatus();
  }

  absl::Status OneToken() {
    const char c = Peek();
    const size_t start = at_;
    if (IsNameStart(c)) {
      while (IsNameChar(Peek())) ++at_;
      Add(TokenKind::kName, start, at_ - start);
      return absl::OkStatus();
    }
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) return Number();
    if (c == '"' || c == '\'') return String();
    static constexpr std::string_view kOps[] = {
        "//=", "**=", "<<=", ">>=", "//", "**", "==", "!=", "<=", ">=", "<<",
        ">>",  "->",  "+=",  "-=",  "*=", "/=", "%=", "&=", "|=", "^=", "+",
        "-",   "*",   "/",   "%",   "<",  ">",  "=",  "(",  ")",  "[",  "]",
        "{",   "}",   ",",   ":",   ".",  "@",  "&",  "|",  "^",  "~",  ";"};
    for (std::string_view op : kOps) {
      if (text_.substr(at_, op.size()) != op) continue;
      at_ += op.size();
      Add(TokenKind::kOp, start, op.size());
      return Bracket(op, start);
    }
    if (c == '\0') return Error(start, "NUL byte in the program");
    if (static_cast<unsigned char>(c) >= 0x80) {
      return Error(start,
                   "only ASCII is allowed outside of strings and comments");
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      return Error(start, "control character in the program");
    }
    return Error(
        start, absl::StrCat("unexpected character '", std::string(1, c), "'"));
  }

  absl::Status Bracket(std::string_view op, size_t start) {
    if (op == "(" || op == "[" || op == "{") {
      if (open_.size() >= static_cast<size_t>(limits_.max_nesting)) {
        return Error(start, absl::StrCat("brackets nest deeper than ",
                                         limits_.max_nesting, " levels"));
      }
      open_.push_back(start);
    } else if (op == ")" || op == "]" || op == "}") {
      if (open_.empty()) {
        return Error(start, absl::StrCat("'", std::string(op),
                                         "' without an opening bracket"));
      }
      const char opener = text_[open_.back()];
      const char wanted = opener == '(' ? ')' : opener == '[' ? ']' : '}';
      if (op[0] != wanted) {
        return Error(start, absl::StrCat("'", std::string(op), "' closes a '",
                                         std::string(1, opener), "'"));
      }
      open_.pop_back();
    }
    return absl::OkStatus();
  }

  absl::Status Number() {
    const size_t start = at_;
    bool is_float = false;
    if (Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X' || Peek(1) == 'b' ||
                          Peek(1) == 'B' || Peek(1) == 'o' || Peek(1) == 'O')) {
      at_ += 2;
      while (HexValue(Peek()) >= 0 || Peek() == '_') ++at_;
    } else {
      Digits();
      if (Peek() == '.') {
        is_float = true;
        ++at_;
        Digits();
      }
      if (Peek() == 'e' || Peek() == 'E') {
        const size_t sign = Peek(1) == '+' || Peek(1) == '-' ? 1 : 0;
        if (IsDigit(Peek(1 + sign))) {
          is_float = true;
          at_ += 1 + sign;
          Digits();
        }
      }
    }
    if (IsNameChar(Peek()) || text_[at_ - 1] == '_') {
      return Error(start, "malformed number");
    }
    if (!is_float && at_ - start > 1 && text_[start] == '0' &&
        (IsDigit(text_[start + 1]) || text_[start + 1] == '_')) {
      return Error(start, "malformed number: it starts with 0");
    }
    if (at_ - start > 400) return Error(start, "number with too many digits");
    Add(is_float ? TokenKind::kFloat : TokenKind::kInt, start, at_ - start);
    return absl::OkStatus();
  }
  void Digits() {
    while (IsDigit(Peek()) || (Peek() == '_' && IsDigit(Peek(1)))) ++at_;
  }

  absl::Status String() {
    const size_t start = at_;
    const char quote = Peek();
    const bool triple = Peek(1) == quote && Peek(2) == quote;
    at_ += triple ? 3 : 1;
    while (true) {
      if (at_ >= text_.size() || (!triple && AtLineEnd())) {
        return Error(start, "this string is never closed");
      }
      if (Peek() == '\\') {
        at_ += 2;
      } else if (Peek() == quote && !triple) {
        ++at_;
        break;
      } else if (triple && Peek() == quote && Peek(1) == quote &&
                 Peek(2) == quote) {
        at_ += 3;
        break;
      } else {
        ++at_;
      }
    }
    Add(TokenKind::kString, start, at_ - start);
    return absl::OkStatus();
  }

  const SourceText& source_;
  const std::string_view text_;
  const Limits& limits_;
  size_t at_ = 0;
  bool continued_ = false;  // the previous line ended with a backslash
  std::vector<size_t> open_;
  std::vector<size_t> indents_ = {0};
  std::vector<Token> tokens_;
};

}  // namespace

absl::Status SourceText::Error(size_t offset, std::string_view message) const {
  offset = std::min(offset, text_.size());
  const auto newlines = std::count(
      text_.begin(), text_.begin() + static_cast<long>(offset), '\n');
  size_t begin = text_.rfind('\n', offset == 0 ? 0 : offset - 1);
  begin = begin == std::string_view::npos || offset == 0 ? 0 : begin + 1;
  size_t end = text_.find('\n', offset);
  if (end == std::string_view::npos) end = text_.size();
  if (end > begin && text_[end - 1] == '\r' && end > offset) --end;
  const size_t column = CountColumns(text_.substr(begin, offset - begin)) + 1;
  std::string prefix;
  constexpr size_t kBefore = 100;
  constexpr size_t kAfter = 60;
  std::string suffix;
  if (offset - begin > kBefore) {
    begin = offset - kBefore;
    // Do not start in the middle of a code point.
    while (begin < offset && (text_[begin] & 0xC0) == 0x80) ++begin;
    prefix = "...";
  }
  if (end > offset + kAfter) {
    end = offset + kAfter;
    suffix = "...";
  }
  const size_t caret =
      prefix.size() + CountColumns(text_.substr(begin, offset - begin));
  return absl::InvalidArgumentError(
      absl::StrCat(file_name_, ":", newlines + 1, ":", column,
                   ": error: ", std::string(message), "\n", prefix,
                   Displayable(text_.substr(begin, end - begin)), suffix, "\n",
                   std::string(caret, ' '), "^"));
}

absl::StatusOr<std::vector<Token>> Tokenize(const SourceText& source,
                                            const Limits& limits) {
  const std::string_view text = source.text();
  if (static_cast<int64_t>(text.size()) > limits.max_text_bytes) {
    return source.Error(
        0, absl::StrCat("the program has ", text.size(),
                        " bytes; the limit is ", limits.max_text_bytes));
  }
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Length(text, i);
    if (length == 0) return source.Error(i, "invalid UTF-8");
    if (text[i] == '\0') return source.Error(i, "NUL byte in the program");
    i += length;
  }
  return Lexer(source, limits).Run();
}

absl::StatusOr<std::string> StringValue(const SourceText& source,
                                        const Token& token) {
  std::string_view raw = source.Of(token);
  const size_t quotes =
      raw.size() >= 6 && raw[1] == raw[0] && raw[2] == raw[0] ? 3 : 1;
  raw = raw.substr(quotes, raw.size() - 2 * quotes);
  std::string out;
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      out += raw[i];
      continue;
    }
    const char c = ++i < raw.size() ? raw[i] : '\0';
    switch (c) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case '\\':
      case '"':
      case '\'':
        out += c;
        break;
      case 'x':
        if (i + 2 < raw.size() + 0 && HexValue(raw[i + 1]) >= 0 &&
            HexValue(raw[i + 2]) >= 0 && HexValue(raw[i + 1]) < 8) {
          out += static_cast<char>(HexValue(raw[i + 1]) * 16 +
                                   HexValue(raw[i + 2]));
          i += 2;
          break;
        }
        [[fallthrough]];
      default:
        return source.Error(token.offset + quotes + i - 1,
                            "unknown escape in a string; \\n, \\t, \\\\, \\\", "
                            "\\' and \\x00 to \\x7f are known");
    }
  }
  return out;
}

}  // namespace tilefarm::ir
