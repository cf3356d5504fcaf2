#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/guard_math.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/iteration_analysis.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::ForKind;
using ir::ForNode;
using ir::Stmt;

// The maximum share of a nest's runs in which guards may fail, for all edges to
// share one copy of the code. Above it, each edge has its own copy.
constexpr double kMaxEdges = 1.0 / 8;

// The minimum number of elements that a tile must have at an edge after it lost
// a dimension, for that copy to pay: several vectors, whose operations are
// independent of each other.
constexpr int64_t kMinTile = 64;

// A nest that contains only loops and conditions around one store.
struct GuardedNest {
  std::vector<const ForNode*> loops;
  std::vector<Expr> guards;
  const ir::StoreNode* store = nullptr;
};

std::optional<GuardedNest> MatchNest(const Stmt& stmt) {
  GuardedNest nest;
  const Stmt* at = &stmt;
  for (;;) {
    if (const auto* loop = ir::As<ForNode>(*at)) {
      nest.loops.push_back(loop);
      at = &loop->body;
    } else if (const auto* branch = ir::As<ir::IfNode>(*at)) {
      if (branch->else_case != nullptr) return std::nullopt;
      SplitConjunction(branch->condition, nest.guards);
      at = &branch->then_case;
    } else {
      nest.store = ir::As<ir::StoreNode>(*at);
      if (nest.store == nullptr) return std::nullopt;
      return nest;
    }
  }
}

bool UsesAny(const Expr& e, const std::vector<const ForNode*>& loops) {
  return std::any_of(loops.begin(), loops.end(), [&](const ForNode* loop) {
    return ir::UsesVar(e, loop->var.get());
  });
}

bool Addresses(const ir::StoreNode& store, const ir::VarNode* var) {
  return std::any_of(store.indices.begin(), store.indices.end(),
                     [&](const Expr& e) { return ir::UsesVar(e, var); });
}

// Removes conditions from the guards of a nest.
class GuardRemover : public ir::Mutator {
 public:
  explicit GuardRemover(const std::vector<Expr>& gone) : gone_(gone) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateIf(const ir::IfNode& s, const Stmt&) override {
    std::vector<Expr> parts, kept;
    SplitConjunction(s.condition, parts);
    for (const Expr& part : parts) {
      if (std::find(gone_.begin(), gone_.end(), part) == gone_.end()) {
        kept.push_back(part);
      }
    }
    Stmt body = Mutate(s.then_case);
    return kept.empty() ? body : ir::MakeIf(Conjunction(kept), std::move(body));
  }

 private:
  const std::vector<Expr>& gone_;
};

// Replaces some loops by their bodies.
class LoopRemover : public ir::Mutator {
 public:
  explicit LoopRemover(const std::set<const ir::VarNode*>& gone)
      : gone_(gone) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    return gone_.contains(s.var.get()) ? Mutate(s.body)
                                       : Mutator::MutateFor(s, self);
  }

 private:
  const std::set<const ir::VarNode*>& gone_;
};

// A guard of a reduction nest that always holds if `steady` does.
struct EdgeGuard {
  Expr guard;
  Expr steady;
  double edge_share;    // share of the nest's runs in which it may fail
  const ForNode* tile;  // unrolled loop that it depends on, or null
};

