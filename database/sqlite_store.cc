// Opening, jobs and blobs.
#include "database/sqlite_store.h"

#include <sys/random.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/status_macros.h"

namespace tilefarm::database {
namespace {

// A random (version 4) UUID.
absl::StatusOr<std::string> NewUuid() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof(bytes), 0) !=
      static_cast<ssize_t>(sizeof(bytes))) {
    return absl::UnavailableError("no random bytes from the system");
  }
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  std::string uuid;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) uuid += '-';
    absl::StrAppend(&uuid, absl::Hex(bytes[i], absl::kZeroPad2));
  }
  return uuid;
}

bool IsEnded(const std::string& state) {
  return state == "done" || state == "failed" || state == "cancelled";
}

constexpr char kSelectJob[] =
    "SELECT id, request_id, state, user, program, target, trials, spec_json, "
    "error, created_at, ended_at FROM jobs ";

JobRow ReadJob(const Statement& row) {
  JobRow job;
  job.id = row.Text(0);
  job.request_id = row.Text(1);
  job.state = row.Text(2);
  job.user = row.Text(3);
  job.program = row.Text(4);
  job.target = row.Text(5);
  job.trials = row.Int(6);
  job.spec_json = row.Text(7);
  job.error = row.Text(8);
  job.created_at = row.Text(9);
  job.ended_at = row.Text(10);
  return job;
}

absl::StatusOr<int64_t> JobNumber(Connection& db, const std::string& id) {
  TF_ASSIGN_OR_RETURN(Statement query,
                      db.Prepare("SELECT n FROM jobs WHERE id = ?"));
  TF_ASSIGN_OR_RETURN(const bool found, query.Bind(id).Step());
  if (!found) return absl::NotFoundError(absl::StrCat("no job ", id));
  return query.Int(0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& path,
                                                   Mode mode, Clock& clock) {
  TF_ASSIGN_OR_RETURN(OpenFiles files, mode == Mode::kReadWrite
                                           ? OpenForWriting(path)
                                           : OpenForReading(path));
  return SqliteStore::Create(std::move(files), clock);
}

absl::StatusOr<std::unique_ptr<Store>> SqliteStore::Create(OpenFiles files,
                                                           Clock& clock) {
  std::unique_ptr<SqliteStore> store(new SqliteStore(clock));
  store->lock_ = std::move(files.lock);
  store->writer_.connection = std::move(files.writer);
  store->own_reader_.connection = std::move(files.reader);
  store->reader_ = store->own_reader_.connection != nullptr
                       ? &store->own_reader_
                       : &store->writer_;
  if (store->writer_.connection != nullptr) {
    TF_ASSIGN_OR_RETURN(const std::string uuid, NewUuid());
    TF_RETURN_IF_ERROR(store->Write([&](Connection& db) -> absl::Status {
      TF_ASSIGN_OR_RETURN(
          Statement insert,
          db.Prepare("INSERT OR IGNORE INTO meta VALUES ('uuid', ?)"));
      TF_RETURN_IF_ERROR(insert.Bind(uuid).Run());
      TF_ASSIGN_OR_RETURN(
          Statement created,
          db.Prepare("INSERT OR IGNORE INTO meta VALUES ('created_at', ?)"));
      return created.Bind(store->NowText()).Run();
    }));
  }
  TF_RETURN_IF_ERROR(store->Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT value FROM meta WHERE key = 'uuid'"));
    TF_ASSIGN_OR_RETURN(const bool found, query.Step());
    if (!found) return absl::DataLossError("the database has no UUID");
    store->uuid_ = query.Text(0);
    TF_ASSIGN_OR_RETURN(const int64_t version,
                        db.QueryInt("PRAGMA user_version"));
    store->schema_version_ = static_cast<int>(version);
    return absl::OkStatus();
  }));
  return std::unique_ptr<Store>(std::move(store));
}

SqliteStore::~SqliteStore() {
  // The writer last: as the last connection it checkpoints and removes the
  // log.
  own_reader_.connection.reset();
  writer_.connection.reset();
}

absl::Status SqliteStore::Write(
    const std::function<absl::Status(Connection&)>& body) {
  if (writer_.connection == nullptr) {
    return absl::FailedPreconditionError("the database is open read-only");
  }
  MutexLock lock(writer_.mutex);
  Connection& db = *writer_.connection;
  return db.Transaction([&] { return body(db); });
}

absl::Status SqliteStore::Read(
    const std::function<absl::Status(Connection&)>& body) const {
  MutexLock lock(reader_->mutex);
  return body(*reader_->connection);
}

std::string SqliteStore::NowText() const {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", clock_.Now(),
                          absl::UTCTimeZone());
}

// --- Jobs ------------------------------------------------------------------

