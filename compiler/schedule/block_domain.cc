#include "compiler/schedule/block_domain.h"

#include <algorithm>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/arith/iter_map.h"
#include "compiler/schedule/region_analysis.h"

namespace tilefarm::schedule {
namespace {

using arith::IntSet;

// What the accesses seen so far say about one variable.
struct Partial {
  std::optional<IntSet> dom;
  std::optional<IntSet> bound;
};

class DomainSolver {
 public:
  DomainSolver(arith::Analyzer& analyzer, const ir::BlockNode& block)
      : analyzer_(analyzer), block_(block) {
    for (const ir::IterVar& iter : block.iters) vars_[iter.var.get()] = {};
  }

  absl::Status Add(const ir::BufferRegion& access,
                   const arith::Region& needed) {
    if (AddByInverse(access, needed)) return absl::OkStatus();
    return AddByDimension(access, needed);
  }

  std::vector<VarDomain> Finish() {
    std::vector<VarDomain> result;
    for (const ir::IterVar& iter : block_.iters) {
      Partial& partial = vars_.at(iter.var.get());
      const IntSet whole = IntSet::FromRange(iter.dom);
      const IntSet bound =
          partial.bound ? Intersect(*partial.bound, whole) : Simplified(whole);
      result.push_back(Tighten(partial.dom, bound));
    }
    return result;
  }

 private:
  IntSet Simplified(const IntSet& set) {
    return {analyzer_.Simplify(set.min), analyzer_.Simplify(set.max)};
  }
  IntSet Intersect(const IntSet& a, const IntSet& b) {
    return Simplified({ir::Max(a.min, b.min), ir::Min(a.max, b.max)});
  }
  bool Equal(const IntSet& a, const IntSet& b) {
    return analyzer_.ProveEqual(a.min, b.min) &&
           analyzer_.ProveEqual(a.max, b.max);
  }

  void Join(const ir::VarNode* var, const IntSet& dom, const IntSet& bound) {
    Partial& partial = vars_.at(var);
    partial.dom =
        partial.dom ? arith::Union(analyzer_, *partial.dom, dom) : dom;
    partial.bound =
        partial.bound ? arith::Union(analyzer_, *partial.bound, bound) : bound;
  }

  // Keeps the bound only where it excludes values of `dom`.
  VarDomain Tighten(const std::optional<IntSet>& dom, const IntSet& bound) {
    if (!dom.has_value()) return {bound, std::nullopt};
    const IntSet wanted = Simplified(*dom);
    const IntSet both = Intersect(wanted, bound);
    if (Equal(wanted, both)) return {wanted, std::nullopt};
    if (Equal(bound, both)) return {bound, std::nullopt};
    return {wanted, bound};
  }

  // Handles an access to single elements whose indices are a bijection of the
  // block variables: the inverse gives the value of every variable.
  bool AddByInverse(const ir::BufferRegion& access,
                    const arith::Region& needed) {
    std::vector<ir::Expr> indices;
    for (const ir::Range& range : access.region) {
      if (!ir::IsConstInt(range.extent, 1)) return false;
      indices.push_back(range.min);
    }
    arith::Analyzer analyzer;
    auto map = arith::DetectIterMap(indices, DomainOf(block_), nullptr,
                                    arith::IterMapLevel::kBijective, analyzer,
                                    /*simplify_trivial=*/false);
    if (!map.ok()) return false;
    std::vector<ir::Expr> outputs;
    arith::VarRanges needed_dims, whole_dims;
    for (size_t i = 0; i < indices.size(); ++i) {
      const ir::Var dim = ir::MakeVar(absl::StrCat("d", i));
      outputs.push_back(dim);
      needed_dims.emplace_back(dim, needed[i]);
      whole_dims.emplace_back(
          dim,
          ir::Range{ir::IntConst(0), ir::IntConst(access.buffer->shape[i])});
    }
    const ir::VarMap inverse = arith::InverseIterMap(*map, outputs);
    for (const auto& [var, value] : inverse) {
      if (!vars_.contains(var)) continue;
      const IntSet dom = arith::EvalSet(analyzer_, value, needed_dims);
      const IntSet bound = arith::EvalSet(analyzer_, value, whole_dims);
      if (!dom.is_bounded() || !bound.is_bounded()) return false;
      Join(var, dom, bound);
    }
    return true;
  }