class ReductionBounder : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    const UnrollPragma outer = pragma_;
    pragma_.Enter(s);
    const size_t mark = math_.Mark();
    BindLoop(math_, s);
    const bool is_root = !in_nest_ && IsReductionNest(s);
    in_nest_ |= is_root;
    around_.push_back(s.var.get());
    Stmt out = Mutator::MutateFor(s, self);
    math_.Restore(mark);
    out = Bound(*ir::As<ForNode>(out), out);
    around_.pop_back();
    if (is_root) {
      out = ShareEdges(out);
      in_nest_ = false;
    }
    pragma_ = outer;
    return out;
  }

  Stmt MutateAlloc(const ir::AllocNode& s, const Stmt& self) override {
    scopes_[s.buffer.get()] = around_.size();
    return Mutator::MutateAlloc(s, self);
  }

 private:
  // for r in n: if (lo <= r and r < hi) S  ->  for r in hi - lo: S(r + lo)
  Stmt Bound(const ForNode& s, const Stmt& self) {
    const auto extent = ir::AsInt(s.extent);
    if (s.for_kind != ForKind::kSerial || !extent || *extent <= 1 ||
        !ir::IsConstInt(s.min, 0) || pragma_.Unrolls(s)) {
      return self;
    }
    const std::optional<GuardedNest> nest = MatchNest(s.body);
    if (!nest) return self;
    Expr from = ir::IntConst(0), end = s.extent;
    std::vector<Expr> taken;
    for (const Expr& guard : nest->guards) {
      if (UsesAny(guard, nest->loops) || !IsOfTerms(*nest, guard)) {
        continue;
      }
      if (Take(s, guard, from, end)) taken.push_back(guard);
    }
    if (taken.empty()) return self;
    from = math_.Simplify(from);
    Expr trips = math_.Simplify(end - from);
    if (math_.Bounds(trips).lo < 0) {
      trips = ir::Max(std::move(trips), ir::IntConst(0));
    }
    Stmt body = GuardRemover(taken).Mutate(s.body);
    const ir::Var var = ir::MakeVar(s.var->name);
    body = ir::Substitute(body, {{s.var.get(), Expr(var) + from}});
    return std::make_shared<const ForNode>(var, s.min, std::move(trips),
                                           s.for_kind, std::move(body),
                                           s.annotations, s.thread_tag);
  }

  // Whether different iterations of a loop access different elements, by their
  // indices or because the buffer is allocated inside of the loop.
  bool IsSpatial(const GuardedNest& nest, size_t i) const {
    const auto lives = scopes_.find(nest.store->buffer.get());
    return (lives != scopes_.end() && i < lives->second) ||
           Addresses(*nest.store, around_[i]);
  }

  // Whether the guard selects the terms of a sum for each element: it uses
  // spatial and reduce loops. For guards on only one kind, cutting loops gives
  // constant bounds.
  bool IsOfTerms(const GuardedNest& nest, const Expr& guard) const {
    bool spatial = false, reduces = false;
    for (size_t i = 0; i < around_.size(); ++i) {
      if (!ir::UsesVar(guard, around_[i])) continue;
      (IsSpatial(nest, i) ? spatial : reduces) = true;
    }
    return spatial && reduces;
  }

  // Serial reduction loops that contain the unrolled or vectorized ones.
  bool IsReductionNest(const ForNode& s) const {
    if (s.for_kind != ForKind::kSerial) return false;
    const std::optional<GuardedNest> nest = MatchNest(s.body);
    if (!nest || Addresses(*nest->store, s.var.get())) return false;
    const auto lives = scopes_.find(nest->store->buffer.get());
    if (lives != scopes_.end() && around_.size() < lives->second) return false;
    return std::all_of(
        nest->loops.begin(), nest->loops.end(), [&](const ForNode* loop) {
          const bool tile = loop->for_kind == ForKind::kUnrolled ||
                            loop->for_kind == ForKind::kVectorized;
          return tile ? ir::AsInt(loop->extent) && ir::IsConstInt(loop->min, 0)
                      : loop->for_kind == ForKind::kSerial &&
                            !Addresses(*nest->store, loop->var.get());
        });
  }

  // Makes a copy of the nest without guards, for where they hold, and one other
  // copy for all edges, in which the bounds of the reductions select the terms,
  // for each row of the tile by itself. The widest guarded dimension of the
  // tile keeps its guards: without it, the tile would be too small.
  Stmt ShareEdges(const Stmt& root) {
    const std::optional<GuardedNest> nest = MatchNest(root);
    if (!nest) return root;
    std::vector<EdgeGuard> guards = EdgeGuards(*nest);
    const ForNode* widest = nullptr;
    for (const EdgeGuard& g : guards) {
      if (g.tile != nullptr &&
          (widest == nullptr || Extent(*g.tile) > Extent(*widest))) {
        widest = g.tile;
      }
    }
    std::erase_if(guards, [&](const EdgeGuard& g) {
      return g.tile != nullptr && g.tile == widest;
    });
    if (guards.empty()) return root;
    double share = 0;
    std::vector<Expr> gone, steady;
    std::set<const ir::VarNode*> tiles;
    for (const EdgeGuard& g : guards) {
      share += g.edge_share;
      gone.push_back(g.guard);
      steady.push_back(g.steady);
      if (g.tile != nullptr) tiles.insert(g.tile->var.get());
    }
    int64_t tile = 1;
    for (const ForNode* loop : nest->loops) {
      if (loop->for_kind == ForKind::kSerial) continue;
      if (!tiles.contains(loop->var.get())) tile *= Extent(*loop);
    }
    if (share > kMaxEdges || (!tiles.empty() && tile < kMinTile)) return root;

    Stmt edge = LoopRemover(tiles).Mutate(root);
    for (const ForNode* loop : nest->loops) {
      if (!tiles.contains(loop->var.get())) continue;
      edge = std::make_shared<const ForNode>(loop->var, loop->min, loop->extent,
                                             loop->for_kind, std::move(edge),
                                             loop->annotations);
    }
    edge = NotUnrolled(*ir::As<ForNode>(edge));
    return ir::MakeIf(Conjunction(steady), GuardRemover(gone).Mutate(root),
                      Mutate(edge));
  }

  static int64_t Extent(const ForNode& loop) { return *ir::AsInt(loop.extent); }

  static Stmt NotUnrolled(const ForNode& s) {
    ir::AttrMap annotations = s.annotations;
    annotations.insert_or_assign(ir::kUnrollExplicit, int64_t{0});
    return std::make_shared<const ForNode>(s.var, s.min, s.extent, s.for_kind,
                                           s.body, std::move(annotations),
                                           s.thread_tag);
  }

  // The guards that depend on a reduction of the nest and on at most one
  // dimension of its tile, besides loops around the nest.
  std::vector<EdgeGuard> EdgeGuards(const GuardedNest& nest) {
    const size_t mark = math_.Mark();
    for (const ForNode* loop : nest.loops) {
      math_.Bind(loop->var.get(), 0,
                 std::max<int64_t>(0, math_.Bounds(loop->extent).hi - 1));
    }
    std::vector<EdgeGuard> out;
    for (const Expr& guard : nest.guards) {
      if (auto edge = AsEdgeGuard(nest, guard)) out.push_back(*std::move(edge));
    }
    math_.Restore(mark);
    return out;
  }

  // Whether the nest computes the same, in the same order for each element, if
  // this loop becomes the outermost one.
  bool MayGoFirst(const GuardedNest& nest, const ForNode& loop) {
    bool updates = true;
    ir::PostOrderExprs(nest.store->value, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      if (load == nullptr || load->buffer != nest.store->buffer) return;
      for (size_t i = 0; i < load->indices.size(); ++i) {
        updates &= SameExpr(load->indices[i], nest.store->indices[i]);
      }
    });
    AccessDims dims;
    for (const Expr& index : nest.store->indices) {
      Linear dim = math_.Decompose(index);
      std::erase_if(dim.terms, [&](const auto& term) {
        return !UsesAny(term.first, nest.loops);
      });
      dims.push_back(std::move(dim));
    }
    return updates && Determines(math_, {dims}, loop.var.get(), Extent(loop));
  }

  std::optional<EdgeGuard> AsEdgeGuard(const GuardedNest& nest,
                                       const Expr& guard) {
    const auto bound = AsUpperBound(math_, guard);
    if (!bound) return std::nullopt;
    const ForNode* tile = nullptr;
    bool reduces = false;
    for (const ForNode* loop : nest.loops) {
      if (!ir::UsesVar(guard, loop->var.get())) continue;
      if (loop->for_kind == ForKind::kSerial) {
        reduces = true;
      } else if (loop->for_kind == ForKind::kUnrolled && tile == nullptr &&
                 MayGoFirst(nest, *loop)) {
        tile = loop;
      } else {
        return std::nullopt;
      }
    }
    bool spatial = tile != nullptr;
    for (size_t i = 0; i < around_.size(); ++i) {
      spatial |= IsSpatial(nest, i) && ir::UsesVar(guard, around_[i]);
    }
    if (!reduces || !spatial) return std::nullopt;
    Linear outer, inner;
    outer.constant = bound->constant;
    int64_t step = 0;
    for (const auto& [atom, scale] : bound->terms) {
      const bool inside = UsesAny(atom, nest.loops);
      if (inside && atom->kind != ir::ExprKind::kVar) return std::nullopt;
      (inside ? inner : outer).terms.emplace_back(atom, scale);
      if (!inside) step = std::gcd(step, scale);
    }
    outer.constant += math_.Bounds(inner).hi;
    const Interval known = math_.Bounds(outer);
    if (step == 0 || !known.bounded() || known.lo > 0 || known.hi <= 0) {
      return std::nullopt;
    }
    Linear left = outer;
    left.constant = 0;
    const double runs = static_cast<double>((known.hi - known.lo) / step + 1);
    const double edges = static_cast<double>((known.hi - 1) / step + 1);
    return EdgeGuard{guard,
                     ir::LE(left.ToExpr(), ir::IntConst(-outer.constant)),
                     edges / runs, tile};
  }

  // Turns one comparison with the loop's variable into a bound of the loop.
  bool Take(const ForNode& s, const Expr& guard, Expr& from, Expr& end) {
    auto bound = AsUpperBound(math_, guard);
    if (!bound) return false;
    const int64_t scale = bound->CoefficientOf(s.var.get());
    if (scale == 0) return false;
    bound->AddTerm(s.var, -scale);
    for (const auto& [atom, coefficient] : bound->terms) {
      if (ir::UsesVar(atom, s.var.get())) return false;
    }
    Linear rest;
    if (scale > 0) {  // r < floor(-rest / scale) + 1
      rest.Add(*bound, -1);
      end = ir::Min(end, ir::FloorDiv(rest.ToExpr(), ir::IntConst(scale)) + 1);
    } else {  // r >= ceil(rest / -scale)
      rest.Add(*bound, 1);
      rest.constant += -scale - 1;
      from = ir::Max(from, ir::FloorDiv(rest.ToExpr(), ir::IntConst(-scale)));
    }
    return true;
  }

  IndexMath math_;
  UnrollPragma pragma_;
  bool in_nest_ = false;
  std::vector<const ir::VarNode*> around_;
  // The number of loops around each allocation.
  std::map<const ir::BufferNode*, size_t> scopes_;
};

}  // namespace

Stmt BoundReductions(const Stmt& stmt) {
  return ReductionBounder().Mutate(stmt);
}

}  // namespace tilefarm::lower
