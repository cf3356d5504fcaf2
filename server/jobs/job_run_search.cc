// The two halves of a run's loop: learning and proposing.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "server/jobs/job_run.h"
#include "server/jobs/job_run_task.h"

namespace tilefarm::jobs {
namespace {

// The number of candidates kept ready, in slots of the matching devices: none
// of them waits while the search thinks. No more than that: what is proposed
// early is proposed without the results that are still to come.
constexpr int kReadySlots = 1;
// Proposed together, so that a generation of the search pays.
constexpr int kMinBatch = 8;

// While it lives the thread competes with builders for the processor, where
// that is allowed: otherwise devices would soon have nothing to do.
class Urgent {
 public:
  explicit Urgent(bool urgent) : urgent_(urgent) {
    const sched_param none = {};
    if (urgent_) pthread_setschedparam(pthread_self(), SCHED_OTHER, &none);
  }
  ~Urgent() {
    const sched_param none = {};
    if (urgent_) pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
  }
  Urgent(const Urgent&) = delete;
  Urgent& operator=(const Urgent&) = delete;

 private:
  const bool urgent_;
};

}  // namespace

void JobRun::NoteRecord(Task& task, const database::Record& record,
                        bool of_this_job) {
  const bool counts = CountsAsBest(record, env_.fingerprint, spec_);
  const bool gain = counts && (task.best_seconds == 0 ||
                               record.median_seconds < task.best_seconds);
  if (gain) {
    task.best_seconds = record.median_seconds;
    env_.farm.SetBest(task.id, task.best_seconds);
  }
  if (counts) task.contenders.Add(record);
  if (of_this_job) {
    ++trials_done_;
    ++task.done;
    trials_since_gain_ = gain ? 0 : trials_since_gain_ + 1;
  }
  MutexLock lock(mutex_);
  TaskSnapshot& progress = snapshot_.tasks[task.index];
  progress.best_seconds = task.best_seconds;
  progress.trials_done = task.done;
  snapshot_.trials_done = trials_done_;
  if (of_this_job) {
    ++snapshot_.by_status[std::string(database::StatusName(record.status))];
  }
  ++version_;
}

void JobRun::UpdateRate() {
  const absl::Duration now = env_.clock.Monotonic();
  while (!recorded_at_.empty() &&
         now - recorded_at_.front() > env_.timeouts.rate_window) {
    recorded_at_.pop_front();
  }
  if (recorded_at_.size() < 2) return;
  const double span = absl::ToDoubleSeconds(
      std::max(now - recorded_at_.front(), absl::Milliseconds(100)));
  snapshot_.trials_per_second =
      static_cast<double>(recorded_at_.size() - 1) / span;
  double left = -1;
  if (spec_.trials > 0) {
    left = static_cast<double>(spec_.trials - trials_done_) /
           snapshot_.trials_per_second;
  }
  if (spec_.seconds > 0) {
    const double until =
        absl::ToDoubleSeconds(deadline_ - env_.clock.Monotonic());
    left = left < 0 ? until : std::min(left, until);
  }
  snapshot_.seconds_left = std::max(left, left < 0 ? -1.0 : 0.0);
}

void JobRun::TakeOutcomes(std::vector<Outcome> outcomes) {
  if (outcomes.empty()) return;
  // By task, in order of arrival.
  for (const auto& task : tasks_) {
    std::vector<search::Outcome> reports;
    std::vector<std::string> ids;
    for (const Outcome& outcome : outcomes) {
      if (outcome.task_id != task->id) continue;
      const database::Record& record = outcome.record;
      if (outcome.purpose == farm::Purpose::kBaseline) {
        task->has_baseline = IsBaseline(record.status);
        MutexLock lock(mutex_);
        snapshot_.tasks[task->index].unscheduled_seconds =
            record.status == database::Status::kOk ? record.median_seconds : 0;
        ++version_;
        continue;
      }
      if (outcome.purpose == farm::Purpose::kFinalist) {
        NoteFinalist(*task, record);
        continue;
      }
      if (outcome.purpose == farm::Purpose::kRemeasure) {
        NoteRemeasured(*task, record);
        continue;
      }
      if (pending_.erase(record.candidate_id) > 0) --task->pending;
      if (outcome.added) {
        MutexLock lock(mutex_);
        recorded_at_.push_back(env_.clock.Monotonic());
      }
      // Where it was recorded before, the earlier record stands and this was
      // no trial.
      if (outcome.added) NoteRecord(*task, record, /*of_this_job=*/true);
      reports.push_back({.candidate_id = record.candidate_id,
                         .status = record.status,
                         .seconds = record.median_seconds});
      ids.push_back(record.candidate_id);
    }
    if (reports.empty() || task->search == nullptr) continue;
    // Where it fails, it goes before the next proposal.
    AppendLog(ReportLine(task->id, ids)).IgnoreError();
    const absl::Status reported = task->search->Report(reports);
    if (!reported.ok()) {
      // The search goes on without them; the records are safe.
      Log(LogLevel::kWarning, "jobs",
          absl::StrCat("job ", job_id_, ": report: ", reported.ToString()),
          {{"job", job_id_}});
    }
    const auto metrics = task->search->last_metrics();
    if (metrics.has_value() &&
        (!task->metrics.has_value() ||
         metrics->samples != task->metrics->samples ||
         metrics->pairwise_accuracy != task->metrics->pairwise_accuracy ||
         metrics->top_k_recall != task->metrics->top_k_recall)) {
      task->metrics = metrics;
      model_changed_ = true;
      const std::string report = absl::StrFormat(
          "model: %.0f %% of pairs in order, top-%d recall %.0f %%, on %d new "
          "results",
          metrics->pairwise_accuracy * 100, metrics->k,
          metrics->top_k_recall * 100, metrics->samples);
      Log(LogLevel::kInfo, "jobs",
          absl::StrCat("job ", job_id_, ", ", task->spec.function, ": ",
                       report),
          {{"job", job_id_}});
      SetMessage(report);
    }
  }
  SaveModel(/*now=*/false);
  MutexLock lock(mutex_);
  UpdateRate();
  ++version_;
}

JobRun::Task* JobRun::NextTask() {
  Task* next = nullptr;
  for (const auto& task : tasks_) {
    if (task->exhausted) continue;
    if (next == nullptr ||
        task->done + task->pending < next->done + next->pending) {
      next = task.get();
    }
  }
  return next;
}

bool JobRun::Propose() {
  const int slots = env_.farm.SlotsFor(target_, terms_);
  if (slots == 0) {
    SetMessage(env_.farm.WhyNoDevice(target_, terms_));
    return false;
  }
  {
    MutexLock lock(mutex_);
    if (snapshot_.message.rfind("waits for a device", 0) == 0) {
      snapshot_.message.clear();
      ++version_;
    }
  }
  const farm::QueueCounts counts = env_.farm.Counts(job_id_);
  if (counts.ready >= kReadySlots * slots) return false;
  int64_t count = std::max(kReadySlots * slots - counts.ready, kMinBatch);
  if (spec_.trials > 0) {
    count = std::min(count, spec_.trials - trials_done_ -
                                static_cast<int64_t>(pending_.size()));
  }
  if (count <= 0) return false;
  Task* task = NextTask();
  const Urgent urgent(2 * counts.ready < slots);
  return task != nullptr && ProposeFrom(*task, static_cast<int>(count));
}

bool JobRun::ProposeFrom(Task& task, int count) {
  auto proposals = task.search->Propose(count);
  if (!proposals.ok()) {
    task.exhausted = true;
    last_failure_ = absl::StrCat(
        task.spec.function, ": search failed: ", proposals.status().message());
    Log(LogLevel::kWarning, "jobs",
        absl::StrCat("job ", job_id_, ": ", last_failure_), {{"job", job_id_}});
    return true;
  }
  if (proposals->empty()) {
    task.exhausted = true;
    SetMessage(absl::StrCat(task.spec.function, ": the space is exhausted"));
  }
  std::vector<LoggedProposal> logged;
  for (const search::Proposal& proposal : *proposals) {
    // After a restart the search may find again what a device held then.
    if (former_.contains(proposal.candidate_id)) continue;
    logged.push_back(
        {.candidate_id = proposal.candidate_id,
         .task_id = task.id,
         .trace = proposal.trace,
         .scheduled_hash = proposal.scheduled_hash,
         .model_score = absl::StrFormat("%.6g", proposal.predicted),
         .sequence = task.next_sequence++});
  }
  absl::Status stored = AppendLog(ProposeLine(task.id, count, logged));
  while (!stored.ok()) {
    // A candidate that the log does not know must not reach a device.
    {
      MutexLock lock(mutex_);
      if (stopping_ || cancelled_) return false;
      changed_.WaitFor(mutex_, env_.timeouts.commit_retry);
    }
    stored = FlushLog();
  }
  for (const LoggedProposal& proposal : logged) {
    farm::WorkItem item = MakeItem(task, farm::Purpose::kTrial);
    item.candidate_id = proposal.candidate_id;
    item.trace = proposal.trace;
    item.scheduled_hash = proposal.scheduled_hash;
    item.model_score = proposal.model_score;
    item.sequence = proposal.sequence;
    if (env_.farm.Add(std::move(item)).ok()) {
      pending_[proposal.candidate_id] = &task;
      ++task.pending;
    }
  }
  return true;
}

}  // namespace tilefarm::jobs
