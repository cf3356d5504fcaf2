// Records of former compilers that deserve to be measured again: those that
// are faster than everything that the present compiler has made for their task.
#ifndef TILEFARM_DATABASE_STALE_BEST_H_
#define TILEFARM_DATABASE_STALE_BEST_H_

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "database/record.h"

namespace tilefarm::database {

// Takes all records of a database, in any order. Keeps in memory what it may
// return. A task is a workload, a target and a device model.
class StaleBest {
 public:
  // `fingerprint`: of the present compiler. At most `most` of each task.
  StaleBest(std::string fingerprint, size_t most)
      : fingerprint_(std::move(fingerprint)), most_(most) {}

  // Passed over: records that failed or were not verified, that were stopped
  // early, timed by an emulator or with cold caches, or call a library.
  void Add(Record record);
  // By task, the fastest first. A trace that stands in several records of a
  // task is returned once.
  std::vector<Record> Take() &&;

 private:
  struct Task {
    double fresh_seconds = 0;   // the present compiler's best; 0: none
    std::vector<Record> stale;  // the fastest first, at most `most_`
  };
  // Of what was measured first and since.
  static double SecondsOf(const Record& record);

  const std::string fingerprint_;
  const size_t most_;
  std::map<std::tuple<std::string, std::string, std::string>, Task> tasks_;
};

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_STALE_BEST_H_
