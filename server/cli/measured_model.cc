#include "server/cli/measured_model.h"

#include "base/status_macros.h"
#include "compiler/driver/choose_schedule.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/read_model.h"
#include "compiler/driver/remote_best.h"
#include "compiler/driver/time_model.h"
#include "compiler/target/target.h"

namespace tilefarm::cli {

bool CanMeasureModel(const JobOptions& options) {
  if (!driver::IsModel(options.program) || options.targets.size() != 1) {
    return false;
  }
  const auto target = target::Parse(options.targets.front());
  return target.ok() && !target->device_model.empty();
}

absl::StatusOr<ModelLatency> MeasureModel(const Common& common,
                                          const JobOptions& options) {
  TF_ASSIGN_OR_RETURN(const target::Target target,
                      target::Parse(options.targets.front()));
  driver::Permissions permissions;
  permissions.allow_library = options.allow_library;
  permissions.strict_fp = options.strict_fp;
  permissions.no_winograd = options.no_winograd;
  TF_ASSIGN_OR_RETURN(
      const driver::ModelTimes times,
      driver::TimeModel(options.program, options.dims, target,
                        permissions.floats(), [&](const ir::IRModule& module) {
                          return driver::ScheduleFromRecords(
                              module, target, driver::Fingerprint(),
                              permissions, driver::BestOfServer(common.server));
                        }));
  return ModelLatency{.unfused_seconds = times.unfused_seconds,
                      .untuned_seconds = times.untuned_seconds,
                      .latency_seconds = times.tuned_seconds};
}

}  // namespace tilefarm::cli
