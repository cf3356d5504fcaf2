// The start of a run: reads the job's state from the database, and facts of
// devices from the farm.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "cost_model/features.h"
#include "server/jobs/job_run.h"
#include "server/jobs/job_run_task.h"
#include "server/jobs/measure_options.h"
#include "server/jobs/result_writer.h"
#include "server/jobs/roofline.h"
#include "server/jobs/similar_tasks.h"

namespace tilefarm::jobs {
namespace {

// Limits for measuring the program as written. A large one may take minutes;
// the job then has no such time, which no trial needs.
constexpr absl::Duration kBaselineTimeout = absl::Seconds(5);
// Recorded similar tasks whose best schedules are tried first, for each task.
constexpr size_t kSuggestions = 4;

// Kernels of a GPU need loops that are bound to threads.
bool RunsUnscheduled(const ir::PrimFunc& function,
                     const target::Target& target) {
  bool binds = false;
  ir::PreOrder(function.body, [&](const ir::Stmt& s) {
    const auto* loop = ir::As<ir::ForNode>(s);
    binds |= loop != nullptr && loop->for_kind == ir::ForKind::kThreadBinding;
    return !binds;
  });
  return binds || !target.is_gpu();
}

}  // namespace

absl::Status JobRun::Load() {
  TF_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                      env_.store.ReadJobLog(job_id_));
  TF_ASSIGN_OR_RETURN(const LogSummary log, ReadLog(lines));
  for (size_t i = 0; i < spec_.targets.size(); ++i) {
    TF_RETURN_IF_ERROR(LoadLane(i, log));
  }
  if (spec_.seconds > 0) {
    // Only the wall clock spans restarts. The clamp keeps a step of that clock
    // from adding time, or from taking more than there is.
    const absl::Duration budget = absl::Seconds(spec_.seconds);
    const absl::Time now = env_.clock.Now();
    const absl::Duration spent = std::clamp(
        now - log.first_opened.value_or(now), absl::ZeroDuration(), budget);
    deadline_ = env_.clock.Monotonic() + budget - spent;
  }
  HoldFormer(log);
  return absl::OkStatus();
}

absl::Status JobRun::LoadLane(size_t index, const LogSummary& log) {
  const JobTarget& wanted = spec_.targets[index];
  auto lane = std::make_unique<Lane>();
  lane->key = wanted.key;
  lane->queue = QueueName(job_id_, spec_, index);
  TF_ASSIGN_OR_RETURN(lane->target, target::ParseKey(wanted.key));
  lane->terms.user = spec_.user;
  lane->terms.priority = static_cast<int>(spec_.priority);
  TF_ASSIGN_OR_RETURN(
      lane->terms.requirements,
      farm::ParseRequirements(spec_.requirements, lane->target));
  env_.farm.OpenQueue(lane->queue, lane->terms);
  const OpenedTarget opened = log.Opened(wanted.key, spec_.targets.size() == 1);
  const auto& caches =
      wanted.caches.has_value() ? wanted.caches : opened.caches;
  if (caches.has_value()) {
    lane->target.caches = *caches;
    lane->target.caches_known = true;
  }
  // Without a permission, no libraries are needed.
  if (!spec_.allow_library) {
    lane->libraries = std::vector<std::string>();
  } else if (opened.libraries.has_value()) {
    lane->libraries = opened.libraries;
  }
  std::vector<std::unique_ptr<Task>> tasks;
  std::vector<ScheduledTask> scheduled;
  for (const TaskSpec& spec : spec_.tasks) {
    if (spec.target != wanted.key) continue;
    auto task = std::make_unique<Task>();
    task->id = TaskId(spec);
    task->spec = spec;
    task->lane = lane.get();
    TF_ASSIGN_OR_RETURN(task->function, ParseTask(spec));
    task->kind = KindOf(*task->function);
    scheduled.push_back(
        {.weight = spec.weight, .flops = spec.flops, .kind = task->kind.text});
    tasks.push_back(std::move(task));
  }
  // An even share of the trials; at least one, as 0 would be no limit.
  const auto lanes = static_cast<int64_t>(spec_.targets.size());
  lane->scheduler = std::make_unique<TaskScheduler>(
      std::move(scheduled), (spec_.trials + lanes - 1) / lanes);
  for (std::unique_ptr<Task>& task : tasks) {
    TF_RETURN_IF_ERROR(LoadTask(std::move(task), *lane));
  }
  lanes_.push_back(std::move(lane));
  return absl::OkStatus();
}

