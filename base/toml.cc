#define TOML_IMPLEMENTATION
#include "base/toml.h"

#include <algorithm>
#include <stdexcept>

#include "absl/strings/str_cat.h"

namespace tilefarm {
namespace {

constexpr char kBlanks[] = " \t";

// What the parser does not survive: the name of a table begins with a character
// that no name has. Zero for a line that is not like that, else the column.
size_t BadTableName(std::string_view line) {
  size_t at = line.find_first_not_of(kBlanks);
  if (at == std::string_view::npos || line[at] != '[') return 0;
  at += line.substr(at).starts_with("[[") ? 2 : 1;
  at = line.find_first_not_of(kBlanks, at);
  if (at == std::string_view::npos) return 0;
  const char c = line[at];
  const bool begins_name = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                           (c >= 'a' && c <= 'z') || c == '_' || c == '-' ||
                           c == '"' || c == '\'' || c == '[' || c == ']';
  return begins_name ? 0 : at + 1;
}

absl::Status FailedAssertion(std::string_view text, const std::string& name,
                             const std::string& what) {
  int line = 1;
  for (size_t at = 0; at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t column = BadTableName(text.substr(at, end - at));
    if (column > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ":", line, ":", column,
                       ": the name of a table cannot begin like this"));
    }
    at = end + 1;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": this is no TOML (", what, ")"));
}

}  // namespace

void FailTomlAssertion(const char* what) { throw std::logic_error(what); }

absl::StatusOr<toml::table> ParseToml(std::string_view text,
                                      const std::string& name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    return TomlError(name, error.source(), std::string(error.description()));
  } catch (const std::logic_error& error) {
    return FailedAssertion(text, name, error.what());
  }
}

absl::Status TomlError(const std::string& name, const toml::source_region& at,
                       const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ":", at.begin.line, ":", at.begin.column, ": ", what));
}

}  // namespace tilefarm
