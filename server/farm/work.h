// What goes to a device and what comes back, free of any wire format.
#ifndef TILEFARM_SERVER_FARM_WORK_H_
#define TILEFARM_SERVER_FARM_WORK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "compiler/target/target.h"
#include "database/record.h"

namespace tilefarm::farm {

// Limits and protocol of one measurement.
struct MeasureOptions {
  absl::Duration build_timeout = absl::Seconds(30);
  absl::Duration run_timeout = absl::Seconds(20);
  int64_t build_memory_bytes = int64_t{4} << 30;
  int64_t run_memory_bytes = int64_t{8} << 30;
  bool flush_cache = false;
  int min_samples = 3;
  int max_samples = 20;
  absl::Duration target_time = absl::Milliseconds(40);
  uint64_t input_seed = 0;
};

// Why something is measured, and so where its result is kept.
enum class Purpose {
  kTrial,     // a candidate of a job: a record
  kBaseline,  // the program as written: kept beside the records
  kMeasure,   // asked for by hand: a record, or a row of an old one
  kFinalist,  // one of a job's best once more: a row of its record
  // What was measured while the device was not well, once more: a row.
  kRemeasure,
  kCanary,  // a known kernel: tells about the device, and is not kept
};

// One thing to build, verify and time.
struct WorkItem {
  // Unique in the farm; identifies it to the worker.
  std::string candidate_id;
  // The candidate id of the record, where it is another one (kMeasure,
  // kFinalist).
  std::string recorded_as;
  // Queues take turns.
  std::string queue;
  std::string job;  // that asked for it; empty: no job did
  std::string task_id;
  Purpose purpose = Purpose::kTrial;
  std::string program;
  std::string trace;
  std::string scheduled_hash;
  std::string workload_hash;
  target::Target target;
  std::string device;  // name of the only device allowed; empty: any that fits
  // A device that says it took less is not believed; 0: not known.
  double least_seconds = 0;
  MeasureOptions options;
  // For the record alone.
  std::string model_score;
  int64_t sequence = 0;
};

// What the device found.
struct Measurement {
  database::Status status = database::Status::kOk;
  std::string error;
  std::vector<double> seconds;
  double median_seconds = 0;
  double ci_low_seconds = 0, ci_high_seconds = 0;
  bool stopped_early = false;
  bool verified = false;
  double max_abs_error = 0, max_rel_error = 0;
  double compile_seconds = 0;
  std::string isolation;
  std::string device_state;
  std::string code_digest;
  bool cold_cache = false;
  int cores = 1;
  std::string layout = "as_stated";  // or "packed"
  bool emulated = false;
  std::string fingerprint;
};

// An accepted result on its way to the database.
struct Completion {
  WorkItem item;
  Measurement measurement;
  std::string device_id;
  std::string device_model;
  // The device was unsteady when it measured.
  bool unsteady = false;
  // Of a canary: whether it passed, that is whether what came before holds.
  bool trusted = true;
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_WORK_H_
