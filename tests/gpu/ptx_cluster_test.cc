// Clusters of blocks in the executor of PTX (ptx/ptx_machine.h).
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gpu/ptx/ptx_machine.h"
#include "tests/gpu/ptx_test_support.h"

namespace tilefarm::ptx {
namespace {

using ::testing::HasSubstr;

// Clusters of 4 blocks.
constexpr char kClusterOfFour[] =
    ".maxntid 64, 1, 1\n.explicitcluster\n.reqnctapercluster 4, 1, 1\n";
constexpr char kMeet[] =
    "\tbarrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;\n";
// The thread's number in the grid, and its element.
constexpr char kNumberInGrid[] =
    "\tmov.u32 %r5, %ctaid.x;\n\tmad.lo.s32 %r5, %r5, 64, %r1;\n"
    "\tmul.wide.u32 %rd2, %r5, 4;\n\tadd.s64 %rd3, %rd1, %rd2;\n";
// Its place in shared memory, as a generic address.
constexpr char kGenericPlace[] =
    "\tcvt.u64.u32 %rd4, %r4;\n\tcvta.shared.u64 %rd4, %rd4;\n";

Outcome ExecuteClusters(const std::string& body, Buffer& buffer,
                        unsigned blocks = 4, uint64_t seed = 1) {
  Launch launch;
  launch.grid = {blocks, 1, 1};
  launch.threads = {64, 1, 1};
  launch.seed = seed;
  return ExecuteText(KernelText(body, kClusterOfFour), buffer, launch);
}

// out = 8 a + 4 b + 2 c + d of the four blocks' numbers.
std::string SumOfCluster(const std::string& before, const std::string& after) {
  return std::string(kNumberInGrid) +
         "\tcvt.rn.f32.u32 %f1, %r5;\n\tst.shared.f32 [%r4], %f1;\n" + before +
         kGenericPlace +
         "\tmov.f32 %f2, 0f00000000;\n\tmov.u32 %r6, 0;\n"
         "\tmov.u32 %r7, %cluster_nctarank;\n"
         "$L1:\n"
         "\tmapa.u64 %rd5, %rd4, %r6;\n\tld.f32 %f3, [%rd5];\n"
         "\tfma.rn.f32 %f2, %f2, 0f40000000, %f3;\n"
         "\tadd.s32 %r6, %r6, 1;\n\tsetp.lt.u32 %p1, %r6, %r7;\n"
         "\t@%p1 bra $L1;\n" +
         after + "\tst.global.f32 [%rd3], %f2;\n";
}
bool IsSumOfCluster(const std::vector<float>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    float expected = 0;
    for (size_t k = 0; k < 4; ++k) {
      const size_t number = i / 256 * 256 + k * 64 + i % 64;
      expected = 2 * expected + static_cast<float>(number);
    }
    if (values[i] != expected) return false;
  }
  return true;
}

TEST(PtxCluster, BlocksOfAClusterReadEachOthersSharedMemory) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Buffer buffer(std::vector<float>(12 * 64));
    const Outcome outcome =
        ExecuteClusters(SumOfCluster(kMeet, kMeet), buffer, 12, seed);
    ASSERT_EQ(outcome.fault, Fault::kNone) << outcome.what;
    EXPECT_EQ(outcome.blocks, 12);
    EXPECT_TRUE(IsSumOfCluster(buffer.values)) << seed;
  }
}

TEST(PtxCluster, WithoutTheFirstBarrierOfAClusterSomeOrderShowsIt) {
  bool wrong = false, not_started = false;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Buffer buffer(std::vector<float>(4 * 64));
    const Outcome outcome =
        ExecuteClusters(SumOfCluster("", kMeet), buffer, 4, seed);
    not_started |= outcome.what.find("has not started") != std::string::npos;
    // Once all have started, what is read may not be written.
    const Outcome early =
        ExecuteClusters(kMeet + SumOfCluster("", kMeet), buffer, 4, seed);
    EXPECT_EQ(early.fault, Fault::kNone) << early.what;
    wrong |= !IsSumOfCluster(buffer.values);
  }
  EXPECT_TRUE(wrong);
  EXPECT_TRUE(not_started);
}

TEST(PtxCluster, WithoutTheLastBarrierOfAClusterABlockHasEnded) {
  bool ended = false;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Buffer buffer(std::vector<float>(4 * 64));
    const Outcome outcome =
        ExecuteClusters(SumOfCluster(kMeet, ""), buffer, 4, seed);
    if (outcome.fault == Fault::kNone) continue;
    EXPECT_EQ(outcome.fault, Fault::kIllegalAddress);
    EXPECT_THAT(outcome.what, HasSubstr("`ld.f32 %f3, [%rd5];`: the block has "
                                        "ended: address of block "));
    ended = true;
  }
  EXPECT_TRUE(ended);
}

