// Pooling over any number of spatial dimensions, channels first. Shapes must
// fit, which is checked with CHECK, and no extent is zero.
#ifndef TILEFARM_COMPILER_TE_POOLING_H_
#define TILEFARM_COMPILER_TE_POOLING_H_

#include <cstdint>
#include <vector>

#include "compiler/te/sliding_window.h"
#include "compiler/te/tensor.h"

namespace tilefarm::te {

// The maximum over each window of [N, C, H, W, ...]; padding never wins.
Tensor MaxPool(const Tensor& data, const SlidingWindow& window);

// For each window, the place in `data` of the first element that equals its
// maximum in `maxima`, as int64: the index into the flat tensor, whose spatial
// dimensions are in the opposite order if `column_major`.
Tensor MaxPoolIndices(const Tensor& data, const Tensor& maxima,
                      const SlidingWindow& window, bool column_major);

// The mean over each window, computed in the accumulator of the dtype. It
// divides by the number of taps that lie within the data and `counted_before`
// and `counted_after` elements around them, which are part of the padding.
Tensor AveragePool(const Tensor& data, const SlidingWindow& window,
                   const std::vector<int64_t>& counted_before,
                   const std::vector<int64_t>& counted_after);

// (sum over each window of |x|^p)^(1/p), p >= 1.
Tensor LpPool(const Tensor& data, const SlidingWindow& window, int64_t p);

// The maximum over regions of interest (Girshick, 2015): data [N, C, H, W] and
// regions [R, 5] (image, x1, y1, x2, y2) give [R, C, rows, columns]. Bins
// without an element are zero.
Tensor MaxRoiPool(const Tensor& data, const Tensor& regions, int64_t rows,
                  int64_t columns, double scale);

}  // namespace tilefarm::te

#endif  // TILEFARM_COMPILER_TE_POOLING_H_
