// Observes a server from outside: its process, its database, and the best
// possible rate of its disk.
#ifndef TILEFARM_TESTS_PERF_FARM_LOAD_OBSERVE_H_
#define TILEFARM_TESTS_PERF_FARM_LOAD_OBSERVE_H_

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"

namespace tilefarm::load {

struct ProcessView {
  double cpu_seconds = 0;  // user and system, of all its threads
  double resident_kib = 0;
  int threads = 0;
  int sockets = 0;
};
ProcessView Look(pid_t pid);

struct DatabaseView {
  std::set<std::string> candidates;
  int64_t records = 0;
  bool intact = false;  // PRAGMA integrity_check
};
double FileBytes(const std::string& path);
// Reads a database that no process has open.
absl::StatusOr<DatabaseView> LookAtDatabase(const std::string& path);

// Rows per second that plain SQLite commits durably (WAL, synchronous=FULL), in
// groups of this many rows of this many bytes, in a file in `folder`.
absl::StatusOr<double> DurableRowsPerSecond(const std::string& folder,
                                            int group, int bytes,
                                            double seconds);

}  // namespace tilefarm::load

#endif  // TILEFARM_TESTS_PERF_FARM_LOAD_OBSERVE_H_
