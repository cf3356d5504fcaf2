#include "compiler/target/target.h"

#include <fstream>
#include <utility>

#include "absl/status/status.h"
#include "compiler/target/host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilefarm::target {
namespace {

using absl::StatusCode;

std::string ErrorOf(const std::string& text) {
  const auto target = Parse(text);
  EXPECT_EQ(target.status().code(), StatusCode::kInvalidArgument) << text;
  return std::string(target.status().message());
}

TEST(Parse, ModelFeaturesAndCores) {
  const auto target = Parse("x86-64:znver4,cores=3,-avx512bf16");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->kind, "x86-64");
  EXPECT_EQ(target->cpu, "znver4");
  EXPECT_EQ(target->triple, "x86_64-unknown-linux-gnu");
  EXPECT_EQ(target->cores, 3);
  EXPECT_EQ(target->vector_bits, 512);
  EXPECT_EQ(target->vector_registers, 32);
  EXPECT_EQ(target->vector_lanes(4), 16);
  EXPECT_EQ(target->Key(), "x86-64:znver4,cores=3,-avx512bf16");
}

TEST(Parse, FeaturesComeToNormalForm) {
  // znver4 has avx2; skylake lacks avx512f.
  EXPECT_EQ(Parse("x86-64:znver4,cores=1,+avx2")->Key(),
            "x86-64:znver4,cores=1");
  EXPECT_EQ(Parse("x86-64:znver4,-avx512bf16,+avx2,cores=1")->Key(),
            Parse("x86-64:znver4,cores=1,-avx512bf16")->Key());
  // Without AVX-512 vectors are half as wide.
  const auto narrow = Parse("x86-64:znver4,cores=1,-avx512f");
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_EQ(narrow->vector_bits, 256);
  EXPECT_EQ(narrow->vector_registers, 16);
}

TEST(Parse, KeyIsAFixedPoint) {
  for (const char* text :
       {"host", "host,cores=1", "x86-64", "x86-64:skylake-avx512,cores=8",
        "x86-64:znver4,cores=2,-avx512f", "aarch64:cortex-a72,cores=4", "armv7",
        "riscv64"}) {
    const auto target = Parse(text);
    ASSERT_TRUE(target.ok()) << text << ": " << target.status();
    const auto again = Parse(target->Key());
    ASSERT_TRUE(again.ok()) << target->Key() << ": " << again.status();
    EXPECT_EQ(again->Key(), target->Key());
    EXPECT_EQ(again->vector_bits, target->vector_bits);
  }
}

TEST(Parse, HostHasNoHostLeft) {
  const auto target = Parse("host");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_NE(target->kind, "host");
  EXPECT_FALSE(target->cpu.empty());
  EXPECT_GE(target->cores, 1);
  EXPECT_GT(target->caches.l1_bytes, 0);
}

TEST(Parse, FactsOfTheDeviceAreNoPartOfTheKey) {
  const auto plain = Parse("x86-64:znver4,cores=1");
  EXPECT_FALSE(plain->caches_known);
  EXPECT_EQ(plain->device_model, "");
  const auto sized = Parse("x86-64:znver4,cores=1,l2_bytes=524288");
  EXPECT_TRUE(sized->caches_known);
  EXPECT_EQ(sized->caches.l2_bytes, 524288);
  EXPECT_EQ(sized->Key(), plain->Key());
}

TEST(Parse, HostKnowsItsModelWhateverIsAskedOfIt) {
  const auto host = Parse("host");
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_TRUE(host->caches_known);
  EXPECT_EQ(host->device_model,
            DeviceModel(HostBrand(), host->cpu, host->features, HostCaches()));
  const auto narrowed = Parse("host,cores=1,l1_bytes=1024");
  EXPECT_EQ(narrowed->device_model, host->device_model);
  EXPECT_EQ(Parse(host->Key())->device_model, "");
}

TEST(Parse, RiscvHasWhatItsAbiNeeds) {
  const auto plain = Parse("riscv64,cores=1");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_THAT(plain->features, testing::IsSupersetOf({"+a", "+d", "+f", "+m"}));
  EXPECT_EQ(plain->vector_bits, 64);
  EXPECT_EQ(Parse(plain->Key())->Key(), plain->Key());
  const auto vectors = Parse("riscv64,cores=1,+v");
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  EXPECT_EQ(vectors->vector_bits, 128);
  EXPECT_EQ(vectors->vector_registers, 32);
  EXPECT_EQ(Parse("riscv64,cores=1,+v,+zvl256b")->vector_bits, 256);
  EXPECT_EQ(Compare(*vectors, *plain), Match::kNone);
  EXPECT_THAT(ErrorOf("riscv64,-d"), testing::HasSubstr("calling convention"));
}

