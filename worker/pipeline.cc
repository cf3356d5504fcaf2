#include "worker/pipeline.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "worker/device.h"

namespace tilefarm::worker {
namespace {

// Limits for leases without their own.
constexpr absl::Duration kBuildTimeout = absl::Seconds(10);
constexpr uint32_t kRunTimeoutMs = 10000;
constexpr uint64_t kRunMemoryBytes = uint64_t{2} << 30;
// Limits for the reference, which is made once per workload, and how many are
// cached.
constexpr absl::Duration kReferenceBuildTimeout = absl::Seconds(60);
constexpr uint32_t kReferenceRunTimeoutMs = 120000;
constexpr size_t kCachedReferences = 32;
// Enough for a few hundred artifacts.
constexpr size_t kCachedBuildBytes = size_t{32} << 20;
constexpr uint64_t kCachedArtifactBytes = uint64_t{1} << 30;
// A builder cannot be started if the installation is damaged, or for a moment
// if memory is short: starting is tried so often, and then recorded as an
// error.
constexpr int kStartAttempts = 4;
// How soon a worker that waits for lent cores is noticed, and how long cores
// are lent. Builders that need longer for one candidate do not need the cores.
constexpr absl::Duration kLendingPoll = absl::Milliseconds(20);
constexpr absl::Duration kLongestLoan = absl::Seconds(1);

void Fail(v1::Measurement& measurement, const char* status,
          const std::string& error) {
  measurement.set_status(status);
  measurement.set_error(error);
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

// Start and end, in seconds of one clock.
struct Span {
  double from = 0, to = 0;
};

double Now() { return absl::ToDoubleSeconds(Clock::Real().Monotonic()); }

std::string SpanText(const Span& span) {
  if (span.to == 0) return "null";
  return absl::StrFormat("[%.6f,%.6f]", span.from, span.to);
}

}  // namespace

struct Pipeline::Reference {
  std::string key;
  BuildReply build;

  // The part of the protocol that the program decides.
  const char* layout() const {
    const std::vector<BufferSpec>& buffers = build.program.buffers;
    return std::any_of(buffers.begin(), buffers.end(),
                       [](const BufferSpec& b) { return b.layout_free; })
               ? "packed"
               : "as_stated";
  }
};

struct Pipeline::Job {
  v1::Lease lease;
  std::string database_uuid;
  uint64_t run_id = 0;
  v1::LeasePhase phase = v1::LEASE_PHASE_GRANTED;  // guarded by the lock
  bool cancelled = false;                          // guarded by the lock
  ReferencePtr reference;
  BuildReply build;
  // Of a comparison.
  ArtifactCache::Bytes baseline, candidate;
  v1::Measurement measurement;
  double added = Now();
  Span built, ran;
  double child_seconds = 0;

