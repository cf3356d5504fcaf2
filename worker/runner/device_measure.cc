#include "worker/runner/device_measure.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "worker/monotonic.h"
#include "worker/runner/call.h"
#include "worker/runner/child.h"
#include "worker/runner/descriptors.h"
#include "worker/runner/device_buffers.h"
#include "worker/runner/device_driver.h"
#include "worker/runner/device_job.h"
#include "worker/runner/measure.h"
#include "worker/runner/shared_file.h"

namespace tilefarm::worker {
namespace {

// A device that has been idle takes a while to its full clock rate: an H200
// shows 345 MHz before and 1980 MHz after it is busy. Warm-up ends when runs
// have not become faster by this factor for so long.
constexpr double kDeviceWarmUpSeconds = 10e-3;
constexpr double kFaster = 0.98;
constexpr double kMostWarmUpSeconds = 0.3;
// A single run shorter than this is not timed alone if it can be helped: the
// events add a few microseconds.
constexpr double kShortRunSeconds = 100e-6;
// What events, starting and a cold cache add to the time of a single run.
constexpr double kSingleRunSeconds = 20e-6;
// The cache is warmed by a run before each sample, unless runs are so long that
// it makes no difference.
constexpr double kLongBesideFlushSeconds = 10e-3;
// Runs of a cold sample, if they are so short.
constexpr int64_t kMostCopies = 32;
// Runs that can be enqueued before the driver waits for the device.
constexpr int64_t kMostLaunches = 512;
// The writing before a sample covers the time of enqueueing its runs by this
// factor, but is repeated no more than so often.
constexpr double kCover = 1.5;
constexpr int kMostFlushes = 64;
constexpr char kPoisonWorkspace[] = "TILEFARM_POISON_WORKSPACE";
// Descriptors of artifacts begin here, so that each has a path of its own:
// dlopen does not open a path again that it knows.
constexpr int kArtifactDescriptors = 512;

// How samples are taken.
struct SamplePlan {
  int64_t launches = 1;
  size_t copies = 1;
  int flushes = 1;
  bool warms = false;  // a run that is not timed comes first
};

// One candidate. Methods return false after they have put an error into the
// report.
class DeviceRun {
 public:
  DeviceRun(DeviceDriver& device, const DeviceJob& job,
            const DeviceLayout& layout, const char* inputs, ChildReport* report)
      : device_(device),
        job_(job),
        layout_(layout),
        inputs_(inputs),
        report_(*report) {
    first_outputs_ = reinterpret_cast<char*>(report) + layout.report_bytes;
    last_outputs_ = first_outputs_ + layout.outputs_bytes;
  }
  ~DeviceRun() {
    // An artifact that unloads its kernels may hang in a lost context.
    if (handle_ != nullptr && report_.ends_context == 0) dlclose(handle_);
  }
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;

  bool Load(int artifact_fd) {
    report_.stage = Stage::kLoading;
    if (job_.program.buffers.size() + 1 > kMaxArguments) {
      return Fail("too many parameters");
    }
    const int fd = fcntl(artifact_fd, F_DUPFD_CLOEXEC,
                         kArtifactDescriptors + number_of_artifacts_++);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char* const error = handle_ == nullptr ? dlerror() : "";
    if (fd >= 0) close(fd);
    if (handle_ == nullptr) {
      return Fail(std::string("cannot load the artifact: ") + error);
    }
    const std::string& symbol = job_.request.symbol;
    function_ = dlsym(handle_, (symbol + "_on").c_str());
    error_text_ = reinterpret_cast<const char* (*)()>(
        dlsym(handle_, (symbol + "_error").c_str()));
    if (function_ == nullptr || error_text_ == nullptr) {
      return Fail("no such symbol: " + symbol +
                  (function_ == nullptr ? "_on" : "_error"));
    }
    return true;
  }

