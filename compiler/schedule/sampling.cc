// sample_perfect_tile, sample_tile, sample_categorical,
// sample_compute_location: the random choices of a trace. A given decision is
// checked and never changed.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/loop_primitives.h"

namespace tilefarm::schedule {
namespace {

std::vector<int64_t> PrimeFactors(int64_t value) {
  std::vector<int64_t> primes;
  for (int64_t p = 2; p * p <= value; ++p) {
    while (value % p == 0) {
      primes.push_back(p);
      value /= p;
    }
  }
  if (value > 1) primes.push_back(value);
  return primes;
}

// Multiplies each prime factor into a random level. If the innermost factor is
// too large, draws again, and at last moves it to the outermost level.
std::vector<int64_t> DrawPerfectTile(Rng& rng, int64_t extent, int n,
                                     int max_innermost_factor) {
  const std::vector<int64_t> primes = PrimeFactors(extent);
  std::vector<int64_t> out;
  for (int attempt = 0; attempt < 16; ++attempt) {
    out.assign(n, 1);
    for (const int64_t prime : primes) out[rng.Below(n)] *= prime;
    if (n == 1 || max_innermost_factor <= 0 ||
        out.back() <= max_innermost_factor) {
      return out;
    }
  }
  out[0] *= out.back();
  out.back() = 1;
  return out;
}

// Draws inner factors on a logarithmic scale; the outermost takes the rest.
std::vector<int64_t> DrawTile(Rng& rng, int64_t extent, int n,
                              int max_innermost_factor) {
  std::vector<int64_t> out(static_cast<size_t>(n), 1);
  int64_t rest = extent;
  for (int i = n - 1; i > 0; --i) {
    int64_t limit = rest;
    if (i == n - 1 && max_innermost_factor > 0) {
      limit = std::min<int64_t>(limit, max_innermost_factor);
    }
    // Integer arithmetic only, for the same result on every platform.
    int bits = 0;
    while ((int64_t{2} << bits) <= limit) ++bits;
    const int64_t low = int64_t{1} << rng.Below(bits + 1);
    const int64_t high = std::min(limit, 2 * low - 1);
    const int64_t factor = rng.Chance(0.5) ? low : rng.Between(low, high);
    out[i] = factor;
    rest = (rest + factor - 1) / factor;
  }
  out[0] = rest;
  return out;
}

// Draws the factors if there is no decision. Checks that there are n of them,
// that the innermost is not too large, and that the product is the extent or,
// with `tails`, at least the extent.
absl::StatusOr<std::vector<ExprRv>> SampleFactors(
    ScheduleState& state, LoopRv loop_rv, int n, int max_innermost_factor,
    bool tails, std::optional<std::vector<int64_t>>& decision) {
  TF_ASSIGN_OR_RETURN(const ir::ForPtr loop, state.Get(loop_rv));
  const auto refuse = [&](const auto&... reason) {
    return state.Illegal(loop.get(), reason...);
  };
  if (n < 1 || n > 64) {
    return state.Invalid(loop.get(), "n is ", n, ", not within 1 and 64");
  }
  const auto extent = ExtentOf(loop);
  if (!extent) return refuse("the loop's extent is not a constant");
  if (!decision) {
    decision = (tails ? DrawTile : DrawPerfectTile)(state.rng(), *extent, n,
                                                    max_innermost_factor);
  }
  if (static_cast<int>(decision->size()) != n) {
    return refuse("the decision has ", decision->size(), " factors, not ", n);
  }
  int64_t product = 1;
  for (const int64_t factor : *decision) {
    if (factor < 1) {
      return refuse("factor ", factor, " of the decision is not positive");
    }
    if (__builtin_mul_overflow(product, factor, &product)) {
      return refuse("the decision overflows");
    }
  }
  if (n > 1 && max_innermost_factor > 0 &&
      decision->back() > max_innermost_factor) {
    return refuse("the innermost factor ", decision->back(),
                  " exceeds max_innermost_factor ", max_innermost_factor);
  }
  if (tails ? product < *extent : product != *extent) {
    return refuse("the decision's product ", product,
                  tails ? " is less than the extent " : " is not the extent ",
                  *extent);
  }
  std::vector<ExprRv> out;
  for (const int64_t value : *decision) out.push_back(state.NewExpr(value));
  return out;
}

}  // namespace

absl::StatusOr<std::vector<ExprRv>> SamplePerfectTile(
    ScheduleState& state, LoopRv loop, int n, int max_innermost_factor,
    std::optional<std::vector<int64_t>>& decision) {
  return SampleFactors(state, loop, n, max_innermost_factor, /*tails=*/false,
                       decision);
}

absl::StatusOr<std::vector<ExprRv>> SampleTile(
    ScheduleState& state, LoopRv loop, int n, int max_innermost_factor,
    std::optional<std::vector<int64_t>>& decision) {
  return SampleFactors(state, loop, n, max_innermost_factor,
                       /*tails=*/true, decision);
}

absl::StatusOr<ExprRv> SampleCategorical(ScheduleState& state,
                                         const std::vector<int64_t>& candidates,
                                         const std::vector<double>& probs,
                                         std::optional<int64_t>& decision) {
  if (candidates.empty() || candidates.size() != probs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("sample_categorical: ", candidates.size(),
                     " candidates with ", probs.size(), " probabilities"));
  }
  double total = 0;
  for (const double p : probs) {
    if (!(p >= 0) || !std::isfinite(p)) {
      return absl::InvalidArgumentError(
          "sample_categorical: a probability is negative or not a number");
    }
    total += p;
  }
  if (total <= 0) {
    return absl::InvalidArgumentError(
        "sample_categorical: every probability is 0");
  }
  if (!decision) {
    decision = static_cast<int64_t>(state.rng().Weighted(probs));
  }
  if (*decision < 0 || *decision >= static_cast<int64_t>(candidates.size())) {
    return absl::FailedPreconditionError(
        absl::StrCat("sample_categorical: decision ", *decision,
                     " is no index of the ", candidates.size(), " candidates"));
  }
  return state.NewExpr(candidates[*decision]);
}

