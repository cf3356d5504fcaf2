// What several rules of GPUs do with loops.
#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/dim_align.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"
#include "compiler/space/postprocs.h"

namespace tilefarm::space {
namespace {

using schedule::LoopRv;
using schedule::Schedule;

// The variable of a block as vectors of so many elements.
class Vectors {
 public:
  Vectors(const ir::BlockNode& block, const ir::IterVar& iter, int64_t width)
      : var_(iter.var.get()), width_(width) {
    for (const ir::IterVar& other : block.iters) {
      analyzer_.Bind(other.var, other.dom);
    }
    analyzer_.Bind(vector_, 0, CeilDiv(IterExtent(iter), width));
    analyzer_.Bind(lane_, 0, width);
    at_ = ir::Expr(vector_) * width + ir::Expr(lane_);
  }
  // The value for the first lane, if it is that for each lane plus `step` times
  // the lane; null: it is not.
  ir::Expr First(const ir::Expr& expr, int64_t step) {
    ir::Expr first = ir::Substitute(expr, {{var_, at_}});
    if (step != 0) first = first - ir::Expr(lane_) * step;
    first = analyzer_.Simplify(first);
    return ir::UsesVar(first, lane_.get()) ? nullptr : first;
  }
  // Whether the condition is the same for all lanes: each of its comparisons
  // does not depend on the lane, or changes between vectors.
  bool IsUniform(const ir::Expr& condition) {
    if (First(condition, /*step=*/0) != nullptr) return true;
    const auto* compare = ir::As<ir::BinaryNode>(condition);
    if (compare == nullptr) return false;
    switch (compare->op) {
      case ir::BinaryOp::kAnd:
      case ir::BinaryOp::kOr:
        return IsUniform(compare->a) && IsUniform(compare->b);
      case ir::BinaryOp::kLT:  // a - b < 0
      case ir::BinaryOp::kGE:
        return ChangesBetween(compare->a - compare->b);
      case ir::BinaryOp::kLE:  // a - b - 1 < 0
      case ir::BinaryOp::kGT:
        return ChangesBetween(compare->a - compare->b - 1);
      default:
        return false;
    }
  }
  bool Divisible(const ir::Expr& expr, int64_t divisor) {
    return arith::Divisible(analyzer_, expr, divisor);
  }

 private:
  // Whether the sum grows with the lane, and is 0 for first lanes alone: it is
  // negative in all lanes or in none.
  bool ChangesBetween(const ir::Expr& sum) {
    const ir::Expr first = First(sum, /*step=*/1);
    return first != nullptr && Divisible(first, width_);
  }

