// Annotations of loops and blocks that lowering understands beyond those that
// TVM prints.
#ifndef TILEFARM_COMPILER_IR_ANNOTATIONS_H_
#define TILEFARM_COMPILER_IR_ANNOTATIONS_H_

namespace tilefarm::ir {

// On a serial loop that does nothing but combine values into one element
// (`B[i] = B[i] + A[k]`; also *, max, min): the values may be combined in
// vectors, pairwise, in another order than the loop's. For loops of at most 16
// vectors, say of partial results.
inline constexpr char kReduceLanes[] = "tilefarm.reduce_lanes";

// On a loop, of itself and those inside: serial loops that hold no other loop
// are unrolled (1) while they make no more than so many stores.
inline constexpr char kUnrollMaxStep[] = "pragma_auto_unroll_max_step";
inline constexpr char kUnrollExplicit[] = "pragma_unroll_explicit";

// On a block that makes another layout of a layout-free parameter (one of
// `layout_free_buffers`), or computes something of it alone, in a nest of its
// own below the root: it may run once, ahead of time (lower/split_prepack.h).
inline constexpr char kPrepack[] = "tilefarm.prepack";

// Beside kPrepack, where the copies are 16-bit floats that are read as float32
// only: what is laid out ahead of time is float32, the same numbers in twice
// the bytes.
inline constexpr char kPrepackFloat32[] = "tilefarm.prepack_float32";

// On a loop: whole vectors that its body reads one after another from
// iteration to iteration are fetched into the caches so many bytes ahead. For
// traces by hand: no rule of the design space asks for it.
inline constexpr char kPrefetchBytes[] = "tilefarm.prefetch_bytes";

// On a loop: whole vectors that its body writes to a parameter which the
// function never reads may go around the caches (x86-64). Pays where the
// parameter is larger than them; the code asks itself whether the caller's
// memory is aligned.
inline constexpr char kStreamingStores[] = "tilefarm.streaming_stores";

// On a serial loop (1): what its next iteration reads along innermost loops,
// element after element, is fetched into the caches while those of this
// iteration run, a cache line at a time. For operands that are read row by row
// and are too large to be in a cache already: hardware follows each row, but
// learns of the next one too late.
inline constexpr char kPrefetchNext[] = "tilefarm.prefetch_next";

// What lowering makes of it, on a loop over the cache lines of such a row:
// [buffer's name, bytes, ...]; each iteration begins by fetching what its first
// iteration of the loop inside reads of the buffer, so many bytes ahead.
inline constexpr char kPrefetchLines[] = "tilefarm.prefetch_lines";

// On a block that adds up products of which some factors are 0 outside of a
// condition, as where a convolution reads padding: what is 0 there need not be
// added (padding.h). The same result but where the other factors are infinite
// or not a number. So with maxima and minima, but where all is infinite and the
// padding the lowest or highest finite value.
inline constexpr char kSkipPadding[] = "tilefarm.skip_padding";

// On a vectorized loop whose body adds short sums of products of narrow numbers
// to its elements (`C[i] = C[i] + (A[0] * B[i, 0] + A[1] * B[i, 1])`, widened
// first): it may be one dot-product instruction where the target has one for
// these types and as many lanes. bfloat16 products are then summed in the
// instruction's order, and subnormal operands and results count as zero.
inline constexpr char kDotProduct[] = "tilefarm.dot_product";

// On a loop over 16 rows around loops over 16 columns, 16 groups and the
// numbers of a group, whose body adds one product (`C[i, j] = C[i, j] +
// A[i, k, g] * B[k, j, g]`, widened first) into 16 x 16 sums that lie side by
// side: it may be one instruction of a matrix unit. Products are then summed in
// the unit's order; of bfloat16, subnormal numbers count as zero.
inline constexpr char kMatrixProduct[] = "tilefarm.matrix_product";

// On a block in a plain nest of its own below the root that is a matrix
// product: the name of the kernel of a library that computes it
// (library_call.h). What call_library sets; schedules may not annotate it by
// hand.
inline constexpr char kLibrary[] = "tilefarm.library";

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_ANNOTATIONS_H_
