#include "server/jobs/remeasure.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "server/farm/random_id.h"
#include "server/jobs/measure_options.h"
#include "server/jobs/roofline.h"
#include "server/search/search.h"

namespace tilefarm::jobs {

absl::StatusOr<std::string> ScheduledHash(const database::Record& record) {
  TF_ASSIGN_OR_RETURN(ir::IRModule module, ir::ParseModule(record.program));
  TF_ASSIGN_OR_RETURN(const schedule::Trace trace,
                      schedule::Trace::Parse(record.trace));
  TF_ASSIGN_OR_RETURN(const schedule::Schedule scheduled,
                      schedule::Replay(trace, std::move(module)));
  return ir::ProgramHash(*scheduled.module().functions.front());
}

absl::StatusOr<farm::WorkItem> ItemFromRecord(const database::Record& record) {
  farm::WorkItem item;
  item.purpose = farm::Purpose::kRemeasure;
  TF_ASSIGN_OR_RETURN(item.target, target::ParseKey(record.target));
  TF_ASSIGN_OR_RETURN(const ir::PrimFuncPtr function,
                      ir::ParseFunction(record.program));
  TF_ASSIGN_OR_RETURN(item.scheduled_hash, ScheduledHash(record));
  item.candidate_id = Sha256Hex(absl::StrCat("remeasure\n", record.candidate_id,
                                             "\n", farm::RandomId(64)));
  item.recorded_as = record.candidate_id;
  item.workload_hash = record.workload_hash.empty()
                           ? ir::WorkloadHash(*function)
                           : record.workload_hash;
  item.task_id = search::TaskId(item.workload_hash, item.target.Key());
  item.program = record.program;
  item.trace = record.trace;
  item.sequence = record.sequence;
  item.options = MeasureOptionsFor(*function);
  item.least_seconds = LeastSeconds(*function, item.target);
  item.options.flush_cache = record.protocol.cold_cache;
  return item;
}

}  // namespace tilefarm::jobs
