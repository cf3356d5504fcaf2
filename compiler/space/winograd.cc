#include <algorithm>
#include <optional>

#include "base/status_macros.h"
#include "base/tolerance.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/layout_free.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/winograd_transforms.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::ExprRv;
using schedule::LoopRv;
using schedule::Schedule;

constexpr int kLevels = 4;
constexpr int kMaxTileFactor = 64;
// Of channels: accumulators stay in registers all the while.
constexpr int kMaxChannelFactor = 1024;

// The blocks that the primitive returns, and the one that ends the computation:
// the block itself, or the elementwise consumer it was inlined into.
struct Parts {
  BlockRv kernel, tiles, tile_rows, input, product, product_rows, last;
};

// What the dimensions of the product after the first two (places in a tile)
// are.
enum class DimKind { kBatch, kAxis, kOutput };

bool IsAllowed(const ir::BlockNode& convolution, int tile) {
  return schedule::WinogradError(tile) <= kToleranceFactor &&
         ProductOf(convolution, ir::IterType::kReduce) >=
             schedule::WinogradMinTerms(tile);
}

// The result goes to its consumer at once, where that is the only one.
absl::Status JoinConsumer(Schedule& schedule, BlockRv block, Parts* parts) {
  TF_ASSIGN_OR_RETURN(const std::optional<BlockRv> consumer,
                      FusibleConsumer(schedule, block));
  parts->last = block;
  if (consumer && schedule.ComputeInline(block).ok()) parts->last = *consumer;
  return absl::OkStatus();
}

// A constant kernel is transformed ahead of time.
absl::Status PrepackKernel(Schedule& schedule, const std::string& function,
                           BlockRv kernel) {
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(kernel));
  const ir::PrimFuncPtr program = schedule.module().Find(function);
  if (node->reads.size() != 1) return absl::OkStatus();
  const ir::BufferNode* weight = node->reads[0].buffer.get();
  int readers = 0;
  for (const ir::BlockPtr& block : AllBlocks(*program)) {
    readers += std::ranges::any_of(block->reads, [&](const auto& read) {
      return read.buffer.get() == weight;
    });
  }
  if (readers != 1 || !ir::IsLayoutFree(*program, weight)) {
    return absl::OkStatus();
  }
  return schedule.Annotate(kernel, ir::kPrepack, ir::Attr(1));
}

// The last block's variable behind each dimension of the product, read off its
// load of what the inverse transform along rows made; null where the dimension
// has one element.
std::vector<const ir::VarNode*> VariablesOf(const ir::BlockNode& last,
                                            const ir::Buffer& product_rows) {
  std::vector<const ir::VarNode*> variables;
  ir::PostOrderExprs(last.body, [&](const ir::Expr& expr) {
    const auto* load = ir::As<ir::LoadNode>(expr);
    if (load == nullptr || load->buffer != product_rows || !variables.empty()) {
      return;
    }
    for (const ir::Expr& index : load->indices) {
      const auto* quotient = ir::As<ir::BinaryNode>(index);
      const bool divides =
          quotient != nullptr && quotient->op == ir::BinaryOp::kFloorDiv;
      variables.push_back(ir::As<ir::VarNode>(divides ? quotient->a : index));
    }
  });
  return variables;
}

// The sketch for one tile, after the primitive: see Winograd below.
class Sketcher {
 public:
  Sketcher(const RuleContext& context, int tile, const Parts& parts,
           Schedule& schedule)
      : tile_(tile),
        lanes_(context.target.vector_lanes(4)),
        parts_(parts),
        s_(schedule) {}

  // FailedPrecondition where the program's layout does not suit.
  absl::Status Run() {
    TF_RETURN_IF_ERROR(ReadDims());
    TF_RETURN_IF_ERROR(
        s_.Annotate(parts_.product, kTilingStructure, ir::Attr(kVectorTiles)));
    TF_RETURN_IF_ERROR(TileLast());
    TF_RETURN_IF_ERROR(
        s_.ComputeAt(parts_.product_rows, of_vector_, /*preserve=*/true));
    TF_RETURN_IF_ERROR(
        s_.ComputeAt(parts_.product, of_panel_, /*preserve=*/true));
    TF_RETURN_IF_ERROR(
        s_.ComputeAt(parts_.input, of_group_, /*preserve=*/true));
    TF_RETURN_IF_ERROR(UnrollAndVectorize(parts_.product_rows));
    TF_RETURN_IF_ERROR(TileProduct());
    return PlaceInput();
  }

