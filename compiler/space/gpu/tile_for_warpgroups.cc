#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/tensor_box.h"
#include "compiler/ir/visitor.h"
#include "compiler/ir/warpgroup_product.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/cluster_sums.h"
#include "compiler/space/gpu/engine_copies.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/gpu/products.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using ir::Expr;
using schedule::BlockRv;
using schedule::ExprRv;
using schedule::LoopRv;
using schedule::Schedule;

// Threads have the sums that the matrix unit gives them: of 64 rows, 4 warps, 2
// halves and 8 rows; of 8 columns, 4 pairs.
constexpr int64_t kGroupWarps = 4, kHalves = 2, kGroupRows = 8, kPairs = 4,
                  kPair = 2;
// Measured on an H100 (bf16, 4096 and 8192 cubed): two warpgroups with tiles of
// 64 x 256 each and 3 to 5 stages reach cuBLAS. Smaller tiles have more stages:
// what is on its way to a multiprocessor has to be as much.
constexpr int64_t kDefaultGroups = 2, kMinDefaultStages = 4,
                  kMostDefaultStages = 8, kStagedBytes = 128 << 10;
constexpr int64_t kGroupStages[] = {2, 3, 4, 5, 6, 8};
constexpr int64_t kMostColumns = 256, kMostOrder = 16, kDefaultOrder = 8;
// A warpgroup's tile of so many columns uses the unit well; less is for small
// products.
constexpr int64_t kFewColumns = 128;
// The largest number of blocks that are a power of two and have a
// multiprocessor each (132 of an H100).
constexpr int64_t kPersistentBlocks = 128;

// C[.., i, .., j] += A[.. i .. k ..] * B[.. j .. k ..]
struct GroupProduct {
  size_t rows = 0, columns = 0, depth = 0;  // variables of the block
  int a = 0, b = 0;                         // reads of the block
  int64_t step = 0;                         // along depth: 128 bytes
  bool a_across = false, b_across = false;  // the last index is not depth
};

std::optional<GroupProduct> FindGroupProduct(const ir::BlockNode& block) {
  const std::optional<ProductFactors> factors = FactorsOf(block);
  if (!factors || factors->store->indices.size() < 2 ||
      factors->a->dtype != factors->b->dtype) {
    return std::nullopt;
  }
  const ir::StoreNode* store = factors->store;
  const ir::LoadNode *a = factors->a, *b = factors->b;
  const ir::WarpgroupUnit* unit =
      ir::FindWarpgroupUnit(a->dtype, store->value->dtype);
  const auto columns = VariableOf(block, store->indices.back());
  auto of_a = LastTwo(block, a->indices), of_b = LastTwo(block, b->indices);
  if (unit == nullptr || !columns || !of_a || !of_b) return std::nullopt;
  if (of_a->first == *columns || of_a->second == *columns) {
    std::swap(a, b);
    std::swap(of_a, of_b);
  }
  const auto is_reduce = [&](size_t i) {
    return block.iters[i].type == ir::IterType::kReduce;
  };
  GroupProduct out;
  out.columns = *columns;
  out.a_across = is_reduce(of_a->first);
  out.b_across = is_reduce(of_b->first);
  out.depth = out.a_across ? of_a->first : of_a->second;
  out.rows = out.a_across ? of_a->second : of_a->first;
  const size_t b_depth = out.b_across ? of_b->first : of_b->second;
  const size_t b_place = out.b_across ? of_b->second : of_b->first;
  if (!is_reduce(out.depth) || is_reduce(out.rows) || b_depth != out.depth ||
      b_place != out.columns || out.rows == out.columns ||
      ((out.a_across || out.b_across) && !unit->rows_across)) {
    return std::nullopt;
  }
  // No other sums: batches are spatial.
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (is_reduce(i) && i != out.depth) return std::nullopt;
  }
  for (const ir::LoadNode* factor : {a, b}) {
    const ir::BufferNode& tensor = *factor->buffer;
    if (!tensor.is_dense() || tensor.shape.size() > ir::kMaxBoxDims ||
        tensor.shape.back() * tensor.dtype.bytes() % ir::kTensorRowBytes != 0) {
      return std::nullopt;
    }
  }
  out.a = ReadOf(block, *a);
  out.b = ReadOf(block, *b);
  out.step = ir::kBoxRowBytes / a->dtype.bytes();
  // Smaller ones would be tiles of zeros, or one fetch without another.
  if (out.a < 0 || out.b < 0 ||
      IterExtent(block.iters[out.rows]) < ir::kWarpgroupRows ||
      IterExtent(block.iters[out.columns]) < ir::kWarpgroupRows ||
      IterExtent(block.iters[out.depth]) <= out.step) {
    return std::nullopt;
  }
  return out;
}

