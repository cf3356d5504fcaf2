#include "compiler/te/convolution.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace tilefarm::te {

using ir::DataType;
using ir::Expr;
using ir::IntConst;

namespace {

Expr Times(const Expr& a, const Expr& b) {
  return ir::MakeBinary(ir::BinaryOp::kMul, a, b);
}

// The names by which schedules and logs know the usual convolutions.
std::string ConvName(std::string_view prefix, int ndim) {
  static constexpr std::string_view kLayouts[] = {"", "ncw", "nchw", "ncdhw"};
  if (ndim < 1 || ndim > 3) return absl::StrCat(std::string(prefix), "_nd");
  return absl::StrCat(std::string(prefix), ndim, "d_",
                      std::string(kLayouts[ndim]));
}

// The channel of the data that the reduction axis `rc` stands for in the group
// of output channel `channel`. `rc` is null if groups have a single channel.
Expr InputChannel(const Expr& channel, const Expr& rc, int64_t group_in,
                  int64_t group_out, int64_t groups) {
  if (groups == 1) return rc == nullptr ? IntConst(0) : rc;
  const Expr first = ir::FloorDiv(channel, IntConst(group_out)) * group_in;
  return rc == nullptr ? first : first + rc;
}

}  // namespace

Tensor Conv(const Tensor& data, const Tensor& weight,
            const SlidingWindow& window, int64_t groups, DataType accumulate) {
  TF_CHECK(data.ndim() == weight.ndim());
  TF_CHECK(data.dim(1) == weight.dim(1) * groups);
  TF_CHECK(weight.dim(0) % groups == 0);
  const Tensor in = PadForWindow(data, window, ir::ConstOf(data.dtype(), 0));
  std::vector<int64_t> shape = WindowedShape(data, window);
  shape[1] = weight.dim(0);
  const int64_t group_in = weight.dim(1);
  const int64_t group_out = weight.dim(0) / groups;
  const std::vector<ReduceAxis> taps = TapAxes(window);
  const ReduceAxis rc("rc", group_in);
  std::vector<ReduceAxis> axes;
  // A depthwise convolution reduces over the taps only.
  const bool depthwise = groups > 1 && group_in == 1;
  if (!depthwise) axes.push_back(rc);
  axes.insert(axes.end(), taps.begin(), taps.end());
  return Compute(ConvName(depthwise ? "depthwise_conv" : "conv", window.ndim()),
                 shape, [&](const Indices& i) {
                   Indices at = TapIndices(i, taps, window);
                   at[1] = InputChannel(i[1], depthwise ? nullptr : Expr(rc),
                                        group_in, group_out, groups);
                   Indices w{i[1], depthwise ? IntConst(0) : Expr(rc)};
                   w.insert(w.end(), taps.begin(), taps.end());
                   return Sum(Times(ir::MakeCast(accumulate, in(at)),
                                    ir::MakeCast(accumulate, weight(w))),
                              axes);
                 });
}

namespace {

// The kernel with zeros between and after its taps, `extents` long in the
// spatial dimensions.
Tensor StuffKernel(const Tensor& weight, const SlidingWindow& window,
                   const std::vector<int64_t>& extents) {
  std::vector<int64_t> shape{weight.dim(0), weight.dim(1)};
  shape.insert(shape.end(), extents.begin(), extents.end());
  return Compute("kernel_dilate", shape, [&](const Indices& i) {
    Expr is_tap = ir::BoolConst(true);
    Indices at{i[0], i[1]};
    for (int d = 0; d < window.ndim(); ++d) {
      const Expr& k = i[d + 2];
      if (extents[d] == window.kernel[d]) {
        at.push_back(k);
        continue;
      }
      const Expr dilation = IntConst(window.dilations[d]);
      is_tap = ir::And(is_tap, ir::LT(k, IntConst(window.reach(d))));
      is_tap = ir::And(is_tap, ir::EQ(ir::FloorMod(k, dilation), IntConst(0)));
      at.push_back(
          ir::Min(ir::FloorDiv(k, dilation), IntConst(window.kernel[d] - 1)));
    }
    return Body(
        ir::IfThenElseExpr(is_tap, weight(at), ir::ConstOf(weight.dtype(), 0)));
  });
}

}  // namespace

