// A job: what was asked for, and a snapshot of its progress.
#ifndef TILEFARM_SERVER_JOBS_JOB_H_
#define TILEFARM_SERVER_JOBS_JOB_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/float_rule.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"
#include "database/store.h"

namespace tilefarm::jobs {

enum class JobState { kQueued, kRunning, kDone, kFailed, kCancelled };
// "queued", "running", ...
std::string_view JobStateName(JobState state);
std::optional<JobState> ParseJobState(std::string_view name);
inline bool Ended(JobState state) { return state >= JobState::kDone; }

// One of the targets that a job tunes for.
struct JobTarget {
  std::string key;  // canonical
  // Caches of the device to tune for, if the client knows them. Otherwise the
  // run takes those of the first device that matches, and logs them.
  std::optional<target::CacheSizes> caches;
};

// One distinct function of the job's program on one of its targets.
struct TaskSpec {
  std::string function;  // its name in the program as submitted
  std::string target;    // key
  std::string workload_hash;
  // A module with this function alone, named "main". Traces apply to this text.
  std::string program;
  double flops = 0;  // of one run
  // Runs of it in one run of the whole program: the sum of the weights of the
  // program's functions that are equal to it.
  double weight = 1;
  // Of its last parameter, which is its output: "1x64x56x56 float32". Empty in
  // jobs that an earlier release stored.
  std::string shape;
};

// A job as it was submitted. The store keeps it for restarts.
struct JobSpec {
  std::string request_id;  // made by the client, unique for its user
  std::string user;
  std::string program;       // text
  std::string program_name;  // for people
  // At least one. Each is tuned for separately, with an even share of the
  // trials.
  std::vector<JobTarget> targets;
  int64_t trials = 0;  // in all; 0: no limit
  double seconds = 0;  // 0: no limit
  // Trials of a target without gain; 0: off. TaskScheduler says what a gain is.
  int64_t patience = 0;
  uint64_t seed = 0;
  std::string model = "xgboost";        // or "random"
  std::string search = "evolutionary";  // or "random"
  std::string space_trace;              // a sketch by hand; empty: by rules
  bool flush_cache = false;
  // Whether kernels of the device's libraries are candidates.
  bool allow_library = false;
  // Whether floats come out as the program writes them (ir::FloatRule).
  bool strict_fp = false;
  // Whether Winograd's algorithm is not among the candidates.
  bool no_winograd = false;
  // Among the user's own jobs; see farm/shares.h.
  int64_t priority = 0;
  // What a device must meet; see farm/requirement.h.
  std::vector<std::string> requirements;
  // Weights by the functions' names; 1 for those that it does not have.
  // ResolveJob moves them to the tasks.
  std::map<std::string, double> weights;
  std::vector<TaskSpec> tasks;  // filled by ResolveJob
};

inline constexpr int kMostTargets = 16;
inline constexpr double kMostWeight = 1e9;

// Checks what a client sent, and fills in target keys and tasks. The texts of
// tasks are those of TaskProgram unless there is a sketch by hand.
// InvalidArgument names the field; a bad program's error has line and column.
absl::Status ResolveJob(const database::Store& store, JobSpec& spec);

// InvalidArgument: the program contains annotations of call_library. Only a
// trace may call a library, so that its record says so.
absl::Status CheckNoLibraryMarks(const ir::PrimFunc& function);

// The function of a task, and its text.
absl::StatusOr<ir::PrimFuncPtr> ParseTask(const TaskSpec& task);
// Whether the job may use the record's schedule at all, whatever its time.
bool MayUse(const database::Record& record, const JobSpec& spec);
// The rule for the job's schedules.
ir::FloatRule FloatsOf(const JobSpec& spec);
// The tasks of a program, without targets.
TaskSpec MakeTask(const ir::PrimFunc& function);
std::string TaskId(const TaskSpec& task);
// The farm's queue of the job's work for one of its targets, by index.
std::string QueueName(const std::string& job_id, const JobSpec& spec,
                      size_t target);
// The program text of the workload's first record on the target, so that equal
// schedules have equal hashes. Without a record: the task's own text.
std::string TaskProgram(const database::Store& store, const TaskSpec& task,
                        const std::string& target_key);

// To and from the store's row. DataLoss: the stored text is damaged.
database::JobRow JobToRow(const std::string& id, const JobSpec& spec);
absl::StatusOr<JobSpec> JobFromRow(const database::JobRow& row);

// Whether the record may be returned as best: verified, measured in full, and
// by this compiler.
bool CountsAsBest(const database::Record& record,
                  const std::string& fingerprint);
// The same for a job: a library's kernel only where it permits it, and no
// schedule that changes floats where it is strict.
bool CountsAsBest(const database::Record& record,
                  const std::string& fingerprint, const JobSpec& spec);
// As MayCountAsBest, but the record need not be measured in full.
bool MayCountAsBest(const database::Record& record,
                    const std::string& fingerprint);
bool MayCountAsBest(const database::Record& record,
                    const std::string& fingerprint, const JobSpec& spec);

struct TaskSnapshot {
  std::string function;
  std::string target;
  std::string workload_hash;
  int64_t trials_done = 0;
  double best_seconds = 0;         // 0: none yet
  double unscheduled_seconds = 0;  // 0: not measured yet
  double flops = 0;
  double weight = 1;
  double default_seconds = 0;  // with the default schedule; 0: not known
  std::string state;           // TaskStateName, or "ended"
  std::string shape;           // as in TaskSpec
  // Of the best: driver::AlgorithmsOf, and whether it keeps floats as written.
  std::vector<std::string> algorithms;
  bool keeps_floats = true;
};

// What is given must all hold.
struct JobFilter {
  std::vector<JobState> states = {};  // any of these; none: all
  std::string user = {};
  std::string program = {};  // a part of its name
  std::string target = {};   // a part of a target's key
  std::string id_prefix = {};
  int64_t limit = 0;  // the latest so many; 0: all
};

struct JobSnapshot {
  std::string id;
  JobState state = JobState::kQueued;
  std::string user;
  std::string program_name;
  std::vector<std::string> targets;
  int64_t trials = 0;
  int64_t trials_done = 0;
  std::map<std::string, int64_t> by_status;
  double trials_per_second = 0;
  double seconds_left = -1;  // negative: unknown
  std::vector<TaskSnapshot> tasks;
  std::string message;  // why it waits, metrics of the latest retraining
  std::string error;

  // Sums over the tasks; 0 unless every task has one.
  double best_seconds() const;
  double unscheduled_seconds() const;
  double best_gflops() const;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_JOB_H_
