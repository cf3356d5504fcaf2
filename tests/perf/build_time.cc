// Measures the time of each step of building a candidate.
//
//   build_time PROGRAM.py TRACE...
//
// Each trace is replayed and built --repeat times in this process, as a builder
// does; the medians of each step are printed in milliseconds of CPU time:
//
//   replay    program text and trace -> scheduled program
//   lower     -> lowered loops
//   code      -> object code: emission, LLVM's passes, its code generator
//   link      -> shared object
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status_macros.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/link.h"
#include "compiler/driver/lower_function.h"
#include "compiler/ir/parser.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "compiler/target/target.h"

namespace tilefarm {
namespace {

constexpr const char* kSteps[] = {"replay", "lower", "code", "link"};

double CpuMilliseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 +
         static_cast<double>(now.tv_nsec) * 1e-6;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// Adds one repetition's milliseconds to each step.
absl::Status Build(const std::string& program, const std::string& trace_text,
                   const target::Target& target,
                   std::vector<std::vector<double>>& steps) {
  double last = CpuMilliseconds();
  const auto note = [&](size_t step) {
    const double now = CpuMilliseconds();
    steps[step].push_back(now - last);
    last = now;
  };
  TF_ASSIGN_OR_RETURN(ir::IRModule module, ir::ParseModule(program));
  TF_ASSIGN_OR_RETURN(const schedule::Trace trace,
                      schedule::Trace::Parse(trace_text));
  TF_ASSIGN_OR_RETURN(const schedule::Schedule scheduled,
                      schedule::Replay(trace, std::move(module)));
  note(0);
  std::vector<codegen::LoweredFunction> lowered;
  for (const ir::PrimFuncPtr& function : scheduled.module().functions) {
    TF_ASSIGN_OR_RETURN(
        codegen::LoweredFunction made,
        driver::LowerFunction(*function, function->name, target));
    lowered.push_back(std::move(made));
  }
  note(1);
  TF_ASSIGN_OR_RETURN(const std::string object,
                      codegen::EmitObject(lowered, {target}));
  note(2);
  TF_RETURN_IF_ERROR(codegen::LinkSharedObject({&object, 1}, target).status());
  note(3);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app("Where the time of building a candidate goes.");
  std::string program, target_text = "host";
  std::vector<std::string> traces;
  int repeat = 5;
  bool json = false;
  app.add_option("program", program)->required()->check(CLI::ExistingFile);
  app.add_option("traces", traces)->required()->check(CLI::ExistingFile);
  app.add_option("--target", target_text);
  app.add_option("--repeat", repeat)->check(CLI::PositiveNumber);
  app.add_flag("--json", json);
  CLI11_PARSE(app, argc, argv);
  const absl::StatusOr<target::Target> target = target::Parse(target_text);
  if (!target.ok()) {
    std::fprintf(stderr, "build_time: %s\n",
                 target.status().ToString().c_str());
    return 2;
  }
  nlohmann::json results = nlohmann::json::array();
  for (const std::string& path : traces) {
    std::vector<std::vector<double>> steps(std::size(kSteps));
    // The first repetition fills the caches that a builder keeps.
    for (int i = 0; i <= repeat; ++i) {
      if (i == 1) {
        for (std::vector<double>& step : steps) step.clear();
      }
      const absl::Status status =
          Build(ReadFile(program), ReadFile(path), *target, steps);
      if (!status.ok()) {
        std::fprintf(stderr, "build_time: %s: %s\n", path.c_str(),
                     status.ToString().c_str());
        return 1;
      }
    }
    nlohmann::json result = {{"trace", path}};
    double sum = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      std::nth_element(steps[i].begin(), steps[i].begin() + repeat / 2,
                       steps[i].end());
      result[kSteps[i]] = steps[i][repeat / 2];
      sum += steps[i][repeat / 2];
    }
    result["all"] = sum;
    results.push_back(std::move(result));
  }
  if (json) {
    std::printf("%s\n", results.dump().c_str());
    return 0;
  }
  std::printf("%8s %8s %8s %8s %8s  trace\n", "all ms", "replay", "lower",
              "code", "link");
  for (const nlohmann::json& result : results) {
    std::printf("%8.1f", result["all"].get<double>());
    for (const char* step : kSteps) {
      std::printf(" %8.1f", result[step].get<double>());
    }
    std::printf("  %s\n", result["trace"].get<std::string>().c_str());
  }
  return 0;
}

}  // namespace
}  // namespace tilefarm

int main(int argc, char** argv) { return tilefarm::Main(argc, argv); }
