// Splits text of the TVMScript dialect into tokens, with Python's indentation
// rules. For the parsers of programs and of traces.
#ifndef TILEFARM_COMPILER_IR_LEXER_H_
#define TILEFARM_COMPILER_IR_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/limits.h"

namespace tilefarm::ir {

enum class TokenKind : uint8_t {
  kName,
  kInt,
  kFloat,
  kString,
  kOp,
  kNewline,
  kIndent,
  kDedent,
  kEnd,
};

// Only twelve bytes, since a program may have millions of tokens; SourceText
// gives the text.
struct Token {
  uint32_t offset;
  uint32_t length;
  TokenKind kind;
};

// The program's text; the only place that adds positions to errors.
class SourceText {
 public:
  SourceText(std::string_view text, std::string_view file_name)
      : text_(text), file_name_(file_name) {}

  std::string_view text() const { return text_; }
  std::string_view Of(const Token& token) const {
    return text_.substr(token.offset, token.length);
  }
  // InvalidArgument in the format of parser.h. Long lines are cut around the
  // caret, and bytes that a terminal cannot show are replaced.
  absl::Status Error(size_t offset, std::string_view message) const;

 private:
  std::string_view text_;
  std::string file_name_;
};

// The tokens, ending with kEnd. Every error has a position. Brackets nest at
// most limits.max_nesting deep; comments and empty lines produce no tokens.
absl::StatusOr<std::vector<Token>> Tokenize(const SourceText& source,
                                            const Limits& limits);

// The value of a string token, with escapes resolved.
absl::StatusOr<std::string> StringValue(const SourceText& source,
                                        const Token& token);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_LEXER_H_
