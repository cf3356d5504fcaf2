// Buffer types, shapes, dtypes and attribute values of the parser.
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/parser_internal.h"

namespace tilefarm::ir {

// --- Buffers -------------------------------------------------------------

absl::StatusOr<Buffer> Parser::ParseBufferType(const std::string& name) {
  if (TryOp("(")) return ParseBufferArgs(name, ")", true);
  // T.Buffer[128, "float32"], T.Buffer[(128, 128), "float32"].
  const size_t offset = Peek().offset;
  if (!TryOp("[")) {
    return ErrorHere("expected T.Buffer(shape, dtype)");
  }
  std::vector<int64_t> shape;
  DataType dtype = DataType::Float(32);
  if (AtOp("(")) {
    TF_ASSIGN_OR_RETURN(shape, ParseShape());
    TF_RETURN_IF_ERROR(NextItem("]"));
  } else {
    while (!AtOp("]") && Peek().kind != TokenKind::kString) {
      TF_ASSIGN_OR_RETURN(int64_t extent, ParseDimension());
      shape.push_back(extent);
      TF_RETURN_IF_ERROR(NextItem("]"));
    }
  }
  if (!AtOp("]")) {
    TF_ASSIGN_OR_RETURN(dtype, ParseDType());
  }
  TryOp(",");
  TF_RETURN_IF_ERROR(Expect("]", "after the buffer type"));
  return CheckedBuffer(name, dtype, std::move(shape), "global", offset);
}

absl::StatusOr<Buffer> Parser::ParseBufferArgs(const std::string& name,
                                               std::string_view close,
                                               bool allow_scope) {
  const size_t offset = Peek().offset;
  std::optional<std::vector<int64_t>> shape;
  std::optional<DataType> dtype;
  std::string scope = "global";
  while (!AtOp(close)) {
    std::string key;
    if (Peek().kind == TokenKind::kName && AtOp("=", 1)) {
      key = std::string(Text());
      at_ += 2;
    } else {
      key = !shape ? "shape" : !dtype ? "dtype" : "";
    }
    const size_t at = Peek().offset;
    if (key == "shape") {
      TF_ASSIGN_OR_RETURN(shape, ParseShape());
    } else if (key == "dtype") {
      TF_ASSIGN_OR_RETURN(dtype, ParseDType());
    } else if (key == "scope" && allow_scope) {
      TF_ASSIGN_OR_RETURN(scope, ExpectString("a scope"));
      if (scope.empty()) scope = "global";
      for (char c : scope) {
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
            !(c >= '0' && c <= '9') && c != '_' && c != '.') {
          return Error(at, "a scope is a word such as \"shared\"");
        }
      }
    } else if (key == "align" || key == "offset_factor") {
      // Layout hints that TVM prints with their defaults.
      TF_RETURN_IF_ERROR(ParseConstInt(key).status());
    } else {
      return Error(at,
                   absl::StrCat(key.empty() ? "too many arguments" : "'", key,
                                key.empty() ? "" : "' is not supported",
                                "; buffers are dense: shape, dtype and scope"));
    }
    TF_RETURN_IF_ERROR(NextItem(close));
  }
  if (!shape) return Error(offset, "the buffer needs a shape");
  TF_RETURN_IF_ERROR(Expect(close, "after the buffer's arguments"));
  return CheckedBuffer(name, dtype.value_or(DataType::Float(32)),
                       *std::move(shape), std::move(scope), offset);
}

absl::StatusOr<int64_t> Parser::ParseDimension() {
  const size_t offset = Peek().offset;
  static_context_ = "shapes are static, write the number";
  absl::StatusOr<int64_t> extent = ParseConstInt("a dimension");
  static_context_ = {};
  if (extent.ok() && *extent < 1) {
    return Error(offset, absl::StrCat("dimension ", *extent,
                                      "; extents are at least 1"));
  }
  return extent;
}

absl::StatusOr<std::vector<int64_t>> Parser::ParseShape() {
  std::vector<int64_t> shape;
  if (!AtOp("(") && !AtOp("[")) {
    TF_ASSIGN_OR_RETURN(int64_t extent, ParseDimension());
    shape.push_back(extent);
    return shape;
  }
  const std::string_view close = AtOp("(") ? ")" : "]";
  ++at_;
  while (!AtOp(close)) {
    TF_ASSIGN_OR_RETURN(int64_t extent, ParseDimension());
    shape.push_back(extent);
    TF_RETURN_IF_ERROR(NextItem(close));
  }
  ++at_;
  return shape;
}