struct GroupWay {
  bool fuse = false;        // the consumer, with the sums in registers
  bool boxes = false;       // the copy engine writes the result
  bool persistent = false;  // blocks compute several tiles
};

struct GroupLoops {
  LoopRv blocks, threads, fetches;
};

absl::StatusOr<GroupLoops> TileLoops(Schedule& schedule, BlockRv block,
                                     const GroupProduct& product,
                                     const GroupWay& way) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  const int64_t m = IterExtent(node->iters[product.rows]);
  const int64_t n = IterExtent(node->iters[product.columns]);
  const int64_t largest = 2 * kDefaultGroups * ir::kWarpgroupRows;
  // Of rows of tiles, also of the largest ones.
  const int64_t most_order =
      m % largest == 0 ? PowerOf(m / largest, kMostOrder) : 1;
  int64_t default_columns = kMostColumns;
  while (default_columns > n) default_columns /= 2;
  std::vector<int64_t> columns;
  for (int64_t c = ir::kWarpgroupRows; c <= std::min(n, kMostColumns); c *= 2) {
    columns.push_back(c / kGroupRows);
  }
  int64_t default_groups =
      m >= kDefaultGroups * ir::kWarpgroupRows ? kDefaultGroups : 1;
  // Smaller tiles where large ones leave many multiprocessors idle.
  const auto blocks = [&] {
    int64_t count = CeilDiv(m, default_groups * ir::kWarpgroupRows) *
                    CeilDiv(n, default_columns);
    for (size_t i = 0; i < node->iters.size(); ++i) {
      if (i == product.rows || i == product.columns || i == product.depth) {
        continue;
      }
      count *= IterExtent(node->iters[i]);
    }
    return count;
  };
  while (!way.persistent && 3 * blocks() < 2 * kEnoughBlocks) {
    if (default_columns > kFewColumns) {
      default_columns /= 2;
    } else if (default_groups > 1) {
      default_groups = 1;
    } else if (default_columns > ir::kWarpgroupRows) {
      default_columns /= 2;
    } else {
      break;
    }
  }
  TF_ASSIGN_OR_RETURN(const ExprRv order,
                      SampleOne(schedule, PowersOfTwo(1, most_order),
                                std::min(most_order, kDefaultOrder)));
  // A persistent block's tiles are of one size, so that their number is known.
  TF_ASSIGN_OR_RETURN(const ExprRv groups,
                      SampleOne(schedule,
                                PowersOfTwo(1, way.persistent ? default_groups
                                                              : kDefaultGroups),
                                default_groups));
  TF_ASSIGN_OR_RETURN(
      const ExprRv products,
      SampleOne(schedule, PowersOfTwo(1, way.persistent || m < largest ? 1 : 2),
                1));
  if (way.persistent) columns = {default_columns / kGroupRows};
  TF_ASSIGN_OR_RETURN(
      const ExprRv steps,
      SampleOne(schedule, columns, default_columns / kGroupRows));
  std::vector<LoopRv> i, j, k, outer;
  for (size_t l = 0; l < loops.size(); ++l) {
    const size_t iter = static_cast<size_t>(loops[l].iters[0]);
    if (iter == product.rows) {
      TF_ASSIGN_OR_RETURN(
          i,
          schedule.Split(loops.rvs[l], {std::nullopt, order, groups, products,
                                        kGroupWarps, kHalves, kGroupRows}));
    } else if (iter == product.columns) {
      TF_ASSIGN_OR_RETURN(j, schedule.Split(loops.rvs[l], {std::nullopt, steps,
                                                           kPairs, kPair}));
    } else if (iter == product.depth) {
      TF_ASSIGN_OR_RETURN(
          k, schedule.Split(loops.rvs[l], {std::nullopt, product.step}));
    } else {
      outer.push_back(loops.rvs[l]);
    }
  }
  // Blocks that run at the same time share rows and columns.
  outer.insert(outer.end(), {i[0], j[0], i[1]});
  std::vector<LoopRv> sequence = outer;
  sequence.insert(sequence.end(),
                  {i[3], i[5], j[1], i[2], i[4], i[6], j[2], k[0], k[1], j[3]});
  TF_RETURN_IF_ERROR(schedule.Reorder(sequence));
  LoopRv blocks_loop;
  if (way.persistent) {
    TF_ASSIGN_OR_RETURN(const LoopRv tiles, schedule.Fuse(outer));
    TF_ASSIGN_OR_RETURN(
        const std::vector<LoopRv> parts,
        schedule.Split(tiles, {std::nullopt, kPersistentBlocks}));
    TF_RETURN_IF_ERROR(schedule.Reorder({parts[1], parts[0]}));
    TF_RETURN_IF_ERROR(schedule.Bind(parts[1], "blockIdx.x"));
    blocks_loop = parts[1];
  } else {
    TF_ASSIGN_OR_RETURN(blocks_loop, BindToBlocks(schedule, block, outer));
  }
  TF_RETURN_IF_ERROR(schedule.Bind(i[3], "vthread.z"));
  TF_RETURN_IF_ERROR(schedule.Bind(i[5], "vthread.y"));
  TF_RETURN_IF_ERROR(schedule.Bind(j[1], "vthread.x"));
  TF_ASSIGN_OR_RETURN(
      const std::vector<LoopRv> threads,
      FuseAndBind(schedule, {i[2], i[4], i[6], j[2]}, "threadIdx.x"));
  // Those that fit beside the tiles of the result. A row of either operand has
  // the bytes of one of a box.
  const int64_t results = SumsInCluster(*node)
                              ? default_groups * ir::kWarpgroupRows *
                                    default_columns *
                                    node->writes[0].buffer->dtype.bytes()
                              : 0;
  int64_t first =
      std::clamp((kStagedBytes - results) /
                     ((default_groups * ir::kWarpgroupRows + default_columns) *
                      ir::kBoxRowBytes),
                 kMinDefaultStages, kMostDefaultStages);
  while (!std::ranges::count(kGroupStages, first)) --first;
  TF_ASSIGN_OR_RETURN(
      const ExprRv stage,
      SampleOne(schedule, {std::begin(kGroupStages), std::end(kGroupStages)},
                first));
  TF_RETURN_IF_ERROR(schedule.Annotate(k[0], ir::kWarpgroupStages, stage));
  if (way.boxes) {
    TF_RETURN_IF_ERROR(
        schedule.Annotate(k[0], ir::kBoxStores, ir::Attr(int64_t{1})));
  }
  return GroupLoops{blocks_loop, threads[0], k[0]};
}

