#include "compiler/target/capability.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

namespace tilefarm::target {
namespace {

using enum Capability;

// A target of the kind with the feature, or with both, has the capability;
// without any feature: every target of the kind.
struct CapabilityRow {
  Capability capability;
  std::string_view kind;
  std::string_view feature = "";
  std::string_view with = "";
};

// Rows of one capability are alternatives.
constexpr CapabilityRow kCapabilityRows[] = {
    {kByteDot128, "x86-64", "avxvnniint8"},
    {kByteDot128, "aarch64", "dotprod"},
    {kByteDot256, "x86-64", "avxvnniint8"},
    {kMixedByteDot128, "x86-64", "avxvnni"},
    {kMixedByteDot128, "x86-64", "avx512vnni", "avx512vl"},
    {kMixedByteDot128, "aarch64", "i8mm"},
    {kMixedByteDot256, "x86-64", "avxvnni"},
    {kMixedByteDot256, "x86-64", "avx512vnni", "avx512vl"},
    {kMixedByteDot512, "x86-64", "avx512vnni"},
    {kInt16Dot128, "x86-64", "avxvnni"},
    {kInt16Dot128, "x86-64", "avx512vnni", "avx512vl"},
    {kInt16Dot256, "x86-64", "avxvnni"},
    {kInt16Dot256, "x86-64", "avx512vnni", "avx512vl"},
    {kInt16Dot512, "x86-64", "avx512vnni"},
    {kBFloat16Dot128, "x86-64", "avx512bf16", "avx512vl"},
    {kBFloat16Dot256, "x86-64", "avx512bf16", "avx512vl"},
    {kBFloat16Dot512, "x86-64", "avx512bf16"},
    {kInt16PairProduct256, "x86-64", "avx2"},
    {kInt16PairProduct512, "x86-64", "avx512bw"},
    {kByteTile, "x86-64", "amx-int8"},
    {kBFloat16Tile, "x86-64", "amx-bf16"},
    {kHalfConversion, "x86-64", "f16c"},
    {kHalfConversion, "aarch64"},
    {kHalfConversion, "cuda"},
    {kScaling128, "x86-64", "avx512vl"},
    {kScaling256, "x86-64", "avx512vl"},
    {kScaling512, "x86-64", "avx512f"},
    {kExplicitFma, "armv7", "vfp4"},
    {kTransposingShuffles, "x86-64"},
    {kTransposingShuffles, "aarch64"},
    {kStreamingStores, "x86-64"},
};

constexpr bool EveryCapabilityHasARow() {
  for (int i = 0; i < kCapabilities; ++i) {
    if (std::none_of(std::begin(kCapabilityRows), std::end(kCapabilityRows),
                     [i](const CapabilityRow& row) {
                       return static_cast<int>(row.capability) == i;
                     })) {
      return false;
    }
  }
  return true;
}
static_assert(EveryCapabilityHasARow());

}  // namespace

Capabilities ResolveCapabilities(
    std::string_view kind,
    const std::function<bool(std::string_view)>& has_feature) {
  Capabilities result;
  for (const CapabilityRow& row : kCapabilityRows) {
    if (row.kind == kind && (row.feature.empty() || has_feature(row.feature)) &&
        (row.with.empty() || has_feature(row.with))) {
      result.Add(row.capability);
    }
  }
  return result;
}

std::string Requirement(Capability capability) {
  std::vector<std::string> alternatives;
  for (const CapabilityRow& row : kCapabilityRows) {
    if (row.capability != capability) continue;
    std::string one(row.feature.empty() ? row.kind : row.feature);
    if (!row.with.empty()) one.append(" with ").append(row.with);
    alternatives.push_back(std::move(one));
  }
  return absl::StrJoin(alternatives, " or ");
}

}  // namespace tilefarm::target
