// The tuning database. SQLite (WAL, synchronous=FULL); exactly one process
// writes, guarded by flock on FILE.lock; readers open read-only beside it.
#ifndef TILEFARM_DATABASE_STORE_H_
#define TILEFARM_DATABASE_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "compiler/ir/float_rule.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"
#include "database/device_tables.h"
#include "database/explanation.h"
#include "database/fit.h"
#include "database/outcomes.h"
#include "database/record.h"
#include "database/regression_tables.h"

namespace tilefarm::database {

// A tuning job as stored; the server owns the meaning of `spec_json`.
struct JobRow {
  std::string id;
  std::string request_id;  // the user and the client's own id; unique
  std::string state;       // queued, running, done, failed, cancelled
  std::string user;
  std::string program;  // text as submitted
  std::string target;
  int64_t trials = 0;
  std::string spec_json;
  std::string error;
  std::string created_at, ended_at;
};

// A bearer token: its name and role, and the SHA-256 of the secret. Times are
// text ("2026-01-31T12:00:00Z"); "" means never.
struct TokenRow {
  std::string name;
  std::string role;    // worker, user, admin
  std::string sha256;  // in hexadecimal; unique
  std::string created_at, expires_at, revoked_at;
};

struct Stats {
  int64_t records = 0;
  int64_t workloads = 0;
  std::map<std::string, int64_t> by_status;
};

// The answer to "which schedule": the record and why it was chosen.
struct BestMatch {
  Record record;
  // "exact device model", "same microarchitecture (znver4)", ...
  std::string reason;
  Fit fit;  // the same, for comparisons
  // The file that it is from, if several were asked (layers.h).
  std::string database;
};

// A workload and a target key that have records.
struct Task {
  std::string workload_hash;
  std::string target;
};

struct BestQuery {
  // Either the program, or its workload hash, which is faster. With the hash
  // alone, two stored programs of that hash are a miss.
  ir::PrimFuncPtr program;
  std::string workload_hash;
  target::Target target;
  std::string device_model;  // empty: unknown
  std::string fingerprint;
  bool allow_stale = false;
  // Also records that call a library's kernel (Record::library).
  bool allow_library = false;
  // Also records timed on an emulated device, where no other fits.
  bool allow_emulated = false;
  // What records may do to floats. Where it does not permit everything,
  // `keeps_floats` is driver::ObeysRule of it: only records of whose program
  // and trace, as text, that is true.
  ir::FloatRule floats = ir::FloatRule::kMayDiffer;
  std::function<bool(const std::string& program, const std::string& trace)>
      keeps_floats;
  // Compares all records instead of using their stored ranks. The answer is the
  // same; tests hold the two to it.
  bool examine_all = false;
};

// All methods are thread-safe. Unavailable: the file is busy or the disk is
// full; DataLoss: it is corrupt; FailedPrecondition: its schema is newer.
class Store {
 public:
  enum class Mode { kReadOnly, kReadWrite };
  // ":memory:" for tests. kReadWrite creates and migrates, and is Unavailable
  // where another process has the file open for writing; kReadOnly on a
  // missing file is NotFound and never migrates. `clock` dates rows that are
  // stored without a date, and outlives the store.
  static absl::StatusOr<std::unique_ptr<Store>> Open(
      const std::string& path, Mode mode, Clock& clock = Clock::Real());
  virtual ~Store() = default;

  // Random, made with the file. Workers keep results in a spool for each UUID.
  virtual std::string uuid() const = 0;
  virtual int schema_version() const = 0;

