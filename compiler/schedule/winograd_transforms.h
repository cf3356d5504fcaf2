// The linear maps of Winograd's minimal filtering F(m x m, 3 x 3) (Lavin and
// Gray, "Fast Algorithms for Convolutional Neural Networks", 2015):
//
//   Y = A^T [ (G g G^T) * (B^T d B) ] A
//
// g is the 3 x 3 kernel, d a tile of m + 2 x m + 2 elements of the data, Y the
// m x m outputs over it, * elementwise; sums over channels stand between the
// brackets. The data's and the outputs' maps are given as rows times a vector
// `at(0), at(1)...`: expressions of additions and multiplications by constants,
// in which what two rows have in common is written alike, so that it is
// computed once.
//
// The maps interpolate at 0, infinity and pairs of points: +-1 for m = 2, +-5/8
// and +-3/2 for m = 4. With these, unlike with +-1 and +-2, the entries stay
// near 1 and the data's map is exact in float32 (points near these: Barabasz et
// al., "Error Analysis and Improving the Accuracy of Winograd Convolution",
// 2018).
#ifndef TILEFARM_COMPILER_SCHEDULE_WINOGRAD_TRANSFORMS_H_
#define TILEFARM_COMPILER_SCHEDULE_WINOGRAD_TRANSFORMS_H_

#include <cstdint>
#include <functional>

#include "compiler/ir/expr.h"

namespace tilefarm::schedule {

inline constexpr int kWinogradKernel = 3;

constexpr bool IsWinogradTile(int64_t tile) { return tile == 2 || tile == 4; }

// The error. Rounding is relative to what is added up, and for F(4, 3) that is
// larger than the terms of the sum as written. With operands of zero mean, all
// elements y of a convolution with K terms each, and y' as computed here in
// float32,
//
//   |y' - y| <= WinogradError(m) eps (4 + sqrt(K)) (|y| + rms(y))
//
// from K = WinogradMinTerms(m) on: statistically, as sqrt(K) is. Measured on
// uniform operands (tests/schedule/winograd_error_test.cc): at most 0.6 for
// m = 2 and 1.3 for m = 4; at K = 576 it is 0.28 and 0.85, and the direct sum,
// one term after the other, has 0.33.
constexpr double WinogradError(int tile) { return tile == 2 ? 1 : 3; }
constexpr int64_t WinogradMinTerms(int tile) { return tile == 2 ? 1 : 144; }
// What verification allows such a convolution beyond the bound of each element
// of the sum as written (compiler/oracle/README.md), in root mean squares of
// these bounds: an element is computed from the terms of its whole tile.
constexpr double WinogradSpread(int tile) { return tile == 2 ? 0.5 : 1; }

using Elements = std::function<ir::Expr(int64_t)>;

// G's entry in row `row` < m + 2 and column `column` < 3.
double WinogradKernelEntry(int tile, int64_t row, int64_t column);
// Row `row` < m + 2 of B^T times at(0..m + 1).
ir::Expr WinogradInputRow(int tile, int64_t row, const Elements& at);
// Row `row` < m of A^T times at(0..m + 1).
ir::Expr WinogradOutputRow(int tile, int64_t row, const Elements& at);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_WINOGRAD_TRANSFORMS_H_
