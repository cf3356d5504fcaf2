// Deletes records that lookups do not need.
#ifndef TILEFARM_DATABASE_PRUNE_H_
#define TILEFARM_DATABASE_PRUNE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace tilefarm::database {

struct PruneOptions {
  // Of the records that are `ok`, keeps as many of each group: workload,
  // target, device model, compiler, protocol. 0: all.
  int64_t keep = 0;
  // Drops records that failed, or that a later measurement ruled out, and were
  // recorded before this time (RFC 3339 in UTC, or its first part: a date).
  // Empty: none.
  std::string failed_before;
  // Counts, and changes nothing; for a file that a server may be writing.
  bool dry_run = true;
  // Gives the space back to the file system. Needs as much free space as the
  // remaining records.
  bool compact = false;
};

struct PruneFacts {
  int64_t records = 0;     // before
  int64_t dropped_ok = 0;  // not among the best
  int64_t dropped_failed = 0;
  int64_t bytes_before = 0, bytes_after = 0;  // of the file
};

// Deletes the records, their re-measurements, and the programs, sketches and
// devices that only they used, in one transaction: all or nothing.
//
// The best record is never dropped: of each group, `keep` records with the
// shortest times, and the fastest record and the fastest confirmed one of each
// sketch, so that lookups with permissions (--strict-fp, --allow-library) find
// the same record as before. Only where several device models fit equally well
// and none is the wanted one, a lookup prefers the model with most records, so
// that its answer may change.
//
// InvalidArgument: neither `keep` nor `failed_before`. Unavailable: a server
// has the file open (unless dry_run). NotFound: no such file.
absl::StatusOr<PruneFacts> Prune(const std::string& path,
                                 const PruneOptions& options);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_PRUNE_H_