  const ir::VarNode* var_;
  const int64_t width_;
  const ir::Var vector_ = ir::MakeVar("vector"), lane_ = ir::MakeVar("lane");
  ir::Expr at_;
  arith::Analyzer analyzer_;
};

// The most elements of an access along the variable; 0: it does not depend on
// it.
int64_t WidthOf(const ir::BlockNode& block, const ir::Buffer& buffer,
                const std::vector<ir::Expr>& indices, const ir::IterVar& iter) {
  const bool depends = std::ranges::any_of(indices, [&](const ir::Expr& index) {
    return ir::UsesVar(index, iter.var.get());
  });
  if (!depends) return 0;
  const std::optional<std::vector<int64_t>> strides =
      ir::PaddedStrides(*buffer);
  if (!strides) return 1;
  ir::Expr offset = ir::IntConst(0);
  for (size_t d = 0; d < indices.size(); ++d) {
    offset = offset + indices[d] * ir::IntConst((*strides)[d]);
  }
  for (int64_t width = kVectorBytes / std::max(buffer->dtype.bytes(), 1);
       width > 1; width /= 2) {
    Vectors vectors(block, iter, width);
    const ir::Expr first = vectors.First(offset, /*step=*/1);
    if (first != nullptr && vectors.Divisible(first, width)) return width;
  }
  return 1;
}

// Of a read over all iterations of the block: a bound by its variables.
int64_t ElementsOf(const ir::BlockNode& block, const ir::BufferRegion& read) {
  int64_t elements = 1;
  for (const ir::IterVar& iter : block.iters) {
    if (RegionUses(read, iter.var.get())) elements *= IterExtent(iter);
  }
  return elements;
}

}  // namespace

int64_t VectorWidth(const ir::BlockNode& block, bool loads_only) {
  if (block.iters.empty()) return 1;
  const ir::IterVar& last = block.iters.back();
  if (last.type != ir::IterType::kSpatial || !ir::IsConstInt(last.dom.min, 0)) {
    return 1;
  }
  int64_t width = kVectorBytes;
  const auto* store = ir::As<ir::StoreNode>(block.body);
  if (store == nullptr) return 1;
  const auto narrow = [&](const ir::Buffer& buffer,
                          const std::vector<ir::Expr>& indices) {
    const int64_t own = WidthOf(block, buffer, indices, last);
    if (own > 0) width = std::min(width, own);
  };
  if (WidthOf(block, store->buffer, store->indices, last) == 0) return 1;
  if (!loads_only) narrow(store->buffer, store->indices);
  ir::PostOrderExprs(block.body, [&](const ir::Expr& expr) {
    if (const auto* load = ir::As<ir::LoadNode>(expr)) {
      narrow(load->buffer, load->indices);
    } else if (const auto* call = ir::As<ir::CallNode>(expr)) {
      while (call->op == ir::Intrinsic::kIfThenElse && width > 1 &&
             !Vectors(block, last, width).IsUniform(call->args[0])) {
        width /= 2;
      }
    }
  });
  const int64_t extent = ir::AsInt(last.dom.extent).value_or(1);
  while (width > 1 && extent % width != 0) width /= 2;
  return width;
}

int64_t StoreWidth(const ir::BlockNode& block) {
  const auto* store = ir::As<ir::StoreNode>(block.body);
  if (store == nullptr || store->indices.empty()) return 1;
  const auto last = VariableOf(block, store->indices.back());
  if (!last) return 1;
  const ir::IterVar& iter = block.iters[*last];
  return PowerOf(IterExtent(iter),
                 WidthOf(block, store->buffer, store->indices, iter));
}

int64_t TermWidth(const ir::BlockNode& block, const ir::IterVar& iter) {
  int64_t width = 0;
  ir::PostOrderExprs(block.body, [&](const ir::Expr& expr) {
    const auto* load = ir::As<ir::LoadNode>(expr);
    if (load == nullptr) return;
    const int64_t own = WidthOf(block, load->buffer, load->indices, iter);
    if (own > 0) width = width == 0 ? own : std::min(width, own);
  });
  return PowerOf(IterExtent(iter), std::max<int64_t>(width, 1));
}

absl::StatusOr<int64_t> WidthInLoop(Schedule& schedule, schedule::BlockRv block,
                                    LoopRv innermost, int64_t wanted,
                                    bool loads_only) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, schedule.Get(innermost));
  int64_t width = std::min(wanted, VectorWidth(*node, loads_only));
  arith::Analyzer analyzer;
  const ir::Expr start = analyzer.Simplify(ir::Substitute(
      node->iters.back().binding, {{loop->var.get(), ir::IntConst(0)}}));
  const int64_t extent = ir::AsInt(loop->extent).value_or(1);
  while (width > 1 &&
         (extent % width != 0 || !arith::Divisible(analyzer, start, width))) {
    width /= 2;
  }
  return width;
}

absl::StatusOr<std::vector<LoopRv>> FuseAndBind(
    Schedule& schedule, const std::vector<LoopRv>& loops, const char* axis) {
  if (loops.empty()) return loops;
  LoopRv loop = loops[0];
  if (loops.size() > 1) {
    TF_ASSIGN_OR_RETURN(loop, schedule.Fuse(loops));
  }
  TF_RETURN_IF_ERROR(schedule.Bind(loop, axis));
  return std::vector{loop};
}

int64_t PowerOf(int64_t n, int64_t most) {
  int64_t power = 1;
  while (power * 2 <= most && n % (power * 2) == 0) power *= 2;
  return power;
}

std::vector<int64_t> PowersOfTwo(int64_t least, int64_t most) {
  std::vector<int64_t> powers;
  for (int64_t p = least; p <= most; p *= 2) powers.push_back(p);
  return powers;
}

