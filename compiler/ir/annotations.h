// Annotations of loops that lowering understands beyond those that TVM prints.
#ifndef TILEFARM_COMPILER_IR_ANNOTATIONS_H_
#define TILEFARM_COMPILER_IR_ANNOTATIONS_H_

namespace tilefarm::ir {

// On a serial loop that does nothing but combine values into one element
// (`B[i] = B[i] + A[k]`; also *, max, min): the values may be combined in
// vectors, pairwise, in another order than the loop's. For loops of at most 16
// vectors, say of partial results.
inline constexpr char kReduceLanes[] = "tilefarm.reduce_lanes";

// On a vectorized loop whose body adds short sums of products of narrow numbers
// to its elements (`C[i] = C[i] + (A[0] * B[i, 0] + A[1] * B[i, 1])`, widened
// first): it may be one dot-product instruction where the target has one for
// these types and as many lanes. bfloat16 products are then summed in the
// instruction's order, and subnormal operands and results count as zero.
inline constexpr char kDotProduct[] = "tilefarm.dot_product";

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_ANNOTATIONS_H_
