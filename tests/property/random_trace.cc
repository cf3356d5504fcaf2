#include "tests/property/random_trace.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/tensor_intrin.h"

namespace tilefarm::property {
namespace {

using schedule::BlockRv;
using schedule::LoopRv;
using schedule::Schedule;

std::vector<std::string> BlockNames(const Schedule& schedule) {
  std::vector<std::string> names;
  const ir::PrimFuncPtr function = schedule.module().Find("main");
  ir::PreOrder(function->body, [&](const ir::Stmt& stmt) {
    if (const auto* block = ir::As<ir::BlockNode>(stmt)) {
      if (block->name != "root") names.push_back(block->name);
    }
    return true;
  });
  return names;
}

// A step works on a copy; its status says whether it was accepted.
class Stepper {
 public:
  Stepper(Schedule& schedule, Rng& rng) : s_(schedule), rng_(rng) {}

  absl::Status Run(const std::string& primitive, const std::string& name) {
    const std::vector<std::string> names = BlockNames(s_);
    auto block = s_.GetBlock(name);
    if (!block.ok()) return block.status();
    auto loops = s_.GetLoops(*block);
    if (!loops.ok()) return loops.status();
    if (primitive == "compute_inline") return s_.ComputeInline(*block);
    if (primitive == "reverse_compute_inline") {
      return s_.ReverseComputeInline(*block);
    }
    if (primitive == "cache_read") {
      return s_.CacheRead(*block, Index(), Scope()).status();
    }
    if (primitive == "cache_write") {
      return s_.CacheWrite(*block, 0, Scope()).status();
    }
    if (primitive == "reindex") {
      return s_.Reindex(*block, rng_.Chance(0.5), Index()).status();
    }
    if (primitive == "set_scope") {
      return s_.SetScope(*block, 0, rng_.Chance(0.5) ? "local" : "shared");
    }
    if (primitive == "tensorize") {
      if (rng_.Chance(0.8)) return TensorizeTile(*block, *loops);
      return s_.Tensorize(loops->empty() || rng_.Chance(0.2)
                              ? schedule::BlockOrLoop(*block)
                              : schedule::BlockOrLoop(Pick(*loops, rng_)),
                          Pick(IntrinsicNames(), rng_));
    }
    if (primitive == "call_library") {
      return s_.CallLibrary(*block, "openblas.sgemm");
    }
    if (primitive == "annotate_block") {
      return s_.Annotate(*block, "note", ir::Attr(rng_.Between(0, 3)));
    }
    if (primitive == "unannotate") return s_.Unannotate(*block, "note");
    if (primitive == "sample_categorical") {
      return s_.SampleCategorical({1, 2, 4}, {0.5, 0.25, 0.25}).status();
    }
    if (primitive == "sample_compute_location") {
      auto location = s_.SampleComputeLocation(*block);
      if (!location.ok()) return location.status();
      return s_.ComputeAt(*block, *location, rng_.Chance(0.5));
    }
    if (primitive == "get_consumers") {
      return s_.GetConsumers(*block).status();
    }
    if (primitive == "get_producers") {
      return s_.GetProducers(*block).status();
    }
    if (primitive == "get_child_blocks") {
      return s_.GetChildBlocks(*block).status();
    }
    if (primitive == "fission") return s_.Fission(*block).status();
    if (primitive == "skip_zeros") return s_.SkipZeros(*block);
    if (primitive == "winograd") {
      return s_.Winograd(*block, rng_.Chance(0.5) ? 2 : 4).status();
    }
    if (primitive == "online_softmax") {
      const int64_t lanes = rng_.Between(1, 4);
      // The exponentials first, if a block of their own computes them.
      auto producers = s_.GetProducers(*block);
      if (!producers.ok()) return producers.status();
      for (const BlockRv producer : *producers) {
        s_.ComputeInline(producer).IgnoreError();
      }
      return s_.OnlineSoftmax(*block, rng_.Between(1, 3) * lanes, lanes)
          .status();
    }
    if (primitive == "online_product") return OnlineProduct(*block);
    if (primitive == "pad_einsum") return PadEinsum(*block);
    if (primitive == "pad_softmax") return PadSoftmax(*block);
    if (primitive == "storage_align") {
      return s_.StorageAlign(*block, 0, static_cast<int>(rng_.Between(-2, 2)),
                             16, 4);
    }
    if (primitive == "transform_layout") return TransformLayout(*block);
    if (primitive == "transform_block_layout") {
      return TransformBlockLayout(*block);
    }
    if (primitive == "compute_at" || primitive == "reverse_compute_at") {
      absl::StatusOr<BlockRv> other =
          Partner(*block, /*consumer=*/primitive == "compute_at", names);
      if (!other.ok()) return other.status();
      auto targets = s_.GetLoops(*other);
      if (!targets.ok()) return targets.status();
      if (targets->empty()) return absl::NotFoundError("no loop");
      const LoopRv loop = Pick(*targets, rng_);
      const bool unit = rng_.Chance(0.5);
      const int index =
          rng_.Chance(0.7) ? -1 : static_cast<int>(rng_.Between(-2, 2));
      return primitive == "compute_at"
                 ? s_.ComputeAt(*block, loop, unit, index)
                 : s_.ReverseComputeAt(*block, loop, unit, index);
    }
    if (loops->empty()) return absl::NotFoundError("no loop");
    const LoopRv loop = Pick(*loops, rng_);
    if (primitive == "split") return Split(loop);
    if (primitive == "sample_tile") return SampledSplit(loop);
    if (primitive == "fuse") return Fuse(*loops);
    if (primitive == "reorder") return Reorder(*loops);
    if (primitive == "parallel") return s_.Parallel(loop);
    if (primitive == "vectorize") return s_.Vectorize(loop);
    if (primitive == "unroll") return s_.Unroll(loop);
    if (primitive == "add_unit_loop") {
      return rng_.Chance(0.5) ? s_.AddUnitLoop(loop).status()
                              : s_.AddUnitLoop(*block).status();
    }
    if (primitive == "decompose_reduction") {
      return s_.DecomposeReduction(*block, loop).status();
    }
    if (primitive == "rfactor") {
      return s_.Rfactor(loop, static_cast<int>(rng_.Below(3))).status();
    }
    if (primitive == "blockize") return s_.Blockize(loop).status();
    if (primitive == "bind") {
      static const std::vector<std::string> kAxes = {
          "blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y", "vthread"};
      return s_.Bind(loop, Pick(kAxes, rng_));
    }
    if (primitive == "annotate") {
      return s_.Annotate(loop, "pragma_auto_unroll_max_step",
                         ir::Attr(static_cast<int64_t>(rng_.Below(64))));
    }
    return absl::InternalError(absl::StrCat("unknown primitive ", primitive));
  }

