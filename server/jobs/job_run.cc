#include "server/jobs/job_run.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/jobs/job_run_task.h"

namespace tilefarm::jobs {

std::string ModelKey(const std::string& target_key) {
  return absl::StrCat("model/", target_key);
}

JobRun::JobRun(RunEnvironment environment, std::string job_id, JobSpec spec,
               std::function<void()> on_end)
    : env_(std::move(environment)),
      job_id_(std::move(job_id)),
      spec_(std::move(spec)),
      on_end_(std::move(on_end)) {
  snapshot_.id = job_id_;
  snapshot_.state = JobState::kRunning;
  snapshot_.user = spec_.user;
  snapshot_.program_name = spec_.program_name;
  for (const JobTarget& one : spec_.targets) {
    snapshot_.targets.push_back(one.key);
  }
  snapshot_.trials = spec_.trials;
  for (const TaskSpec& task : spec_.tasks) held_tasks_.insert(TaskId(task));
}

JobRun::~JobRun() { Stop(); }

void JobRun::Start() {
  thread_ = std::thread([this] { Main(); });
}

void JobRun::Cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  changed_.NotifyAll();
}

void JobRun::EndEarly(const std::string& why) {
  MutexLock lock(mutex_);
  if (ends_early_.empty()) ends_early_ = why;
  changed_.NotifyAll();
}

bool JobRun::HasEnough() {
  if (env_.clock.Monotonic() >= deadline_) return true;
  MutexLock lock(mutex_);
  return !ends_early_.empty();
}

void JobRun::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void JobRun::OnRecorded(const farm::Completion& completion,
                        const database::Record& record, bool added) {
  const farm::WorkItem& item = completion.item;
  const absl::Duration now = env_.clock.Monotonic();
  const absl::Time stored = env_.clock.Now();
  const auto at = [&](absl::Duration stage) {
    return stage == farm::Stages::kNever ? absl::InfinitePast()
                                         : stored - (now - stage);
  };
  const farm::Stages& stages = completion.stages;
  LoggedLife life{.candidate_id = record.candidate_id,
                  .purpose = std::string(farm::PurposeName(item.purpose)),
                  .device = completion.device_id,
                  .status = std::string(database::StatusName(record.status)),
                  .queued = at(stages.queued),
                  .leased = at(stages.leased),
                  .building = at(stages.building),
                  .built = at(stages.built),
                  .running = at(stages.running),
                  .reported = at(stages.reported),
                  .stored = stored};
  MutexLock lock(mutex_);
  inbox_.push_back(
      {item.task_id, record, item.purpose, added, std::move(life)});
  changed_.NotifyAll();
}

void JobRun::OnAcknowledged() {
  MutexLock lock(mutex_);
  acknowledged_ = true;
  changed_.NotifyAll();
}

bool JobRun::HasTask(const std::string& task_id) const {
  return std::any_of(
      spec_.tasks.begin(), spec_.tasks.end(),
      [&](const TaskSpec& task) { return TaskId(task) == task_id; });
}

bool JobRun::HoldsTask(const std::string& task_id) const {
  MutexLock lock(mutex_);
  return held_tasks_.contains(task_id);
}

JobSnapshot JobRun::Snapshot() const {
  MutexLock lock(mutex_);
  JobSnapshot snapshot = snapshot_;
  if (!waits_.empty()) snapshot.message = waits_;
  return snapshot;
}

int64_t JobRun::version() const {
  MutexLock lock(mutex_);
  return version_;
}

void JobRun::SetMessage(std::string message) {
  MutexLock lock(mutex_);
  if (snapshot_.message == message) return;
  snapshot_.message = std::move(message);
  ++version_;
}

absl::Status JobRun::AppendLog(std::string line) {
  unlogged_.push_back(std::move(line));
  return FlushLog();
}

absl::Status JobRun::FlushLog() {
  if (unlogged_.empty()) return absl::OkStatus();
  const absl::Status logged = env_.store.AppendJobLog(job_id_, unlogged_);
  if (logged.ok()) {
    unlogged_.clear();
  } else {
    Warn("log: " + logged.ToString());
  }
  return logged;
}

// --- The thread ----------------------------------------------------------