// The time that the search uses for an old record: the newest measurement in
// full on the same device, if there is one.
void JobRun::UseRemeasured(std::vector<database::Record>& known) const {
  for (database::Record& record : known) {
    if (!MayCountAsBest(record, env_.fingerprint)) continue;
    const auto rows = env_.store.FindMeasurements(record.id);
    if (!rows.ok()) continue;
    for (const database::Record& row : *rows) {  // oldest first
      if (row.device != record.device || !CountsAsBest(row, env_.fingerprint)) {
        continue;
      }
      record.median_seconds = row.median_seconds;
      record.device_state = row.device_state;
    }
  }
}

absl::Status JobRun::LoadTask(std::unique_ptr<Task> task, Lane& lane) {
  const TaskSpec& spec = task->spec;
  task->index = static_cast<int>(tasks_.size());
  task->place = static_cast<int>(lane.tasks.size());
  TaskSnapshot progress;
  progress.function = spec.function;
  progress.target = spec.target;
  progress.workload_hash = spec.workload_hash;
  progress.flops = cost_model::CountFlops(*task->function);
  progress.weight = spec.weight;
  progress.shape = spec.shape;
  progress.state = std::string(TaskStateName(TaskState::kWaiting));
  {
    MutexLock lock(mutex_);
    snapshot_.tasks.push_back(progress);
  }
  TF_ASSIGN_OR_RETURN(task->known,
                      env_.store.FindRecords(spec.workload_hash, spec.target));
  for (const database::Record& record : task->known) {
    const bool trial = record.job_id == job_id_;
    NoteRecord(*task, record, trial);
    const bool counts = CountsAsBest(record, env_.fingerprint, spec_);
    lane.scheduler->Restored(task->place, counts ? record.median_seconds : 0,
                             trial);
  }
  // No warm start from schedules that the job's own space leaves out.
  std::erase_if(task->known, [&](const database::Record& record) {
    return !MayUse(record, spec_);
  });
  UseRemeasured(task->known);
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
  lane.tasks.push_back(task.get());
  tasks_.push_back(std::move(task));
  return absl::OkStatus();
}

// Adds candidates that a former process handed out and that have no record to
// the farm, which holds them for their results.
void JobRun::HoldFormer(const LogSummary& log) {
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
        task->lane->scheduler->Proposed(task->place, 1);
      }
    }
  }
}

void JobRun::OpenLanes() {
  for (const auto& lane : lanes_) {
    if (lane->phase == Lane::Phase::kWaiting && LearnDevice(*lane)) {
      Open(*lane);
    }
  }
}

bool JobRun::LearnDevice(Lane& lane) {
  if (!lane.target.caches_known) {
    const auto caches = env_.farm.CachesFor(lane.target, lane.terms);
    if (caches.has_value()) {
      lane.target.caches = *caches;
      lane.target.caches_known = true;
    }
  }
  if (!lane.libraries.has_value()) {
    lane.libraries = env_.farm.LibrariesFor(lane.target, lane.terms);
  }
  const bool known = lane.target.caches_known && lane.libraries.has_value();
  lane.waits = known ? "" : env_.farm.WhyNoDevice(lane.target, lane.terms);
  return known;
}

