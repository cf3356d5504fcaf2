#include "tests/property/random_gpu_trace.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/gpu/gpu_rules.h"

namespace tilefarm::property {
namespace {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

// Loops in the order of their nest.
using Loops = std::vector<LoopRv>;

// Threads of an axis: powers of two, which shuffles need, and others.
int64_t RandomThreads(Rng& rng) {
  static const std::vector<int64_t> kThreads = {1, 2, 2,  3,  4,  4,  5,
                                                7, 8, 16, 32, 33, 64, 96};
  return Pick(kThreads, rng);
}

class GpuTiler {
 public:
  GpuTiler(Schedule& schedule, Rng& rng, PrimitiveCounts* counts)
      : s_(schedule), rng_(rng), counts_(counts) {}

  // Tiles the nest of a block and stages some of its operands.
  void Tile(const std::string& name) {
    std::optional<BlockRv> out;
    Try("write_stage", [&](Schedule& s) -> absl::Status {
      if (!rng_.Chance(0.4)) return absl::NotFoundError("not wanted");
      TF_ASSIGN_OR_RETURN(const BlockRv block, s.GetBlock(name));
      TF_ASSIGN_OR_RETURN(out, s.CacheWrite(block, 0, StageScope()));
      return absl::OkStatus();
    });
    if (rng_.Chance(0.85)) {
      Try("tile", [&](Schedule& s) { return TileSpatial(s, name); });
    }
    if (rng_.Chance(0.5)) {
      Try("split_reduction",
          [&](Schedule& s) { return SplitReduction(s, name); });
    }
    if (out) {
      Try("write_stage_at", [&](Schedule& s) -> absl::Status {
        TF_ASSIGN_OR_RETURN(const BlockRv block, s.GetBlock(name));
        TF_ASSIGN_OR_RETURN(const Loops loops, s.GetLoops(block));
        if (loops.empty()) return absl::NotFoundError("no loop");
        TF_RETURN_IF_ERROR(
            s.ReverseComputeAt(*out, Pick(loops, rng_), rng_.Chance(0.5)));
        return rng_.Chance(0.5) ? ShareOwnLoops(s, *out, loops)
                                : absl::OkStatus();
      });
    }
    const int operands = static_cast<int>(rng_.Below(3));
    for (int i = 0; i < operands; ++i) {
      Try("read_stage", [&](Schedule& s) { return StageOperand(s, name); });
    }
    if (rng_.Chance(0.3)) {
      Try("producer_at", [&](Schedule& s) { return MoveProducer(s, name); });
    }
    if (rng_.Chance(0.5)) {
      Try("pipeline", [&](Schedule& s) { return Pipeline(s, name); });
    }
    if (rng_.Chance(0.4)) {
      Try("decompose", [&](Schedule& s) -> absl::Status {
        TF_ASSIGN_OR_RETURN(const BlockRv block, s.GetBlock(name));
        TF_ASSIGN_OR_RETURN(const Loops loops, s.GetLoops(block));
        if (loops.empty()) return absl::NotFoundError("no loop");
        return s.DecomposeReduction(block, Pick(loops, rng_)).status();
      });
    }
    if (rng_.Chance(0.4)) {
      Try("inner_kind", [&](Schedule& s) -> absl::Status {
        TF_ASSIGN_OR_RETURN(const BlockRv block, s.GetBlock(name));
        TF_ASSIGN_OR_RETURN(const Loops loops, s.GetLoops(block));
        if (loops.empty()) return absl::NotFoundError("no loop");
        return rng_.Chance(0.5) ? s.Vectorize(loops.back())
                                : s.Unroll(loops.back());
      });
    }
  }

 private:
  // Runs a step on a copy, and keeps it if it is accepted.
  void Try(const std::string& name,
           const std::function<absl::Status(Schedule&)>& step) {
    const std::string key = absl::StrCat("gpu:", name);
    ++counts_->tried[key];
    Schedule next = s_;
    if (!step(next).ok()) return;
    ++counts_->accepted[key];
    s_ = std::move(next);
  }

