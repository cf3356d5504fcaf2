// The numeric decisions of the postprocs, used both for programs (rewrite_*.cc)
// and for candidates without programs (cost_model/skeleton/nest.h), which apply
// the answers in different ways.
#ifndef TILEFARM_COMPILER_SPACE_LOOP_RULES_H_
#define TILEFARM_COMPILER_SPACE_LOOP_RULES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::space {

// The maximum number of statements in a fully unrolled register tile: more do
// not fit the registers of any target and only increase code size.
inline constexpr int64_t kMaxTileStatements = 128;
// A unit-stride loop up to this extent is vectorised as a whole.
inline constexpr int64_t kMaxVectorExtent = 64;

// A loop around a block. Lists of loops are outermost first.
struct LoopView {
  int64_t extent = 1;
  ir::ForKind kind = ir::ForKind::kSerial;
  bool reduces = false;               // feeds a variable that is not spatial
  bool sums = false;                  // feeds a reduce variable
  absl::InlinedVector<int, 2> iters;  // the variables that it feeds

  bool Moves(int iter) const;
};

// The loop to vectorise: the innermost one that feeds `iter`, the variable that
// walks the block's output with unit stride, in panels of `panel_width` (0: no
// panels).
struct VectorLoop {
  size_t loop = 0;
  int64_t length = 0;  // split to this length; 0: not split
};
std::optional<VectorLoop> ChooseVectorLoop(std::span<const LoopView> loops,
                                           int iter, int64_t panel_width,
                                           int64_t vector_lanes);

// How many outer loops have `jobs` iterations together and may run in parallel;
// all such loops if they have fewer.
size_t CountParallelLoops(std::span<const LoopView> loops, int64_t jobs);

// The index of the first loop of the register tile, which is inside the
// innermost reduce loop; nullopt if the tile has too many statements.
std::optional<size_t> FindRegisterTile(std::span<const LoopView> loops,
                                       int64_t vector_lanes);
// The same for a block whose innermost loops, not in `loops`, become an
// instruction: takes as many loops as may be unrolled.
size_t FindInstructionTile(std::span<const LoopView> loops);

// The loop to put the initialisation in front of: the outermost reduce loop of
// more than one iteration. Loops of one iteration are skipped, so that the init
// stays next to the inner reduction and becomes the accumulators' first value.
// An instruction, which replaces the `own` innermost loops, cannot initialise,
// so there the innermost reduce loop of one iteration is used if there is no
// other. nullopt: the init stays in the block.
std::optional<size_t> FindFirstReduceLoop(std::span<const LoopView> loops,
                                          size_t own);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_LOOP_RULES_H_