  std::string Timeline() const {
    return absl::StrFormat(
        R"({"candidate":"%s","status":"%s","added":%.6f,"built":%s,)"
        R"("ran":%s,"child":%.6f})",
        lease.candidate_id(), measurement.status(), added, SpanText(built),
        SpanText(ran), child_seconds);
  }
};

Pipeline::Pipeline(Options options)
    : options_(std::move(options)),
      runner_(starter_, options_.runner_command),
      built_(kCachedBuildBytes),
      artifacts_(options_.artifact_directory, kCachedArtifactBytes) {
  for (int i = 0; i < options_.builders; ++i) {
    builders_.push_back(std::make_unique<BuilderClient>(
        starter_, options_.builder_command, options_.builder_timeouts));
  }
  for (auto& builder : builders_) {
    threads_.emplace_back([this, &builder] { BuilderLoop(*builder); });
  }
  threads_.emplace_back([this] { RunnerLoop(); });
}

Pipeline::~Pipeline() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  runner_.Shutdown();
  for (auto& builder : builders_) builder->Shutdown();
  for (std::thread& thread : threads_) thread.join();
}

void Pipeline::Add(const std::string& database_uuid, v1::Lease lease) {
  auto job = std::make_shared<Job>();
  job->database_uuid = database_uuid;
  job->lease = std::move(lease);
  {
    MutexLock lock(mutex_);
    if (!held_.emplace(job->lease.lease_id(), job).second) return;
    job->run_id = next_run_id_++;
    queue_.push_back(job);
    changed_.NotifyAll();
  }
  Progress();
}

void Pipeline::Cancel(const std::string& lease_id) {
  uint64_t run_id = 0;
  {
    MutexLock lock(mutex_);
    const auto it = held_.find(lease_id);
    if (it == held_.end()) return;
    it->second->cancelled = true;
    if (running_ == it->second) run_id = running_->run_id;
    std::erase(queue_, it->second);
    held_.erase(it);
  }
  if (run_id != 0) runner_.Cancel(run_id);
  options_.on_change();
}

void Pipeline::DropWaiting() {
  {
    MutexLock lock(mutex_);
    for (const JobPtr& job : queue_) held_.erase(job->lease.lease_id());
    queue_.clear();
  }
  options_.on_change();
}

std::vector<v1::State::Held> Pipeline::Held() const {
  MutexLock lock(mutex_);
  std::vector<v1::State::Held> held;
  for (const auto& [lease_id, job] : held_) {
    v1::State::Held& one = held.emplace_back();
    one.set_lease_id(lease_id);
    one.set_attempt(job->lease.attempt());
    one.set_phase(job->phase);
  }
  return held;
}

int Pipeline::capacity() const {
  return 1 + options_.builders + options_.ready;
}

int Pipeline::free_slots() const {
  MutexLock lock(mutex_);
  return std::max(0, capacity() - static_cast<int>(held_.size()));
}

bool Pipeline::empty() const {
  MutexLock lock(mutex_);
  return held_.empty();
}

void Pipeline::Progress() const {
  (options_.on_progress ? options_.on_progress : options_.on_change)();
}

bool Pipeline::IsCancelled(const Job& job) const {
  MutexLock lock(mutex_);
  return job.cancelled || ending_;
}

void Pipeline::BuilderLoop(BuilderClient& builder) {
  for (;;) {
    JobPtr job;
    {
      MutexLock lock(mutex_);
      while (!ending_ && (queue_.empty() || builders_paused_)) {
        changed_.Wait(mutex_);
      }
      if (ending_) return;
      job = queue_.front();
      queue_.pop_front();
      job->phase = v1::LEASE_PHASE_BUILDING;
    }
    Progress();
    job->built.from = Now();
    const bool built = BuildJob(builder, *job);
    job->built.to = Now();
    if (!built) {
      Finish(job);
      continue;
    }
    {
      MutexLock lock(mutex_);
      job->phase = v1::LEASE_PHASE_BUILT;
      ready_.push_back(job);
      changed_.NotifyAll();
    }
    Progress();
  }
}

absl::StatusOr<BuildReply> Pipeline::BuildOnce(BuilderClient& builder,
                                               const BuildRequest& request,
                                               absl::Duration timeout) {
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<BuildReply> reply = builder.Build(request, timeout);
    if (!absl::IsUnavailable(reply.status()) &&
        !absl::IsNotFound(reply.status())) {
      return reply;
    }
    {
      MutexLock lock(mutex_);
      if (ending_ || attempt == kStartAttempts) return reply;
    }
    Log(LogLevel::kWarning, "worker", std::string(reply.status().message()));
    absl::SleepFor(absl::Milliseconds(200) * attempt);
  }
}