 private:
  static absl::Status Unsuitable() {
    return absl::FailedPreconditionError("the layout does not suit");
  }

  absl::Status ReadDims() {
    TF_ASSIGN_OR_RETURN(ir::BlockPtr product, s_.Get(parts_.product));
    TF_ASSIGN_OR_RETURN(ir::BlockPtr input, s_.Get(parts_.input));
    TF_ASSIGN_OR_RETURN(ir::BlockPtr tiles, s_.Get(parts_.tiles));
    TF_ASSIGN_OR_RETURN(ir::BlockPtr rows, s_.Get(parts_.product_rows));
    TF_ASSIGN_OR_RETURN(ir::BlockPtr last, s_.Get(parts_.last));
    if (!HasTrivialBindings(*last)) return Unsuitable();
    const std::vector<const ir::VarNode*> variables =
        VariablesOf(*last, rows->writes[0].buffer);
    const ir::BufferRegion* kernel = nullptr;
    TF_ASSIGN_OR_RETURN(ir::BlockPtr maker, s_.Get(parts_.kernel));
    for (const ir::BufferRegion& read : product->reads) {
      if (read.buffer == maker->writes[0].buffer) kernel = &read;
    }
    TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, s_.GetLoops(parts_.last));
    if (kernel == nullptr || loops.size() != last->iters.size()) {
      return Unsuitable();
    }
    std::vector<bool> used(loops.size(), false);
    for (size_t d = 2; d < variables.size(); ++d) {
      const ir::IterVar& iter = product->iters[d];
      const bool is_output = RegionUses(*kernel, iter.var.get());
      Dim dim{is_output ? DimKind::kOutput : DimKind::kBatch, LoopRv{-1}};
      for (size_t i = 0; i < last->iters.size(); ++i) {
        if (last->iters[i].var.get() != variables[d]) continue;
        if (!is_output && IterExtent(last->iters[i]) > IterExtent(iter)) {
          dim.kind = DimKind::kAxis;
        }
        dim.loop = loops[i];
        used[i] = true;
      }
      // An output dimension of one element: its variable is gone.
      if (dim.loop.id < 0 && is_output) return Unsuitable();
      dims_.push_back(dim);
    }
    for (size_t i = 0; i < loops.size(); ++i) {
      if (!used[i]) outer_.push_back(loops[i]);
    }
    channels_ = product->iters.size() - variables.size();
    // Vectors run along the last output dimension, and along the last channels
    // of the data.
    const auto* store = ir::As<ir::StoreNode>(last->body);
    const bool suits =
        store != nullptr && !variables.empty() && channels_ > 0 &&
        dims_.back().kind == DimKind::kOutput && dims_.back().loop.id >= 0 &&
        ir::LastIndex(store->indices).get() == variables.back() &&
        IterExtent(product->iters[variables.size() - 1]) % lanes_ == 0 &&
        IterExtent(input->iters.back()) % lanes_ == 0 &&
        std::ranges::count_if(dims_, [](const Dim& dim) {
          return dim.kind == DimKind::kAxis;
        }) == 2;
    if (!suits) return Unsuitable();
    bool along = true;
    ir::PostOrderExprs(tiles->body, [&](const ir::Expr& expr) {
      const auto* load = ir::As<ir::LoadNode>(expr);
      if (load == nullptr) return;
      along &=
          ir::LastIndex(load->indices).get() == tiles->iters.back().var.get();
    });
    return along ? absl::OkStatus() : Unsuitable();
  }

  // The last block's loops: groups of tiles; panels of outputs; within both,
  // tiles and vectors by the levels that the product has; the elements of both.
  absl::Status TileLast() {
    std::vector<LoopRv> axes, panels, within, levels[kLevels];
    for (Dim& dim : dims_) {
      if (dim.kind == DimKind::kBatch) {
        if (dim.loop.id >= 0) outer_.push_back(dim.loop);
        continue;
      }
      LoopRv loop = dim.loop;
      if (dim.kind == DimKind::kAxis || &dim == &dims_.back()) {
        const int64_t inner = dim.kind == DimKind::kAxis ? tile_ : lanes_;
        TF_ASSIGN_OR_RETURN(std::vector<LoopRv> parts,
                            s_.Split(loop, {std::nullopt, inner}));
        loop = parts[0];
        within.push_back(parts[1]);
      }
      TF_ASSIGN_OR_RETURN(dim.factors,
                          SampleTiles(s_, loop, kLevels, kMaxTileFactor));
      TF_ASSIGN_OR_RETURN(
          std::vector<LoopRv> parts,
          s_.Split(loop, {dim.factors.begin(), dim.factors.end()}));
      (dim.kind == DimKind::kAxis ? axes : panels).push_back(parts[0]);
      for (int level = 1; level < kLevels; ++level) {
        levels[level].push_back(parts[level]);
      }
    }
    of_group_ = axes.back();
    of_panel_ = panels.back();
    of_vector_ = levels[kLevels - 1].back();
    std::vector<LoopRv> order = outer_;
    for (const auto* part :
         {&axes, &panels, &levels[1], &levels[2], &levels[3], &within}) {
      order.insert(order.end(), part->begin(), part->end());
    }
    TF_RETURN_IF_ERROR(s_.Reorder(order));
    TF_RETURN_IF_ERROR(s_.Unroll(within[0]));
    TF_RETURN_IF_ERROR(s_.Unroll(within[1]));
    return s_.Vectorize(within[2]);
  }

  // The loops of a block that was moved, but for those of the place.
  absl::StatusOr<std::vector<LoopRv>> OwnLoops(BlockRv block) {
    TF_ASSIGN_OR_RETURN(ir::BlockPtr node, s_.Get(block));
    TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, s_.GetLoops(block));
    if (loops.size() < node->iters.size()) return Unsuitable();
    loops.erase(loops.begin(),
                loops.end() - static_cast<std::ptrdiff_t>(node->iters.size()));
    return loops;
  }

  // A block at one vector of one tile.
  absl::Status UnrollAndVectorize(BlockRv block) {
    TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, OwnLoops(block));
    TF_RETURN_IF_ERROR(s_.Unroll(loops[0]));
    TF_RETURN_IF_ERROR(s_.Unroll(loops[1]));
    return s_.Vectorize(loops.back());
  }

  // The products: one matrix after another (x, y), each in the tiles of the
  // last block, so that what both tile has the same sizes.
  absl::Status TileProduct() {
    TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, OwnLoops(parts_.product));
    std::vector<LoopRv> order = {loops[0], loops[1]}, spatial[kLevels],
                        reduce[2];
    LoopRv vector{-1};
    // A panel of the kernel stays while rows of tiles change.
    for (const DimKind kind : {DimKind::kOutput, DimKind::kAxis}) {
      for (size_t d = 0; d < dims_.size(); ++d) {
        if (dims_[d].kind != kind) continue;
        std::vector<schedule::Factor> factors(dims_[d].factors.begin() + 1,
                                              dims_[d].factors.end());
        if (d + 1 == dims_.size()) factors.push_back(lanes_);
        TF_ASSIGN_OR_RETURN(std::vector<LoopRv> parts,
                            s_.Split(loops[d + 2], factors));
        if (d + 1 == dims_.size()) vector = parts.back();
        for (int level = 1; level < kLevels; ++level) {
          spatial[level].push_back(parts[level - 1]);
        }
      }
    }
    // In the register tile rows come first, vectors last.
    const auto outputs = std::ranges::count_if(
        dims_, [](const Dim& dim) { return dim.kind == DimKind::kOutput; });
    std::rotate(spatial[3].begin(), spatial[3].begin() + outputs,
                spatial[3].end());
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (dims_[d].kind == DimKind::kBatch) order.push_back(loops[d + 2]);
    }
    for (size_t i = loops.size() - channels_; i < loops.size(); ++i) {
      TF_ASSIGN_OR_RETURN(std::vector<ExprRv> factors,
                          SampleTiles(s_, loops[i], 2, kMaxChannelFactor,
                                      /*reduces=*/true));
      TF_ASSIGN_OR_RETURN(std::vector<LoopRv> parts,
                          s_.Split(loops[i], {factors[0], factors[1]}));
      reduce[0].push_back(parts[0]);
      reduce[1].push_back(parts[1]);
    }
    for (const auto* part :
         {&spatial[1], &reduce[0], &spatial[2], &reduce[1], &spatial[3]}) {
      order.insert(order.end(), part->begin(), part->end());
    }
    order.push_back(vector);
    return s_.Reorder(order);
  }

  // The data's transform: a vector of channels of a tile after the other.
  absl::Status PlaceInput() {
    TF_ASSIGN_OR_RETURN(std::vector<LoopRv> loops, OwnLoops(parts_.input));
    TF_ASSIGN_OR_RETURN(std::vector<LoopRv> vectors,
                        s_.Split(loops.back(), {std::nullopt, lanes_}));
    std::vector<LoopRv> order(loops.begin() + 2, loops.end() - 1);
    order.insert(order.end(), {vectors[0], loops[0], loops[1], vectors[1]});
    TF_RETURN_IF_ERROR(s_.Reorder(order));
    TF_RETURN_IF_ERROR(s_.Unroll(loops[0]));
    TF_RETURN_IF_ERROR(s_.Unroll(loops[1]));
    TF_RETURN_IF_ERROR(s_.Vectorize(vectors[1]));
    for (const BlockRv block : {parts_.tile_rows, parts_.tiles}) {
      TF_RETURN_IF_ERROR(s_.ComputeAt(block, vectors[0], /*preserve=*/true));
      TF_RETURN_IF_ERROR(UnrollAndVectorize(block));
    }
    return absl::OkStatus();
  }

  struct Dim {
    DimKind kind;
    LoopRv loop;                  // of the last block; -1: none
    std::vector<ExprRv> factors;  // of axes and outputs, once sampled
  };

  const int tile_;
  const int64_t lanes_;
  const Parts& parts_;
  Schedule& s_;
  std::vector<Dim> dims_;      // of the product, after the first two
  std::vector<LoopRv> outer_;  // of the last block, that nothing tiles
  size_t channels_ = 0;
  LoopRv of_group_{-1}, of_panel_{-1}, of_vector_{-1};
};

