// Parses dtypes and attribute values.
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/parser_internal.h"

namespace tilefarm::ir {

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
  // TVM's layout_free_placeholders lists buffers; store their names.
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
  if (AtOp("{")) {
    TF_ASSIGN_OR_RETURN(AttrMap map, ParseAttrMap(depth + 1));
    return Attr(std::move(map));
  }
  // T.target("llvm") and T.target({"kind": "llvm"}) become their arguments; the
  // user chooses the target, not the program.
  if (Peek().kind == TokenKind::kName && Lookup(Text()) == nullptr &&
      AtOp(".", 1)) {
    const size_t start = at_;
    TF_ASSIGN_OR_RETURN(const Callee callee, ParseCallee());
    if ((callee.name == "target" || callee.name == "Target") && TryOp("(")) {
      TF_ASSIGN_OR_RETURN(Attr target, ParseAttr(depth + 1));
      TF_RETURN_IF_ERROR(Expect(")", "after the target"));
      return target;
    }
    at_ = start;
  }
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

absl::StatusOr<AttrMap> Parser::ParseAttrMap(int depth) {
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
    TF_ASSIGN_OR_RETURN(Attr value, ParseAttr(depth));
    if (!map.emplace(key, std::move(value)).second) {
      return Error(offset, absl::StrCat("attribute '", key, "' given twice"));
    }
    TF_RETURN_IF_ERROR(NextItem("}"));
  }
  TF_RETURN_IF_ERROR(Expect("}", "after the attributes"));
  return map;
}

}  // namespace tilefarm::ir
