// tune-opt: prints a program after any stage of compilation.
//
//   tune-opt FILE [--trace FILE | --draw N | --default] [--steps N]
//            [--target T] [--stage NAME] [--diff STAGE|N] [--function F]
//   tune-opt --list-stages
//
// --default is the schedule that tunec takes without a record; --draw 0 that of
// a heuristic without an estimate; --draw N applies the candidate of the
// target's design space that seed N draws. --steps N applies the first N
// instructions of it. --diff shows what changed since a stage, or since a
// number of steps.
//
// Stages: --list-stages describes them. Golden tests pipe the output into
// FileCheck. Exit codes: 0, 1 for a bad program or trace, 2 for bad usage.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/command_line/parse.h"
#include "base/near_name.h"
#include "base/status_macros.h"
#include "compiler/codegen/codegen.h"
#include "compiler/driver/draft_schedule.h"
#include "compiler/driver/line_diff.h"
#include "compiler/driver/lower_function.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/lower/check_program.h"
#include "compiler/lower/pipeline.h"
#include "compiler/lower/split_prepack.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "compiler/space/design_space.h"
#include "compiler/target/target.h"

namespace tilefarm {
namespace {

struct Options {
  std::string file;
  std::string trace;
  int64_t draw = -1;
  bool by_default = false;
  bool allow_rounding = false;
  int64_t steps = -1;  // -1: all
  std::string target = "x86-64:x86-64-v4,cores=1";
  std::string stage = "lowered";
  std::string diff;  // a stage, or a number of steps; empty: none
  std::string function;
  bool list_stages = false;

  bool is_scheduled() const {
    return !trace.empty() || draw >= 0 || by_default;
  }
  ir::FloatRule floats() const {
    return allow_rounding ? ir::FloatRule::kMayDiffer
                          : ir::FloatRule::kAsWritten;
  }
};

// The stage after splitting off what runs ahead of time
// (lower/split_prepack.h).
constexpr char kSplit[] = "split";
// --draw skips so many illegal points at most.
constexpr int kDraws = 200;

std::vector<lower::Stage> Stages() {
  std::vector<lower::Stage> stages = {
      {"parsed", "the program as it was understood, with every default", "all"},
      {"trace", "the instructions that were applied to it", "all"},
      {"scheduled", "the program after these instructions", "all"},
      {kSplit, "functions that pack constants ahead of time are apart", "all"}};
  for (const lower::Stage& stage : lower::Stages()) stages.push_back(stage);
  stages.push_back({"llvm", "LLVM IR as emitted", "all"});
  stages.push_back({"llvm-opt", "LLVM IR after LLVM's passes", "all"});
  stages.push_back({"asm", "assembly; PTX or OpenCL C for GPUs", "all"});
  return stages;
}

std::vector<std::string> StageNames() {
  std::vector<std::string> names;
  for (const lower::Stage& stage : Stages()) names.emplace_back(stage.name);
  return names;
}

std::string DescribeStages() {
  std::string text;
  for (const lower::Stage& stage : Stages()) {
    absl::StrAppendFormat(
        &text, "%-11s%s%s\n", std::string(stage.name), std::string(stage.what),
        stage.targets == "all"
            ? ""
            : absl::StrCat(" (", std::string(stage.targets), ")"));
  }
  return text;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The trace that the options name, with all its decisions.
absl::StatusOr<schedule::Trace> WholeTrace(const Options& options,
                                           const target::Target& target,
                                           const ir::IRModule& module) {
  if (!options.trace.empty()) {
    TF_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.trace));
    return schedule::Trace::Parse(text);
  }
  if (options.draw == 0) {
    TF_ASSIGN_OR_RETURN(
        const schedule::Schedule made,
        space::DefaultSchedule(module, target, options.floats()));
    return made.trace();
  }
  if (module.functions.size() != 1) {
    return absl::InvalidArgumentError(options.by_default
                                          ? "--default takes one function"
                                          : "--draw N takes one function");
  }
  if (options.by_default) {
    TF_ASSIGN_OR_RETURN(
        const schedule::Schedule made,
        driver::DraftSchedule(module.functions[0], target, options.floats()));
    return made.trace();
  }
  TF_ASSIGN_OR_RETURN(const auto space,
                      space::DesignSpace::Create(module.functions[0], target));
  Rng rng(static_cast<uint64_t>(options.draw));
  absl::Status why_not;
  for (int draw = 0; draw < kDraws; ++draw) {
    TF_ASSIGN_OR_RETURN(const space::Candidate candidate, space->Sample(rng));
    const auto made = space->Apply(candidate);
    if (made.ok()) return made->trace();
    why_not = made.status();
  }
  return why_not;
}

// The first `steps` instructions of the trace, applied; -1: all.
absl::StatusOr<schedule::Schedule> MakeSchedule(const Options& options,
                                                int64_t steps,
                                                const target::Target& target,
                                                const ir::IRModule& module) {
  TF_ASSIGN_OR_RETURN(schedule::Trace trace,
                      WholeTrace(options, target, module));
  auto& instructions = trace.instructions;
  const auto count = static_cast<int64_t>(instructions.size());
  if (steps > count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the trace has ", count, " instructions, fewer than ", steps));
  }
  if (steps >= 0) instructions.resize(static_cast<size_t>(steps));
  return schedule::Replay(trace, module);
}

// The program at a stage, after `steps` instructions of the schedule.
absl::StatusOr<std::string> TextAt(const Options& options,
                                   const std::string& stage, int64_t steps) {
  TF_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.file));
  TF_ASSIGN_OR_RETURN(ir::IRModule module, ir::ParseModule(text, options.file));
  if (stage == "parsed") return ir::Print(module);
  TF_RETURN_IF_ERROR(lower::CheckProgram(module));
  TF_ASSIGN_OR_RETURN(const target::Target target,
                      target::Parse(options.target));
  if (options.is_scheduled()) {
    TF_ASSIGN_OR_RETURN(const schedule::Schedule schedule,
                        MakeSchedule(options, steps, target, module));
    if (stage == "trace") return schedule.trace().Print();
    module = schedule.module();
  } else if (stage == "trace" || steps >= 0) {
    return absl::InvalidArgumentError(
        "there is no trace: see --trace, --draw and --default");
  }
  if (stage == "scheduled") return ir::Print(module);
  const std::vector<std::string> lowering = lower::StageNames();
  const bool is_lowering =
      std::find(lowering.begin(), lowering.end(), stage) != lowering.end();
  std::string out;
  std::vector<codegen::LoweredFunction> functions;
  for (const ir::PrimFuncPtr& function : module.functions) {
    if (!options.function.empty() && function->name != options.function) {
      continue;
    }
    if (!is_lowering && stage != kSplit) {
      TF_ASSIGN_OR_RETURN(
          codegen::LoweredFunction lowered,
          driver::LowerFunction(
              *function,
              function->name == "main" ? "tilefarm_main" : function->name,
              target));
      functions.push_back(std::move(lowered));
      continue;
    }
    TF_ASSIGN_OR_RETURN(const lower::PrepackSplit split,
                        lower::SplitPrepack(*function));
    std::vector<ir::PrimFuncPtr> parts;
    for (const lower::PackedParam& param : split.params) {
      if (param.pack != nullptr) parts.push_back(param.pack);
    }
    parts.push_back(split.packed);
    for (const ir::PrimFuncPtr& part : parts) {
      ir::PrimFuncPtr printed = part;
      if (is_lowering) {
        TF_ASSIGN_OR_RETURN(printed, lower::Lower(*part, target, stage));
      }
      absl::StrAppend(&out, ir::Print(*printed));
    }
  }
  if (is_lowering || stage == kSplit) return out;
  const codegen::Options codegen_options = {.target = target};
  if (stage == "asm") {
    return codegen::EmitAssembly(functions, codegen_options);
  }
  return codegen::EmitLlvmIr(functions, codegen_options,
                             /*optimized=*/stage == "llvm-opt");
}

