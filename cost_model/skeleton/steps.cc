// The steps of a sketch on numbers (compiler/schedule says the same of
// programs). move.cc has those that move blocks.
#include <algorithm>
#include <span>
#include <variant>

#include "absl/algorithm/container.h"
#include "cost_model/skeleton/nest.h"

namespace tilefarm::skeleton {

bool DecisionValues::Assign(std::span<const ir::Attr> decisions) {
  values_.clear();
  begins_.assign(1, 0);
  for (const ir::Attr& decision : decisions) {
    if (const ir::AttrList* list = decision.AsList()) {
      for (const ir::Attr& item : *list) {
        const std::optional<int64_t> value = item.AsInt();
        if (!value) return false;
        values_.push_back(*value);
      }
    } else {
      const std::optional<int64_t> value = decision.AsInt();
      if (!value) return false;
      values_.push_back(*value);
    }
    begins_.push_back(values_.size());
  }
  return true;
}

NestedBlock& Nest::NewBlock() {
  // References to blocks live through steps and postprocs.
  if (blocks_ == pool_.size()) pool_.emplace_back();
  NestedBlock& block = pool_[blocks_++];
  block.info = nullptr;
  block.is_init = block.decomposed = block.tensorized = false;
  block.guarded = block.reduce_guarded = block.cut = false;
  block.group_iter = -1;
  block.written_out.clear();
  return block;
}

int Nest::NewLoop(int64_t extent) {
  loops_.push_back({extent});
  return static_cast<int>(loops_.size()) - 1;
}

void Nest::Start(int values) {
  events_.clear();
  current_ = 0;
  unsure_ = nullptr;
  blocks_ = 0;
  order_.clear();
  loops_.clear();
  values_.assign(static_cast<size_t>(values), 0);
}

void Nest::AddBuffers(const std::vector<cost_model::NestBuffer>& buffers) {
  for (size_t b = shapes_.size(); b < buffers.size(); ++b) {
    shapes_.push_back(buffers[b].shape);
  }
}

const char* Nest::Do(const Step& step, const DecisionValues& decisions) {
  decisions_ = &decisions;
  std::visit([this](const auto& s) { Apply(s); }, step);
  return unsure_;
}

const char* Nest::Run(const SketchPlan& plan, const DecisionValues& decisions) {
  Start(plan.values);
  buffers_ = &plan.buffers;
  shapes_.resize(plan.buffers.size());
  for (size_t b = 0; b < shapes_.size(); ++b) {
    shapes_[b] = plan.buffers[b].shape;
  }
  for (const Step& step : plan.steps) {
    if (Do(step, decisions) != nullptr) return unsure_;
  }
  for (size_t i = 0; i < blocks_; ++i) pool_[i].info = &plan.infos[i];
  return nullptr;
}

std::span<const int64_t> Nest::DecisionOf(int site, size_t count) {
  unsure_ = "an illegal decision";
  if (site >= decisions_->sites()) return {};
  const std::span<const int64_t> decision = (*decisions_)[site];
  return decision.size() == count ? decision : std::span<const int64_t>();
}

void Nest::Apply(const SampleTile& step) {
  const auto decision = DecisionOf(step.site, static_cast<size_t>(step.count));
  if (decision.empty()) return;
  int64_t product = 1;
  for (int i = 0; i < step.count; ++i) {
    const int64_t factor = decision[static_cast<size_t>(i)];
    if (factor < 1 || __builtin_mul_overflow(product, factor, &product)) return;
    values_[static_cast<size_t>(step.first_value + i)] = factor;
  }
  const int64_t extent = loops_[step.loop].extent;
  if ((step.count == 1 || step.max_innermost <= 0 ||
       decision.back() <= step.max_innermost) &&
      (step.perfect ? product == extent : product >= extent)) {
    unsure_ = nullptr;
  }
}

void Nest::Apply(const SampleChoice& step) {
  const auto decision = DecisionOf(step.site, 1);
  if (decision.empty() || decision[0] < 0 ||
      decision[0] >= static_cast<int64_t>(step.choices.size())) {
    return;
  }
  values_[static_cast<size_t>(step.value)] =
      step.choices[static_cast<size_t>(decision[0])];
  unsure_ = nullptr;
}

void Nest::Apply(const SplitLoop& step) {
  const int64_t extent = loops_[step.loop].extent;
  int64_t product = 1;
  for (const std::optional<Operand>& factor : step.factors) {
    if (factor && __builtin_mul_overflow(product, ValueOf(*factor), &product)) {
      unsure_ = "factors that overflow";
      return;
    }
  }
  extents_.clear();
  int64_t covered = 1;
  for (const std::optional<Operand>& factor : step.factors) {
    extents_.push_back(factor ? ValueOf(*factor)
                              : (extent + product - 1) / product);
    covered *= extents_.back();
  }
  if (covered < extent || (step.must_divide && covered > extent)) {
    unsure_ = "an illegal split";
    return;
  }
  for (size_t b = 0; b < order_.size() && covered > extent; ++b) {
    NestedBlock& block = At(b);
    if (!IsBelow(block, step.loop)) continue;
    const bool reduces = Reduces(block, step.loop, /*reduce_only=*/false);
    (reduces ? block.reduce_guarded : block.guarded) = true;
    current_ = static_cast<uint32_t>(order_[b]) + 1;
    Note(kTail, reduces);
  }
  Split(step.loop, extents_);
}

void Nest::Apply(const FuseLoops& step) {
  for (size_t b = 0; b < order_.size(); ++b) {
    const std::vector<int>& loops = At(b).loops;
    const auto at = std::ranges::find(loops, step.loops[0]);
    if (at == loops.end()) continue;
    Fuse(At(b), static_cast<size_t>(at - loops.begin()), step.loops.size());
    return;
  }
}

void Nest::Apply(const ReorderLoops& step) {
  for (size_t b = 0; b < order_.size(); ++b) {
    std::vector<int>& loops = At(b).loops;
    size_t next = 0;
    for (int& loop : loops) {
      if (!absl::c_linear_search(step.loops, loop)) continue;
      loop = step.loops[next++];
    }
    // Legal only where every block below the first is below all of them.
    if (next != 0 && next != step.loops.size()) unsure_ = "a partial reorder";
  }
}

void Nest::Apply(const MarkLoop& step) { loops_[step.loop].kind = step.kind; }

void Nest::Apply(const RemoveBlock& step) { std::erase(order_, step.block); }

void Nest::Apply(const PlaceBlocks& step) {
  loops_.insert(loops_.end(), step.loops.begin(), step.loops.end());
  for (const auto& [number, block] : step.blocks) {
    while (blocks_ <= static_cast<size_t>(number)) NewBlock();
    pool_[static_cast<size_t>(number)] = block;
    current_ = static_cast<uint32_t>(number) + 1;
    if (block.guarded) Note(kTail);
  }
  order_ = step.order;
}

// rfactor (compiler/schedule/rfactor.cc): the factored block takes new loops
// like those of the old one, the joining block keeps these without the other
// reduce loops.
void Nest::Apply(const FactorReduction& step) {
  NewBlock();
  NestedBlock& factored = pool_[blocks_ - 1];
  NestedBlock& joining = pool_[static_cast<size_t>(step.block)];
  // Beyond the rest of its loop, the only reduce variable reads the identity.
  const auto reduces =
      std::ranges::count_if(joining.iters, [](const NestedIter& iter) {
        return iter.type != ir::IterType::kSpatial;
      });
  if (joining.guarded || (joining.reduce_guarded && reduces > 1)) {
    unsure_ = "a reduction with a tail that is factored";
    return;
  }
  joining.reduce_guarded = false;
  const int64_t extent = loops_[step.loop].extent;
  factored.loops.clear();
  for (const int loop : joining.loops) {
    loops_.push_back(loops_[loop]);
    factored.loops.push_back(static_cast<int>(loops_.size()) - 1);
  }
  const auto copy_of = [&](int loop) {
    const auto at = std::ranges::find(joining.loops, loop);
    return factored.loops[static_cast<size_t>(at - joining.loops.begin())];
  };
  factored.iters.clear();
  factored.bindings.clear();
  factored.constants.clear();
  // The variable of a loop; made where there is none yet.
  std::vector<std::pair<int, int>> made;
  const auto variable_of = [&](int loop) {
    for (const auto& [known, variable] : made) {
      if (known == loop) return variable;
    }
    made.emplace_back(loop, static_cast<int>(factored.iters.size()));
    factored.iters.push_back(
        {loop == step.loop ? ir::IterType::kSpatial : ir::IterType::kReduce,
         loops_[loop].extent});
    factored.bindings.push_back({{copy_of(loop)}});
    factored.constants.push_back(0);
    return made.back().second;
  };
  variable_of(step.loop);
  // Fused loops, by their place among what is written out.
  std::vector<std::pair<int, int>> wholes;
  const auto former_of = [&](int fused) {
    for (const auto& [known, former] : wholes) {
      if (known == fused) return former;
    }
    std::vector<LoopPart> sum;
    for (const int loop : joining.loops) {
      if (!IsPartOf(loop, fused)) continue;
      sum.push_back({variable_of(loop), StepOf(loop, fused)});
    }
    factored.written_out.push_back(std::move(sum));
    wholes.emplace_back(fused,
                        static_cast<int>(factored.written_out.size()) - 1);
    return wholes.back().second;
  };
  for (size_t i = 0; i < joining.iters.size(); ++i) {
    std::vector<LoopPart> parts = joining.bindings[i];
    if (joining.iters[i].type == ir::IterType::kSpatial ||
        !Uses(joining, i, step.loop)) {
      for (LoopPart& part : parts) {
        if (!part.is_digit()) part.loop = copy_of(part.loop);
      }
      factored.iters.push_back(joining.iters[i]);
      factored.bindings.push_back(std::move(parts));
      factored.constants.push_back(joining.constants[i]);
      continue;
    }
    if (joining.constants[i] != 0) unsure_ = "a shifted variable is factored";
    for (LoopPart& part : parts) {
      part.loop =
          part.is_digit() ? -1 - former_of(part.loop) : variable_of(part.loop);
    }
    factored.written_out.push_back(std::move(parts));
  }
  for (std::vector<LoopPart>& parts : factored.written_out) {
    for (LoopPart& part : parts) {
      if (part.loop >= 0) continue;
      part.loop = static_cast<int>(factored.iters.size()) - 1 - part.loop;
    }
  }

  std::erase_if(joining.loops, [&](int loop) {
    return loop != step.loop && Reduces(joining, loop, /*reduce_only=*/true);
  });
  size_t kept = 0;
  for (size_t i = 0; i < joining.iters.size(); ++i) {
    if (joining.iters[i].type != ir::IterType::kSpatial) continue;
    joining.iters[kept] = joining.iters[i];
    joining.constants[kept] = joining.constants[i];
    if (kept != i) joining.bindings[kept] = joining.bindings[i];
    ++kept;
  }
  joining.iters.resize(kept);
  joining.bindings.resize(kept);
  joining.constants.resize(kept);
  joining.iters.insert(joining.iters.begin(), {ir::IterType::kReduce, extent});
  joining.bindings.insert(joining.bindings.begin(),
                          std::vector<LoopPart>{{step.loop}});
  joining.constants.insert(joining.constants.begin(), 0);

  const auto at = std::ranges::find(order_, step.block);
  order_.insert(at, static_cast<int>(blocks_) - 1);
  shapes_[static_cast<size_t>(step.buffer)][static_cast<size_t>(step.axis)] =
      extent;
}

}  // namespace tilefarm::skeleton
