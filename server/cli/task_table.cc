#include "server/cli/task_table.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/cli/format.h"

namespace tilefarm::cli {
namespace {

template <typename Seconds>
double Sum(const v1::JobUpdate& update, const std::string& target,
           Seconds seconds) {
  double sum = 0;
  for (const v1::TaskProgress& task : update.tasks()) {
    if (task.target() != target) continue;
    if (seconds(task) <= 0) return 0;
    sum += task.weight() * seconds(task);
  }
  return sum;
}

std::string Flops(double flops) {
  if (flops <= 0) return "-";
  if (flops >= 1e9) return absl::StrFormat("%.2fG", flops * 1e-9);
  if (flops >= 1e6) return absl::StrFormat("%.2fM", flops * 1e-6);
  return absl::StrFormat("%.2fk", flops * 1e-3);
}

}  // namespace

bool HasSeveralTargets(const v1::JobUpdate& update) {
  return std::any_of(update.tasks().begin(), update.tasks().end(),
                     [&](const v1::TaskProgress& task) {
                       return task.target() != update.tasks(0).target();
                     });
}

bool IsWhole(const v1::JobUpdate& update) {
  std::set<std::string> targets;
  for (const v1::TaskProgress& task : update.tasks()) {
    const bool first = targets.insert(task.target()).second;
    // A server of an earlier release sends no weights.
    if (task.weight() > 0 && (!first || task.weight() != 1)) return true;
  }
  return false;
}

Projection Project(const v1::JobUpdate& update, const std::string& target) {
  return {
      .tuned = Sum(update, target,
                   [](const auto& task) { return task.best_seconds(); }),
      .untuned = Sum(update, target,
                     [](const auto& task) { return task.default_seconds(); }),
      .unscheduled = Sum(update, target, [](const auto& task) {
        return task.unscheduled_seconds();
      })};
}

Projection Project(const v1::JobUpdate& update) {
  if (update.tasks().empty() || HasSeveralTargets(update)) return {};
  return Project(update, update.tasks(0).target());
}

double ShareOf(const v1::JobUpdate& update, const v1::TaskProgress& task) {
  const double sum = Project(update, task.target()).tuned;
  return sum > 0 ? task.weight() * task.best_seconds() / sum : -1;
}

std::vector<std::vector<std::string>> TaskRows(const v1::JobUpdate& update) {
  const bool several = HasSeveralTargets(update);
  std::vector<const v1::TaskProgress*> tasks;
  for (const v1::TaskProgress& task : update.tasks()) tasks.push_back(&task);
  // Before all tasks have a time, the order by time is still the useful one.
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const auto* a, const auto* b) {
                     return a->weight() * a->best_seconds() >
                            b->weight() * b->best_seconds();
                   });
  std::vector<std::vector<std::string>> rows = {
      {"FUNCTION", "OUTPUT", "FLOP", "WEIGHT", "UNSCHEDULED", "TUNED",
       "SPEED-UP", "SHARE", "TRIALS", "STATE"}};
  if (several) rows.front().insert(rows.front().begin() + 1, "TARGET");
  for (const v1::TaskProgress* task : tasks) {
    const bool both =
        task->best_seconds() > 0 && task->unscheduled_seconds() > 0;
    const double share = ShareOf(update, *task);
    rows.push_back(
        {task->function(), task->shape().empty() ? "-" : task->shape(),
         Flops(task->flops()), absl::StrCat(task->weight()),
         Seconds(task->unscheduled_seconds()), Seconds(task->best_seconds()),
         both ? absl::StrFormat(
                    "%.1fx", task->unscheduled_seconds() / task->best_seconds())
              : "-",
         share < 0 ? "-" : absl::StrFormat("%.1f%%", share * 100),
         absl::StrCat(task->trials_done()), task->state()});
    if (several) rows.back().insert(rows.back().begin() + 1, task->target());
  }
  return rows;
}

std::string ProjectionText(const v1::JobUpdate& update) {
  const Projection projection = Project(update);
  if (projection.tuned <= 0) return "";
  std::string text = absl::StrCat("projected ", Seconds(projection.tuned));
  if (projection.untuned > 0) {
    absl::StrAppend(&text, ", ", Seconds(projection.untuned),
                    " with default schedules");
  }
  if (projection.unscheduled > 0) {
    absl::StrAppend(&text, ", ", Seconds(projection.unscheduled),
                    " unscheduled");
  }
  return text;
}

std::string AlgorithmsText(const v1::JobUpdate& update) {
  constexpr size_t kNamed = 4;
  // Functions by what is said of them, in the order of the first.
  std::vector<std::pair<std::string, std::vector<std::string>>> kinds;
  bool changes = false;
  for (const v1::TaskProgress& task : update.tasks()) {
    std::string what = absl::StrJoin(task.algorithms(), ", ");
    if (task.changes_floats()) {
      absl::StrAppend(&what, what.empty() ? "" : "; ", "rounds differently");
      changes = true;
    }
    if (what.empty()) continue;
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& one) {
      return one.first == what;
    });
    if (kind == kinds.end()) {
      kind = kinds.insert(kinds.end(), {std::move(what), {}});
    }
    std::vector<std::string>& names = kind->second;
    // With several targets a function has a task for each.
    if (std::find(names.begin(), names.end(), task.function()) == names.end()) {
      names.push_back(task.function());
    }
  }
  std::string text;
  for (auto& [what, names] : kinds) {
    const size_t count = names.size();
    if (count > kNamed) names.resize(kNamed);
    absl::StrAppend(&text, absl::StrJoin(names, ", "));
    if (count > kNamed) {
      absl::StrAppend(&text, " and ", count - kNamed, " more");
    }
    absl::StrAppend(&text, ": ", what, "\n");
  }
  if (changes) {
    absl::StrAppend(
        &text,
        "(rounds differently than the program, or leaves out "
        "terms that are 0 for finite numbers;\n --strict-fp forbids "
        "it, --no-winograd Winograd's algorithm alone)\n");
  }
  return text;
}

}  // namespace tilefarm::cli
