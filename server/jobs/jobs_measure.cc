// Measuring one schedule by hand.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "server/farm/random_id.h"
#include "server/jobs/jobs.h"
#include "server/jobs/measure_options.h"

namespace tilefarm::jobs {

absl::StatusOr<std::string> Jobs::Measure(const MeasureSpec& spec,
                                          MeasureDone done) {
  TF_ASSIGN_OR_RETURN(const ir::PrimFuncPtr submitted,
                      ir::ParseFunction(spec.program));
  // A trace names its function, so the text stays the user's own.
  TF_ASSIGN_OR_RETURN(const schedule::Trace trace,
                      schedule::Trace::Parse(spec.trace));
  TF_ASSIGN_OR_RETURN(const schedule::Schedule scheduled,
                      schedule::Replay(trace, ir::IRModule{{submitted}}));
  TF_ASSIGN_OR_RETURN(const target::Target target, target::Parse(spec.target));
  if (farm_.SlotsFor(target) == 0) {
    return absl::UnavailableError(farm_.WhyNoDevice(target));
  }
  if (!spec.device.empty()) {
    bool known = false;
    for (const farm::DeviceStatus& device : farm_.Devices()) {
      known |= device.name == spec.device &&
               device.state != farm::DeviceState::kOffline;
    }
    if (!known) {
      return absl::UnavailableError(
          absl::StrCat("device ", spec.device, " is not connected"));
    }
  }
  const std::string ticket = absl::StrCat("measure-", farm::RandomId(64));
  farm::WorkItem item;
  item.queue = ticket;
  item.purpose = farm::Purpose::kMeasure;
  item.candidate_id = Sha256Hex(ticket);
  item.program = spec.program;
  item.trace = scheduled.trace().Print();
  item.scheduled_hash = ir::ProgramHash(*scheduled.module().functions.front());
  item.workload_hash = ir::WorkloadHash(*submitted);
  item.task_id = search::TaskId(item.workload_hash, target.Key());
  item.recorded_as = search::CandidateId(item.task_id, item.scheduled_hash,
                                         options_.fingerprint);
  item.target = target;
  item.device = spec.device;
  item.options = MeasureOptionsFor(*submitted);
  {
    MutexLock lock(route_mutex_);
    measures_[ticket] = std::move(done);
  }
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
