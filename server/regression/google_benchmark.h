// The JSON of Google Benchmark (`--benchmark_format=json`), as any program may
// print it; files of library versions 1.5 to 1.9 are read.
#ifndef TILEFARM_SERVER_REGRESSION_GOOGLE_BENCHMARK_H_
#define TILEFARM_SERVER_REGRESSION_GOOGLE_BENCHMARK_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tilefarm::regression {

// One benchmark with all its repetitions.
struct BenchmarkSamples {
  std::string name;  // without suffixes like "_mean" and "/repeats:3"
  // Seconds of one iteration, one for each repetition, in their order: real
  // time, or the manual time where the benchmark sets it.
  std::vector<double> seconds;
  int64_t iterations = 0;  // of all repetitions
  // Where only aggregates were printed (--benchmark_report_aggregates_only):
  // `seconds` then has the median, else the mean, as its only element.
  bool aggregate_only = false;
  // The benchmark called SkipWithError; then `seconds` is empty.
  std::string error;
};

struct BenchmarkRun {
  std::string date, host_name;  // of the context; empty: not stated
  std::string build_type;       // library_build_type
  bool cpu_scaling = false;     // the clock was not fixed
  std::vector<BenchmarkSamples> benchmarks;  // in the order of the file
};

// InvalidArgument, with the benchmark's name where it has one: no JSON, no
// "benchmarks", an unknown time unit, a time that is negative or not finite. A
// program may print lines before the JSON; they are skipped. Entries of
// complexity (BigO, RMS) are ignored.
absl::StatusOr<BenchmarkRun> ParseGoogleBenchmark(std::string_view text);

// The same format, with one entry for each repetition, and median, mean,
// stddev and cv where there are several.
std::string WriteGoogleBenchmark(const BenchmarkRun& run);

}  // namespace tilefarm::regression

#endif  // TILEFARM_SERVER_REGRESSION_GOOGLE_BENCHMARK_H_
