#include "compiler/lower/warpgroup_chain.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/thread_axis.h"
#include "compiler/ir/visitor.h"
#include "compiler/ir/warpgroup_product.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/stage_ring.h"
#include "compiler/lower/warpgroup_fetch.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ForKind;
using ir::ForNode;
using ir::MachineOp;
using ir::Stmt;

bool IsByWarpgroups(const ForNode& loop) {
  const auto found = loop.annotations.find(ir::kWarpMatrix);
  const std::string* value =
      found == loop.annotations.end() ? nullptr : found->second.AsString();
  return value != nullptr && *value == ir::kByWarpgroups;
}

bool WritesShared(const Stmt& stmt) {
  bool writes = false;
  ir::PreOrder(stmt, [&](const Stmt& s) {
    const auto* store = ir::As<ir::StoreNode>(s);
    writes |= store != nullptr &&
              ir::ScopeOf(*store->buffer) == ir::MemoryScope::kShared;
    return !writes;
  });
  return writes;
}

bool IsShared(const Stmt& stmt) {
  const auto* alloc = ir::As<ir::AllocNode>(stmt);
  return alloc != nullptr &&
         ir::ScopeOf(*alloc->buffer) == ir::MemoryScope::kShared;
}

// Statements by what takes their places. Of allocations in shared memory only
// the bodies are left.
class StmtReplacer : public ir::Mutator {
 public:
  explicit StmtReplacer(std::map<const ir::StmtNode*, Stmt> by)
      : by_(std::move(by)) {}
  Expr Mutate(const Expr& expr) override { return expr; }
  Stmt Mutate(const Stmt& stmt) override {
    const auto found = by_.find(stmt.get());
    if (found != by_.end()) return found->second;
    return IsShared(stmt) ? Mutate(ir::As<ir::AllocNode>(stmt)->body)
                          : Mutator::Mutate(stmt);
  }

 private:
  const std::map<const ir::StmtNode*, Stmt> by_;
};

class ChainLowering {
 public:
  ChainLowering(const ForNode& loop, const std::vector<Stmt>& path,
                const std::vector<ir::ForPtr>& axes, Stmt body)
      : loop_(loop), path_(path), axes_(axes), body_(std::move(body)) {}

  absl::StatusOr<Stmt> Lower(const target::GpuLimits& limits) {
    if (!limits.warpgroup_products) {
      return Refuse(
          "the target has no matrix units of warpgroups (sm_90a has)");
    }
    TF_RETURN_IF_ERROR(FindThreads());
    if ((warps_ + 1) * ir::kWarpLanes > limits.block_threads) {
      return Refuse("a block has no room for one more warp");
    }
    const auto stages = loop_.annotations.at(ir::kWarpgroupStages).AsInt();
    if (!stages || *stages < 1 || *stages > kMostStages) {
      return Refuse(
          absl::StrCat("it needs from 1 to ", kMostStages, " stages"));
    }
    for (const ir::ForPtr& axis : axes_) BindLoop(math_, *axis);
    TF_RETURN_IF_ERROR(SplitPath());
    ring_.emplace(*stages, !once_.empty());
    TF_RETURN_IF_ERROR(SplitLoop());
    return Assemble();
  }