absl::StatusOr<schedule::ExprRv> SampleOne(Schedule& schedule,
                                           const std::vector<int64_t>& values,
                                           int64_t first) {
  const auto at = std::ranges::find(values, first);
  const int64_t decision = at == values.end() ? 0 : at - values.begin();
  return schedule.SampleCategorical(
      values,
      std::vector<double>(values.size(),
                          1.0 / static_cast<double>(values.size())),
      decision);
}

absl::Status SampleStages(Schedule& schedule, LoopRv fetches, int64_t most,
                          int64_t first) {
  std::vector<int64_t> stages;
  for (int64_t s = 1; s <= most; ++s) stages.push_back(s);
  TF_ASSIGN_OR_RETURN(const schedule::ExprRv stage,
                      SampleOne(schedule, stages, first));
  return schedule.Annotate(fetches, ir::kSharedStages, stage);
}

size_t PerfectLoops(Schedule& schedule, const std::vector<LoopRv>& loops) {
  for (size_t i = 0; i + 1 < loops.size(); ++i) {
    const auto loop = schedule.Get(loops[i]), next = schedule.Get(loops[i + 1]);
    if (!loop.ok() || !next.ok() || (*loop)->body.get() != next->get()) {
      return i + 1;
    }
  }
  return loops.size();
}

bool ReadsGlobalMemory(const ir::BlockNode& block) {
  return absl::c_all_of(block.reads, [](const ir::BufferRegion& read) {
    return ir::ScopeOf(*read.buffer) == ir::MemoryScope::kGlobal;
  });
}

bool IsMatrixVector(const ir::BlockNode& block) {
  if (!IsReduction(block) || !HasDataReuse(block)) return false;
  int64_t iterations = 1;
  for (const ir::IterVar& iter : block.iters) iterations *= IterExtent(iter);
  return absl::c_any_of(block.reads, [&](const ir::BufferRegion& read) {
    if (read.buffer == block.writes[0].buffer) return false;
    int64_t elements = 1;
    for (const int64_t extent : read.buffer->shape) elements *= extent;
    return elements >= iterations;
  });
}

bool IsCheapLoad(const ir::BlockNode& producer) {
  return !UsesCostlyIntrinsic(producer) && ReadsGlobalMemory(producer);
}

const ir::BufferRegion* LargestRead(const ir::BlockNode& block) {
  const ir::BufferRegion* largest = nullptr;
  for (const ir::BufferRegion& read : block.reads) {
    if (absl::c_any_of(block.writes, [&](const ir::BufferRegion& write) {
          return write.buffer == read.buffer;
        })) {
      continue;
    }
    if (largest == nullptr ||
        ElementsOf(block, read) > ElementsOf(block, *largest)) {
      largest = &read;
    }
  }
  return largest;
}

bool ReadsRows(const ir::BlockNode& block) {
  const ir::BufferRegion* const largest = LargestRead(block);
  if (largest == nullptr) return false;
  bool along = false;
  for (const ir::BufferRegion& read : block.reads) {
    // A sector for each element of the others is not more than the largest.
    const int64_t sector =
        kSectorBytes / std::max(read.buffer->dtype.bytes(), 1);
    if (read.region.empty() ||
        ElementsOf(block, read) * sector < ElementsOf(block, *largest)) {
      continue;
    }
    // The vector of a product with a matrix is the same for all outputs.
    bool differs = false, along_this = false;
    for (const ir::IterVar& iter : block.iters) {
      if (IterExtent(iter) == 1) continue;
      if (iter.type == ir::IterType::kReduce) {
        along_this |= ir::UsesVar(read.region.back().min, iter.var.get());
      } else {
        differs |= RegionUses(read, iter.var.get());
      }
    }
    along |= along_this && differs;
  }
  return along;
}

absl::StatusOr<bool> HasPlainLoops(RuleSite& site) {
  TF_ASSIGN_OR_RETURN(const BlockLoops loops,
                      ViewLoops(site.schedule, site.block));
  return loops.size() == site.node->iters.size() &&
         std::ranges::all_of(loops.views, [](const LoopView& loop) {
           return loop.iters.size() == 1 && loop.kind == ir::ForKind::kSerial;
         });
}

}  // namespace tilefarm::space