TEST(PtxCluster, BlocksWriteSharedMemoryOfTheNextOne) {
  // By a generic address, and 256 bytes further on by one of 32 bits.
  const std::string body =
      std::string(kMeet) + kNumberInGrid + kGenericPlace +
      "\tmov.u32 %r6, %cluster_ctarank;\n\tadd.s32 %r6, %r6, 1;\n"
      "\tand.b32 %r6, %r6, 3;\n\tmapa.u64 %rd5, %rd4, %r6;\n"
      "\tmapa.shared::cluster.u32 %r7, %r4, %r6;\n"
      "\tcvt.rn.f32.u32 %f1, %r5;\n\tst.f32 [%rd5], %f1;\n"
      "\tst.shared::cluster.f32 [%r7+256], %f1;\n"
      "\tbarrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;\n"
      "\tcvta.to.shared.u64 %rd4, %rd4;\n\tcvt.u32.u64 %r6, %rd4;\n"
      "\tld.shared.f32 %f2, [%r6];\n"
      "\tld.shared::cluster.f32 %f3, [%r4+256];\n"
      "\tadd.rn.f32 %f2, %f2, %f3;\n\tst.global.f32 [%rd3], %f2;\n";
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Buffer buffer(std::vector<float>(8 * 64));
    const Outcome outcome = ExecuteClusters(body, buffer, 8, seed);
    ASSERT_EQ(outcome.fault, Fault::kNone) << outcome.what;
    for (size_t i = 0; i < buffer.values.size(); ++i) {
      const size_t writer = i / 256 * 256 + (i + 192) % 256;
      EXPECT_EQ(buffer.values[i], 2 * static_cast<float>(writer)) << i;
    }
  }
}

TEST(PtxCluster, RegistersSayWhichBlockOfWhichCluster) {
  std::string body = std::string(kNumberInGrid) + "\tmov.u32 %r6, 0;\n";
  for (const char* name :
       {"%clusterid.x", "%nclusterid.x", "%cluster_ctarank", "%cluster_ctaid.x",
        "%cluster_nctarank", "%cluster_nctaid.x", "%cluster_nctaid.y",
        "%clusterid.y", "%nclusterid.z"}) {
    body += "\tmov.u32 %r7, " + std::string(name) +
            ";\n\tmad.lo.s32 %r6, %r6, 5, %r7;\n";
  }
  body += "\tcvt.rn.f32.u32 %f1, %r6;\n\tst.global.f32 [%rd3], %f1;\n";
  const auto digits = [](std::array<int, 9> all) {
    float number = 0;
    for (const int digit : all) number = number * 5 + static_cast<float>(digit);
    return number;
  };
  Buffer buffer(std::vector<float>(8 * 64)), alone(std::vector<float>(64));
  EXPECT_EQ(ExecuteClusters(body, buffer, 8).fault, Fault::kNone);
  EXPECT_EQ(buffer.values[2 * 64], digits({0, 2, 2, 2, 4, 4, 1, 0, 1}));
  EXPECT_EQ(buffer.values[7 * 64], digits({1, 2, 3, 3, 4, 4, 1, 0, 1}));
  EXPECT_EQ(Execute(body, alone, 64).fault, Fault::kNone);
  EXPECT_EQ(alone.values[0], digits({0, 1, 0, 0, 1, 1, 1, 0, 1}));
}

TEST(PtxCluster, TheClusterDoesNotWaitForThreadsThatHaveReturned) {
  const std::string body =
      "\tmov.u32 %r5, %cluster_ctarank;\n\tadd.s32 %r5, %r5, %r1;\n"
      "\tand.b32 %r5, %r5, 1;\n\tsetp.eq.u32 %p1, %r5, 1;\n\t@%p1 ret;\n";
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Buffer buffer(Iota(64));
    const Outcome outcome =
        ExecuteClusters(body + kMeet + kMeet, buffer, 4, seed);
    EXPECT_EQ(outcome.fault, Fault::kNone) << outcome.what;
  }
}

