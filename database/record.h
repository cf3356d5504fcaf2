// A record: everything known about one measured candidate.
#ifndef TILEFARM_DATABASE_RECORD_H_
#define TILEFARM_DATABASE_RECORD_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tilefarm::database {

enum class Status {
  kOk,
  kInvalidSchedule,
  kCompileError,
  kCompileTimeout,
  kRunError,
  kRunTimeout,
  kWrongResult,
  kDeviceLost,
};
inline constexpr std::array<std::string_view, 8> kStatusNames = {
    "ok",        "invalid_schedule", "compile_error", "compile_timeout",
    "run_error", "run_timeout",      "wrong_result",  "device_lost",
};
std::string_view StatusName(Status status);
std::optional<Status> ParseStatus(std::string_view name);

// The kernels of libraries that a trace calls, in its order, each once and
// separated by commas: "openblas.sgemm". Empty: none.
std::string LibraryOf(std::string_view trace);

// How it was measured; records of different protocols are not compared.
struct Protocol {
  // True: no data of the program are in any cache when a sample begins. False:
  // the caches are as the previous run left them, except that arguments larger
  // than the last cache were flushed.
  bool cold_cache = false;
  int cores = 1;
  std::string layout = "as_stated";  // or "packed"
  bool operator==(const Protocol&) const = default;
};

struct Record {
  int64_t id = 0;             // assigned by the store; 0: not stored yet
  std::string candidate_id;   // hash of (task, scheduled program, fingerprint)
  std::string workload_hash;  // 64 hex digits
  std::string program;        // exact text the trace was made on
  std::string target;         // Target::Key()
  std::string trace;          // complete trace text
  std::string device;         // name + digest
  std::string device_model;   // brand, cpu, features, caches: canonical text
  Status status = Status::kOk;
  std::string error;            // of a failed one
  std::vector<double> seconds;  // of every sample
  double median_seconds = 0;
  double ci_low_seconds = 0, ci_high_seconds = 0;  // 95 % of the median
  bool stopped_early = false;
  bool emulated = false;
  bool verified = false;
  double max_abs_error = 0, max_rel_error = 0;
  double compile_seconds = 0;
  Protocol protocol;
  std::string isolation;     // level of the sandbox: "none", "rlimits", ...
  std::string device_state;  // JSON: clock, temperature, canary
  std::string fingerprint;   // driver::Fingerprint()
  std::string code_digest;
  std::string job_id;
  std::string model_score;  // predicted score, as text; empty: none
  int64_t sequence = 0;     // within the task
  std::string recorded_at;  // RFC 3339, UTC

  // Kernels of libraries that the trace calls; "": none. Follows from the
  // trace.
  std::string library() const { return LibraryOf(trace); }
  // The device's last canary was slow when it was measured: device_state says
  // so.
  bool unsteady() const;
  // Later measurements of the same candidate, oldest first: what was measured,
  // under their own dates; the fields that identify the candidate are empty.
  std::vector<Record> remeasured;
};

// One self-contained JSON object on one line, keys `workload, program, target,
// trace, device, status, seconds, ...` as documented in docs/formats.md.
std::string RecordToJson(const Record& record);
// InvalidArgument: a key is missing or of the wrong type. Unknown keys are
// ignored.
absl::StatusOr<Record> RecordFromJson(std::string_view json);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_RECORD_H_
