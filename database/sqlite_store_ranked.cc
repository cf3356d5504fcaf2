// The lookup of the best record by the ranks that are stored with the records:
// it reads the series of the workload, and of the series that fit best only the
// records that can win.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "database/best_match.h"
#include "database/record_rank.h"
#include "database/sqlite_store.h"
#include "database/target_fit.h"

namespace tilefarm::database {
namespace {

using target::Match;
using target::Target;

// A series that may be used, with the rank of its first record.
struct Series {
  int64_t id = 0;
  double rank = 0;
  Contender contender;  // what all its records share
};

// Those of the workloads with a record that may be the best. nullopt: records
// that call libraries are left out, which the answer must report.
absl::StatusOr<std::optional<std::vector<Series>>> ReadSeries(
    Connection& db, const std::vector<int64_t>& workloads,
    const BestQuery& wanted, TargetCache& targets) {
  std::vector<Series> all;
  for (const int64_t workload : workloads) {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT f.id, (SELECT min(r.rank_seconds) FROM "
                   "stored_records r WHERE r.series_id = f.id), f.target, "
                   "d.device, d.model, f.fingerprint, f.cold_cache, f.cores, "
                   "f.layout, f.emulated, f.library, f.tensorized "
                   "FROM series f JOIN devices d ON d.id = f.device_id "
                   "WHERE f.workload_id = ?"));
    query.Bind(workload);
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) break;
      if (query.IsNull(1)) continue;
      Series series;
      series.id = query.Int(0);
      series.rank = query.Double(1);
      Contender& c = series.contender;
      const Target* recorded = targets.Find(query.Text(2));
      c.match = TargetFit(recorded, wanted.target, query.Bool(11));
      if (c.match == Match::kNone) continue;
      c.fingerprint = query.Text(5);
      c.fresh = c.fingerprint == wanted.fingerprint;
      if (!c.fresh && !wanted.allow_stale) continue;
      if (query.Bool(10) && !wanted.allow_library) return std::nullopt;
      c.emulated = query.Bool(9);
      if (c.emulated && !wanted.allow_emulated) continue;
      c.device = query.Text(3);
      c.device_model = query.Text(4);
      c.same_model =
          !wanted.device_model.empty() && c.device_model == wanted.device_model;
      c.equal_cores = recorded->cores == wanted.target.cores;
      c.cores = recorded->cores;
      c.kind = recorded->kind;
      c.cpu = recorded->cpu;
      c.protocol = {.cold_cache = query.Bool(6),
                    .cores = static_cast<int>(query.Int(7)),
                    .layout = query.Text(8)};
      all.push_back(std::move(series));
    }
  }
  return all;
}

// Fills in how many records each of the series stands for.
absl::Status CountRecords(Connection& db, std::vector<Series>& all,
                          const std::vector<size_t>& kept) {
  for (const size_t i : kept) {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT count(*), max(id) FROM stored_records "
                   "WHERE series_id = ? AND rank_seconds IS NOT NULL"));
    TF_ASSIGN_OR_RETURN(const bool row, query.Bind(all[i].id).Step());
    if (!row) return absl::DataLossError("a series is gone");
    all[i].contender.records = query.Int(0);
    all[i].contender.record_id = query.Int(1);
  }
  return absl::OkStatus();
}

struct Finalist {
  int64_t record_id = 0;
  double rank = 0;
  bool confirmed = false;
  size_t series = 0;
};

