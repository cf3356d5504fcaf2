// Results of benchmarks, as tests of verdicts and reports need them.
#ifndef TILEFARM_TESTS_SERVER_REGRESSION_RESULTS_H_
#define TILEFARM_TESTS_SERVER_REGRESSION_RESULTS_H_

#include <string>
#include <utility>

#include "server/regression/verdict.h"

namespace tilefarm::regression {

inline BenchmarkResult Compared(std::string name, Verdict verdict,
                                double ratio) {
  BenchmarkResult result;
  result.benchmark = std::move(name);
  result.device_class = "x86-64:znver4";
  result.devices = {"board-1"};
  result.outcome.verdict = verdict;
  result.outcome.confirmed = verdict == Verdict::kSlower;
  result.outcome.ratio = {.ratio = ratio,
                          .low = ratio * 0.99,
                          .high = ratio * 1.01,
                          .level = 0.99,
                          .clusters = 14};
  result.baseline_seconds = 1e-3;
  result.candidate_seconds = ratio * 1e-3;
  result.device_seconds = 1.5;
  return result;
}

inline BenchmarkResult Same(std::string name) {
  return Compared(std::move(name), Verdict::kSame, 1.001);
}

inline BenchmarkResult Faster(std::string name) {
  return Compared(std::move(name), Verdict::kFaster, 0.8);
}

inline BenchmarkResult Slower(std::string name, double ratio) {
  return Compared(std::move(name), Verdict::kSlower, ratio);
}

inline BenchmarkResult Open(std::string name) {
  BenchmarkResult result =
      Compared(std::move(name), Verdict::kInconclusive, 1.03);
  result.outcome.note = "after 48 processes +2.0 % to +4.0 % is still possible";
  return result;
}

inline BenchmarkResult NotCompared(std::string name, Comparison comparison) {
  BenchmarkResult result;
  result.benchmark = std::move(name);
  result.comparison = comparison;
  return result;
}

inline BenchmarkResult Failed(std::string name) {
  BenchmarkResult result = NotCompared(std::move(name), Comparison::kFailed);
  result.note = "the candidate does not build: 3:1: unknown intrinsic";
  return result;
}

inline BenchmarkResult New(std::string name) {
  BenchmarkResult result = NotCompared(std::move(name), Comparison::kNew);
  result.candidate_seconds = 2e-3;
  return result;
}

inline BenchmarkResult Removed(std::string name) {
  return NotCompared(std::move(name), Comparison::kRemoved);
}

}  // namespace tilefarm::regression

#endif  // TILEFARM_TESTS_SERVER_REGRESSION_RESULTS_H_
