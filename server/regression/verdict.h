// What a comparison of two commits says: of each benchmark, and of the gate.
#ifndef TILEFARM_SERVER_REGRESSION_VERDICT_H_
#define TILEFARM_SERVER_REGRESSION_VERDICT_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/regression/attribution.h"
#include "server/regression/confirmed_test.h"
#include "server/regression/paired_ratio.h"

namespace tilefarm::regression {

// Whether a benchmark could be compared at all.
enum class Comparison {
  kCompared,
  kNew,      // the baseline does not have it; says nothing against the commit
  kRemoved,  // only the baseline has it; likewise
  kFailed,   // it was to be compared, and could not be: `note` says why
};

// "compared", "new", "removed", "failed"
std::string_view ComparisonName(Comparison comparison);

struct BenchmarkResult {
  std::string benchmark;
  std::string device_class;
  std::vector<std::string> devices;  // that took part, sorted
  Comparison comparison = Comparison::kCompared;
  double threshold = 0.03;
  // Of kCompared.
  TestOutcome outcome;
  // Medians over all samples, seconds of one call; 0: not measured.
  double baseline_seconds = 0;
  double candidate_seconds = 0;
  // Of slower and faster ones, where it was measured.
  std::optional<Attribution> attribution;
  // Why it failed, or a remark; empty: none.
  std::string note;
  double device_seconds = 0;  // device time that was spent

  // Why there is no verdict, or a remark: the outcome's note or `note`.
  const std::string& remark() const {
    return note.empty() ? outcome.note : note;
  }
  bool regressed() const {
    return comparison == Comparison::kCompared &&
           outcome.verdict == Verdict::kSlower && outcome.confirmed;
  }
  // It should have been compared and has no verdict.
  bool open() const {
    return comparison == Comparison::kFailed ||
           (comparison == Comparison::kCompared &&
            outcome.verdict == Verdict::kInconclusive);
  }
};

enum class Gate {
  kPass,        // all compared benchmarks are the same or faster
  kRegression,  // at least one is confirmed to be slower
  kNoVerdict,   // none is, but not all have a verdict; or nothing was compared
};

// "pass", "regression", "no verdict"
std::string_view GateName(Gate gate);

// A confirmed regression counts whatever else is open. Without one, an open
// benchmark leaves the gate open, and so does a run that compared nothing.
Gate GateOf(std::span<const BenchmarkResult> results);

// Exit codes of `tune regress`, besides the usual ones of wrong usage (2) and
// interruption (130). 1 means a confirmed regression and nothing else: failures
// that are no regression (no server, no device, a benchmark that does not
// build) are 4.
inline constexpr int kGatePassed = 0;
inline constexpr int kGateRegression = 1;
inline constexpr int kGateNoVerdict = 4;
int ExitCodeOf(Gate gate);

// The gate and its reason in a line, for people: "regression: conv2d +5.1 %;
// 1 of 12 benchmarks has no verdict".
std::string GateSummary(std::span<const BenchmarkResult> results);

// Worst first: regressions by ratio, then open ones, then faster, then the
// same, then new and removed; by name within. For reports.
std::vector<const BenchmarkResult*> WorstFirst(
    std::span<const BenchmarkResult> results);

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_VERDICT_H_
