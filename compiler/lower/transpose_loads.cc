#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/machine_op.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::Stmt;

// A tile has as many rows as a vector has lanes; all are in registers.
constexpr int kMinLanes = 4;
constexpr int kMaxLanes = 16;
// The maximum number of registers per row.
constexpr size_t kMostTiles = 4;

// A strided vector load without a predicate.
struct Apart {
  const ir::LoadNode* load;
  const ir::RampNode* ramp;
};

std::optional<Apart> AsApart(const Expr& expr) {
  const auto* load = ir::As<ir::LoadNode>(expr);
  if (load == nullptr || load->predicate != nullptr ||
      load->buffer->scope == "local" || load->buffer->dtype.is_bool()) {
    return std::nullopt;
  }
  const auto* ramp = ir::As<ir::RampNode>(load->indices[0]);
  if (ramp == nullptr || ramp->dtype.lanes < kMinLanes ||
      ramp->dtype.lanes > kMaxLanes ||
      (ramp->dtype.lanes & (ramp->dtype.lanes - 1)) != 0) {
    return std::nullopt;
  }
  // The start of the tile must not depend on what its stores write.
  bool reads = false;
  ir::PostOrderExprs(ramp->base, [&](const Expr& e) {
    reads |= e->kind == ir::ExprKind::kLoad;
  });
  if (reads) return std::nullopt;
  const std::optional<int64_t> stride = ir::AsInt(ramp->stride);
  // Overlapping rows are not a tile.
  if (!stride || std::abs(*stride) < ramp->dtype.lanes) return std::nullopt;
  return Apart{load, ramp};
}

// The strided loads of the value; none if some are evaluated conditionally.
std::vector<Apart> LoadsApart(const Expr& value) {
  std::vector<Apart> loads;
  bool conditional = false;
  ir::PostOrderExprs(value, [&](const Expr& e) {
    const auto* call = ir::As<ir::CallNode>(e);
    const auto* logical = ir::As<ir::BinaryNode>(e);
    conditional |=
        (call != nullptr && call->op == ir::Intrinsic::kIfThenElse) ||
        (logical != nullptr && (logical->op == ir::BinaryOp::kAnd ||
                                logical->op == ir::BinaryOp::kOr));
    if (const std::optional<Apart> apart = AsApart(e)) loads.push_back(*apart);
  });
  if (conditional) loads.clear();
  return loads;
}

// Replaces the load calls[i].first by `calls[i].second`.
class Replacer : public ir::Mutator {
 public:
  explicit Replacer(
      const std::vector<std::pair<const ir::LoadNode*, Expr>>& calls)
      : calls_(calls) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override {
    for (const auto& [load, call] : calls_) {
      if (expr.get() == load) return call;
    }
    return Mutator::Mutate(expr);
  }

 private:
  const std::vector<std::pair<const ir::LoadNode*, Expr>>& calls_;
};

