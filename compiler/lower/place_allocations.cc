#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/allocation_regions.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ForNode;
using ir::Stmt;

struct Placement {
  const ForNode* loop;
  Box box;  // of all accesses in one iteration
  // How each dimension's offsets are numbered without gaps, the largest scale
  // first; empty: there are no gaps.
  std::vector<std::vector<Digit>> digits = {};
};

Box WholeBox(const ir::BufferNode& buffer) {
  Box box;
  box.first.resize(buffer.shape.size());
  box.extent = buffer.shape;
  box.offset.resize(buffer.shape.size());
  return box;
}

// What a store writes where conditions hold that each iteration of the loops
// around the buffer decides.
struct GuardedBox {
  Box box;
  const std::vector<Expr>* conditions;
};

// Whether the conditions are the same for all of an iteration of
// loops[0..depth].
bool AreFixedIn(const Access& access, size_t depth) {
  return std::ranges::none_of(access.conditions, [&](const Expr& condition) {
    bool loads = false;
    ir::PostOrderExprs(condition, [&](const Expr& e) {
      loads |= e->kind == ir::ExprKind::kLoad;
    });
    if (loads) return true;
    for (size_t i = depth + 1; i < access.loops.size(); ++i) {
      if (ir::UsesVar(condition, access.loops[i]->var.get())) return true;
    }
    return false;
  });
}

// Whether all of these are among the access's own.
bool HasConditions(const Access& access, const std::vector<Expr>& conditions) {
  return std::ranges::all_of(conditions, [&](const Expr& condition) {
    return std::ranges::any_of(access.conditions, [&](const Expr& own) {
      return SameExpr(own, condition);
    });
  });
}

// The innermost loop of `body` that can own the buffer; nullopt: only the
// statement around `body` can. Binds more variables in `math`.
std::optional<Placement> Place(const Buffer& buffer, const Stmt& body,
                               IndexMath& math) {
  const std::vector<Access> accesses = AccessesOf(buffer.get(), body, math);
  if (accesses.empty()) return std::nullopt;
  size_t common = accesses[0].loops.size();
  for (const Access& access : accesses) {
    common = std::min(common, access.loops.size());
    // An init may move out of the loops of its reduction.
    if (access.initialised_from > 0) {
      common = std::min(common, access.initialised_from - 1);
    }
    while (common > 0 &&
           !std::equal(access.loops.begin(), access.loops.begin() + common,
                       accesses[0].loops.begin())) {
      --common;
    }
  }
  const bool shared = ir::IsInShared(*buffer);
  const bool read = std::ranges::any_of(
      accesses, [](const Access& access) { return !access.store; });
  for (size_t depth = common; depth-- > 0;) {
    bool owned = true;
    std::vector<Box> written;
    std::vector<GuardedBox> stored;
    std::optional<Box> all;
    std::vector<std::vector<Linear>> offsets(buffer->shape.size());
    for (const Access& access : accesses) {
      // Of the threads that read what is shared, the last ones may have less.
      auto box = RegionBelow(math, access, depth,
                             {.within_conditions = shared && !access.store});
      // Nobody reads what an iteration stores anywhere in its own copy.
      if (!box && !read) box = WholeBox(*buffer);
      if (!box) {
        owned = false;
        break;
      }
      if (access.store) {
        if (access.IsCertainIn(depth)) {
          if (AreFixedIn(access, depth)) {
            stored.push_back({*box, &access.conditions});
          }
          if (auto filled = FilledBox(math, access, depth)) {
            written.push_back(*std::move(filled));
          }
        }
      } else {
        owned &= std::ranges::any_of(stored,
                                     [&](const GuardedBox& region) {
                                       return Contains(region.box, *box) &&
                                              HasConditions(access,
                                                            *region.conditions);
                                     }) ||
                 std::ranges::any_of(written, [&](const Box& region) {
                   return Covers(math, *buffer, region, *box);
                 });
      }
      // What is shared has room for every thread's part.
      if (shared) {
        box = RegionBelow(math, access, depth,
                          {.all_threads = true, .within_conditions = true});
      }
      owned &= box.has_value();
      if (!owned) break;
      for (size_t d = 0; d < box->offset.size(); ++d) {
        Linear offset = box->offset[d];
        offset.Add(box->first[d], 1);
        offsets[d].push_back(std::move(offset));
      }
      if (!all) {
        all = box;
        continue;
      }
      for (size_t d = 0; d < box->first.size(); ++d) {
        const auto shift = Distance(all->first[d], box->first[d]);
        if (!shift) {
          // Incomparable starts: keep the whole dimension.
          all->first[d] = Linear();
          all->extent[d] = buffer->shape[d];
          continue;
        }
        const int64_t low = std::min<int64_t>(0, *shift);
        const int64_t high = std::max(all->extent[d], *shift + box->extent[d]);
        all->first[d].constant += low;
        all->extent[d] = high - low;
      }
    }
    if (!owned) continue;
    for (size_t d = 0; d < all->extent.size(); ++d) {
      if (all->extent[d] < buffer->shape[d]) continue;
      all->first[d] = Linear();
      all->extent[d] = buffer->shape[d];
    }
    Placement placement{accesses[0].loops[depth], *std::move(all)};
    // Registers are few: they hold no elements that nobody accesses.
    if (ir::ScopeOf(*buffer) != ir::MemoryScope::kLocal) return placement;
    for (size_t d = 0; d < offsets.size(); ++d) {
      for (Linear& offset : offsets[d]) {
        offset.Add(placement.box.first[d], -1);
      }
      placement.digits.push_back(
          DigitsWithoutGaps(math, offsets[d], placement.box.extent[d]));
    }
    return placement;
  }
  return std::nullopt;
}

