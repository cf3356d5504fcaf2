// Storing records and measurements.
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "database/packed_columns.h"
#include "database/record_rank.h"
#include "database/record_writer.h"
#include "database/sqlite_store.h"

namespace tilefarm::database {
namespace {

// Programs whose facts are kept; a farm has a few dozen tasks at a time.
constexpr size_t kMaxFacts = 1024;

constexpr char kMeasuredPlaces[] =
    "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?";

void BindMeasured(Statement& insert, const Record& r, const std::string& now) {
  insert.Bind(r.device)
      .Bind(StatusName(r.status))
      .Bind(r.median_seconds)
      .Bind(r.ci_low_seconds)
      .Bind(r.ci_high_seconds)
      .Bind(SamplesToText(r.seconds))
      .Bind(r.verified)
      .Bind(r.max_abs_error)
      .Bind(r.max_rel_error)
      .Bind(r.stopped_early)
      .Bind(r.emulated)
      .Bind(r.protocol.cold_cache)
      .Bind(r.protocol.cores)
      .Bind(r.protocol.layout)
      .Bind(r.error)
      .Bind(r.compile_seconds)
      .Bind(r.isolation)
      .Bind(r.device_state)
      .Bind(r.fingerprint)
      .Bind(r.code_digest)
      .Bind(r.job_id)
      .Bind(r.recorded_at.empty() ? now : r.recorded_at);
}

absl::Status InsertMeasurement(Connection& db, int64_t record_id,
                               const Record& measured, const std::string& now) {
  TF_ASSIGN_OR_RETURN(
      Statement insert,
      db.Prepare(absl::StrCat("INSERT INTO measurements(record_id, ",
                              kMeasurementColumns, ") VALUES (?, ",
                              kMeasuredPlaces, ")")));
  insert.Bind(record_id);
  BindMeasured(insert, measured, now);
  return insert.Run();
}

// Stores those of an imported record that are not there yet.
absl::Status MergeMeasurements(Connection& db, int64_t record_id,
                               const std::vector<Record>& measurements,
                               const std::string& now) {
  for (const Record& measured : measurements) {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT 1 FROM measurements WHERE record_id = ? "
                   "AND device = ? AND status = ? AND recorded_at = ? "
                   "AND seconds = ?"));
    TF_ASSIGN_OR_RETURN(const bool known,
                        query.Bind(record_id)
                            .Bind(measured.device)
                            .Bind(StatusName(measured.status))
                            .Bind(measured.recorded_at)
                            .Bind(SamplesToText(measured.seconds))
                            .Step());
    if (known) continue;
    TF_RETURN_IF_ERROR(InsertMeasurement(db, record_id, measured, now));
  }
  return UpdateRank(db, record_id);
}

}  // namespace

absl::StatusOr<int64_t> RecordIdOf(Connection& db, bool packs,
                                   const std::string& candidate_id) {
  TF_ASSIGN_OR_RETURN(
      Statement query,
      db.Prepare(packs ? "SELECT id FROM stored_records WHERE candidate = ?"
                       : "SELECT id FROM records WHERE candidate_id = ?"));
  BindDigest(query, packs, candidate_id);
  TF_ASSIGN_OR_RETURN(const bool found, query.Step());
  return found ? query.Int(0) : 0;
}

std::shared_ptr<const ProgramFacts> SqliteStore::FactsOf(
    const std::string& program) {
  std::string digest = Sha256Hex(program);
  {
    MutexLock lock(facts_mutex_);
    if (const auto it = facts_.find(digest); it != facts_.end()) {
      return it->second;
    }
  }
  auto facts = std::make_shared<ProgramFacts>();
  facts->digest = std::move(digest);
  // A text that does not parse is stored, too, because the measurement was
  // made. It is never returned as an answer.
  const absl::StatusOr<ir::PrimFuncPtr> function = ir::ParseFunction(program);
  if (function.ok()) {
    facts->canonical = ir::Print(*ir::Canonicalize(**function));
    facts->workload_hash = ir::WorkloadHash(**function);
  }
  MutexLock lock(facts_mutex_);
  if (facts_.size() >= kMaxFacts) facts_.clear();
  facts_.emplace(facts->digest, facts);
  return facts;
}

absl::StatusOr<std::vector<bool>> SqliteStore::AddRecords(
    std::span<const Record> records) {
  std::vector<std::shared_ptr<const ProgramFacts>> facts;
  facts.reserve(records.size());
  const std::string* program = nullptr;
  for (const Record& record : records) {
    if (record.candidate_id.empty() || record.workload_hash.empty()) {
      return absl::InvalidArgumentError(
          "a record needs a candidate id and a workload hash");
    }
    // A job's records have one program.
    facts.push_back(program != nullptr && *program == record.program
                        ? facts.back()
                        : FactsOf(record.program));
    program = &record.program;
  }
  std::vector<bool> added(records.size(), false);
  TF_RETURN_IF_ERROR(Write([&](Connection& db) -> absl::Status {
    RecordWriter writer(db, NowText());
    for (size_t i = 0; i < records.size(); ++i) {
      TF_ASSIGN_OR_RETURN(const int64_t known,
                          RecordIdOf(db, packs(), records[i].candidate_id));
      if (known == 0) {
        TF_RETURN_IF_ERROR(writer.Insert(records[i], *facts[i]));
        added[i] = true;
      }
      if (records[i].remeasured.empty()) continue;
      TF_RETURN_IF_ERROR(
          MergeMeasurements(db, known != 0 ? known : db.last_insert_id(),
                            records[i].remeasured, NowText()));
    }
    return absl::OkStatus();
  }));
  return added;
}

absl::Status SqliteStore::AddMeasurement(int64_t record_id,
                                         const Record& measured) {
  return Write([&](Connection& db) -> absl::Status {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT 1 FROM stored_records WHERE id = ?"));
    TF_ASSIGN_OR_RETURN(const bool found, query.Bind(record_id).Step());
    if (!found) {
      return absl::NotFoundError(absl::StrCat("no record ", record_id));
    }
    TF_RETURN_IF_ERROR(InsertMeasurement(db, record_id, measured, NowText()));
    return UpdateRank(db, record_id);
  });
}

}  // namespace tilefarm::database