absl::StatusOr<std::string> SqliteStore::AddJob(const JobRow& job) {
  if (job.id.empty()) {
    return absl::InvalidArgumentError("the job has no id");
  }
  std::string id = job.id;
  TF_RETURN_IF_ERROR(Write([&](Connection& db) -> absl::Status {
    if (!job.request_id.empty()) {
      TF_ASSIGN_OR_RETURN(
          Statement query,
          db.Prepare("SELECT id FROM jobs WHERE request_id = ?"));
      TF_ASSIGN_OR_RETURN(const bool known, query.Bind(job.request_id).Step());
      if (known) {
        id = query.Text(0);
        return absl::OkStatus();
      }
    }
    const absl::StatusOr<int64_t> taken = JobNumber(db, job.id);
    if (taken.ok()) {
      return absl::AlreadyExistsError(absl::StrCat("job ", job.id, " exists"));
    }
    if (!absl::IsNotFound(taken.status())) return taken.status();
    TF_ASSIGN_OR_RETURN(
        Statement insert,
        db.Prepare("INSERT INTO jobs(id, request_id, state, user, program, "
                   "target, trials, spec_json, error, created_at, ended_at) "
                   "VALUES (?, nullif(?, ''), ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    return insert.Bind(job.id)
        .Bind(job.request_id)
        .Bind(job.state)
        .Bind(job.user)
        .Bind(job.program)
        .Bind(job.target)
        .Bind(job.trials)
        .Bind(job.spec_json)
        .Bind(job.error)
        .Bind(job.created_at.empty() ? NowText() : job.created_at)
        .Bind(job.ended_at)
        .Run();
  }));
  return id;
}

absl::Status SqliteStore::UpdateJob(const std::string& id,
                                    const std::string& state,
                                    const std::string& error) {
  return Write([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement update,
        db.Prepare("UPDATE jobs SET state = ?, error = ?, ended_at = CASE "
                   "WHEN ended_at = '' THEN ? ELSE ended_at END WHERE id = ?"));
    TF_RETURN_IF_ERROR(update.Bind(state)
                           .Bind(error)
                           .Bind(IsEnded(state) ? NowText() : std::string())
                           .Bind(id)
                           .Run());
    if (db.changes() == 0) {
      return absl::NotFoundError(absl::StrCat("no job ", id));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<JobRow>> SqliteStore::ListJobs() const {
  std::vector<JobRow> jobs;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(Statement query,
                        db.Prepare(absl::StrCat(kSelectJob, "ORDER BY n")));
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) return absl::OkStatus();
      jobs.push_back(ReadJob(query));
    }
  }));
  return jobs;
}

absl::StatusOr<std::map<std::string, Store::JobTimes>>
SqliteStore::ListJobTimes() const {
  std::map<std::string, JobTimes> times;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT id, created_at, ended_at FROM jobs"));
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) return absl::OkStatus();
      times[query.Text(0)] = {query.Text(1), query.Text(2)};
    }
  }));
  return times;
}

absl::StatusOr<JobRow> SqliteStore::GetJob(const std::string& id) const {
  JobRow job;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(Statement query,
                        db.Prepare(absl::StrCat(kSelectJob, "WHERE id = ?")));
    TF_ASSIGN_OR_RETURN(const bool found, query.Bind(id).Step());
    if (!found) return absl::NotFoundError(absl::StrCat("no job ", id));
    job = ReadJob(query);
    return absl::OkStatus();
  }));
  return job;
}

absl::Status SqliteStore::AppendJobLog(const std::string& job_id,
                                       std::span<const std::string> lines) {
  return Write([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(const int64_t job, JobNumber(db, job_id));
    for (const std::string& line : lines) {
      TF_ASSIGN_OR_RETURN(
          Statement insert,
          db.Prepare("INSERT INTO job_log(job, line) VALUES (?, ?)"));
      TF_RETURN_IF_ERROR(insert.Bind(job).Bind(line).Run());
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<std::string>> SqliteStore::ReadJobLog(
    const std::string& job_id) const {
  std::vector<std::string> lines;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(const int64_t job, JobNumber(db, job_id));
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT line FROM job_log WHERE job = ? ORDER BY n"));
    query.Bind(job);
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) return absl::OkStatus();
      lines.push_back(query.Text(0));
    }
  }));
  return lines;
}

// --- Blobs -----------------------------------------------------------------

absl::Status SqliteStore::PutBlob(const std::string& key,
                                  std::string_view bytes) {
  return Write([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement put,
        db.Prepare("INSERT OR REPLACE INTO blobs VALUES (?, ?, ?)"));
    return put.Bind(key).BindBlob(bytes).Bind(NowText()).Run();
  });
}

absl::StatusOr<std::string> SqliteStore::GetBlob(const std::string& key) const {
  std::string bytes;
  TF_RETURN_IF_ERROR(Read([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(Statement query,
                        db.Prepare("SELECT bytes FROM blobs WHERE key = ?"));
    TF_ASSIGN_OR_RETURN(const bool found, query.Bind(key).Step());
    if (!found) return absl::NotFoundError(absl::StrCat("no blob ", key));
    bytes = query.Text(0);
    return absl::OkStatus();
  }));
  return bytes;
}

}  // namespace tilefarm::database