 private:
  // Usually a block that reads what `block` writes (or the reverse), since
  // primitives reject others.
  absl::StatusOr<BlockRv> Partner(BlockRv block, bool consumer,
                                  const std::vector<std::string>& names) {
    if (rng_.Chance(0.8)) {
      auto partners =
          consumer ? s_.GetConsumers(block) : s_.GetProducers(block);
      if (partners.ok() && !partners->empty()) return Pick(*partners, rng_);
    }
    return s_.GetBlock(Pick(names, rng_));
  }

  int Index() { return static_cast<int>(rng_.Below(3)); }
  std::string Scope() { return rng_.Chance(0.8) ? "global" : "local"; }

  static const std::vector<std::string>& IntrinsicNames() {
    static const std::vector<std::string>* const names = [] {
      auto* all = new std::vector<std::string>;
      for (const schedule::TensorIntrin& one : schedule::TensorIntrins()) {
        all->push_back(one.name);
      }
      return all;
    }();
    return *names;
  }

  // The loop whose variable is the binding.
  std::optional<LoopRv> LoopOf(const ir::IterVar& iter,
                               const std::vector<LoopRv>& loops) {
    for (const LoopRv loop : loops) {
      const auto node = s_.Get(loop);
      if (node.ok() && iter.binding.get() == (*node)->var.get()) return loop;
    }
    return std::nullopt;
  }