absl::StatusOr<Pipeline::ReferencePtr> Pipeline::ReferenceFor(
    BuilderClient& builder, const Job& job) {
  const v1::Lease& lease = job.lease;
  const std::string key =
      absl::StrCat(lease.workload_hash(), "/", lease.options().input_seed(),
                   "/", lease.target());
  {
    MutexLock lock(mutex_);
    for (auto it = references_.begin(); it != references_.end(); ++it) {
      if ((*it)->key != key) continue;
      references_.splice(references_.begin(), references_, it);
      return references_.front();
    }
  }
  BuildRequest request;
  request.program = lease.program();
  request.target = lease.target();
  request.reference = true;
  request.memory_bytes = lease.options().build_memory_bytes();
  TF_ASSIGN_OR_RETURN(BuildReply reply,
                      BuildOnce(builder, request, kReferenceBuildTimeout));
  if (reply.status != BuildStatus::kOk) {
    return absl::InvalidArgumentError(reply.error);
  }
  auto reference = std::make_shared<Reference>();
  reference->key = key;
  reference->build = std::move(reply);
  MutexLock lock(mutex_);
  // Another builder may have made it meanwhile; both are equal.
  references_.push_front(std::move(reference));
  if (references_.size() > kCachedReferences) references_.pop_back();
  return references_.front();
}

bool Pipeline::BuildJob(BuilderClient& builder, Job& job) {
  const v1::Lease& lease = job.lease;
  absl::StatusOr<ReferencePtr> reference = lease.comparison().has_model()
                                               ? ModelReference(lease)
                                               : ReferenceFor(builder, job);
  if (!reference.ok()) {
    Fail(
        job.measurement,
        absl::IsDeadlineExceeded(reference.status()) ? "compile_timeout"
                                                     : "compile_error",
        absl::StrCat("reference: ", std::string(reference.status().message())));
    return false;
  }
  job.reference = *std::move(reference);
  if (lease.has_comparison()) return FetchArtifacts(job);

  BuildRequest request;
  request.program = lease.program();
  request.trace = lease.trace();
  request.scheduled_hash = lease.scheduled_hash();
  request.target = lease.target();
  request.memory_bytes = lease.options().build_memory_bytes();
  const absl::Duration timeout =
      lease.options().build_timeout_ms() == 0
          ? kBuildTimeout
          : absl::Milliseconds(lease.options().build_timeout_ms());
  std::optional<BuildReply> known = built_.Find(request);
  const bool is_known = known.has_value();
  absl::StatusOr<BuildReply> build =
      is_known ? *std::move(known) : BuildOnce(builder, request, timeout);
  if (build.ok() && !is_known) built_.Add(request, *build);
  if (!build.ok()) {
    Fail(job.measurement,
         absl::IsDeadlineExceeded(build.status()) ? "compile_timeout"
                                                  : "compile_error",
         std::string(build.status().message()));
    return false;
  }
  job.measurement.set_compile_seconds(build->compile_seconds);
  job.measurement.set_cores(build->cores);
  job.measurement.set_code_digest(build->code_digest);
  if (build->status != BuildStatus::kOk) {
    Fail(job.measurement,
         build->status == BuildStatus::kInvalidSchedule ? "invalid_schedule"
                                                        : "compile_error",
         build->error);
    return false;
  }
  job.build = *std::move(build);
  return true;
}

absl::StatusOr<Pipeline::ReferencePtr> Pipeline::ModelReference(
    const v1::Lease& lease) {
  const v1::ModelSignature& model = lease.comparison().model();
  auto reference = std::make_shared<Reference>();
  reference->key = absl::StrCat("model/", Sha256Hex(model.SerializeAsString()),
                                "/", lease.options().input_seed());
  reference->build.cores = std::max(model.cores(), 1u);
  std::vector<BufferSpec>& buffers = reference->build.program.buffers;
  for (const auto* tensors : {&model.inputs(), &model.outputs()}) {
    for (const v1::ModelSignature::Tensor& tensor : *tensors) {
      const std::optional<ElementType> type = ParseElementType(tensor.dtype());
      if (!type.has_value() || tensor.elements() == 0 ||
          buffers.size() >= kMaxBuffers) {
        return absl::InvalidArgumentError(absl::StrCat(
            "a tensor of ", tensor.elements(), " ", tensor.dtype()));
      }
      BufferSpec& spec = buffers.emplace_back();
      spec.type = *type;
      spec.elements = tensor.elements();
      spec.read = tensors == &model.inputs();
      spec.written = !spec.read;
      // Indices must be in bounds of whatever they choose from.
      spec.low = 0;
      spec.high = IsFloat(*type) ? 0 : 1;
    }
  }
  return reference;
}