void JobRun::Main() {
  const sched_param idle = {};
  pthread_setschedparam(pthread_self(), SCHED_IDLE, &idle);

  while (true) {
    // Counted before the inbox is read, so that results which were committing
    // then are in the inbox.
    for (const auto& lane : lanes_) {
      lane->outstanding = env_.farm.Counts(lane->queue).outstanding();
    }
    std::vector<Outcome> outcomes;
    bool cancelled = false;
    {
      MutexLock lock(mutex_);
      if (stopping_) break;
      outcomes.swap(inbox_);
      cancelled = cancelled_;
      acknowledged_ = false;
    }
    // Before outcomes are reported, so that there are searches to report to.
    if (!cancelled) OpenLanes();
    TakeOutcomes(std::move(outcomes));
    bool again = false, finished = true;
    for (const auto& lane : lanes_) {
      again |= Step(*lane, cancelled);
      finished &= lane->phase == Lane::Phase::kFinished;
    }
    ShowWaits();
    if (finished) {
      if (cancelled) {
        End(JobState::kCancelled, "");
      } else {
        EndByItself();
      }
      return;
    }
    if (again) continue;
    MutexLock lock(mutex_);
    if (inbox_.empty() && !acknowledged_ && !stopping_ &&
        cancelled_ == cancelled) {
      changed_.WaitFor(mutex_, env_.timeouts.search_poll);
    }
  }
  FlushLog().IgnoreError();
  SaveModels();
}

bool JobRun::Step(Lane& lane, bool cancelled) {
  switch (lane.phase) {
    case Lane::Phase::kWaiting:
      if (cancelled || HasEnough()) Finish(lane);
      return false;
    case Lane::Phase::kOpen:
      return StepOpen(lane, cancelled);
    case Lane::Phase::kClosing:
      return StepClosing(lane, cancelled);
    case Lane::Phase::kFinished:
      return false;
  }
  return false;
}

bool JobRun::StepOpen(Lane& lane, bool cancelled) {
  // A job with a budget of trials waits for its last trial; other jobs do not.
  const bool all_done = lane.pending() == 0 && TrialsLeft(lane) == 0;
  const bool enough =
      HasEnough() || (spec_.patience > 0 &&
                      lane.scheduler->TrialsWithoutGain() >= spec_.patience);
  if (!cancelled && !all_done && !enough) return Propose(lane);
  lane.phase = Lane::Phase::kClosing;
  lane.waits.clear();
  if (cancelled || !all_done) {
    env_.farm.RemoveQueue(lane.queue);
    env_.farm.OpenQueue(lane.queue, lane.terms);  // for finalists
  }
  return true;
}

bool JobRun::StepClosing(Lane& lane, bool cancelled) {
  if (cancelled || env_.clock.Monotonic() > lane.finalists_until) {
    env_.farm.RemoveQueue(lane.queue);
  }
  if (lane.outstanding > 0) return false;
  if (!cancelled && RequestFinalists(lane)) return true;
  Finish(lane);
  return false;
}

void JobRun::Finish(Lane& lane) {
  env_.farm.RemoveQueue(lane.queue);
  lane.phase = Lane::Phase::kFinished;
  lane.waits.clear();
  ShowStates(lane);
  SaveModel(lane, /*now=*/true);
  if (lanes_.size() > 1) {
    Log(LogLevel::kInfo, "jobs",
        absl::StrCat("job ", job_id_, ": ", lane.key, " is finished after ",
                     lane.done(), " trials"));
  }
  MutexLock lock(mutex_);
  for (const Task* task : lane.tasks) held_tasks_.erase(task->id);
}

int64_t JobRun::TrialsLeft(const Lane& lane) const {
  if (lane.exhausted()) return 0;
  if (spec_.trials == 0) return std::numeric_limits<int>::max();
  // Trials that lanes did not use and no longer propose go to the others.
  int64_t shared = spec_.trials, sharing = 0, place = 0;
  for (const auto& one : lanes_) {
    if (one.get() == &lane) place = sharing;
    if (one.get() != &lane &&
        (one->phase >= Lane::Phase::kClosing || one->exhausted())) {
      shared -= one->done() + one->pending();
    } else {
      ++sharing;
    }
  }
  const int64_t share = shared / sharing + (place < shared % sharing ? 1 : 0);
  // Before a restart another lane may have had more than its share.
  const int64_t of_all =
      spec_.trials - trials_done_ - static_cast<int64_t>(pending_.size());
  return std::max(std::min(share - lane.done() - lane.pending(), of_all),
                  int64_t{0});
}

void JobRun::ShowWaits() {
  std::string waits;
  for (const auto& lane : lanes_) {
    if (lane->waits.empty()) continue;
    absl::StrAppend(&waits, waits.empty() ? "" : "; ", lane->waits);
  }
  MutexLock lock(mutex_);
  if (waits_ == waits) return;
  waits_ = std::move(waits);
  ++version_;
}

