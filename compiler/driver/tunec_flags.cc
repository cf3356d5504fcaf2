#include "compiler/driver/tunec_flags.h"

#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/files.h"
#include "compiler/driver/kept_floats.h"
#include "compiler/driver/lock_file.h"
#include "compiler/driver/remote_best.h"
#include "database/explanation.h"
#include "database/layers.h"
#include "database/store.h"

namespace tilefarm::driver {

namespace {

// From --server or --db.
absl::StatusOr<ScheduledModule> ScheduleByLookup(const TunecFlags& flags,
                                                 const ir::IRModule& module,
                                                 const target::Target& target) {
  std::vector<database::Explanation> explanations;
  const auto take = [&](database::Explanation explanation) {
    explanations.push_back(std::move(explanation));
  };
  FindBest find;
  std::optional<database::Layers> layers;
  if (!flags.server.empty()) {
    find = BestOfServer({flags.server, flags.security},
                        flags.explain ? TakeExplanation(take) : nullptr);
  } else {
    TF_ASSIGN_OR_RETURN(layers, database::Layers::Open(flags.dbs));
    find = [&](const database::BestQuery& query)
        -> absl::StatusOr<database::BestMatch> {
      if (flags.explain) {
        TF_ASSIGN_OR_RETURN(database::Explanation explanation,
                            layers->ExplainBest(query));
        take(std::move(explanation));
      }
      return layers->FindBest(query);
    };
  }
  TF_ASSIGN_OR_RETURN(ScheduledModule scheduled,
                      ScheduleFromRecords(module, target, Fingerprint(),
                                          flags.permissions, find));
  for (size_t i = 0; i < explanations.size(); ++i) {
    scheduled.choices[i].explanation = std::move(explanations[i]);
  }
  return scheduled;
}

}  // namespace

std::string HeaderPath(const TunecFlags& flags, const target::Target& target) {
  if (!flags.header.empty()) return flags.header;
  return std::filesystem::path(flags.output)
      .replace_extension(target.is_webassembly() ? ".mjs" : ".h")
      .string();
}

bool IsArchive(const std::string& output) {
  return std::filesystem::path(output).extension() == ".a";
}

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
    return ScheduleByTrace(module, target, flags.permissions.record_floats(),
                           trace);
  }
  if (!flags.locked.empty()) {
    TF_ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.locked));
    TF_ASSIGN_OR_RETURN(const LockFile lock, ParseLock(text, flags.locked));
    return ScheduleFromLock(module, target, Fingerprint(), flags.permissions,
                            lock);
  }
  if (!flags.server.empty() || !flags.dbs.empty()) {
    return ScheduleByLookup(flags, module, target);
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
                << FormatSeconds(choice.median_seconds) << " (" << choice.reason
                << ")" << (choice.database.empty() ? "" : " from ")
                << choice.database << "\n";
    }
    const std::string algorithms =
        DescribeAlgorithms(choice.algorithms, choice.keeps_floats);
    if (!algorithms.empty()) {
      std::cerr << "tunec: " << choice.function << ": " << algorithms << "\n";
    }
    if (choice.explanation && !flags.json) {
      std::cerr << "tunec: " << choice.function << ": "
                << database::ExplanationText(*choice.explanation);
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
