// What is drawn and listed of many records: their numbers, without programs,
// traces and samples. Reading ten thousand of these takes a tenth of the time
// that reading the records takes.
#ifndef TILEFARM_DATABASE_OUTCOMES_H_
#define TILEFARM_DATABASE_OUTCOMES_H_

#include <cstdint>
#include <string>

#include "database/record.h"

namespace tilefarm::database {

struct OutcomeRow {
  int64_t id = 0;  // of the record
  std::string workload_hash, target, device, job_id, fingerprint;
  Status status = Status::kOk;
  // Of the first measurement; 0: it was not timed.
  double median_seconds = 0, ci_low_seconds = 0, ci_high_seconds = 0;
  double compile_seconds = 0;
  // What lookups order it by, re-measurements included; 0: never the best.
  double rank_seconds = 0;
  bool confirmed = false;  // rank_seconds comes from re-measurements
  bool verified = false, stopped_early = false, unsteady = false;
  bool library = false;  // calls a library's kernel
  int64_t sketch = 0;    // equal for records that differ in decisions alone
  // Those of the trace (trace_text.h), where the filter asks for them.
  std::string decisions;
  int64_t sequence = 0;
  std::string model_score;
  std::string recorded_at;
};

// What is given must all hold.
struct OutcomeFilter {
  std::string job_id, workload_hash, target, device;
  std::string status;  // name
  std::string text;    // a part of the program's text
  std::string workload_prefix;
  int64_t after = 0;       // ids above it; in reverse: below it, 0 being all
  bool reverse = false;    // the latest first
  int64_t limit = 0;       // 0: all
  bool decisions = false;  // read them, too
};

// What a workload and a target have, in short.
struct TaskFigures {
  std::string workload_hash, target;
  int64_t records = 0;
  int64_t ok = 0;           // of status ok
  double best_seconds = 0;  // the least rank of a real device; 0: none
  std::string recorded_at;  // of the latest record
};

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_OUTCOMES_H_