// Whether what the block makes of the sums is stored along their rows, in rows
// of whole units, so that the copy engine can write tiles of it.
bool StoresTiles(const ir::BlockNode& written, const ir::BufferNode* sums) {
  const auto* store = ir::As<ir::StoreNode>(written.body);
  if (store == nullptr) return false;
  const ir::BufferNode& result = *store->buffer;
  const auto last = VariableOf(written, store->indices.back());
  if (!last || result.dtype.bytes() < 2 || !result.is_dense() ||
      result.shape.size() < 2 ||
      result.shape.back() * result.dtype.bytes() % ir::kTensorRowBytes != 0) {
    return false;
  }
  bool along = true;
  ir::PostOrderExprs(store->value, [&](const Expr& expr) {
    const auto* load = ir::As<ir::LoadNode>(expr);
    if (load == nullptr || load->buffer.get() != sums) return;
    along &= VariableOf(written, load->indices.back()) == last;
  });
  return along;
}

absl::Status Tile(Schedule& schedule, BlockRv block, const GroupWay& way) {
  const BlockRv sums = block;
  TF_ASSIGN_OR_RETURN(const std::optional<BlockRv> partial,
                      SplitForCluster(schedule, sums));
  if (partial) block = *partial;
  if (partial && way.boxes) {
    return absl::FailedPreconditionError("the cluster adds the results up");
  }
  TF_ASSIGN_OR_RETURN(ir::BlockPtr node, schedule.Get(block));
  std::optional<GroupProduct> product = FindGroupProduct(*node);
  // Before the loops change: the elementwise block to fuse.
  BlockRv writer;
  std::optional<BlockRv> result;  // writes what a cluster adds up
  const bool flat = !product;
  if (flat) {
    TF_ASSIGN_OR_RETURN(
        writer, FlattenProduct(schedule, block, way.fuse,
                               partial ? std::optional(sums) : std::nullopt));
    if (partial) result = writer;
    TF_ASSIGN_OR_RETURN(node, schedule.Get(block));
    product = FindGroupProduct(*node);
    if (!product) return absl::FailedPreconditionError("no matrix product");
  } else if (way.fuse) {
    TF_ASSIGN_OR_RETURN(const std::optional<BlockRv> consumer,
                        FusibleConsumer(schedule, block));
    if (!consumer) return absl::FailedPreconditionError("no consumer to fuse");
    writer = *consumer;
  }
  TF_ASSIGN_OR_RETURN(const GroupLoops loops,
                      TileLoops(schedule, block, *product, way));
  if ((way.fuse || flat) && !partial) {
    TF_RETURN_IF_ERROR(schedule.SetScope(block, 0, "local"));
  } else {
    TF_ASSIGN_OR_RETURN(writer, schedule.CacheWrite(block, 0, "local"));
  }
  TF_RETURN_IF_ERROR(schedule.ReverseComputeAt(writer, loops.threads,
                                               /*preserve_unit_loops=*/true));
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr written, schedule.Get(writer));
  TF_ASSIGN_OR_RETURN(node, schedule.Get(block));
  if (way.boxes && !StoresTiles(*written, node->writes[0].buffer.get())) {
    return absl::FailedPreconditionError("the engine cannot write the result");
  }
  for (const bool is_a : {true, false}) {
    TF_ASSIGN_OR_RETURN(
        const BlockRv copy,
        schedule.CacheRead(block, is_a ? product->a : product->b, "shared"));
    Schedule moved = schedule;
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr copied, CopyFromTensor(moved, copy));
    const bool across = is_a ? product->a_across : product->b_across;
    if (CanCopyTiles(*copied, product->step, across) &&
        TilesEndWithTensor(*copied, kMostColumns, across).value_or(flat)) {
      schedule = std::move(moved);
    } else if (flat) {
      return absl::FailedPreconditionError("the engine cannot fetch it");
    }
    TF_RETURN_IF_ERROR(schedule.ComputeAt(copy, loops.fetches,
                                          /*preserve_unit_loops=*/true));
  }
  TF_ASSIGN_OR_RETURN(const std::vector<LoopRv> pairs,
                      schedule.GetLoops(writer));
  TF_RETURN_IF_ERROR(schedule.Vectorize(pairs.back()));
  return partial ? SumInCluster(schedule, block, writer, loops.blocks, result)
                 : absl::OkStatus();
}

}  // namespace

