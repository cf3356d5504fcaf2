#include "compiler/ir/printer_text.h"

#include <charconv>
#include <cmath>
#include <unordered_set>
#include <variant>

namespace tilefarm::ir {
namespace {

// The shortest text that parses as the same value, always with a point or an
// exponent.
template <typename Float>
std::string ShortestFloat(Float value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

int Precedence(BinaryOp op, bool is_float) {
  switch (op) {
    case BinaryOp::kOr:
      return kPrecOr;
    case BinaryOp::kAnd:
      return kPrecAnd;
    case BinaryOp::kBitOr:
      return 4;
    case BinaryOp::kBitXor:
      return 5;
    case BinaryOp::kBitAnd:
      return 6;
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight:
      return 7;
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
      return 8;
    case BinaryOp::kMul:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
      return 9;
    case BinaryOp::kDiv:
      return is_float ? 9 : -1;
    case BinaryOp::kMod:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return -1;
    default:
      return kPrecComparison;
  }
}

std::string_view CallName(BinaryOp op) {
  switch (op) {
    case BinaryOp::kDiv:
      return "T.truncdiv";
    case BinaryOp::kMod:
      return "T.truncmod";
    case BinaryOp::kMin:
      return "T.min";
    default:
      return "T.max";
  }
}

std::string FloatText(double value, DataType dtype) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  return dtype.bits == 64 ? ShortestFloat(value)
                          : ShortestFloat(static_cast<float>(value));
}

std::string Quoted(const std::string& text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += "\\x";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string AttrText(const Attr& attr) {
  struct Text {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool v) const { return v ? "True" : "False"; }
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const {
      return std::isfinite(v)
                 ? ShortestFloat(v)
                 : "T.float64(" + FloatText(v, DataType::Float(64)) + ")";
    }
    std::string operator()(const std::string& v) const { return Quoted(v); }
    std::string operator()(const AttrList& list) const {
      std::string out = "[";
      for (size_t i = 0; i < list.size(); ++i) {
        if (i > 0) out += ", ";
        out += AttrText(list[i]);
      }
      return out + "]";
    }
    std::string operator()(const AttrMap& map) const {
      return AttrMapText(map);
    }
  };
  return std::visit(Text(), attr.value);
}

std::string AttrMapText(const AttrMap& attrs) {
  std::string out = "{";
  for (const auto& [key, value] : attrs) {
    if (out.size() > 1) out += ", ";
    out += Quoted(key) + ": " + AttrText(value);
  }
  return out + "}";
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(shape[i]);
  }
  return out + (shape.size() == 1 ? ",)" : ")");
}

std::string Identifier(const std::string& name) {
  static const std::unordered_set<std::string> kReserved = {
      "T",      "tir",   "tirx",     "for",   "if",     "in",     "and",
      "or",     "not",   "with",     "class", "def",    "True",   "False",
      "None",   "as",    "is",       "pass",  "while",  "else",   "elif",
      "return", "range", "import",   "from",  "lambda", "break",  "assert",
      "del",    "try",   "continue", "raise", "yield",  "global", "async",
      "await",  "match", "tvm"};
  std::string out;
  for (char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    if (out.empty() && digit) out += '_';
    out += letter || digit || c == '_' ? c : '_';
  }
  if (out.empty()) out.push_back('v');
  if (kReserved.contains(out)) out += '_';
  return out;
}

}  // namespace tilefarm::ir