  // Splits the block's last loops into tiles of an intrinsic's extents, makes
  // these the innermost loops, and replaces them by the intrinsic.
  absl::Status TensorizeTile(BlockRv block, const std::vector<LoopRv>& loops) {
    std::vector<std::string> names = IntrinsicNames();
    rng_.Shuffle(names);
    for (const std::string& name : names) {
      const auto intrin = schedule::FindTensorIntrin(name);
      if (!intrin.ok()) return intrin.status();
      Schedule trial = s_;
      if (!TensorizeWith(trial, block, loops, **intrin).ok()) continue;
      s_ = std::move(trial);
      return absl::OkStatus();
    }
    return absl::NotFoundError("no intrinsic fits");
  }

  absl::Status TensorizeWith(Schedule& schedule, BlockRv block,
                             const std::vector<LoopRv>& loops,
                             const schedule::TensorIntrin& intrin) {
    const auto node = s_.Get(block);
    if (!node.ok()) return node.status();
    if ((*node)->writes.empty() ||
        (*node)->writes[0].buffer->dtype !=
            intrin.description->params.back()->dtype) {
      return absl::NotFoundError("another dtype");
    }
    const ir::BlockNode* described = nullptr;
    ir::PreOrder(intrin.description->root()->body, [&](const ir::Stmt& stmt) {
      if (const auto* inner = ir::As<ir::BlockNode>(stmt)) described = inner;
      return true;
    });
    // Go backwards from the last variable of each kind.
    std::vector<LoopRv> outer, inner, rest = loops;
    std::vector<ir::IterVar> ours = (*node)->iters;
    for (size_t i = described->iters.size(); i-- > 0;) {
      const ir::IterVar& want = described->iters[i];
      auto found = ours.end();
      while (found != ours.begin() && std::prev(found)->type != want.type) {
        --found;
      }
      if (found == ours.begin()) return absl::NotFoundError("no variable");
      const std::optional<LoopRv> loop = LoopOf(*std::prev(found), loops);
      const auto extent = ir::AsInt(want.dom.extent);
      if (!loop.has_value()) return absl::NotFoundError("no plain loop");
      const auto ours_extent = ir::AsInt(std::prev(found)->dom.extent);
      if (!ours_extent.has_value() || *ours_extent % *extent != 0) {
        return absl::NotFoundError("no whole tiles");
      }
      ours.erase(std::prev(found));
      std::erase_if(rest, [&](const LoopRv& l) { return l.id == loop->id; });
      const auto parts = schedule.Split(*loop, {std::nullopt, *extent});
      if (!parts.ok()) return parts.status();
      outer.insert(outer.begin(), (*parts)[0]);
      inner.insert(inner.begin(), (*parts)[1]);
    }
    std::vector<LoopRv> order = rest;
    order.insert(order.end(), outer.begin(), outer.end());
    order.insert(order.end(), inner.begin(), inner.end());
    const absl::Status reordered = schedule.Reorder(order);
    if (!reordered.ok()) return reordered;
    return schedule.Tensorize(inner.front(), intrin.name);
  }

  absl::Status Split(LoopRv loop) {
    std::vector<schedule::Factor> factors;
    const int parts = static_cast<int>(rng_.Between(2, 3));
    const size_t inferred = rng_.Below(parts);
    for (int i = 0; i < parts; ++i) {
      if (static_cast<size_t>(i) == inferred) {
        factors.push_back(std::nullopt);
      } else {
        factors.push_back(rng_.Between(1, 8));
      }
    }
    return s_
        .Split(loop, factors, /*preserve_unit_iters=*/rng_.Chance(0.8),
               /*disable_predication=*/rng_.Chance(0.1))
        .status();
  }

  absl::Status SampledSplit(LoopRv loop) {
    auto factors = rng_.Chance(0.5) ? s_.SamplePerfectTile(loop, 2, 16)
                                    : s_.SampleTile(loop, 2, 16);
    if (!factors.ok()) return factors.status();
    return s_.Split(loop, {(*factors)[0], (*factors)[1]}).status();
  }

  absl::Status Fuse(const std::vector<LoopRv>& loops) {
    const size_t first = rng_.Below(loops.size());
    const size_t count =
        1 + rng_.Below(std::min<size_t>(3, loops.size() - first));
    return s_
        .Fuse({loops.begin() + first, loops.begin() + first + count},
              /*preserve_unit_iters=*/rng_.Chance(0.8))
        .status();
  }

