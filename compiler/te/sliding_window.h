// A window that slides over the spatial dimensions of a tensor.
#ifndef TILEFARM_COMPILER_TE_SLIDING_WINDOW_H_
#define TILEFARM_COMPILER_TE_SLIDING_WINDOW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/te/tensor.h"

namespace tilefarm::te {

// One entry per spatial dimension. Tap k of window o reads the element
// o * stride + k * dilation of the padded data.
struct SlidingWindow {
  std::vector<int64_t> kernel;  // taps
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> before;  // padding on the two sides, not negative
  std::vector<int64_t> after;

  int ndim() const { return static_cast<int>(kernel.size()); }
  // Elements from the first tap to the last one, both included.
  int64_t reach(int d) const { return (kernel[d] - 1) * dilations[d] + 1; }
  // How many windows fit into the padded data, which has room for one.
  int64_t out(int d, int64_t in) const {
    return (in + before[d] + after[d] - reach(d)) / strides[d] + 1;
  }
};

// Pads the dimensions from the third on with `value`; `data` itself if the
// window has no padding.
Tensor PadForWindow(const Tensor& data, const SlidingWindow& window,
                    const ir::Expr& value);

// [N, C, P, Q, ...] from [N, C, H, W, ...].
std::vector<int64_t> WindowedShape(const Tensor& data,
                                   const SlidingWindow& window);

// One reduction axis per spatial dimension, over the taps.
std::vector<ReduceAxis> TapAxes(const SlidingWindow& window);

// The index into padded data that tap `taps` of the window at `i`, an index
// into the result, reads: [n, c, row, column, ...].
Indices TapIndices(const Indices& i, const std::vector<ReduceAxis>& taps,
                   const SlidingWindow& window);

}  // namespace tilefarm::te

#endif  // TILEFARM_COMPILER_TE_SLIDING_WINDOW_H_