// The records of the kept series that PickWinner can choose: the leader, and
// those that may be tied with it.
absl::StatusOr<std::vector<Finalist>> ReadFinalists(
    Connection& db, const std::vector<Series>& all,
    const std::vector<size_t>& kept) {
  double least = all[kept[0]].rank;
  for (const size_t i : kept) least = std::min(least, all[i].rank);
  std::vector<Finalist> finalists;
  for (const size_t i : kept) {
    TF_ASSIGN_OR_RETURN(
        Statement query,
        db.Prepare("SELECT id, rank_seconds, confirmed FROM stored_records "
                   "WHERE series_id = ? AND rank_seconds <= ?"));
    query.Bind(all[i].id).Bind(least * kTied);
    while (true) {
      TF_ASSIGN_OR_RETURN(const bool row, query.Step());
      if (!row) break;
      finalists.push_back({.record_id = query.Int(0),
                           .rank = query.Double(1),
                           .confirmed = query.Bool(2),
                           .series = i});
    }
  }
  // The older record on a tie.
  std::sort(finalists.begin(), finalists.end(),
            [](const Finalist& a, const Finalist& b) {
              return a.record_id < b.record_id;
            });
  return finalists;
}

absl::StatusOr<size_t> PickFinalist(Connection& db,
                                    const std::vector<Finalist>& finalists) {
  std::vector<Standing> standings;
  for (const Finalist& finalist : finalists) {
    Standing standing = {.seconds = finalist.rank,
                         .confirmed = finalist.confirmed};
    if (finalist.confirmed && finalists.size() > 1) {
      TF_ASSIGN_OR_RETURN(const Remeasured remeasured,
                          RemeasuredOfRecord(db, finalist.record_id));
      const MedianInterval interval = remeasured.rounds.interval();
      standing.low = interval.low;
      standing.high = interval.high;
      TF_ASSIGN_OR_RETURN(
          Statement query,
          db.Prepare("SELECT s.text FROM stored_records r "
                     "JOIN sketches s ON s.id = r.sketch_id WHERE r.id = ?"));
      TF_ASSIGN_OR_RETURN(const bool row,
                          query.Bind(finalist.record_id).Step());
      if (!row) return absl::DataLossError("a record's sketch is gone");
      standing.instructions = CountInstructions(query.Text(0));
    }
    standings.push_back(standing);
  }
  return PickWinner(standings);
}

}  // namespace

absl::StatusOr<std::optional<BestMatch>> SqliteStore::FindByRank(
    Connection& db, const std::vector<int64_t>& workloads,
    const BestQuery& query) const {
  if (query.keeps_floats != nullptr) return std::nullopt;
  targets_.Trim();
  TF_ASSIGN_OR_RETURN(auto usable, ReadSeries(db, workloads, query, targets_));
  // Why there is none is for FindAmongAll to explain.
  if (!usable || usable->empty()) return std::nullopt;
  std::vector<Contender> contenders;
  for (const Series& series : *usable) contenders.push_back(series.contender);
  std::vector<size_t> kept = KeepFitting(contenders);
  std::set<std::string> models;
  for (const size_t i : kept) models.insert(contenders[i].device_model);
  if (models.size() > 1) {
    TF_RETURN_IF_ERROR(CountRecords(db, *usable, kept));
    for (const size_t i : kept) contenders[i] = (*usable)[i].contender;
    kept = KeepOneModel(contenders, std::move(kept));
  }
  TF_ASSIGN_OR_RETURN(const std::vector<Finalist> finalists,
                      ReadFinalists(db, *usable, kept));
  if (finalists.empty()) return absl::DataLossError("an index lacks records");
  TF_ASSIGN_OR_RETURN(const size_t winner, PickFinalist(db, finalists));
  const Finalist& chosen = finalists[winner];
  BestMatch best;
  TF_ASSIGN_OR_RETURN(best.record,
                      ReadBest(db, chosen.record_id, chosen.confirmed));
  const Record& record = best.record;
  if (chosen.rank != ClaimOf({.seconds = record.median_seconds,
                              .high = record.ci_high_seconds,
                              .confirmed = chosen.confirmed})) {
    return absl::DataLossError(absl::StrCat(
        "record ", record.id, " is damaged: its rank does not fit its time"));
  }
  best.fit = FitOf(contenders[chosen.series]);
  best.reason = ReasonFor(contenders[chosen.series]);
  return best;
}

}  // namespace tilefarm::database
