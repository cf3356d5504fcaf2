// The simulator of GPUs (compiler/runtime/sim.c), with kernels of sim_kernels.c
// in the form of an artifact.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>
#include <set>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gpu/artifact.h"

namespace tilefarm::codegen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ReadAll(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return std::move(bytes).str();
}

struct Shape {
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  uint32_t shared_bytes = 0;
  int workspaces = 0;
  uint32_t cluster = 1;
  std::vector<DeviceTensorMap> maps = {};
};

// A function "f" of one kernel, with 4 KB of bytes for each buffer.
absl::StatusOr<Kernel> Load(const std::string& kernel, int buffers,
                            const Shape& shape) {
  const target::Target target = *target::Parse("sim:sm_90a");
  DeviceFunction function;
  function.symbol = "f";
  function.parameter_bytes.assign(static_cast<size_t>(buffers), 4096);
  function.parameter_access.assign(static_cast<size_t>(buffers), 3);
  function.workspace_bytes.assign(static_cast<size_t>(shape.workspaces), 4096);
  DeviceKernel launch{kernel, shape.grid, shape.block, shape.shared_bytes, {}};
  launch.cluster = shape.cluster;
  launch.maps = shape.maps;
  for (int i = 0; i < buffers + shape.workspaces; ++i) {
    launch.arguments.push_back(i);
  }
  function.kernels = {launch};
  return LoadArtifact({function}, "", target, ReadAll(TILEFARM_SIM_KERNELS));
}

// The error of a launch that must fail.
template <typename... Buffers>
std::string Fault(const std::string& kernel, const Shape& shape,
                  Buffers*... buffers) {
  const auto artifact = Load(kernel, sizeof...(buffers), shape);
  if (!artifact.ok()) return artifact.status().ToString();
  const int status = artifact->Call("f", buffers...);
  if (status != -3) return absl::StrCat("status ", status);
  return ErrorOf(*artifact, "f");
}

class SimTest : public testing::Test {
 protected:
  void TearDown() override { unsetenv("TILEFARM_SIM_SEED"); }
};

TEST_F(SimTest, ThreadsRunUpwardsThenDownwards) {
  const auto artifact = Load("order", 1, {.block = {4, 1, 1}});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::vector<uint32_t> out(9, 0);
  ASSERT_EQ(artifact->Call("f", out.data()), 0) << ErrorOf(*artifact, "f");
  EXPECT_THAT(out, ElementsAre(8, 0, 1, 2, 3, 3, 2, 1, 0));
}

TEST_F(SimTest, SeedsChooseOrders) {
  std::set<std::vector<uint32_t>> orders;
  const auto artifact = Load("order", 1, {.block = {16, 1, 1}});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  for (const char* seed : {"1", "2", "3", "3"}) {
    setenv("TILEFARM_SIM_SEED", seed, 1);
    std::vector<uint32_t> out(33, 0);
    ASSERT_EQ(artifact->Call("f", out.data()), 0);
    std::vector<uint32_t> sorted(out.begin() + 1, out.begin() + 17);
    std::sort(sorted.begin(), sorted.end());
    for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(sorted[i], i);
    orders.insert(out);
  }
  EXPECT_EQ(orders.size(), 3);
  setenv("TILEFARM_SIM_SEED", "some", 1);
  std::vector<uint32_t> out(33, 0);
  EXPECT_EQ(artifact->Call("f", out.data()), -1);
  EXPECT_EQ(ErrorOf(*artifact, "f"), "TILEFARM_SIM_SEED is not a number");
}

TEST_F(SimTest, BarriersOrderSharedMemory) {
  for (const uint32_t threads : {7u, 256u, 1024u}) {
    for (const char* seed : {"", "5"}) {
      setenv("TILEFARM_SIM_SEED", seed, 1);
      const auto artifact = Load("reverse", 3,
                                 {.grid = {3, 1, 1},
                                  .block = {threads, 1, 1},
                                  .shared_bytes = 4 * threads});
      ASSERT_TRUE(artifact.ok()) << artifact.status();
      std::vector<float> in(3 * threads), out(3 * threads, -1);
      std::iota(in.begin(), in.end(), 0.0f);
      uint32_t count = threads;
      ASSERT_EQ(artifact->Call("f", in.data(), out.data(), &count), 0);
      for (uint32_t i = 0; i < 3 * threads; ++i) {
        const uint32_t x = i % threads;
        ASSERT_EQ(out[i], in[i - x + threads - 1 - x]);
      }
    }
  }
}

