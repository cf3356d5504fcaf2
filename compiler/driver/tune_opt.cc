// tune-opt: prints a program after any stage of compilation.
//
//   tune-opt FILE [--trace FILE | --draw N] [--target T] [--stage NAME]
//            [--function F]
//
// --draw 0 schedules by default; --draw N applies the candidate of the target's
// design space that seed N draws.
//
// Stages: parsed, trace (that was applied), scheduled, split (functions that
// pack layout-free parameters split off), every stage of lowering, llvm (as
// emitted), llvm-opt and asm. Golden tests pipe the output into FileCheck.
// Exit codes: 0, 1 for a bad program or trace, 2 for bad usage.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/command_line/parse.h"
#include "base/status_macros.h"
#include "compiler/codegen/codegen.h"
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
  std::string target = "x86-64:x86-64-v4,cores=1";
  std::string stage = "lowered";
  std::string function;
};

// The stage after splitting off what runs ahead of time
// (lower/split_prepack.h).
constexpr char kSplit[] = "split";

std::vector<std::string> Stages() {
  std::vector<std::string> stages = {"parsed", "trace", "scheduled", kSplit};
  for (std::string& name : lower::StageNames()) {
    stages.push_back(std::move(name));
  }
  for (const char* name : {"llvm", "llvm-opt", "asm"}) stages.push_back(name);
  return stages;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The schedule that the trace file or --draw asks for.
absl::StatusOr<schedule::Schedule> MakeSchedule(const Options& options,
                                                const target::Target& target,
                                                const ir::IRModule& module) {
  if (!options.trace.empty()) {
    TF_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.trace));
    TF_ASSIGN_OR_RETURN(const schedule::Trace trace,
                        schedule::Trace::Parse(text));
    return schedule::Replay(trace, module);
  }
  if (options.draw == 0) {
    return space::DefaultSchedule(module, target, ir::FloatRule::kAsWritten);
  }
  if (module.functions.size() != 1) {
    return absl::InvalidArgumentError("--draw N takes one function");
  }
  TF_ASSIGN_OR_RETURN(const auto space,
                      space::DesignSpace::Create(module.functions[0], target));
  Rng rng(static_cast<uint64_t>(options.draw));
  TF_ASSIGN_OR_RETURN(const space::Candidate candidate, space->Sample(rng));
  return space->Apply(candidate);
}

absl::StatusOr<std::string> Run(const Options& options) {
  TF_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.file));
  TF_ASSIGN_OR_RETURN(ir::IRModule module, ir::ParseModule(text, options.file));
  if (options.stage == "parsed") return ir::Print(module);
  TF_RETURN_IF_ERROR(lower::CheckProgram(module));
  TF_ASSIGN_OR_RETURN(const target::Target target,
                      target::Parse(options.target));
  if (!options.trace.empty() || options.draw >= 0) {
    TF_ASSIGN_OR_RETURN(const schedule::Schedule schedule,
                        MakeSchedule(options, target, module));
    if (options.stage == "trace") return schedule.trace().Print();
    module = schedule.module();
  } else if (options.stage == "trace") {
    return absl::InvalidArgumentError("there is no trace: see --draw");
  }
  if (options.stage == "scheduled") return ir::Print(module);
  const std::vector<std::string> lowering = lower::StageNames();
  const bool is_lowering = std::find(lowering.begin(), lowering.end(),
                                     options.stage) != lowering.end();
  std::string out;
  std::vector<codegen::LoweredFunction> functions;
  for (const ir::PrimFuncPtr& function : module.functions) {
    if (!options.function.empty() && function->name != options.function) {
      continue;
    }
    if (!is_lowering && options.stage != kSplit) {
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
        TF_ASSIGN_OR_RETURN(printed,
                            lower::Lower(*part, target, options.stage));
      }
      absl::StrAppend(&out, ir::Print(*printed));
    }
  }
  if (is_lowering || options.stage == kSplit) return out;
  const codegen::Options codegen_options = {.target = target};
  if (options.stage == "asm") {
    return codegen::EmitAssembly(functions, codegen_options);
  }
  return codegen::EmitLlvmIr(functions, codegen_options,
                             /*optimized=*/options.stage == "llvm-opt");
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Prints a program after any stage of compilation.", "tune-opt");
  app.add_option("file", options.file, "the program")->required();
  app.add_option("--trace", options.trace, "a trace to apply first");
  app.add_option("--draw", options.draw,
                 "0: the default schedule; N: the candidate of seed N")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--target", options.target,
                 "KIND[:MODEL][,key=value...] or host");
  app.add_option("--stage", options.stage,
                 absl::StrCat("one of ", absl::StrJoin(Stages(), ", ")))
      ->check(CLI::IsMember(Stages()));
  app.add_option("--function", options.function, "only this function");
  if (const auto code = ParseCommandLine(app, argc, argv)) return *code;
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