  // --- Records ---
  // Stores all or none in one transaction, durably on return. A candidate_id
  // that already has a record is left as it is and reported false. New ones
  // among `remeasured` are added in both cases.
  virtual absl::StatusOr<std::vector<bool>> AddRecords(
      std::span<const Record> records) = 0;
  // Re-measurement of a stored record: a row in `measurements`. Full and
  // verified ones under the record's protocol and device replace the record's
  // time in FindBest, those of one job together (race.h); one that failed
  // keeps the record from being best.
  // NotFound: no such record.
  virtual absl::Status AddMeasurement(int64_t record_id,
                                      const Record& measured) = 0;
  // The re-measurements of a record, oldest first. They have their own `id` and
  // the measured values; the fields that identify the candidate are empty.
  virtual absl::StatusOr<std::vector<Record>> FindMeasurements(
      int64_t record_id) const = 0;
  // In order of id, with their re-measurements; the callback returns false to
  // stop, and may call the store. Records added meanwhile are visited too.
  virtual absl::Status ForEachRecord(
      const std::function<bool(const Record&)>& visit) const = 0;
  // The next records after the id `after`, in order of id, with their
  // re-measurements: of one workload, or, where it is empty, of all. Empty at
  // the end.
  virtual absl::StatusOr<std::vector<Record>> NextRecords(
      const std::string& workload_hash, int64_t after) const = 0;
  // Every task with records, in order of workload and target.
  virtual absl::StatusOr<std::vector<Task>> ListTasks() const = 0;
  // The workloads with records of the target key, with the canonical text of
  // their programs (ir::Canonicalize), in order of hash; the callback returns
  // false to stop, and must not call the store. FailedPrecondition: the file
  // has the schema before the current one.
  virtual absl::Status ForEachWorkload(
      const std::string& target_key,
      const std::function<bool(const std::string& hash,
                               const std::string& canonical)>& visit) const = 0;
  // Every record of the workload and target key, in order of id.
  virtual absl::StatusOr<std::vector<Record>> FindRecords(
      const std::string& workload_hash,
      const std::string& target_key) const = 0;
  // The numbers of the records that pass, in order of id, or the latest first.
  // FailedPrecondition: the file has the schema before the current one.
  virtual absl::StatusOr<std::vector<OutcomeRow>> ListOutcomes(
      const OutcomeFilter& filter) const = 0;
  // In order of workload and target. FailedPrecondition as above.
  virtual absl::StatusOr<std::vector<TaskFigures>> ListTaskFigures() const = 0;
  // The fixed text of a sketch, with ? for each decision. NotFound.
  virtual absl::StatusOr<std::string> GetSketch(int64_t id) const = 0;
  // With its re-measurements. NotFound: no record has the id.
  virtual absl::StatusOr<Record> GetRecord(int64_t id) const = 0;
  virtual absl::StatusOr<bool> HasCandidate(
      const std::string& candidate_id) const = 0;
  // The id of the candidate's record; NotFound: it has none.
  virtual absl::StatusOr<int64_t> RecordOf(
      const std::string& candidate_id) const = 0;
  // DESIGN 3.3's fallback order; NotFound: no record may be used.
  virtual absl::StatusOr<BestMatch> FindBest(const BestQuery& query) const = 0;
  // What FindBest answers, and what became of every record of the workload. It
  // reads all of them. That none may be used is no error here.
  virtual absl::StatusOr<Explanation> ExplainBest(
      const BestQuery& query) const = 0;
  virtual absl::StatusOr<Stats> GetStats() const = 0;
  // The part of the file that records of a user's jobs take, in bytes: their
  // share of all records. Reads an index, so its cost grows with the file.
  virtual absl::StatusOr<int64_t> BytesOfUser(
      const std::string& user) const = 0;

  // --- Jobs ---
  // A second job with the same request_id returns the first one's id (an empty
  // request_id is never the same). AlreadyExists: the id is taken.
  virtual absl::StatusOr<std::string> AddJob(const JobRow& job) = 0;
  // Sets `ended_at` on the first ended state. NotFound: no such job.
  virtual absl::Status UpdateJob(const std::string& id,
                                 const std::string& state,
                                 const std::string& error) = 0;
  // In order of submission.
  virtual absl::StatusOr<std::vector<JobRow>> ListJobs() const = 0;
  struct JobTimes {
    std::string created_at, ended_at;
  };
  // By id, of the same jobs.
  virtual absl::StatusOr<std::map<std::string, JobTimes>> ListJobTimes()
      const = 0;
  virtual absl::StatusOr<JobRow> GetJob(const std::string& id) const = 0;
  // The ordered log of proposals and results that makes a search replayable.
  virtual absl::Status AppendJobLog(const std::string& job_id,
                                    std::span<const std::string> lines) = 0;
  virtual absl::StatusOr<std::vector<std::string>> ReadJobLog(
      const std::string& job_id) const = 0;

  // --- Cost models and other blobs, by key; NotFound where there is none ---
  virtual absl::Status PutBlob(const std::string& key,
                               std::string_view bytes) = 0;
  virtual absl::StatusOr<std::string> GetBlob(const std::string& key) const = 0;

  // --- Devices and the audit log; lives as long as the store ---
  virtual DeviceTables& device_tables() = 0;
  // --- Regression tracking; lives as long as the store ---
  virtual RegressionTables& regression_tables() = 0;

  // --- Credentials (database/sqlite_store_tokens.cc) ---
  // Both store an entry with `actor` in the audit log in the same transaction.
  // AlreadyExists: the same secret.
  virtual absl::Status AddToken(const TokenRow& token,
                                const std::string& actor) = 0;
  // In order of creation, revoked and expired ones included.
  virtual absl::StatusOr<std::vector<TokenRow>> ListTokens() const = 0;
  // Revokes the tokens of that name that are not revoked yet, and remembers
  // that certificates issued to it up to `at` are void; the number of tokens.
  virtual absl::StatusOr<int> RevokeName(const std::string& name,
                                         const std::string& at,
                                         const std::string& actor) = 0;
  // For each name, the last time that RevokeName got for it.
  virtual absl::StatusOr<std::map<std::string, std::string>> ListRevokedNames()
      const = 0;
};

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_STORE_H_
