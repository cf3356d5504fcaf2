#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::Schedule;

// Whether all operands use the variable, as they do those of batches and of the
// parts of a sum: no operand is reused along it.
bool IndexesAll(const ir::BlockNode& block, const ir::IterVar& iter) {
  int operands = 0;
  for (const ir::BufferRegion& read : block.reads) {
    if (read.buffer == block.writes[0].buffer) continue;
    if (!RegionUses(read, iter.var.get())) return false;
    ++operands;
  }
  return operands > 1;
}

// Where the last dimension of the copied operand belongs to the reduction, the
// order of dimensions that puts those of spatial variables last: the threads of
// a warp then read consecutive elements. Empty: the order is good.
std::string SpatialLast(const ir::BlockNode& block,
                        const ir::BufferRegion& read) {
  std::vector<size_t> reduce, spatial;
  for (size_t d = 0; d < read.region.size(); ++d) {
    bool is_spatial = false;
    for (const ir::IterVar& iter : block.iters) {
      is_spatial |= iter.type == ir::IterType::kSpatial &&
                    IterExtent(iter) > 1 && !IndexesAll(block, iter) &&
                    ir::UsesVar(read.region[d].min, iter.var.get());
    }
    (is_spatial ? spatial : reduce).push_back(d);
  }
  if (spatial.empty() || spatial.back() + 1 == read.region.size()) return "";
  std::vector<std::string> from, to;
  for (size_t d = 0; d < read.region.size(); ++d) {
    from.push_back(absl::StrCat("i", d));
  }
  for (const auto* part : {&reduce, &spatial}) {
    for (const size_t d : *part) to.push_back(absl::StrCat("i", d));
  }
  return absl::StrCat("lambda ", absl::StrJoin(from, ", "), ": (",
                      absl::StrJoin(to, ", "), ")");
}

// From one value of a variable to the next, how many elements further what the
// copy loads is; nullopt: it varies, or is not known.
std::optional<int64_t> StrideOf(const ir::BlockNode& copy,
                                const ir::LoadNode& load, size_t variable) {
  arith::Analyzer analyzer;
  const auto position = [&](int64_t value) {
    ir::VarMap values;
    for (size_t i = 0; i < copy.iters.size(); ++i) {
      values[copy.iters[i].var.get()] = ir::IntConst(i == variable ? value : 0);
    }
    ir::Expr at = ir::IntConst(0);
    for (size_t d = 0; d < load.indices.size(); ++d) {
      at = at * load.buffer->shape[d] + ir::Substitute(load.indices[d], values);
    }
    return ir::AsInt(analyzer.Simplify(at));
  };
  const auto first = position(0), second = position(1);
  if (!first || !second) return std::nullopt;
  return *second - *first;
}

// The order of a copy's variables that puts the one last along which it loads
// neighbours. Empty: the order is good, or there is none.
std::string NeighboursLast(const ir::BlockNode& copy) {
  const auto* store = ir::As<ir::StoreNode>(copy.body);
  const auto copied =
      store == nullptr ? std::nullopt : ir::AsCopiedLoad(store->value);
  if (!copied || !copied->load->buffer->is_dense()) return "";
  size_t along = copy.iters.size();
  for (size_t i = copy.iters.size(); i-- > 0;) {
    if (IterExtent(copy.iters[i]) == 1) continue;
    if (StrideOf(copy, *copied->load, i) != 1) continue;
    along = i;
    break;
  }
  if (along + 1 >= copy.iters.size()) return "";
  std::vector<std::string> from, to;
  for (size_t i = 0; i < copy.iters.size(); ++i) {
    from.push_back(absl::StrCat("i", i));
    if (i != along) to.push_back(from.back());
  }
  to.push_back(from[along]);
  return absl::StrCat("lambda ", absl::StrJoin(from, ", "), ": (",
                      absl::StrJoin(to, ", "), ")");
}

// The vectors by which threads may fetch elements of this size.
std::vector<int64_t> FetchWidths(ir::DataType dtype) {
  std::vector<int64_t> widths;
  for (int64_t w = 1; w * dtype.bytes() <= kVectorBytes; w *= 2) {
    widths.push_back(w);
  }
  return widths;
}

}  // namespace

absl::Status FetchForThreads(Schedule& schedule, BlockRv block, int operand,
                             const ThreadFetch& fetch) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  const ir::BufferRegion read = node->reads[static_cast<size_t>(operand)];
  const std::string order = SpatialLast(*node, read);
  TF_ASSIGN_OR_RETURN(const BlockRv copy,
                      schedule.CacheRead(block, operand, "shared"));
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr whole,
                      InlineAllProducers(schedule, copy, ReadsGlobalMemory));
  if (const std::string last = NeighboursLast(*whole); !last.empty()) {
    TF_RETURN_IF_ERROR(schedule.TransformBlockLayout(copy, last));
  }
  // While all copies are whole, it is clear what the moved ones need.
  if (fetch.fragments) {
    TF_ASSIGN_OR_RETURN(const BlockRv fragment,
                        schedule.CacheRead(block, operand, "local"));
    TF_RETURN_IF_ERROR(schedule.ComputeAt(fragment, *fetch.fragments,
                                          /*preserve_unit_loops=*/true));
  }
  TF_RETURN_IF_ERROR(schedule.ComputeAt(copy, fetch.at,
                                        /*preserve_unit_loops=*/true));
  if (!order.empty()) {
    TF_RETURN_IF_ERROR(
        schedule.TransformLayout(copy, /*read=*/false, 0, order));
    // An odd multiple of 16 bytes: what threads have fetched along the many
    // terms of windows, and write across them, is in different banks. Of the
    // few terms of other products, it costs more registers than it gains.
    const int bytes = read.buffer->dtype.bytes();
    if (fetch.windows && read.region.size() > 1) {
      TF_RETURN_IF_ERROR(schedule.StorageAlign(
          copy, 0, static_cast<int>(read.region.size()) - 2, 32 / bytes,
          16 / bytes));
    }
  }
  const std::vector<int64_t> widths = FetchWidths(read.buffer->dtype);
  TF_ASSIGN_OR_RETURN(const schedule::ExprRv width,
                      SampleOne(schedule, widths, widths.back()));
  return schedule.Annotate(copy, kCooperativeFetch, width);
}

}  // namespace tilefarm::space