TEST_F(SimTest, MemoryIsPoisonedAtFirst) {
  const auto artifact = Load(
      "initial", 1, {.grid = {2, 1, 1}, .shared_bytes = 4, .workspaces = 1});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  for (int repeat = 0; repeat < 2; ++repeat) {
    std::vector<uint32_t> out(4, 0);
    ASSERT_EQ(artifact->Call("f", out.data()), 0);
    EXPECT_THAT(out, testing::Each(0xffffffffu));
  }
}

TEST_F(SimTest, CoordinatesCoverGridAndBlock) {
  const auto artifact =
      Load("coordinates", 1, {.grid = {2, 3, 4}, .block = {5, 4, 6}});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::vector<uint32_t> out(24 * 120, 0);
  ASSERT_EQ(artifact->Call("f", out.data()), 0);
  for (uint32_t i = 0; i < out.size(); ++i) {
    ASSERT_EQ(out[i], i / 120 * 1000 + i % 120);
  }
}

TEST_F(SimTest, ThreadThatEndsBeforeABarrierIsAnError) {
  EXPECT_EQ(Fault("ends_early", {.grid = {2, 2, 1}, .block = {8, 1, 1}}),
            "barrier divergence in ends_early, block (0,1,0): thread 0 waits "
            "at barrier 1, thread 3 has ended");
}

TEST_F(SimTest, ThreadsAtTwoBarriersAreAnError) {
  EXPECT_EQ(Fault("two_barriers", {.block = {16, 1, 1}}),
            "barrier divergence in two_barriers, block (0,0,0): thread 0 waits "
            "at barrier 1, thread 8 waits at barrier 2");
}

TEST_F(SimTest, ShufflesExchangeWithinAWarp) {
  for (const char* seed : {"", "9"}) {
    setenv("TILEFARM_SIM_SEED", seed, 1);
    const auto artifact = Load("warp_sum", 2, {.block = {128, 1, 1}});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    std::vector<uint32_t> in(128), out(128);
    for (uint32_t i = 0; i < 128; ++i) in[i] = i * i + 1;
    ASSERT_EQ(artifact->Call("f", in.data(), out.data()), 0);
    for (uint32_t i = 0; i < 128; ++i) {
      const auto warp = in.begin() + i / 32 * 32;
      ASSERT_EQ(out[i], std::accumulate(warp, warp + 32, 0u));
    }
  }
}

TEST_F(SimTest, ShufflesThatDivergeAreErrors) {
  std::vector<uint32_t> out(64);
  EXPECT_EQ(Fault("half_warp_shuffles", {.block = {64, 1, 1}}, out.data()),
            "shuffle divergence in half_warp_shuffles, block (0,0,0): thread 0 "
            "waits at shuffle 1 for other threads of its warp");
  EXPECT_EQ(Fault("two_shuffles", {.block = {32, 1, 1}}, out.data()),
            "shuffle divergence in two_shuffles, block (0,0,0): threads 0 and "
            "5 are at shuffles 1 and 2");
  EXPECT_EQ(Fault("missing_lane", {.block = {20, 1, 1}}, out.data()),
            "shuffle in missing_lane, block (0,0,0): thread 0 reads lane 31, "
            "but only lanes 0 to 19 take part");
}

TEST_F(SimTest, GroupsOfLanesShuffleApart) {
  const Shape shape = {.block = {52, 1, 1}};
  std::vector<uint32_t> in(52), out(52), distance = {2};
  std::iota(in.begin(), in.end(), 100u);
  const auto artifact = Load("quads", 3, shape);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  ASSERT_EQ(artifact->Call("f", in.data(), out.data(), distance.data()), 0)
      << ErrorOf(*artifact, "f");
  for (uint32_t i = 0; i < 52; ++i) EXPECT_EQ(out[i], in[i ^ 2]);
  distance[0] = 4;
  EXPECT_EQ(Fault("quads", shape, in.data(), out.data(), distance.data()),
            "shuffle in quads, block (0,0,0): thread 0 reads lane 4, but only "
            "lanes 0 to 3 take part");
}

TEST_F(SimTest, CopiesLandAtTheirWait) {
  const auto artifact = Load("copies", 2, {.shared_bytes = 32});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::vector<uint32_t> in = {1, 2, 3, 4, 5, 6, 7, 8}, out(24);
  ASSERT_EQ(artifact->Call("f", in.data(), out.data()), 0)
      << ErrorOf(*artifact, "f");
  constexpr uint32_t kPoison = 0xffffffff;
  EXPECT_THAT(out, ElementsAre(kPoison, kPoison, kPoison, kPoison, kPoison,
                               kPoison, kPoison, kPoison,  //
                               100, 2, 3, 4, kPoison, kPoison, kPoison, kPoison,
                               100, 2, 3, 4, 5, 6, 0, 0));
}