  std::string StageScope() { return rng_.Chance(0.6) ? "shared" : "local"; }

  // The loops that feed only spatial variables, and the others.
  static absl::Status Sort(const Schedule& s, const BlockRv block,
                           const Loops& loops, Loops& spatial, Loops& reduce) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, s.Get(block));
    for (const LoopRv rv : loops) {
      TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, s.Get(rv));
      const bool reduces =
          std::ranges::any_of(node->iters, [&](const ir::IterVar& iter) {
            return iter.type != ir::IterType::kSpatial &&
                   ir::UsesVar(iter.binding, loop->var.get());
          });
      (reduces ? reduce : spatial).push_back(rv);
    }
    return absl::OkStatus();
  }

  // Up to two spatial loops, perhaps fused ones, become loops over blocks,
  // virtual threads, threads, and the iterations of each thread.
  absl::Status TileSpatial(Schedule& s, const std::string& name) {
    TF_ASSIGN_OR_RETURN(const BlockRv block, s.GetBlock(name));
    TF_ASSIGN_OR_RETURN(const Loops loops, s.GetLoops(block));
    Loops spatial, reduce;
    TF_RETURN_IF_ERROR(Sort(s, block, loops, spatial, reduce));
    if (spatial.empty()) return absl::NotFoundError("no spatial loop");
    Loops order = spatial;
    order.insert(order.end(), reduce.begin(), reduce.end());
    if (order.size() > 1) TF_RETURN_IF_ERROR(s.Reorder(order));
    const size_t axes = spatial.size() > 1 && rng_.Chance(0.6) ? 2 : 1;
    // The first loops are fused, the last axis is a loop of its own.
    const size_t fused =
        axes == 2 ? spatial.size() - 1 : 1 + rng_.Below(spatial.size());
    Loops tiled;
    TF_ASSIGN_OR_RETURN(
        tiled.emplace_back(),
        s.Fuse({spatial.begin(),
                spatial.begin() + static_cast<ptrdiff_t>(fused)}));
    if (axes == 2) tiled.push_back(spatial.back());
    const Loops rest(spatial.begin() + static_cast<ptrdiff_t>(
                                           axes == 2 ? spatial.size() : fused),
                     spatial.end());
    Loops blocks, virtuals, threads, inner;
    const bool has_virtual = rng_.Chance(0.3);
    for (const LoopRv loop : tiled) {
      std::vector<schedule::Factor> factors = {std::nullopt};
      if (has_virtual) factors.emplace_back(rng_.Between(1, 3));
      factors.emplace_back(RandomThreads(rng_));
      factors.emplace_back(rng_.Between(1, 4));
      TF_ASSIGN_OR_RETURN(const Loops parts, s.Split(loop, factors));
      blocks.push_back(parts.front());
      if (has_virtual) virtuals.push_back(parts[1]);
      threads.push_back(parts[parts.size() - 2]);
      inner.push_back(parts.back());
    }
    order.clear();
    // The iterations of a thread stand inside of its reductions or outside.
    const bool inner_last = rng_.Chance(0.6);
    for (const Loops* part : std::vector<const Loops*>{
             &blocks, &virtuals, &threads, inner_last ? &rest : &inner,
             inner_last ? &reduce : &rest, inner_last ? &inner : &reduce}) {
      order.insert(order.end(), part->begin(), part->end());
    }
    TF_RETURN_IF_ERROR(s.Reorder(order));
    static const std::vector<std::string> kAxes = {"x", "y", "z"};
    const size_t turn = rng_.Below(4) == 0 ? 1 : 0;
    for (size_t i = 0; i < axes; ++i) {
      const std::string& axis = kAxes[(axes - 1 - i + turn) % 3];
      if (rng_.Chance(0.9)) {
        TF_RETURN_IF_ERROR(s.Bind(blocks[i], "blockIdx." + axis));
      }
      if (has_virtual) {
        TF_RETURN_IF_ERROR(s.Bind(virtuals[i], "vthread." + axis));
      }
      if (rng_.Chance(0.95)) {
        TF_RETURN_IF_ERROR(s.Bind(threads[i], "threadIdx." + axis));
      }
    }
    return absl::OkStatus();
  }

  // A reduction in steps, of which threads may share the inner or the outer
  // ones.
  absl::Status SplitReduction(Schedule& s, const std::string& name) {
    TF_ASSIGN_OR_RETURN(const BlockRv block, s.GetBlock(name));
    TF_ASSIGN_OR_RETURN(const Loops loops, s.GetLoops(block));
    Loops spatial, reduce;
    TF_RETURN_IF_ERROR(Sort(s, block, loops, spatial, reduce));
    if (reduce.empty()) return absl::NotFoundError("no reduction");
    LoopRv loop = Pick(reduce, rng_);
    if (reduce.size() > 1 && rng_.Chance(0.4)) {
      const auto fused = s.Fuse(reduce);
      if (fused.ok()) loop = *fused;
    }
    TF_ASSIGN_OR_RETURN(const Loops parts,
                        s.Split(loop, {std::nullopt, RandomThreads(rng_)}));
    if (rng_.Chance(0.6)) {
      const double axis = rng_.Uniform();
      return s.Bind(parts[rng_.Chance(0.8) ? 1 : 0], axis < 0.6 ? "threadIdx.x"
                                                     : axis < 0.9
                                                         ? "threadIdx.y"
                                                         : "threadIdx.z");
    }
    return absl::OkStatus();
  }

  struct Threads {
    std::string tag;
    int64_t extent;
  };

  // The loops of threads among these.
  static std::vector<Threads> ThreadsOf(const Schedule& s, const Loops& loops) {
    std::vector<Threads> threads;
    for (const LoopRv rv : loops) {
      const auto loop = s.Get(rv);
      if (!loop.ok() || (*loop)->for_kind != ir::ForKind::kThreadBinding ||
          !(*loop)->thread_tag.starts_with("threadIdx")) {
        continue;
      }
      threads.push_back(
          {(*loop)->thread_tag, ir::AsInt((*loop)->extent).value_or(1)});
    }
    return threads;
  }

  // Divides the loops that only `copy` has among the threads of `user`'s loops.
  absl::Status ShareOwnLoops(Schedule& s, const BlockRv copy,
                             const Loops& users) {
    TF_ASSIGN_OR_RETURN(const Loops loops, s.GetLoops(copy));
    std::vector<const ir::ForNode*> outer;
    for (const LoopRv rv : users) {
      TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, s.Get(rv));
      outer.push_back(loop.get());
    }
    Loops own;
    for (const LoopRv rv : loops) {
      TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, s.Get(rv));
      if (std::ranges::find(outer, loop.get()) == outer.end()) {
        own.push_back(rv);
      }
    }
    if (own.empty()) return absl::OkStatus();
    LoopRv fused = own.back();
    if (own.size() > 1) {
      TF_ASSIGN_OR_RETURN(fused, s.Fuse(own));
    }
    std::vector<Threads> threads = ThreadsOf(s, users);
    if (threads.empty() && rng_.Chance(0.7)) {
      threads = {{"threadIdx.x", RandomThreads(rng_)}};
    }
    // Some axes only, or fewer threads.
    while (threads.size() > 1 && rng_.Chance(0.3)) {
      threads.erase(threads.begin() +
                    static_cast<ptrdiff_t>(rng_.Below(threads.size())));
    }
    std::vector<schedule::Factor> factors = {std::nullopt};
    for (Threads& axis : threads) {
      if (axis.extent > 1 && rng_.Chance(0.1)) axis.extent /= 2;
      factors.emplace_back(axis.extent);
    }
    static const std::vector<int64_t> kWidths = {1, 2, 3, 4, 8};
    const int64_t width = rng_.Chance(0.5) ? Pick(kWidths, rng_) : 1;
    if (width > 1) factors.emplace_back(width);
    TF_ASSIGN_OR_RETURN(const Loops parts, s.Split(fused, factors));
    if (width > 1 && rng_.Chance(0.8)) {
      TF_RETURN_IF_ERROR(s.Vectorize(parts.back()));
    }
    for (size_t i = 0; i < threads.size(); ++i) {
      TF_RETURN_IF_ERROR(s.Bind(parts[i + 1], threads[i].tag));
    }
    return absl::OkStatus();
  }

  // An operand in shared or local memory, fetched below one of the loops.
  absl::Status StageOperand(Schedule& s, const std::string& name) {
    TF_ASSIGN_OR_RETURN(const BlockRv block, s.GetBlock(name));
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, s.Get(block));
    if (node->reads.empty()) return absl::NotFoundError("no read");
    const int read = static_cast<int>(rng_.Below(node->reads.size()));
    const std::string scope = rng_.Chance(0.8) ? "shared" : "local";
    TF_ASSIGN_OR_RETURN(const BlockRv copy, s.CacheRead(block, read, scope));
    TF_ASSIGN_OR_RETURN(const Loops loops, s.GetLoops(block));
    if (loops.empty()) return absl::NotFoundError("no loop");
    TF_RETURN_IF_ERROR(s.ComputeAt(copy, Pick(loops, rng_), rng_.Chance(0.3)));
    if (rng_.Chance(0.2)) {
      const int axis =
          static_cast<int>(rng_.Below(static_cast<uint64_t>(std::max(
              1, static_cast<int>(
                     node->reads[static_cast<size_t>(read)].region.size())))));
      s.StorageAlign(copy, 0, axis, 32, static_cast<int>(rng_.Between(1, 8)))
          .IgnoreError();
    }
    if (scope == "local" || rng_.Chance(0.15)) return absl::OkStatus();
    return ShareOwnLoops(s, copy, loops);
  }

  // A producer below a loop of its consumer.
  absl::Status MoveProducer(Schedule& s, const std::string& name) {
    TF_ASSIGN_OR_RETURN(const BlockRv block, s.GetBlock(name));
    TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> producers,
                        s.GetProducers(block));
    TF_ASSIGN_OR_RETURN(const Loops loops, s.GetLoops(block));
    if (producers.empty() || loops.empty()) {
      return absl::NotFoundError("no producer");
    }
    const BlockRv producer = Pick(producers, rng_);
    TF_RETURN_IF_ERROR(s.ComputeAt(producer, Pick(loops, rng_)));
    const double scope = rng_.Uniform();
    if (scope < 0.7) {
      TF_RETURN_IF_ERROR(
          s.SetScope(producer, 0, scope < 0.5 ? "shared" : "local"));
    }
    return rng_.Chance(0.6) ? ShareOwnLoops(s, producer, loops)
                            : absl::OkStatus();
  }

  // Annotates a loop of the block that has several statements, or any.
  absl::Status Pipeline(Schedule& s, const std::string& name) {
    TF_ASSIGN_OR_RETURN(const BlockRv block, s.GetBlock(name));
    TF_ASSIGN_OR_RETURN(const Loops loops, s.GetLoops(block));
    std::optional<LoopRv> where;
    size_t statements = 1;
    for (const LoopRv rv : loops) {
      TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, s.Get(rv));
      if (loop->for_kind == ir::ForKind::kThreadBinding) continue;
      const auto* seq = ir::As<ir::SeqNode>(loop->body);
      if (seq == nullptr && !rng_.Chance(0.1)) continue;
      where = rv;
      statements = seq != nullptr ? seq->stmts.size() : 1;
      if (rng_.Chance(0.5)) break;
    }
    if (!where) return absl::NotFoundError("no loop of several statements");
    if (rng_.Chance(0.6)) {
      return s.Annotate(*where, ir::kSharedStages,
                        ir::Attr(rng_.Between(2, 4)));
    }
    ir::AttrList stages, order;
    const int64_t depth = rng_.Between(1, 3);
    const size_t last =
        rng_.Chance(0.8) ? statements - 1 : rng_.Below(statements);
    for (size_t i = 0; i < statements; ++i) {
      stages.emplace_back(i < last ? int64_t{0} : depth);
      order.emplace_back(static_cast<int64_t>(i));
    }
    TF_RETURN_IF_ERROR(
        s.Annotate(*where, ir::kPipelineStage, ir::Attr(std::move(stages))));
    TF_RETURN_IF_ERROR(
        s.Annotate(*where, ir::kPipelineOrder, ir::Attr(std::move(order))));
    if (!rng_.Chance(0.6)) return absl::OkStatus();
    ir::AttrList async;
    async.emplace_back(int64_t{0});
    return s.Annotate(*where, ir::kPipelineAsyncStages,
                      ir::Attr(std::move(async)));
  }

  Schedule& s_;
  Rng& rng_;
  PrimitiveCounts* const counts_;
};

}  // namespace

