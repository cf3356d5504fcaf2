// The allowed error of float results: the unit of the bounds that the
// verification oracle computes (compiler/oracle/README.md has the rule), and of
// differences between algorithms.
#ifndef TILEFARM_BASE_TOLERANCE_H_
#define TILEFARM_BASE_TOLERANCE_H_

namespace tilefarm {

// A rounded operation may be off by this many epsilons of its dtype, relative
// to its value. Rounding itself takes half an epsilon; the rest is for
// approximated functions, other orders of sums and fused operations.
inline constexpr double kToleranceFactor = 4;

}  // namespace tilefarm

#endif  // TILEFARM_BASE_TOLERANCE_H_