// --- sample_compute_location ---------------------------------------------

namespace {

// The type of the variables that the loop feeds; kOpaque for both types.
ir::IterType LoopType(const ScheduleState& state, const ir::ForPtr& loop) {
  bool spatial = false;
  bool reduce = false;
  for (const ir::BlockPtr& block : state.ChildBlocks(loop.get())) {
    if (LoopFeedsIter(loop.get(), block.get(), ir::IterType::kOpaque)) {
      return ir::IterType::kOpaque;
    }
    spatial |= LoopFeedsIter(loop.get(), block.get(), ir::IterType::kSpatial);
    reduce |= LoopFeedsIter(loop.get(), block.get(), ir::IterType::kReduce);
  }
  if (spatial && reduce) return ir::IterType::kOpaque;
  return reduce ? ir::IterType::kReduce : ir::IterType::kSpatial;
}

// The loops that surround all consumers.
std::vector<ir::ForPtr> CommonLoops(const ScheduleState& state,
                                    const ir::BlockPtr& block) {
  const ir::BlockPtr scope_block = state.Scope(block.get());
  if (scope_block == nullptr) return {};
  const std::vector<ir::BlockPtr> consumers =
      BlockScope(state, scope_block.get()).Consumers(block.get());
  if (consumers.empty()) return {};
  std::vector<ir::ForPtr> loops = state.LoopsAbove(consumers[0].get());
  for (const ir::BlockPtr& consumer : consumers) {
    const std::vector<ir::ForPtr> own = state.LoopsAbove(consumer.get());
    size_t common = 0;
    while (common < loops.size() && common < own.size() &&
           loops[common] == own[common]) {
      ++common;
    }
    loops.resize(common);
  }
  return loops;
}

// Indices of the loops worth trying: excludes unit loops, loops where a
// reduction would only repeat the work, and loops that compute_at rejects.
std::vector<int64_t> Locations(const ScheduleState& state,
                               const ir::BlockPtr& block,
                               const std::vector<ir::ForPtr>& loops) {
  std::vector<int64_t> out;
  if (CanComputeInline(state, block)) out.push_back(-2);
  out.push_back(-1);
  std::vector<bool> spatial;
  int last_spatial = -1;
  for (size_t i = 0; i < loops.size(); ++i) {
    spatial.push_back(LoopType(state, loops[i]) == ir::IterType::kSpatial);
    if (spatial.back()) last_spatial = static_cast<int>(i);
  }
  bool reduced = false;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (ExtentOf(loops[i]) == 1) continue;
    if (spatial[i]) {
      if (reduced) break;
    } else {
      reduced = true;
      if (static_cast<int>(i) > last_spatial) break;
    }
    if (CanComputeAt(state, block, loops[i])) {
      out.push_back(static_cast<int64_t>(i));
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<LoopRv> SampleComputeLocation(ScheduleState& state,
                                             BlockRv block_rv,
                                             std::optional<int64_t>& decision) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr block, state.Get(block_rv));
  const std::vector<ir::ForPtr> loops = CommonLoops(state, block);
  if (!decision) {
    const std::vector<int64_t> candidates = Locations(state, block, loops);
    decision = candidates[state.rng().Below(candidates.size())];
  } else if (*decision == -2 && !CanComputeInline(state, block)) {
    return state.Illegal(block.get(), "it cannot be inlined");
  } else if (*decision < -2 ||
             *decision >= static_cast<int64_t>(loops.size())) {
    return state.Illegal(block.get(), "decision ", *decision,
                         " is no loop around its consumers: "
                         "there are ",
                         loops.size());
  } else if (*decision >= 0 && !CanComputeAt(state, block, loops[*decision])) {
    return state.Illegal(block.get(), "it cannot be computed at loop ",
                         loops[*decision]->var->name, ", decision ", *decision);
  }
  if (*decision == -2) return state.NewMark(LoopMark::kInline);
  if (*decision == -1) return state.NewMark(LoopMark::kRoot);
  return state.NewLoop(loops[*decision]);
}

}  // namespace tilefarm::schedule
