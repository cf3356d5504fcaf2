// How good the schedules without records are, and the estimate that they come
// from: for each kernel of a model or each function of a program, the time of
// the heuristic schedule, of the drafted one (what tunec uses without records),
// and of points of the design space.
//
//   default_schedules MODEL.onnx|PROGRAM.py [--samples N] [--only TEXT]
//
// Times are the least of several runs, in milliseconds; columns "est" are
// millions of estimated cycles. "best" is the fastest of the samples: half of
// them random points, half the best by the estimate among many.
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "base/rng.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/compile_model.h"
#include "compiler/driver/draft_schedule.h"
#include "compiler/driver/loaded_library.h"
#include "compiler/driver/read_model.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/schedule/trace.h"
#include "compiler/space/design_space.h"
#include "compiler/target/target.h"
#include "cost_model/estimate.h"
#include "cost_model/features.h"

namespace tilefarm {
namespace {

// Milliseconds; of this thread's processor time if it runs alone, which other
// programs disturb less.
double Now(const target::Target& target) {
  timespec now;
  clock_gettime(target.cores == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC,
                &now);
  return static_cast<double>(now.tv_sec) * 1e3 +
         static_cast<double>(now.tv_nsec) * 1e-6;
}

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<float, FreeDeleter>;

Buffer MakeBuffer(size_t bytes, bool floats, Rng& rng) {
  const size_t size = (bytes + 127) / 64 * 64;
  Buffer buffer(static_cast<float*>(std::aligned_alloc(64, size)));
  std::fill_n(buffer.get(), size / sizeof(float), 0.0F);
  if (floats) {
    for (size_t i = 0; i < bytes / sizeof(float); ++i) {
      buffer.get()[i] = static_cast<float>(rng.Below(1000)) * 0.002F - 0.999F;
    }
  }
  return buffer;
}

int CallWith(void* function, const std::vector<void*>& p) {
  using P = void*;
  switch (p.size()) {
    case 1:
      return reinterpret_cast<int (*)(P)>(function)(p[0]);
    case 2:
      return reinterpret_cast<int (*)(P, P)>(function)(p[0], p[1]);
    case 3:
      return reinterpret_cast<int (*)(P, P, P)>(function)(p[0], p[1], p[2]);
    case 4:
      return reinterpret_cast<int (*)(P, P, P, P)>(function)(p[0], p[1], p[2],
                                                             p[3]);
    case 5:
      return reinterpret_cast<int (*)(P, P, P, P, P)>(function)(
          p[0], p[1], p[2], p[3], p[4]);
    case 6:
      return reinterpret_cast<int (*)(P, P, P, P, P, P)>(function)(
          p[0], p[1], p[2], p[3], p[4], p[5]);
    case 7:
      return reinterpret_cast<int (*)(P, P, P, P, P, P, P)>(function)(
          p[0], p[1], p[2], p[3], p[4], p[5], p[6]);
    case 8:
      return reinterpret_cast<int (*)(P, P, P, P, P, P, P, P)>(function)(
          p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]);
    default:
      return -1;
  }
}

// Milliseconds of one run.
absl::StatusOr<double> Time(const ir::PrimFuncPtr& function,
                            const target::Target& target) {
  TF_ASSIGN_OR_RETURN(const driver::Artifact artifact,
                      driver::Compile(ir::IRModule{{function}},
                                      {.target = target, .symbol = "kernel"}));
  TF_ASSIGN_OR_RETURN(const driver::LoadedLibrary library,
                      driver::LoadedLibrary::Load(artifact.shared_object));
  Rng rng(1);
  std::vector<Buffer> buffers;
  std::vector<void*> params;
  const auto& packed = artifact.packed_parameters[0];
  for (size_t i = 0; i < function->params.size(); ++i) {
    const ir::BufferNode& param = *function->params[i];
    auto bytes = static_cast<size_t>(ir::MemoryBytes(param).value_or(0));
    if (std::ranges::count(packed, static_cast<int>(i)) > 0) {
      bytes = reinterpret_cast<size_t (*)(int)>(
          library.Find("kernel_packed_bytes"))(static_cast<int>(i));
    }
    buffers.push_back(
        MakeBuffer(bytes, param.dtype == ir::DataType::Float(32), rng));
    params.push_back(buffers.back().get());
  }
  void* kernel = library.Find(packed.empty() ? "kernel" : "kernel_packed");
  if (CallWith(kernel, params) != 0) {
    return absl::InternalError("the kernel failed");
  }
  double least = std::numeric_limits<double>::infinity();
  double spent = 0;
  for (int i = 0; i < 100 && (i < 3 || spent < 60); ++i) {
    const double start = Now(target);
    CallWith(kernel, params);
    const double time = Now(target) - start;
    least = std::min(least, time);
    spent += time;
  }
  return least;
}

struct Point {
  double cycles = 0;
  double time = std::numeric_limits<double>::infinity();
  std::string trace, terms;
};

// What the estimate is made of: a line a store, in thousands of cycles.
std::string Terms(const cost_model::FeatureRows& rows,
                  const target::Target& target) {
  std::string text;
  for (const cost_model::StoreCost& cost :
       cost_model::CostsOf(rows, target, cost_model::CoreModel())) {
    const double k = 1e-3 * cost.bands;
    absl::StrAppendFormat(
        &text,
        "             %7.0f: %.0f bands, arithmetic %.0f, latency %.0f, ports "
        "%.0f, masked %.0f, spills %.0f, guards %.0f, loops %.0f, runs %.0f, "
        "traffic %.0f %.0f %.0f\n",
        cost_model::CyclesOf(cost) * 1e-3, cost.bands, k * cost.arithmetic,
        k * cost.latency, k * cost.ports, k * cost.masked, k * cost.spills,
        1e-3 * cost.guards, 1e-3 * cost.loops, 1e-3 * cost.runs,
        1e-3 * cost.traffic[0], 1e-3 * cost.traffic[1], 1e-3 * cost.traffic[2]);
  }
  return text;
}

absl::StatusOr<Point> Look(const schedule::Schedule& schedule,
                           const target::Target& target) {
  Point point;
  const ir::PrimFuncPtr function = schedule.module().functions[0];
  const cost_model::FeatureRows rows =
      cost_model::ExtractFeatures(*function, target);
  point.cycles = cost_model::EstimateCycles(rows, target) * 1e-6;
  point.terms = Terms(rows, target);
  TF_ASSIGN_OR_RETURN(point.time, Time(function, target));
  point.trace = schedule.trace().Print();
  return point;
}

struct Options {
  std::string input, target = "host,cores=1", only;
  std::vector<std::string> dims;
  int samples = 0;
  bool traces = false, points = false;
};

absl::Status Report(const ir::PrimFuncPtr& function, int uses,
                    const Options& options, const target::Target& target) {
  TF_ASSIGN_OR_RETURN(const schedule::Schedule heuristic,
                      space::DefaultSchedule(ir::IRModule{{function}}, target,
                                             ir::FloatRule::kAsWritten));
  TF_ASSIGN_OR_RETURN(const Point h, Look(heuristic, target));
  TF_ASSIGN_OR_RETURN(
      const schedule::Schedule draft,
      driver::DraftSchedule(function, target, ir::FloatRule::kAsWritten));
  TF_ASSIGN_OR_RETURN(const Point d, Look(draft, target));
  std::vector<Point> points{h, d};
  auto made =
      space::DesignSpace::Create(function, target, ir::FloatRule::kAsWritten);
  if (made.ok() && options.samples > 0) {
    Rng rng(1);
    std::vector<std::pair<double, space::Candidate>> drawn;
    for (int i = 0; i < 20 * options.samples; ++i) {
      auto candidate = (*made)->Sample(rng);
      if (!candidate.ok()) continue;
      const auto schedule = (*made)->Apply(*candidate);
      if (!schedule.ok()) continue;
      const double cycles = cost_model::EstimateCycles(
          cost_model::ExtractFeatures(*schedule->module().functions[0], target),
          target);
      drawn.emplace_back(cycles, *std::move(candidate));
      if (i == options.samples / 2) {
        for (auto& [c, random] : drawn) {
          const auto s = (*made)->Apply(random);
          const auto point = Look(*s, target);
          if (point.ok()) points.push_back(*point);
        }
        drawn.clear();
      }
    }
    std::ranges::sort(drawn, {}, [](const auto& p) { return p.first; });
    if (drawn.size() > static_cast<size_t>(options.samples / 2)) {
      drawn.resize(static_cast<size_t>(options.samples / 2));
    }
    for (auto& [c, candidate] : drawn) {
      const auto point = Look(*(*made)->Apply(candidate), target);
      if (point.ok()) points.push_back(*point);
    }
  }
  const auto best = std::ranges::min_element(points, {}, &Point::time);
  const double flops = cost_model::CountFlops(*function);
  std::printf(
      "%-28s x%-3d %8.1f Mflop | heuristic %8.3f ms est %7.2f | draft %8.3f ms"
      " est %7.2f | best %8.3f ms est %7.2f | %6.1f of %6.1f GFLOPS\n",
      function->name.substr(0, 28).c_str(), uses, flops * 1e-6, h.time,
      h.cycles, d.time, d.cycles, best->time, best->cycles,
      flops / d.time * 1e-6, flops / best->time * 1e-6);
  if (options.points) {
    std::ranges::sort(points, {}, &Point::time);
    for (const Point& point : points) {
      std::printf("    %8.3f ms  est %8.2f\n%s", point.time, point.cycles,
                  point.terms.c_str());
    }
  }
  if (options.traces) {
    std::printf("program:\n%s\ndraft:\n%s\nbest:\n%s\n",
                ir::Print(ir::IRModule{{function}}).c_str(), d.trace.c_str(),
                best->trace.c_str());
  }
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  TF_ASSIGN_OR_RETURN(const target::Target target,
                      target::Parse(options.target));
  ir::IRModule module;
  std::vector<int> uses;
  if (driver::IsModel(options.input)) {
    TF_ASSIGN_OR_RETURN(
        const driver::ModelVariants variants,
        driver::ReadModelVariants(options.input, options.dims, target));
    driver::ModelKernels kernels =
        driver::ExtractKernels(variants.graphs, target.is_gpu());
    module = std::move(kernels.module);
    uses = std::move(kernels.uses);
  } else {
    std::ifstream file(options.input);
    std::ostringstream text;
    text << file.rdbuf();
    TF_ASSIGN_OR_RETURN(module, ir::ParseModule(text.str()));
    uses.assign(module.functions.size(), 1);
  }
  for (size_t i = 0; i < module.functions.size(); ++i) {
    const ir::PrimFuncPtr& function = module.functions[i];
    if (function->name.find(options.only) == std::string::npos) continue;
    const absl::Status status = Report(function, uses[i], options, target);
    if (!status.ok()) {
      std::printf("%s: %s\n", function->name.c_str(),
                  status.ToString().c_str());
    }
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app("How good the schedules without records are.");
  Options options;
  app.add_option("input", options.input)->required()->check(CLI::ExistingFile);
  app.add_option("--target", options.target);
  app.add_option("--dim", options.dims);
  app.add_option("--only", options.only, "functions whose name has this");
  app.add_option("--samples", options.samples, "points of the space");
  app.add_flag("--points", options.points,
               "print every point, and what its estimate is made of");
  app.add_flag("--traces", options.traces, "print programs and traces");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(options);
  if (!status.ok()) {
    std::fprintf(stderr, "default_schedules: %s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tilefarm

int main(int argc, char** argv) { return tilefarm::Main(argc, argv); }
