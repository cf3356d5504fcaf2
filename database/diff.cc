#include "database/diff.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/status_macros.h"
#include "compiler/target/target.h"

namespace tilefarm::database {
namespace {

bool Before(const Task& a, const Task& b) {
  return std::tie(a.workload_hash, a.target) <
         std::tie(b.workload_hash, b.target);
}

// nullopt: no record of the task may be the best.
absl::StatusOr<std::optional<DiffSide>> BestOf(const Store& store,
                                               const Task& task) {
  const absl::StatusOr<target::Target> target = target::ParseKey(task.target);
  // A key of another release: no lookup can ask for it.
  if (!target.ok()) return std::nullopt;
  absl::StatusOr<BestMatch> best =
      store.FindBest({.workload_hash = task.workload_hash,
                      .target = *target,
                      .allow_stale = true,
                      .allow_library = true,
                      .allow_emulated = true});
  if (absl::IsNotFound(best.status())) return std::nullopt;
  TF_RETURN_IF_ERROR(best.status());
  Record& record = best->record;
  // The lookup fell back to a record of another task.
  if (record.target != task.target) return std::nullopt;
  return DiffSide{.candidate_id = std::move(record.candidate_id),
                  .seconds = record.median_seconds,
                  .device = std::move(record.device),
                  .device_model = std::move(record.device_model),
                  .fingerprint = std::move(record.fingerprint),
                  .protocol = std::move(record.protocol)};
}

void Compare(DiffEntry& entry) {
  if (!entry.b) {
    entry.difference = Difference::kOnlyA;
    return;
  }
  if (!entry.a) {
    entry.difference = Difference::kOnlyB;
    return;
  }
  const DiffSide& a = *entry.a;
  const DiffSide& b = *entry.b;
  if (a.device_model != b.device_model || !(a.protocol == b.protocol)) {
    entry.difference = Difference::kIncomparable;
  } else if (a.seconds == b.seconds) {
    entry.difference = a.candidate_id == b.candidate_id ? Difference::kSame
                                                        : Difference::kEqual;
  } else {
    entry.difference =
        a.seconds < b.seconds ? Difference::kFasterA : Difference::kFasterB;
    entry.ratio =
        std::max(a.seconds, b.seconds) / std::min(a.seconds, b.seconds);
  }
}

}  // namespace

std::string DifferenceName(Difference difference) {
  switch (difference) {
    case Difference::kOnlyA:
      return "only_a";
    case Difference::kOnlyB:
      return "only_b";
    case Difference::kSame:
      return "same";
    case Difference::kFasterA:
      return "faster_a";
    case Difference::kFasterB:
      return "faster_b";
    case Difference::kEqual:
      return "equal";
    case Difference::kIncomparable:
      break;
  }
  return "incomparable";
}

absl::StatusOr<std::vector<DiffEntry>> Diff(const Store& a, const Store& b) {
  TF_ASSIGN_OR_RETURN(const std::vector<Task> of_a, a.ListTasks());
  TF_ASSIGN_OR_RETURN(const std::vector<Task> of_b, b.ListTasks());
  std::vector<Task> tasks;
  std::set_union(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                 std::back_inserter(tasks), Before);
  std::vector<DiffEntry> entries;
  for (Task& task : tasks) {
    DiffEntry entry;
    TF_ASSIGN_OR_RETURN(entry.a, BestOf(a, task));
    TF_ASSIGN_OR_RETURN(entry.b, BestOf(b, task));
    if (!entry.a && !entry.b) continue;
    Compare(entry);
    entry.task = std::move(task);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace tilefarm::database
