// Tasks whose reductions differ in numbers alone (sizes of buffers, extents),
// such as the convolutions of a model's stages, whatever elementwise blocks
// follow them: a fast schedule of one is a good start for another.
#ifndef TILEFARM_SERVER_JOBS_SIMILAR_TASKS_H_
#define TILEFARM_SERVER_JOBS_SIMILAR_TASKS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "database/store.h"

namespace tilefarm::jobs {

// A program as it is compared: the nests of its canonical text
// (ir::Canonicalize) that reduce, without numbers, and these. A program without
// any is compared as a whole.
struct ProgramKind {
  std::string text;
  std::vector<double> numbers;
  std::string whole;  // the whole text without numbers
};
ProgramKind KindOf(const ir::PrimFunc& function);

// The workloads with records of one target that are like some of these kinds.
class SimilarTasks {
 public:
  // Reads the programs of the target's workloads once.
  static absl::StatusOr<SimilarTasks> Read(
      const database::Store& store, const std::string& target_key,
      const std::vector<const ProgramKind*>& kinds);
  // Hashes of up to `most` workloads of the kind other than `workload_hash`,
  // the most similar first: those that are equal as a whole, and by the sum of
  // the logarithms of the numbers' ratios.
  std::vector<std::string> Find(const ProgramKind& kind,
                                const std::string& workload_hash,
                                size_t most) const;

 private:
  struct Workload {
    std::string hash;
    ProgramKind kind;
  };
  std::map<std::string, std::vector<Workload>> by_kind_;
};

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_SIMILAR_TASKS_H_
