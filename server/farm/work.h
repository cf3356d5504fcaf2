// Work for a device and its result, independent of the wire format.
#ifndef TILEFARM_SERVER_FARM_WORK_H_
#define TILEFARM_SERVER_FARM_WORK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

// Why something is measured, which decides where its result is kept.
enum class Purpose {
  kTrial,     // a candidate of a job: becomes a record
  kBaseline,  // the program as written: kept apart from the records
  kMeasure,   // requested by hand: a record, or a row of an existing one
  kFinalist,  // one of a job's best candidates again: a row of its record
  // A record that was measured while its device was not well: a row of it.
  kRemeasure,
  kCanary,  // the canary kernel: tests the device, and is not kept
  // One cluster of a comparison of two artifacts (Comparison). Whoever asked
  // for it gets it, and it is not kept.
  kCompare,
};

// A stored shared object with the function that is called.
struct ComparedArtifact {
  std::string sha256;
  int64_t bytes = 0;
  std::string symbol;
  double spread = 0;  // added to the bounds of verification
};

// What a model artifact takes and gives.
struct ModelSignature {
  struct Tensor {
    std::string dtype;  // "float32"
    int64_t elements = 0;
  };
  std::vector<Tensor> inputs, outputs;
};

// One cluster: one process loads both artifacts and times them alternately
// (server/regression/paired_ratio.h).
struct Comparison {
  ComparedArtifact baseline, candidate;
  bool candidate_first = false;
  // Its size; see regression::ClusterPlanOptions.
  absl::Duration sample = absl::Microseconds(500);
  absl::Duration cluster = absl::Milliseconds(40);
  int fewest_rounds = 4;
  int most_rounds = 64;
  // Both are model artifacts, which are compared with each other; there is no
  // program then.
  std::optional<ModelSignature> model;
};

// "trial", "baseline", "measure", "finalist", "remeasure", "canary",
// "compare".
std::string_view PurposeName(Purpose purpose);

// One thing to build, verify and time.
struct WorkItem {
  // Unique in the farm; identifies it to the worker.
  std::string candidate_id;
  // The candidate id of the record, if it differs (kMeasure, kFinalist).
  std::string recorded_as;
  // The queue that it waits in (scheduler.h).
  std::string queue;
  std::string job;  // the job that requested it; empty: none
  std::string task_id;
  // Candidates whose best time it is compared with (Farm::NoteTime). Not the
  // task: a job's candidates race only with what the job may use.
  std::string race;
  Purpose purpose = Purpose::kTrial;
  std::string program;
  std::string trace;
  std::string scheduled_hash;
  std::string workload_hash;
  target::Target target;
  std::string device;  // name of the only device allowed; empty: any that fits
  // A device that reports less time is not believed; 0: not known.
  double least_seconds = 0;
  MeasureOptions options;
  // Of kCompare; `trace` and `scheduled_hash` are empty then.
  std::optional<Comparison> comparison;
  // Only for the record.
  std::string model_score;
  int64_t sequence = 0;
};

// The samples of a comparison by pair, seconds of one call.
struct ComparedPairs {
  std::vector<double> baseline_seconds, candidate_seconds;  // equally many
  std::string failed_side;  // "baseline", "candidate"; empty: unknown, or none
  double canary_seconds = 0;
  double device_seconds = 0;
};

// The result of a measurement.
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
  // Of a comparison; the samples above are the candidate's then.
  std::optional<ComparedPairs> compared;
};

// When a candidate passed its stages, by the server's monotonic clock; negative
// infinity: it did not. Those of the worker are as the server learned of them.
struct Stages {
  static constexpr absl::Duration kNever = -absl::InfiniteDuration();
  absl::Duration queued = kNever;    // added to the farm
  absl::Duration leased = kNever;    // the lease that brought the result
  absl::Duration building = kNever;  // the worker began to build it
  absl::Duration built = kNever;
  absl::Duration running = kNever;   // it had the device's cores
  absl::Duration reported = kNever;  // its result was accepted
};

// An accepted result on its way to the database.
struct Completion {
  WorkItem item;
  Measurement measurement;
  Stages stages;
  std::string device_id;
  std::string device_model;
  // The device was unsteady when it measured.
  bool unsteady = false;
  // Of a canary: whether it passed, so that earlier records are trusted.
  bool trusted = true;
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_WORK_H_
