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

// On a block that makes another layout of a layout-free parameter (one of
// `layout_free_buffers`), in a nest of its own below the root: it may run once,
// ahead of time (lower/split_prepack.h).
inline constexpr char kPrepack[] = "tilefarm.prepack";

// On a loop: whole vectors that its body reads one after another from
// iteration to iteration are fetched into the caches so many bytes ahead. For
// traces by hand: where it was measured it gained nothing, so that no rule of
// the design space asks for it.
inline constexpr char kPrefetchBytes[] = "tilefarm.prefetch_bytes";

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_ANNOTATIONS_H_
