#include "compiler/te/pooling.h"

#include <limits>
#include <string>
#include <utility>

#include "compiler/te/accumulate.h"
#include "compiler/te/operators.h"

namespace tilefarm::te {

using ir::BinaryOp;
using ir::DataType;
using ir::Expr;
using ir::IntConst;

namespace {

// What no value is below: padding has it, and maxima start from it.
Expr LowestValue(DataType dtype) {
  if (!dtype.is_float()) return ReducerIdentity(Reducer::kMax, dtype);
  return ir::FloatConst(-std::numeric_limits<double>::infinity(), dtype);
}

// The maximum of `value`, also right where all values are minus infinity.
Body Maximum(Expr value, std::vector<ReduceAxis> axes) {
  Body body = MaxOver(std::move(value), std::move(axes));
  body.init = LowestValue(body.value->dtype);
  return body;
}

// |x|^p in the accumulator of its dtype.
Expr PowerOf(const Expr& x, int64_t p) {
  const DataType type = AccumulatorOf(x->dtype);
  const Expr value = ir::MakeCast(type, x);
  if (p == 2) return ir::MakeBinary(BinaryOp::kMul, value, value);
  const Expr magnitude = ir::MakeCall(ir::Intrinsic::kAbs, {value});
  if (p == 1) return magnitude;
  return ir::MakeCall(
      ir::Intrinsic::kPow,
      {magnitude, ir::FloatConst(static_cast<double>(p), type)});
}

Expr RootOf(const Expr& x, int64_t p) {
  if (p == 1) return x;
  if (p == 2) return ir::MakeCall(ir::Intrinsic::kSqrt, {x});
  return ir::MakeCall(
      ir::Intrinsic::kPow,
      {x, ir::FloatConst(1 / static_cast<double>(p), x->dtype)});
}

}  // namespace

Tensor MaxPool(const Tensor& data, const SlidingWindow& window) {
  const Tensor in = PadForWindow(data, window, LowestValue(data.dtype()));
  const std::vector<ReduceAxis> taps = TapAxes(window);
  return Compute("pool_max", WindowedShape(data, window),
                 [&](const Indices& i) {
                   return Maximum(in(TapIndices(i, taps, window)), taps);
                 });
}

Tensor MaxPoolIndices(const Tensor& data, const Tensor& maxima,
                      const SlidingWindow& window, bool column_major) {
  const std::vector<ReduceAxis> taps = TapAxes(window);
  // Windows are scanned in row-major order, so that the first match is the one
  // with the lowest row-major index within the channel.
  const Tensor first =
      Compute("pool_first", maxima.shape(), [&](const Indices& i) {
        Indices at = TapIndices(i, taps, window);
        Expr inside = ir::BoolConst(true);
        Expr flat = IntConst(0);
        for (int d = 0; d < window.ndim(); ++d) {
          Expr& index = at[d + 2];
          const int64_t extent = data.dim(d + 2);
          index = index - window.before[d];
          if (window.before[d] > 0) {
            inside = ir::And(inside, ir::GE(index, IntConst(0)));
          }
          if (window.after[d] > 0) {
            inside = ir::And(inside, ir::LT(index, IntConst(extent)));
          }
          flat = flat * extent + index;
        }
        const Expr wins = ir::IfThenElseExpr(
            inside, ir::MakeBinary(BinaryOp::kEQ, data(at), maxima(i)),
            ir::BoolConst(false));
        return MinOver(
            ir::MakeSelect(wins, flat,
                           IntConst(std::numeric_limits<int64_t>::max())),
            taps);
      });
  int64_t area = 1;
  for (int d = 0; d < window.ndim(); ++d) area *= data.dim(d + 2);
  return Compute("pool_index", maxima.shape(), [&](const Indices& i) {
    // Nothing equals NaN; an index within the channel is stored all the same.
    const Expr flat = ir::Min(first(i), IntConst(area - 1));
    Expr within = flat;
    if (column_major) {
      within = IntConst(0);
      int64_t inner = area;  // elements of the following dimensions
      int64_t column_stride = 1;
      for (int d = 0; d < window.ndim(); ++d) {
        const int64_t extent = data.dim(d + 2);
        inner /= extent;
        const Expr index =
            ir::FloorMod(ir::FloorDiv(flat, IntConst(inner)), IntConst(extent));
        within = within + index * column_stride;
        column_stride *= extent;
      }
    }
    return Body((i[0] * data.dim(1) + i[1]) * area + within);
  });
}

namespace {

// How many taps of window `o` have a position in [-counted_before,
// in + counted_after).
Expr CountedTaps(const Expr& o, const SlidingWindow& window, int d, int64_t in,
                 int64_t counted_before, int64_t counted_after) {
  if (counted_before >= window.before[d] && counted_after >= window.after[d]) {
    return IntConst(window.kernel[d]);
  }
  const int64_t dilation = window.dilations[d];
  const Expr start = o * window.strides[d] - window.before[d];
  // The first and the last tap within the bounds.
  const Expr first = ir::Max(
      IntConst(0), ir::FloorDiv(IntConst(dilation - 1 - counted_before) - start,
                                IntConst(dilation)));
  const Expr last =
      ir::Min(IntConst(window.kernel[d] - 1),
              ir::FloorDiv(IntConst(in + counted_after - 1) - start,
                           IntConst(dilation)));
  return ir::Max(IntConst(0), last - first + 1);
}

}  // namespace

Tensor AveragePool(const Tensor& data, const SlidingWindow& window,
                   const std::vector<int64_t>& counted_before,
                   const std::vector<int64_t>& counted_after) {
  const DataType type = AccumulatorOf(data.dtype());
  const Tensor in = PadForWindow(data, window, ir::ConstOf(data.dtype(), 0));
  const std::vector<ReduceAxis> taps = TapAxes(window);
  const Tensor sum =
      Compute("pool_sum", WindowedShape(data, window), [&](const Indices& i) {
        return Sum(ir::MakeCast(type, in(TapIndices(i, taps, window))), taps);
      });
  return Compute("pool_avg", sum.shape(), [&](const Indices& i) {
    Expr count = IntConst(1);
    for (int d = 0; d < window.ndim(); ++d) {
      count = count * CountedTaps(i[d + 2], window, d, data.dim(d + 2),
                                  counted_before[d], counted_after[d]);
    }
    // A window that lies in the padding has a sum of zero.
    count = ir::Max(count, IntConst(1));
    const std::optional<int64_t> constant = ir::AsInt(count);
    const Expr divisor =
        constant.has_value()
            ? ir::FloatConst(static_cast<double>(*constant), type)
            : ir::MakeCast(type, count);
    return Body(ir::MakeCast(data.dtype(),
                             ir::MakeBinary(BinaryOp::kDiv, sum(i), divisor)));
  });
}

Tensor LpPool(const Tensor& data, const SlidingWindow& window, int64_t p) {
  const Tensor in = PadForWindow(data, window, ir::ConstOf(data.dtype(), 0));
  const std::vector<ReduceAxis> taps = TapAxes(window);
  const Tensor sum =
      Compute("pool_sum", WindowedShape(data, window), [&](const Indices& i) {
        return Sum(PowerOf(in(TapIndices(i, taps, window)), p), taps);
      });
  return Map(
      sum, [&](Expr x) { return ir::MakeCast(data.dtype(), RootOf(x, p)); },
      "pool_root");
}

namespace {

// [R, 4]: first row and column of each region, its rows and columns, as
// numbers of the accumulator.
Tensor Regions(const Tensor& data, const Tensor& regions, double scale,
               DataType type) {
  // Far outside of every image, and still exact as an integer.
  const Expr bound = ir::FloatConst(
      static_cast<double>(4 * (data.dim(2) + data.dim(3)) + 4), type);
  const Expr negative =
      ir::MakeBinary(BinaryOp::kSub, ir::ConstOf(type, 0), bound);
  const Tensor corner =
      Compute("roi_corner", {regions.dim(0), 4}, [&](const Indices& i) {
        const Expr scaled = ir::MakeBinary(
            BinaryOp::kMul, ir::MakeCast(type, regions({i[0], i[1] + 1})),
            ir::FloatConst(scale, type));
        const Expr rounded = ir::MakeCall(ir::Intrinsic::kRound, {scaled});
        return Body(ir::MakeBinary(
            BinaryOp::kMin, ir::MakeBinary(BinaryOp::kMax, rounded, negative),
            bound));
      });
  return Compute("roi_region", {regions.dim(0), 4}, [&](const Indices& i) {
    // 0, 1: y1, x1; 2, 3: the extents, at least one element.
    const Expr axis = ir::FloorMod(i[1], IntConst(2));
    const Expr low = corner({i[0], IntConst(1) - axis});
    const Expr high = corner({i[0], IntConst(3) - axis});
    const Expr extent =
        ir::MakeBinary(BinaryOp::kMax,
                       ir::MakeBinary(BinaryOp::kAdd,
                                      ir::MakeBinary(BinaryOp::kSub, high, low),
                                      ir::ConstOf(type, 1)),
                       ir::ConstOf(type, 1));
    return Body(ir::MakeSelect(ir::LT(i[1], IntConst(2)), low, extent));
  });
}

// First and one past the last element of bin `bin` of `bins`, within [0, in].
std::pair<Expr, Expr> BinOf(const Tensor& region, const Expr& r, int axis,
                            const Expr& bin, int64_t bins, int64_t in) {
  const DataType type = region.dtype();
  const Expr low = region({r, IntConst(axis)});
  const Expr size =
      ir::MakeBinary(BinaryOp::kDiv, region({r, IntConst(axis + 2)}),
                     ir::FloatConst(static_cast<double>(bins), type));
  const auto bound = [&](const Expr& number, ir::Intrinsic round) {
    const Expr edge = ir::MakeCall(
        round,
        {ir::MakeBinary(BinaryOp::kMul, ir::MakeCast(type, number), size)});
    const Expr index = ir::MakeCast(DataType::Index(),
                                    ir::MakeBinary(BinaryOp::kAdd, edge, low));
    return ir::Max(IntConst(0), ir::Min(index, IntConst(in)));
  };
  return {bound(bin, ir::Intrinsic::kFloor),
          bound(bin + 1, ir::Intrinsic::kCeil)};
}

}  // namespace

Tensor MaxRoiPool(const Tensor& data, const Tensor& regions, int64_t rows,
                  int64_t columns, double scale) {
  const DataType dtype = data.dtype();
  const Tensor region =
      Regions(data, regions, scale, AccumulatorOf(regions.dtype()));
  // Regions are data, so each bin looks at all rows, then at all columns: the
  // maximum over rows comes first and is shared by the bins of a column.
  const ReduceAxis rh("rh", data.dim(2)), rw("rw", data.dim(3));
  const Tensor by_rows = Compute(
      "roi_rows", {regions.dim(0), data.dim(1), rows, data.dim(3)},
      [&](const Indices& i) {
        const auto [first, end] =
            BinOf(region, i[0], 0, i[2], rows, data.dim(2));
        const Expr inside = ir::And(ir::GE(rh, first), ir::LT(rh, end));
        const Expr image = ir::MakeCast(
            DataType::Index(),
            ir::MakeBinary(
                BinaryOp::kMin,
                ir::MakeBinary(
                    BinaryOp::kMax,
                    ir::MakeCast(region.dtype(), regions({i[0], IntConst(0)})),
                    ir::ConstOf(region.dtype(), 0)),
                ir::FloatConst(static_cast<double>(data.dim(0) - 1),
                               region.dtype())));
        const Expr clamped =
            ir::Max(IntConst(0), ir::Min(image, IntConst(data.dim(0) - 1)));
        return Maximum(
            ir::IfThenElseExpr(inside, data({clamped, i[1], rh, i[3]}),
                               LowestValue(dtype)),
            {rh});
      });
  const Tensor by_columns =
      Compute("roi_columns", {regions.dim(0), data.dim(1), rows, columns},
              [&](const Indices& i) {
                const auto [first, end] =
                    BinOf(region, i[0], 1, i[3], columns, data.dim(3));
                const Expr inside = ir::And(ir::GE(rw, first), ir::LT(rw, end));
                return Maximum(
                    ir::IfThenElseExpr(inside, by_rows({i[0], i[1], i[2], rw}),
                                       LowestValue(dtype)),
                    {rw});
              });
  return Compute("roi_pool", by_columns.shape(), [&](const Indices& i) {
    const auto row = BinOf(region, i[0], 0, i[2], rows, data.dim(2));
    const auto column = BinOf(region, i[0], 1, i[3], columns, data.dim(3));
    const Expr empty = ir::Or(ir::LE(row.second, row.first),
                              ir::LE(column.second, column.first));
    return Body(ir::MakeSelect(empty, ir::ConstOf(dtype, 0), by_columns(i)));
  });
}

}  // namespace tilefarm::te
