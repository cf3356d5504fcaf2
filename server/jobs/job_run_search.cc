// The two halves of a run's loop: learning and proposing.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "server/jobs/job_run.h"
#include "server/jobs/job_run_task.h"
#include "server/jobs/recorded_tasks.h"

namespace tilefarm::jobs {
namespace {

// The number of candidates kept ready, per slot of the matching devices, so
// that no device waits for the search. If trials are fast, as many are kept as
// are measured during a slow write to the disk, because proposals are stored
// before they are handed out. Not more than that, because an early proposal is
// made without the results that arrive later.
constexpr int kReadySlots = 1;
constexpr int kMostReadySlots = 3;
constexpr double kStoringSeconds = 0.4;
// Candidates proposed at once, which share the cost of a generation.
constexpr int kMinBatch = 8;
// Time for the samples of a trial that may be the best. The fastest ones are
// measured again at the end, for longer.
constexpr absl::Duration kTrialTime = absl::Milliseconds(25);
// Maximum number of lines of the log that wait for the next proposal.
constexpr size_t kMostUnlogged = 64;

// During its lifetime the thread competes with builders for the processor,
// where the system permits it, because devices are about to run out of
// candidates.
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

search::Outcome ToOutcome(const database::Record& record) {
  return {.candidate_id = record.candidate_id,
          .status = record.status,
          .seconds = record.median_seconds,
          .unsteady = record.unsteady()};
}

}  // namespace

void JobRun::NoteRecord(Task& task, const database::Record& record,
                        bool of_this_job) {
  const bool counts = CountsAsBest(record, env_.fingerprint, spec_);
  const bool gain = counts && (task.best_seconds == 0 ||
                               record.median_seconds < task.best_seconds);
  if (counts) {
    env_.farm.NoteTime(RaceOf(task), record.device, record.median_seconds);
  }
  if (gain) task.best_seconds = record.median_seconds;
  if (MayCountAsBest(record, env_.fingerprint, spec_)) {
    task.contenders.Add(record);
  }
  if (of_this_job) {
    ++trials_done_;
    ++task.done;
    if (record.status != database::Status::kOk) {
      if (++task.failed == 1) {
        task.first_error =
            absl::StrCat(std::string(database::StatusName(record.status)),
                         record.error.empty() ? "" : ": ", record.error);
      }
    }
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

void JobRun::SuggestToSimilar(const Task& from, const std::string& trace) {
  for (Task* task : from.lane->tasks) {
    if (task == &from || task->search == nullptr ||
        task->kind.text != from.kind.text) {
      continue;
    }
    task->search->Suggest(from.spec.workload_hash, trace);
  }
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

void JobRun::LogLives(std::span<const Outcome> outcomes) {
  std::vector<LoggedLife> lives;
  for (const Outcome& outcome : outcomes) {
    // Work for other jobs, which learn of it, is not this one's.
    if (outcome.purpose == farm::Purpose::kRemeasure) continue;
    lives.push_back(outcome.life);
    const auto sampled = sampled_at_.extract(outcome.life.candidate_id);
    if (!sampled.empty()) lives.back().sampled = sampled.mapped();
  }
  if (lives.empty()) return;
  unlogged_.push_back(LivesLine(lives));
  if (env_.lives) env_.lives(job_id_, lives);
}

void JobRun::TakeOutcomes(std::vector<Outcome> outcomes) {
  if (outcomes.empty()) return;
  LogLives(outcomes);
  // Outcomes by task, in order of arrival.
  for (const auto& task : tasks_) {
    std::vector<search::Outcome> reports, corrections;
    std::vector<std::string> ids, corrected_ids;
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
        corrections.push_back(ToOutcome(record));
        corrected_ids.push_back(record.candidate_id);
        continue;
      }
      if (pending_.erase(record.candidate_id) > 0) --task->pending;
      if (outcome.added) {
        MutexLock lock(mutex_);
        recorded_at_.push_back(env_.clock.Monotonic());
      }
      // If the candidate has an earlier record, that one is kept, and this was
      // not a trial.
      if (outcome.added) {
        const double before = task->best_seconds;
        NoteRecord(*task, record, /*of_this_job=*/true);
        if (task->best_seconds != before) SuggestToSimilar(*task, record.trace);
      }
      const bool counts = CountsAsBest(record, env_.fingerprint, spec_);
      task->lane->scheduler->Measured(task->place,
                                      counts ? record.median_seconds : 0);
      NoteDefault(*task, record);
      reports.push_back(ToOutcome(record));
      ids.push_back(record.candidate_id);
    }
    if (task->search == nullptr) continue;
    absl::Status reported;
    const Urgent urgent(!reports.empty() && RunsLow(*task->lane));
    // The lines say what was known when the next candidates were proposed, and
    // are stored with those. A commit for every result would cost too much.
    if (!reports.empty()) {
      unlogged_.push_back(ReportLine(task->id, ids));
      reported = task->search->Report(reports);
    }
    if (!corrections.empty()) {
      unlogged_.push_back(CorrectLine(task->id, corrected_ids));
      reported.Update(task->search->Report(corrections));
    }
    if (unlogged_.size() >= kMostUnlogged) FlushLog().IgnoreError();
    if (!reported.ok()) {
      // The search goes on without them; the records are safe.
      Warn("report: " + reported.ToString());
    }
    const auto metrics = task->search->last_metrics();
    if (metrics.has_value() &&
        (!task->metrics.has_value() ||
         metrics->samples != task->metrics->samples ||
         metrics->pairwise_accuracy != task->metrics->pairwise_accuracy ||
         metrics->top_k_recall != task->metrics->top_k_recall)) {
      task->metrics = metrics;
      task->lane->model_changed = true;
      const std::string report = absl::StrFormat(
          "model: %.0f %% of pairs in order, top-%d recall %.0f %%, on %d new "
          "results",
          metrics->pairwise_accuracy * 100, metrics->k,
          metrics->top_k_recall * 100, metrics->samples);
      Log(LogLevel::kInfo, "jobs",
          absl::StrCat("job ", job_id_, ", ", NameOf(*task), ": ", report),
          {{"job", job_id_}});
      SetMessage(report);
    }
  }
  for (const auto& lane : lanes_) {
    ShowStates(*lane);
    SaveModel(*lane, /*now=*/false);
  }
  MutexLock lock(mutex_);
  UpdateRate();
  ++version_;
}

bool JobRun::RunsLow(const Lane& lane) const {
  return lane.phase == Lane::Phase::kOpen &&
         2 * env_.farm.Counts(lane.queue).ready <
             env_.farm.SlotsFor(lane.target, lane.terms);
}

int JobRun::ReadyWanted(int slots) const {
  MutexLock lock(mutex_);
  const double meanwhile = kStoringSeconds * snapshot_.trials_per_second /
                           static_cast<double>(lanes_.size());
  return static_cast<int>(std::clamp<double>(meanwhile, kReadySlots * slots,
                                             kMostReadySlots * slots));
}

bool JobRun::Propose(Lane& lane) {
  const int slots = env_.farm.SlotsFor(lane.target, lane.terms);
  lane.waits = slots > 0 ? "" : env_.farm.WhyNoDevice(lane.target, lane.terms);
  if (slots == 0) return false;
  const farm::QueueCounts counts = env_.farm.Counts(lane.queue);
  const int wanted = ReadyWanted(slots);
  if (counts.ready >= wanted) return false;
  const auto grant = lane.scheduler->Next();
  if (!grant.has_value()) return false;
  const int64_t count =
      std::min({std::max<int64_t>(wanted - counts.ready, kMinBatch),
                TrialsLeft(lane), grant->most});
  if (count <= 0) return false;
  const Urgent urgent(RunsLow(lane));
  return ProposeFrom(*lane.tasks[static_cast<size_t>(grant->task)],
                     static_cast<int>(count));
}

bool JobRun::ProposeFrom(Task& task, int count) {
  auto proposals = task.search->Propose(count);
  if (!proposals.ok()) {
    GiveUp(task, absl::StrCat(" search failed: ",
                              std::string(proposals.status().message())));
    return true;
  }
  if (proposals->empty()) {
    task.lane->Exhaust(task);
    SetMessage(absl::StrCat(NameOf(task), ": the space is exhausted"));
  }
  std::vector<LoggedProposal> logged;
  for (const search::Proposal& proposal : *proposals) {
    // After a restart the search may propose what a device already held.
    if (former_.contains(proposal.candidate_id)) continue;
    logged.push_back(
        {.candidate_id = proposal.candidate_id,
         .task_id = task.id,
         .trace = proposal.trace,
         .scheduled_hash = proposal.scheduled_hash,
         .model_score = absl::StrFormat("%.6g", proposal.predicted),
         .sequence = task.next_sequence++});
  }
  const absl::Time now = env_.clock.Now();
  for (const LoggedProposal& one : logged) sampled_at_[one.candidate_id] = now;
  absl::Status stored = AppendLog(ProposeLine(task.id, count, logged, now));
  while (!stored.ok()) {
    // A candidate that the log does not know must not reach a device. What
    // devices still bring counts meanwhile.
    std::vector<Outcome> outcomes;
    {
      MutexLock lock(mutex_);
      if (stopping_ || cancelled_) return false;
      changed_.WaitFor(mutex_, env_.timeouts.commit_retry);
      outcomes.swap(inbox_);
    }
    TakeOutcomes(std::move(outcomes));
    stored = FlushLog();
  }
  for (const LoggedProposal& proposal : logged) {
    farm::WorkItem item = MakeItem(task, farm::Purpose::kTrial);
    item.options.target_time = kTrialTime;
    item.candidate_id = proposal.candidate_id;
    item.trace = proposal.trace;
    item.scheduled_hash = proposal.scheduled_hash;
    item.model_score = proposal.model_score;
    item.sequence = proposal.sequence;
    if (env_.farm.Add(std::move(item)).ok()) {
      pending_[proposal.candidate_id] = &task;
      ++task.pending;
      task.lane->scheduler->Proposed(task.place, 1);
    }
  }
  FindDefault(task);
  ShowStates(*task.lane);
  return true;
}

void JobRun::FindDefault(Task& task) {
  if (!task.default_id.empty()) return;
  task.default_id = task.search->default_candidate();
  if (!task.default_id.empty()) {
    // For those who ask once the job has ended; it can do without.
    const absl::Status stored = env_.store.PutBlob(
        DefaultKey(task.id),
        absl::StrCat(task.default_id, "\n", env_.fingerprint));
    if (!stored.ok()) Warn("default schedule: " + stored.ToString());
  }
  // An earlier job, or this one before a restart, may have measured it.
  if (task.default_id.empty() || pending_.contains(task.default_id)) return;
  const auto records =
      env_.store.FindRecords(task.spec.workload_hash, task.spec.target);
  if (!records.ok()) return;
  for (const database::Record& record : *records) NoteDefault(task, record);
}

void JobRun::NoteDefault(const Task& task, const database::Record& record) {
  if (task.default_id.empty() || record.candidate_id != task.default_id ||
      !CountsAsBest(record, env_.fingerprint)) {
    return;
  }
  MutexLock lock(mutex_);
  snapshot_.tasks[task.index].default_seconds = record.median_seconds;
  ++version_;
}

void JobRun::ShowStates(const Lane& lane) {
  MutexLock lock(mutex_);
  for (const Task* task : lane.tasks) {
    const TaskState state = lane.scheduler->State(task->place);
    std::string text(TaskStateName(state));
    if (!task->failure.empty()) {
      text = "failed";
    } else if (lane.phase == Lane::Phase::kFinished &&
               state != TaskState::kExhausted &&
               state != TaskState::kNegligible) {
      text = "ended";
    }
    snapshot_.tasks[task->index].state = std::move(text);
  }
  ++version_;
}

}  // namespace tilefarm::jobs
