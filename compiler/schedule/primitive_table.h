// The calls a trace may make: names, arguments, defaults and results. What
// printing, parsing and recording share.
#ifndef TILEFARM_COMPILER_SCHEDULE_PRIMITIVE_TABLE_H_
#define TILEFARM_COMPILER_SCHEDULE_PRIMITIVE_TABLE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "compiler/ir/stmt.h"
#include "compiler/schedule/trace.h"

namespace tilefarm::schedule {

struct Parameter {
  std::string_view name;
  // Printed without its keyword, before those that have one.
  bool positional = false;
  // Takes every positional argument: fuse(l1, l2), reorder(l1, l2).
  bool variadic = false;
  bool has_default = false;
  ir::Attr default_value = {};
};

enum class Outputs : uint8_t { kNone, kOne, kMany };

struct Primitive {
  std::string_view name;
  std::string_view other_name;  // as newer TVM spells it; may be empty
  std::span<const Parameter> parameters;
  Outputs outputs = Outputs::kNone;
  RvKind output_kind = RvKind::kExpr;
  bool has_decision = false;
  // Says how to run loops or to lay out buffers, but changes neither what
  // blocks access nor which iterations run at the same time.
  bool only_marks = false;
};

// By either name; null for an unknown one.
const Primitive* FindPrimitive(std::string_view name);
std::span<const Primitive> AllPrimitives();

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_PRIMITIVE_TABLE_H_