TEST_F(SimTest, PipelinesOfCopiesAreCorrect) {
  for (const char* seed : {"", "4"}) {
    setenv("TILEFARM_SIM_SEED", seed, 1);
    const auto artifact =
        Load("pipeline", 2, {.block = {64, 1, 1}, .shared_bytes = 3 * 256});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    std::vector<uint32_t> in(50 * 64), out(64), expected(64, 0);
    for (uint32_t i = 0; i < in.size(); ++i) in[i] = i * 7919;
    for (uint32_t i = 0; i < in.size(); ++i) {
      for (uint32_t x = 0; x < 64; ++x) {
        if (x / 2 == i % 64) expected[x] += in[i];
      }
    }
    ASSERT_EQ(artifact->Call("f", in.data(), out.data()), 0)
        << ErrorOf(*artifact, "f");
    EXPECT_EQ(out, expected);
  }
}

TEST_F(SimTest, ReadOfACopyThatHasNotLandedIsAnError) {
  std::vector<uint32_t> in(4), out(1);
  EXPECT_EQ(Fault("early_read", {.block = {4, 1, 1}, .shared_bytes = 16},
                  in.data(), out.data()),
            "race on shared memory of early_read at byte 8 between threads 1 "
            "and 2 (a copy of the former has not landed), block (0,0,0)");
}

TEST_F(SimTest, RacesAreErrors) {
  std::vector<uint32_t> out(8);
  const Shape shape = {.block = {8, 1, 1}, .shared_bytes = 32};
  EXPECT_EQ(Fault("races", shape, out.data()),
            "race on shared memory of races at byte 4 between threads 0 and 1 "
            "(the latter writes), block (0,0,0)");
  EXPECT_THAT(Fault("late_race", shape),
              HasSubstr("race on shared memory of late_race at byte 0 between "
                        "threads 7 and 4 (the latter writes)"));
  const auto artifact = Load("no_race", 1, shape);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  ASSERT_EQ(artifact->Call("f", out.data()), 0) << ErrorOf(*artifact, "f");
  EXPECT_THAT(out, testing::Each(7u));
}

TEST_F(SimTest, ThreadsMayStoreTheSameValue) {
  std::vector<uint32_t> in(8, 5), out(8);
  const Shape shape = {.block = {8, 1, 1}, .shared_bytes = 32};
  const auto artifact = Load("same_stores", 2, shape);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  ASSERT_EQ(artifact->Call("f", in.data(), out.data()), 0)
      << ErrorOf(*artifact, "f");
  EXPECT_THAT(out, testing::Each(5u));
  in[6] = 4 << 8;
  EXPECT_EQ(Fault("same_stores", shape, in.data(), out.data()),
            "race on shared memory of same_stores at byte 0 between threads 5 "
            "and 6 (both write), block (0,0,0)");
  EXPECT_THAT(Fault("last_stores", shape, in.data()),
              HasSubstr("between threads 5 and 6 (both write)"));
}

TEST_F(SimTest, AccessOutsideOfSharedMemoryIsAnError) {
  EXPECT_EQ(Fault("out_of_bounds", {.block = {2, 1, 1}, .shared_bytes = 64}),
            "access outside of shared memory of out_of_bounds, block (0,0,0): "
            "thread 1 at bytes 63 to 64 of 64");
}

TEST_F(SimTest, StacksHoldLargeFrames) {
  const auto artifact = Load("deep_stack", 1, {.block = {1024, 1, 1}});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::vector<float> out(1024);
  ASSERT_EQ(artifact->Call("f", out.data()), 0);
  for (uint32_t x = 0; x < 1024; ++x) {
    float expected = 0;
    for (uint32_t i = 0; i < 12 << 10; ++i) {
      expected += static_cast<float>(x + i % 7);
    }
    ASSERT_EQ(out[x], expected);
  }
}