Tensor ConvTranspose(const Tensor& data, const Tensor& weight,
                     const SlidingWindow& window,
                     const std::vector<int64_t>& out, int64_t groups,
                     DataType accumulate) {
  const int ndim = window.ndim();
  TF_CHECK(data.ndim() == ndim + 2 && weight.ndim() == ndim + 2);
  TF_CHECK(data.dim(1) == weight.dim(0) && data.dim(1) % groups == 0);
  const int64_t group_in = data.dim(1) / groups;
  const int64_t group_out = weight.dim(1);

  std::vector<int64_t> stuffed = window.kernel;
  std::vector<int64_t> step(ndim);  // between the data of two taps of a result
  SlidingWindow padding = window;
  std::vector<ReduceAxis> taps;
  for (int d = 0; d < ndim; ++d) {
    const int64_t stride = window.strides[d];
    int64_t count = window.kernel[d];
    step[d] = window.dilations[d];
    // With a stride of one every tap reaches every element of the result.
    if (stride > 1) {
      count = (window.reach(d) + stride - 1) / stride;
      stuffed[d] = count * stride;
      step[d] = 1;
    }
    taps.emplace_back(absl::StrCat("r", d), count);
    const int64_t first = window.before[d] / stride;
    const int64_t last = (out[d] - 1 + window.before[d]) / stride;
    padding.before[d] = std::max<int64_t>(0, (count - 1) * step[d] - first);
    padding.after[d] = std::max<int64_t>(0, last - (data.dim(d + 2) - 1));
  }
  const Tensor in = PadForWindow(data, padding, ir::ConstOf(data.dtype(), 0));
  const Tensor kernel =
      stuffed == window.kernel ? weight : StuffKernel(weight, window, stuffed);

  // Results whose positions have one remainder by the stride read consecutive
  // data and the same taps: [N, Cout, remainders..., quotients...].
  const ReduceAxis rc("rc", group_in);
  std::vector<ReduceAxis> axes{rc};
  axes.insert(axes.end(), taps.begin(), taps.end());
  const std::vector<int64_t> channels{data.dim(0), group_out * groups};
  std::vector<int64_t> phases = channels, positions;
  for (int d = 0; d < ndim; ++d) {
    const int64_t stride = window.strides[d];
    const int64_t first = window.before[d] / stride;
    const int64_t last = (out[d] - 1 + window.before[d]) / stride;
    if (stride > 1) phases.push_back(stride);
    positions.push_back(last - first + 1);
  }
  const size_t first_position = phases.size();
  phases.insert(phases.end(), positions.begin(), positions.end());
  const bool split = phases.size() > channels.size() + out.size();
  const std::string name = ConvName("conv_transpose", ndim);
  const Tensor sums =
      Compute(split ? name + "_phases" : name, phases, [&](const Indices& i) {
        const Expr channel =
            InputChannel(i[1], rc, group_in, group_out, groups);
        Indices at{i[0], channel};
        Indices w{channel,
                  groups == 1 ? i[1] : ir::FloorMod(i[1], IntConst(group_out))};
        size_t phase = 2;
        for (int d = 0; d < ndim; ++d) {
          const int64_t stride = window.strides[d];
          const Expr quotient = i[first_position + static_cast<size_t>(d)] +
                                window.before[d] / stride;
          const Expr tap = taps[d];
          at.push_back(quotient + padding.before[d] - tap * step[d]);
          w.push_back(stride == 1 ? tap : i[phase++] + tap * stride);
        }
        return Sum(Times(ir::MakeCast(accumulate, in(at)),
                         ir::MakeCast(accumulate, kernel(w))),
                   axes);
      });
  if (!split) return sums;
  std::vector<int64_t> shape = channels;
  shape.insert(shape.end(), out.begin(), out.end());
  return Compute(name, shape, [&](const Indices& i) {
    Indices at{i[0], i[1]}, quotients;
    for (int d = 0; d < ndim; ++d) {
      const Expr y = i[static_cast<size_t>(d) + 2] + window.before[d];
      const int64_t stride = window.strides[d];
      const Expr quotient = stride == 1 ? y : ir::FloorDiv(y, IntConst(stride));
      if (stride > 1) at.push_back(ir::FloorMod(y, IntConst(stride)));
      quotients.push_back(quotient - window.before[d] / stride);
    }
    at.insert(at.end(), quotients.begin(), quotients.end());
    return sums(at);
  });
}

namespace {

// [N, offset_groups, taps, D, P, Q, ...]: where each tap is read, in elements
// of the data. Positions stay within [-1, extent], where interpolation gives
// zero as it does further outside, so that their cast to integers is defined.
Tensor SamplePositions(const Tensor& data, const Tensor& offset,
                       const SlidingWindow& window, int64_t offset_groups,
                       int64_t num_taps, DataType type) {
  const int ndim = window.ndim();
  std::vector<int64_t> shape{data.dim(0), offset_groups, num_taps, ndim};
  shape.insert(shape.end(), offset.shape().begin() + 2, offset.shape().end());
  return Compute("deform_position", shape, [&](const Indices& i) {
    Expr regular = IntConst(0);  // position without the offset
    Expr extent = IntConst(0);
    int64_t inner = num_taps;
    for (int d = 0; d < ndim; ++d) {
      inner /= window.kernel[d];
      const Expr tap = ir::FloorMod(ir::FloorDiv(i[2], IntConst(inner)),
                                    IntConst(window.kernel[d]));
      const Expr position = i[d + 4] * window.strides[d] +
                            tap * window.dilations[d] - window.before[d];
      const Expr is_dim = ir::EQ(i[3], IntConst(d));
      regular = ir::MakeSelect(is_dim, position, regular);
      extent = ir::MakeSelect(is_dim, IntConst(data.dim(d + 2)), extent);
    }
    Indices at{i[0], ((i[1] * num_taps) + i[2]) * ndim + i[3]};
    at.insert(at.end(), i.begin() + 4, i.end());
    const Expr position =
        ir::MakeBinary(ir::BinaryOp::kAdd, ir::MakeCast(type, regular),
                       ir::MakeCast(type, offset(at)));
    // The maximum comes first: it turns NaN into -1.
    const Expr low =
        ir::MakeBinary(ir::BinaryOp::kMax, position, ir::ConstOf(type, -1));
    return Body(
        ir::MakeBinary(ir::BinaryOp::kMin, low, ir::MakeCast(type, extent)));
  });
}

}  // namespace