// Tiles a matrix product for the matrix units of warpgroups and the copy engine
// (lower/lower_warpgroups.cc):
//
//   for blockIdx.x:                        (groups of rows, columns, rows)
//     for vthread:                         (a thread's sums that are apart)
//       for threadIdx.x:                   (warpgroups, warps, lanes)
//         for k_0:                         annotated: ir::kWarpgroupStages
//           A_shared, B_shared = A, B
//           for k_1, j_3: C_local += A_shared * B_shared
//         C = C_local                      (or a fused elementwise consumer)
//
// A convolution is such a product (products.h), whose windows the engine copies
// (arith/box_copy.h). Alternatives: blocks that compute several tiles, one
// after another; results that the copy engine writes, or the threads; and the
// block as it is.
Alternatives TileForWarpgroups(const RuleContext& context, RuleSite site) {
  const std::optional<ProductFactors> factors = FactorsOf(*site.node);
  if (!context.target.gpu->warpgroup_products || !factors ||

      ir::FindWarpgroupUnit(factors->a->dtype, factors->store->value->dtype) ==
          nullptr) {
    return DoesNotApply();
  }
  TF_ASSIGN_OR_RETURN(const bool plain, HasPlainLoops(site));
  if (!plain) return DoesNotApply();
  // The product as it is tiled.
  ir::BlockPtr node = site.node;
  std::optional<GroupProduct> product = FindGroupProduct(*node);
  if (!product) {
    Schedule flat = site.schedule;
    if (!FlattenProduct(flat, site.block, /*fuse=*/false).ok()) {
      return DoesNotApply();
    }
    TF_ASSIGN_OR_RETURN(node, flat.Get(site.block));
    product = FindGroupProduct(*node);
    if (!product) return DoesNotApply();
  }
  int64_t tiles = 1;
  for (size_t i = 0; i < node->iters.size(); ++i) {
    const int64_t extent = IterExtent(node->iters[i]);
    tiles *= i == product->rows
                 ? CeilDiv(extent, kDefaultGroups * ir::kWarpgroupRows)
             : i == product->columns ? CeilDiv(extent, kMostColumns)
             : i == product->depth   ? 1
                                     : extent;
  }
  const bool several = tiles > kPersistentBlocks &&
                       tiles % kPersistentBlocks == 0 &&
                       !AwaitsCluster(*site.node);
  std::vector<Schedule> results;
  for (const bool fuse : {true, false}) {
    for (const bool persistent : {true, false}) {
      for (const bool boxes : {true, false}) {
        if (persistent && !several) continue;
        Schedule attempt = site.schedule;
        if (Tile(attempt, site.block, {fuse, boxes, persistent}).ok()) {
          results.push_back(std::move(attempt));
        }
      }
    }
    // A consumer that can be fused always is.
    if (!results.empty()) break;
  }
  if (results.empty()) return DoesNotApply();
  results.push_back(std::move(site.unchanged));
  return results;
}

}  // namespace tilefarm::space
