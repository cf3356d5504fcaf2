// SubspaceDivide: divides the bindings of a loop nest into two spaces.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/arith/conjuncts.h"
#include "compiler/arith/iter_map.h"

namespace tilefarm::arith {
namespace {

using ir::Expr;

enum class Side : uint8_t { kNone, kOuter, kInner, kBoth };

class Divider {
 public:
  explicit Divider(const std::vector<ir::Var>& inner) : inner_(inner) {}

  Side SideOf(const IterSplit& split) const {
    if (split.extent == 1) return Side::kNone;
    if (split.mark->var != nullptr) {
      return std::find(inner_.begin(), inner_.end(), split.mark->var) !=
                     inner_.end()
                 ? Side::kInner
                 : Side::kOuter;
    }
    Side side = Side::kNone;
    for (const IterSplit& part : split.mark->sum.splits) {
      const Side other = SideOf(part);
      if (other == Side::kNone) continue;
      if (side != Side::kNone && side != other) return Side::kBoth;
      side = other;
    }
    return side;
  }

  absl::StatusOr<Division> Divide(const IterSplit& split) const {
    const Side side = SideOf(split);
    Division out{ir::IntConst(0), 1, ir::IntConst(0), 1};
    IterSplit unit = split;
    unit.scale = 1;
    if (side != Side::kBoth) {
      if (side == Side::kInner) {
        out.inner = ToExpr(unit);
        out.inner_extent = split.extent;
      } else {
        out.outer = ToExpr(unit);
        out.outer_extent = split.extent;
      }
      return out;
    }
    if (split.lower_factor != 1 || split.extent != split.mark->extent) {
      return absl::InvalidArgumentError(
          absl::StrCat("an iterator of outer and inner loops is split: ",
                       ir::ToString(ToExpr(split))));
    }
    // Parts are ordered from the outermost to the innermost.
    bool inner_seen = false;
    for (const IterSplit& part : split.mark->sum.splits) {
      TF_ASSIGN_OR_RETURN(Division piece, Divide(part));
      if (piece.outer_extent > 1 && inner_seen) {
        return absl::InvalidArgumentError(
            absl::StrCat("inner loops are not the innermost part of ",
                         ir::ToString(ToExpr(split))));
      }
      inner_seen |= piece.inner_extent > 1;
      out.outer = out.outer * piece.outer_extent + piece.outer;
      out.outer_extent *= piece.outer_extent;
      out.inner = out.inner * piece.inner_extent + piece.inner;
      out.inner_extent *= piece.inner_extent;
    }
    return out;
  }

 private:
  const std::vector<ir::Var>& inner_;
};

}  // namespace

absl::StatusOr<SubspaceDivision> SubspaceDivide(
    const std::vector<Expr>& bindings, const VarRanges& iters,
    const std::vector<ir::Var>& inner_iters, const Expr& predicate,
    IterMapLevel level, Analyzer& analyzer) {
  TF_ASSIGN_OR_RETURN(
      std::vector<IterSum> sums,
      DetectIterMap(bindings, iters, predicate, level, analyzer));
  SubspaceDivision out;
  out.outer_predicate = ir::BoolConst(true);
  out.inner_predicate = ir::BoolConst(true);
  const auto uses = [&](const Expr& expr, bool inner) {
    for (const auto& [var, range] : iters) {
      const bool is_inner = std::find(inner_iters.begin(), inner_iters.end(),
                                      var) != inner_iters.end();
      if (is_inner == inner && ir::UsesVar(expr, var.get())) return true;
    }
    return false;
  };
  std::vector<Expr> conditions;
  if (predicate != nullptr) conditions = Conjuncts(predicate);
  for (const Expr& condition : conditions) {
    if (!uses(condition, true)) {
      out.outer_predicate = And(out.outer_predicate, condition);
    } else if (!uses(condition, false)) {
      out.inner_predicate = And(out.inner_predicate, condition);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("the predicate mixes outer and inner loops: ",
                       ir::ToString(condition)));
    }
  }
  const Divider divider(inner_iters);
  for (const IterSum& sum : sums) {
    Division division{sum.base, 1, ir::IntConst(0), 1};
    if (!sum.splits.empty()) {
      const IterSplit& split = sum.splits[0];
      if (split.scale != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("a binding leaves gaps: ", ir::ToString(ToExpr(sum))));
      }
      TF_ASSIGN_OR_RETURN(division, divider.Divide(split));
      if (!ir::IsConstInt(sum.base, 0)) {
        if (!Divisible(analyzer, sum.base, division.inner_extent)) {
          return absl::InvalidArgumentError(
              absl::StrCat("a binding starts inside an inner tile: ",
                           ir::ToString(ToExpr(sum))));
        }
        division.outer =
            division.outer +
            ir::FloorDiv(sum.base, ir::IntConst(division.inner_extent));
      }
    }
    division.outer = analyzer.Simplify(division.outer);
    division.inner = analyzer.Simplify(division.inner);
    out.bindings.push_back(std::move(division));
  }
  return out;
}

}  // namespace tilefarm::arith