TEST(Parse, VectorRegisters) {
  const auto registers = [](const char* text) {
    const auto target = Parse(text);
    EXPECT_TRUE(target.ok()) << target.status();
    return std::pair(target->vector_bits, target->vector_registers);
  };
  EXPECT_EQ(registers("x86-64"), std::pair(128, 16));
  EXPECT_EQ(registers("x86-64:haswell"), std::pair(256, 16));
  EXPECT_EQ(registers("x86-64:knl"), std::pair(512, 32));
  EXPECT_EQ(registers("aarch64:cortex-a72"), std::pair(128, 32));
  EXPECT_EQ(registers("armv7"), std::pair(128, 16));
  EXPECT_EQ(registers("riscv64"), std::pair(64, 32));
  EXPECT_EQ(registers("riscv64,+zve32x"), std::pair(32, 32));
  EXPECT_EQ(registers("riscv64,+v,+zvl2048b"), std::pair(1024, 32));
}

TEST(DeviceModel, IsOneCanonicalText) {
  EXPECT_EQ(DeviceModel("A Processor", "znver4", {"+a", "-b"}, {1, 2, 3}),
            "brand=A Processor;cpu=znver4;features=+a,-b;l1=1;l2=2;l3=3");
}

TEST(Parse, ErrorsListWhatIsKnown) {
  EXPECT_THAT(ErrorOf(""), testing::HasSubstr("x86-64"));
  EXPECT_THAT(ErrorOf("x68-64"), testing::HasSubstr("aarch64"));
  EXPECT_THAT(ErrorOf("x86-64:"), testing::HasSubstr("model"));
  EXPECT_THAT(ErrorOf("x86-64:znver44"), testing::HasSubstr("znver4"));
  EXPECT_THAT(ErrorOf("x86-64,+avx5121f"), testing::HasSubstr("avx512f"));
  EXPECT_THAT(ErrorOf("x86-64,threads=3"), testing::HasSubstr("cores"));
  EXPECT_THAT(ErrorOf("x86-64,cores"), testing::HasSubstr("key=value"));
  EXPECT_THAT(ErrorOf("x86-64,cores=0"), testing::HasSubstr("positive"));
  EXPECT_THAT(ErrorOf("x86-64,cores=x"), testing::HasSubstr("integer"));
  EXPECT_THAT(ErrorOf("x86-64,cores=99999999999999999999"),
              testing::HasSubstr("integer"));
  EXPECT_THAT(ErrorOf("x86-64,cores=100000"), testing::HasSubstr("4096"));
  EXPECT_THAT(ErrorOf("host:znver4"), testing::HasSubstr("host"));
  EXPECT_THAT(ErrorOf("missing.json"), testing::HasSubstr("missing.json"));
}

TEST(Parse, JsonFile) {
  const std::string path = testing::TempDir() + "/board.json";
  std::ofstream(path) << R"({"kind": "x86-64", "model": "znver4", "cores": 2,
      "features": ["-avx512bf16"], "l2_bytes": 524288})";
  const auto target = Parse(path);
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->Key(), "x86-64:znver4,cores=2,-avx512bf16");
  EXPECT_EQ(target->caches.l2_bytes, 524288);
  std::ofstream(path) << R"({"kind": "x86-64", "modell": "znver4"})";
  EXPECT_THAT(ErrorOf(path), testing::HasSubstr("modell"));
  std::ofstream(path) << "[";
  EXPECT_THAT(ErrorOf(path), testing::HasSubstr("JSON"));
}

TEST(Compare, FallbackOrder) {
  const auto compare = [](const char* recorded, const char* wanted) {
    return Compare(*Parse(recorded), *Parse(wanted));
  };
  EXPECT_EQ(compare("x86-64:znver4,cores=1", "x86-64:znver4,cores=8"),
            Match::kExact);
  EXPECT_EQ(compare("x86-64:znver4,-avx512bf16", "x86-64:znver4"),
            Match::kMicroarch);
  // Masked system features do not make machines different.
  EXPECT_EQ(compare("x86-64:znver4", "x86-64:znver4,-invpcid"),
            Match::kMicroarch);
  EXPECT_EQ(compare("x86-64:haswell", "x86-64:skylake"), Match::kFamily);
  // The schedule may use features that the wanted target lacks.
  EXPECT_EQ(compare("x86-64:znver4", "x86-64:znver4,-avx512f"), Match::kNone);
  EXPECT_EQ(compare("x86-64:skylake-avx512", "x86-64:haswell"), Match::kNone);
  EXPECT_EQ(compare("aarch64", "x86-64"), Match::kNone);
}

}  // namespace
}  // namespace tilefarm::target
