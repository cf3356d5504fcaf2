#include "compiler/ir/regions.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/affine.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::ir {
namespace {

// The hull of a buffer's accesses: inclusive bounds per dimension, or none if
// the accesses have no common affine bounds.
struct Region {
  Buffer buffer;
  struct Dim {
    Expr low, high;  // null: the whole dimension
  };
  std::vector<Dim> dims;
};

// Buffers in order of first access, with the hull of their accesses.
class RegionSet {
 public:
  void Add(const Buffer& buffer, std::vector<Region::Dim> dims) {
    const auto [found, inserted] =
        index_.emplace(buffer.get(), regions_.size());
    if (inserted) {
      regions_.push_back({buffer, std::move(dims)});
      return;
    }
    Region& region = regions_[found->second];
    for (size_t i = 0; i < region.dims.size(); ++i) {
      Extend(region.dims[i], dims[i]);
    }
  }

  std::vector<BufferRegion> Finish(
      const std::unordered_set<const BufferNode*>& excluded) const {
    std::vector<BufferRegion> out;
    for (const Region& region : regions_) {
      if (excluded.contains(region.buffer.get())) continue;
      BufferRegion hull{region.buffer, {}};
      for (size_t i = 0; i < region.dims.size(); ++i) {
        const auto& [low, high] = region.dims[i];
        std::optional<int64_t> length;
        if (low != nullptr) length = ConstDifference(high, low);
        // Guarded or dead accesses may exceed the buffer: use all of the
        // dimension.
        const auto start = low != nullptr ? AsInt(low) : std::nullopt;
        const bool beyond =
            length && start &&
            (*start < 0 || *start > region.buffer->shape[i] - 1 -
                                        std::max<int64_t>(*length, 0));
        if (length && *length >= 0 && !beyond) {
          hull.region.push_back({low, IntConst(*length + 1)});
        } else {
          hull.region.push_back(
              {IntConst(0), IntConst(region.buffer->shape[i])});
        }
      }
      out.push_back(std::move(hull));
    }
    return out;
  }

  const std::vector<Region>& regions() const { return regions_; }

 private:
  static void Extend(Region::Dim& hull, const Region::Dim& other) {
    if (hull.low == nullptr) return;
    if (other.low == nullptr) {
      hull = {};
      return;
    }
    const auto below = ConstDifference(other.low, hull.low);
    const auto above = ConstDifference(other.high, hull.high);
    if (!below || !above) {
      hull = {};
      return;
    }
    if (*below < 0) hull.low = other.low;
    if (*above > 0) hull.high = other.high;
  }

  std::vector<Region> regions_;
  std::unordered_map<const BufferNode*, size_t> index_;
};

class AccessDetector : public Visitor {
 public:
  RegionSet reads, writes;

  void Run(const BlockNode& block) {
    if (block.init != nullptr) Visit(InitAtStart(block));
    Visit(block.body);
  }

 protected:
  using Visitor::Visit;

  void VisitLoad(const LoadNode& load) override {
    reads.Add(load.buffer, Points(load.indices));
    Visitor::VisitLoad(load);
  }

  void VisitStore(const StoreNode& store) override {
    writes.Add(store.buffer, Points(store.indices));
    Visit(store.value);
    for (const Expr& index : store.indices) Visit(index);
    if (store.predicate != nullptr) Visit(store.predicate);
  }

  void VisitFor(const ForNode& loop) override {
    const auto min = AsInt(loop.min);
    const auto extent = AsInt(loop.extent);
    if (min && extent) {
      bounds_[loop.var.get()] = {*min, *min + *extent - 1};
    } else {
      unknown_.insert(loop.var.get());
    }
    Visit(loop.body);
    bounds_.erase(loop.var.get());
    unknown_.erase(loop.var.get());
  }

  // A nested block's declared regions represent its body.
  void VisitBlock(const BlockNode& block) override {
    VarMap bindings;
    for (const IterVar& iter : block.iters) {
      bindings[iter.var.get()] = iter.binding;
    }
    for (const BufferRegion& region : block.reads) {
      reads.Add(region.buffer, Ranges(region, bindings));
    }
    for (const BufferRegion& region : block.writes) {
      writes.Add(region.buffer, Ranges(region, bindings));
    }
  }

