#include "server/jobs/job_run.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "compiler/ir/structural.h"
#include "cost_model/features.h"
#include "server/jobs/job_run_task.h"
#include "server/jobs/measure_options.h"
#include "server/jobs/result_writer.h"

namespace tilefarm::jobs {
namespace {

// For the program as written: of a large one it may take minutes, and no trial
// needs it. Then the job does without.
constexpr absl::Duration kBaselineTimeout = absl::Seconds(5);

void LogWarning(const std::string& text) {
  Log(LogLevel::kWarning, "jobs", text);
}

std::string ModelKey(const JobSpec& spec) {
  return absl::StrCat("model/", spec.target);
}

}  // namespace

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
  snapshot_.target = spec_.target;
  snapshot_.trials = spec_.trials;
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

void JobRun::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void JobRun::OnRecorded(const farm::WorkItem& item,
                        const database::Record& record, bool added) {
  MutexLock lock(mutex_);
  inbox_.push_back({item.task_id, record, item.purpose, added});
  changed_.NotifyAll();
}

bool JobRun::HasTask(const std::string& task_id) const {
  return std::any_of(
      spec_.tasks.begin(), spec_.tasks.end(), [&](const TaskSpec& task) {
        return search::TaskId(task.workload_hash, spec_.target) == task_id;
      });
}

JobSnapshot JobRun::Snapshot() const {
  MutexLock lock(mutex_);
  return snapshot_;
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
    LogWarning(absl::StrCat("job ", job_id_, ": log: ", logged.ToString()));
  }
  return logged;
}

// --- Start ---------------------------------------------------------------

