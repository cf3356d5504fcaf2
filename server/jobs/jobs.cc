#include "server/jobs/jobs.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/farm/random_id.h"
#include "server/jobs/jobs_state.h"

namespace tilefarm::jobs {
namespace {

// Whether the error may end by itself: it is one of the disk, not of the job.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

std::set<std::string> TaskIds(const JobSpec& spec) {
  std::set<std::string> ids;
  for (const TaskSpec& task : spec.tasks) ids.insert(TaskId(task));
  return ids;
}

// The size of the texts of a spec; everything else in it is short.
int64_t TextBytes(const JobSpec& spec) {
  size_t bytes = spec.program.size() + spec.space_trace.size();
  for (const TaskSpec& task : spec.tasks) bytes += task.program.size();
  return static_cast<int64_t>(bytes);
}

}  // namespace

Jobs::Jobs(database::Store& store, farm::Farm& farm, JobsOptions options)
    : store_(store),
      farm_(farm),
      options_(std::move(options)),
      devices_(store_, farm_, options_.fingerprint, *options_.clock),
      comparisons_(store_, farm_, options_.comparisons) {
  writer_ = std::make_unique<ResultWriter>(store_, farm_, *this,
                                           options_.timeouts, *options_.clock);
  farm_.SetSink(writer_.get());
}

Jobs::~Jobs() {
  {
    MutexLock lock(wake_mutex_);
    stopping_ = true;
    woken_.NotifyAll();
  }
  if (conductor_.joinable()) conductor_.join();
  NoteDeviceTime(/*store_now=*/true);
  // Commits results that have arrived while the runs can still be told.
  farm_.SetSink(nullptr);
  writer_.reset();
  MutexLock lock(mutex_);
  {
    MutexLock route_lock(route_mutex_);
    runs_.clear();
  }
  for (auto& entry : entries_) {
    if (entry->run != nullptr) entry->run->Stop();
  }
}

RunEnvironment Jobs::Environment() {
  return {.store = store_,
          .farm = farm_,
          .search_factory = options_.search_factory,
          .clock = *options_.clock,
          .timeouts = options_.timeouts,
          .fingerprint = options_.fingerprint,
          .lives = options_.lives,
          .model_mutex = model_mutex_};
}

absl::Status Jobs::Recover() {
  TF_RETURN_IF_ERROR(devices_.Recover());
  TF_ASSIGN_OR_RETURN(const std::vector<database::JobRow> rows,
                      store_.ListJobs());
  MutexLock lock(mutex_);
  TF_RETURN_IF_ERROR(LoadDeviceTime());
  for (const database::JobRow& row : rows) {
    auto entry = std::make_unique<Entry>();
    entry->id = row.id;
    entry->error = row.error;
    const auto state = ParseJobState(row.state);
    auto spec = JobFromRow(row);
    if (!state.has_value() || !spec.ok()) {
      Log(LogLevel::kError, "jobs",
          absl::StrCat("job ", row.id, " is left alone: ",
                       spec.ok() ? "unknown state"
                                 : std::string(spec.status().message())),
          {{"job", row.id}});
      continue;
    }
    entry->state = *state;
    entry->spec = *std::move(spec);
    entry->task_ids = TaskIds(entry->spec);
    entries_.push_back(std::move(entry));
  }
  for (auto& entry : entries_) {
    if (entry->state != JobState::kRunning) continue;
    entry->recovered = true;
    const absl::Status started = StartRun(*entry);
    if (started.ok()) continue;
    if (!MayPass(started)) return started;
    // It waits like a job that was never started.
    entry->state = JobState::kQueued;
  }
  return absl::OkStatus();
}

void Jobs::Start() {
  // Set here, so that a thread that never starts counts as stuck as well.
  pulse_.Beat(options_.clock->Monotonic());
  conductor_ = std::thread([this] { Main(); });
}

void Jobs::Wake() {
  MutexLock lock(wake_mutex_);
  wake_ = true;
  woken_.NotifyAll();
}

void Jobs::Main() {
  pthread_setname_np(pthread_self(), "conductor");
  absl::Duration last_tick = -absl::InfiniteDuration();
  while (true) {
    {
      MutexLock lock(wake_mutex_);
      if (!wake_ && !stopping_) {
        woken_.WaitFor(wake_mutex_, options_.timeouts.watch_interval);
      }
      if (stopping_) return;
      wake_ = false;
    }
    const absl::Duration now = options_.clock->Monotonic();
    pulse_.Beat(now);
    if (now - last_tick >= options_.timeouts.tick) {
      farm_.Tick();
      last_tick = now;
    }
    devices_.Flush();
    NoteDeviceTime(/*store_now=*/false);
    Schedule();
    Publish();
  }
}

std::map<std::string, int> Jobs::CountByState() {
  std::map<std::string, int> counts;
  for (const JobState state :
       {JobState::kQueued, JobState::kRunning, JobState::kDone,
        JobState::kFailed, JobState::kCancelled}) {
    counts[std::string(JobStateName(state))] = 0;
  }
  MutexLock lock(mutex_);
  for (const auto& entry : entries_) {
    ++counts[std::string(JobStateName(entry->state))];
  }
  return counts;
}

ResultCounts Jobs::result_counts() {
  MutexLock lock(route_mutex_);
  return results_;
}

SchedulingFigures Jobs::scheduling_figures() {
  MutexLock lock(mutex_);
  return scheduling_;
}

std::string Jobs::Stuck(absl::Duration limit) const {
  const absl::Duration now = options_.clock->Monotonic();
  const auto say = [&](const char* loop, const Pulse& pulse,
                       absl::Duration most) -> std::string {
    const absl::Duration still = pulse.Still(now);
    if (still <= most) return "";
    return absl::StrCat(
        loop, " has not moved for ",
        absl::FormatDuration(absl::Trunc(still, absl::Milliseconds(1))));
  };
  // The conductor itself waits for up to watch_interval.
  std::string stuck =
      say("the conductor", pulse_, limit + options_.timeouts.watch_interval);
  if (stuck.empty()) stuck = say("the result writer", writer_->pulse(), limit);
  return stuck;
}

// --- Running ----------------------------------------------------------------

void Jobs::Index() {
  for (; indexed_ < entries_.size(); ++indexed_) {
    Entry* const entry = entries_[indexed_].get();
    by_id_[entry->id] = entry;
    if (!Ended(entry->state)) open_.push_back(entry);
  }
}

Jobs::HeldTasks Jobs::FindHeldTasks() {
  HeldTasks held;
  for (const Entry* entry : running_) {
    for (const std::string& id : entry->task_ids) {
      if (entry->run->HoldsTask(id)) held.emplace(id, entry);
    }
  }
  return held;
}

const Jobs::Entry* Jobs::WaitsFor(const Entry& entry, const HeldTasks& held) {
  for (const std::string& id : entry.task_ids) {
    const auto holder = held.find(id);
    if (holder != held.end()) return holder->second;
  }
  return nullptr;
}

void Jobs::RemoveQueues(const Entry& entry) {
  for (size_t i = 0; i < entry.spec.targets.size(); ++i) {
    farm_.RemoveQueue(QueueName(entry.id, entry.spec, i));
  }
}

absl::Status Jobs::StartRun(Entry& entry) {
  started_at_[entry.spec.user] = ++starts_;
  entry.run = std::make_unique<JobRun>(Environment(), entry.id, entry.spec,
                                       [this] { Wake(); });
  {
    MutexLock lock(route_mutex_);
    runs_[entry.id] = entry.run.get();
  }
  absl::Status status = entry.run->Load();
  if (status.ok() && !entry.recovered) {
    status = store_.UpdateJob(entry.id, "running", "");
  }
  if (!status.ok()) {
    {
      MutexLock lock(route_mutex_);
      runs_.erase(entry.id);
    }
    entry.run.reset();
    RemoveQueues(entry);
    if (MayPass(status)) {
      if (entry.error != status.message()) {
        entry.error = std::string(status.message());
        Log(LogLevel::kError, "jobs",
            absl::StrCat("job ", entry.id,
                         " waits for the database: ", entry.error),
            {{"job", entry.id}});
      }
      return status;
    }
    // The error is the job's, not the store's: the job fails.
    entry.state = JobState::kFailed;
    entry.error = std::string(status.message());
    Log(LogLevel::kError, "jobs",
        absl::StrCat("job ", entry.id, " cannot run: ", entry.error),
        {{"job", entry.id}});
    return store_.UpdateJob(entry.id, "failed", entry.error);
  }
  entry.error.clear();
  entry.state = JobState::kRunning;
  running_.push_back(&entry);
  entry.run->Start();
  Log(LogLevel::kInfo, "jobs",
      absl::StrCat("job ", entry.id, entry.recovered ? " goes on" : " starts"),
      {{"job", entry.id}});
  return absl::OkStatus();
}

void Jobs::Schedule() {
  MutexLock lock(mutex_);
  for (Entry* entry : running_) {
    const JobSnapshot snapshot = entry->run->Snapshot();
    if (!Ended(snapshot.state)) continue;
    {
      MutexLock route_lock(route_mutex_);
      runs_.erase(entry->id);
    }
    entry->run.reset();
    RemoveQueues(*entry);
    entry->state = snapshot.state;
    entry->error = snapshot.error;
    Conclude(*entry, snapshot);
  }
  std::erase_if(running_,
                [](const Entry* entry) { return entry->run == nullptr; });
  Index();
  std::erase_if(open_, [](const Entry* entry) { return Ended(entry->state); });
  HeldTasks held = FindHeldTasks();
  while (Entry* entry = NextQueued(held)) {
    const absl::Status started = StartRun(*entry);
    if (!started.ok()) {
      // StartRun has logged errors that may pass, once.
      if (!MayPass(started)) {
        Log(LogLevel::kError, "jobs", started.ToString());
      }
      return;  // an error of the store: tried again later
    }
    for (const std::string& id : entry->task_ids) held.emplace(id, entry);
  }
}

Jobs::Entry* Jobs::NextQueued(const HeldTasks& held) {
  ++scheduling_.choices;
  const int running = static_cast<int>(running_.size());
  std::map<std::string, int> of_user;
  for (const Entry* entry : running_) ++of_user[entry->spec.user];
  // The order: the user with the fewest running jobs; the user whose last job
  // started longest ago; the user's own priority; the order of submission. Many
  // jobs of one user thus do not keep another user's job from starting, even if
  // all tune the same function and run one after the other.
  Entry* next = nullptr;
  const auto before = [&](const Entry& a, const Entry& b) {
    const int of_a = of_user[a.spec.user], of_b = of_user[b.spec.user];
    if (of_a != of_b) return of_a < of_b;
    if (a.spec.user == b.spec.user) return a.spec.priority > b.spec.priority;
    return started_at_[a.spec.user] < started_at_[b.spec.user];
  };
  scheduling_.examined += static_cast<int64_t>(open_.size());
  for (Entry* entry : open_) {
    if (entry->state != JobState::kQueued ||
        WaitsFor(*entry, held) != nullptr ||
        !CheckUser(entry->spec.user).ok()) {
      continue;
    }
    const bool first_of_user = of_user[entry->spec.user] == 0;
    if (running >=
        (first_of_user ? options_.max_running_users : options_.max_running)) {
      continue;
    }
    if (next == nullptr || before(*entry, *next)) next = entry;
  }
  return next;
}

void Jobs::OnRecorded(const farm::Completion& completion,
                      const database::Record& record, bool added) {
  const farm::WorkItem& item = completion.item;
  {
    MutexLock lock(route_mutex_);
    ++(added ? results_.stored.at(static_cast<size_t>(record.status))
             : results_.not_stored);
    if (item.purpose == farm::Purpose::kRemeasure) {
      // Jobs with the same task may have a new best.
      for (auto& [id, run] : runs_) {
        if (run->HasTask(item.task_id)) {
          run->OnRecorded(completion, record, added);
        }
      }
      devices_.OnRemeasured(item);
      return;
    }
    if (item.purpose != farm::Purpose::kMeasure) {
      auto run = runs_.find(item.job);
      if (run != runs_.end()) {
        run->second->OnRecorded(completion, record, added);
      }
      return;
    }
    auto measure = measures_.find(item.queue);
    if (measure == measures_.end()) return;
    const MeasureDone done = std::move(measure->second);
    measures_.erase(measure);
    // Called under the lock, so that it is not called after AbandonMeasure.
    done(record);
  }
}

void Jobs::OnAcknowledged(const farm::WorkItem& item) {
  MutexLock lock(route_mutex_);
  const auto run = runs_.find(item.job);
  if (run != runs_.end()) run->second->OnAcknowledged();
}

void Jobs::OnCanary(const farm::Completion& completion) {
  devices_.OnCanary(completion.device_id, completion.trusted);
}

void Jobs::OnCompared(const farm::Completion& completion) {
  comparisons_.OnCompleted(completion);
}

// --- Clients -----------------------------------------------------------------

Jobs::Entry* Jobs::Find(const std::string& job_id) {
  Index();
  const auto found = by_id_.find(job_id);
  return found == by_id_.end() ? nullptr : found->second;
}

absl::StatusOr<std::string> Jobs::Submit(JobSpec spec) {
  TF_RETURN_IF_ERROR(ResolveJob(store_, spec));
  if (spec.request_id.empty()) spec.request_id = farm::RandomId(128);
  auto entry = std::make_unique<Entry>();
  entry->id = absl::StrCat("job-", farm::RandomId(48));
  entry->spec = std::move(spec);
  entry->task_ids = TaskIds(entry->spec);
  std::string id;
  {
    MutexLock lock(mutex_);
    for (const auto& known : entries_) {
      if (known->spec.user == entry->spec.user &&
          known->spec.request_id == entry->spec.request_id) {
        return known->id;
      }
    }
    TF_RETURN_IF_ERROR(CheckRoom(entry->spec));
    TF_RETURN_IF_ERROR(CheckUser(entry->spec.user));
    if (options_.quotas.BoundStorage()) {
      TF_ASSIGN_OR_RETURN(const int64_t bytes,
                          store_.BytesOfUser(entry->spec.user));
      TF_RETURN_IF_ERROR(
          CheckStorage(options_.quotas, entry->spec.user, bytes));
    }
    TF_ASSIGN_OR_RETURN(id, store_.AddJob(JobToRow(entry->id, entry->spec)));
    if (id == entry->id) entries_.push_back(std::move(entry));
  }
  Wake();
  return id;
}

absl::Status Jobs::CheckRoom(const JobSpec& spec) {
  struct Sum {
    int jobs = 0;
    int64_t bytes = 0;
    bool Exceeds(const JobsOptions::JobLimit& most, int64_t more) const {
      return jobs >= most.jobs || bytes + more > most.text_bytes;
    }
  };
  Sum of_user, of_all;
  for (const auto& entry : entries_) {
    // A run tells its watchers that it has ended before Schedule takes note.
    if (Ended(entry->state) ||
        (entry->run != nullptr && Ended(entry->run->Snapshot().state))) {
      continue;
    }
    const int64_t bytes = TextBytes(entry->spec);
    ++of_all.jobs;
    of_all.bytes += bytes;
    if (entry->spec.user != spec.user) continue;
    ++of_user.jobs;
    of_user.bytes += bytes;
  }
  const int64_t more = TextBytes(spec);
  const auto say = [](const std::string& whose, const Sum& sum) {
    return absl::ResourceExhaustedError(absl::StrCat(
        whose, sum.jobs, " jobs that have not ended, with ", sum.bytes >> 10,
        " KiB of programs, as many as there may be: wait for one to end, or "
        "cancel one"));
  };
  const int64_t quota = options_.quotas.Of(spec.user).jobs;
  if (quota > 0 && of_user.jobs >= quota) {
    return absl::ResourceExhaustedError(absl::StrCat(
        spec.user, " has ", of_user.jobs, " jobs that have not ended, of ",
        quota,
        ": wait for one to end, cancel one, or ask for a larger quota "
        "(tune-server --quota ",
        spec.user, ":jobs=...)"));
  }
  if (of_user.Exceeds(options_.user_jobs, more)) {
    return say(absl::StrCat(spec.user, " has "), of_user);
  }
  if (of_all.Exceeds(options_.all_jobs, more)) {
    return say("the server has ", of_all);
  }
  return absl::OkStatus();
}

void Jobs::Conclude(Entry& entry, JobSnapshot snapshot) {
  entry.final = std::move(snapshot);
  entry.spec.program = std::string();
  entry.spec.space_trace = std::string();
  entry.spec.tasks = std::vector<TaskSpec>();
}

absl::StatusOr<JobState> Jobs::Cancel(const std::string& job_id) {
  MutexLock lock(mutex_);
  Entry* entry = Find(job_id);
  if (entry == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no job ", job_id));
  }
  if (Ended(entry->state)) return entry->state;
  if (entry->run != nullptr) {
    entry->run->Cancel();
    return JobState::kCancelled;
  }
  TF_RETURN_IF_ERROR(store_.UpdateJob(job_id, "cancelled", ""));
  entry->state = JobState::kCancelled;
  Wake();
  return entry->state;
}

}  // namespace tilefarm::jobs
