// The places of a sketch where something is decided, and how.
#ifndef TILEFARM_COMPILER_SPACE_SAMPLE_SITE_H_
#define TILEFARM_COMPILER_SPACE_SAMPLE_SITE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/rng.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/trace.h"
#include "compiler/target/target.h"

namespace tilefarm::space {

enum class SiteKind { kPerfectTile, kTile, kCategorical, kComputeLocation };

struct SampleSite {
  SiteKind kind;
  // Tiles: extent of the loop, number of factors, largest innermost one.
  int64_t extent = 0;
  int factors = 0;
  int64_t max_innermost = 0;
  // The loop belongs to a block tiled in four spatial levels, and its innermost
  // factor is part of the register tile; `vector_axis` for the last of them.
  bool register_tile = false;
  bool vector_axis = false;
  // Factors of the vector axis count vectors (of a tensor intrinsic, or by
  // kVectorTiles), not elements.
  bool whole_vectors = false;
  // What the tile lives in where that is not the target's vector registers: 8
  // for AMX.
  int registers = 0;
  int tile_group = -1;  // sites with the same group tile one block
  // Categorical: weights of the candidates. Location: decisions allowed.
  std::vector<double> weights;
  std::vector<int64_t> locations;
  // Given in the sketch's text: never drawn.
  std::optional<ir::Attr> fixed;

  // Number of different decisions, saturating.
  int64_t Count() const;
};

// Reads the sites off a sketch by replaying it on the program. `sketch` still
// carries the decisions it was made with.
absl::StatusOr<std::vector<SampleSite>> FindSites(const schedule::Trace& sketch,
                                                  const ir::IRModule& program);

// Draws one decision. Tiles fit the register bounds of the target on their own
// axis; FitsRegisters judges them together.
ir::Attr DrawDecision(const SampleSite& site, const target::Target& target,
                      Rng& rng);
// A neighbour of `old`: a factor moved between two levels, another innermost
// factor, another category, another location. nullopt where the site has one
// decision only.
std::optional<ir::Attr> MutateDecision(const SampleSite& site,
                                       const ir::Attr& old,
                                       const target::Target& target, Rng& rng);

// A neighbour that goes through the tiles of one block in another order: for
// some of its spatial loops, two levels outside of the register tile change
// places. Loop by loop it is far away, since in between there are tilings that
// go through memory as neither of them. nullopt where no block has such levels.
std::optional<std::vector<ir::Attr>> SwapLevels(
    const std::vector<SampleSite>& sites,
    const std::vector<ir::Attr>& decisions, Rng& rng);

// A neighbour with another register tile: all spatial loops of one block have
// their innermost factors drawn, and the rest stays as far as it can. Loop by
// loop it is far away, since a tile that is good in one loop and not in the
// other is often worse than both. nullopt where no block is tiled in registers,
// or what was drawn is what it was.
std::optional<std::vector<ir::Attr>> Retile(
    const std::vector<SampleSite>& sites,
    const std::vector<ir::Attr>& decisions, const target::Target& target,
    Rng& rng);

// Whether the register tiles of all sites together fit: accumulators and one
// row of operands within the vector registers; the other operand may come from
// memory with the multiplication.
bool FitsRegisters(const std::vector<SampleSite>& sites,
                   const std::vector<ir::Attr>& decisions,
                   const target::Target& target);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_SAMPLE_SITE_H_
