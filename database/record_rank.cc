#include "database/record_rank.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "database/packed_columns.h"

namespace tilefarm::database {
namespace {

absl::StatusOr<std::map<int64_t, Remeasured>> ReadRemeasured(Connection& db,
                                                             const char* where,
                                                             int64_t key) {
  TF_ASSIGN_OR_RETURN(
      Statement query,
      db.Prepare(absl::StrCat(
          "SELECT m.id, m.record_id, m.status, m.median_seconds, m.job_id, "
          "m.seconds, m.verified AND NOT m.stopped_early "
          "AND m.emulated = r.emulated AND m.device = r.device "
          "AND m.cold_cache = r.cold_cache AND m.cores = r.cores "
          "AND m.layout = r.layout "
          "FROM measurements m JOIN records r ON r.id = m.record_id WHERE ",
          where, " ORDER BY m.id")));
  query.Bind(key);
  std::map<int64_t, Remeasured> result;
  while (true) {
    TF_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) return result;
    Remeasured& entry = result[query.Int(1)];
    const std::optional<Status> status = ParseStatus(query.Text(2));
    if (status && RulesOut(*status)) entry.failed = true;
    const double median = query.Double(3);
    if (status == Status::kOk && query.Bool(6) && median > 0) {
      entry.measurement_id = query.Int(0);
      TF_ASSIGN_OR_RETURN(std::vector<double> seconds,
                          SamplesFromText(query.Text(5)));
      if (seconds.empty()) seconds = {median};
      entry.rounds.Add(query.Text(4), seconds);
    }
  }
}

}  // namespace

absl::StatusOr<std::map<int64_t, Remeasured>> RemeasuredOfWorkload(
    Connection& db, int64_t workload_id) {
  return ReadRemeasured(db, "r.workload_id = ?", workload_id);
}

absl::StatusOr<Remeasured> RemeasuredOfRecord(Connection& db,
                                              int64_t record_id) {
  TF_ASSIGN_OR_RETURN(auto found,
                      ReadRemeasured(db, "m.record_id = ?", record_id));
  return found.empty() ? Remeasured{} : std::move(found.begin()->second);
}

std::optional<Standing> StandingOf(const FirstMeasurement& first,
                                   const Remeasured* remeasured) {
  Standing standing = {
      .seconds = first.median, .low = first.low, .high = first.high};
  if (remeasured != nullptr && remeasured->failed) return std::nullopt;
  if (remeasured != nullptr && remeasured->measurement_id != 0) {
    const MedianInterval interval = remeasured->rounds.interval();
    standing.seconds = interval.median;
    standing.low = interval.low;
    standing.high = interval.high;
    standing.confirmed = true;
  }
  // A later full measurement makes up for a first one that was stopped early.
  const bool full = !first.stopped_early || standing.confirmed;
  if (!first.verified || !full || !(standing.seconds > 0) ||
      std::isinf(standing.seconds)) {
    return std::nullopt;
  }
  return standing;
}

absl::Status UpdateRank(Connection& db, int64_t record_id) {
  FirstMeasurement first;
  {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT status = 'ok' AND verified, stopped_early, "
                   "median_seconds, ci_low_seconds, ci_high_seconds "
                   "FROM stored_records WHERE id = ?"));
    TF_ASSIGN_OR_RETURN(const bool found, query.Bind(record_id).Step());
    if (!found) return absl::DataLossError("a measured record is gone");
    first = {.verified = query.Bool(0),
             .stopped_early = query.Bool(1),
             .median = query.Double(2),
             .low = query.Double(3),
             .high = query.Double(4)};
  }
  TF_ASSIGN_OR_RETURN(const Remeasured remeasured,
                      RemeasuredOfRecord(db, record_id));
  const std::optional<Standing> standing = StandingOf(first, &remeasured);
  TF_ASSIGN_OR_RETURN(Statement update,
                      db.Prepare("UPDATE stored_records SET rank_seconds = ?, "
                                 "confirmed = ? WHERE id = ?"));
  if (standing) {
    update.Bind(ClaimOf(*standing)).Bind(standing->confirmed);
  } else {
    update.BindNull().Bind(false);
  }
  return update.Bind(record_id).Run();
}

}  // namespace tilefarm::database