  // Handles an access dimension by dimension: each index must be v, v * c, v //
  // c, v % c or a constant.
  absl::Status AddByDimension(const ir::BufferRegion& access,
                              const arith::Region& needed) {
    for (size_t i = 0; i < access.region.size(); ++i) {
      const ir::Range& range = access.region[i];
      const IntSet want = IntSet::FromRange(needed[i]);
      const ir::Expr last = ir::IntConst(access.buffer->shape[i] - 1);
      const bool point = ir::IsConstInt(range.extent, 1);
      if (!UsesBlockVar(range.min)) continue;
      const auto* var = ir::As<ir::VarNode>(range.min);
      if (var != nullptr && point) {
        Join(var, want, {ir::IntConst(0), last});
        continue;
      }
      const auto* op = ir::As<ir::BinaryNode>(range.min);
      const auto* operand =
          op == nullptr ? nullptr : ir::As<ir::VarNode>(op->a);
      const std::optional<int64_t> c =
          op == nullptr ? std::nullopt : ir::AsInt(op->b);
      if (operand != nullptr && vars_.contains(operand) && c.value_or(0) > 0) {
        if (op->op == ir::BinaryOp::kMul) {
          Join(operand,
               {ir::FloorDiv(want.min, op->b), ir::FloorDiv(want.max, op->b)},
               {ir::IntConst(0), ir::FloorDiv(last, op->b)});
          continue;
        }
        if (op->op == ir::BinaryOp::kFloorDiv && point) {
          Join(operand, {want.min * *c, want.max * *c + (*c - 1)},
               {ir::IntConst(0), last * *c + (*c - 1)});
          continue;
        }
        // Any value of v has a remainder: no constraint.
        if (op->op == ir::BinaryOp::kFloorMod && point) continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("the access ", access.buffer->name, "[... ",
                       ir::ToString(range.min), " ...] cannot be inverted"));
    }
    return absl::OkStatus();
  }

  bool UsesBlockVar(const ir::Expr& expr) const {
    return std::ranges::any_of(vars_, [&](const auto& entry) {
      return ir::UsesVar(expr, entry.first);
    });
  }

  arith::Analyzer& analyzer_;
  const ir::BlockNode& block_;
  std::unordered_map<const ir::VarNode*, Partial> vars_;
};

// The minimum and extent of a domain. Loop extents are constants, so a width
// that varies becomes a constant bound of it or the whole domain.
struct LoopRange {
  ir::Expr min;
  int64_t extent;
};
LoopRange RangeOfDomain(arith::Analyzer& analyzer, const VarDomain& domain,
                        const ir::IterVar& iter, bool* widened) {
  const ir::Expr width =
      analyzer.Simplify(domain.dom.max - domain.dom.min + int64_t{1});
  const std::optional<int64_t> constant = ir::AsInt(width);
  if (constant.has_value()) {
    return {domain.dom.min, std::max<int64_t>(*constant, 1)};
  }
  *widened = true;
  const int64_t whole = ir::AsInt(iter.dom.extent).value_or(1);
  const arith::ConstBound bounds = analyzer.Bounds(width);
  if (bounds.max != arith::ConstBound::kPosInf && bounds.max < whole) {
    return {domain.dom.min, std::max<int64_t>(bounds.max, 1)};
  }
  return {iter.dom.min, whole};
}

}  // namespace

absl::StatusOr<std::vector<VarDomain>> SolveBlockDomain(
    arith::Analyzer& analyzer, const ir::BlockNode& block,
    const std::vector<ir::BufferRegion>& accesses,
    const std::vector<NeededRegion>& needed) {
  DomainSolver solver(analyzer, block);
  for (const ir::BufferRegion& access : accesses) {
    std::optional<arith::Region> all;
    for (const NeededRegion& need : needed) {
      if (need.buffer != access.buffer.get()) continue;
      all = all ? arith::UnionRegion(analyzer, *all, need.region) : need.region;
    }
    if (!all.has_value()) continue;
    absl::Status status = solver.Add(access, *all);
    if (!status.ok()) return status;
  }
  return solver.Finish();
}

ir::Stmt MakeNestOver(arith::Analyzer analyzer, const ir::BlockNode& block,
                      const std::vector<VarDomain>& domains,
                      bool preserve_unit_loops, ir::BlockPtr* new_block) {
  ir::BlockNode result = block;
  std::vector<std::pair<ir::Var, int64_t>> loops;
  ir::Expr predicate = ir::BoolConst(true);
  for (size_t i = 0; i < domains.size(); ++i) {
    ir::IterVar& iter = result.iters[i];
    bool widened = false;
    const LoopRange range = RangeOfDomain(analyzer, domains[i], iter, &widened);
    if (preserve_unit_loops || range.extent != 1) {
      const ir::Var var = ir::MakeVar(absl::StrCat("ax", loops.size()));
      loops.emplace_back(var, range.extent);
      analyzer.Bind(var, 0, range.extent);
      iter.binding = range.min + var;
    } else {
      iter.binding = range.min;
    }
    std::optional<IntSet> bound = domains[i].bound;
    if (!bound.has_value() && widened) bound = IntSet::FromRange(iter.dom);
    if (!bound.has_value()) continue;
    const ir::Expr above = ir::LE(bound->min, iter.binding);
    if (!analyzer.CanProve(above)) predicate = ir::And(predicate, above);
    const ir::Expr below = ir::LT(iter.binding, bound->max + int64_t{1});
    if (!analyzer.CanProve(below)) predicate = ir::And(predicate, below);
  }
  result.predicate = analyzer.Simplify(predicate);
  ir::BlockPtr placed = ir::BlockOf(std::move(result));
  if (new_block != nullptr) *new_block = placed;
  ir::Stmt nest = placed;
  for (auto it = loops.rbegin(); it != loops.rend(); ++it) {
    nest = ir::MakeFor(it->first, ir::IntConst(it->second), nest);
  }
  return nest;
}

}  // namespace tilefarm::schedule
