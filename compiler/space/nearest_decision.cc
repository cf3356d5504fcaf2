// Decisions of one program's candidate, adapted to another program.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <variant>

#include "absl/algorithm/container.h"
#include "base/text_kind.h"
#include "compiler/space/sample_site.h"

namespace tilefarm::space {
namespace {

// How far apart two factors are: equal ratios are equally far.
double Distance(int64_t a, int64_t b) {
  return std::abs(std::log(static_cast<double>(a) / static_cast<double>(b)));
}

// The divisor of `n` nearest to `wanted`; the smaller one of equally near ones.
int64_t NearestDivisor(int64_t n, int64_t wanted) {
  int64_t best = 1;
  for (int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    for (const int64_t divisor : {d, n / d}) {
      const double gain = Distance(best, wanted) - Distance(divisor, wanted);
      if (gain > 0 || (gain == 0 && divisor < best)) best = divisor;
    }
  }
  return best;
}

// The width nearest to `wanted` that the site permits. What a width that does
// not divide the extent computes in vain counts like distance.
int64_t NearestInnermost(const SampleSite& site, int64_t wanted) {
  const int64_t most = std::min(site.extent, site.max_innermost);
  int64_t best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t width = 1; width <= most; ++width) {
    const int64_t rounded = (site.extent + width - 1) / width * width;
    const bool divides = rounded == site.extent;
    // Of the others, only the wanted width itself is known to be useful.
    if (!divides && (site.kind == SiteKind::kPerfectTile || width != wanted)) {
      continue;
    }
    const double cost =
        Distance(width, wanted) + Distance(rounded, site.extent);
    if (cost < least) {
      least = cost;
      best = width;
    }
  }
  return best;
}

std::optional<ir::Attr> NearestTile(const SampleSite& site,
                                    const ir::Attr& decision) {
  const ir::AttrList* old = decision.AsList();
  if (old == nullptr || static_cast<int>(old->size()) != site.factors ||
      site.factors < 1 || site.extent < 1) {
    return std::nullopt;
  }
  const auto factor = [&](size_t level) {
    return std::max<int64_t>(1, (*old)[level].AsInt().value_or(1));
  };
  int64_t product = 1;
  for (size_t level = 0; level < old->size(); ++level) {
    if (__builtin_mul_overflow(product, factor(level), &product)) {
      return std::nullopt;
    }
  }
  const bool legal_here =
      site.kind == SiteKind::kPerfectTile
          ? product == site.extent
          : product >= site.extent &&
                product - factor(old->size() - 1) < site.extent;
  if (legal_here && factor(old->size() - 1) <= site.max_innermost) {
    return decision;
  }
  ir::AttrList factors(old->size(), ir::Attr(int64_t{1}));
  const size_t last = old->size() - 1;
  if (last == 0) return ir::Attr(ir::AttrList{ir::Attr(site.extent)});
  const int64_t innermost = NearestInnermost(site, factor(last));
  factors[last] = ir::Attr(innermost);
  // Inner levels keep their sizes, for which caches decide; the outermost one
  // takes the rest.
  int64_t left = (site.extent + innermost - 1) / innermost;
  for (size_t level = last - 1; level > 0; --level) {
    const int64_t nearest = NearestDivisor(left, factor(level));
    factors[level] = ir::Attr(nearest);
    left /= nearest;
  }
  factors[0] = ir::Attr(left);
  return ir::Attr(std::move(factors));
}

using schedule::Arg;
using schedule::ArgList;
using schedule::Instruction;
using schedule::Rv;

// Calls `visit` for each variable in the argument.
template <typename Visit>
void ForEachRv(Arg& arg, const Visit& visit) {
  if (Rv* rv = std::get_if<Rv>(&arg.value)) visit(*rv);
  if (ArgList* list = std::get_if<ArgList>(&arg.value)) {
    for (Arg& one : *list) ForEachRv(one, visit);
  }
}

bool Inlines(const Instruction& instruction) {
  return instruction.primitive == "compute_inline" ||
         instruction.primitive == "reverse_compute_inline";
}

bool Asks(const Instruction& instruction) {
  return instruction.primitive.starts_with("get_");
}

}  // namespace

std::string SketchKind(const schedule::Trace& trace) {
  schedule::Trace kept;
  std::set<int> used;
  const auto end = absl::c_find_if(
      trace.instructions,
      [](const Instruction& one) { return one.primitive == "enter_postproc"; });
  for (auto it = std::make_reverse_iterator(end);
       it != trace.instructions.rend(); ++it) {
    if (Inlines(*it) ||
        (Asks(*it) && absl::c_none_of(it->outputs, [&](const Rv& output) {
           return used.contains(output.id);
         }))) {
      continue;
    }
    Instruction& copy = kept.instructions.emplace_back(*it);
    for (auto& [name, arg] : copy.args) {
      ForEachRv(arg, [&](const Rv& rv) { used.insert(rv.id); });
    }
  }
  absl::c_reverse(kept.instructions);
  std::map<int, int> numbers;  // of variables, in order
  const auto renumber = [&](Rv& rv) {
    rv.id =
        numbers.emplace(rv.id, static_cast<int>(numbers.size())).first->second;
  };
  for (Instruction& one : kept.instructions) {
    for (auto& [name, arg] : one.args) {
      ForEachRv(arg, renumber);
      if (one.primitive == "get_block") arg.value = ir::Attr("#");
    }
    for (Rv& output : one.outputs) renumber(output);
    one.decision = ir::Attr();
    if (one.primitive == "sample_perfect_tile") one.primitive = "sample_tile";
  }
  return WithoutNumbers(kept.Print());
}

std::optional<ir::Attr> NearestDecision(const SampleSite& site,
                                        const ir::Attr& decision) {
  if (site.fixed) return site.fixed;
  switch (site.kind) {
    case SiteKind::kPerfectTile:
    case SiteKind::kTile:
      return NearestTile(site, decision);
    case SiteKind::kCategorical: {
      const std::optional<int64_t> index = decision.AsInt();
      if (!index || *index < 0 ||
          *index >= static_cast<int64_t>(site.weights.size())) {
        return std::nullopt;
      }
      return decision;
    }
    case SiteKind::kComputeLocation: {
      const std::optional<int64_t> location = decision.AsInt();
      if (!location || !absl::c_linear_search(site.locations, *location)) {
        return std::nullopt;
      }
      return decision;
    }
  }
  return std::nullopt;
}

}  // namespace tilefarm::space