// nullopt where it does not apply.
std::optional<Schedule> WithTile(const RuleContext& context, Schedule schedule,
                                 BlockRv block, int tile) {
  const auto run = [&]() -> absl::Status {
    TF_ASSIGN_OR_RETURN(std::vector<BlockRv> made,
                        schedule.Winograd(block, tile));
    Parts parts{made[0], made[1], made[2], made[3], made[4], made[5], block};
    TF_RETURN_IF_ERROR(JoinConsumer(schedule, block, &parts));
    // Tiles read what padding copies, instead of the copy.
    TF_RETURN_IF_ERROR(InlineProducers(schedule, parts.tiles, UsesIfThenElse));
    TF_RETURN_IF_ERROR(PrepackKernel(schedule, context.function, parts.kernel));
    return Sketcher(context, tile, parts, schedule).Run();
  };
  return run().ok() ? std::optional<Schedule>(std::move(schedule))
                    : std::nullopt;
}

}  // namespace

// Winograd's algorithm as a second way for a 3x3 convolution of stride 1, with
// tiles of 2 x 2 and of 4 x 4 outputs, where the bound on its error is within
// the tolerance of verification. Blocked as in Lavin and Gray (2015), so that
// what the transforms make stays in a near cache:
//
//   kernel: ahead of time, where constant
//   for groups of tiles:
//     for tiles, channels:                       input: tile, rows, columns
//     for panels of outputs:
//       for x, y, tiles, outputs, channels:      product, in register tiles
//       for tiles, outputs:                      product rows, last block
//
// Groups, panels and register tiles are sampled: the last block's loops and the
// product's share the decisions.
Alternatives Winograd(const RuleContext& context, RuleSite site) {
  std::vector<Schedule> results{std::move(site.unchanged)};
  for (const int tile : {2, 4}) {
    if (!IsReduction(*site.node) || !IsAllowed(*site.node, tile)) continue;
    std::optional<Schedule> attempt =
        WithTile(context, site.schedule, site.block, tile);
    if (attempt) results.push_back(*std::move(attempt));
  }
  return results;
}

}  // namespace tilefarm::space