  // Takes the buffers of the workload, which outlive it.
  bool Measure(DeviceBuffers& buffers) {
    buffers_ = &buffers;
    const RunRequest& request = job_.request;
    const double end =
        MonotonicSeconds() + kTimeShare * request.limits.timeout_ms * 1e-3;
    if (!Check(buffers.Restore()) || !Check(device_.Wait())) {
      return false;
    }
    report_.first_run_start = MonotonicSeconds();
    report_.stage = Stage::kFirstRun;
    double first = MonotonicSeconds();
    // Artifacts read this at each call (compiler/runtime/cuda.c, opencl.c).
    setenv(kPoisonWorkspace, "1", 1);
    const bool launched = Launch(0) && Check(device_.Wait());
    unsetenv(kPoisonWorkspace);
    if (!launched || !Keep(first_outputs_)) return false;
    report_.first_seconds = MonotonicSeconds() - first;
    report_.stage = Stage::kTiming;
    const auto finish = [&](uint32_t samples) {
      if (!Keep(last_outputs_)) return false;
      std::string damage;
      if (!Check(buffers.FindDamage(layout_, inputs_, &damage))) return false;
      snprintf(report_.damage, sizeof report_.damage, "%s", damage.c_str());
      report_.sample_count = samples;
      report_.stage = Stage::kDone;
      return true;
    };

    SamplePlan plan;
    if (!Sample(plan, &first)) return false;
    const double hopeless =
        request.best_seconds > 0
            ? request.best_seconds * kHopelessFactor + kSingleRunSeconds
            : 0;
    for (int i = 0; i < 2 && hopeless > 0 && first > hopeless &&
                    MonotonicSeconds() + 2 * first < end;
         ++i) {
      double again = 0;
      if (!Sample(plan, &again)) return false;
      first = std::min(first, again);
    }
    const bool is_hopeless = hopeless > 0 && first > hopeless;
    if (is_hopeless || first > kLongRunSeconds ||
        MonotonicSeconds() + 2 * first > end) {
      Describe(plan);
      report_.samples[0] = first;
      report_.stopped_early = is_hopeless;
      return finish(1);
    }

    double run_seconds = first;
    if (!WarmUp(&run_seconds) || !Plan(run_seconds, &plan)) return false;
    Describe(plan);
    const double sample_seconds =
        run_seconds * static_cast<double>(plan.launches + 1) +
        device_.flush_seconds() * plan.flushes;
    RaceRules rules = RulesFor(request);
    // After the race is decided, the outputs of one more sample are checked.
    bool last =
        rules.most == 1 || MonotonicSeconds() + 3 * sample_seconds > end;
    if (rules.most > 1) --rules.most;
    if (rules.least > 1) --rules.least;
    SampleRace race(rules);
    for (uint32_t taken = 0;;) {
      if ((buffers.in_place() || last) && !Check(buffers.Restore())) {
        return false;
      }
      const double before = MonotonicSeconds();
      double seconds = 0;
      if (!Sample(plan, &seconds)) return false;
      report_.samples[taken++] = seconds;
      if (last) {
        report_.conditions = device_.Conditions();
        return finish(taken);
      }
      const RaceVerdict verdict =
          race.Add(seconds, MonotonicSeconds() - before);
      report_.stopped_early = verdict == RaceVerdict::kCannotWin;
      last = verdict != RaceVerdict::kGoOn ||
             MonotonicSeconds() + 3 * sample_seconds > end;
    }
  }

  // Puts the error into the report unless one is there.
  bool Fail(const std::string& error) {
    if (report_.stage == Stage::kFailed) return false;
    snprintf(report_.error, sizeof report_.error, "%s, %s", error.c_str(),
             StageName(report_.stage));
    report_.stage = Stage::kFailed;
    return false;
  }

  bool Check(const DeviceError& error) {
    if (!error) return true;
    if (device_.EndsContext(error.code)) report_.ends_context = 1;
    return Fail(device_.Text(error));
  }

 private:
  bool Keep(char* outputs) {
    return Check(buffers_->KeepOutputs(layout_, outputs));
  }

