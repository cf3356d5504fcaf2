#include "compiler/space/sample_site.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <variant>

#include "absl/algorithm/container.h"
#include "base/status_macros.h"
#include "compiler/schedule/instruction_reader.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/tensor_intrin.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

// Spatial loops of a tiled block have at least this many, reductions fewer.
constexpr int kSpatialLevels = 4;
// Shares of a tiling's mutations: those that draw the whole tiling again, and
// those that draw its innermost factor again.
constexpr double kOtherTilings = 0.15;
constexpr double kOtherWidths = 0.25;
constexpr int64_t kSmallPrime = 1 << 12;
// Narrower tiles reuse little.
constexpr int64_t kWideTile = 4;

// The divisors of `n` up to `limit`, in ascending order.
std::vector<int64_t> Divisors(int64_t n, int64_t limit) {
  std::vector<int64_t> out;
  int64_t d = 1;
  for (; d <= n / d && d <= limit; ++d) {
    if (n % d == 0) out.push_back(d);
  }
  // For each of them there is a divisor above the square root of n.
  for (size_t i = out.size(); i-- > 0;) {
    const int64_t partner = n / out[i];
    if (partner >= d && partner <= limit) out.push_back(partner);
  }
  return out;
}

// The number of ways to write n as an ordered product: a product of binomials
// over primes. What is left of n without small primes counts as one.
int64_t Factorizations(int64_t n, int factors) {
  int64_t count = 1;
  const auto add = [&](int exponent) {
    int64_t ways = 1;
    for (int i = 1; i <= exponent; ++i) ways = ways * (factors - 1 + i) / i;
    count *= ways;
  };
  for (int64_t p = 2; p <= n / p && p < kSmallPrime; ++p) {
    int exponent = 0;
    for (; n % p == 0; n /= p) ++exponent;
    add(exponent);
  }
  if (n > 1) add(1);
  return count;
}

// Draws the innermost tile width: any that fits for plain axes, whole vectors
// in most cases for the vector axis.
int64_t DrawInnermost(const SampleSite& site, const target::Target& target,
                      const std::vector<int64_t>& choices, Rng& rng) {
  if (site.vector_axis && !site.whole_vectors) {
    const int64_t lanes = target.vector_lanes(4);
    std::vector<int64_t> whole;
    for (int64_t choice : choices) {
      if (choice % lanes == 0) whole.push_back(choice);
    }
    if (!whole.empty() && rng.Chance(0.9)) {
      return whole[rng.Below(whole.size())];
    }
  }
  return choices[rng.Below(choices.size())];
}

ir::Attr ToAttr(const std::vector<int64_t>& factors) {
  ir::AttrList list;
  for (int64_t factor : factors) list.emplace_back(factor);
  return ir::Attr(std::move(list));
}

std::vector<int64_t> Factors(const ir::Attr& attr) {
  std::vector<int64_t> out;
  if (const ir::AttrList* list = attr.AsList()) {
    for (const ir::Attr& item : *list) out.push_back(item.AsInt().value_or(1));
  }
  return out;
}

// Candidate widths if they need not divide the extent: small ones, and
// multiples of the vector length.
std::vector<int64_t> TailWidths(const SampleSite& site,
                                const target::Target& target) {
  std::vector<int64_t> out;
  const int64_t lanes = target.vector_lanes(4);
  for (int64_t w = 1; w <= std::min(site.extent, site.max_innermost); ++w) {
    if (w <= 16 || w % lanes == 0 || w == site.extent) out.push_back(w);
  }
  return out;
}

// Draws levels 0..n-2 such that the product of all levels is the extent
// (perfect) or at least the extent (tail).
std::vector<int64_t> FillOuter(const SampleSite& site, int64_t innermost,
                               Rng& rng) {
  std::vector<int64_t> factors(site.factors, 1);
  factors.back() = innermost;
  int64_t left = CeilDiv(site.extent, innermost);
  // Visit levels in random order, so that none is preferred.
  std::vector<int> order;
  for (int i = 0; i + 1 < site.factors; ++i) order.push_back(i);
  rng.Shuffle(order);
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    const std::vector<int64_t> divisors = Divisors(left, left);
    const int64_t factor = divisors[rng.Below(divisors.size())];
    factors[order[i]] = factor;
    left /= factor;
  }
  if (!order.empty()) factors[order.back()] *= left;
  return factors;
}

// Where tails are allowed, a width that divides the extent is the more likely
// the more such widths there are.
int64_t DrawInnermost(const SampleSite& site, const target::Target& target,
                      Rng& rng) {
  const std::vector<int64_t> divisors =
      Divisors(site.extent, site.max_innermost);
  const auto wide = static_cast<double>(
      absl::c_count_if(divisors, [](int64_t d) { return d >= kWideTile; }));
  const bool divides =
      site.kind == SiteKind::kPerfectTile || rng.Chance(wide / (wide + 1));
  return DrawInnermost(site, target,
                       divides ? divisors : TailWidths(site, target), rng);
}