TEST_F(SimTest, ErrorsBelongToTheArtifactWhichWorksAfterwards) {
  const auto other = Load("ends_early", 0, {.block = {8, 1, 1}});
  ASSERT_TRUE(other.ok()) << other.status();
  const auto artifact = Load("warp_sum", 2, {.block = {32, 1, 1}});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::vector<uint32_t> in(32, 1), out(32);
  uint32_t* null = nullptr;
  EXPECT_EQ(artifact->Call("f", in.data(), null), -1);
  EXPECT_EQ(ErrorOf(*artifact, "f"), "parameter 1 is null");
  EXPECT_EQ(ErrorOf(*other, "f"), "no error");
  EXPECT_EQ(artifact->Call("f", in.data(), out.data()), 0);
  EXPECT_THAT(out, testing::Each(32u));
}

TEST_F(SimTest, SeveralThreadsCallAtOnce) {
  const auto artifact = Load("warp_sum", 2, {.block = {64, 1, 1}});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        std::vector<uint32_t> in(64, t), out(64, 0);
        const int status = artifact->Call("f", in.data(), out.data());
        if (status != 0 || out != std::vector<uint32_t>(64, 32 * t)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Blocks of clusters: 3 * 2 clusters of 4 blocks.
Shape FourBlocks(uint32_t threads) {
  return {.grid = {12, 2, 1},
          .block = {threads, 1, 1},
          .shared_bytes = 4 * threads,
          .cluster = 4};
}

constexpr std::array<const char*, 5> kSeeds = {"", "1", "2", "3", "4"};

TEST_F(SimTest, BlocksOfAClusterExchange) {
  for (const uint32_t size : {1u, 2u, 4u, 8u}) {
    Shape shape = FourBlocks(40);
    shape.grid = {3 * size, 1, 1};
    shape.cluster = size;
    const auto artifact = Load("cluster_sums", 3, shape);
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    for (const char* seed : kSeeds) {
      setenv("TILEFARM_SIM_SEED", seed, 1);
      std::vector<uint32_t> in(24 * 40), out(24 * 40), sizes = {size, 40};
      for (uint32_t i = 0; i < in.size(); ++i) in[i] = i * i;
      ASSERT_EQ(artifact->Call("f", in.data(), out.data(), sizes.data()), 0)
          << ErrorOf(*artifact, "f");
      for (uint32_t i = 0; i < 3 * size * 40; ++i) {
        uint32_t sum = 0;
        for (uint32_t rank = 0; rank < size; ++rank) {
          const uint32_t block = i / 40 / size * size + rank;
          sum += in[block * 40 + 39 - i % 40] + 2;
        }
        ASSERT_EQ(out[i], sum) << size << " " << i;
      }
    }
  }
}

TEST_F(SimTest, RacesBetweenBlocksAreErrors) {
  std::vector<uint32_t> in(12 * 8), out(12 * 8), sizes = {4, 8};
  for (const char* seed : kSeeds) {
    setenv("TILEFARM_SIM_SEED", seed, 1);
    EXPECT_THAT(Fault("cluster_without_first", FourBlocks(8), in.data(),
                      out.data(), sizes.data()),
                HasSubstr("race on shared memory of cluster_without_first"));
    EXPECT_THAT(Fault("cluster_late_write", FourBlocks(8), out.data()),
                HasSubstr("race on shared memory of cluster_late_write, block "
                          "(1,0,0), at byte 8 between its thread 2 and"));
  }
  setenv("TILEFARM_SIM_SEED", "", 1);
  EXPECT_EQ(Fault("cluster_late_write", FourBlocks(8), out.data()),
            "race on shared memory of cluster_late_write, block (1,0,0), at "
            "byte 8 between its thread 2 and thread 0 of block (2,0,0) (the "
            "former writes)");
}

TEST_F(SimTest, ReadsOfTheOwnBlockRaceAsWithoutAddresses) {
  std::vector<uint32_t> out(8);
  EXPECT_EQ(Fault("cluster_own_race", FourBlocks(8), out.data()),
            "race on shared memory of cluster_own_race at byte 4 between "
            "threads 0 and 1 (the latter writes), block (0,0,0)");
}

TEST_F(SimTest, ReadsOfBlocksThatMayNotBeThereAreErrors) {
  std::vector<uint32_t> in(12 * 8), out(12 * 8), sizes = {4, 8};
  for (const char* seed : kSeeds) {
    setenv("TILEFARM_SIM_SEED", seed, 1);
    EXPECT_THAT(Fault("cluster_without_last", FourBlocks(8), in.data(),
                      out.data(), sizes.data()),
                HasSubstr("of the cluster may have ended"));
    EXPECT_THAT(Fault("cluster_early_load", FourBlocks(8), out.data()),
                HasSubstr("of the cluster may not have started"));
  }
  setenv("TILEFARM_SIM_SEED", "", 1);
  EXPECT_EQ(Fault("cluster_without_last", FourBlocks(8), in.data(), out.data(),
                  sizes.data()),
            "cluster_without_last, block (1,0,0), thread 0 reads shared memory "
            "of another block: block 0 of the cluster may have ended");
}

TEST_F(SimTest, BlocksThatDivergeAreErrors) {
  EXPECT_EQ(Fault("cluster_end", FourBlocks(8)),
            "cluster barrier divergence in cluster_end: block (0,0,0) waits at "
            "cluster barrier 2, block (2,0,0) has ended");
  EXPECT_EQ(Fault("cluster_two_barriers", FourBlocks(8)),
            "cluster barrier divergence in cluster_two_barriers: block (0,0,0) "
            "waits at cluster barrier 1, block (3,0,0) waits at cluster "
            "barrier 2");
  EXPECT_EQ(Fault("cluster_mixed_barriers", FourBlocks(8)),
            "barrier divergence in cluster_mixed_barriers, block (0,0,0): "
            "thread 0 waits at cluster barrier 2, thread 1 waits at barrier 1");
}

TEST_F(SimTest, AddressesOutsideOfTheClusterAreErrors) {
  const auto error = [](uint32_t rank, uint32_t offset, uint32_t more) {
    std::vector<uint32_t> at = {rank, offset, more};
    return Fault("cluster_address", FourBlocks(8), at.data());
  };
  EXPECT_EQ(error(3, 28, 0), "status 0");
  EXPECT_EQ(error(4, 0, 0),
            "cluster_address, block (3,0,0), thread 7: an address in block 4 "
            "of a cluster of 4");
  EXPECT_THAT(error(1, 32, 0), HasSubstr("outside of its block's"));
  EXPECT_THAT(error(1, 28, 1),
              HasSubstr("a load outside of the shared memory of the cluster"));
}

TEST_F(SimTest, GridsOfIncompleteClustersAreErrors) {
  for (const uint32_t cluster : {0u, 5u, 12u}) {
    Shape shape = FourBlocks(8);
    shape.cluster = cluster;
    const auto artifact = Load("cluster_end", 0, shape);
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    EXPECT_EQ(artifact->Call("f"), -1);
    EXPECT_EQ(ErrorOf(*artifact, "f"),
              absl::StrCat("cluster_end: clusters of ", cluster,
                           " blocks in a grid of 12 along x"));
  }
}

TEST_F(SimTest, ReadsOfOtherBlocksMeetNoCopies) {
  std::vector<uint32_t> in(1024, 7), out(1024);
  Shape shape = {.grid = {2, 1, 1}, .shared_bytes = 16, .cluster = 2};
  const auto error = [&](const char* kernel, uint32_t epoch) {
    return Fault(kernel, shape, in.data(), out.data(), &epoch);
  };
  EXPECT_THAT(error("cluster_copy", 3), HasSubstr("has not landed"));
  EXPECT_THAT(error("cluster_copy", 2), HasSubstr("race on shared memory"));
  EXPECT_EQ(error("cluster_copy", 1), "status 0");
  EXPECT_EQ(out[0], 7);
  shape.shared_bytes = 1032;
  shape.maps = {{.element_bytes = 4, .dims = 1, .sizes = {32}, .box = {32}}};
  out[0] = 0;
  EXPECT_THAT(error("cluster_box", 2), HasSubstr("has not landed"));
  EXPECT_THAT(error("cluster_box", 1), HasSubstr("race on shared memory"));
  EXPECT_EQ(error("cluster_box", 0), "status 0");
  EXPECT_EQ(out[0], 7);
}

// Reports the time of the switches, which is a few milliseconds when nothing
// else runs.
TEST_F(SimTest, ManyBarriers) {
  const auto artifact =
      Load("many_barriers", 1, {.grid = {64, 1, 1}, .block = {256, 1, 1}});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::vector<uint32_t> out(64, 0);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(artifact->Call("f", out.data()), 0);
  const std::chrono::duration<double, std::milli> milliseconds =
      std::chrono::steady_clock::now() - begin;
  RecordProperty("milliseconds", std::to_string(milliseconds.count()));
  std::cout << "1.6 million switches: " << milliseconds.count() << " ms\n";
  EXPECT_THAT(out, testing::Each(256u));
}

}  // namespace
}  // namespace tilefarm::codegen