// Replaces the indices of one buffer by those within the placement's box.
class Compactor : public ir::Mutator {
 public:
  Compactor(const Buffer& buffer, Buffer compact, const Placement& placement)
      : buffer_(buffer), compact_(std::move(compact)), placement_(placement) {}
  using Mutator::Mutate;

 protected:
  Buffer MutateBuffer(const Buffer& buffer) override {
    return buffer == buffer_ ? compact_ : buffer;
  }
  Stmt MutateBlock(const ir::BlockNode& s, const Stmt&) override {
    ir::BlockNode block(s);
    // Declared regions still refer to the original buffer, so drop them.
    const auto drop = [&](std::vector<ir::BufferRegion>& regions) {
      std::erase_if(regions, [&](const ir::BufferRegion& region) {
        return region.buffer == buffer_;
      });
    };
    drop(block.reads);
    drop(block.writes);
    for (ir::IterVar& iter : block.iters) iter.binding = Mutate(iter.binding);
    block.predicate = Mutate(s.predicate);
    if (s.init != nullptr) block.init = Mutate(s.init);
    block.body = Mutate(s.body);
    return ir::BlockOf(std::move(block));
  }
  Expr MutateLoad(const ir::LoadNode& e, const Expr& self) override {
    if (e.buffer != buffer_) return Mutator::MutateLoad(e, self);
    return ir::Load(compact_, Shifted(e.indices));
  }
  Stmt MutateStore(const ir::StoreNode& s, const Stmt& self) override {
    if (s.buffer != buffer_) return Mutator::MutateStore(s, self);
    return ir::MakeStore(compact_, Shifted(s.indices), Mutate(s.value));
  }

 private:
  std::vector<Expr> Shifted(const std::vector<Expr>& indices) {
    std::vector<Expr> out;
    for (size_t d = 0; d < indices.size(); ++d) {
      const Expr offset = Mutate(indices[d]) - placement_.box.first[d].ToExpr();
      if (placement_.digits.empty() || placement_.digits[d].empty()) {
        out.push_back(offset);
        continue;
      }
      Expr number = ir::IntConst(0);
      int64_t above = 0;  // the scale of the digit before
      for (const Digit& digit : placement_.digits[d]) {
        Expr value = ir::FloorDiv(offset, ir::IntConst(digit.scale));
        if (above != 0) {
          value = ir::FloorMod(value, ir::IntConst(above / digit.scale));
        }
        number = number * digit.count + value;
        above = digit.scale;
      }
      out.push_back(std::move(number));
    }
    return out;
  }

  const Buffer buffer_;
  const Buffer compact_;
  const Placement& placement_;
};

class LoopBodyAllocator : public ir::Mutator {
 public:
  LoopBodyAllocator(const Buffer& buffer, const Placement& placement)
      : buffer_(buffer), placement_(placement) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    if (&s != placement_.loop) return Mutator::MutateFor(s, self);
    ir::BufferNode shrunk(*buffer_);
    shrunk.shape = placement_.box.extent;
    for (size_t d = 0; d < placement_.digits.size(); ++d) {
      if (placement_.digits[d].empty()) continue;
      shrunk.shape[d] = 1;
      for (const Digit& digit : placement_.digits[d]) {
        shrunk.shape[d] *= digit.count;
      }
    }
    const Buffer compact =
        std::make_shared<const ir::BufferNode>(std::move(shrunk));
    Stmt body = Compactor(buffer_, compact, placement_).Mutate(s.body);
    return std::make_shared<const ForNode>(
        s.var, s.min, s.extent, s.for_kind,
        ir::MakeAlloc(compact, std::move(body)), s.annotations, s.thread_tag);
  }

 private:
  const Buffer& buffer_;
  const Placement& placement_;
};

// The allocations of all blocks, innermost first.
class AllocationPlacer : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    const size_t mark = math_.Mark();
    BindLoop(math_, s);
    Stmt out = Mutator::MutateFor(s, self);
    math_.Restore(mark);
    return out;
  }

  Stmt MutateBlock(const ir::BlockNode& s, const Stmt& self) override {
    const size_t mark = math_.Mark();
    for (const ir::IterVar& iter : s.iters) {
      const auto min = ir::AsInt(iter.dom.min);
      const auto extent = ir::AsInt(iter.dom.extent);
      if (min && extent && *extent > 0) {
        math_.Bind(iter.var.get(), *min, *min + *extent - 1);
      }
    }
    const Stmt changed = Mutator::MutateBlock(s, self);
    // Values that an init writes are also used by later instances.
    if (s.allocs.empty() || s.init != nullptr) {
      math_.Restore(mark);
      return changed;
    }
    ir::BlockNode block(*ir::As<ir::BlockNode>(changed));
    block.allocs.clear();
    for (const Buffer& buffer : s.allocs) {
      const size_t outside = math_.Mark();
      const auto placement = Place(buffer, block.body, math_);
      math_.Restore(outside);
      if (!placement) {
        block.allocs.push_back(buffer);
        continue;
      }
      block.body = LoopBodyAllocator(buffer, *placement).Mutate(block.body);
    }
    math_.Restore(mark);
    return ir::BlockOf(std::move(block));
  }

 private:
  IndexMath math_;
};

}  // namespace

Stmt PlaceAllocations(const Stmt& root) {
  return AllocationPlacer().Mutate(root);
}

}  // namespace tilefarm::lower
