#include "cost_model/skeleton/finish.h"

#include <algorithm>

namespace tilefarm::skeleton {
namespace {

using ir::ForKind;

// The bounds of compiler/space/rewrite_parallel_vectorize_unroll.cc.
constexpr int64_t kMaxTileStatements = 128;
constexpr int64_t kMaxVectorExtent = 64;

enum Step : uint64_t {
  kPanel = 1,
  kSplitPanel,
  kVectorLoop,
  kSplitVector,
  kMovedVector,
  kSharedVector,
  kGuarded,
  kParallelLoops,
  kUnrolled,
  kAnnotated,
  kDecomposed,
};
uint64_t Code(Step step, uint64_t detail) { return step * 1024 + detail; }

}  // namespace

NestedBlock& Nest::NewBlock() {
  if (blocks_ == pool_.size()) pool_.emplace_back();
  NestedBlock& block = pool_[blocks_++];
  block.is_init = block.decomposed = block.guarded = false;
  return block;
}

void Nest::Start(const Skeleton& skeleton,
                 const std::vector<int64_t>& numbers) {
  signature_ = 0;
  unsure_ = nullptr;
  blocks_ = 0;
  order_.clear();
  buffers_ = &skeleton.buffers;
  panels_.assign(skeleton.buffers.size(), Panels());
  loops_.clear();
  for (const Value extent : skeleton.extents) {
    loops_.push_back({numbers[static_cast<size_t>(extent)]});
  }
  // References into the pool must live through the postprocs: a block and its
  // initialisation each.
  pool_.reserve(2 * skeleton.blocks.size());
  for (const SketchBlock& sketch : skeleton.blocks) {
    NestedBlock& block = NewBlock();
    block.info = &skeleton.infos[static_cast<size_t>(sketch.info)];
    block.loops = sketch.loops;
    block.constants = sketch.constants;
    block.bindings.resize(sketch.bindings.size());
    for (size_t i = 0; i < sketch.bindings.size(); ++i) {
      block.bindings[i].clear();
      for (const Term& term : sketch.bindings[i]) {
        if (term.vanishes && loops_[term.loop].extent == 1) continue;
        block.bindings[i].push_back(
            {term.loop, numbers[static_cast<size_t>(term.coefficient)]});
      }
    }
    order_.push_back(static_cast<int>(blocks_) - 1);
  }
}

const char* Nest::Finish(const Skeleton& skeleton,
                         const std::vector<int64_t>& numbers,
                         const target::Target& target) {
  const auto number = [&](const std::optional<Value>& value) {
    return value ? std::optional(numbers[static_cast<size_t>(*value)])
                 : std::nullopt;
  };
  const std::optional<int64_t> jobs = number(skeleton.parallel_jobs);
  const std::optional<int64_t> vector = number(skeleton.vectorize);
  const int64_t unroll = number(skeleton.unroll_steps).value_or(0);
  const int64_t lanes = target.vector_lanes(4);

  PackBuffers(skeleton);
  for (size_t i = 0; i < order_.size(); ++i) {
    NestedBlock& block = At(i);
    if (vector && !block.info->is_transposed) Vectorize(block, lanes);
    if (jobs && target.cores > 1) Parallelize(block, *jobs);
    if (block.info->is_tiled) UnrollRegisterTile(block, lanes);
    if (unroll > 0) AnnotateUnroll(block, unroll);
  }
  snapshot_ = order_;
  for (const int block : snapshot_) {
    if (pool_[static_cast<size_t>(block)].info->is_reduction) Decompose(block);
  }
  return unsure_;
}

// --- rewrite_packing ---------------------------------------------------------

void Nest::PackBuffers(const Skeleton&) {
  for (size_t i = 0; i < order_.size(); ++i) {
    if (At(i).info->is_packed) PackBuffer(At(i));
  }
}

void Nest::PackBuffer(NestedBlock& copy) {
  const int buffer = copy.info->writes[0].buffer;
  const NestedBlock* reader = nullptr;
  for (size_t i = 0; i < order_.size() && reader == nullptr; ++i) {
    for (const BlockRegion& read : At(i).info->reads) {
      if (read.buffer == buffer) reader = &At(i);
    }
  }
  if (reader == nullptr || reader->loops.empty()) return;
  const int inner = reader->loops.back();
  const int64_t width = loops_[inner].extent;
  size_t iter = 0;
  while (iter < reader->bindings.size() && !Uses(*reader, iter, inner)) ++iter;
  if (iter == reader->bindings.size() || width < 2) return;
  int dim = -1;
  for (const BlockRegion& read : reader->info->reads) {
    if (read.buffer != buffer) continue;
    for (size_t d = 0; d < read.mins.size(); ++d) {
      if (read.mins[d].expr.get() == reader->info->iters[iter].var) {
        dim = static_cast<int>(d);
      }
    }
  }
  if (dim < 0) return;
  const std::vector<int64_t>& shape =
      (*buffers_)[static_cast<size_t>(buffer)].shape;
  const int64_t size = shape[static_cast<size_t>(dim)];
  if (size % width != 0) return;
  if (static_cast<size_t>(dim) + 1 == shape.size() && width == size) return;
  panels_[static_cast<size_t>(buffer)] = {dim, width, width < size};
  Note(Code(kPanel, width < size));
  const int last = copy.loops.back();
  const int64_t extent = loops_[last].extent;
  if (extent <= width || extent % width != 0) return;
  int outer = 0, within = 0;
  SplitLoop(last, width, &outer, &within);
  Note(Code(kSplitPanel, 0));
}

// --- rewrite_parallel_vectorize_unroll ---------------------------------------

void Nest::Vectorize(NestedBlock& block, int64_t lanes) {
  // The unit-stride loop.
  int iter = block.info->last_index_iter;
  const Panels& panels =
      panels_[static_cast<size_t>(block.info->writes[0].buffer)];
  if (panels.dim >= 0) {
    const ir::Expr& index = block.info->body.accesses[0]
                                .indices[static_cast<size_t>(panels.dim)]
                                .expr;
    iter = -1;
    for (size_t i = 0; i < block.info->iters.size(); ++i) {
      if (block.info->iters[i].var == index.get()) iter = static_cast<int>(i);
    }
  }
  if (iter < 0) return;
  size_t at = block.loops.size();
  while (at > 0 &&
         !(loops_[block.loops[at - 1]].extent > 1 &&
           Uses(block, static_cast<size_t>(iter), block.loops[at - 1]))) {
    --at;
  }
  if (at-- == 0) return;
  int loop = block.loops[at];
  if (Reduces(block, loop, false) || loops_[loop].kind != ForKind::kSerial) {
    return;
  }
  const int64_t extent = loops_[loop].extent;
  // It would leave the panel.
  if (panels.is_cut && panels.width % extent != 0) return;
  const bool split = extent > kMaxVectorExtent;
  if (split && loops_[loop].unroll_steps >= 0) return;
  const bool innermost = at + 1 == block.loops.size();
  if (!innermost) {
    for (size_t i = at + 1; i < block.loops.size(); ++i) {
      if (loops_[block.loops[i]].kind != ForKind::kSerial) return;
    }
    if (!IsChain(block, at, block.loops.size() - 1)) return;
  }
  // Several blocks in the loop: all must allow it.
  if (BlocksBelow(loop) != 1) {
    if (!MayRunInParallel(block, at, 1)) return;
    Note(Code(kSharedVector, innermost));
  }
  if (split) {
    const int64_t length = extent >= 4 * lanes ? 4 * lanes : lanes;
    if (extent % length != 0) {
      if (BlocksBelow(loop) != 1) {
        unsure_ = "a tail that several blocks share";
        return;
      }
      block.guarded = true;
      Note(Code(kGuarded, block.info->is_reduction));
    }
    int outer = 0;
    SplitLoop(loop, length, &outer, &loop);
    ++at;
    Note(Code(kSplitVector, 0));
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
  Note(Code(innermost ? kVectorLoop : kMovedVector, 0));
}

void Nest::Parallelize(NestedBlock& block, int64_t jobs) {
  size_t count = 0;
  int64_t product = 1;
  while (count < block.loops.size() && product < jobs) {
    const int loop = block.loops[count];
    if (Reduces(block, loop, false) || loops_[loop].kind != ForKind::kSerial) {
      break;
    }
    product *= loops_[loop].extent;
    ++count;
  }
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
    const int loop = count > 1 ? FuseLoops(block, count) : block.loops[0];
    loops_[loop].kind = ForKind::kParallel;
    Note(Code(kParallelLoops, count));
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
      if (is_below(other)) continue;
      for (const auto* regions : {&other.info->reads, &other.info->writes}) {
        for (const BlockRegion& region : *regions) {
          is_private = is_private && region.buffer != buffer;
        }
      }
    }
    if (is_private || one) continue;
    // A complete block writes each element once for all; a reduction must be
    // told apart by the loops.
    bool reads_own = false;
    for (const BlockRegion& read : below.info->reads) {
      reads_own |= read.buffer == buffer;
    }
    if (reads_own) {
      unsure_ = "an update in a parallel loop";
      return false;
    }
    for (size_t i = 0; i < below.info->iters.size(); ++i) {
      const bool spatial = below.info->iters[i].type == ir::IterType::kSpatial;
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
    }
    if (unsure_) return false;
  }
  return true;
}