class Transposer : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateSeq(const ir::SeqNode& s, const Stmt&) override {
    std::vector<Stmt> stmts;
    for (size_t i = 0; i < s.stmts.size();) {
      const size_t count = Transpose(s.stmts, i, stmts);
      if (count == 0) stmts.push_back(Mutate(s.stmts[i]));
      i += std::max<size_t>(1, count);
    }
    return ir::MakeSeq(std::move(stmts));
  }

  Stmt MutateFor(const ir::ForNode& s, const Stmt& self) override {
    const auto* seq = ir::As<ir::SeqNode>(s.body);
    const std::vector<Stmt> body =
        seq == nullptr ? std::vector<Stmt>{s.body} : seq->stmts;
    const auto* store = ir::As<ir::StoreNode>(body[0]);
    const std::optional<int64_t> extent = ir::AsInt(s.extent);
    if (s.for_kind != ir::ForKind::kSerial || store == nullptr || !extent ||
        !ir::IsConstInt(s.min, 0) || body.size() > kMostTiles) {
      return Mutator::MutateFor(s, self);
    }
    for (const Apart& apart : LoadsApart(store->value)) {
      const int64_t rows = apart.ramp->dtype.lanes;
      if (*extent % rows != 0) continue;
      const ir::Var tile = ir::MakeVar(s.var->name + "_tile");
      const size_t mark = math_.Mark();
      math_.Bind(tile.get(), 0, *extent / rows - 1);
      std::vector<Stmt> copies, stmts;
      for (int64_t row = 0; row < rows; ++row) {
        for (const Stmt& one : body) {
          copies.push_back(
              ir::Substitute(one, {{s.var.get(), Expr(tile) * rows + row}}));
        }
      }
      const bool done = Transpose(copies, 0, stmts) == copies.size();
      math_.Restore(mark);
      if (!done) continue;
      return std::make_shared<const ir::ForNode>(
          tile, s.min, ir::IntConst(*extent / rows), s.for_kind,
          ir::MakeSeq(std::move(stmts)), s.annotations, s.thread_tag);
    }
    return Mutator::MutateFor(s, self);
  }

 private:
  // Appends the longest run of stores from `at` on that forms whole tiles to
  // `out`, rewritten to read rows. Returns their number, or 0. A row may have
  // several registers, each of its own tile.
  size_t Transpose(const std::vector<Stmt>& stmts, size_t at,
                   std::vector<Stmt>& out) {
    const auto* first = ir::As<ir::StoreNode>(stmts[at]);
    if (first == nullptr || first->predicate != nullptr) return 0;
    for (const Apart& apart : LoadsApart(first->value)) {
      const size_t rows = static_cast<size_t>(apart.ramp->dtype.lanes);
      for (size_t tiles = 1; tiles <= kMostTiles; tiles *= 2) {
        if (at + tiles * rows > stmts.size()) break;
        std::vector<Stmt> stores = Tiles(stmts, at, tiles, rows);
        if (stores.empty()) continue;
        out.insert(out.end(), stores.begin(), stores.end());
        return stores.size();
      }
    }
    return 0;
  }

  // Rewrites stores tile by tile; empty if some tile does not match.
  std::vector<Stmt> Tiles(const std::vector<Stmt>& stmts, size_t at,
                          size_t tiles, size_t rows) {
    std::vector<Stmt> stores;
    for (size_t tile = 0; tile < tiles; ++tile) {
      const auto* first = ir::As<ir::StoreNode>(stmts[at + tile]);
      if (first == nullptr) return {};
      const std::vector<Apart> firsts = LoadsApart(first->value);
      for (size_t row = 0; row < rows; ++row) {
        Stmt store = WithRows(stmts[at + row * tiles + tile], firsts, rows,
                              static_cast<int64_t>(row));
        if (store == nullptr) return {};
        stores.push_back(std::move(store));
      }
    }
    // The order of the stores has changed.
    if (tiles > 1 && !AreApart(stores)) return {};
    return stores;
  }

  // Whether no two stores overlap and none reads what another one writes.
  bool AreApart(const std::vector<Stmt>& stores) {
    const auto* first = ir::As<ir::StoreNode>(stores[0]);
    std::vector<int64_t> starts;
    for (const Stmt& stmt : stores) {
      const auto* store = ir::As<ir::StoreNode>(stmt);
      const auto* ramp = ir::As<ir::RampNode>(store->indices[0]);
      const auto* other = ir::As<ir::RampNode>(first->indices[0]);
      if (store->buffer != first->buffer || ramp == nullptr ||
          other == nullptr || !ir::IsConstInt(ramp->stride, 1) ||
          ramp->dtype.lanes != other->dtype.lanes) {
        return false;
      }
      if (ir::Loads(store->value, store->buffer.get())) return false;
      const std::optional<int64_t> start =
          math_.Difference(ramp->base, other->base);
      if (!start) return false;
      starts.push_back(*start);
    }
    std::sort(starts.begin(), starts.end());
    const int64_t lanes = first->indices[0]->dtype.lanes;
    for (size_t i = 1; i < starts.size(); ++i) {
      if (starts[i] - starts[i - 1] < lanes) return false;
    }
    return true;
  }

  // The store with row `row` of the tiles whose first loads are `firsts` and
  // have `lanes` lanes; null if it does not belong to them.
  Stmt WithRows(const Stmt& stmt, const std::vector<Apart>& firsts,
                size_t lanes, int64_t row) {
    const auto* store = ir::As<ir::StoreNode>(stmt);
    if (store == nullptr || store->predicate != nullptr) return nullptr;
    const std::vector<Apart> loads = LoadsApart(store->value);
    if (loads.size() != firsts.size()) return nullptr;
    std::vector<std::pair<const ir::LoadNode*, Expr>> calls;
    for (size_t i = 0; i < loads.size(); ++i) {
      const ir::LoadNode& load = *loads[i].load;
      const ir::LoadNode& first = *firsts[i].load;
      if (firsts[i].ramp->dtype.lanes != static_cast<int>(lanes)) continue;
      // A store must not write what a later one of the tile reads.
      if (load.buffer != first.buffer || load.buffer == store->buffer ||
          ir::AsInt(loads[i].ramp->stride) !=
              ir::AsInt(firsts[i].ramp->stride) ||
          loads[i].ramp->dtype.lanes != firsts[i].ramp->dtype.lanes ||
          math_.Difference(loads[i].ramp->base, firsts[i].ramp->base) != row) {
        return nullptr;
      }
      calls.emplace_back(
          &load, ir::MakeMachineOp(ir::MachineOp::kTransposed,
                                   {ir::IntConst(row),
                                    ir::Load(first.buffer, first.indices)}));
    }
    return ir::MakeStore(store->buffer, store->indices,
                         Replacer(calls).Mutate(store->value));
  }

  IndexMath math_;
};

}  // namespace

Stmt TransposeLoads(const Stmt& stmt, const target::Target& target) {
  // Other targets have strided loads, or no suitable shuffles.
  if (!target.Has(target::Capability::kTransposingShuffles)) return stmt;
  return Transposer().Mutate(stmt);
}

}  // namespace tilefarm::lower
