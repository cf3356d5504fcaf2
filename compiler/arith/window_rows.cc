#include "compiler/arith/window_rows.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "compiler/ir/visitor.h"

namespace tilefarm::arith {
namespace {

using ir::Expr;

// An index in parts: digit * step + lower + offset.
struct IndexParts {
  Linear digit, offset;
  int64_t step = 1, lower = 0;
};

std::optional<IndexParts> PartsOf(
    IndexMath& math, const Expr& index, const ir::Var& row,
    const std::function<bool(const Expr&)>& is_place) {
  IndexParts out;
  const Linear sum = math.Decompose(index);
  out.lower = sum.constant;
  int64_t step = 0;
  for (const auto& [atom, coefficient] : sum.terms) {
    if (!is_place(atom)) {
      if (coefficient < 0) return std::nullopt;
      step = std::gcd(step, coefficient);
      out.digit.AddTerm(atom, coefficient);
    } else if (ir::UsesVar(atom, row.get())) {
      return std::nullopt;
    } else {
      out.offset.AddTerm(atom, coefficient);
    }
  }
  if (step > 1) {
    for (auto& [atom, coefficient] : out.digit.terms) coefficient /= step;
    out.step = step;
  }
  if (math.Bounds(out.offset).lo < 0) return std::nullopt;
  return out;
}

// What the atom is a quotient or a remainder of.
Expr Dividend(Expr atom) {
  for (;;) {
    const auto* binary = ir::As<ir::BinaryNode>(atom);
    if (binary == nullptr || (binary->op != ir::BinaryOp::kFloorDiv &&
                              binary->op != ir::BinaryOp::kFloorMod)) {
      return atom;
    }
    atom = binary->a;
  }
}

// Digits of a number, the slowest first; each of the others is below its count.
struct Digit {
  Expr value;
  int64_t count = 1;
};

// Numbers with these digits: their sum; and, as canonical forms of (x * 128 +
// r) % 56 and (x * 128 + r) // 56 look so unlike that the sum may not become
// simple, the dividends that have them.
std::vector<Expr> NumbersOf(IndexMath& math, const std::vector<Digit>& digits) {
  Expr sum = ir::IntConst(0);
  for (const Digit& digit : digits) sum = sum * digit.count + digit.value;
  const auto has_digits = [&](const Expr& number) {
    int64_t unit = 1;
    for (size_t d = digits.size(); d-- > 0;) {
      Expr rest = number;
      if (d > 0)
        rest = ir::FloorMod(rest, ir::IntConst(unit * digits[d].count));
      rest = ir::FloorDiv(rest, ir::IntConst(unit));
      if (math.Difference(digits[d].value, rest) != 0) return false;
      unit *= digits[d].count;
    }
    return true;
  };
  std::vector<Expr> out;
  const Linear terms = math.Decompose(sum);
  out.push_back(terms.ToExpr());
  for (const auto& [atom, coefficient] : terms.terms) {
    const Expr number = Dividend(atom);
    if (number != atom && has_digits(number)) out.push_back(number);
  }
  return out;
}

}  // namespace

int64_t WindowRows::rows() const {
  return std::accumulate(counts.begin(), counts.end(), images,
                         std::multiplies<>());
}

Expr NumberOf(IndexMath& math, const std::vector<Expr>& digits,
              const std::vector<int64_t>& counts) {
  std::vector<Digit> all;
  for (size_t d = 0; d < digits.size(); ++d) {
    all.push_back({digits[d], counts[d]});
  }
  return NumbersOf(math, all).back();
}

TensorView MergeRows(IndexMath& math, const std::vector<Expr>& indices,
                     const std::vector<int64_t>& shape, size_t first) {
  TensorView out;
  out.indices.assign(indices.begin(),
                     indices.begin() + static_cast<int64_t>(first));
  out.shape.assign(shape.begin(), shape.begin() + static_cast<int64_t>(first));
  std::vector<Expr> digits;
  std::vector<int64_t> counts;
  int64_t rows = 1;
  for (size_t d = first; d + 1 < indices.size(); ++d) {
    digits.push_back(indices[d]);
    counts.push_back(shape[d]);
    rows *= shape[d];
  }
  out.indices.push_back(NumberOf(math, digits, counts));
  out.shape.push_back(rows);
  out.indices.push_back(indices.back());
  out.shape.push_back(shape.back());
  return out;
}

std::optional<WindowRows> FindWindowRows(
    IndexMath& math, const std::vector<Expr>& indices,
    const std::vector<int64_t>& shape, const ir::Var& row,
    const std::function<bool(const Expr&)>& is_place,
    std::optional<int64_t> rows) {
  std::vector<IndexParts> parts;
  for (size_t d = 0; d + 1 < indices.size(); ++d) {
    std::optional<IndexParts> part = PartsOf(math, indices[d], row, is_place);
    if (!part) return std::nullopt;
    parts.push_back(*std::move(part));
  }
  WindowRows out;
  out.has_images = parts.size() > 1 && parts[0].offset.is_constant() &&
                   parts[0].lower == 0 && parts[0].step == 1;
  const size_t first_spatial = out.has_images ? 1 : 0;
  if (out.has_images) out.images = shape[0];
  // The digits' values, from the fastest one on.
  const size_t spatial = parts.size() - first_spatial;
  out.counts.resize(spatial);
  int64_t value = 1;
  for (size_t d = parts.size(); d-- > first_spatial;) {
    const Interval digit = math.Bounds(parts[d].digit);
    // Rows beyond the last one have the slowest digit that there is.
    const bool slowest =
        std::all_of(parts.begin(), parts.begin() + static_cast<int64_t>(d),
                    [](const IndexParts& p) { return p.digit.is_constant(); });
    int64_t count = digit.has_hi() ? digit.hi + 1 : 0;
    if (slowest && rows) {
      if (*rows % value != 0) return std::nullopt;
      count = std::max<int64_t>(*rows / value, 1);
      rows.reset();
    }
    if (digit.lo < 0 || count < 1) return std::nullopt;
    out.counts[d - first_spatial] = count;
    value *= count;
  }
  if (out.has_images && math.Bounds(parts[0].digit).lo < 0) {
    return std::nullopt;
  }
  std::vector<Digit> digits;
  for (size_t d = 0; d < parts.size(); ++d) {
    digits.push_back(
        {parts[d].digit.ToExpr(),
         d < first_spatial ? out.images : out.counts[d - first_spatial]});
  }
  const ir::VarMap at_first = {{row.get(), ir::IntConst(0)}};
  for (const Expr& number : NumbersOf(math, digits)) {
    const Expr first = math.Simplify(ir::Substitute(number, at_first));
    if (math.Difference(number, first + Expr(row)) != 0) continue;
    out.first = first;
    break;
  }
  if (out.first == nullptr) return std::nullopt;
  for (size_t d = 0; d < parts.size(); ++d) {
    const Expr digit = ir::Substitute(parts[d].digit.ToExpr(), at_first);
    out.origin.push_back(math.Simplify(digit * parts[d].step + parts[d].lower));
    if (d < first_spatial) continue;
    out.steps.push_back(parts[d].step);
    out.lower.push_back(parts[d].lower);
    out.offsets.push_back(parts[d].offset.ToExpr());
  }
  if (!out.has_images) out.origin.insert(out.origin.begin(), ir::IntConst(0));
  return out;
}

bool IsBoundOf(IndexMath& math, const Expr& condition, const Expr& index,
               int64_t extent) {
  const auto* compare = ir::As<ir::BinaryNode>(condition);
  if (compare == nullptr) return false;
  using enum ir::BinaryOp;
  const ir::BinaryOp op = compare->op;
  if (op != kLT && op != kLE && op != kGT && op != kGE) return false;
  const bool less = op == kLT || op == kLE;
  const Expr room = less ? compare->b - compare->a : compare->a - compare->b;
  // The condition is that this is at least 0.
  const int64_t strict = op == kLT || op == kGT ? 1 : 0;
  const Expr at_least = room - strict;
  const auto largest = [&](const Expr& e) {
    int64_t most = 0;
    for (const auto& [atom, coefficient] : math.Decompose(e).terms) {
      most = std::max(most, std::abs(coefficient));
    }
    return most;
  };
  const int64_t unit = largest(at_least);
  if (unit == 0) return false;
  // So is what is `scale` times that, and less than `scale` more.
  const auto is_same = [&](const Expr& bound) {
    const int64_t scale = largest(bound) / unit;
    if (scale < 1) return false;
    const auto more = math.Difference(bound, at_least * scale);
    return more && 0 <= *more && *more < scale;
  };
  return is_same(index) || is_same(ir::IntConst(extent - 1) - index);
}

}  // namespace tilefarm::arith
