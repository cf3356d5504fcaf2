// The passes of lowering, one per file of the same name. pipeline.cc calls
// them in this order and says why. Each takes and returns whole functions or
// statements and changes nothing else.
//
// "Block form" is what schedules work on; "plain form" has no blocks but still
// multi-dimensional buffers and loops of every kind; "flat form" has
// one-dimensional buffers.
#ifndef TILEFARM_COMPILER_LOWER_PASSES_H_
#define TILEFARM_COMPILER_LOWER_PASSES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::lower {

// Block form. Nests below the root that a library is to compute become calls
// (ir/library_call.h). InvalidArgument where a marked block is no product in a
// nest of its own any more.
absl::StatusOr<ir::Stmt> LowerLibraryCalls(const ir::Stmt& root);

// Block form. Loops that a CPU cannot run as asked: InvalidArgument for thread
// bindings; a parallel loop inside a parallel one, a vectorized loop around
// another or around a parallel one, and one over a reduction become serial.
absl::StatusOr<ir::Stmt> LegalizeLoops(const ir::PrimFunc& function);

// Any form. Canonical index arithmetic, conditions decided by what is known,
// loops of extent 1 and 0 dissolved (unroll pragmas move to the loops below).
ir::Stmt Simplify(const ir::Stmt& stmt);

// Block form. Every access is proven in bounds or gets a guard: a load reads 0
// and a store does nothing where it would be out of bounds. InvalidArgument
// where an unconditional access certainly leaves its buffer.
absl::StatusOr<ir::Stmt> GuardBounds(const ir::Stmt& root);

// Block form. Moves each allocation, of the root block and of those in it, to
// the innermost loop that contains all its accesses and where everything read
// was written before, and shrinks it to the region that one iteration touches.
ir::Stmt PlaceAllocations(const ir::Stmt& root);

// Block form. `init` of reduction blocks becomes a nest of its own before the
// reduction loops where that changes nothing, else a condition in the block.
ir::Stmt LowerInit(const ir::Stmt& root);

// Block form. In blocks with the annotation for it, terms that padding makes 0
// stand under a condition instead of being added.
ir::Stmt SkipPadding(const ir::Stmt& root);

// Block form to plain form: block variables are substituted, predicates become
// conditions and allocations Alloc statements.
ir::Stmt ConvertBlocks(const ir::Stmt& root);

// Plain form. A vectorized loop whose iterations depend on one another becomes
// serial; so does a parallel one, but InvalidArgument where its iterations
// certainly write the same element.
absl::StatusOr<ir::Stmt> CheckIterations(const ir::Stmt& stmt);

// Plain form. Guards that say which terms of a sum an element has become bounds
// of serial loops, computed where these begin. Where that would cost something
// inside (the loop is unrolled, or a register tile has such guards in two
// dimensions) and edges are seldom, they share a copy of the reduction: `if`
// inside, the nest without guards; `else` the nest with bounds. Guards along
// the widest dimension of a tile stay.
ir::Stmt BoundReductions(const ir::Stmt& stmt);

// Plain form. Removes guards from the steady state: loops get exact extents,
// serial ones are cut where a guard below begins or ceases to hold, and where
// else a tile is full a copy of its code runs that has no guard. Guards over a
// small share of all that runs stay. A part cut off that runs for a sixteenth
// of the iterations or less is not unrolled by pragmas.
ir::Stmt PartitionGuards(const ir::Stmt& stmt);

// Plain form to flat form, params included; honours storage_align and the
// strides and offsets of parameters.
ir::PrimFunc FlattenBuffers(const ir::PrimFunc& function);

// Flat form. 16-bit floats compute in float32: only loads, stores and casts
// keep the narrow type. Intermediate copies of them are kept in float32.
ir::Stmt WidenHalf(const ir::Stmt& stmt);

// Flat form. Vectorized loops become vector code of the target's widths.
ir::Stmt VectorizeLoops(const ir::Stmt& stmt, const target::Target& target);

// Flat form. Replicates T.unroll loops and those that an unroll pragma covers.
ir::Stmt UnrollLoops(const ir::Stmt& stmt);

// Flat form. Stores one after another that each write every second or every
// fourth element, and fill each other's gaps, become one of all elements.
ir::Stmt InterleaveStores(const ir::Stmt& stmt);

// Flat form. Small allocations that are only accessed at constant indices, cut
// into the same vectors everywhere, get scope "local"; all others "global".
ir::Stmt PlaceRegisters(const ir::Stmt& stmt, const target::Target& target);

// Flat form. Elements that a loop updates at the same place in every iteration
// live in a buffer of scope "local" with constant indices meanwhile.
ir::Stmt PromoteAccumulators(const ir::Stmt& stmt,
                             const target::Target& target);

// Flat form. Innermost loops below a loop with the annotation for it are cut
// into cache lines and say what to fetch (ir::kPrefetchNext).
ir::Stmt PrefetchNext(const ir::Stmt& stmt);

// Flat form. Stores one after another, or in a loop, whose values are columns
// of a tile, as many as a vector has lanes, read its rows instead, once
// (ir::Intrinsic::kTransposed).
ir::Stmt TransposeLoads(const ir::Stmt& stmt, const target::Target& target);

// Any form. Copies of code get loop variables and allocations of their own.
ir::Stmt RenewScopes(const ir::Stmt& stmt);

// Internal where the result is not in the form that pipeline.h promises.
absl::Status VerifyLowered(const ir::PrimFunc& function);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_PASSES_H_