schedule::Schedule RandomGpuSchedule(const ir::PrimFuncPtr& program,
                                     const target::Target& target, Rng& rng,
                                     PrimitiveCounts* counts) {
  static const std::vector<std::string> kBefore = {"split",
                                                   "fuse",
                                                   "reorder",
                                                   "compute_inline",
                                                   "rfactor",
                                                   "reindex",
                                                   "reverse_compute_inline",
                                                   "cache_read",
                                                   "cache_write"};
  static const std::vector<std::string> kAfter = {"split",
                                                  "fuse",
                                                  "reorder",
                                                  "bind",
                                                  "bind",
                                                  "bind",
                                                  "vectorize",
                                                  "unroll",
                                                  "compute_at",
                                                  "set_scope",
                                                  "reverse_compute_at",
                                                  "storage_align",
                                                  "decompose_reduction",
                                                  "cache_read",
                                                  "cache_write",
                                                  "rfactor",
                                                  "add_unit_loop",
                                                  "annotate"};
  ir::IRModule module;
  module.functions.push_back(program);
  Schedule schedule(module, rng.Next());
  for (int64_t i = rng.Chance(0.5) ? 0 : rng.Between(1, 4); i > 0; --i) {
    TryPrimitive(Pick(kBefore, rng), schedule, rng, counts);
  }
  std::vector<std::string> names = space::TopBlockNames(*program);
  // Mostly consumers first, so that producers may move into them.
  if (rng.Chance(0.3)) std::ranges::reverse(names);
  GpuTiler tiler(schedule, rng, counts);
  for (const std::string& name : names) {
    if (rng.Chance(0.85)) tiler.Tile(name);
  }
  for (int64_t i = rng.Chance(0.5) ? 0 : rng.Between(1, 8); i > 0; --i) {
    TryPrimitive(Pick(kAfter, rng), schedule, rng, counts);
  }
  // What is still unbound.
  Schedule bound = schedule;
  if (space::RewriteUnboundBlocks(bound, "main", target).ok()) {
    schedule = std::move(bound);
  }
  if (rng.Chance(0.4)) {
    Schedule next = schedule;
    if (space::RewriteThreadReductions(next, "main").ok()) {
      schedule = std::move(next);
    }
  }
  if (rng.Chance(0.4)) {
    Schedule next = schedule;
    if (space::RewriteThreadUnroll(next, "main").ok()) {
      schedule = std::move(next);
    }
  }
  return schedule;
}

}  // namespace tilefarm::property
