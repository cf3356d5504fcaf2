// The calls that a trace may contain: names, arguments, defaults and results.
// Shared by printing, parsing and recording.
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
  // Printed without its keyword, before keyword arguments.
  bool positional = false;
  // Takes all positional arguments: fuse(l1, l2), reorder(l1, l2).
  bool variadic = false;
  bool has_default = false;
  ir::Attr default_value = {};
};

enum class Outputs : uint8_t { kNone, kOne, kMany };

struct Primitive {
  std::string_view name;
  std::string_view other_name;  // spelling in newer TVM; may be empty
  std::span<const Parameter> parameters;
  Outputs outputs = Outputs::kNone;
  RvKind output_kind = RvKind::kExpr;
  bool has_decision = false;
  // The primitive changes neither the accesses of blocks nor which iterations
  // run at the same time, or it checks by itself which iterations may.
  bool keeps_concurrency = false;
};

// Finds it by either name; null if unknown.
const Primitive* FindPrimitive(std::string_view name);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_PRIMITIVE_TABLE_H_
