// What `tune explain` found of one function, as text and as JSON. Pure
// functions; the JSON shape is a contract (docs/formats.md).
#ifndef TILEFARM_SERVER_CLI_EXPLAIN_REPORT_H_
#define TILEFARM_SERVER_CLI_EXPLAIN_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/perf_counters.h"
#include "compiler/driver/machine_peaks.h"
#include "compiler/driver/trace_diff.h"
#include "compiler/target/target.h"
#include "cost_model/bottleneck.h"
#include "cost_model/nest_table.h"

namespace tilefarm::cli {

struct RunnerUp {
  double seconds = 0;
  driver::TraceDiff diff;
};

struct ExplainReport {
  std::string function;
  target::Target target;
  // "record", "trace", "as-is" or "default", and why.
  std::string schedule, reason;
  std::vector<std::string> algorithms;
  bool keeps_floats = true;

  double flops = 0;            // of the program as written
  double parameter_bytes = 0;  // each once
  double record_seconds = 0;   // 0: no record
  double run_seconds = 0;      // here and now; 0: not run
  std::string not_run;         // why; empty: it was run
  // Absent: the target is not this machine; cycles are those of a typical core.
  std::optional<driver::MachinePeaks> peaks;
  cost_model::BottleneckReport model;
  std::vector<cost_model::NestTable> nests;

  std::optional<PerfCounts> counts;  // of one run
  std::string no_counts;             // why; empty: there are some
  std::optional<RunnerUp> runner_up;
  std::string no_runner_up;  // why; empty: there is one

  // The time to compare with: the record's, or the run's; 0: neither.
  double seconds() const {
    return record_seconds > 0 ? record_seconds : run_seconds;
  }
  // By the model; 0: the clock of the target is not known.
  double model_seconds() const {
    return peaks ? model.cycles / peaks->clock_hz : 0;
  }
  // Whether model and measurement agree, so that the bottleneck is to be
  // believed; nullopt: one of them is not known.
  std::optional<bool> agrees() const;
};

// The least time that the machine allows for the program, whatever its
// schedule: its arithmetic, and its parameters through memory where they do not
// fit the caches. 0: unknown.
double LeastSeconds(const ExplainReport& report);

std::string ExplainText(const ExplainReport& report);
nlohmann::ordered_json ExplainJson(const ExplainReport& report);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_EXPLAIN_REPORT_H_
