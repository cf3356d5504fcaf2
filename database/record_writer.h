// Inserts records and the rows that they share. Private to database/.
#ifndef TILEFARM_DATABASE_RECORD_WRITER_H_
#define TILEFARM_DATABASE_RECORD_WRITER_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "database/record.h"
#include "database/sqlite.h"

namespace tilefarm::database {

// The facts about a workload that follow from a program's text; computed once
// per text.
struct ProgramFacts {
  std::string digest;
  std::string workload_hash;  // empty where the text does not parse
  std::string canonical;
};

// Lives within one transaction. It remembers the rows that it has found, since
// the records of a transaction share most of them. Not thread-safe.
class RecordWriter {
 public:
  // `now` dates records without a date.
  RecordWriter(Connection& db, std::string now)
      : db_(db), now_(std::move(now)) {}

  // The candidate has no record yet; `facts` are those of record.program.
  absl::Status Insert(const Record& record, const ProgramFacts& facts);

 private:
  using Ids = std::unordered_map<std::string, int64_t>;

  absl::StatusOr<int64_t> WorkloadId(const std::string& hash,
                                     const std::string& canonical);
  absl::StatusOr<int64_t> ProgramId(int64_t workload_id,
                                    const std::string& digest,
                                    const std::string& text);
  absl::StatusOr<int64_t> SketchId(const std::string& text);
  absl::StatusOr<int64_t> DeviceId(const Record& record);
  absl::StatusOr<int64_t> SeriesId(const Record& record, int64_t workload_id,
                                   int64_t program_id, int64_t device_id,
                                   const std::string& sketch);

  Connection& db_;
  const std::string now_;
  Ids workloads_, programs_, sketches_, devices_, series_;
};

// A digest in the form that the file has: schema 4 packs it.
void BindDigest(Statement& query, bool packs, const std::string& id);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_RECORD_WRITER_H_