bool Pipeline::FetchArtifacts(Job& job) {
  const v1::Lease& lease = job.lease;
  job.measurement.mutable_compared();
  job.build.cores = job.reference->build.cores;
  job.measurement.set_cores(job.build.cores);
  if (!options_.fetch_artifact) {
    Fail(job.measurement, "run_error", "this worker takes no artifacts");
    return false;
  }
  const absl::Duration limit =
      lease.options().build_timeout_ms() == 0
          ? kBuildTimeout
          : absl::Milliseconds(lease.options().build_timeout_ms());
  const auto get = [&](const v1::ComparedArtifact& artifact) {
    return artifacts_.Get(artifact.sha256(), [&] {
      return options_.fetch_artifact(lease, artifact, limit);
    });
  };
  for (const auto& [artifact, bytes] :
       {std::pair(&lease.comparison().baseline(), &job.baseline),
        std::pair(&lease.comparison().candidate(), &job.candidate)}) {
    absl::StatusOr<ArtifactCache::Bytes> got = get(*artifact);
    if (!got.ok()) {
      Fail(job.measurement, "run_error",
           absl::StrCat("an artifact cannot be fetched: ",
                        std::string(got.status().message())));
      return false;
    }
    *bytes = *std::move(got);
  }
  return true;
}

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
  job.ran.from = Now();
  const RunReply reply =
      job.lease.has_comparison() ? Compare(job, cpus) : Measure(job, cpus);
  job.ran.to = Now();
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
  request.limits.timeout_ms =
      options.run_timeout_ms() == 0 ? kRunTimeoutMs : options.run_timeout_ms();
  request.limits.memory_bytes = options.run_memory_bytes() == 0
                                    ? kRunMemoryBytes
                                    : options.run_memory_bytes();
  request.limits.cpus = cpus;
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
  request.limits.timeout_ms =
      options.run_timeout_ms() == 0 ? kRunTimeoutMs : options.run_timeout_ms();
  request.limits.memory_bytes = options.run_memory_bytes() == 0
                                    ? kRunMemoryBytes
                                    : options.run_memory_bytes();
  request.limits.cpus = cpus;
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

void Pipeline::Finish(const JobPtr& job) {
  const std::string lease_id = job->lease.lease_id();
  if (!IsCancelled(*job)) {
    v1::Measurement& measurement = job->measurement;
    // It never ran: the isolation that it would have had.
    if (measurement.isolation().empty()) {
      measurement.set_isolation(runner_.isolation());
    }
    measurement.set_cold_cache(job->lease.options().flush_cache());
    if (job->reference != nullptr) {
      measurement.set_layout(job->reference->layout());
    }
    measurement.set_emulated(options_.emulated);
    measurement.set_fingerprint(options_.fingerprint);
    v1::Result result;
    result.set_lease_id(lease_id);
    result.set_attempt(job->lease.attempt());
    result.set_candidate_id(job->lease.candidate_id());
    if (options_.on_timeline) options_.on_timeline(job->Timeline());
    *result.mutable_measurement() = std::move(measurement);
    options_.on_result(job->database_uuid, std::move(result));
  }
  {
    MutexLock lock(mutex_);
    const auto it = held_.find(lease_id);
    if (it != held_.end() && it->second == job) held_.erase(it);
  }
  options_.on_change();
}

}  // namespace tilefarm::worker
