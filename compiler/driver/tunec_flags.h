// The flags of tunec, and what programs and models have in common. Private to
// tunec.
#ifndef TILEFARM_COMPILER_DRIVER_TUNEC_FLAGS_H_
#define TILEFARM_COMPILER_DRIVER_TUNEC_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/driver/choose_schedule.h"
#include "compiler/target/target.h"
#include "transport/client_flags.h"

namespace tilefarm::driver {

// Exit code for --require-tuned without a record.
constexpr int kNothingFound = 3;

struct TunecFlags {
  std::string program;
  std::string target;
  std::vector<std::string> dbs;  // databases, the preferred one first
  std::string server, trace;
  std::string locked;      // a lock file to build by
  std::string write_lock;  // a lock file to write
  transport::ClientSecurity security;
  std::string output;
  std::string header;
  std::string symbol;
  bool as_is = false;
  bool require_tuned = false;
  bool explain = false;  // why the lookups chose what they chose
  Permissions permissions;
  bool json = false;
  // Models only:
  std::vector<std::string> dims;        // ParseDims (read_model.h)
  std::vector<std::string> run_inputs;  // INPUT=FILE.npy
  std::string weights;                  // file beside the library
  std::string save;                     // directory of --run's outputs
  bool time = false;
  bool profile = false;  // times the kernels of --run
  int profile_runs = 10;
  std::string profile_trace;  // file
  std::string print_after;    // name of a pass, or "import"
  std::string dot;            // file
};

// Where the C header goes, or what a target has instead of one.
std::string HeaderPath(const TunecFlags& flags, const target::Target& target);

// Whether --output asks for an archive, by its extension.
bool IsArchive(const std::string& output);

// The schedules that the flags ask for.
absl::StatusOr<ScheduledModule> ChooseSchedule(const TunecFlags& flags,
                                               const ir::IRModule& module,
                                               const target::Target& target);

// Writes --write-lock's file, if there is one, after `module` was built with
// these schedules.
absl::Status WriteLock(const TunecFlags& flags, const ir::IRModule& module,
                       const target::Target& target,
                       const ScheduledModule& scheduled);

// Tells the user how each function was scheduled, with --explain and without
// --json also why. False if --require-tuned
// forbids the build; FailedPrecondition if a schedule needs a permission.
absl::StatusOr<bool> ReportChoices(const TunecFlags& flags,
                                   ScheduledModule& scheduled);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_TUNEC_FLAGS_H_
