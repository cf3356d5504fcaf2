// What the runner's thread does with a lease that is built: its cores, and its
// measurement or comparison on them.
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/statistics.h"
#include "worker/device.h"
#include "worker/pipeline.h"
#include "worker/pipeline_job.h"

namespace tilefarm::worker {
namespace {

// Limits for leases without their own.
constexpr uint32_t kRunTimeoutMs = 10000;
constexpr uint64_t kRunMemoryBytes = uint64_t{2} << 30;
// For the reference, which is made once per workload.
constexpr uint32_t kReferenceRunTimeoutMs = 120000;
// How soon a worker that waits for lent cores is noticed, and how long cores
// are lent. Builders that need longer for one candidate do not need the cores.
constexpr absl::Duration kLendingPoll = absl::Milliseconds(20);
constexpr absl::Duration kLongestLoan = absl::Seconds(1);

ChildLimits LimitsOf(const v1::MeasureOptions& options, const CpuList& cpus) {
  ChildLimits limits;
  limits.timeout_ms =
      options.run_timeout_ms() == 0 ? kRunTimeoutMs : options.run_timeout_ms();
  limits.memory_bytes = options.run_memory_bytes() == 0
                            ? kRunMemoryBytes
                            : options.run_memory_bytes();
  limits.cpus = cpus;
  return limits;
}

const char* StatusText(RunStatus status) {
  switch (status) {
    case RunStatus::kOk:
      return "ok";
    case RunStatus::kRunTimeout:
      return "run_timeout";
    case RunStatus::kWrongResult:
      return "wrong_result";
    default:
      return "run_error";
  }
}

void Fill(const RunReply& reply, v1::Measurement* out) {
  out->set_status(StatusText(reply.status));
  out->set_error(reply.error);
  for (double s : reply.seconds) out->add_seconds(s);
  out->set_median_seconds(reply.median_seconds);
  out->set_ci_low_seconds(reply.ci_low_seconds);
  out->set_ci_high_seconds(reply.ci_high_seconds);
  out->set_stopped_early(reply.stopped_early);
  out->set_verified(reply.verified);
  out->set_max_abs_error(reply.max_abs_error);
  out->set_max_rel_error(reply.max_rel_error);
  out->set_isolation(reply.isolation);
}

template <typename Reply>
Reply ErrorReply(std::string error) {
  Reply reply;
  reply.status = RunStatus::kRunError;
  reply.error = std::move(error);
  return reply;
}

}  // namespace

Pipeline::JobPtr Pipeline::NextReady() {
  for (;;) {
    if (lent_lock_.has_value() &&
        (Clock::Real().Monotonic() >= lent_until_ ||
         CpuLock::Wanted(options_.lock_directory, lent_cpus_))) {
      TakeBack();
    }
    MutexLock lock(mutex_);
    if (ending_) return nullptr;
    if (ready_.empty()) {
      if (lent_lock_.has_value()) {
        changed_.WaitFor(mutex_, kLendingPoll);
      } else {
        changed_.Wait(mutex_);
      }
      continue;
    }
    const JobPtr job = ready_.front();
    ready_.pop_front();
    if (job->cancelled) continue;
    running_ = job;
    return job;
  }
}

void Pipeline::RunnerLoop() {
  for (;;) {
    const JobPtr job = NextReady();
    if (job == nullptr) return;
    TakeBack();
    RunJob(*job);
    {
      MutexLock lock(mutex_);
      running_ = nullptr;
    }
    Finish(job);
  }
}

bool Pipeline::ClearCpus(const CpuList& cpus) {
  CpuList rest = Without(options_.cpus, cpus);
  const bool clear = !rest.empty();
  // A builder that is stopped during the measurement may be on any core.
  if (!clear) rest = options_.cpus;
  if (rest == builder_cpus_) return clear;
  for (auto& builder : builders_) builder->RunOn(rest);
  if (clear && options_.moves_this_process) KeepProcessOnCpus(getpid(), rest);
  builder_cpus_ = std::move(rest);
  return clear;
}

void Pipeline::Lend(CpuLock lock, const CpuList& cpus) {
  for (auto& builder : builders_) builder->RunOn(options_.cpus);
  builder_cpus_ = options_.cpus;
  lent_cpus_ = cpus;
  lent_lock_.emplace(std::move(lock));
  lent_until_ = Clock::Real().Monotonic() + kLongestLoan;
}

void Pipeline::TakeBack() {
  if (!lent_lock_.has_value()) return;
  ClearCpus(lent_cpus_);
  lent_lock_.reset();
}

void Pipeline::RunJob(Job& job) {
  const CpuList cpus = MeasurementCpus(options_.cpus, job.build.cores);
  absl::StatusOr<CpuLock> cpu_lock = CpuLock::Acquire(
      options_.lock_directory, cpus, [&] { return IsCancelled(job); });
  if (absl::IsCancelled(cpu_lock.status())) return;
  if (!cpu_lock.ok()) {
    // The cores could not be locked: measuring concurrently with another worker
    // is better than not measuring.
    Log(LogLevel::kWarning, "worker",
        absl::StrCat("cannot lock the cores: ",
                     std::string(cpu_lock.status().message())));
  }
  {
    MutexLock lock(mutex_);
    job.phase = v1::LEASE_PHASE_RUNNING;
  }
  options_.on_change();
  const bool pause = !ClearCpus(cpus);
  if (pause) {
    MutexLock lock(mutex_);
    builders_paused_ = true;
    for (auto& builder : builders_) builder->Pause();
  }
  job.ran.from = Moment();
  const RunReply reply =
      job.lease.has_comparison() ? Compare(job, cpus) : Measure(job, cpus);
  job.ran.to = Moment();
  job.child_seconds = reply.child_seconds;
  if (pause) {
    MutexLock lock(mutex_);
    builders_paused_ = false;
    for (auto& builder : builders_) builder->Resume();
    changed_.NotifyAll();
  }
  Fill(reply, &job.measurement);
  job.measurement.set_device_state(DeviceState(cpus, reply));
  if (pause || !cpu_lock.ok()) return;
  bool idle = false;
  {
    MutexLock lock(mutex_);
    idle = ready_.empty();
  }
  if (idle && !CpuLock::Wanted(options_.lock_directory, cpus)) {
    Lend(*std::move(cpu_lock), cpus);
  }
}

LoadReply Pipeline::LoadReference(const Job& job, const CpuList& cpus) {
  const v1::MeasureOptions& options = job.lease.options();
  const BuildReply& build = job.reference->build;
  LoadWorkload request;
  request.run_id = job.run_id;
  request.key = job.reference->key;
  request.symbol = build.symbol;
  request.artifact = build.artifact;
  request.input_seed = options.input_seed();
  request.program = build.program;
  request.limits.timeout_ms =
      std::max(kReferenceRunTimeoutMs, options.run_timeout_ms());
  request.limits.memory_bytes =
      std::max(kRunMemoryBytes, options.run_memory_bytes());
  request.limits.cpus = cpus;
  absl::StatusOr<LoadReply> reply = runner_.Load(request);
  if (reply.ok()) {
    if (reply->ok) loaded_.insert(request.key);
    return *reply;
  }
  LoadReply failed;
  failed.error = std::string(reply.status().message());
  return failed;
}

RunReply Pipeline::Measure(const Job& job, const CpuList& cpus) {
  const v1::MeasureOptions& options = job.lease.options();
  RunRequest request;
  request.run_id = job.run_id;
  request.key = job.reference->key;
  request.symbol = job.build.symbol;
  request.artifact = job.build.artifact;
  request.spread = job.build.spread;
  request.limits = LimitsOf(options, cpus);
  request.flush_cache = options.flush_cache();
  request.last_cache_bytes = options_.last_cache_bytes;
  request.min_samples = options.min_samples();
  request.max_samples = options.max_samples();
  request.target_ms = options.target_ms();
  request.best_seconds = options.best_seconds();

  return WithReference<RunReply>(job, cpus,
                                 [&] { return runner_.Run(request); });
}

RunReply Pipeline::Compare(Job& job, const CpuList& cpus) {
  const v1::MeasureOptions& options = job.lease.options();
  const v1::Comparison& comparison = job.lease.comparison();
  CompareRequest request;
  request.run_id = job.run_id;
  request.key = job.reference->key;
  request.baseline = {.symbol = comparison.baseline().symbol(),
                      .artifact = *job.baseline,
                      .spread = comparison.baseline().spread()};
  request.candidate = {.symbol = comparison.candidate().symbol(),
                       .artifact = *job.candidate,
                       .spread = comparison.candidate().spread()};
  request.limits = LimitsOf(options, cpus);
  request.flush_cache = options.flush_cache();
  request.last_cache_bytes = options_.last_cache_bytes;
  request.is_model = comparison.has_model();
  request.candidate_first = comparison.candidate_first();
  request.sample_us = comparison.sample_us();
  request.cluster_ms = comparison.cluster_ms();
  request.fewest_rounds = comparison.fewest_rounds();
  request.most_rounds = comparison.most_rounds();
  const CompareReply reply = WithReference<CompareReply>(
      job, cpus, [&] { return runner_.Compare(request); });

  v1::ComparedPairs& pairs = *job.measurement.mutable_compared();
  pairs.mutable_baseline_seconds()->Add(reply.baseline_seconds.begin(),
                                        reply.baseline_seconds.end());
  pairs.mutable_candidate_seconds()->Add(reply.candidate_seconds.begin(),
                                         reply.candidate_seconds.end());
  if (reply.failed != ComparedSide::kNeither) {
    pairs.set_failed_side(
        reply.failed == ComparedSide::kBaseline ? "baseline" : "candidate");
  }
  pairs.set_canary_seconds(reply.canary_seconds);
  pairs.set_device_seconds(reply.child_seconds);
  RunReply as_run;
  as_run.status = reply.status;
  as_run.error = reply.error;
  as_run.seconds = reply.candidate_seconds;
  const MedianInterval interval = MedianOf(reply.candidate_seconds);
  as_run.median_seconds = interval.median;
  as_run.ci_low_seconds = interval.low;
  as_run.ci_high_seconds = interval.high;
  as_run.verified = reply.verified;
  as_run.max_abs_error = reply.max_abs_error;
  as_run.max_rel_error = reply.max_rel_error;
  as_run.retaken = reply.retaken;
  as_run.shared = reply.shared;
  as_run.canary_seconds = reply.canary_seconds;
  as_run.child_seconds = reply.child_seconds;
  as_run.isolation = reply.isolation;
  return as_run;
}

template <typename Reply>
Reply Pipeline::WithReference(
    const Job& job, const CpuList& cpus,
    const std::function<absl::StatusOr<Reply>()>& run) {
  // At most twice: the runner may have dropped the workload, or ended for a
  // reason other than this candidate.
  for (int attempt = 1;; ++attempt) {
    const std::string& key = job.reference->key;
    if (!loaded_.contains(key)) {
      const LoadReply load = LoadReference(job, cpus);
      if (!load.ok) {
        if (attempt == 1 && !IsCancelled(job)) continue;
        return ErrorReply<Reply>(absl::StrCat("reference: ", load.error));
      }
    }
    absl::StatusOr<Reply> reply = run();
    if (reply.ok() && reply->status != RunStatus::kUnknownWorkload) {
      return *std::move(reply);
    }
    if (reply.ok()) {
      loaded_.erase(key);
    } else {
      loaded_.clear();
      Log(LogLevel::kWarning, "worker", std::string(reply.status().message()));
    }
    if (attempt == 2 || IsCancelled(job)) {
      return ErrorReply<Reply>(
          reply.ok() ? reply->error : std::string(reply.status().message()));
    }
  }
}

}  // namespace tilefarm::worker
