// The end of a run: its fastest candidates are measured once more.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "compiler/driver/kept_floats.h"
#include "server/jobs/job_run.h"
#include "server/jobs/job_run_task.h"
#include "server/jobs/remeasure.h"

namespace tilefarm::jobs {
namespace {

// Minimum number of samples of a finalist. Samples of fast candidates are
// cheap, and more samples cover more placements of buffers in memory.
constexpr int kFinalistSamples = 5;
constexpr int kQuickFinalistSamples = 15;
constexpr double kQuickSeconds = 2e-3;

}  // namespace

void JobRun::ShowBest(const Task& task) {
  std::vector<std::string> algorithms;
  bool keeps_floats = true;
  if (const Contender* winner = task.contenders.winner()) {
    const database::Record& best = winner->record;
    algorithms = driver::AlgorithmsOf(best.trace);
    keeps_floats = driver::KeepsFloats(best.program, best.trace);
  }
  MutexLock lock(mutex_);
  TaskSnapshot& shown = snapshot_.tasks[task.index];
  shown.best_seconds = task.best_seconds;
  shown.algorithms = std::move(algorithms);
  shown.keeps_floats = keeps_floats;
  ++version_;
}

bool JobRun::RequestFinalists(Lane& lane) {
  if (env_.clock.Monotonic() > lane.finalists_until) return false;
  bool any = false;
  for (Task* task : lane.tasks) {
    // Nothing was measured: the best record stays as it is.
    if (task->done == 0) continue;
    for (const Contender* contender : task->contenders.NextRound(job_id_)) {
      any |= RequestFinalist(*task, *contender);
    }
  }
  if (any && lane.finalists_until == absl::InfiniteDuration()) {
    lane.finalists_until = env_.clock.Monotonic() + env_.timeouts.finalists;
  }
  if (any) {
    SetMessage(absl::StrCat("measures the fastest again, round ",
                            ++lane.finalist_rounds));
  }
  return any;
}

bool JobRun::RequestFinalist(Task& task, const Contender& contender) {
  const database::Record& record = contender.record;
  const auto hash = ScheduledHash(record);
  if (!hash.ok()) {
    Warn("finalist is not replayed: " + hash.status().ToString());
    return false;
  }
  // Only times of the same device can be compared.
  const std::string device = record.device.substr(0, record.device.rfind('@'));
  bool connected = false;
  for (const farm::DeviceStatus& status : env_.farm.Devices()) {
    connected |= status.name == device && farm::IsWorking(status.state);
  }
  if (!connected) return false;
  farm::WorkItem item = MakeItem(task, farm::Purpose::kFinalist);
  item.candidate_id =
      Sha256Hex(absl::StrCat("finalist\n", job_id_, "\n", record.candidate_id,
                             "\n", contender.requested));
  item.recorded_as = record.candidate_id;
  item.program = record.program;
  item.trace = record.trace;
  item.scheduled_hash = *hash;
  item.device = device;
  item.sequence = record.sequence;
  // Every round is measured in full, without a best time that could stop it.
  item.options.min_samples = record.median_seconds < kQuickSeconds
                                 ? kQuickFinalistSamples
                                 : kFinalistSamples;
  item.options.max_samples = 30;
  item.options.target_time = absl::Milliseconds(40);
  return env_.farm.Add(std::move(item)).ok();
}

void JobRun::NoteRemeasured(Task& task, const database::Record& record) {
  // Its record is a contender, or was too slow to become one.
  const bool counts = CountsAsBest(record, env_.fingerprint, spec_);
  if (counts && !task.contenders.Contains(record.candidate_id)) {
    task.contenders.Add(record);
  }
  NoteFinalist(task, record);
}

void JobRun::NoteFinalist(Task& task, const database::Record& record) {
  task.contenders.NoteMeasurement(record.candidate_id, record,
                                  env_.fingerprint);
  task.best_seconds = task.contenders.best_seconds();
  ShowBest(task);
}

}  // namespace tilefarm::jobs
