// The samples of a sketch for GPUs that depend on each other: the tiles of one
// block together decide how many threads, registers and bytes of shared memory
// a kernel needs. They are drawn together, so that nearly every candidate fits.
#ifndef TILEFARM_COMPILER_SPACE_GPU_THREAD_SITES_H_
#define TILEFARM_COMPILER_SPACE_GPU_THREAD_SITES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/rng.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/trace.h"
#include "compiler/space/gpu/thread_tiles.h"
#include "compiler/space/sample_site.h"
#include "compiler/target/target.h"

namespace tilefarm::space {

// Immutable, thread-safe.
class ThreadSites {
 public:
  // `sketch` still has the decisions it was made with.
  static absl::StatusOr<ThreadSites> Find(const schedule::Trace& sketch,
                                          const ir::IRModule& program,
                                          const target::Target& target);

  // All decisions of the sketch, whose `sites` are given. FailedPrecondition
  // that names the exceeded limit if no tiles fit.
  absl::StatusOr<std::vector<ir::Attr>> Draw(
      const std::vector<SampleSite>& sites, const target::Target& target,
      Rng& rng) const;
  // Replaces the tiles of one block. False if there are none.
  bool Redraw(std::vector<ir::Attr>& decisions, Rng& rng) const;
  bool Fits(const std::vector<ir::Attr>& decisions) const;

 private:
  struct Group {
    ThreadTiles tiles;
    std::vector<size_t> sites;  // of the tiles, in the order of the loops
    std::vector<size_t> axes;   // the variable of each
    size_t all_axes = 0;        // the variables of the block
    // The sample of the copies of shared buffers, and its values.
    size_t stages_site = 0;
    std::vector<int64_t> stages;

    int Stages(const std::vector<ir::Attr>& decisions) const;
    TileFactors Factors(const std::vector<ir::Attr>& decisions) const;
    bool Draw(std::vector<ir::Attr>& decisions, Rng& rng) const;
  };

  std::vector<Group> groups_;
};

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_GPU_THREAD_SITES_H_
