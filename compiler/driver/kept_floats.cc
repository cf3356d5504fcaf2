#include "compiler/driver/kept_floats.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/parser.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"

namespace tilefarm::driver {
namespace {

// What FloatRule::kAsWritten may refuse (compiler/ir/float_rule.h).
constexpr std::array<std::string_view, 5> kMarks = {
    "skip_zeros", "winograd", "online_softmax", "online_product",
    ir::kSkipPadding};

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

bool UsesWinograd(const std::string& trace) {
  if (trace.find("winograd") == std::string::npos) return false;
  const auto parsed = schedule::Trace::Parse(trace);
  return !parsed.ok() ||
         std::any_of(parsed->instructions.begin(), parsed->instructions.end(),
                     [](const schedule::Instruction& instruction) {
                       return instruction.primitive == "winograd";
                     });
}

// The argument as text or number; empty: it has none of this name, or another
// type.
std::string ArgumentOf(const schedule::Instruction& instruction,
                       std::string_view name) {
  for (const auto& [key, argument] : instruction.args) {
    if (key != name) continue;
    const auto* constant = std::get_if<ir::Attr>(&argument.value);
    if (constant == nullptr) return "";
    if (const std::string* text = constant->AsString()) return *text;
    if (const auto number = constant->AsInt()) return absl::StrCat(*number);
  }
  return "";
}

// Empty: it changes loops or layouts alone.
std::string AlgorithmOf(const schedule::Instruction& instruction) {
  const std::string& primitive = instruction.primitive;
  if (primitive == "winograd") {
    return absl::StrCat("winograd F(", ArgumentOf(instruction, "tile"), ",3)");
  }
  if (primitive == "online_softmax" || primitive == "online_product") {
    return "online softmax";
  }
  if (primitive == "skip_zeros") return "products with zeros left out";
  if (primitive == "rfactor") return "partial sums";
  if (primitive == "tensorize") {
    return absl::StrCat("tensorized with ",
                        ArgumentOf(instruction, "tensor_intrin"));
  }
  if (primitive == "call_library") {
    return absl::StrCat("computed by ", ArgumentOf(instruction, "kernel"));
  }
  if (primitive != "annotate") return "";
  const std::string key = ArgumentOf(instruction, "ann_key");
  if (key == ir::kSkipPadding) return "padding left out";
  if (key == ir::kWarpMatrix) {
    return absl::StrCat("tensor cores by ", ArgumentOf(instruction, "ann_val"));
  }
  if (key == ir::kWarpgroupStages) return "tensor cores by wgmma";
  return key == ir::kPrepack ? "constants packed ahead of time" : "";
}

}  // namespace

bool Obeys(ir::FloatRule rule, const std::string& program,
           const std::string& trace) {
  if (rule == ir::FloatRule::kMayDiffer) return true;
  if (rule == ir::FloatRule::kNoWinograd) return !UsesWinograd(trace);
  if (!HasMark(trace)) return true;
  const auto function = ir::ParseFunction(program, "<record>");
  const auto parsed = schedule::Trace::Parse(trace);
  if (!function.ok() || !parsed.ok()) return false;
  const auto& instructions = parsed->instructions;
  size_t end = instructions.size();
  while (end > 0 && !Matters(instructions[end - 1])) --end;
  schedule::PartialReplay replay(ir::IRModule{{*function}}, /*seed=*/0, rule);
  return replay.Advance(*parsed, end).ok();
}

bool KeepsFloats(const std::string& program, const std::string& trace) {
  return Obeys(ir::FloatRule::kAsWritten, program, trace);
}

std::function<bool(const std::string& program, const std::string& trace)>
ObeysRule(ir::FloatRule rule) {
  if (rule == ir::FloatRule::kMayDiffer) return nullptr;
  return [rule](const std::string& program, const std::string& trace) {
    return Obeys(rule, program, trace);
  };
}

std::vector<std::string> AlgorithmsOf(const std::string& trace) {
  std::vector<std::string> algorithms;
  const auto parsed = schedule::Trace::Parse(trace);
  if (!parsed.ok()) return algorithms;
  for (const schedule::Instruction& instruction : parsed->instructions) {
    std::string one = AlgorithmOf(instruction);
    if (one.empty() || std::find(algorithms.begin(), algorithms.end(), one) !=
                           algorithms.end()) {
      continue;
    }
    algorithms.push_back(std::move(one));
  }
  return algorithms;
}

std::string DescribeAlgorithms(const std::vector<std::string>& algorithms,
                               bool keeps_floats) {
  std::string text = absl::StrJoin(algorithms, ", ");
  if (!keeps_floats) {
    absl::StrAppend(&text, text.empty() ? "" : "; ",
                    "rounds differently than the program, or leaves out terms");
  }
  return text;
}

}  // namespace tilefarm::driver