  absl::Status Reorder(const std::vector<LoopRv>& loops) {
    std::vector<LoopRv> order;
    for (const LoopRv& loop : loops) {
      if (rng_.Chance(0.7)) order.push_back(loop);
    }
    if (order.size() < 2) return absl::NotFoundError("one loop");
    rng_.Shuffle(order);
    return s_.Reorder(order);
  }

  // Of a product with a softmax whose exponentials are inlined.
  // What makes the exponentials of a softmax that the block multiplies.
  absl::Status InlineExponentials(BlockRv block) {
    auto shares = s_.GetProducers(block);
    if (!shares.ok()) return shares.status();
    for (const BlockRv share : *shares) {
      auto makers = s_.GetProducers(share);
      if (!makers.ok()) continue;
      for (const BlockRv maker : *makers) s_.ComputeInline(maker).IgnoreError();
    }
    return absl::OkStatus();
  }

  absl::Status OnlineProduct(BlockRv block) {
    auto node = s_.Get(block);
    if (!node.ok()) return node.status();
    const auto divisor = [&](int64_t extent) {
      int64_t found = rng_.Between(1, extent);
      while (extent % found != 0) --found;
      return found;
    };
    int64_t rows = 1, terms = 1;
    for (const ir::IterVar& iter : (*node)->iters) {
      const int64_t extent = ir::AsInt(iter.dom.extent).value_or(1);
      if (iter.type == ir::IterType::kReduce) {
        terms = extent;
      } else if (rows == 1) {
        rows = extent;
      }
    }
    const absl::Status inlined = InlineExponentials(block);
    if (!inlined.ok()) return inlined;
    const int64_t tile = divisor(rows);
    return s_.OnlineProduct(block, tile, divisor(rows / tile), divisor(terms))
        .status();
  }

  absl::Status PadEinsum(BlockRv block) {
    auto node = s_.Get(block);
    if (!node.ok()) return node.status();
    std::vector<int64_t> padding;
    for (size_t i = 0; i < (*node)->iters.size(); ++i) {
      padding.push_back(rng_.Between(1, 5));
    }
    return s_.PadEinsum(block, std::move(padding));
  }

  absl::Status PadSoftmax(BlockRv block) {
    const absl::Status inlined = InlineExponentials(block);
    if (!inlined.ok()) return inlined;
    auto node = s_.Get(block);
    if (!node.ok()) return node.status();
    std::vector<int64_t> padding;
    for (size_t i = 0; i < (*node)->iters.size(); ++i) {
      // The first variable often counts softmaxes.
      padding.push_back(i == 0 && rng_.Chance(0.6) ? 1 : rng_.Between(1, 5));
    }
    return s_.PadSoftmax(block, std::move(padding), rng_.Between(1, 5));
  }

  // Fuses two variables, or splits one, and shuffles all.
  absl::Status TransformBlockLayout(BlockRv block) {
    auto node = s_.Get(block);
    if (!node.ok()) return node.status();
    const std::vector<ir::IterVar>& iters = (*node)->iters;
    if (iters.empty()) return absl::NotFoundError("no variables");
    std::vector<std::string> inputs, outputs;
    for (size_t i = 0; i < iters.size(); ++i) {
      inputs.push_back(absl::StrCat("i", i));
    }
    outputs = inputs;
    const size_t one = rng_.Below(iters.size()),
                 other = rng_.Below(iters.size());
    if (one != other && iters[one].type == iters[other].type &&
        rng_.Chance(0.7)) {
      absl::StrAppend(&outputs[one], " * ",
                      ir::AsInt(iters[other].dom.extent).value_or(1), " + i",
                      other);
      outputs.erase(outputs.begin() + static_cast<long>(other));
    } else if (rng_.Chance(0.7)) {
      const int64_t tile = rng_.Between(1, 4);
      outputs.push_back(absl::StrCat("i", one, " % ", tile));
      absl::StrAppend(&outputs[one], " // ", tile);
    }
    rng_.Shuffle(outputs);
    return s_.TransformBlockLayout(
        block, absl::StrCat("lambda ", absl::StrJoin(inputs, ", "), ": (",
                            absl::StrJoin(outputs, ", "), ",)"));
  }

