// Schedules as text: a list of primitive calls with the decisions of their
// random choices, in the syntax that TVM prints.
//
//   b0 = sch.get_block("C")
//   l1, l2, l3 = sch.get_loops(b0)
//   v4, v5 = sch.sample_perfect_tile(l1, n=2, max_innermost_factor=64,
//                                    decision=[16, 8])
//   l6, l7 = sch.split(l1, factors=[v4, v5])
#ifndef TILEFARM_COMPILER_SCHEDULE_TRACE_H_
#define TILEFARM_COMPILER_SCHEDULE_TRACE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::schedule {

// A random variable: the result of an instruction, by number within a trace.
// Ids are unique over all kinds, as in TVM's printing (b0, l1, v2).
enum class RvKind : uint8_t { kBlock, kLoop, kExpr };
struct Rv {
  RvKind kind;
  int id;
  bool operator==(const Rv&) const = default;
};
struct BlockRv {
  int id = -1;
};
struct LoopRv {
  int id = -1;
};
struct ExprRv {
  int id = -1;
};
using BlockOrLoop = std::variant<BlockRv, LoopRv>;

// An argument: a variable, a constant (ir::Attr: None, bool, int, float,
// string), or a list of arguments.
struct Arg;
using ArgList = std::vector<Arg>;
struct Arg {
  std::variant<Rv, ir::Attr, ArgList> value;
};

struct Instruction {
  std::string primitive;  // canonical name: "get_block", "split", ...
  // All arguments by canonical keyword, in the primitive's order.
  std::vector<std::pair<std::string, Arg>> args;
  std::vector<Rv> outputs;
  // For sample_* primitives: an int or a list of ints; None if undecided.
  ir::Attr decision;

  bool is_sample() const { return primitive.rfind("sample_", 0) == 0; }
};

struct Trace {
  std::vector<Instruction> instructions;

  // One line for each instruction, in the spelling above. Parse(Print(t)) == t,
  // and Print is a fixed point.
  std::string Print() const;
  // Accepts this spelling and TVM's (`sch.get_sblock(name=..., func_name=...)`,
  // keyword arguments, the `def apply_trace` wrapper, comments).
  // InvalidArgument with line, column and the text of the wrong line.
  static absl::StatusOr<Trace> Parse(std::string_view text);

  // The decisions of the sample instructions, in order.
  std::vector<ir::Attr> Decisions() const;
  // Replaces all decisions; their number must match.
  absl::Status SetDecisions(const std::vector<ir::Attr>& decisions);
};

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_TRACE_H_
