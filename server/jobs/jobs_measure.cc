// Measuring one schedule by hand.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"
#include "compiler/lower/check_program.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "server/farm/random_id.h"
#include "server/jobs/jobs.h"
#include "server/jobs/measure_options.h"
#include "server/jobs/roofline.h"

namespace tilefarm::jobs {

namespace {

// A program's text, and the schedule that the trace makes of it.
struct Scheduled {
  std::string program;
  schedule::Schedule schedule;
};

absl::StatusOr<Scheduled> Apply(const schedule::Trace& trace,
                                const std::string& program) {
  TF_ASSIGN_OR_RETURN(ir::IRModule module, ir::ParseModule(program));
  TF_ASSIGN_OR_RETURN(schedule::Schedule scheduled,
                      schedule::Replay(trace, std::move(module)));
  return Scheduled{program, std::move(scheduled)};
}

}  // namespace

absl::StatusOr<std::string> Jobs::Measure(const MeasureSpec& spec,
                                          MeasureDone done) {
  {
    MutexLock lock(mutex_);
    TF_RETURN_IF_ERROR(CheckUser(spec.user));
  }
  TF_ASSIGN_OR_RETURN(const ir::PrimFuncPtr submitted,
                      ir::ParseFunction(spec.program));
  TF_ASSIGN_OR_RETURN(const schedule::Trace trace,
                      schedule::Trace::Parse(spec.trace));
  TF_RETURN_IF_ERROR(lower::CheckProgram(ir::IRModule{{submitted}}));
  TF_RETURN_IF_ERROR(CheckNoLibraryMarks(*submitted));
  const TaskSpec task = MakeTask(*submitted);
  TF_ASSIGN_OR_RETURN(const target::Target target,
                      target::ParseKey(spec.target));
  // Replays on the text of the task, as a job does, so that a schedule which
  // was measured before is recognised. A trace by hand may use names that only
  // the user's own text has: then the error of the replay on that text counts.
  auto scheduled = Apply(trace, TaskProgram(store_, task, target.Key()));
  if (!scheduled.ok()) scheduled = Apply(trace, task.program);
  if (!scheduled.ok()) scheduled = Apply(trace, spec.program);
  if (!scheduled.ok()) return scheduled.status();
  const farm::QueueTerms terms{.user = spec.user};
  if (farm_.SlotsFor(target, terms) == 0) {
    return absl::UnavailableError(farm_.WhyNoDevice(target, terms));
  }
  if (!spec.device.empty()) {
    bool known = false;
    std::string why;
    for (const farm::DeviceStatus& device : farm_.Devices()) {
      if (device.name != spec.device) continue;
      known = farm::IsWorking(device.state) &&
              (device.reserved_for.empty() || device.reserved_for == spec.user);
      why = absl::StrCat(" (", std::string(farm::DeviceStateName(device.state)),
                         device.reason.empty() ? "" : ": ", device.reason, ")");
    }
    if (!known) {
      return absl::UnavailableError(
          why.empty()
              ? absl::StrCat("device ", spec.device, " is not connected")
              : absl::StrCat("device ", spec.device, " takes no work", why));
    }
  }
  const std::string ticket = absl::StrCat("measure-", farm::RandomId(64));
  farm::WorkItem item;
  item.queue = ticket;
  item.purpose = farm::Purpose::kMeasure;
  item.candidate_id = Sha256Hex(ticket);
  item.program = scheduled->program;
  item.trace = scheduled->schedule.trace().Print();
  item.scheduled_hash =
      ir::ProgramHash(*scheduled->schedule.module().functions.front());
  item.workload_hash = task.workload_hash;
  item.task_id = search::TaskId(item.workload_hash, target.Key());
  item.recorded_as = search::CandidateId(item.task_id, item.scheduled_hash,
                                         options_.fingerprint);
  item.target = target;
  item.device = spec.device;
  item.options = MeasureOptionsFor(*submitted);
  item.least_seconds = LeastSeconds(*submitted, target);
  {
    MutexLock lock(route_mutex_);
    measures_[ticket] = std::move(done);
  }
  farm_.OpenQueue(ticket, terms);
  farm_.SetUrgent(ticket);
  const absl::Status added = farm_.Add(std::move(item));
  if (!added.ok()) {
    AbandonMeasure(ticket);
    return added;
  }
  return ticket;
}

void Jobs::AbandonMeasure(const std::string& ticket) {
  {
    MutexLock lock(route_mutex_);
    measures_.erase(ticket);
  }
  farm_.RemoveQueue(ticket);
}

}  // namespace tilefarm::jobs