  void VisitLetStmt(const LetStmtNode& let) override {
    Visit(let.value);
    lets_[let.var.get()] = Substitute(let.value, lets_);
    Visit(let.body);
  }

  void VisitLet(const LetNode& let) override {
    Visit(let.value);
    lets_[let.var.get()] = Substitute(let.value, lets_);
    Visit(let.body);
  }

 private:
  // Indices with function calls or floats, or with loops without constant
  // bounds, may be anywhere in the buffer.
  bool IsTractable(const Expr& index) const {
    bool tractable = true;
    PostOrderExprs(index, [&](const Expr& e) {
      const auto* var = As<VarNode>(e);
      tractable &= e->kind != ExprKind::kCall && !e->dtype.is_float() &&
                   (var == nullptr || !unknown_.contains(var));
    });
    return tractable;
  }

  Region::Dim Bounds(const Expr& low, const Expr& high) const {
    const Expr first = Substitute(low, lets_);
    const Expr last = Substitute(high, lets_);
    if (!IsTractable(first) || !IsTractable(last)) return {};
    const auto lows = BoundsOver(first, bounds_);
    const auto highs = first == last ? lows : BoundsOver(last, bounds_);
    if (!lows || !highs) return {};
    return {lows->first, highs->second};
  }

  std::vector<Region::Dim> Points(const std::vector<Expr>& indices) const {
    std::vector<Region::Dim> out;
    for (const Expr& index : indices) out.push_back(Bounds(index, index));
    return out;
  }

  std::vector<Region::Dim> Ranges(const BufferRegion& region,
                                  const VarMap& bindings) const {
    std::vector<Region::Dim> out;
    for (const Range& range : region.region) {
      const Expr min = Substitute(range.min, bindings);
      const Expr extent = Substitute(range.extent, bindings);
      const Expr last =
          IsConstInt(extent, 1) ? min : (min + extent) - int64_t{1};
      out.push_back(Bounds(min, last));
    }
    return out;
  }

  VarBounds bounds_;  // loops inside of the block
  std::unordered_set<const VarNode*> unknown_;
  VarMap lets_;
};

}  // namespace

Accesses DetectAccesses(const BlockNode& block) {
  AccessDetector detector;
  detector.Run(block);
  std::unordered_set<const BufferNode*> excluded;
  for (const Buffer& buffer : block.allocs) excluded.insert(buffer.get());
  Accesses out;
  out.writes = detector.writes.Finish(excluded);
  // A block with an init initialises its own accumulator, so reading it back is
  // not a read from outside.
  if (block.init != nullptr) {
    for (const Region& region : detector.writes.regions()) {
      excluded.insert(region.buffer.get());
    }
  }
  out.reads = detector.reads.Finish(excluded);
  return out;
}

Stmt InitAtStart(const BlockNode& block) {
  VarMap starts;
  for (const IterVar& iter : block.iters) {
    if (iter.type == IterType::kReduce) starts[iter.var.get()] = iter.dom.min;
  }
  return Substitute(block.init, starts);
}

BlockPtr BlockWithAccesses(BlockNode block) {
  Accesses accesses = DetectAccesses(block);
  block.reads = std::move(accesses.reads);
  block.writes = std::move(accesses.writes);
  return BlockOf(std::move(block));
}

bool RegionsCover(const std::vector<BufferRegion>& declared,
                  const std::vector<BufferRegion>& detected) {
  const auto covers = [](const BufferRegion& outer, const BufferRegion& inner) {
    if (outer.buffer != inner.buffer) return false;
    for (size_t i = 0; i < outer.region.size(); ++i) {
      const Range& a = outer.region[i];
      const Range& b = inner.region[i];
      if (IsConstInt(a.min, 0) &&
          IsConstInt(a.extent, outer.buffer->shape[i])) {
        continue;
      }
      const auto before = ConstDifference(b.min, a.min);
      const auto after = ConstDifference(a.min + a.extent, b.min + b.extent);
      if (!before || !after || *before < 0 || *after < 0) return false;
    }
    return true;
  };
  return std::all_of(
      detected.begin(), detected.end(), [&](const BufferRegion& inner) {
        return std::any_of(
            declared.begin(), declared.end(),
            [&](const BufferRegion& outer) { return covers(outer, inner); });
      });
}

}  // namespace tilefarm::ir
