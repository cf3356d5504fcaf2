#include <algorithm>
#include <optional>

#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::ExprRv;
using schedule::LoopRv;
using schedule::Schedule;

constexpr int64_t kLineBytes = 128;
constexpr int64_t kLeastThreads = 4, kMostThreads = 32;
// Rows of a thread: several loads are in flight at once.
constexpr int64_t kMostItems = 8, kDefaultItems = 2;
// Shorter rows leave most of a cache line unused either way.
constexpr int64_t kLeastExtent = 8;

// A read whose elements lie side by side along one variable of the block, while
// those that are written do along another.
struct Crossing {
  int read = 0;
  size_t read_along = 0, write_along = 0;  // variables of the block
};

std::optional<size_t> LastVariable(const ir::BlockNode& block,
                                   const std::vector<ir::Expr>& indices) {
  return indices.empty() ? std::nullopt : VariableOf(block, indices.back());
}

std::optional<Crossing> FindCrossing(const ir::BlockNode& block) {
  const auto* store = ir::As<ir::StoreNode>(block.body);
  if (store == nullptr || block.init != nullptr) return std::nullopt;
  const std::optional<size_t> write_along = LastVariable(block, store->indices);
  if (!write_along) return std::nullopt;
  std::optional<Crossing> found;
  int loads = 0;
  ir::PostOrderExprs(block.body, [&](const ir::Expr& e) {
    const auto* load = ir::As<ir::LoadNode>(e);
    if (load == nullptr) return;
    const std::optional<size_t> along = LastVariable(block, load->indices);
    if (!along || *along == *write_along) return;
    const ir::VarNode* across = block.iters[*write_along].var.get();
    if (std::ranges::none_of(load->indices, [&](const ir::Expr& index) {
          return ir::UsesVar(index, across);
        })) {
      return;  // all threads of a row read the same
    }
    ++loads;
    found = Crossing{ReadOf(block, *load), *along, *write_along};
  });
  if (loads != 1 || found->read < 0 ||
      IterExtent(block.iters[found->read_along]) < kLeastExtent ||
      IterExtent(block.iters[found->write_along]) < kLeastExtent) {
    return std::nullopt;
  }
  return found;
}

// Threads side by side, of which each has `own` of so many elements.
absl::StatusOr<ExprRv> SampleThreads(Schedule& schedule, int64_t extent,
                                     int64_t own, int64_t first) {
  std::vector<int64_t> counts;
  for (int64_t n = kLeastThreads; n <= kMostThreads; n *= 2) {
    counts.push_back(n);
    if (n * own >= extent) break;
  }
  return SampleOne(schedule, counts,
                   std::clamp(first, counts.front(), counts.back()));
}

absl::Status Tile(RuleSite& site, const Crossing& crossing) {
  auto& [unchanged, schedule, block, node] = site;
  const int bytes =
      node->reads[static_cast<size_t>(crossing.read)].buffer->dtype.bytes();
  TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
  const int64_t rows = IterExtent(node->iters[crossing.read_along]);
  const int64_t columns = IterExtent(node->iters[crossing.write_along]);
  const int64_t widest = StoreWidth(*node);
  std::vector<int64_t> widths, counts;
  for (int64_t w = 1; w <= widest; w *= 2) widths.push_back(w);
  for (int64_t n = 1; n <= kMostItems; n *= 2) counts.push_back(n);
  const int64_t across =
      std::clamp(kLineBytes / (widest * bytes), kLeastThreads, kMostThreads);
  TF_ASSIGN_OR_RETURN(const ExprRv width, SampleOne(schedule, widths, widest));
  TF_ASSIGN_OR_RETURN(const ExprRv x,
                      SampleThreads(schedule, columns, widest, across));
  TF_ASSIGN_OR_RETURN(const ExprRv items,
                      SampleOne(schedule, counts, kDefaultItems));
  TF_ASSIGN_OR_RETURN(const ExprRv y, SampleThreads(schedule, rows, 1,
                                                    kDefaultThreads / across));
  std::vector<LoopRv> outer, row, column;
  for (size_t l = 0; l < loops.size(); ++l) {
    const size_t iter = static_cast<size_t>(loops[l].iters[0]);
    if (iter == crossing.read_along) {
      TF_ASSIGN_OR_RETURN(
          row, schedule.Split(loops.rvs[l], {std::nullopt, items, y}));
      outer.push_back(row[0]);
    } else if (iter == crossing.write_along) {
      TF_ASSIGN_OR_RETURN(
          column, schedule.Split(loops.rvs[l], {std::nullopt, x, width}));
      outer.push_back(column[0]);
    } else {
      outer.push_back(loops.rvs[l]);
    }
  }
  std::vector<LoopRv> order = outer;
  order.insert(order.end(), {row[2], column[1], row[1], column[2]});
  TF_RETURN_IF_ERROR(schedule.Reorder(order));
  TF_RETURN_IF_ERROR(FuseAndBind(schedule, outer, "blockIdx.x").status());
  TF_RETURN_IF_ERROR(schedule.Bind(row[2], "threadIdx.y"));
  TF_RETURN_IF_ERROR(schedule.Bind(column[1], "threadIdx.x"));
  TF_RETURN_IF_ERROR(schedule.Vectorize(column[2]));
  TF_ASSIGN_OR_RETURN(const BlockRv copy,
                      schedule.CacheRead(block, crossing.read, "shared"));
  TF_RETURN_IF_ERROR(
      schedule.ComputeAt(copy, column[1], /*preserve_unit_loops=*/true));
  // Rows of an odd number of words, so that lanes meet different banks.
  const int dims =
      node->reads[static_cast<size_t>(crossing.read)].buffer->ndim();
  if (dims > 1) {
    TF_RETURN_IF_ERROR(schedule.StorageAlign(
        copy, 0, dims - 2, std::max(8 / bytes, 2), std::max(4 / bytes, 1)));
  }
  return schedule.Annotate(copy, kCooperativeFetch,
                           ir::Attr(kVectorBytes / bytes));
}

}  // namespace

// Copies of which the elements that lie side by side in memory differ between
// what is read and what is written go through shared memory by tiles, so that
// the threads of a warp do both side by side:
//
//   for i, j: B[i, j] = A[j, i]
//   ->  for blockIdx.x:                   (tiles)
//         for threadIdx.y: for threadIdx.x:
//           A_shared = A                  (fetched by all threads, along i)
//           for item: for vector: B[i, j] = A_shared[j, i]
//
// The block as it is remains an alternative, but of copies that only change the
// order of dimensions.
Alternatives StageTransposed(const RuleContext&, RuleSite site) {
  const std::optional<Crossing> crossing = FindCrossing(*site.node);
  if (!crossing) return DoesNotApply();
  TF_ASSIGN_OR_RETURN(const bool plain, HasPlainLoops(site));
  if (!plain || !Tile(site, *crossing).ok()) return DoesNotApply();
  if (site.node->annotations.contains(kLaidOut)) {
    return std::vector{std::move(site.schedule)};
  }
  return std::vector{std::move(site.schedule), std::move(site.unchanged)};
}

}  // namespace tilefarm::space
