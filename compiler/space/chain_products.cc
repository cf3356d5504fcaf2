#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::ExprRv;
using schedule::LoopRv;
using schedule::Schedule;

constexpr int kMaxChainRows = 64;  // in registers

// What makes the rows of a product that are in one of its operands.
struct Chain {
  std::vector<std::string> blocks;  // readers first
  // Indices of the product's loops: those of its rows, the last of which is
  // tiled, and all others.
  std::vector<size_t> rows, others;
};

// Loops around all of a chain, of which the last counts tiles of rows.
struct RowLoops {
  size_t outer = 0;
  std::vector<ExprRv> inner_factors;  // of a tile
};

// Moves producers of `operand` below one row of the product, as long as nothing
// is computed twice. Returns their names, none if there is no product among
// them.
absl::StatusOr<std::vector<std::string>> MakersOfRows(
    const RuleContext& context, Schedule trial, const ir::Buffer& operand,
    LoopRv row) {
  std::vector<std::string> makers;
  std::vector<const ir::BufferNode*> wanted{operand.get()};
  bool product = false;
  for (const std::string& name :
       AllBlockNames(*trial.module().Find(context.function))) {
    TF_ASSIGN_OR_RETURN(const BlockRv block,
                        trial.GetBlock(name, context.function));
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, trial.Get(block));
    if (node->writes.size() != 1 ||
        !absl::c_linear_search(wanted, node->writes[0].buffer.get()) ||
        IsOutput(*trial.module().Find(context.function),
                 node->writes[0].buffer.get())) {
      continue;
    }
    TF_ASSIGN_OR_RETURN(const bool fits, MoveWithoutRepeats(trial, block, row));
    if (!fits) continue;
    makers.push_back(name);
    product |= HasDataReuse(*node);
    for (const ir::BufferRegion& read : node->reads) {
      wanted.push_back(read.buffer.get());
    }
  }
  if (!product) makers.clear();
  return makers;
}

std::vector<LoopRv> RowsFirst(const BlockLoops& loops, const Chain& chain) {
  std::vector<LoopRv> order;
  for (const auto* part : {&chain.rows, &chain.others}) {
    for (const size_t i : *part) order.push_back(loops.rvs[i]);
  }
  return order;
}

// The chain of one of the product's operands; nullopt if there is none.
absl::StatusOr<std::optional<Chain>> FindChain(const RuleContext& context,
                                               Schedule schedule,
                                               BlockRv product) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(product));
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, product));
  for (const ir::BufferRegion& read : node->reads) {
    Chain chain;
    for (size_t i = 0; i < loops.size(); ++i) {
      if (loops[i].iters.size() != 1) return std::optional<Chain>();
      const ir::IterVar& iter =
          node->iters[static_cast<size_t>(loops[i].iters[0])];
      const bool row = iter.type == ir::IterType::kSpatial &&
                       RegionUses(read, iter.var.get());
      (row ? chain.rows : chain.others).push_back(i);
    }
    // The last loop of the rows is worth tiling.
    while (!chain.rows.empty() && loops[chain.rows.back()].extent == 1) {
      chain.others.insert(chain.others.begin(), chain.rows.back());
      chain.rows.pop_back();
    }
    Schedule trial = schedule;
    if (chain.rows.empty() || !trial.Reorder(RowsFirst(loops, chain)).ok()) {
      continue;
    }
    TF_ASSIGN_OR_RETURN(chain.blocks,
                        MakersOfRows(context, std::move(trial), read.buffer,
                                     loops.rvs[chain.rows.back()]));
    if (!chain.blocks.empty()) return std::optional<Chain>(std::move(chain));
  }
  return std::optional<Chain>();
}

// Tiles of the last product of a chain. All but the last loop of its rows stay
// whole; `rows` says where the chain is computed.
absl::StatusOr<Tiles> TileLast(Schedule& schedule, BlockRv product,
                               const Chain& chain, RowLoops& rows) {
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, product));
  Tiles tiles;
  rows.outer = chain.rows.size();
  for (const size_t i : chain.rows) {
    if (i != chain.rows.back()) {
      tiles.spatial[0].push_back(loops.rvs[i]);
      continue;
    }
    TF_ASSIGN_OR_RETURN(const std::vector<ExprRv> factors,
                        SampleTiles(schedule, loops.rvs[i],
                                    Tiles::kSpatialLevels, kMaxChainRows));
    TF_RETURN_IF_ERROR(tiles.Split(schedule, loops.rvs[i], false, factors));
    rows.inner_factors.assign(factors.begin() + 1, factors.end());
  }
  for (const size_t i : chain.others) {
    TF_RETURN_IF_ERROR(tiles.Sample(schedule, loops.rvs[i], loops[i].sums));
  }
  TF_RETURN_IF_ERROR(tiles.Reorder(schedule));
  return tiles;
}

