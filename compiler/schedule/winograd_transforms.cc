#include "compiler/schedule/winograd_transforms.h"

#include <cmath>
#include <vector>

#include "base/check.h"

namespace tilefarm::schedule {
namespace {

using ir::Expr;

// The positive ones of the pairs of points.
std::vector<double> Points(int tile) {
  TF_CHECK(IsWinogradTile(tile));
  return tile == 2 ? std::vector<double>{1} : std::vector<double>{0.625, 1.5};
}

Expr Scaled(double factor, Expr value) {
  if (factor == 1) return value;
  const ir::DataType dtype = value->dtype;
  return ir::FloatConst(static_cast<float>(factor), dtype) * std::move(value);
}

// terms + factor * value; `terms` may be null.
Expr Plus(Expr terms, double factor, Expr value) {
  if (factor == 0) return terms;
  if (terms == nullptr) return Scaled(factor, std::move(value));
  Expr term = Scaled(std::fabs(factor), std::move(value));
  return factor > 0 ? std::move(terms) + std::move(term)
                    : std::move(terms) - std::move(term);
}

// c[0] at(first) + c[1] at(first + 2) + ..., from the last down.
Expr EverySecond(const std::vector<double>& c, int64_t first,
                 const Elements& at) {
  Expr sum;
  for (size_t i = c.size(); i-- > 0;) {
    sum = Plus(std::move(sum), c[i], at(first + 2 * static_cast<int64_t>(i)));
  }
  return sum;
}

// The product of (x - p^2) over the points, but for number `without`; constant
// first, so that it is a polynomial in the square of the variable.
std::vector<double> Squares(const std::vector<double>& points, size_t without) {
  std::vector<double> c = {1};
  for (size_t i = 0; i < points.size(); ++i) {
    if (i == without) continue;
    std::vector<double> next(c.size() + 1, 0);
    for (size_t d = 0; d < c.size(); ++d) {
      next[d + 1] += c[d];
      next[d] -= points[i] * points[i] * c[d];
    }
    c = std::move(next);
  }
  return c;
}

// Rows come as 0, p, -p, q, -q, ..., infinity.
struct Row {
  bool zero, infinity;
  size_t pair;
  bool negative;

  Row(int64_t row, size_t pairs)
      : zero(row == 0),
        infinity(row == static_cast<int64_t>(2 * pairs + 1)),
        pair(zero || infinity ? pairs : static_cast<size_t>(row - 1) / 2),
        negative(row % 2 == 0) {}
};

}  // namespace

double WinogradKernelEntry(int tile, int64_t row, int64_t column) {
  const std::vector<double> points = Points(tile);
  const Row r(row, points.size());
  if (r.infinity) return column == kWinogradKernel - 1 ? 1 : 0;
  // Powers of the point over the product of its differences to the others.
  double point = 0, norm = 1;
  if (!r.zero) {
    const double p = points[r.pair];
    point = r.negative ? -p : p;
    norm = 2 * p * p;
  }
  for (size_t i = 0; i < points.size(); ++i) {
    if (i != r.pair) norm *= point * point - points[i] * points[i];
  }
  return std::pow(point, static_cast<double>(column)) / norm;
}

Expr WinogradInputRow(int tile, int64_t row, const Elements& at) {
  const std::vector<double> points = Points(tile);
  const Row r(row, points.size());
  const std::vector<double> c = Squares(points, r.pair);
  if (r.zero) return EverySecond(c, 0, at);
  if (r.infinity) return EverySecond(c, 1, at);
  const Expr even = EverySecond(c, 2, at);
  const Expr odd = Scaled(points[r.pair], EverySecond(c, 1, at));
  return r.negative ? even - odd : even + odd;
}

Expr WinogradOutputRow(int tile, int64_t row, const Elements& at) {
  const std::vector<double> points = Points(tile);
  Expr sum = row == 0 ? at(0) : nullptr;
  for (size_t i = 0; i < points.size(); ++i) {
    const auto first = static_cast<int64_t>(1 + 2 * i);
    const Expr both =
        row % 2 == 0 ? at(first) + at(first + 1) : at(first) - at(first + 1);
    sum = Plus(std::move(sum), std::pow(points[i], static_cast<double>(row)),
               both);
  }
  return row == tile - 1 ? sum + at(tile + 1) : sum;
}

}  // namespace tilefarm::schedule
