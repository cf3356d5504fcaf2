#include "server/regression/verdict.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/regression/ratio_text.h"

namespace tilefarm::regression {
namespace {

// The place of a result in a report, from the worst.
int RankOf(const BenchmarkResult& result) {
  if (result.regressed()) return 0;
  if (result.comparison == Comparison::kFailed) return 1;
  if (result.open()) return 2;
  if (result.comparison == Comparison::kCompared) {
    return result.outcome.verdict == Verdict::kFaster ? 3 : 4;
  }
  return result.comparison == Comparison::kNew ? 5 : 6;
}

std::string CountText(size_t count, size_t of) {
  return absl::StrCat(count, " of ", of,
                      of == 1 ? " benchmark" : " benchmarks");
}

}  // namespace

std::string_view ComparisonName(Comparison comparison) {
  switch (comparison) {
    case Comparison::kCompared:
      return "compared";
    case Comparison::kNew:
      return "new";
    case Comparison::kRemoved:
      return "removed";
    case Comparison::kFailed:
      return "failed";
  }
  return "failed";
}

std::string_view GateName(Gate gate) {
  switch (gate) {
    case Gate::kPass:
      return "pass";
    case Gate::kRegression:
      return "regression";
    case Gate::kNoVerdict:
      return "no verdict";
  }
  return "no verdict";
}

Gate GateOf(std::span<const BenchmarkResult> results) {
  bool open = false;
  bool compared = false;
  for (const BenchmarkResult& result : results) {
    if (result.regressed()) return Gate::kRegression;
    open |= result.open();
    compared |= result.comparison == Comparison::kCompared;
  }
  return open || !compared ? Gate::kNoVerdict : Gate::kPass;
}

int ExitCodeOf(Gate gate) {
  switch (gate) {
    case Gate::kPass:
      return kGatePassed;
    case Gate::kRegression:
      return kGateRegression;
    case Gate::kNoVerdict:
      break;
  }
  return kGateNoVerdict;
}

std::string GateSummary(std::span<const BenchmarkResult> results) {
  std::vector<std::string> regressions;
  size_t open = 0, compared = 0, faster = 0;
  for (const BenchmarkResult* result : WorstFirst(results)) {
    if (result->regressed()) {
      regressions.push_back(absl::StrCat(
          result->benchmark, " ", ChangeText(result->outcome.ratio.ratio)));
    }
    open += result->open() ? 1 : 0;
    if (result->comparison == Comparison::kCompared) {
      ++compared;
      faster += result->outcome.verdict == Verdict::kFaster ? 1 : 0;
    }
  }
  const size_t asked =
      compared +
      static_cast<size_t>(std::count_if(
          results.begin(), results.end(), [](const BenchmarkResult& result) {
            return result.comparison == Comparison::kFailed;
          }));
  std::vector<std::string> parts;
  if (!regressions.empty()) {
    const size_t named = std::min<size_t>(regressions.size(), 3);
    std::string text =
        absl::StrJoin(regressions.begin(),
                      regressions.begin() + static_cast<long>(named), ", ");
    if (regressions.size() > named) {
      absl::StrAppend(&text, " and ", regressions.size() - named, " more");
    }
    parts.push_back(std::move(text));
  }
  if (open > 0) {
    parts.push_back(absl::StrCat(CountText(open, asked),
                                 open == 1 ? " has" : " have", " no verdict"));
  }
  if (asked == 0) {
    parts.push_back("no benchmark could be compared");
  } else if (regressions.empty() && open == 0) {
    parts.push_back(absl::StrCat(
        compared, compared == 1 ? " benchmark is" : " benchmarks are",
        faster == 0
            ? " unchanged"
            : absl::StrCat(" unchanged or faster (", faster, " faster)")));
  }
  return absl::StrCat(std::string(GateName(GateOf(results))), ": ",
                      absl::StrJoin(parts, "; "));
}

std::vector<const BenchmarkResult*> WorstFirst(
    std::span<const BenchmarkResult> results) {
  std::vector<const BenchmarkResult*> order;
  order.reserve(results.size());
  for (const BenchmarkResult& result : results) order.push_back(&result);
  const auto key = [](const BenchmarkResult* result) {
    const int rank = RankOf(*result);
    const double ratio =
        rank == 0 || rank == 3 ? result->outcome.ratio.ratio : 0;
    return std::tuple(rank, -ratio, std::string_view(result->benchmark),
                      std::string_view(result->device_class));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const BenchmarkResult* a, const BenchmarkResult* b) {
                     return key(a) < key(b);
                   });
  return order;
}

}  // namespace tilefarm::regression
