#include "compiler/driver/profile_model.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "compiler/ir/structural.h"
#include "nlohmann/json.hpp"

namespace tilefarm::driver {
namespace {

constexpr char kCopy[] = "(copy)";

std::string NameOf(const ModelKernels& kernels, int kernel) {
  return kernel < 0 ? kCopy : kernels.module.functions[kernel]->name;
}

}  // namespace

absl::StatusOr<std::vector<RunTimes>> TimeSteps(
    const LoadedModel& model, const std::function<absl::Status()>& run,
    int runs, const std::function<int64_t()>& now) {
  struct Clock {
    const std::function<int64_t()>& now;
    RunTimes times;
  } clock{now, {}};
  const auto record = [](void* context) {
    auto* to = static_cast<Clock*>(context);
    to->times.push_back(to->now());
  };
  TF_RETURN_IF_ERROR(model.SetProfileHook(record, &clock));
  TF_RETURN_IF_ERROR(run());
  const size_t steps = clock.times.size();
  std::vector<RunTimes> all;
  for (int i = 0; i < runs; ++i) {
    clock.times.clear();
    clock.times.reserve(steps);
    TF_RETURN_IF_ERROR(run());
    all.push_back(clock.times);
  }
  return all;
}

std::vector<KernelTime> SumByKernel(
    std::span<const ModelArtifact::Step> steps, const ModelKernels& kernels,
    std::span<const RunTimes> runs,
    const std::function<double(const ir::PrimFunc&)>& flops) {
  std::map<int, KernelTime> sums;
  double all_seconds = 0;
  for (const RunTimes& run : runs) {
    for (size_t i = 0; i + 1 < run.size(); ++i) {
      KernelTime& sum = sums[steps[i].kernel];
      const double seconds = static_cast<double>(run[i + 1] - run[i]) * 1e-9;
      ++sum.calls;
      sum.total_seconds += seconds;
      all_seconds += seconds;
    }
  }
  std::vector<KernelTime> sorted;
  for (auto& [kernel, sum] : sums) {
    sum.kernel = NameOf(kernels, kernel);
    if (all_seconds > 0) sum.share = sum.total_seconds / all_seconds;
    if (kernel >= 0) {
      const ir::PrimFunc& function = *kernels.module.functions[kernel];
      sum.workload = ir::WorkloadHash(function);
      if (sum.total_seconds > 0) {
        sum.gflops = flops(function) * static_cast<double>(sum.calls) /
                     sum.total_seconds * 1e-9;
      }
    }
    sorted.push_back(std::move(sum));
  }
  std::ranges::sort(sorted, [](const KernelTime& a, const KernelTime& b) {
    return std::tie(b.total_seconds, a.kernel) <
           std::tie(a.total_seconds, b.kernel);
  });
  return sorted;
}

std::string PrintProfile(std::span<const KernelTime> kernels, size_t runs) {
  double total = 0;
  size_t width = 6;
  for (const KernelTime& kernel : kernels) {
    total += kernel.total_seconds;
    width = std::max(width, kernel.kernel.size());
  }
  std::string text = absl::StrFormat(
      "%d runs of %s in kernels\n%-*s %8s %11s %11s %7s %9s  %s\n", runs,
      FormatSeconds(runs > 0 ? total / static_cast<double>(runs) : 0), width,
      "kernel", "calls", "total", "mean", "share", "GFLOPS", "workload");
  for (const KernelTime& kernel : kernels) {
    absl::StrAppendFormat(
        &text, "%-*s %8d %11s %11s %6.1f%% %9s  %s\n", width, kernel.kernel,
        kernel.calls, FormatSeconds(kernel.total_seconds),
        FormatSeconds(kernel.total_seconds / static_cast<double>(kernel.calls)),
        kernel.share * 100,
        kernel.gflops > 0 ? absl::StrFormat("%.2f", kernel.gflops) : "-",
        kernel.workload.empty() ? "-" : kernel.workload.substr(0, 12));
  }
  return text;
}

std::string ChromeTrace(std::span<const ModelArtifact::Step> steps,
                        const ModelKernels& kernels,
                        std::span<const RunTimes> runs) {
  nlohmann::json events = nlohmann::json::array();
  const int64_t begin = runs.empty() || runs[0].empty() ? 0 : runs[0][0];
  for (size_t r = 0; r < runs.size(); ++r) {
    for (size_t i = 0; i + 1 < runs[r].size(); ++i) {
      const ModelArtifact::Step& step = steps[i];
      const auto microseconds = [](int64_t nanoseconds) {
        return static_cast<double>(nanoseconds) * 1e-3;
      };
      events.push_back({{"name", NameOf(kernels, step.kernel)},
                        {"cat", "kernel"},
                        {"ph", "X"},
                        {"ts", microseconds(runs[r][i] - begin)},
                        {"dur", microseconds(runs[r][i + 1] - runs[r][i])},
                        {"pid", 1},
                        {"tid", 1},
                        {"args",
                         {{"op", step.op},
                          {"run", r},
                          {"step", i},
                          {"inputs", step.inputs},
                          {"outputs", step.outputs}}}});
    }
  }
  return nlohmann::json{{"displayTimeUnit", "ns"},
                        {"traceEvents", std::move(events)}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tilefarm::driver