  // Enqueues one run on a copy of the buffers.
  bool Launch(size_t copy) {
    const size_t count = job_.program.buffers.size();
    args_[0] = device_.queue();
    for (size_t i = 0; i < count; ++i) {
      args_[i + 1] = buffers_->argument(copy, i);
    }
    const int code = Call(function_, args_.data(), count + 1);
    if (code == 0) return true;
    const char* const text = error_text_();
    std::string error = "the function returned " + std::to_string(code);
    if (text != nullptr && text[0] != '\0') error += std::string(": ") + text;
    // An error of an earlier launch may be reported here first.
    if (device_.EndsContext(code) ||
        device_.EndsContext(device_.WaitForAll().code)) {
      report_.ends_context = 1;
    }
    return Fail(error);
  }

  // The time of a run.
  bool Sample(const SamplePlan& plan, double* seconds) {
    for (int i = 0; i < plan.flushes; ++i) {
      if (!Check(device_.Flush())) return false;
    }
    if (plan.warms && !Launch(0)) return false;
    if (!Check(device_.StartTimer())) return false;
    const double enqueue = MonotonicSeconds();
    for (int64_t i = 0; i < plan.launches; ++i) {
      if (!Launch(static_cast<size_t>(i) % plan.copies)) return false;
    }
    const auto launches = static_cast<double>(plan.launches);
    enqueue_seconds_ = (MonotonicSeconds() - enqueue) / launches;
    double elapsed = 0;
    if (!Check(device_.StopTimer()) || !Check(device_.ReadTimer(&elapsed))) {
      return false;
    }
    *seconds = elapsed / launches;
    return true;
  }

  bool WarmUp(double* run_seconds) {
    const double start = MonotonicSeconds();
    double progress = start;
    double known = *run_seconds;
    SamplePlan plan;
    plan.flushes = 0;
    for (int i = 0;
         i < 2 || (MonotonicSeconds() - progress < kDeviceWarmUpSeconds &&
                   MonotonicSeconds() - start < kMostWarmUpSeconds);
         ++i) {
      plan.launches = LaunchesFor(*run_seconds);
      double seconds = 0;
      if (!Sample(plan, &seconds)) return false;
      *run_seconds = std::min(*run_seconds, seconds);
      if (*run_seconds > kFaster * known) continue;
      known = *run_seconds;
      progress = MonotonicSeconds();
    }
    return true;
  }

  static int64_t LaunchesFor(double run_seconds) {
    return std::clamp<int64_t>(
        static_cast<int64_t>(kSampleSeconds / std::max(run_seconds, 1e-7)), 1,
        kMostLaunches);
  }

  bool Plan(double run_seconds, SamplePlan* plan) {
    *plan = SamplePlan();
    const bool cold = job_.request.flush_cache ||
                      buffers_->bytes() > device_.properties().l2_bytes;
    // Running in place, a second run would start from the first one's result.
    if (buffers_->in_place()) {
      plan->launches = 1;
    } else if (!cold) {
      plan->launches = LaunchesFor(run_seconds);
      plan->warms = run_seconds < kLongBesideFlushSeconds;
    } else if (run_seconds < kShortRunSeconds) {
      plan->launches = std::min(kMostCopies, LaunchesFor(run_seconds));
      if (!Check(buffers_->Multiply(static_cast<size_t>(plan->launches)))) {
        return false;
      }
      // Fewer if memory ran out.
      plan->launches = std::min<int64_t>(
          plan->launches, static_cast<int64_t>(buffers_->copies()));
      plan->copies = static_cast<size_t>(plan->launches);
    }
    const double cover =
        kCover * enqueue_seconds_ * static_cast<double>(plan->launches + 1);
    plan->flushes = 1 + static_cast<int>(std::min<double>(
                            cover / device_.flush_seconds(), kMostFlushes - 1));
    return true;
  }

  void Describe(const SamplePlan& plan) {
    const char* const cache = plan.warms ? "warm" : "cold";
    char copies[32] = "";
    if (plan.copies > 1) {
      snprintf(copies, sizeof copies, " on %zu copies", plan.copies);
    }
    snprintf(report_.timing, sizeof report_.timing,
             "%s around %lld run%s%s, L2 %s", device_.TimerName(),
             static_cast<long long>(plan.launches),
             plan.launches == 1 ? "" : "s", copies, cache);
  }

  inline static int number_of_artifacts_ = 0;

