#include "worker/pipeline.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "worker/pipeline_job.h"

namespace tilefarm::worker {
namespace {

// Enough for a few hundred artifacts.
constexpr size_t kCachedBuildBytes = size_t{32} << 20;
constexpr uint64_t kCachedArtifactBytes = uint64_t{1} << 30;

std::string SpanText(const TimeSpan& span) {
  if (span.to == 0) return "null";
  return absl::StrFormat("[%.6f,%.6f]", span.from, span.to);
}

}  // namespace

std::string Pipeline::Job::Timeline() const {
  return absl::StrFormat(
      R"({"candidate":"%s","status":"%s","added":%.6f,"built":%s,)"
      R"("ran":%s,"child":%.6f})",
      lease.candidate_id(), measurement.status(), added, SpanText(built),
      SpanText(ran), child_seconds);
}

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
