// Annotations of loops and blocks that lowering understands, besides those of
// TVM.
#ifndef TILEFARM_COMPILER_IR_ANNOTATIONS_H_
#define TILEFARM_COMPILER_IR_ANNOTATIONS_H_

namespace tilefarm::ir {

// On a serial loop that only combines values into one element (`B[i] = B[i] +
// A[k]`; also *, max, min): the values may be combined in vectors, pairwise, in
// another order than the loop's. For loops of at most 16 vectors, for example
// of partial results.
inline constexpr char kReduceLanes[] = "tilefarm.reduce_lanes";

// On a loop, for itself and the loops inside: serial loops that contain no
// other loop are unrolled (1) as long as they make at most this many stores.
inline constexpr char kUnrollMaxStep[] = "pragma_auto_unroll_max_step";
inline constexpr char kUnrollExplicit[] = "pragma_unroll_explicit";

// On a serial loop, by lowering alone: no two of its iterations, nor two
// threads in them, write the same element.
inline constexpr char kWritesApart[] = "tilefarm.writes_apart";

// On a serial loop of a GPU's thread, TVM's software pipeline: for each
// statement of its body, the stage, one of two; the order among them; the
// stages whose copies from global to shared memory are asynchronous where the
// target has such copies. The stages' distance is the number of iterations that
// copies are ahead (lower/pipeline_loops.cc).
inline constexpr char kPipelineStage[] = "software_pipeline_stage";
inline constexpr char kPipelineOrder[] = "software_pipeline_order";
inline constexpr char kPipelineAsyncStages[] = "software_pipeline_async_stages";

// On a block that changes the layout of a layout-free parameter (one of
// `layout_free_buffers`), or computes something from it alone, in a nest of its
// own below the root: it may run once, ahead of time (lower/split_prepack.h).
inline constexpr char kPrepack[] = "tilefarm.prepack";

// In addition to kPrepack, if the copies are 16-bit floats that are read only
// as float32: the packed data is float32, the same values in twice the bytes.
inline constexpr char kPrepackFloat32[] = "tilefarm.prepack_float32";

// On a loop: contiguous vectors that its body reads in consecutive iterations
// are prefetched this many bytes ahead. For hand-written traces: no rule of the
// design space uses it.
inline constexpr char kPrefetchBytes[] = "tilefarm.prefetch_bytes";

// On a loop: whole vectors that its body writes to a parameter which the
// function never reads may bypass the caches (x86-64). Useful if the parameter
// is larger than the caches; the generated code tests whether the caller's
// memory is aligned.
inline constexpr char kStreamingStores[] = "tilefarm.streaming_stores";

// On a serial loop (1): prefetches, one cache line at a time, what its next
// iteration reads contiguously along innermost loops, while those of this
// iteration run. For operands that are read row by row and are too large for a
// cache: the hardware prefetcher follows each row, but detects the next one too
// late.
inline constexpr char kPrefetchNext[] = "tilefarm.prefetch_next";

// The form that lowering gives to kPrefetchNext, on a loop over the cache lines
// of such a row: [buffer's name, bytes, ...]. Each iteration starts by
// prefetching, this many bytes ahead, what the first iteration of the inner
// loop reads of the buffer.
inline constexpr char kPrefetchLines[] = "tilefarm.prefetch_lines";

// On a block that sums products of which some factors are 0 outside of a
// condition, such as a convolution that reads padding: terms that are 0 may be
// skipped (padding.h). The result is the same unless other factors are infinite
// or NaN. Likewise for maxima and minima, unless all values are infinite and
// the padding is the lowest or highest finite value.
inline constexpr char kSkipPadding[] = "tilefarm.skip_padding";

// On a vectorized loop whose body adds short sums of products of narrow numbers
// to its elements (`C[i] = C[i] + (A[0] * B[i, 0] + A[1] * B[i, 1])`, widened
// first): it may become one dot-product instruction if the target has one for
// these types and as many lanes. bfloat16 products are then summed in the
// instruction's order, and subnormal operands and results count as zero.
inline constexpr char kDotProduct[] = "tilefarm.dot_product";

// On a loop over 16 rows around loops over 16 columns, 16 groups and the
// elements of a group, whose body adds one product (`C[i, j] = C[i, j] + A[i,
// k, g] * B[k, j, g]`, widened first) into 16 x 16 contiguous sums: it may
// become one instruction of a matrix unit. Products are then summed in the
// unit's order; subnormal bfloat16 numbers count as zero.
inline constexpr char kMatrixProduct[] = "tilefarm.matrix_product";

// On a loop of a GPU's thread over the terms of one instruction, in a nest that
// adds products of two shared buffers to local sums (`C[i, j] = C[i, j] + A[r,
// k]
// * B[k, c]`): the 32 threads of a warp compute their sums together, on tensor
// cores. They have to have the elements of the instruction's fragments
// (matrix_units.h): thread l the rows l / 4 of every 8, an even number of
// times, and of every 8 columns l % 4 * 2 and the next. "mma": products are
// summed in the unit's order. "mma.3xtf32", of float32: also, an operand is the
// sum of two tf32 numbers, which leaves a relative error of about 2^-22;
// infinite operands give NaN. "wgmma": the four warps of a warpgroup compute
// their sums together, by products that take the second operand from tiles of
// kWarpgroupStages. A program that does not fit is an error.
inline constexpr char kWarpMatrix[] = "tilefarm.warp_matrix";
inline constexpr char kByWarps[] = "mma";
inline constexpr char kByWarpgroups[] = "wgmma";

// On a block that is a matrix product in a plain nest of its own below the
// root: the name of the library kernel that computes it (library_call.h). Only
// call_library sets it; schedules must not annotate it directly.
inline constexpr char kLibrary[] = "tilefarm.library";

// On a serial loop of a kernel that fetches into shared buffers: the number of
// copies of these buffers (2 or more), so that the fetches of the next
// iterations may run while this one computes.
inline constexpr char kSharedStages[] = "tilefarm.shared_stages";

// On a loop that is bound to blockIdx: the number of blocks (1 or more) that
// share a multiprocessor, for which the code's registers have to suffice, even
// if some are spilled. 0, or none: the assembler decides. Of several loops of a
// kernel, the largest number counts. Only CUDA heeds it.
inline constexpr char kResidentBlocks[] = "tilefarm.resident_blocks";

// On a loop of 8 iterations that is bound to threadIdx.x, each of which
// computes whole rows on its own (1): the threads become 32, and the four of
// each quad divide the columns of local buffers as the sums of tensor cores are
// divided (lower/spread_over_quads.cc). A first operand of kWarpMatrix may then
// be in registers. A program that does not fit is an error.
inline constexpr char kRowQuads[] = "tilefarm.row_quads";

// On a loop over the terms of kWarpMatrix, by lowering alone: in its i-th
// iteration an element of the first operand, in registers, is that of the i-th
// thread of each quad, whose place does not depend on i.
inline constexpr char kOfQuad[] = "tilefarm.of_quad";

// On the same loop, by lowering alone: sums are what the nest adds, whatever
// they were before.
inline constexpr char kStartsSums[] = "tilefarm.starts_sums";

// Likewise: the first operand is a tile of the copy engine as well (1); or the
// name of the only operand that is one.
inline constexpr char kFirstInTile[] = "tilefarm.first_in_tile";
inline constexpr char kTile[] = "tilefarm.tile";

// On a serial loop of a kernel that fetches tiles of two tensors and multiplies
// them: the number of copies of the tiles (2 or more). Warpgroups multiply with
// their matrix unit while one more warp lets the copy engine fetch the next
// tiles (lower/lower_warpgroups.cc says what it has to be like). With products
// of kWarpMatrix "wgmma" in it the loop may have other statements as well
// (lower/warpgroup_chain.h).
inline constexpr char kWarpgroupStages[] = "tilefarm.warpgroup_stages";

// On the same loop (1): the result of its products, which one store after it
// uses, is written by the copy engine (lower/warpgroup_stores.h).
inline constexpr char kBoxStores[] = "tilefarm.box_stores";

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_ANNOTATIONS_H_
