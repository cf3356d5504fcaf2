// What the postprocs decide by numbers. Programs (rewrite_*.cc) and candidates
// that are numbers alone (cost_model/skeleton/nest.h) are asked the same
// questions, and what is done about the answers differs.
#ifndef TILEFARM_COMPILER_SPACE_LOOP_RULES_H_
#define TILEFARM_COMPILER_SPACE_LOOP_RULES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::space {

// Statements in a fully unrolled register tile: more do not fit the registers
// of any target and only make code.
inline constexpr int64_t kMaxTileStatements = 128;
// A unit-stride loop up to this extent is vectorised whole.
inline constexpr int64_t kMaxVectorExtent = 64;

// A loop around a block; lists of them are outermost first.
struct LoopView {
  int64_t extent = 1;
  ir::ForKind kind = ir::ForKind::kSerial;
  bool reduces = false;  // moves a variable that is not data parallel
  bool sums = false;     // moves a reduce variable
  absl::InlinedVector<int, 2> iters;  // the variables that it moves

  bool Moves(int iter) const;
};

// The loop to vectorise: the innermost one that moves `iter`, the variable that
// walks what the block writes with step one, in panels of `panel_width` (0:
// none).
struct VectorLoop {
  size_t loop = 0;
  int64_t length = 0;  // cut to that; 0: whole
};
std::optional<VectorLoop> ChooseVectorLoop(std::span<const LoopView> loops,
                                           int iter, int64_t panel_width,
                                           int64_t vector_lanes);

// How many outer loops it takes to have `jobs` iterations that may run in
// parallel; as many as there are where that is not enough.
size_t CountParallelLoops(std::span<const LoopView> loops, int64_t jobs);

// The first loop of the register tile, those inside the innermost reduce loop;
// nullopt: it has too many statements.
std::optional<size_t> FindRegisterTile(std::span<const LoopView> loops,
                                       int64_t vector_lanes);
// The same of a block whose innermost loops, not among `loops`, become an
// instruction: as many loops as may be unrolled.
size_t FindInstructionTile(std::span<const LoopView> loops);

// Where the initialisation goes: in front of the outermost reduce loop of more
// than one iteration. A loop of one leaves it next to the inner reduction,
// where it becomes the accumulators' first value. An instruction, of the `own`
// innermost loops, does not initialise: outside of these the innermost reduce
// loop of one iteration will do. nullopt: it stays in the block.
std::optional<size_t> FindFirstReduceLoop(std::span<const LoopView> loops,
                                          size_t own);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_LOOP_RULES_H_
