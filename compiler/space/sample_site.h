// The random choices in a sketch: finding, drawing and mutating decisions.
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
  // Tiles: extent of the loop, number of factors, largest innermost factor.
  int64_t extent = 0;
  int factors = 0;
  int64_t max_innermost = 0;
  // The loop belongs to a block tiled in four spatial levels; its innermost
  // factor is part of the register tile. The last such loop has `vector_axis`,
  // and so has one that rfactor splits.
  bool register_tile = false;
  bool vector_axis = false;
  // Factors of the vector axis count vectors (of a tensor intrinsic, or with
  // kVectorTiles), not elements.
  bool whole_vectors = false;
  // The number of registers for the tile if it does not use the target's vector
  // registers: 8 for AMX.
  int registers = 0;
  int tile_group = -1;  // sites with the same group tile one block
  // Categorical: weights of the candidates. Location: legal decisions.
  std::vector<double> weights;
  std::vector<int64_t> locations;
  // The decision if the sketch's text gives it: it is never drawn.
  std::optional<ir::Attr> fixed;

  // About the number of different decisions; of tiles with tails, those of all
  // widths.
  int64_t Count() const;
};

// Finds the sites of a sketch by replaying it on the program. `sketch` still
// has the decisions it was made with.
absl::StatusOr<std::vector<SampleSite>> FindSites(const schedule::Trace& sketch,
                                                  const ir::IRModule& program);

// Draws one decision. Each tile fits the target's registers by itself;
// FitsRegisters checks all together.
ir::Attr DrawDecision(const SampleSite& site, const target::Target& target,
                      Rng& rng);
// A neighbour of `old`: a factor moved between two levels, another innermost
// factor, another category, or another location. nullopt if the site has only
// one decision.
std::optional<ir::Attr> MutateDecision(const SampleSite& site,
                                       const ir::Attr& old,
                                       const target::Target& target, Rng& rng);

// A neighbour that visits the tiles of one block in another order: for some of
// its spatial loops, two levels outside of the register tile are exchanged.
// Changing one loop at a time rarely gets there, since tilings in between have
// worse locality than both. nullopt if no block has such levels.
std::optional<std::vector<ir::Attr>> SwapLevels(
    const std::vector<SampleSite>& sites,
    const std::vector<ir::Attr>& decisions, Rng& rng);

// A neighbour with another register tile: the innermost factors of all spatial
// loops of one block are drawn again, and the rest is kept as far as possible.
// Changing one loop at a time rarely gets there, since a tile with one old and
// one new factor is often worse than both. nullopt if no block has a register
// tile, or if the same factors were drawn.
std::optional<std::vector<ir::Attr>> Retile(
    const std::vector<SampleSite>& sites,
    const std::vector<ir::Attr>& decisions, const target::Target& target,
    Rng& rng);

// What a trace has in common with those of programs that differ in numbers and
// in what is inlined: up to enter_postproc, without inlining, calls whose
// results are not used, names of blocks, numbers and decisions. Whether tiles
// of a loop must divide it depends on its extent, and does not count either
// (nearest_decision.cc).
std::string SketchKind(const schedule::Trace& trace);

// The decision nearest to one of a program that differs in extents: inner tiles
// keep their sizes as far as they divide, the outermost level takes the rest
// (nearest_decision.cc). nullopt: there is nothing like it, such as a location
// that is not legal here.
std::optional<ir::Attr> NearestDecision(const SampleSite& site,
                                        const ir::Attr& decision);

// Whether the register tiles of all sites fit: accumulators and one row of
// operands in vector registers; the multiplication may read the other operand
// from memory.
bool FitsRegisters(const std::vector<SampleSite>& sites,
                   const std::vector<ir::Attr>& decisions,
                   const target::Target& target);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_SAMPLE_SITE_H_
