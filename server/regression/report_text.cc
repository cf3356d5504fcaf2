#include "server/regression/report_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace tilefarm::regression {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

std::string ValidUtf8(std::string_view text) {
  // The JSON library replaces what is not UTF-8 when it prints a string.
  const std::string quoted =
      nlohmann::json(std::string(text))
          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(quoted).get<std::string>();
}

std::string Shortened(std::string text, size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  size_t end = most_bytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return text.substr(0, end) + "...";
}

std::string XmlText(std::string_view text) {
  std::string out;
  for (const char c : ValidUtf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\t':
      case '\n':
      case '\r':
        // Attributes would make spaces of these.
        absl::StrAppend(&out, "&#", static_cast<int>(c), ";");
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += kReplacement;
        } else {
          out += c;
        }
    }
  }
  // U+FFFE and U+FFFF are valid UTF-8 and no characters of XML.
  for (const char* const bad : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
    for (size_t at = out.find(bad); at != std::string::npos;
         at = out.find(bad, at)) {
      out.replace(at, 3, kReplacement);
      at += 3;
    }
  }
  return out;
}

std::string MarkdownCode(std::string_view text) {
  std::string inner;
  size_t ticks = 0, most_ticks = 0;
  for (const char c : ValidUtf8(text)) {
    ticks = c == '`' ? ticks + 1 : 0;
    most_ticks = std::max(most_ticks, ticks);
    if (static_cast<unsigned char>(c) < 0x20) {
      inner += ' ';
    } else if (c == '|') {
      inner += "\\|";
    } else {
      inner += c;
    }
  }
  if (inner.find_first_not_of(' ') == std::string::npos) return "";
  const std::string fence(most_ticks + 1, '`');
  // A space on both sides is not part of the code.
  const bool pad = inner.front() == '`' || inner.back() == '`' ||
                   (inner.front() == ' ' && inner.back() == ' ');
  const char* const space = pad ? " " : "";
  return absl::StrCat(fence, space, inner, space, fence);
}

std::string MarkdownText(std::string_view text) {
  std::string out;
  for (const char c : ValidUtf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '@':
      case '#':
        // A comment behind it: it no longer begins a name or a number.
        absl::StrAppend(&out, std::string(1, c), "<!-- -->");
        break;
      case '\\':
      case '`':
      case '*':
      case '_':
      case '[':
      case ']':
      case '|':
      case '~':
      case '$':
        out += '\\';
        out += c;
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  // What begins like an address would be a link.
  return absl::StrReplaceAll(
      out, {{"://", ":<!-- -->//"}, {"www.", "www<!-- -->."}});
}

bool IsLink(std::string_view text) {
  constexpr size_t kMostBytes = 500;
  if (text.size() > kMostBytes ||
      (!text.starts_with("https://") && !text.starts_with("http://"))) {
    return false;
  }
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c > 0x20 && c < 0x7f && c != '<' && c != '>' && c != '|' &&
           c != '"' && c != '\\';
  });
}

std::string CsvText(std::string_view text) {
  std::string field = ValidUtf8(text);
  if (!field.empty() && std::string_view("=+-@\t\r").find(field.front()) !=
                            std::string_view::npos) {
    field.insert(field.begin(), '\'');
  }
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char c : field) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace tilefarm::regression