std::vector<int64_t> DrawTile(const SampleSite& site,
                              const target::Target& target, Rng& rng) {
  return FillOuter(site, DrawInnermost(site, target, rng), rng);
}

// Replaces the innermost factor and keeps the outer ones as far as they still
// divide; the largest outer factor takes the rest.
std::vector<int64_t> ReplaceInnermost(std::vector<int64_t> factors,
                                      int64_t extent, int64_t innermost) {
  const auto outer = factors.end() - 1;
  const auto largest = std::max_element(factors.begin(), outer);
  int64_t left = CeilDiv(extent, innermost);
  for (auto factor = factors.begin(); factor != outer; ++factor) {
    *factor = std::gcd(*factor, left);
    left /= *factor;
  }
  *largest *= left;
  *outer = innermost;
  return factors;
}

std::optional<std::vector<int64_t>> MutateTile(const SampleSite& site,
                                               std::vector<int64_t> factors,
                                               const target::Target& target,
                                               Rng& rng) {
  if (site.factors < 2 || site.extent <= 1) return std::nullopt;
  // Sometimes draw another tiling.
  if (static_cast<int>(factors.size()) != site.factors ||
      rng.Chance(kOtherTilings)) {
    return DrawTile(site, target, rng);
  }
  // Or draw another width: moving factors gets from 2 to 7 only by 1 or 14.
  if (rng.Chance(kOtherWidths)) {
    const int64_t width = DrawInnermost(site, target, rng);
    if (width != factors.back()) {
      return ReplaceInnermost(std::move(factors), site.extent, width);
    }
  }
  // Otherwise move a part of one level's factor to another level.
  for (int attempt = 0; attempt < 16; ++attempt) {
    const size_t from = rng.Below(factors.size());
    const size_t to = rng.Below(factors.size());
    if (from == to || factors[from] == 1) continue;
    const std::vector<int64_t> divisors =
        Divisors(factors[from], factors[from]);
    const int64_t step = divisors[1 + rng.Below(divisors.size() - 1)];
    std::vector<int64_t> next = factors;
    next[from] /= step;
    next[to] *= step;
    if (next.back() > site.max_innermost) continue;
    return next;
  }
  if (site.kind == SiteKind::kTile) return DrawTile(site, target, rng);
  return std::nullopt;
}

// The text that the instruction annotates with `key`; null if it is no text.
const std::string* Annotation(const schedule::Instruction& instruction,
                              std::string_view key) {
  if (instruction.primitive != "annotate") return nullptr;
  const auto text = [&](size_t i) {
    const auto* attr = std::get_if<ir::Attr>(&instruction.args[i].second.value);
    return attr == nullptr ? nullptr : attr->AsString();
  };
  const std::string* name = text(1);
  return name != nullptr && *name == key ? text(2) : nullptr;
}

// The last tiled spatial loop is the vector axis.
void MarkVectorAxis(int group, const schedule::TensorIntrin* intrin,
                    bool whole_vectors, std::vector<SampleSite>* sites) {
  for (auto site = sites->rbegin(); site != sites->rend(); ++site) {
    if (site->tile_group == group && site->register_tile) {
      site->vector_axis = true;
      site->whole_vectors = whole_vectors || intrin != nullptr;
      site->registers = intrin == nullptr ? 0 : intrin->registers;
      return;
    }
  }
}

absl::StatusOr<SampleSite> CategoricalSite(
    const schedule::Instruction& instruction) {
  SampleSite site;
  site.kind = SiteKind::kCategorical;
  site.weights = schedule::InstructionReader(instruction, {}).Floats(1);
  if (site.weights.empty()) {
    return absl::InvalidArgumentError(
        "sample_categorical without probs in the sketch");
  }
  return site;
}

// The locations at which the sketch replays, up to the next instruction,
// usually the compute_at that uses them, and at which intrinsics still fit.
SampleSite LocationSite(const schedule::Trace& sketch, size_t at,
                        const schedule::PartialReplay& before) {
  // This many illegal locations in a row end the search.
  constexpr int kMisses = 8;
  constexpr int64_t kMostLoops = 64;
  SampleSite site;
  site.kind = SiteKind::kComputeLocation;
  schedule::Trace attempt;
  size_t end = at + 1;
  if (end < sketch.instructions.size() &&
      !sketch.instructions[end].is_sample()) {
    ++end;
  }
  attempt.instructions.assign(sketch.instructions.begin(),
                              sketch.instructions.begin() + end);
  int misses = 0;
  for (int64_t location = -2; location < kMostLoops && misses < kMisses;
       ++location) {
    attempt.instructions[at].decision = ir::Attr(location);
    schedule::PartialReplay moved = before;
    const bool legal =
        moved.Advance(attempt, end).ok() && IntrinsicsFit(moved.schedule());
    if (legal) site.locations.push_back(location);
    misses = legal ? 0 : misses + 1;
  }
  if (site.locations.empty()) site.locations.push_back(-1);
  return site;
}

