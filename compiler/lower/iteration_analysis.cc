#include "compiler/lower/iteration_analysis.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "compiler/ir/visitor.h"

namespace tilefarm::lower {
namespace {

// var // low % (high / low): the digits of var with weights from low to high.
struct Digits {
  int64_t low;
  int64_t high;
};

std::optional<Digits> DigitsOf(const ir::Expr& atom, const ir::VarNode* var,
                               int64_t extent) {
  if (atom.get() == var) return Digits{1, extent};
  const auto* binary = ir::As<ir::BinaryNode>(atom);
  if (binary == nullptr) return std::nullopt;
  const auto divisor = ir::AsInt(binary->b);
  if (!divisor || *divisor <= 0) return std::nullopt;
  const auto inner = DigitsOf(binary->a, var, extent);
  if (!inner) return std::nullopt;
  if (binary->op == ir::BinaryOp::kFloorDiv) {
    return Digits{inner->low * *divisor, inner->high};
  }
  if (binary->op == ir::BinaryOp::kFloorMod) {
    return Digits{inner->low, std::min(inner->high, inner->low * *divisor)};
  }
  return std::nullopt;
}

// The digits of `var` that the index of dimension `d` determines.
void AddFixedDigits(IndexMath& math, const std::vector<AccessDims>& accesses,
                    size_t d, const ir::VarNode* var, int64_t extent,
                    std::vector<Digits>& fixed) {
  for (const auto& [atom, coefficient] : accesses[0][d].terms) {
    const auto digits = DigitsOf(atom, var, extent);
    if (!digits) continue;
    // Smaller terms must not reach the next step of this one, and larger ones
    // must step over the range of this and the smaller ones.
    const int64_t weight = std::abs(coefficient);
    int64_t step = 0;
    Interval below{Interval::kUnbounded, -Interval::kUnbounded};
    bool comparable = true;
    for (const AccessDims& access : accesses) {
      Linear smaller;
      smaller.constant = access[d].constant;
      bool has_atom = false;
      for (const auto& [other, scale] : access[d].terms) {
        if (SameExpr(other, atom)) {
          has_atom = scale == coefficient;
        } else if (std::abs(scale) < weight) {
          smaller.terms.emplace_back(other, scale);
        } else {
          step = std::gcd(step, std::abs(scale));
        }
      }
      const Interval bounds = math.Bounds(smaller);
      comparable &= has_atom && bounds.bounded();
      below.lo = std::min(below.lo, bounds.lo);
      below.hi = std::max(below.hi, bounds.hi);
    }
    const Interval range = math.Bounds(atom);
    if (!comparable || !range.bounded()) continue;
    const int64_t span = below.hi - below.lo;
    if (span >= weight) continue;
    if (step != 0 && step <= weight * (range.hi - range.lo) + span) continue;
    fixed.push_back(*digits);
  }
}

}  // namespace

bool Determines(IndexMath& math, const std::vector<AccessDims>& accesses,
                const ir::VarNode* var, int64_t extent) {
  if (extent <= 1 || accesses.empty()) return true;
  std::vector<Digits> fixed;
  for (size_t d = 0; d < accesses[0].size(); ++d) {
    AddFixedDigits(math, accesses, d, var, extent, fixed);
  }
  // The digits must cover the variable from the lowest one up.
  int64_t covered = 1;
  for (bool progress = true; progress && covered < extent;) {
    progress = false;
    for (const Digits& digits : fixed) {
      if (digits.low <= covered && covered % digits.low == 0 &&
          digits.high > covered) {
        covered = digits.high;
        progress = true;
      }
    }
  }
  return covered >= extent;
}

}  // namespace tilefarm::lower