absl::Status JobRun::Load() {
  TF_ASSIGN_OR_RETURN(target_, target::Parse(spec_.target));
  terms_.user = spec_.user;
  terms_.priority = static_cast<int>(spec_.priority);
  TF_ASSIGN_OR_RETURN(terms_.requirements,
                      farm::ParseRequirements(spec_.requirements, target_));
  env_.farm.OpenQueue(job_id_, terms_);
  for (const TaskSpec& task : spec_.tasks) TF_RETURN_IF_ERROR(LoadTask(task));

  TF_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                      env_.store.ReadJobLog(job_id_));
  TF_ASSIGN_OR_RETURN(const LogSummary log, ReadLog(lines));
  const auto& caches = spec_.caches.has_value() ? spec_.caches : log.caches;
  if (caches.has_value()) {
    target_.caches = *caches;
    target_.caches_known = true;
  }
  // Without a permission there is none to learn.
  if (!spec_.allow_library) {
    libraries_ = std::vector<std::string>();
  } else if (log.libraries.has_value()) {
    libraries_ = log.libraries;
  }
  if (spec_.seconds > 0) {
    // Across restarts only the wall clock counts on; a step of it meanwhile
    // neither adds time nor takes more than there is.
    const absl::Duration budget = absl::Seconds(spec_.seconds);
    const absl::Time now = env_.clock.Now();
    const absl::Duration spent = std::clamp(
        now - log.first_opened.value_or(now), absl::ZeroDuration(), budget);
    deadline_ = env_.clock.Monotonic() + budget - spent;
  }
  std::set<std::string> recorded;
  for (const auto& task : tasks_) {
    for (const database::Record& record : task->known) {
      recorded.insert(record.candidate_id);
    }
  }
  for (const LoggedProposal& proposal : log.proposals) {
    for (const auto& task : tasks_) {
      if (task->id != proposal.task_id) continue;
      task->next_sequence =
          std::max(task->next_sequence, proposal.sequence + 1);
      if (recorded.contains(proposal.candidate_id)) continue;
      former_.insert(proposal.candidate_id);
      farm::WorkItem item = MakeItem(*task, farm::Purpose::kTrial);
      item.candidate_id = proposal.candidate_id;
      item.trace = proposal.trace;
      item.scheduled_hash = proposal.scheduled_hash;
      item.model_score = proposal.model_score;
      item.sequence = proposal.sequence;
      if (env_.farm.Add(std::move(item), farm::Where::kHeldFromFormerProcess)
              .ok()) {
        pending_[proposal.candidate_id] = task.get();
        ++task->pending;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status JobRun::LoadTask(const TaskSpec& spec) {
  auto task = std::make_unique<Task>();
  task->index = static_cast<int>(tasks_.size());
  task->id = search::TaskId(spec.workload_hash, spec_.target);
  task->spec = spec;
  TF_ASSIGN_OR_RETURN(task->function, ParseTask(spec));
  TaskSnapshot progress;
  progress.function = spec.function;
  progress.workload_hash = spec.workload_hash;
  progress.flops = cost_model::CountFlops(*task->function);
  {
    MutexLock lock(mutex_);
    snapshot_.tasks.push_back(progress);
  }
  TF_ASSIGN_OR_RETURN(task->known,
                      env_.store.FindRecords(spec.workload_hash, spec_.target));
  for (const database::Record& record : task->known) {
    NoteRecord(*task, record, record.job_id == job_id_);
  }
  trials_since_gain_ = 0;
  task->contenders.NoteStored(env_.store, env_.fingerprint);
  task->best_seconds = task->contenders.best_seconds();
  ShowBest(*task);
  const auto baseline = env_.store.GetBlob(BaselineKey(task->id));
  if (baseline.ok()) {
    const auto record = database::RecordFromJson(*baseline);
    task->has_baseline = record.ok() && IsBaseline(record->status);
    if (task->has_baseline && record->status == database::Status::kOk) {
      MutexLock lock(mutex_);
      snapshot_.tasks.back().unscheduled_seconds = record->median_seconds;
    }
  }
  tasks_.push_back(std::move(task));
  return absl::OkStatus();
}

bool JobRun::LearnDevice() {
  while (!target_.caches_known || !libraries_.has_value()) {
    const auto caches = env_.farm.CachesFor(target_, terms_);
    if (caches.has_value() && !target_.caches_known) {
      target_.caches = *caches;
      target_.caches_known = true;
    }
    if (!libraries_.has_value())
      libraries_ = env_.farm.LibrariesFor(target_, terms_);
    if (target_.caches_known && libraries_.has_value()) break;
    SetMessage(env_.farm.WhyNoDevice(target_, terms_));
    MutexLock lock(mutex_);
    if (stopping_ || cancelled_ || env_.clock.Monotonic() >= deadline_) {
      return false;
    }
    changed_.WaitFor(mutex_, env_.timeouts.search_poll);
  }
  return true;
}

absl::Status JobRun::Prepare() {
  model_ = env_.search_factory.make_model(spec_);
  if (spec_.model != "random") {
    const auto saved = env_.store.GetBlob(ModelKey(spec_));
    if (saved.ok()) {
      const absl::Status loaded = model_->Load(*saved);
      if (!loaded.ok()) {
        LogWarning(
            absl::StrCat("saved cost model not used: ", loaded.ToString()));
      }
    }
  }
  std::map<std::string, int64_t> known;
  bool any = false;
  for (const auto& task : tasks_) {
    known[task->id] = static_cast<int64_t>(task->known.size());
    auto search = env_.search_factory.make_search({
        .job = spec_,
        .task_id = task->id,
        .function = task->function,
        .target = target_,
        .fingerprint = env_.fingerprint,
        .model = model_,
        .known = task->known,
        .libraries = *libraries_,
    });
    task->known.clear();
    task->known.shrink_to_fit();
    if (search.ok()) {
      task->search = *std::move(search);
      any = true;
    } else {
      task->exhausted = true;
      last_failure_ =
          absl::StrCat(task->spec.function,
                       " cannot be searched: ", search.status().message());
      LogWarning(absl::StrCat("job ", job_id_, ": ", last_failure_));
    }
  }
  AppendLog(OpenLine(env_.clock.Now(), env_.fingerprint, target_.caches, known,
                     *libraries_))
      .IgnoreError();  // goes before the first proposal
  return any ? absl::OkStatus() : absl::FailedPreconditionError(last_failure_);
}

farm::WorkItem JobRun::MakeItem(const Task& task, farm::Purpose purpose) const {
  farm::WorkItem item;
  item.queue = job_id_;
  item.task_id = task.id;
  item.purpose = purpose;
  item.program = task.spec.program;
  item.workload_hash = task.spec.workload_hash;
  item.target = target_;
  item.options = MeasureOptionsFor(*task.function);
  item.options.flush_cache = spec_.flush_cache;
  return item;
}

void JobRun::RequestBaselines() {
  for (const auto& task : tasks_) {
    if (task->has_baseline) continue;
    farm::WorkItem item = MakeItem(*task, farm::Purpose::kBaseline);
    item.candidate_id = Sha256Hex(
        absl::StrCat("unscheduled\n", task->id, "\n", env_.fingerprint));
    item.scheduled_hash = ir::ProgramHash(*task->function);
    // Slow by its nature: a look is enough, and trials wait for it.
    item.options.min_samples = 1;
    item.options.max_samples = 3;
    item.options.run_timeout = kBaselineTimeout;
    const absl::Status added =
        env_.farm.Add(std::move(item), farm::Where::kFront);
    if (!added.ok()) LogWarning(added.ToString());
  }
}

// --- The thread ----------------------------------------------------------

void JobRun::Main() {
  const sched_param idle = {};
  pthread_setschedparam(pthread_self(), SCHED_IDLE, &idle);

  if (!LearnDevice()) {
    EndUnstarted();
    return;
  }
  const absl::Status ready = Prepare();
  if (!ready.ok()) {
    env_.farm.RemoveQueue(job_id_);
    End(JobState::kFailed, std::string(ready.message()));
    return;
  }
  RequestBaselines();
  bool closing = false;
  while (true) {
    // Counted before the inbox is taken: what was committing then is in it.
    const int outstanding = env_.farm.Counts(job_id_).outstanding();
    std::vector<Outcome> outcomes;
    bool cancelled = false;
    {
      MutexLock lock(mutex_);
      if (stopping_) break;
      outcomes.swap(inbox_);
      cancelled = cancelled_;
    }
    const bool had_outcomes = !outcomes.empty();
    TakeOutcomes(std::move(outcomes));
    if (!closing && (cancelled || !WhyEnough().empty())) {
      closing = true;
      // A trial budget is met to the last trial; nothing else waits.
      const bool budget_met = spec_.trials > 0 && trials_done_ >= spec_.trials;
      if (cancelled || !budget_met) env_.farm.RemoveQueue(job_id_);
      continue;
    }
    if (closing && cancelled) env_.farm.RemoveQueue(job_id_);
    const bool idle = outstanding == 0 && !had_outcomes;
    if (closing && env_.clock.Monotonic() > finalists_until_) {
      env_.farm.RemoveQueue(job_id_);
    }
    if (idle && (closing || AllExhausted())) {
      if (cancelled) {
        End(JobState::kCancelled, "");
        return;
      }
      closing = true;
      if (RequestFinalists()) continue;
      EndByItself();
      return;
    }
    if (!closing && Propose()) continue;
    MutexLock lock(mutex_);
    if (inbox_.empty() && !stopping_ && cancelled_ == cancelled) {
      changed_.WaitFor(mutex_, env_.timeouts.search_poll);
    }
  }
  SaveModel(/*now=*/true);
}

void JobRun::EndUnstarted() {
  bool stopping = false, cancelled = false;
  {
    MutexLock lock(mutex_);
    stopping = stopping_;
    cancelled = cancelled_;
  }
  if (stopping) return;
  env_.farm.RemoveQueue(job_id_);
  if (cancelled) {
    End(JobState::kCancelled, "");
  } else {
    EndByItself();
  }
}

void JobRun::EndByItself() {
  for (const auto& task : tasks_) {
    if (task->best_seconds > 0) continue;
    End(JobState::kFailed, last_failure_.empty()
                               ? "no candidate was measured and verified"
                               : last_failure_);
    return;
  }
  End(JobState::kDone, "");
}

std::string JobRun::WhyEnough() const {
  if (spec_.trials > 0 && trials_done_ >= spec_.trials) return "trials";
  if (env_.clock.Monotonic() >= deadline_) return "time";
  if (spec_.patience > 0 && trials_since_gain_ >= spec_.patience) {
    return "patience";
  }
  return "";
}

bool JobRun::AllExhausted() const {
  return pending_.empty() &&
         std::all_of(tasks_.begin(), tasks_.end(),
                     [](const auto& task) { return task->exhausted; });
}

void JobRun::End(JobState state, const std::string& error) {
  SaveModel(/*now=*/true);
  unlogged_.push_back(EndLine(std::string(JobStateName(state))));
  while (true) {
    absl::Status stored = FlushLog();
    if (stored.ok()) {
      stored = env_.store.UpdateJob(job_id_, std::string(JobStateName(state)),
                                    error);
    }
    if (stored.ok()) break;
    LogWarning(absl::StrCat("job ", job_id_, " ended but the store says ",
                            stored.ToString()));
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

void JobRun::SaveModel(bool now) {
  if (!model_changed_ || spec_.model == "random") return;
  const absl::Duration time = env_.clock.Monotonic();
  if (!now && time - model_saved_at_ < env_.timeouts.model_save_interval) {
    return;
  }
  model_saved_at_ = time;
  model_changed_ = false;
  const auto bytes = model_->Serialize();
  const absl::Status saved =
      bytes.ok() ? env_.store.PutBlob(ModelKey(spec_), *bytes) : bytes.status();
  if (!saved.ok()) {
    LogWarning(absl::StrCat("cost model not saved: ", saved.ToString()));
  }
}

}  // namespace tilefarm::jobs
