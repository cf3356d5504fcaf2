#include "compiler/driver/tunec_flags.h"

#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/files.h"
#include "compiler/driver/lock_file.h"
#include "compiler/driver/remote_best.h"
#include "database/store.h"

namespace tilefarm::driver {

absl::StatusOr<ScheduledModule> ChooseSchedule(const TunecFlags& flags,
                                               const ir::IRModule& module,
                                               const target::Target& target) {
  if (flags.as_is) {
    ScheduledModule result{module, {}};
    for (const ir::PrimFuncPtr& function : module.functions) {
      result.choices.push_back(
          {.function = function->name, .schedule = "as-is", .reason = "given"});
    }
    return result;
  }
  if (!flags.trace.empty()) {
    TF_ASSIGN_OR_RETURN(const std::string trace, ReadFile(flags.trace));
    // What a trace by hand does is what its author asks for.
    return ScheduleByTrace(module, target,
                           flags.permissions.strict_fp
                               ? ir::FloatRule::kAsWritten
                               : ir::FloatRule::kMayDiffer,
                           trace);
  }
  if (!flags.locked.empty()) {
    TF_ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.locked));
    TF_ASSIGN_OR_RETURN(const LockFile lock, ParseLock(text, flags.locked));
    return ScheduleFromLock(module, target, Fingerprint(), flags.permissions,
                            lock);
  }
  if (!flags.server.empty()) {
    return ScheduleFromRecords(module, target, Fingerprint(), flags.permissions,
                               BestOfServer({flags.server, flags.security}));
  }
  if (!flags.db.empty()) {
    absl::StatusOr<std::unique_ptr<database::Store>> store =
        database::Store::Open(flags.db, database::Store::Mode::kReadOnly);
    if (!store.ok()) {
      return absl::Status(store.status().code(),
                          absl::StrCat("database ", flags.db, ": ",
                                       std::string(store.status().message())));
    }
    return ScheduleFromRecords(module, target, Fingerprint(), flags.permissions,
                               [&](const database::BestQuery& query) {
                                 return (*store)->FindBest(query);
                               });
  }
  return ScheduleByDefault(module, target, flags.permissions.floats(),
                           "no database was given");
}

absl::Status WriteLock(const TunecFlags& flags, const ir::IRModule& module,
                       const target::Target& target,
                       const ScheduledModule& scheduled) {
  if (flags.write_lock.empty()) return absl::OkStatus();
  return WriteFile(
      flags.write_lock,
      PrintLock(MakeLock(module, target, Fingerprint(), scheduled)));
}

absl::StatusOr<bool> ReportChoices(const TunecFlags& flags,
                                   ScheduledModule& scheduled) {
  TF_RETURN_IF_ERROR(CheckLibraries(flags.permissions, scheduled));
  bool all_tuned = true;
  for (const Choice& choice : scheduled.choices) {
    if (choice.schedule == "default") {
      all_tuned = false;
      std::cerr << "tunec: " << choice.function << ": default schedule, since "
                << choice.reason << "\n";
    } else if (choice.schedule == "record") {
      std::cerr << "tunec: " << choice.function << ": record of "
                << choice.median_seconds * 1e3 << " ms (" << choice.reason
                << ")\n";
    }
    if (!choice.libraries.empty()) {
      std::cerr << "tunec: " << choice.function << ": calls "
                << absl::StrJoin(choice.libraries, ", ") << "\n";
    }
  }
  if (flags.require_tuned && !all_tuned) {
    std::cerr << "tunec: --require-tuned: nothing was built\n";
    return false;
  }
  return true;
}

}  // namespace tilefarm::driver
