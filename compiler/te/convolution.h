// Convolutions of any number of spatial dimensions, channels first. Shapes must
// fit, which is checked with CHECK, and no extent is zero.
#ifndef TILEFARM_COMPILER_TE_CONVOLUTION_H_
#define TILEFARM_COMPILER_TE_CONVOLUTION_H_

#include <cstdint>
#include <vector>

#include "compiler/te/sliding_window.h"
#include "compiler/te/tensor.h"

namespace tilefarm::te {

// [N, C, H, W, ...] * [O, C/groups, R, S, ...] -> [N, O, P, Q, ...] of dtype
// `accumulate`: a stage that pads, if there is padding, and one reduction.
Tensor Conv(const Tensor& data, const Tensor& weight,
            const SlidingWindow& window, int64_t groups,
            ir::DataType accumulate);

// The transposed convolution [N, C, H, W, ...] * [C, O/groups, R, S, ...]
// -> [N, O, out...] of dtype `accumulate`. Element h of the data reaches the
// elements h * stride + k * dilation - before of the result for each tap k.
//
// Each element of the result gathers only the taps that reach it: with the
// stride s, element y receives the taps k with k = (y + before) mod s
// (mod s), which are (y + before) mod s + s j for j = 0, 1, ...; tap j reads
// element (y + before) / s - j of the data. This is the sub-pixel form of the
// transposed convolution (Shi et al., 2016): a dense reduction over the
// channels and j without a condition. For it the data are padded with zeros,
// and a kernel whose reach is no multiple of the stride, or which is dilated,
// is filled up with zeros.
Tensor ConvTranspose(const Tensor& data, const Tensor& weight,
                     const SlidingWindow& window,
                     const std::vector<int64_t>& out, int64_t groups,
                     ir::DataType accumulate);

// The deformable convolution (Zhu et al., 2018) of [N, C, H, W, ...] and
// [O, C/groups, R, S, ...]. Tap (r, s, ...) of a window is read at a position
// that `offset` [N, offset_groups * R * S * ... * D, P, Q, ...] moves by a
// fraction, with linear interpolation between 2^D neighbours, where D is the
// number of spatial dimensions; outside of the data there are zeros. `mask`
// [N, offset_groups * R * S * ..., P, Q, ...] scales the taps and may be null.
Tensor DeformableConv(const Tensor& data, const Tensor& weight,
                      const Tensor& offset, const Tensor* mask,
                      const SlidingWindow& window, int64_t groups,
                      int64_t offset_groups, ir::DataType accumulate);

}  // namespace tilefarm::te

#endif  // TILEFARM_COMPILER_TE_CONVOLUTION_H_
