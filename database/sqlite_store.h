// The store on SQLite. Private to database/: callers use store.h.
//
//   writes -> writer_ (one connection, one mutex) -> WAL
//   reads  -> reader_ (a second, read-only connection), beside the writes
#ifndef TILEFARM_DATABASE_SQLITE_STORE_H_
#define TILEFARM_DATABASE_SQLITE_STORE_H_

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
#include "base/mutex.h"
#include "database/record_writer.h"
#include "database/sqlite_open.h"
#include "database/store.h"
#include "database/target_fit.h"

namespace tilefarm::database {

// Queries of complete records, up to WHERE, of schema 4 and 3.
extern const char kSelectRecord[];
extern const char kSelectRecord3[];

class SqliteStore final : public Store,
                          public DeviceTables,
                          public RegressionTables {
 public:
  static absl::StatusOr<std::unique_ptr<Store>> Create(OpenFiles files,
                                                       Clock& clock);
  ~SqliteStore() override;

  std::string uuid() const override { return uuid_; }
  int schema_version() const override { return schema_version_; }

  absl::StatusOr<std::vector<bool>> AddRecords(
      std::span<const Record> records) override;
  absl::Status AddMeasurement(int64_t record_id,
                              const Record& measured) override;
  absl::StatusOr<std::vector<Record>> FindMeasurements(
      int64_t record_id) const override;
  absl::Status ForEachRecord(
      const std::function<bool(const Record&)>& visit) const override;
  absl::StatusOr<std::vector<Record>> NextRecords(
      const std::string& workload_hash, int64_t after) const override;
  absl::StatusOr<std::vector<Task>> ListTasks() const override;
  absl::Status ForEachWorkload(
      const std::string& target_key,
      const std::function<bool(const std::string& hash,
                               const std::string& canonical)>& visit)
      const override;
  absl::StatusOr<std::vector<Record>> FindRecords(
      const std::string& workload_hash,
      const std::string& target_key) const override;
  absl::StatusOr<std::vector<OutcomeRow>> ListOutcomes(
      const OutcomeFilter& filter) const override;
  absl::StatusOr<std::vector<TaskFigures>> ListTaskFigures() const override;
  absl::StatusOr<std::string> GetSketch(int64_t id) const override;
  absl::StatusOr<Record> GetRecord(int64_t id) const override;
  absl::StatusOr<bool> HasCandidate(
      const std::string& candidate_id) const override;
  absl::StatusOr<int64_t> RecordOf(
      const std::string& candidate_id) const override;
  absl::StatusOr<BestMatch> FindBest(const BestQuery& query) const override;
  absl::StatusOr<Explanation> ExplainBest(
      const BestQuery& query) const override;
  absl::StatusOr<int64_t> BytesOfUser(const std::string& user) const override;
  absl::StatusOr<Stats> GetStats() const override;

  absl::StatusOr<std::string> AddJob(const JobRow& job) override;
  absl::Status UpdateJob(const std::string& id, const std::string& state,
                         const std::string& error) override;
  absl::StatusOr<std::vector<JobRow>> ListJobs() const override;
  absl::StatusOr<std::map<std::string, JobTimes>> ListJobTimes() const override;
  absl::StatusOr<JobRow> GetJob(const std::string& id) const override;
  absl::Status AppendJobLog(const std::string& job_id,
                            std::span<const std::string> lines) override;
  absl::StatusOr<std::vector<std::string>> ReadJobLog(
      const std::string& job_id) const override;

  absl::Status PutBlob(const std::string& key, std::string_view bytes) override;
  absl::StatusOr<std::string> GetBlob(const std::string& key) const override;

  DeviceTables& device_tables() override { return *this; }
  absl::Status PutDevices(std::span<const DeviceRow> rows,
                          std::span<const AuditEntry> audit) override;
  absl::Status ForgetDevice(const std::string& name,
                            std::span<const AuditEntry> audit) override;
  absl::StatusOr<std::vector<DeviceRow>> ListDevices() const override;
  absl::Status PutCanaries(std::span<const CanaryRow> rows) override;
  absl::StatusOr<std::vector<CanaryRow>> ListCanaries() const override;
  absl::StatusOr<std::vector<AuditEntry>> ReadAudit(
      const std::string& subject, int64_t limit) const override;
  absl::StatusOr<std::vector<AuditEntry>> ReadTokenAudit(
      const std::string& name, int64_t limit) const override;
  absl::StatusOr<int64_t> LastRecordId() const override;
  absl::StatusOr<std::vector<Record>> RecordsOfDevice(
      const std::string& device, int64_t after, int64_t through) const override;

  RegressionTables& regression_tables() override { return *this; }
  absl::StatusOr<ArtifactRow> FindArtifact(
      const std::string& sha256) const override;
  absl::Status PutArtifact(const ArtifactRow& row, std::string_view bytes,
                           const ArtifactRetention& retention) override;
  absl::Status TouchArtifact(const std::string& sha256) override;
  absl::StatusOr<std::string> ReadArtifactPart(const std::string& sha256,
                                               int64_t part) const override;
  absl::Status NoteCompared(const std::string& baseline,
                            const std::string& candidate) override;
  absl::StatusOr<ArtifactTotals> CountArtifacts() const override;
  absl::StatusOr<int64_t> AppendHistory(
      const std::string& request_id, std::span<const HistoryRow> rows) override;
  absl::Status ReadHistory(
      const HistoryFilter& filter,
      const std::function<bool(const HistoryRow&)>& take) const override;
  absl::Status Acknowledge(const AcknowledgementRow& row) override;
  absl::StatusOr<std::vector<AcknowledgementRow>> ListAcknowledgements(
      const HistoryFilter& filter) const override;

  absl::Status AddToken(const TokenRow& token,
                        const std::string& actor) override;
  absl::StatusOr<std::vector<TokenRow>> ListTokens() const override;
  absl::StatusOr<int> RevokeName(const std::string& name, const std::string& at,
                                 const std::string& actor) override;
  absl::StatusOr<std::map<std::string, std::string>> ListRevokedNames()
      const override;

 private:
  static absl::Status InsertAudit(Connection& db,
                                  std::span<const AuditEntry> entries);
  // Entries about tokens, or all other entries.
  absl::StatusOr<std::vector<AuditEntry>> ReadAuditOf(
      bool tokens, const std::string& subject, int64_t limit) const;

  // A connection and the lock that its users hold.
  struct Channel {
    Mutex mutex;
    std::unique_ptr<Connection> connection;
  };
  explicit SqliteStore(Clock& clock) : clock_(clock) {}

  // FailedPrecondition for a reader.
  absl::Status Write(const std::function<absl::Status(Connection&)>& body);
  absl::Status Read(const std::function<absl::Status(Connection&)>& body) const;
  std::string NowText() const;
  // FailedPrecondition: a reader on a file of an older schema.
  absl::Status HasRegressionTables() const;

  // Whether the file has the tables of schema 4.
  bool packs() const { return schema_version_ >= 4; }
  const char* select_record() const {
    return packs() ? kSelectRecord : kSelectRecord3;
  }
  // The answer where no property of a sketch decides, from the ranks of the
  // series alone; nullopt: FindAmongAll must answer. Schema 4.
  absl::StatusOr<std::optional<BestMatch>> FindByRank(
      Connection& db, const std::vector<int64_t>& workloads,
      const BestQuery& query) const;
  // By reading every record of the workloads; `hash` is for the message.
  // `explanation` may be null; it is set also where the answer is NotFound.
  absl::StatusOr<BestMatch> FindAmongAll(Connection& db,
                                         const std::string& hash,
                                         const std::vector<int64_t>& workloads,
                                         const BestQuery& query,
                                         Explanation* explanation) const;
  // Checks the query and runs `body` on its workloads, in one state of the
  // file.
  absl::Status WithWorkloads(
      const BestQuery& query,
      const std::function<absl::Status(Connection&, const std::string& hash,
                                       const std::vector<int64_t>&)>& body)
      const;
  // A record with the samples of its re-measurements.
  absl::StatusOr<Record> ReadBest(Connection& db, int64_t record_id,
                                  bool confirmed) const;

  std::shared_ptr<const ProgramFacts> FactsOf(const std::string& program);

  Clock& clock_;
  FileLock lock_;  // declared first, so that it is released last
  mutable Channel writer_;
  mutable Channel own_reader_;
  Channel* reader_ = nullptr;  // own_reader_, or writer_ in memory
  std::string uuid_;
  int schema_version_ = 0;

  // Of lookups by rank: used only while the reader's lock is held.
  mutable TargetCache targets_;

  Mutex facts_mutex_;
  std::map<std::string, std::shared_ptr<const ProgramFacts>> facts_
      ABSL_GUARDED_BY(facts_mutex_);
};

// The measured columns of `measurements`, in the order in which they are read.
extern const char kMeasurementColumns[];

// The id of the candidate's record, in a file that packs digests or not; 0:
// none.
absl::StatusOr<int64_t> RecordIdOf(Connection& db, bool packs,
                                   const std::string& candidate_id);

// A record from a row of SqliteStore::select_record.
absl::StatusOr<Record> ReadRecord(const Statement& row);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_SQLITE_STORE_H_