TEST(PtxCluster, FaultsOfClusters) {
  struct Case {
    const char* body;
    Fault fault;
    const char* text;
  };
  const Case cases[] = {
      {"\tmapa.u64 %rd5, %rd4, 4;\n\tld.f32 %f1, [%rd5];\n",
       Fault::kIllegalAddress,
       "`ld.f32 %f1, [%rd5];`: block 4 of a cluster of 4"},
      {"\tmapa.shared::cluster.u32 %r5, s, -1;\n"
       "\tst.shared::cluster.f32 [%r5], %f1;\n",
       Fault::kIllegalAddress, "block 254 of a cluster of 4"},
      {"\tmapa.u64 %rd5, %rd4, 2;\n\tst.f32 [%rd5+4096], %f1;\n",
       Fault::kIllegalAddress,
       "of block 2 of a cluster of 4 of 4096 bytes from 1024"},
      {"\tmapa.u64 %rd5, %rd4, 2;\n\tld.v4.f32 {%f1, %f2, %f3, %f4}, [%rd5];\n",
       Fault::kMisalignedAddress, "misaligned shared address"},
      {"\tmapa.u64 %rd5, %rd1, 2;\n\tld.b16 %rs1, [%rd5];\n",
       Fault::kIllegalAddress, "of no memory"},
      {"\tmapa.shared::cluster.u32 %r5, %r4, 3;\n"
       "\tmov.u32 %r6, %cluster_ctarank;\n\tsetp.eq.u32 %p1, %r6, 0;\n"
       "\t@%p1 ld.shared.f32 %f1, [%r5];\n",
       Fault::kIllegalAddress, "`@%p1 ld.shared.f32 %f1, [%r5];`: shared"},
      {"\tbarrier.cluster.arrive;\n\tbarrier.cluster.arrive.relaxed;\n",
       Fault::kLaunchFailed, "arrives twice without a wait"},
      {"\tbarrier.cluster.wait;\n", Fault::kLaunchFailed,
       "waits without an arrival"},
      {"\tsetp.lt.u32 %p1, %r1, 7;\n\t@%p1 barrier.cluster.arrive.aligned;\n",
       Fault::kLaunchFailed, "not all lanes of the warp execute it"},
      {"\tmov.u32 %r5, %cluster_ctarank;\n\tsetp.eq.u32 %p1, %r5, 2;\n"
       "\t@%p1 bra $L1;\n\tbarrier.cluster.arrive;\n\tbarrier.cluster.wait;\n"
       "\tret;\n$L1:\n\tbar.sync 0, 128;\n",
       Fault::kLaunchFailed, "; block 2 of the cluster: 0 at `bar.sync 0, 128"},
  };
  for (const Case& c : cases) {
    Buffer buffer(Iota(64));
    // Until all have done so, nothing is accessed and nobody ends.
    const Outcome outcome =
        ExecuteClusters(std::string(kMeet) + kGenericPlace + c.body, buffer);
    EXPECT_EQ(outcome.fault, c.fault) << c.body << outcome.what;
    EXPECT_THAT(outcome.what, HasSubstr(c.text)) << c.body;
  }
}

TEST(PtxCluster, GridsAreWholeClusters) {
  Buffer buffer(std::vector<float>(16 * 64));
  const Outcome six = ExecuteClusters("", buffer, 6);
  EXPECT_EQ(six.fault, Fault::kInvalidClusterSize);
  EXPECT_EQ(six.what,
            "k: 6 blocks along x are no multiple of the 4 of a cluster");
  // What the launch says, with and without a kernel that says it.
  Launch launch;
  launch.threads = {64, 1, 1};
  launch.grid = {16, 1, 1};
  const std::string body = SumOfCluster(kMeet, kMeet);
  const auto run = [&](const char* directives, unsigned cluster) {
    launch.cluster = cluster;
    return ExecuteText(KernelText(body, directives), buffer, launch);
  };
  EXPECT_EQ(run("", 4).fault, Fault::kNone);
  EXPECT_TRUE(IsSumOfCluster(buffer.values));
  EXPECT_EQ(run(".explicitcluster .maxclusterrank 8\n", 4).fault, Fault::kNone);
  EXPECT_EQ(run(kClusterOfFour, 4).fault, Fault::kNone);
  EXPECT_THAT(run(kClusterOfFour, 2).what,
              HasSubstr("launched with clusters of 2 blocks, compiled for 4"));
  EXPECT_EQ(run(".explicitcluster\n", 0).fault, Fault::kInvalidClusterSize);
  // Counted are two of the four clusters, and reads of any block's memory.
  launch.cluster = 0;
  launch.most_blocks = 5;
  std::string counted;
  EXPECT_EQ(ExecuteText(KernelText(body, ".reqnctapercluster 4\n"), buffer,
                        launch, &counted)
                .blocks,
            8);
  EXPECT_THAT(counted, HasSubstr("\"ld.f32 %f3, [%rd5];\", \"warps\": 64, "
                                 "\"lanes\": 2048, \"wavefronts\": 64, "
                                 "\"least_wavefronts\": 64}"));
  std::string error;
  EXPECT_EQ(
      Module::Parse(KernelText("", ".reqnctapercluster 2, 2, 1\n"), &error),
      nullptr);
  EXPECT_THAT(error, HasSubstr("unsupported shape of a cluster"));
}

}  // namespace
}  // namespace tilefarm::ptx