// Tiles of a product that is computed below `rows`: the same rows as the last
// one, for each tile of which it makes what is read.
absl::StatusOr<Tiles> TileInner(Schedule& schedule, BlockRv product,
                                const RowLoops& rows) {
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, product));
  const auto shares = [&](size_t a, size_t b) {
    return absl::c_any_of(loops[a].iters, [&](int iter) {
      return absl::c_linear_search(loops[b].iters, iter);
    });
  };
  Tiles tiles;
  for (size_t i = rows.outer; i < loops.size(); ++i) {
    if (shares(i, rows.outer - 1)) {
      TF_ASSIGN_OR_RETURN(
          const std::vector<LoopRv> parts,
          schedule.Split(loops.rvs[i], {rows.inner_factors.begin(),
                                        rows.inner_factors.end()}));
      for (size_t level = 0; level < parts.size(); ++level) {
        tiles.spatial[level + 1].push_back(parts[level]);
      }
      continue;
    }
    bool whole = false;
    for (size_t above = 0; above + 1 < rows.outer; ++above) {
      whole |= shares(i, above);
    }
    if (whole) {
      tiles.spatial[0].push_back(loops.rvs[i]);
    } else {
      TF_RETURN_IF_ERROR(tiles.Sample(schedule, loops.rvs[i], loops[i].sums));
    }
  }
  TF_RETURN_IF_ERROR(tiles.Reorder(schedule));
  return tiles;
}

// One way to compute the chain below tiles of the product's rows.
absl::Status ComputeByTiles(const RuleContext& context, Schedule& schedule,
                            BlockRv product, const Chain& chain, TilingWay way,
                            bool pack_inner) {
  RowLoops rows;
  TF_RETURN_IF_ERROR(
      TileProduct(schedule, product, way, [&](Schedule& tiled, BlockRv block) {
        return TileLast(tiled, block, chain, rows);
      }));
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> loops,
                      schedule.GetLoops(product));
  const LoopRv outer = loops[rows.outer - 1];
  const auto move = [&](BlockRv block) {
    return schedule.ComputeAt(block, outer, /*preserve_unit_loops=*/true);
  };
  // Copies are made while the blocks have their own loops, so that candidates
  // need no replay (cost_model/skeleton).
  std::vector<std::pair<BlockRv, TilingWay>> products;
  for (const std::string& name : chain.blocks) {
    TF_ASSIGN_OR_RETURN(const BlockRv block,
                        schedule.GetBlock(name, context.function));
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
    if (HasDataReuse(*node)) {
      TilingWay inner{.packing = FindPacking(
                          *schedule.module().Find(context.function), *node),
                      .pack = pack_inner,
                      .write_level = way.write_level};
      if (inner.write_level >= 0) {
        TF_ASSIGN_OR_RETURN(inner.writer,
                            schedule.CacheWrite(block, 0, "global"));
        TF_RETURN_IF_ERROR(move(*inner.writer));
      }
      if (inner.pack) {
        if (inner.packing.operand < 0) {
          return absl::FailedPreconditionError("no operand to pack");
        }
        TF_ASSIGN_OR_RETURN(
            inner.copy,
            schedule.CacheRead(block, inner.packing.operand, "global"));
      }
      products.emplace_back(block, std::move(inner));
    }
    TF_RETURN_IF_ERROR(move(block));
  }
  for (const auto& [block, inner] : products) {
    TF_RETURN_IF_ERROR(TileProduct(schedule, block, inner,
                                   [&](Schedule& tiled, BlockRv product) {
                                     return TileInner(tiled, product, rows);
                                   }));
  }
  return absl::OkStatus();
}

// Gives the sums and maxima of rows partial results in vector lanes.
absl::Status FactorReductions(const RuleContext& context, Schedule& schedule,
                              const Chain& chain) {
  for (const std::string& name : chain.blocks) {
    TF_ASSIGN_OR_RETURN(const BlockRv block,
                        schedule.GetBlock(name, context.function));
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
    if (!IsReduction(*node) || HasDataReuse(*node)) continue;
    Schedule attempt = schedule;
    if (FactorReduction(attempt, block, /*inner=*/true).ok()) {
      schedule = std::move(attempt);
    }
  }
  return absl::OkStatus();
}

}  // namespace

// A second alternative for a product whose rows another product makes, such as
// attention: for each tile of rows, all from the first product to the last, so
// that what is between them stays in the caches.
//
//   for i, j, d: S[i, j] += Q[i, d] * K[j, d]      for i0:
//   for i, j:    M[i] = max(M[i], S[i, j])           for i1, j, d: S[..] += ..
//   for i, j:    P[i, j] = exp(S[i, j] - M[i])   ->  for i1, j:    M[..] = ..
//   for i, e, j: O[i, e] += P[i, j] * V[j, e]        for i1, j:    P[..] = ..
//                                                    for i1, e, j: O[..] += ..
Alternatives ChainProducts(const RuleContext& context, RuleSite site) {
  if (!HasDataReuse(*site.node) || !WritesAtVariables(*site.node)) {
    return DoesNotApply();
  }
  TF_ASSIGN_OR_RETURN(std::optional<Chain> chain,
                      FindChain(context, site.schedule, site.block));
  if (!chain) return DoesNotApply();
  TF_RETURN_IF_ERROR(FactorReductions(context, site.schedule, *chain));
  TF_ASSIGN_OR_RETURN(chain, FindChain(context, site.schedule, site.block));
  if (!chain) return DoesNotApply();
  std::vector<Schedule> results;
  for (const bool pack : {true, false}) {
    for (const bool pack_inner : {true, false}) {
      for (const int write_level : {1, -1}) {
        Schedule attempt = site.schedule;
        const TilingWay way{
            .packing = FindPacking(*attempt.module().Find(context.function),
                                   *site.node),
            .pack = pack,
            .write_level = write_level,
            .fuse = true};
        if (ComputeByTiles(context, attempt, site.block, *chain, way,
                           pack_inner)
                .ok()) {
          results.push_back(std::move(attempt));
        }
      }
    }
  }
  if (results.empty()) return DoesNotApply();
  results.push_back(std::move(site.unchanged));
  return results;
}

}  // namespace tilefarm::space