 private:
  absl::Status Refuse(const std::string& why) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "loop ", loop_.var->name, ": chain of warpgroup products: ", why));
  }

  absl::Status FindThreads() {
    for (const ir::ForPtr& axis : axes_) {
      const auto which = ir::ParseThreadAxis(axis->thread_tag);
      if (!ir::IsThreadIdx(*which)) continue;
      const int64_t extent = *ir::AsInt(axis->extent);
      if (which == ir::ThreadAxis::kThreadX && extent == ir::kWarpLanes) {
        lane_ = axis->var;
      } else if (which == ir::ThreadAxis::kThreadY) {
        warp_ = axis->var;
        warps_ = extent;
      } else {
        return Refuse(
            "its threads are to be those of threadIdx.y and 32 of threadIdx.x");
      }
    }
    if (lane_ == nullptr || warp_ == nullptr || warps_ % kWarpsOfGroup != 0) {
      return Refuse(absl::StrCat("it has ", warps_,
                                 " warps, which are no whole warpgroups"));
    }
    if (!ir::AsInt(loop_.extent) || !ir::IsConstInt(loop_.min, 0) ||
        loop_.for_kind != ForKind::kSerial) {
      return Refuse("it is no serial loop of constant extent from 0 on");
    }
    return absl::OkStatus();
  }

  // The loop's body as copies and what uses them.
  absl::Status SplitLoop() {
    Stmt body = loop_.body;
    std::vector<Buffer> shared;
    while (const auto* alloc = ir::As<ir::AllocNode>(body)) {
      if (IsShared(body)) {
        shared.push_back(alloc->buffer);
      } else {
        locals_.push_back(alloc->buffer);
      }
      body = alloc->body;
    }
    const auto* seq = ir::As<ir::SeqNode>(body);
    if (seq == nullptr) return Refuse("its body is one statement");
    for (const Stmt& stmt : seq->stmts) {
      if (!WritesShared(stmt)) {
        uses_.push_back(stmt);
        continue;
      }
      const StoreNest nest = NestOf(stmt);
      if (nest.store == nullptr ||
          !std::ranges::count(shared, nest.store->buffer)) {
        return Refuse(
            "it writes shared memory other than by copies to its own tiles");
      }
      absl::StatusOr<WarpgroupOperand> copy =
          MatchFetch(nest, loop_, std::nullopt, math_);
      if (!copy.ok()) return Refuse(std::string(copy.status().message()));
      const std::string why = WhyNoTile(*copy);
      if (!why.empty()) {
        return Refuse(absl::StrCat("the tile ", copy->tile->name, ": ", why));
      }
      copies_.push_back(*std::move(copy));
    }
    if (copies_.size() != shared.size() || copies_.empty()) {
      return Refuse("not one copy fills each of its tiles");
    }
    TF_RETURN_IF_ERROR(CheckUses());
    for (size_t i = uses_.size(); i-- > 0;) Annotate(i);
    return absl::OkStatus();
  }

  // Says of a product whether its sums are all 0 before, which then need not be
  // set, and whether both of its operands are tiles.
  void Annotate(size_t i) {
    if (CountChainProducts(uses_[i]) == 0) return;
    ir::AttrMap more;
    if (i > 0 && IsZeroed(NestOf(uses_[i - 1]), NestOf(uses_[i]))) {
      more[ir::kStartsSums] = 1;
      uses_[i - 1] = ir::NoOp();
    }
    if (TileReads(uses_[i]) > 1) {
      more[ir::kFirstInTile] = 1;
    } else {
      more[ir::kTile] = ir::Attr(TileOf(uses_[i])->name);
    }
    class Annotator : public ir::Mutator {
     public:
      explicit Annotator(const ir::AttrMap& more) : more_(more) {}
      using Mutator::Mutate;
      Expr Mutate(const Expr& expr) override { return expr; }

     protected:
      Stmt MutateFor(const ForNode& s, const Stmt& self) override {
        if (!IsByWarpgroups(s)) return Mutator::MutateFor(s, self);
        ir::AttrMap annotations = s.annotations;
        annotations.insert(more_.begin(), more_.end());
        return std::make_shared<const ForNode>(
            s.var, s.min, s.extent, s.for_kind, s.body, std::move(annotations),
            s.thread_tag);
      }

     private:
      const ir::AttrMap& more_;
    };
    uses_[i] = Annotator(more).Mutate(uses_[i]);
  }

  static bool IsZeroed(const StoreNest& init, const StoreNest& nest) {
    if (init.store == nullptr || init.store->buffer != nest.store->buffer ||
        !init.conditions.empty()) {
      return false;
    }
    const auto* zero = ir::As<ir::FloatConstNode>(init.store->value);
    return zero != nullptr && zero->value == 0 &&
           CoversBuffer(init, *init.store->buffer, init.store->indices) &&
           CoversBuffer(nest, *nest.store->buffer, nest.store->indices);
  }

  // Tiles are read by products alone, which all threads reach.
  absl::Status CheckUses() const {
    for (const Stmt& stmt : uses_) {
      const bool product = CountChainProducts(stmt) > 0;
      const StoreNest nest = NestOf(stmt);
      if (product && (nest.store == nullptr || !nest.conditions.empty())) {
        return Refuse("a product is not alone in its loops");
      }
      if (product && HasNameOfTile(stmt)) {
        return Refuse("another operand has the name of a tile");
      }
      const int tiles = TileReads(stmt);
      if ((tiles > 0) != product) {
        return Refuse(product ? "a product has no tile as an operand"
                              : "a tile is read by no product of the unit");
      }
    }
    return absl::OkStatus();
  }

  int TileReads(const Stmt& stmt) const {
    int reads = 0;
    ir::PostOrderExprs(stmt, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      reads += load != nullptr && IsTile(load->buffer);
    });
    return reads;
  }
  // One that the statement reads.
  Buffer TileOf(const Stmt& stmt) const {
    Buffer tile;
    ir::PostOrderExprs(stmt, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      if (load != nullptr && IsTile(load->buffer)) tile = load->buffer;
    });
    return tile;
  }
  // Names tell operands apart when buffers are flat.
  bool HasNameOfTile(const Stmt& stmt) const {
    const Buffer tile = TileOf(stmt);
    bool has = false;
    ir::PostOrderExprs(stmt, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      has |= load != nullptr && tile != nullptr && load->buffer != tile &&
             load->buffer->name == tile->name;
    });
    return has;
  }
  bool IsTile(const Buffer& buffer) const {
    const auto is_tile = [&](const WarpgroupOperand& copy) {
      return copy.tile == buffer;
    };
    return std::ranges::any_of(copies_, is_tile) ||
           std::ranges::any_of(once_, is_tile);
  }

  // What is around the loop: only sequences and allocations. Statements before
  // it that share are moved ahead.
  absl::Status SplitPath() {
    for (const Stmt& stmt : path_) {
      if (IsShared(stmt)) {
        shared_.push_back(ir::As<ir::AllocNode>(stmt)->buffer);
      }
      if (const auto* seq = ir::As<ir::SeqNode>(stmt)) {
        bool before = true;
        for (const Stmt& one : seq->stmts) {
          before &= one.get() != &loop_ && !std::ranges::count(path_, one);
          if (!WritesShared(one) || one.get() == &loop_ ||
              std::ranges::count(path_, one)) {
            continue;
          }
          if (!before) return Refuse("after it shared memory is written");
          TF_RETURN_IF_ERROR(CheckFetch(one));
          ahead_.push_back(one);
          FetchByEngine(one);
        }
      } else if (stmt->kind != ir::StmtKind::kAlloc) {
        return Refuse("loops, conditions or definitions are around it");
      }
    }
    return absl::OkStatus();
  }

  // If the engine can make the copy, and products alone read the tile.
  void FetchByEngine(const Stmt& stmt) {
    const StoreNest nest = NestOf(stmt);
    if (nest.store == nullptr) return;
    absl::StatusOr<WarpgroupOperand> copy =
        MatchFetch(nest, loop_, std::nullopt, math_);
    if (!copy.ok() || !WhyNoTile(*copy).empty()) return;
    once_.push_back(*std::move(copy));
    std::erase(shared_, once_.back().tile);
  }

  // Ahead of the others it must depend on none of them.
  absl::Status CheckFetch(const Stmt& stmt) const {
    bool alone = true;
    ir::PreOrder(stmt, [&](const Stmt& s) {
      const auto* store = ir::As<ir::StoreNode>(s);
      alone &= store == nullptr ||
               ir::ScopeOf(*store->buffer) == ir::MemoryScope::kShared;
      return true;
    });
    ir::PostOrderExprs(stmt, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      alone &= load == nullptr ||
               ir::ScopeOf(*load->buffer) == ir::MemoryScope::kGlobal;
    });
    return alone ? absl::OkStatus()
                 : Refuse("what is shared before it is no copy of tensors");
  }

  // Those of the loop, then those that are fetched once.
  struct Tile {
    const WarpgroupOperand* operand;
    Buffer tiles;
    bool once;
  };

  // The loop of the warps that compute.
  Stmt Consume() const {
    class TileReader : public ir::Mutator {
     public:
      TileReader(const ChainLowering& chain, Expr stage)
          : chain_(chain), stage_(std::move(stage)) {}
      using Mutator::Mutate;

     protected:
      Expr MutateLoad(const ir::LoadNode& load, const Expr& self) override {
        for (const Tile& tile : chain_.tiles_) {
          if (tile.operand->tile != load.buffer) continue;
          const auto wide = WideIndices(*load.buffer, load.indices);
          const Expr row = ir::IntConst(StageRing::RowElements(*tile.operand));
          return ir::Load(tile.tiles,
                          {tile.once ? ir::IntConst(0) : stage_,
                           ir::FloorDiv((*wide)[1], row), (*wide)[0],
                           ir::FloorMod((*wide)[1], row)});
        }
        return self;
      }

     private:
      const ChainLowering& chain_;
      const Expr stage_;
    };
    const Expr iteration = loop_.var;
    TileReader reader(*this, ring_->Stage(iteration));
    std::vector<Stmt> stmts = {ring_->WaitForTiles(iteration)};
    for (const Stmt& stmt : uses_) stmts.push_back(reader.Mutate(stmt));
    stmts.push_back(ring_->Release(ring_->Stage(iteration),
                                   ir::EQ(lane_, ir::IntConst(0))));
    Stmt body = ir::MakeSeq(std::move(stmts));
    for (size_t i = locals_.size(); i-- > 0;) {
      body = ir::MakeAlloc(locals_[i], std::move(body));
    }
    return RingLoop(loop_, std::move(body));
  }

  absl::StatusOr<Stmt> Assemble() {
    std::vector<StageRing::Fetched> fetched, fetched_once;
    for (const WarpgroupOperand& copy : copies_) {
      tiles_.push_back({&copy, ring_->Tiles(copy), false});
      fetched.push_back({&copy, tiles_.back().tiles});
    }
    for (const WarpgroupOperand& copy : once_) {
      tiles_.push_back({&copy, StageRing::TileOnce(copy), true});
      fetched_once.push_back({&copy, tiles_.back().tiles});
    }
    std::map<const ir::StmtNode*, Stmt> instead = {{&loop_, Consume()}};
    for (const Stmt& stmt : ahead_) instead[stmt.get()] = ir::NoOp();
    Stmt consumers = StmtReplacer(std::move(instead)).Mutate(body_);
    TF_RETURN_IF_ERROR(CheckApart(consumers));
    Stmt fetch = RingLoop(loop_, ring_->Fetch(loop_.var, fetched));
    if (!once_.empty()) {
      fetch = ir::MakeSeq({ring_->FetchOnce(fetched_once), std::move(fetch)});
      consumers = ir::MakeSeq({ring_->WaitForOnce(), std::move(consumers)});
    }

    const Expr first_lane = ir::EQ(lane_, ir::IntConst(0));
    std::vector<Stmt> stmts = {ring_->Init(
        ir::And(ir::EQ(warp_, ir::IntConst(0)), first_lane), warps_)};
    for (const Stmt& stmt : ahead_) {
      const bool by_engine =
          std::ranges::any_of(once_, [&](const WarpgroupOperand& copy) {
            return copy.tile == NestOf(stmt).store->buffer;
          });
      if (by_engine) continue;
      stmts.push_back(ir::MakeIf(ir::LT(warp_, ir::IntConst(warps_)), stmt));
    }
    stmts.push_back(Effect(MachineOp::kBarrier, {}));
    const ir::Var role = ir::MakeLetVar("warp", ir::DataType::Index());
    stmts.push_back(std::make_shared<const ir::LetStmtNode>(
        role, ir::MakeMachineOp(MachineOp::kUniform, {warp_}),
        ir::MakeIf(ir::EQ(role, ir::IntConst(warps_)),
                   ir::MakeIf(first_lane, std::move(fetch)),
                   std::move(consumers))));
    Stmt out = ir::MakeAlloc(ring_->barriers(), ir::MakeSeq(std::move(stmts)));
    for (const Buffer& buffer : shared_) {
      out = ir::MakeAlloc(buffer, std::move(out));
    }
    // Aligned to what the swizzle repeats after, they come first.
    for (const Tile& tile : tiles_) {
      out = ir::MakeAlloc(tile.tiles, std::move(out));
    }
    for (size_t i = axes_.size(); i-- > 0;) {
      const ForNode& axis = *axes_[i];
      out = std::make_shared<const ForNode>(
          axis.var, axis.min,
          axis.var == warp_ ? ir::IntConst(warps_ + 1) : axis.extent,
          axis.for_kind, std::move(out), axis.annotations, axis.thread_tag);
    }
    return out;
  }

  // Between the warps that compute there are no barriers: they write no shared
  // memory, and nothing in the kernel may read a tensor that it writes.
  absl::Status CheckApart(const Stmt& consumers) const {
    std::set<const ir::BufferNode*> written;
    ir::PreOrder(consumers, [&](const Stmt& s) {
      const auto* store = ir::As<ir::StoreNode>(s);
      if (store != nullptr &&
          ir::ScopeOf(*store->buffer) != ir::MemoryScope::kLocal) {
        written.insert(store->buffer.get());
      }
      return true;
    });
    bool reads = false, reads_tile = false;
    const auto look = [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      if (load == nullptr) return;
      reads |= written.contains(load->buffer.get());
      reads_tile |= IsTile(load->buffer);
    };
    ir::PostOrderExprs(consumers, look);
    for (const Stmt& stmt : ahead_) ir::PostOrderExprs(stmt, look);
    for (const WarpgroupOperand& copy : copies_) {
      reads |= written.contains(copy.tensor.get());
    }
    if (reads_tile) {
      return Refuse("a tile is read by no product of the unit");
    }
    return reads ? Refuse("threads exchange values outside of its products")
                 : absl::OkStatus();
  }

  static constexpr int64_t kWarpsOfGroup = ir::kWarpgroup / ir::kWarpLanes;

  const ForNode& loop_;
  const std::vector<Stmt>& path_;
  const std::vector<ir::ForPtr>& axes_;
  const Stmt body_;
  IndexMath math_;
  ir::Var lane_, warp_;
  int64_t warps_ = 0;
  std::optional<StageRing> ring_;
  std::vector<Buffer> locals_;  // allocated in the loop
  std::vector<WarpgroupOperand> copies_;
  std::vector<WarpgroupOperand> once_;  // before the loop
  std::vector<Tile> tiles_;
  std::vector<Stmt> uses_;
  std::vector<Stmt> ahead_;     // before the loop
  std::vector<Buffer> shared_;  // that they write
};

}  // namespace

int CountChainProducts(const Stmt& stmt) {
  int count = 0;
  ir::PreOrder(stmt, [&](const Stmt& s) {
    const auto* loop = ir::As<ForNode>(s);
    count += loop != nullptr && IsByWarpgroups(*loop);
    return true;
  });
  return count;
}

absl::StatusOr<Stmt> LowerWarpgroupChain(const ForNode& loop,
                                         const std::vector<Stmt>& path,
                                         const std::vector<ir::ForPtr>& axes,
                                         const Stmt& body,
                                         const target::GpuLimits& limits) {
  return ChainLowering(loop, path, axes, body).Lower(limits);
}

}  // namespace tilefarm::lower
