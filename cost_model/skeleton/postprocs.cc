// The postprocs of the design space on numbers
// (compiler/space/rewrite_*.cc).
#include "compiler/space/postprocs.h"

#include <array>
#include <span>

#include "absl/algorithm/container.h"
#include "cost_model/skeleton/nest.h"

namespace tilefarm::skeleton {

using ir::ForKind;

std::span<const space::LoopView> Nest::ViewLoops(const NestedBlock& block) {
  const size_t count = block.loops.size();
  if (views_.size() < count) views_.resize(count);
  for (size_t l = 0; l < count; ++l) {
    space::LoopView& view = views_[l];
    const NestedLoop& loop = loops_[block.loops[l]];
    view.extent = loop.extent;
    view.kind = loop.kind;
    view.reduces = view.sums = false;
    view.iters.clear();
  }
  for (size_t i = 0; i < block.iters.size(); ++i) {
    for (const LoopPart& part : block.bindings[i]) {
      const auto first = part.is_digit() ? block.loops.begin()
                                         : absl::c_find(block.loops, part.loop);
      // Only a digit may be of several loops.
      for (auto l = first; l != block.loops.end(); ++l) {
        space::LoopView& view =
            views_[static_cast<size_t>(l - block.loops.begin())];
        if (Moves(part, *l) &&
            (view.iters.empty() || view.iters.back() != static_cast<int>(i))) {
          view.iters.push_back(static_cast<int>(i));
          view.reduces |= block.iters[i].type != ir::IterType::kSpatial;
          view.sums |= block.iters[i].type == ir::IterType::kReduce;
        }
        if (!part.is_digit()) break;
      }
    }
  }
  return std::span(views_).first(count);
}

const char* Nest::Finish(const SketchPlan& plan, const target::Target& target) {
  const auto value = [&](const std::optional<Operand>& operand) {
    return operand ? std::optional(ValueOf(*operand)) : std::nullopt;
  };
  const std::optional<int64_t> jobs = value(plan.parallel_jobs);
  const std::optional<int64_t> vector = value(plan.vectorize);
  const int64_t unroll = value(plan.unroll_steps).value_or(0);
  const int64_t lanes = target.vector_lanes(4);
  panels_.resize(plan.buffers.size());
  for (space::Panels& panels : panels_) {
    panels.dims.clear();
    panels.lanes = panels.group = 0;
    panels.is_cut = false;
  }

  LayOutDotProducts();
  PackBuffers();
  for (size_t i = 0; i < order_.size(); ++i) {
    NestedBlock& block = At(i);
    if (block.info->is_prepacked) continue;
    current_ = static_cast<uint32_t>(i) + 1;
    if (vector && !block.info->is_transposed) Vectorize(block, lanes);
    if (jobs && target.cores > 1) Parallelize(block, *jobs);
    if (block.info->is_tiled) UnrollRegisterTile(block, lanes);
    if (unroll > 0) AnnotateUnroll(block, unroll);
  }
  snapshot_ = order_;
  for (const int block : snapshot_) {
    current_ = static_cast<uint32_t>(block) + 1;
    if (pool_[static_cast<size_t>(block)].info->is_reduction) Decompose(block);
  }
  for (const int block : snapshot_) {
    current_ = static_cast<uint32_t>(block) + 1;
    if (pool_[static_cast<size_t>(block)].info->dot) {
      Tensorize(pool_[static_cast<size_t>(block)]);
    }
  }
  return unsure_;
}

// --- rewrite_packing ---------------------------------------------------------

void Nest::PackBuffers() {
  for (size_t i = 0; i < order_.size(); ++i) {
    current_ = static_cast<uint32_t>(i) + 1;
    // As its instruction reads it.
    const int buffer = At(i).info->writes[0].buffer;
    if (!panels_[static_cast<size_t>(buffer)].empty()) continue;
    if (At(i).info->is_packed) PackBuffer(At(i));
    if (At(i).info->is_prepacked) PrepackBuffer(At(i));
  }
}

const NestedBlock* Nest::ReaderOf(int buffer) const {
  for (size_t i = 0; i < order_.size(); ++i) {
    if (Reads(At(i), buffer)) return &At(i);
  }
  return nullptr;
}

void Nest::PrepackBuffer(const NestedBlock& copy) {
  const int buffer = copy.info->writes[0].buffer;
  const NestedBlock* reader = ReaderOf(buffer);
  if (reader == nullptr || reader->info->dot) return;
  space::Panels& panels = panels_[static_cast<size_t>(buffer)];
  panels = space::PanelsAheadOfTime(
      shapes_[static_cast<size_t>(buffer)],
      space::ReadIndices(*reader->info->block,
                         copy.info->block->writes[0].buffer.get()),
      ViewLoops(*reader));
  Note(kPrepacked, panels.is_cut);
}

void Nest::PackBuffer(NestedBlock& copy) {
  const int buffer = copy.info->writes[0].buffer;
  const NestedBlock* reader = ReaderOf(buffer);
  if (reader == nullptr || reader->loops.empty()) return;
  const int inner = reader->loops.back();
  const int iter = IterOf(*reader, inner);
  if (iter < 0) return;
  space::Panels& panels = panels_[static_cast<size_t>(buffer)];
  panels =
      space::PanelsOf(shapes_[static_cast<size_t>(buffer)],
                      DimIndexedBy(*reader, copy, iter), loops_[inner].extent);
  if (panels.empty()) return;
  Note(kPanel, panels.is_cut);
  const int last = copy.loops.back();
  const int64_t extent = loops_[last].extent;
  if (extent <= panels.width || extent % panels.width != 0) return;
  Split(last, std::array{extent / panels.width, panels.width});
  Note(kSplitPanel);
}

// --- rewrite_parallel_vectorize_unroll ---------------------------------------

void Nest::Vectorize(NestedBlock& block, int64_t lanes) {
  // The variable that walks what it writes with step one.
  int iter = block.info->last_index_iter;
  const space::Panels& panels =
      panels_[static_cast<size_t>(block.info->writes[0].buffer)];
  if (!panels.empty()) {
    const auto last = static_cast<size_t>(panels.dims.back().dim);
    const ir::Expr& index = block.info->body.accesses[0].indices[last].expr;
    iter = -1;
    for (size_t i = 0; i < block.info->iters.size(); ++i) {
      if (block.info->iters[i].var == index.get()) iter = static_cast<int>(i);
    }
  }
  if (iter < 0) return;
  const std::optional<space::VectorLoop> vector = space::ChooseVectorLoop(
      ViewLoops(block), iter, panels.is_cut ? panels.width : 0, lanes);
  if (!vector) return;
  size_t at = vector->loop;
  int loop = block.loops[at];
  const bool innermost = at + 1 == block.loops.size();
  if (vector->length > 0 && loops_[loop].unroll_steps >= 0) return;
  if (!innermost && !IsChain(block, at, block.loops.size() - 1)) return;
  // Several blocks in the loop: all must allow it.
  if (BlocksBelow(loop) != 1) {
    if (!MayRunInParallel(block, at, 1)) return;
    bool guarded = false;
    for (size_t b = 0; b < order_.size(); ++b) {
      guarded |= (At(b).guarded || At(b).reduce_guarded) &&
                 absl::c_linear_search(At(b).loops, loop);
    }
    if (guarded && !innermost) unsure_ = "a vector loop of guarded loops";
    Note(kSharedVector, (innermost ? 1u : 0u) | (guarded ? 2u : 0u));
  }
  if (vector->length > 0) {
    const int64_t extent = loops_[loop].extent;
    if (extent % vector->length != 0) {
      if (BlocksBelow(loop) != 1) {
        unsure_ = "a tail that several blocks share";
        return;
      }
      block.guarded = block.cut = true;
      Note(kGuarded, block.info->is_reduction);
    }
    loop =
        Split(loop, std::array{(extent + vector->length - 1) / vector->length,
                               vector->length}) +
        1;
    ++at;
    Note(kSplitVector);
  }
  // The others in the loop have the same loops down to the block's last one.
  const auto last = static_cast<ptrdiff_t>(block.loops.size()) - 1;
  for (size_t b = 0; b < order_.size(); ++b) {
    std::vector<int>& loops = At(b).loops;
    if (loops.size() <= at || loops[at] != loop) continue;
    loops.erase(loops.begin() + static_cast<ptrdiff_t>(at));
    loops.insert(loops.begin() + last, loop);
  }
  loops_[loop].kind = ForKind::kVectorized;
  Note(innermost ? kVectorLoop : kMovedVector);
}

void Nest::Parallelize(NestedBlock& block, int64_t jobs) {
  size_t count = space::CountParallelLoops(ViewLoops(block), jobs);
  for (; count > 0; --count) {
    if (count > 1) {
      bool plain = IsChain(block, 0, count - 1);
      for (size_t i = 0; i < count; ++i) {
        plain = plain && loops_[block.loops[i]].unroll_steps < 0;
      }
      if (!plain) continue;
    }
    if (!MayRunInParallel(block, 0, count)) {
      if (unsure_) return;
      continue;
    }
    const int loop = count > 1 ? Fuse(block, 0, count) : block.loops[0];
    loops_[loop].kind = ForKind::kParallel;
    Note(kParallelLoops, static_cast<uint32_t>(count));
    return;
  }
}

// Whether `count` loops of the block from `first` on, as one, may run in
// parallel.
bool Nest::MayRunInParallel(const NestedBlock& block, size_t first,
                            size_t count) {
  const int loop = block.loops[first];
  const auto is_below = [&](const NestedBlock& other) {
    return other.loops.size() > first && other.loops[first] == loop;
  };
  bool one = true;  // iteration
  for (size_t i = first; i < first + count; ++i) {
    one = one && loops_[block.loops[i]].extent == 1;
  }
  for (size_t b = 0; b < order_.size(); ++b) {
    const NestedBlock& below = At(b);
    if (!is_below(below)) continue;
    for (size_t i = first; i < first + count; ++i) {
      // Fused, a loop of one iteration is no part of any binding.
      if (count > 1 && loops_[block.loops[i]].extent == 1) continue;
      if (Reduces(below, block.loops[i], false)) return false;
    }
    // Private: every access to what it writes is below the loop.
    const int buffer = below.info->writes[0].buffer;
    bool is_private = (*buffers_)[static_cast<size_t>(buffer)].intermediate;
    for (size_t o = 0; o < order_.size() && is_private; ++o) {
      const NestedBlock& other = At(o);
      is_private = is_below(other) || (!Reads(other, buffer) &&
                                       other.info->writes[0].buffer != buffer);
    }
    if (is_private || one) continue;
    // A complete block writes each element once for all; a reduction must be
    // told apart by the loops.
    if (Reads(below, buffer)) {
      unsure_ = "an update in a parallel loop";
      return false;
    }
    for (size_t i = 0; i < below.iters.size(); ++i) {
      const bool spatial = below.iters[i].type == ir::IterType::kSpatial;
      if (!spatial && !below.info->is_reduction) {
        unsure_ = "a reduction without init in a parallel loop";
      }
    }
    if (below.info->is_reduction) {
      for (size_t i = first; i < first + count; ++i) {
        bool used = loops_[block.loops[i]].extent == 1;
        for (size_t v = 0; v < below.bindings.size(); ++v) {
          used |= Uses(below, v, block.loops[i]);
        }
        if (!used) unsure_ = "a reduction that a parallel loop repeats";
      }
      // What lies past the tail would belong to the next iteration.
      for (size_t v = 0; v < below.bindings.size() && below.cut; ++v) {
        int fused = 0;
        for (size_t i = first; i < first + count; ++i) {
          fused += loops_[block.loops[i]].extent > 1 &&
                   Uses(below, v, block.loops[i]);
        }
        if (fused > 1) unsure_ = "a tail among parallel loops";
      }
    }
    if (unsure_) return false;
  }
  return true;
}

void Nest::UnrollRegisterTile(NestedBlock& block, int64_t lanes) {
  const std::optional<size_t> first =
      space::FindRegisterTile(ViewLoops(block), lanes);
  if (!first) return;
  Note(kUnrolled);
  for (size_t i = *first; i < block.loops.size(); ++i) {
    NestedLoop& loop = loops_[block.loops[i]];
    if (loop.kind == ForKind::kSerial && loop.extent > 1) {
      loop.kind = ForKind::kUnrolled;
    }
  }
}

void Nest::AnnotateUnroll(NestedBlock& block, int64_t steps) {
  if (block.loops.empty()) return;
  NestedLoop& outer = loops_[block.loops[0]];
  if (outer.unroll_steps >= 0) return;
  outer.unroll_steps = steps;
  Note(kAnnotated);
}

// --- rewrite_reductions ------------------------------------------------------

void Nest::Decompose(int number) {
  NestedBlock& block = pool_[static_cast<size_t>(number)];
  const std::optional<size_t> first = space::FindFirstReduceLoop(
      ViewLoops(block), block.info->dot ? block.info->dot->loops() : 0);
  // Nothing to move the initialisation out of.
  if (!first) return;
  NestedBlock& init = NewBlock();
  const int loop = block.loops[*first];
  init.info = block.info;
  init.iters = block.iters;
  init.written_out = block.written_out;
  init.is_init = true;
  init.loops.assign(block.loops.begin(),
                    block.loops.begin() + static_cast<ptrdiff_t>(*first));
  init.bindings.resize(block.bindings.size());
  for (size_t i = 0; i < block.bindings.size(); ++i) {
    init.bindings[i].clear();
    if (block.iters[i].type == ir::IterType::kSpatial) {
      init.bindings[i] = block.bindings[i];
    }
  }
  init.constants = block.constants;
  init.guarded = block.guarded;
  for (size_t l = *first; l < block.loops.size(); ++l) {
    const int old = block.loops[l];
    bool used = false;
    for (size_t i = 0; i < init.bindings.size(); ++i) {
      used |= Uses(init, i, old);
    }
    if (!used) continue;
    loops_.push_back(loops_[old]);
    const int made = static_cast<int>(loops_.size()) - 1;
    init.loops.push_back(made);
    for (std::vector<LoopPart>& parts : init.bindings) {
      for (LoopPart& part : parts) {
        if (part.loop == old) part.loop = made;
      }
    }
  }
  block.decomposed = true;
  size_t at = 0;
  while (!absl::c_linear_search(At(at).loops, loop)) {
    ++at;
  }
  order_.insert(order_.begin() + static_cast<ptrdiff_t>(at),
                static_cast<int>(blocks_) - 1);
  Note(kDecomposed);
}

}  // namespace tilefarm::skeleton