absl::StatusOr<SampleSite> TileSite(const schedule::Instruction& instruction,
                                    const schedule::PartialReplay& before) {
  schedule::InstructionReader reader(instruction, before.ids());
  const schedule::LoopRv loop = reader.Loop(0);
  TF_RETURN_IF_ERROR(reader.status());
  TF_ASSIGN_OR_RETURN(ir::ForPtr node, before.schedule().Get(loop));
  SampleSite site;
  site.kind = instruction.primitive == "sample_perfect_tile"
                  ? SiteKind::kPerfectTile
                  : SiteKind::kTile;
  site.extent = ir::AsInt(node->extent).value_or(1);
  site.factors = reader.Small(1);
  site.max_innermost = reader.Int(2);
  TF_RETURN_IF_ERROR(reader.status());
  return site;
}

}  // namespace

int64_t SampleSite::Count() const {
  if (fixed) return 1;
  switch (kind) {
    case SiteKind::kCategorical:
      return static_cast<int64_t>(weights.size());
    case SiteKind::kComputeLocation:
      return static_cast<int64_t>(locations.size());
    case SiteKind::kPerfectTile:
      return Factorizations(extent, factors);
    case SiteKind::kTile: {
      int64_t count = 0;
      for (int64_t w = 1; w <= std::min(extent, max_innermost); ++w) {
        count += Factorizations(CeilDiv(extent, w), factors - 1);
      }
      return count;
    }
  }
  return 1;
}

absl::StatusOr<std::vector<SampleSite>> FindSites(const schedule::Trace& sketch,
                                                  const ir::IRModule& program) {
  std::vector<SampleSite> sites;
  // The loops of a tiled block are consecutive in the trace, between its
  // `annotate tiling_structure` and its `reorder`.
  int group = -1;
  int next_group = 0;
  const schedule::TensorIntrin* intrin = nullptr;
  bool whole_vectors = false;
  schedule::PartialReplay before(program);
  for (size_t i = 0; i < sketch.instructions.size(); ++i) {
    const schedule::Instruction& instruction = sketch.instructions[i];
    if (const std::string* name = Annotation(instruction, kAutoTensorize)) {
      const auto found = schedule::FindTensorIntrin(*name);
      intrin = found.ok() ? *found : nullptr;
    }
    const std::string* tiling = Annotation(instruction, kTilingStructure);
    // The tiles of GPUs have their own rules (gpu/thread_sites.h).
    if (tiling != nullptr && *tiling != kThreadTiles && *tiling != kWarpTiles) {
      group = next_group++;
      whole_vectors = *tiling == kVectorTiles;
    }
    if (instruction.primitive == "reorder" && group >= 0) {
      MarkVectorAxis(group, intrin, whole_vectors, &sites);
      group = -1;
      intrin = nullptr;
    }
    if (instruction.primitive == "rfactor" && !sites.empty()) {
      sites.back().vector_axis = true;  // of partial results
    }
    if (!instruction.is_sample()) continue;
    if (instruction.primitive == "sample_categorical") {
      TF_ASSIGN_OR_RETURN(SampleSite site, CategoricalSite(instruction));
      sites.push_back(std::move(site));
    } else if (instruction.primitive == "sample_compute_location") {
      TF_RETURN_IF_ERROR(before.Advance(sketch, i));
      sites.push_back(LocationSite(sketch, i, before));
    } else {
      TF_RETURN_IF_ERROR(before.Advance(sketch, i));
      TF_ASSIGN_OR_RETURN(SampleSite site, TileSite(instruction, before));
      site.tile_group = group;
      site.register_tile = group >= 0 && site.factors == 4;
      sites.push_back(std::move(site));
    }
  }
  return sites;
}

ir::Attr DrawDecision(const SampleSite& site, const target::Target& target,
                      Rng& rng) {
  if (site.fixed) return *site.fixed;
  switch (site.kind) {
    case SiteKind::kCategorical:
      return ir::Attr(static_cast<int64_t>(rng.Weighted(site.weights)));
    case SiteKind::kComputeLocation:
      return ir::Attr(site.locations[rng.Below(site.locations.size())]);
    case SiteKind::kPerfectTile:
    case SiteKind::kTile:
      return ToAttr(DrawTile(site, target, rng));
  }
  return ir::Attr();
}