void Nest::UnrollRegisterTile(NestedBlock& block, int64_t lanes) {
  size_t first = 0;
  for (size_t i = 0; i < block.loops.size(); ++i) {
    if (Reduces(block, block.loops[i], false)) first = i + 1;
  }
  int64_t statements = 1;
  for (size_t i = first; i < block.loops.size(); ++i) {
    const NestedLoop& loop = loops_[block.loops[i]];
    statements *= loop.kind == ForKind::kVectorized
                      ? (loop.extent + lanes - 1) / lanes
                      : loop.extent;
  }
  if (statements > kMaxTileStatements) return;
  Note(Code(kUnrolled, 0));
  for (size_t i = first; i < block.loops.size(); ++i) {
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
  Note(Code(kAnnotated, 0));
}

// --- rewrite_reductions ------------------------------------------------------

void Nest::Decompose(int number) {
  const size_t depth = pool_[static_cast<size_t>(number)].loops.size();
  size_t first = 0;
  for (; first < depth; ++first) {
    const NestedBlock& block = pool_[static_cast<size_t>(number)];
    const int loop = block.loops[first];
    if (loops_[loop].extent > 1 && Reduces(block, loop, true)) break;
  }
  // Nothing to move the initialisation out of.
  if (first == depth) return;
  NestedBlock& init = NewBlock();
  NestedBlock& block = pool_[static_cast<size_t>(number)];
  const int loop = block.loops[first];
  init.info = block.info;
  init.is_init = true;
  init.loops.assign(block.loops.begin(),
                    block.loops.begin() + static_cast<ptrdiff_t>(first));
  init.bindings.resize(block.bindings.size());
  for (size_t i = 0; i < block.bindings.size(); ++i) {
    init.bindings[i].clear();
    if (block.info->iters[i].type == ir::IterType::kSpatial) {
      init.bindings[i] = block.bindings[i];
    }
  }
  init.constants = block.constants;
  init.guarded = block.guarded;
  for (size_t l = first; l < depth; ++l) {
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
  while (std::find(At(at).loops.begin(), At(at).loops.end(), loop) ==
         At(at).loops.end()) {
    ++at;
  }
  order_.insert(order_.begin() + static_cast<ptrdiff_t>(at),
                static_cast<int>(blocks_) - 1);
  Note(Code(kDecomposed, 0));
}

// --- Loops -------------------------------------------------------------------

bool Nest::Uses(const NestedBlock& block, size_t iter, int loop) {
  for (const LoopPart& part : block.bindings[iter]) {
    if (part.loop == loop) return true;
  }
  return false;
}

bool Nest::Reduces(const NestedBlock& block, int loop, bool reduce_only) {
  for (size_t i = 0; i < block.bindings.size(); ++i) {
    const ir::IterType type = block.info->iters[i].type;
    if (reduce_only ? type != ir::IterType::kReduce
                    : type == ir::IterType::kSpatial) {
      continue;
    }
    if (Uses(block, i, loop)) return true;
  }
  return false;
}

bool Nest::IsChain(const NestedBlock& block, size_t first, size_t last) const {
  for (size_t b = 0; b < order_.size(); ++b) {
    const NestedBlock& other = At(b);
    // Paths agree down to `first`, or the block is elsewhere.
    if (other.loops.size() <= first ||
        other.loops[first] != block.loops[first]) {
      continue;
    }
    for (size_t i = first; i <= last; ++i) {
      if (i >= other.loops.size() || other.loops[i] != block.loops[i]) {
        return false;
      }
    }
  }
  return true;
}

int Nest::BlocksBelow(int loop) const {
  int count = 0;
  for (size_t b = 0; b < order_.size(); ++b) {
    const std::vector<int>& loops = At(b).loops;
    count += std::find(loops.begin(), loops.end(), loop) != loops.end();
  }
  return count;
}

void Nest::SplitLoop(int loop, int64_t inner_extent, int* outer, int* inner) {
  *outer = static_cast<int>(loops_.size());
  *inner = *outer + 1;
  const int64_t extent = loops_[loop].extent;
  loops_.push_back({(extent + inner_extent - 1) / inner_extent});
  loops_.push_back({inner_extent});
  for (size_t b = 0; b < order_.size(); ++b) {
    NestedBlock& block = At(b);
    const auto at = std::find(block.loops.begin(), block.loops.end(), loop);
    if (at == block.loops.end()) continue;
    *at = *outer;
    block.loops.insert(at + 1, *inner);
    for (std::vector<LoopPart>& parts : block.bindings) {
      for (size_t p = 0; p < parts.size(); ++p) {
        if (parts[p].loop != loop) continue;
        const LoopPart old = parts[p];
        if (old.lower != 1 || old.upper != 0) unsure_ = "a split fused loop";
        parts[p] = {*outer, old.coefficient * inner_extent};
        parts.insert(parts.begin() + static_cast<ptrdiff_t>(p) + 1,
                     {*inner, old.coefficient});
        ++p;
      }
    }
  }
}

// f // 8 * 16 + f % 8 // 2 * 4 is f // 2 * 4: neighbouring digits of a loop
// whose steps continue each other are one.
void Nest::MergeDigits(std::vector<LoopPart>& parts, int loop) {
  for (size_t high = 0; high < parts.size(); ++high) {
    if (parts[high].loop != loop) continue;
    for (size_t low = 0; low < parts.size(); ++low) {
      if (low == high || parts[low].loop != loop ||
          parts[low].upper != parts[high].lower ||
          parts[high].coefficient !=
              parts[low].coefficient * (parts[low].upper / parts[low].lower)) {
        continue;
      }
      parts[low].upper = parts[high].upper;
      parts.erase(parts.begin() + static_cast<ptrdiff_t>(high));
      high = static_cast<size_t>(-1);  // from the start
      break;
    }
  }
}

int Nest::FuseLoops(const NestedBlock& block, size_t count) {
  const int fused = static_cast<int>(loops_.size());
  const std::vector<int> old(
      block.loops.begin(), block.loops.begin() + static_cast<ptrdiff_t>(count));
  int64_t total = 1;
  std::vector<int64_t> lowers(count);
  for (size_t i = count; i-- > 0;) {
    lowers[i] = total;
    total *= loops_[old[i]].extent;
  }
  loops_.push_back({total});
  for (size_t b = 0; b < order_.size(); ++b) {
    NestedBlock& other = At(b);
    if (other.loops.empty() || other.loops[0] != old[0]) continue;
    other.loops.erase(other.loops.begin(),
                      other.loops.begin() + static_cast<ptrdiff_t>(count));
    other.loops.insert(other.loops.begin(), fused);
    for (std::vector<LoopPart>& parts : other.bindings) {
      for (LoopPart& part : parts) {
        const auto at = std::find(old.begin(), old.end(), part.loop);
        if (at == old.end()) continue;
        const auto i = static_cast<size_t>(at - old.begin());
        const int64_t extent = loops_[old[i]].extent;
        // One iteration: its variable is 0.
        if (extent == 1) {
          part.coefficient = 0;
          continue;
        }
        part.loop = fused;
        part.lower = lowers[i];
        part.upper = i > 0 ? lowers[i] * extent : 0;
      }
      std::erase_if(parts,
                    [](const LoopPart& part) { return part.coefficient == 0; });
      MergeDigits(parts, fused);
    }
  }
  return fused;
}

}  // namespace tilefarm::skeleton
