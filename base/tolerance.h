// How far a float result may be from the reference: the unit of the bounds that
// the oracle of verification computes (compiler/oracle/README.md has the rule),
// and of what may be computed differently.
#ifndef TILEFARM_BASE_TOLERANCE_H_
#define TILEFARM_BASE_TOLERANCE_H_

namespace tilefarm {

// A rounded operation may be off by this many epsilons of its dtype, relative
// to its value. Rounding itself is half an epsilon: the rest is room for
// approximations of functions, other orders of sums and fused operations.
inline constexpr double kToleranceFactor = 4;

}  // namespace tilefarm

#endif  // TILEFARM_BASE_TOLERANCE_H_