  absl::Status TransformLayout(BlockRv block) {
    auto node = s_.Get(block);
    if (!node.ok()) return node.status();
    if ((*node)->writes.empty()) return absl::NotFoundError("no buffer");
    const int ndim = (*node)->writes[0].buffer->ndim();
    std::string args, results;
    std::vector<int> order;
    for (int i = 0; i < ndim; ++i) {
      absl::StrAppend(&args, i == 0 ? "" : ", ", "i", i);
      order.push_back(i);
    }
    rng_.Shuffle(order);
    const int64_t tile = rng_.Between(1, 4);
    for (int i : order) {
      absl::StrAppend(&results, "i", i, i == order.back() ? " // " : ", ");
      if (i == order.back()) {
        absl::StrAppend(&results, tile, ", i", i, " % ", tile);
      }
    }
    return s_.TransformLayout(
        block, /*read=*/false, 0,
        absl::StrCat("lambda ", args, ": (", results, ")"));
  }

  Schedule& s_;
  Rng& rng_;
};

// Primitives that apply to few blocks: all are tried.
const std::vector<std::string>& RarePrimitives() {
  static const auto& names = *new std::vector<std::string>{
      "tensorize",  "winograd",   "online_softmax", "online_product", "fission",
      "skip_zeros", "pad_einsum", "pad_softmax",    "call_library"};
  return names;
}

}  // namespace

bool TryPrimitive(const std::string& primitive, Schedule& schedule, Rng& rng,
                  PrimitiveCounts* counts) {
  std::vector<std::string> blocks = BlockNames(schedule);
  ++counts->tried[primitive];
  if (blocks.empty()) return false;
  rng.Shuffle(blocks);
  const std::vector<std::string>& rare = RarePrimitives();
  if (std::find(rare.begin(), rare.end(), primitive) == rare.end()) {
    blocks.resize(1);
  }
  for (const std::string& block : blocks) {
    Schedule next = schedule;
    if (!Stepper(next, rng).Run(primitive, block).ok()) continue;
    ++counts->accepted[primitive];
    schedule = std::move(next);
    return true;
  }
  return false;
}

schedule::Schedule RandomSchedule(const ir::PrimFuncPtr& program, int steps,
                                  Rng& rng, PrimitiveCounts* counts) {
  static const std::vector<std::string> primitives = {"split",
                                                      "split",
                                                      "sample_tile",
                                                      "fuse",
                                                      "reorder",
                                                      "reorder",
                                                      "parallel",
                                                      "vectorize",
                                                      "vectorize",
                                                      "unroll",
                                                      "add_unit_loop",
                                                      "compute_at",
                                                      "compute_at",
                                                      "reverse_compute_at",
                                                      "reverse_compute_at",
                                                      "compute_inline",
                                                      "reverse_compute_inline",
                                                      "cache_read",
                                                      "cache_write",
                                                      "reindex",
                                                      "storage_align",
                                                      "transform_layout",
                                                      "transform_block_layout",
                                                      "decompose_reduction",
                                                      "decompose_reduction",
                                                      "rfactor",
                                                      "rfactor",
                                                      "fission",
                                                      "skip_zeros",
                                                      "winograd",
                                                      "online_softmax",
                                                      "online_product",
                                                      "pad_einsum",
                                                      "pad_softmax",
                                                      "blockize",
                                                      "blockize",
                                                      "bind",
                                                      "set_scope",
                                                      "tensorize",
                                                      "call_library",
                                                      "sample_categorical",
                                                      "sample_compute_location",
                                                      "get_producers",
                                                      "get_consumers",
                                                      "get_child_blocks",
                                                      "annotate_block",
                                                      "unannotate",
                                                      "annotate"};
  ir::IRModule module;
  module.functions.push_back(program);
  Schedule schedule(module, rng.Next());
  int accepted = 0;
  // Most of the rare ones need an unscheduled program.
  if (rng.Chance(0.3)) {
    accepted +=
        TryPrimitive(Pick(RarePrimitives(), rng), schedule, rng, counts);
  }
  for (int attempt = 0; attempt < 6 * steps && accepted < steps; ++attempt) {
    accepted += TryPrimitive(Pick(primitives, rng), schedule, rng, counts);
  }
  return schedule;
}

}  // namespace tilefarm::property
