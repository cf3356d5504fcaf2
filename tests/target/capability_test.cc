// Which cpus have which capabilities.
#include "compiler/target/capability.h"

#include <set>

#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilefarm::target {
namespace {

using enum Capability;

bool Has(const char* text, Capability capability) {
  const auto target = Parse(text);
  EXPECT_TRUE(target.ok()) << text << ": " << target.status();
  return target.ok() && target->Has(capability);
}

struct Case {
  Capability capability;
  const char* having;   // a target that has it
  const char* lacking;  // one that does not
};

// One for each way to a capability.
constexpr Case kCases[] = {
    {kByteDot128, "x86-64:sierraforest", "x86-64:alderlake"},
    {kByteDot128, "aarch64:cortex-a76", "aarch64:cortex-a72"},
    {kByteDot256, "x86-64:sierraforest", "x86-64:sapphirerapids"},
    {kByteDot256, "x86-64:sierraforest", "aarch64:cortex-a76"},
    {kMixedByteDot128, "x86-64:alderlake", "x86-64:haswell"},
    {kMixedByteDot128, "x86-64:cascadelake", "x86-64:skylake-avx512"},
    {kMixedByteDot128, "x86-64:cascadelake", "x86-64:cascadelake,-avx512vl"},
    {kMixedByteDot128, "aarch64:cortex-x2", "aarch64:cortex-a76"},
    {kMixedByteDot256, "x86-64:alderlake", "x86-64:haswell"},
    {kMixedByteDot256, "x86-64:znver4", "x86-64:znver3"},
    {kMixedByteDot256, "x86-64:cascadelake", "x86-64:cascadelake,-avx512vl"},
    {kMixedByteDot256, "x86-64:alderlake", "aarch64:cortex-x2"},
    {kMixedByteDot512, "x86-64:cascadelake", "x86-64:alderlake"},
    {kMixedByteDot512, "x86-64:cascadelake,-avx512vl", "x86-64:skylake-avx512"},
    {kInt16Dot128, "x86-64:alderlake", "x86-64:haswell"},
    {kInt16Dot128, "x86-64:cascadelake", "x86-64:cascadelake,-avx512vl"},
    {kInt16Dot256, "x86-64:alderlake", "x86-64:haswell"},
    {kInt16Dot256, "x86-64:znver4", "x86-64:cascadelake,-avx512vl"},
    {kInt16Dot512, "x86-64:cascadelake", "x86-64:alderlake"},
    {kBFloat16Dot128, "x86-64:cooperlake", "x86-64:cooperlake,-avx512vl"},
    {kBFloat16Dot256, "x86-64:cooperlake", "x86-64:cooperlake,-avx512vl"},
    {kBFloat16Dot512, "x86-64:cooperlake,-avx512vl", "x86-64:cascadelake"},
    {kInt16PairProduct256, "x86-64:haswell", "x86-64:ivybridge"},
    {kInt16PairProduct256, "x86-64:haswell", "aarch64"},
    {kInt16PairProduct512, "x86-64:skylake-avx512", "x86-64:knl"},
    {kByteTile, "x86-64:sapphirerapids", "x86-64:znver4"},
    {kBFloat16Tile, "x86-64:sapphirerapids", "x86-64:sapphirerapids,-amx-bf16"},
    {kHalfConversion, "x86-64:ivybridge", "x86-64:sandybridge"},
    {kHalfConversion, "aarch64", "armv7"},
    {kScaling128, "x86-64:skylake-avx512", "x86-64:knl"},
    {kScaling256, "x86-64:skylake-avx512", "x86-64:knl"},
    {kScaling512, "x86-64:knl", "x86-64:haswell"},
    {kExplicitFma, "armv7:cortex-a7", "armv7:cortex-a9"},
    {kTransposingShuffles, "x86-64", "riscv64,+v"},
    {kTransposingShuffles, "aarch64", "armv7"},
    {kStreamingStores, "x86-64", "aarch64"},
};

TEST(Capabilities, FollowFromCpuAndFeatures) {
  std::set<Capability> covered;
  for (const Case& one : kCases) {
    const std::string what =
        "capability " + std::to_string(static_cast<int>(one.capability));
    EXPECT_TRUE(Has(one.having, one.capability)) << what << " " << one.having;
    EXPECT_FALSE(Has(one.lacking, one.capability))
        << what << " " << one.lacking;
    covered.insert(one.capability);
  }
  EXPECT_EQ(covered.size(), static_cast<size_t>(kCapabilities));
}

TEST(Capabilities, AreThoseOfTheRecordedKey) {
  const auto target = Parse("x86-64:znver4,cores=1,-avx512vnni");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_FALSE(target->Has(kMixedByteDot256));
  EXPECT_EQ(Parse(target->Key())->capabilities, target->capabilities);
  EXPECT_FALSE(target->capabilities ==
               Parse("x86-64:znver4,cores=1")->capabilities);
}

TEST(Capabilities, OnlyRowsOfTheKindCount) {
  const auto everything = [](std::string_view) { return true; };
  const Capabilities riscv = ResolveCapabilities("riscv64", everything);
  EXPECT_EQ(riscv, Capabilities());
  const Capabilities arm = ResolveCapabilities("aarch64", everything);
  EXPECT_TRUE(arm.Has(kMixedByteDot128));
  EXPECT_FALSE(arm.Has(kMixedByteDot256));
  const auto nothing = [](std::string_view) { return false; };
  EXPECT_TRUE(ResolveCapabilities("aarch64", nothing).Has(kHalfConversion));
  EXPECT_FALSE(ResolveCapabilities("aarch64", nothing).Has(kByteDot128));
}

TEST(Capabilities, RequirementsNameFeaturesOrKinds) {
  EXPECT_EQ(Requirement(kMixedByteDot512), "avx512vnni");
  EXPECT_EQ(Requirement(kMixedByteDot256),
            "avxvnni or avx512vnni with avx512vl");
  EXPECT_EQ(Requirement(kByteDot128), "avxvnniint8 or dotprod");
  EXPECT_EQ(Requirement(kHalfConversion), "f16c or aarch64 or cuda");
}

}  // namespace
}  // namespace tilefarm::target
