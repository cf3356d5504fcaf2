// Constants, attributes and names as text. Private to the printer.
#ifndef TILEFARM_COMPILER_IR_PRINTER_TEXT_H_
#define TILEFARM_COMPILER_IR_PRINTER_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

// Python's precedences.
inline constexpr int kPrecOr = 0;
inline constexpr int kPrecAnd = 1;
inline constexpr int kPrecNot = 2;
inline constexpr int kPrecComparison = 3;
// The precedence of an operator; -1 if it is printed as a call.
int Precedence(BinaryOp op, bool is_float);
// The name of such a call: "T.min".
std::string_view CallName(BinaryOp op);

// The argument of T.float32(...): the shortest text that parses as the same
// value, with "inf" and "nan" in quotes.
std::string FloatText(double value, DataType dtype);
std::string Quoted(const std::string& text);
std::string AttrText(const Attr& attr);
std::string AttrMapText(const AttrMap& attrs);
// "(128, 128)", "(128,)", "()".
std::string ShapeText(const std::vector<int64_t>& shape);
// The name, or a similar one that is an identifier and not a reserved word.
std::string Identifier(const std::string& name);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_PRINTER_TEXT_H_