  DeviceDriver& device_;
  const DeviceJob& job_;
  const DeviceLayout& layout_;
  const char* const inputs_;
  ChildReport& report_;
  char* first_outputs_;
  char* last_outputs_;
  void* handle_ = nullptr;
  void* function_ = nullptr;
  const char* (*error_text_)() = nullptr;
  DeviceBuffers* buffers_ = nullptr;
  std::array<void*, kMaxArguments> args_ = {};
  double enqueue_seconds_ = 0;  // of one run, as of the last sample
};

// The buffers of the latest workloads, which stay on the device while they take
// no more than half of its memory.
class Workloads {
 public:
  explicit Workloads(DeviceDriver& device) : device_(device) {}

  // Makes them if they are not there. Null: `run` has the error.
  DeviceBuffers* Find(const DeviceJob& job, const DeviceLayout& layout,
                      const char* inputs, DeviceRun& run) {
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->workload != job.workload) continue;
      entries_.splice(entries_.begin(), entries_, it);
      return entries_.front().buffers.get();
    }
    MakeRoom(layout);
    auto buffers = std::make_unique<DeviceBuffers>(device_);
    const DeviceError error = buffers->Make(job.program, layout, inputs);
    if (!run.Check(error)) return nullptr;
    entries_.push_front({job.workload, std::move(buffers)});
    return entries_.front().buffers.get();
  }

 private:
  struct Entry {
    uint64_t workload;
    std::unique_ptr<DeviceBuffers> buffers;
  };

  void MakeRoom(const DeviceLayout& layout) {
    const uint64_t needed = 2 * (layout.inputs_bytes + layout.outputs_bytes);
    for (;;) {
      uint64_t used = needed;
      for (const Entry& entry : entries_) {
        used += entry.buffers->allocated_bytes();
      }
      if (entries_.empty() || used <= device_.properties().memory_bytes / 2) {
        return;
      }
      entries_.pop_back();
    }
  }

  DeviceDriver& device_;
  std::list<Entry> entries_;
};

// False: the context is no longer usable.
bool Serve(DeviceDriver& device, Workloads& workloads, const DeviceJob& job,
           const std::vector<int>& descriptors) {
  const DeviceLayout layout(job.program);
  const MappedFile inputs(descriptors[1], layout.inputs_bytes, false);
  const MappedFile results(descriptors[2], layout.results_bytes(), true);
  if (inputs.data() == nullptr || results.data() == nullptr) _exit(1);
  auto* const report = reinterpret_cast<ChildReport*>(results.data());
  DeviceRun run(device, job, layout, inputs.data(), report);
  if (run.Load(descriptors[0])) {
    DeviceBuffers* const buffers =
        workloads.Find(job, layout, inputs.data(), run);
    if (buffers != nullptr) run.Measure(*buffers);
  }
  if (report->ends_context != 0) return false;
  return run.Check(device.WaitForAll()) && report->ends_context == 0;
}

}  // namespace

void ServeDevice(int socket, const DeviceName& name,
                 const std::function<bool()>& confine) {
  const std::unique_ptr<DeviceDriver> made = MakeDeviceDriver(name.kind);
  if (made == nullptr) _exit(1);
  DeviceDriver& device = *made;
  std::string error = device.Query(name.number);
  if (error.empty()) error = device.Open();
  if (error.empty() && !confine()) error = "cannot be confined";
  if (error.empty()) error = device.Try();
  SendMessage(socket, error.empty() ? kReady : error, {});
  if (!error.empty()) _exit(0);
  Workloads workloads(device);
  for (;;) {
    std::string message;
    std::vector<int> descriptors;
    if (!ReceiveMessage(socket, &message, &descriptors)) _exit(0);
    DeviceJob job;
    if (descriptors.size() != 3 || !Decode(message, &job)) _exit(1);
    device.UseCores(job.request.limits.cpus);
    const bool ready = Serve(device, workloads, job, descriptors);
    for (const int fd : descriptors) close(fd);
    if (!SendMessage(socket, ready ? kReady : kSpent, {})) _exit(0);
    // The driver may hang in its own cleaning up.
    if (!ready) _exit(0);
  }
}

}  // namespace tilefarm::worker