std::string JobRun::NameOf(const Task& task) const {
  return lanes_.size() == 1
             ? task.spec.function
             : absl::StrCat(task.spec.function, " for ", task.spec.target);
}

void JobRun::GiveUp(Task& task, const std::string& why) {
  task.lane->Exhaust(task);
  task.failure = absl::StrCat(NameOf(task), why);
  Warn(task.failure);
}

void JobRun::Warn(const std::string& what) const {
  Log(LogLevel::kWarning, "jobs", absl::StrCat("job ", job_id_, ": ", what),
      {{"job", job_id_}});
}

void JobRun::EndByItself() {
  // If there was no search, records of earlier jobs are not a result of this
  // one.
  const bool searched =
      std::any_of(tasks_.begin(), tasks_.end(),
                  [](const auto& task) { return task->search != nullptr; });
  std::string early;
  {
    MutexLock lock(mutex_);
    if (!ends_early_.empty()) {
      early = absl::StrCat("ended early: ", ends_early_);
    }
  }
  for (const auto& task : tasks_) {
    if (task->best_seconds > 0 && (searched || task->failure.empty())) continue;
    std::string error = task->failure.empty() ? early : task->failure;
    if (error.empty()) {
      error = "no candidate was measured and verified";
      if (task->failed > 0) {
        absl::StrAppend(&error, "; ", task->failed, " of ", task->done,
                        " failed, the first one with ", task->first_error);
      }
      if (lanes_.size() > 1) error = absl::StrCat(NameOf(*task), ": ", error);
    }
    End(JobState::kFailed, error);
    return;
  }
  End(JobState::kDone, early);
}

void JobRun::End(JobState state, const std::string& error) {
  SaveModels();
  unlogged_.push_back(EndLine(std::string(JobStateName(state))));
  while (true) {
    absl::Status stored = FlushLog();
    if (stored.ok()) {
      stored = env_.store.UpdateJob(job_id_, std::string(JobStateName(state)),
                                    error);
    }
    if (stored.ok()) break;
    Warn("ended, but the store says " + stored.ToString());
    MutexLock lock(mutex_);
    if (stopping_) return;
    changed_.WaitFor(mutex_, env_.timeouts.commit_retry);
  }
  {
    MutexLock lock(mutex_);
    snapshot_.state = state;
    snapshot_.error = error;
    snapshot_.seconds_left = 0;
    ++version_;
  }
  Log(LogLevel::kInfo, "jobs",
      absl::StrCat("job ", job_id_, " ", std::string(JobStateName(state)),
                   " after ", trials_done_, " trials"),
      {{"job", job_id_}});
  on_end_();
}

void JobRun::SaveModel(Lane& lane, bool now) {
  if (!lane.model_changed || spec_.model == "random") return;
  const absl::Duration time = env_.clock.Monotonic();
  if (!now && time - lane.model_saved_at < env_.timeouts.model_save_interval) {
    return;
  }
  lane.model_saved_at = time;
  lane.model_changed = false;
  auto bytes = lane.model->Serialize();
  MutexLock lock(env_.model_mutex);
  const auto stored = env_.store.GetBlob(ModelKey(lane.key));
  const bool merges =
      bytes.ok() && stored.ok() && Sha256Hex(*stored) != lane.stored_model;
  if (merges) bytes = MergeModels(*bytes, *stored);
  const absl::Status saved =
      bytes.ok() ? env_.store.PutBlob(ModelKey(lane.key), *bytes)
                 : bytes.status();
  if (saved.ok()) {
    // The lane's model lacks the other model's samples: it stores mergers from
    // now on.
    lane.stored_model = merges ? "" : Sha256Hex(*bytes);
  } else {
    Warn("cost model not saved: " + saved.ToString());
  }
}

absl::StatusOr<std::string> JobRun::MergeModels(
    const std::string& mine, const std::string& stored) const {
  const auto model = env_.search_factory.make_model(spec_);
  TF_RETURN_IF_ERROR(model->Load(mine));
  const absl::Status merged = model->Merge(stored);
  if (absl::IsDataLoss(merged)) {
    // It is of another release, or damaged, and cannot be used.
    Warn("stored cost model replaced: " + merged.ToString());
    return mine;
  }
  TF_RETURN_IF_ERROR(merged);
  return model->Serialize();
}

void JobRun::SaveModels() {
  for (const auto& lane : lanes_) SaveModel(*lane, /*now=*/true);
}

}  // namespace tilefarm::jobs
