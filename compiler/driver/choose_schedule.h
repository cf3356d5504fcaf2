// Chooses the schedule for each function of a module.
#ifndef TILEFARM_COMPILER_DRIVER_CHOOSE_SCHEDULE_H_
#define TILEFARM_COMPILER_DRIVER_CHOOSE_SCHEDULE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/float_rule.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"
#include "database/store.h"

namespace tilefarm::driver {

// The decision for one function, and its reason.
struct Choice {
  std::string function;
  std::string schedule;  // "record", "default", "trace", "as-is"
  std::string reason;    // for the user
  // Only for records:
  std::string candidate_id;
  double median_seconds = 0;
  std::string program, trace;
  std::string database;  // the file that it is from, if several were given
  // With --explain: of records and of default schedules.
  std::optional<database::Explanation> explanation;
  // AlgorithmsOf the trace, and whether it keeps floats as written
  // (kept_floats.h).
  std::vector<std::string> algorithms = {};
  bool keeps_floats = true;
  // The kernel libraries that it calls; the artifact needs them to load.
  std::vector<std::string> libraries;
};

// What the user permits in addition to records that are up to date and call no
// library.
struct Permissions {
  bool allow_stale = false;     // records of other compilers
  bool allow_library = false;   // calls of libraries' kernels
  bool allow_emulated = false;  // if no record of a real device fits
  // For schedules without a record; those of records were verified.
  bool allow_rounding = false;
  bool strict_fp = false;    // only records that keep floats as written
  bool no_winograd = false;  // no records that use Winograd's algorithm

  // The rule for records, and for traces by hand.
  ir::FloatRule record_floats() const {
    if (strict_fp) return ir::FloatRule::kAsWritten;
    return no_winograd ? ir::FloatRule::kNoWinograd : ir::FloatRule::kMayDiffer;
  }
  // The rule for schedules without a record.
  ir::FloatRule floats() const {
    return allow_rounding ? record_floats() : ir::FloatRule::kAsWritten;
  }
};

struct ScheduledModule {
  ir::IRModule module;
  std::vector<Choice> choices;  // one per function
};

// Returns the best record for a query from the database or the server; NotFound
// if there is no usable one.
using FindBest = std::function<absl::StatusOr<database::BestMatch>(
    const database::BestQuery&)>;
// Receives the explanation of each lookup, in the order of the functions.
using TakeExplanation = std::function<void(database::Explanation)>;

// Replays the trace of every function's best record on the program text of the
// record; names stay the user's. If the target was "host", the lookup names the
// device. A function without a record gets the default schedule, and `choices`
// says so. Returns errors of the lookup itself, and of a record that does not
// replay.
absl::StatusOr<ScheduledModule> ScheduleFromRecords(
    const ir::IRModule& module, const target::Target& target,
    const std::string& fingerprint, const Permissions& permissions,
    const FindBest& find);

// Gives every function the schedule for functions without records
// (draft_schedule.h); `floats` says what it may change.
absl::StatusOr<ScheduledModule> ScheduleByDefault(const ir::IRModule& module,
                                                  const target::Target& target,
                                                  ir::FloatRule floats,
                                                  const std::string& reason);

// Applies one trace, as text, to the module. InvalidArgument if it names an
// intrinsic that the target does not have; FailedPrecondition if `floats`
// forbids it.
absl::StatusOr<ScheduledModule> ScheduleByTrace(const ir::IRModule& module,
                                                const target::Target& target,
                                                ir::FloatRule floats,
                                                const std::string& trace_text);

// Fills in which libraries the scheduled functions call. FailedPrecondition if
// they call one without permission.
absl::Status CheckLibraries(const Permissions& permissions,
                            ScheduledModule& scheduled);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_CHOOSE_SCHEDULE_H_
