// What the database stores for regression tracking: artifacts of commits, the
// histories of benchmarks, and acknowledgements of expected changes.
#ifndef TILEFARM_DATABASE_REGRESSION_TABLES_H_
#define TILEFARM_DATABASE_REGRESSION_TABLES_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tilefarm::database {

// A stored shared object. Times are RFC 3339 in UTC, or "" for never.
struct ArtifactRow {
  std::string sha256;  // in hexadecimal; unique
  int64_t bytes = 0;
  std::string target;                // key
  std::vector<std::string> symbols;  // that were checked to be exported
  std::string stored_by;
  std::string stored_at;
  std::string used_at;      // last stored again or compared
  std::string baseline_at;  // last used as the baseline of a comparison

  bool operator==(const ArtifactRow&) const = default;
};

// Which artifacts are kept. Those of the newest point of a history and those
// that were a baseline are kept longer, since they cannot be built again once
// the compiler has changed.
struct ArtifactRetention {
  int64_t most_bytes = int64_t{2} << 30;  // of all artifacts
  absl::Duration unused = absl::Hours(24 * 30);
  absl::Duration baseline_unused = absl::Hours(24 * 180);
};

// One commit's measurement of one benchmark on one device class and branch.
struct HistoryRow {
  int64_t id = 0;  // ascending; given by the store
  std::string series, benchmark, device_class, branch, commit;
  std::string at;  // RFC 3339 in UTC
  std::string device;
  double seconds = 0, low_seconds = 0, high_seconds = 0;
  // Against the baseline of its run; clusters 0: there was none.
  double ratio = 1, ratio_low = 0, ratio_high = 0, ratio_level = 0;
  int clusters = 0;
  std::string verdict, baseline_commit;
  double canary_seconds = 0;
  bool unsteady = false;
  std::string artifact, symbol;  // artifact: SHA-256; empty: of a command
  double spread = 0;
  std::string target;
  std::string program, trace;  // texts
  std::string fingerprint, user, workload;

  bool operator==(const HistoryRow&) const = default;
};

// Empty fields hold for everything.
struct HistoryFilter {
  std::string series, benchmark, device_class, branch, commit;
  // Of each (series, benchmark, device class, branch) the latest so many; 0:
  // all.
  int64_t latest = 0;
  bool texts = false;  // also program and trace
};

struct AcknowledgementRow {
  std::string series, benchmark;
  std::string device_class;  // empty: every class
  std::string branch, commit, reason, user, at;

  bool operator==(const AcknowledgementRow&) const = default;
};

// Thread-safe. Part of a Store, and fails as its methods do.
// FailedPrecondition: a reader on a file of a schema without these tables.
class RegressionTables {
 public:
  virtual ~RegressionTables() = default;

  // --- Artifacts ---
  // NotFound: it is not stored.
  virtual absl::StatusOr<ArtifactRow> FindArtifact(
      const std::string& sha256) const = 0;
  // Stores the bytes, after deleting what `retention` does not keep. A stored
  // artifact gets the new target and symbols beside its own. ResourceExhausted:
  // there is no room, even without what may be deleted.
  virtual absl::Status PutArtifact(const ArtifactRow& row,
                                   std::string_view bytes,
                                   const ArtifactRetention& retention) = 0;
  // It is used today. NotFound: it is not stored.
  virtual absl::Status TouchArtifact(const std::string& sha256) = 0;
  // The part that begins at `part` * kArtifactPartBytes, of that many bytes but
  // for the last one. NotFound: it is not stored (any more), or has no such
  // part.
  virtual absl::StatusOr<std::string> ReadArtifactPart(
      const std::string& sha256, int64_t part) const = 0;
  // Both are compared now. NotFound: one is not stored.
  virtual absl::Status NoteCompared(const std::string& baseline,
                                    const std::string& candidate) = 0;
  struct ArtifactTotals {
    int64_t count = 0, bytes = 0;
  };
  virtual absl::StatusOr<ArtifactTotals> CountArtifacts() const = 0;

  // --- Histories, which are only added to ---
  // All or none. Rows of a request that was stored before are left out; returns
  // how many were added.
  virtual absl::StatusOr<int64_t> AppendHistory(
      const std::string& request_id, std::span<const HistoryRow> rows) = 0;
  // In order of id, until `take` returns false. It may call the store.
  virtual absl::Status ReadHistory(
      const HistoryFilter& filter,
      const std::function<bool(const HistoryRow&)>& take) const = 0;
  // NotFound: no point has its series, benchmark, branch and commit (and device
  // class).
  virtual absl::Status Acknowledge(const AcknowledgementRow& row) = 0;
  // Those that hold for what the filter names, in their order. `latest` is
  // ignored, and so is `commit`.
  virtual absl::StatusOr<std::vector<AcknowledgementRow>> ListAcknowledgements(
      const HistoryFilter& filter) const = 0;
};

inline constexpr size_t kArtifactPartBytes = 1 << 20;

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_REGRESSION_TABLES_H_
