#include "compiler/driver/kept_floats.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "compiler/ir/annotations.h"
#include "compiler/ir/parser.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"

namespace tilefarm::driver {
namespace {

// What FloatRule::kAsWritten may refuse (compiler/ir/float_rule.h).
constexpr std::array<std::string_view, 4> kMarks = {
    "skip_zeros", "winograd", "online_softmax", ir::kSkipPadding};

bool HasMark(std::string_view text) {
  return std::any_of(kMarks.begin(), kMarks.end(), [&](std::string_view mark) {
    return text.find(mark) != std::string_view::npos;
  });
}

// Whether the answer may depend on the instruction: inlining changes what a
// block skips.
bool Matters(const schedule::Instruction& instruction) {
  return instruction.primitive == "compute_inline" ||
         HasMark(schedule::Trace{{instruction}}.Print());
}

}  // namespace

bool KeepsFloats(const std::string& program, const std::string& trace) {
  if (!HasMark(trace)) return true;
  const auto function = ir::ParseFunction(program, "<record>");
  const auto parsed = schedule::Trace::Parse(trace);
  if (!function.ok() || !parsed.ok()) return false;
  const auto& instructions = parsed->instructions;
  size_t end = instructions.size();
  while (end > 0 && !Matters(instructions[end - 1])) --end;
  schedule::PartialReplay replay(ir::IRModule{{*function}}, /*seed=*/0,
                                 ir::FloatRule::kAsWritten);
  return replay.Advance(*parsed, end).ok();
}

}  // namespace tilefarm::driver