absl::StatusOr<std::string> Run(const Options& options) {
  if (options.list_stages) return DescribeStages();
  TF_ASSIGN_OR_RETURN(std::string text,
                      TextAt(options, options.stage, options.steps));
  if (options.diff.empty()) return text;
  int64_t steps = 0;
  const bool is_number = absl::SimpleAtoi(options.diff, &steps);
  TF_ASSIGN_OR_RETURN(const std::string before,
                      is_number ? TextAt(options, options.stage, steps)
                                : TextAt(options, options.diff, options.steps));
  const std::string name =
      is_number ? absl::StrCat("step ", steps) : options.diff;
  return driver::UnifiedDiff(before, text, name,
                             !is_number ? options.stage
                             : options.steps >= 0
                                 ? absl::StrCat("step ", options.steps)
                                 : "all steps");
}

std::string CheckDiff(const std::string& text) {
  const std::vector<std::string> names = StageNames();
  int64_t steps = 0;
  if (std::find(names.begin(), names.end(), text) != names.end() ||
      (absl::SimpleAtoi(text, &steps) && steps >= 0)) {
    return "";
  }
  return absl::StrCat("'", text, "' is neither a stage nor a number of steps",
                      SuggestName(text, names));
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Prints a program after any stage of compilation.", "tune-opt");
  auto* list = app.add_flag("--list-stages", options.list_stages,
                            "say what the stages are");
  app.add_option("file", options.file, "the program");
  auto* trace =
      app.add_option("--trace", options.trace, "a trace to apply first");
  auto* draw =
      app.add_option("--draw", options.draw,
                     "0: the schedule of a heuristic; N: the candidate that "
                     "seed N draws from the design space")
          ->check(CLI::NonNegativeNumber)
          ->excludes(trace);
  app.add_flag("--default", options.by_default,
               "the schedule that tunec takes without a record")
      ->excludes(trace)
      ->excludes(draw);
  app.add_flag("--allow-rounding", options.allow_rounding,
               "of schedules without a record also those that round "
               "differently than the program");
  app.add_option("--steps", options.steps,
                 "apply the first so many instructions alone")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--target", options.target,
                 "KIND[:MODEL][,key=value...] or host")
      ->capture_default_str();
  app.add_option("--stage", options.stage, "what to print; see --list-stages")
      ->check(CLI::IsMember(StageNames()))
      ->capture_default_str();
  app.add_option("--diff", options.diff,
                 "print what changed since this stage, or since this number of "
                 "steps")
      ->check(CheckDiff);
  app.add_option("--function", options.function, "only this function");
  if (const auto code = ParseCommandLine(app, argc, argv)) return *code;
  if (options.file.empty() && !*list) {
    std::cerr << "tune-opt: file is required\n"
                 "(tune-opt --help says what there is)\n";
    return kUsageError;
  }
  const absl::StatusOr<std::string> out = Run(options);
  if (!out.ok()) {
    std::cerr << "tune-opt: " << std::string(out.status().message()) << "\n";
    return 1;
  }
  std::cout << *out;
  return std::cout.good() ? 0 : 1;
}

}  // namespace
}  // namespace tilefarm

int main(int argc, char** argv) { return tilefarm::Main(argc, argv); }