absl::StatusOr<Buffer> Parser::CheckedBuffer(std::string name, DataType dtype,
                                             std::vector<int64_t> shape,
                                             std::string scope, size_t offset) {
  if (static_cast<int>(shape.size()) > limits_.max_dims) {
    return Error(offset,
                 absl::StrCat("buffer '", name, "' has ", shape.size(),
                              " dimensions; the limit is ", limits_.max_dims));
  }
  int64_t bytes = dtype.bytes();
  bool overflow = false;
  for (int64_t extent : shape) {
    overflow |= __builtin_mul_overflow(bytes, extent, &bytes);
  }
  if (overflow || bytes > limits_.max_buffer_bytes) {
    return Error(offset,
                 absl::StrCat("buffer '", name, "' is too large; the limit is ",
                              limits_.max_buffer_bytes, " bytes"));
  }
  return MakeBuffer(std::move(name), dtype, std::move(shape), std::move(scope));
}

absl::StatusOr<DataType> Parser::ParseDType() {
  const size_t offset = Peek().offset;
  std::string text;
  if (Peek().kind == TokenKind::kString) {
    TF_ASSIGN_OR_RETURN(text, ExpectString("a dtype"));
  } else if (Peek().kind == TokenKind::kName) {
    TF_ASSIGN_OR_RETURN(Callee callee, ParseCallee());
    text = callee.name;
  } else {
    return ErrorHere(
        absl::StrCat("expected a dtype in quotes, found ", Found()));
  }
  if (const auto dtype = DataType::Parse(text)) return *dtype;
  return Error(offset, absl::StrCat("unknown dtype '", text,
                                    "'; known are float16/32/64, bfloat16, "
                                    "int8/16/32/64, uint8/16/32/64 and bool"));
}

// --- Attributes ----------------------------------------------------------

absl::StatusOr<Attr> Parser::ParseAttr(int depth) {
  const size_t offset = Peek().offset;
  if (depth > 16) return ErrorHere("attribute lists nest too deep");
  TF_RETURN_IF_ERROR(CountNode());
  if (Peek().kind == TokenKind::kString) {
    TF_ASSIGN_OR_RETURN(std::string text, ExpectString("a value"));
    return Attr(std::move(text));
  }
  if (TryName("None")) return Attr();
  // TVM's layout_free_placeholders lists buffers; their names stand for them.
  if (Peek().kind == TokenKind::kName && !AtOp("[", 1)) {
    const Symbol* symbol = Lookup(Text());
    if (symbol != nullptr && symbol->kind == Symbol::kBuffer) {
      ++at_;
      return Attr(symbol->buffer->name);
    }
  }
  if (AtOp("[") || (AtOp("(") && depth >= 0)) {
    const std::string_view close = AtOp("[") ? "]" : ")";
    ++at_;
    AttrList list;
    while (!AtOp(close)) {
      TF_ASSIGN_OR_RETURN(Attr item, ParseAttr(depth + 1));
      list.push_back(std::move(item));
      TF_RETURN_IF_ERROR(NextItem(close));
    }
    ++at_;
    return Attr(std::move(list));
  }
  if (AtOp("{")) return ErrorHere("attributes do not hold maps");
  static_context_ = "attributes are constants";
  absl::StatusOr<Value> value = ParseExpr();
  static_context_ = {};
  if (!value.ok()) return value.status();
  if (const auto* real = As<FloatConstNode>(value->expr)) {
    return Attr(real->value);
  }
  if (const auto number = AsInt(value->expr)) {
    if (value->expr->dtype.is_bool()) return Attr(*number != 0);
    return Attr(*number);
  }
  return Error(offset, "attributes are constants");
}

absl::StatusOr<AttrMap> Parser::ParseAttrMap() {
  TF_RETURN_IF_ERROR(Expect("{", "for the attributes"));
  AttrMap map;
  while (!AtOp("}")) {
    const size_t offset = Peek().offset;
    TF_ASSIGN_OR_RETURN(std::string key, ExpectString("an attribute's name"));
    if (key.starts_with("pragma_import")) {
      return Error(offset, absl::StrCat("'", key,
                                        "': imports of code are not "
                                        "part of the language"));
    }
    TF_RETURN_IF_ERROR(Expect(":", "after the attribute's name"));
    TF_ASSIGN_OR_RETURN(Attr value, ParseAttr(0));
    if (!map.emplace(key, std::move(value)).second) {
      return Error(offset, absl::StrCat("attribute '", key, "' given twice"));
    }
    TF_RETURN_IF_ERROR(NextItem("}"));
  }
  TF_RETURN_IF_ERROR(Expect("}", "after the attributes"));
  return map;
}

}  // namespace tilefarm::ir