Tensor DeformableConv(const Tensor& data, const Tensor& weight,
                      const Tensor& offset, const Tensor* mask,
                      const SlidingWindow& window, int64_t groups,
                      int64_t offset_groups, DataType accumulate) {
  const int ndim = window.ndim();
  int64_t num_taps = 1;
  for (const int64_t extent : window.kernel) num_taps *= extent;
  const int64_t group_in = weight.dim(1);
  const int64_t group_out = weight.dim(0) / groups;
  TF_CHECK(data.dim(1) == group_in * groups);
  TF_CHECK(data.dim(1) % offset_groups == 0);
  TF_CHECK(offset.dim(1) == offset_groups * num_taps * ndim);
  const int64_t offset_channels = data.dim(1) / offset_groups;
  const Tensor positions = SamplePositions(data, offset, window, offset_groups,
                                           num_taps, accumulate);

  std::vector<int64_t> shape{data.dim(0), data.dim(1), num_taps};
  shape.insert(shape.end(), offset.shape().begin() + 2, offset.shape().end());
  const Tensor samples = Compute("deform_sample", shape, [&](const Indices& i) {
    const Expr offset_group = ir::FloorDiv(i[1], IntConst(offset_channels));
    std::vector<Expr> low(ndim), fraction(ndim);
    for (int d = 0; d < ndim; ++d) {
      Indices at{i[0], offset_group, i[2], IntConst(d)};
      at.insert(at.end(), i.begin() + 3, i.end());
      const Expr position = positions(at);
      const Expr floor = ir::MakeCall(ir::Intrinsic::kFloor, {position});
      low[d] = ir::MakeCast(DataType::Index(), floor);
      fraction[d] = ir::MakeBinary(ir::BinaryOp::kSub, position, floor);
    }
    Expr sum;
    for (int corner = 0; corner < 1 << ndim; ++corner) {
      Expr inside = ir::BoolConst(true);
      Expr share;
      Indices at{i[0], i[1]};
      for (int d = 0; d < ndim; ++d) {
        const bool high = (corner >> d & 1) != 0;
        const Expr index = low[d] + (high ? 1 : 0);
        const Expr last = IntConst(data.dim(d + 2) - 1);
        inside = ir::And(
            inside, ir::And(ir::GE(index, IntConst(0)), ir::LE(index, last)));
        at.push_back(ir::Max(IntConst(0), ir::Min(index, last)));
        const Expr part =
            high ? fraction[d]
                 : ir::MakeBinary(ir::BinaryOp::kSub,
                                  ir::ConstOf(accumulate, 1), fraction[d]);
        share = share == nullptr ? part : Times(share, part);
      }
      const Expr value =
          Times(ir::IfThenElseExpr(inside, ir::MakeCast(accumulate, data(at)),
                                   ir::ConstOf(accumulate, 0)),
                share);
      sum = sum == nullptr ? value
                           : ir::MakeBinary(ir::BinaryOp::kAdd, sum, value);
    }
    if (mask == nullptr) return Body(sum);
    Indices at{i[0], offset_group * num_taps + i[2]};
    at.insert(at.end(), i.begin() + 3, i.end());
    return Body(Times(sum, ir::MakeCast(accumulate, (*mask)(at))));
  });

  const std::vector<ReduceAxis> taps = TapAxes(window);
  const ReduceAxis rc("rc", group_in);
  std::vector<ReduceAxis> axes{rc};
  axes.insert(axes.end(), taps.begin(), taps.end());
  std::vector<int64_t> result = offset.shape();
  result[1] = weight.dim(0);
  return Compute(
      ConvName("deformable_conv", ndim), result, [&](const Indices& i) {
        Expr tap = IntConst(0);
        Indices w{i[1], rc};
        for (int d = 0; d < ndim; ++d) {
          tap = tap * window.kernel[d] + taps[d];
          w.push_back(taps[d]);
        }
        Indices at{i[0], InputChannel(i[1], rc, group_in, group_out, groups),
                   tap};
        at.insert(at.end(), i.begin() + 2, i.end());
        return Sum(Times(samples(at), ir::MakeCast(accumulate, weight(w))),
                   axes);
      });
}

}  // namespace tilefarm::te