void JobRun::Open(Lane& lane) {
  lane.phase = Lane::Phase::kOpen;
  lane.model = env_.search_factory.make_model(spec_);
  if (spec_.model != "random") {
    const auto saved = env_.store.GetBlob(ModelKey(lane.key));
    if (saved.ok()) {
      lane.stored_model = Sha256Hex(*saved);
      const absl::Status loaded = lane.model->Load(*saved);
      if (!loaded.ok()) {
        Warn("saved cost model not used: " + loaded.ToString());
      }
    }
  }
  std::map<std::string, int64_t> known;
  for (Task* task : lane.tasks) {
    known[task->id] = static_cast<int64_t>(task->known.size());
    auto search = env_.search_factory.make_search({
        .job = spec_,
        .task_id = task->id,
        .function = task->function,
        .target = lane.target,
        .fingerprint = env_.fingerprint,
        .model = lane.model,
        .known = task->known,
        .libraries = *lane.libraries,
    });
    task->known.clear();
    task->known.shrink_to_fit();
    if (search.ok()) {
      task->search = *std::move(search);
    } else {
      GiveUp(*task, absl::StrCat(" cannot be searched: ",
                                 std::string(search.status().message())));
    }
  }
  SuggestRecorded(lane);
  AppendLog(OpenLine(env_.clock.Now(), env_.fingerprint, lane.target, known,
                     *lane.libraries))
      .IgnoreError();  // kept and stored with the first proposal
  if (lane.exhausted()) {
    Finish(lane);
  } else {
    RequestBaselines(lane);
  }
}

void JobRun::SuggestRecorded(Lane& lane) {
  std::vector<const ProgramKind*> kinds;
  for (const Task* task : lane.tasks) kinds.push_back(&task->kind);
  const auto similar = SimilarTasks::Read(env_.store, lane.key, kinds);
  if (!similar.ok()) {
    // They are suggestions; the job does without.
    Warn("similar tasks: " + similar.status().ToString());
    return;
  }
  for (Task* task : lane.tasks) {
    if (task->search == nullptr) continue;
    for (const std::string& hash :
         similar->Find(task->kind, task->spec.workload_hash, kSuggestions)) {
      const auto best = env_.store.FindBest({.workload_hash = hash,
                                             .target = lane.target,
                                             .fingerprint = env_.fingerprint,
                                             .allow_stale = true});
      if (best.ok()) task->search->Suggest(hash, best->record.trace);
    }
  }
}

std::string JobRun::RaceOf(const Task& task) const {
  return absl::StrCat(task.id, spec_.allow_library ? " library" : "",
                      spec_.strict_fp     ? " strict"
                      : spec_.no_winograd ? " no-winograd"
                                          : "");
}

farm::WorkItem JobRun::MakeItem(const Task& task, farm::Purpose purpose) const {
  farm::WorkItem item;
  item.queue = task.lane->queue;
  item.job = job_id_;
  item.task_id = task.id;
  item.race = RaceOf(task);
  item.purpose = purpose;
  item.program = task.spec.program;
  item.workload_hash = task.spec.workload_hash;
  item.target = task.lane->target;
  item.options = MeasureOptionsFor(*task.function);
  item.least_seconds = LeastSeconds(*task.function, item.target);
  item.options.flush_cache = spec_.flush_cache;
  return item;
}

void JobRun::RequestBaselines(const Lane& lane) {
  for (const Task* task : lane.tasks) {
    if (task->has_baseline || !RunsUnscheduled(*task->function, lane.target)) {
      continue;
    }
    farm::WorkItem item = MakeItem(*task, farm::Purpose::kBaseline);
    item.candidate_id = Sha256Hex(
        absl::StrCat("unscheduled\n", task->id, "\n", env_.fingerprint));
    item.scheduled_hash = ir::ProgramHash(*task->function);
    // It is slow, and trials wait for it: one sample is enough.
    item.options.min_samples = 1;
    item.options.max_samples = 3;
    item.options.run_timeout = kBaselineTimeout;
    const absl::Status added =
        env_.farm.Add(std::move(item), farm::Where::kFront);
    if (!added.ok()) Warn(added.ToString());
  }
}

}  // namespace tilefarm::jobs
