// Compares the best records of two databases.
#ifndef TILEFARM_DATABASE_DIFF_H_
#define TILEFARM_DATABASE_DIFF_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "database/store.h"

namespace tilefarm::database {

// The best record of a task in one database.
struct DiffSide {
  std::string candidate_id;
  double seconds = 0;  // median
  std::string device, device_model;
  std::string fingerprint;
  Protocol protocol;
};

enum class Difference {
  kOnlyA,
  kOnlyB,
  kSame,     // the same candidate with the same time
  kFasterA,  // by the ratio
  kFasterB,
  kEqual,  // other candidates, or another measurement, with the same time
  // The best ones have other device models or protocols: their times cannot be
  // compared.
  kIncomparable,
};
// "only_a", "same", "faster_b", ...
std::string DifferenceName(Difference difference);

struct DiffEntry {
  Task task;
  Difference difference = Difference::kSame;
  std::optional<DiffSide> a, b;
  // Of the slower to the faster one; 1 where there is no faster one.
  double ratio = 1;
};

// One entry for each task (workload and target) that has a best record in one
// of the two or in both, in order of workload and target. Records of all
// compilers count, and those that call libraries; emulated ones where there is
// no other.
absl::StatusOr<std::vector<DiffEntry>> Diff(const Store& a, const Store& b);

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_DIFF_H_
