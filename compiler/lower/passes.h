// The passes of lowering, each in the file of the same name. pipeline.cc calls
// them in this order and explains the order. Each takes and returns whole
// functions or statements and has no side effects.
//
// "Block form" is the form that schedules work on. "Plain form" has no blocks,
// but still multi-dimensional buffers and loops of every kind. "Flat form" has
// one-dimensional buffers.
#ifndef TILEFARM_COMPILER_LOWER_PASSES_H_
#define TILEFARM_COMPILER_LOWER_PASSES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::lower {

// Whether CPUs compute with such floats in float32 (WidenHalf).
inline bool IsHalf(ir::DataType dtype) {
  return dtype.is_float() && dtype.bits == 16;
}

// Block form. Replaces nests below the root that a library computes by calls
// (ir/library_call.h). InvalidArgument if a marked block is no longer a product
// in a nest of its own.
absl::StatusOr<ir::Stmt> LowerLibraryCalls(const ir::Stmt& root);

// Block form. Handles loop kinds that a CPU cannot run: InvalidArgument for
// thread bindings. These become serial: a parallel loop inside a parallel one,
// a vectorized loop around a vectorized or parallel one, and one over a
// reduction.
absl::StatusOr<ir::Stmt> LegalizeLoops(const ir::PrimFunc& function);

// Whether a vectorized loop must become serial: a loop below prevents it, or a
// block reduces over it or has an opaque variable on it.
bool NeedsOrder(const ir::ForNode& loop);

// Any form. Simplifies index arithmetic to canonical form, decides conditions,
// and removes loops of extent 1 and 0 (unroll pragmas move to the loops below).
ir::Stmt Simplify(const ir::Stmt& stmt);

// Block form. Proves every access in bounds or guards it: out of bounds, a load
// gives 0 and a store does nothing. InvalidArgument if an unconditional access
// certainly leaves its buffer.
absl::StatusOr<ir::Stmt> GuardBounds(const ir::Stmt& root);

// Block form. Moves each allocation, in the root block and blocks below, to the
// innermost loop that contains all its accesses and in which every read is
// preceded by a write. Shrinks it to the region that one iteration accesses.
ir::Stmt PlaceAllocations(const ir::Stmt& root);

// Block form. `init` of reduction blocks becomes a nest of its own before the
// reduction loops if that preserves the results, else a condition in the block.
ir::Stmt LowerInit(const ir::Stmt& root);

// Block form. In blocks annotated for it, guards terms that padding makes 0, so
// that they are skipped.
ir::Stmt SkipPadding(const ir::Stmt& root);

// Block form to plain form: substitutes block variables; predicates become
// conditions, allocations Alloc statements.
ir::Stmt ConvertBlocks(const ir::Stmt& root);

// Plain form. Vectorized and parallel loops with dependent iterations become
// serial. InvalidArgument if iterations of a parallel loop certainly write the
// same element.
absl::StatusOr<ir::Stmt> CheckIterations(const ir::Stmt& stmt);

// Plain form. Guards that select the terms of a sum for each element become
// bounds of serial loops, computed at loop entry. If that would make inner code
// slower (the loop is unrolled, or a register tile has such guards in two
// dimensions) and edges are rare, all edges share a copy of the reduction: `if`
// inside, the nest without guards; `else` the nest with bounds. Guards along
// the widest dimension of a tile stay.
ir::Stmt BoundReductions(const ir::Stmt& stmt);

// Plain form. Removes guards from the steady state, those of statements and of
// values that are read under a condition: loops get exact extents; serial loops
// are cut where a guard below starts or stops to hold; otherwise full tiles run
// a copy of the code without guards. Guards of a small share of all work stay.
// Parts with at most a sixteenth of the iterations are not unrolled by pragmas.
ir::Stmt PartitionGuards(const ir::Stmt& stmt);

// Plain form to flat form, including parameters; applies storage_align and the
// strides and offsets of parameters.
ir::PrimFunc FlattenBuffers(const ir::PrimFunc& function);

// Flat form. Computes 16-bit floats in float32: only loads, stores and casts
// keep the narrow type. Intermediate copies of them are stored as float32.
ir::Stmt WidenHalf(const ir::Stmt& stmt);
// x, for a 16-bit float x that is cast to float32 and back.
ir::Expr WithoutDetour(const ir::Expr& value);

// Flat form. Vectorized loops become vector code of the target's widths.
ir::Stmt VectorizeLoops(const ir::Stmt& stmt, const target::Target& target);

// Flat form. Unrolls T.unroll loops and loops with an unroll pragma.
ir::Stmt UnrollLoops(const ir::Stmt& stmt);

// Flat form. Merges consecutive stores that each write every second or every
// fourth element and together write all elements.
ir::Stmt InterleaveStores(const ir::Stmt& stmt);

// Flat form. Small allocations that are only accessed at constant indices,
// always as the same vectors, get scope "local"; all others "global".
ir::Stmt PlaceRegisters(const ir::Stmt& stmt, const target::Target& target);

// Flat form. Elements that a loop updates in every iteration are kept in a
// buffer of scope "local", with constant indices, during the loop.
ir::Stmt PromoteAccumulators(const ir::Stmt& stmt,
                             const target::Target& target);

// Flat form. Below a loop annotated for it, splits innermost loops by cache
// lines and adds prefetches (ir::kPrefetchNext).
ir::Stmt PrefetchNext(const ir::Stmt& stmt);

// Flat form. Of a parameter that exceeds the L1 cache and is read block by
// block, each block several times, fetches the next block meanwhile
// (ir::MachineOp::kPrefetch). Returns the function's body.
ir::Stmt PrefetchBlocks(const ir::PrimFunc& function,
                        const target::Target& target);

// Flat form. Consecutive stores, or stores in a loop, whose values are columns
// of a tile with as many rows as a vector has lanes, read each row once instead
// (ir::MachineOp::kTransposed).
ir::Stmt TransposeLoads(const ir::Stmt& stmt, const target::Target& target);

// Any form. Gives copies of code their own loop variables and allocations.
ir::Stmt RenewScopes(const ir::Stmt& stmt);

// Internal if the result is not in the form that pipeline.h promises.
absl::Status VerifyLowered(const ir::PrimFunc& function);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_PASSES_H_