std::optional<ir::Attr> MutateDecision(const SampleSite& site,
                                       const ir::Attr& old,
                                       const target::Target& target, Rng& rng) {
  if (site.fixed) return std::nullopt;
  if (site.kind == SiteKind::kPerfectTile || site.kind == SiteKind::kTile) {
    auto next = MutateTile(site, Factors(old), target, rng);
    if (!next) return std::nullopt;
    return ToAttr(*next);
  }
  for (int attempt = 0; attempt < 16; ++attempt) {
    ir::Attr next = DrawDecision(site, target, rng);
    if (!(next == old)) return next;
  }
  return std::nullopt;
}

std::optional<std::vector<ir::Attr>> SwapLevels(
    const std::vector<SampleSite>& sites,
    const std::vector<ir::Attr>& decisions, Rng& rng) {
  const auto is_spatial = [](const SampleSite& site) {
    return site.tile_group >= 0 && site.factors >= kSpatialLevels &&
           !site.fixed;
  };
  std::vector<const SampleSite*> spatial;
  for (const SampleSite& site : sites) {
    if (is_spatial(site)) spatial.push_back(&site);
  }
  if (spatial.empty()) return std::nullopt;
  for (int attempt = 0; attempt < 16; ++attempt) {
    const SampleSite& chosen = *spatial[rng.Below(spatial.size())];
    const size_t outer = static_cast<size_t>(chosen.factors) - 1;
    const size_t a = rng.Below(outer);
    const size_t b = rng.Below(outer);
    std::vector<ir::Attr> next = decisions;
    for (size_t i = 0; i < sites.size(); ++i) {
      if (!is_spatial(sites[i]) || sites[i].tile_group != chosen.tile_group ||
          rng.Chance(0.5)) {
        continue;
      }
      std::vector<int64_t> factors = Factors(decisions[i]);
      if (factors.size() <= std::max(a, b)) continue;
      std::swap(factors[a], factors[b]);
      next[i] = ToAttr(factors);
    }
    if (next != decisions) return next;
  }
  return std::nullopt;
}

std::optional<std::vector<ir::Attr>> Retile(
    const std::vector<SampleSite>& sites,
    const std::vector<ir::Attr>& decisions, const target::Target& target,
    Rng& rng) {
  std::vector<const SampleSite*> tiled;
  for (const SampleSite& site : sites) {
    if (site.register_tile && !site.fixed && site.extent > 1) {
      tiled.push_back(&site);
    }
  }
  if (tiled.empty()) return std::nullopt;
  const int group = tiled[rng.Below(tiled.size())]->tile_group;
  std::vector<ir::Attr> next = decisions;
  for (size_t i = 0; i < sites.size(); ++i) {
    const SampleSite& site = sites[i];
    if (!site.register_tile || site.tile_group != group || site.fixed) continue;
    const std::vector<int64_t> factors = Factors(decisions[i]);
    next[i] = static_cast<int>(factors.size()) != site.factors
                  ? DrawDecision(site, target, rng)
                  : ToAttr(ReplaceInnermost(factors, site.extent,
                                            DrawInnermost(site, target, rng)));
  }
  if (next == decisions) return std::nullopt;
  return next;
}

bool FitsRegisters(const std::vector<SampleSite>& sites,
                   const std::vector<ir::Attr>& decisions,
                   const target::Target& target) {
  const int64_t lanes = target.vector_lanes(4);
  const auto fits = [&](int group) {
    int64_t rows = 1, vectors = 1;
    // Registers of the group; 0: it uses the target's.
    int64_t registers = 0;
    for (size_t i = 0; i < sites.size(); ++i) {
      const SampleSite& site = sites[i];
      if (!site.register_tile || site.tile_group != group) continue;
      const ir::AttrList* factors = decisions[i].AsList();
      if (factors == nullptr || factors->empty()) return false;
      const int64_t innermost = factors->back().AsInt().value_or(1);
      if (site.registers > 0) {
        registers = site.registers;
      } else if (site.whole_vectors) {
        registers = target.vector_registers;
      }
      if (site.vector_axis) {
        vectors = site.whole_vectors ? innermost : CeilDiv(innermost, lanes);
      } else {
        rows *= innermost;
      }
    }
    const int64_t used = rows * vectors + vectors;
    // Multiply-add can read the operand shared by all columns from memory; an
    // intrinsic needs a register for it.
    return registers == 0 ? used <= target.vector_registers
                          : used + 1 <= registers;
  };
  // Sites of a group are adjacent.
  int group = -1;
  for (const SampleSite& site : sites) {
    if (!site.register_tile || site.tile_group == group) continue;
    group = site.tile_group;
    if (!fits(group)) return false;
  }
  return true;
}

}  // namespace tilefarm::space
