// The executor of PTX (ptx/ptx_machine.h) with small kernels: what it computes,
// and the faults that it has to find.
#include "tests/gpu/ptx/ptx_machine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gpu/ptx/ptx_floats.h"
#include "tests/gpu/ptx_test_support.h"

namespace tilefarm::ptx {
namespace {

using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& body) {
  std::string error;
  EXPECT_EQ(Module::Parse(KernelText(body), &error), nullptr);
  return error;
}

// Reads the element of the thread in the other half, through shared memory.
std::string ExchangeHalves(const char* between) {
  return std::string(
             "\tld.global.f32 %f1, [%rd3];\n"
             "\tst.shared.f32 [%r4], %f1;\n") +
         between +
         "\txor.b32 %r5, %r1, 32;\n"
         "\tshl.b32 %r5, %r5, 2;\n"
         "\tadd.s32 %r5, %r2, %r5;\n"
         "\tld.shared.f32 %f2, [%r5];\n"
         "\tst.global.f32 [%rd3], %f2;\n";
}

TEST(PtxMachine, ThreadsExchangeValuesAcrossABarrier) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Buffer buffer(Iota(64));
    const Outcome outcome =
        Execute(ExchangeHalves("\tbar.sync 0;\n"), buffer, 64, seed);
    ASSERT_EQ(outcome.fault, Fault::kNone) << outcome.what;
    EXPECT_GT(outcome.instructions, 0);
    for (size_t i = 0; i < 64; ++i) {
      EXPECT_EQ(buffer.values[i], static_cast<float>(i ^ 32)) << seed;
    }
  }
}

TEST(PtxMachine, WithoutTheBarrierSomeOrderShowsIt) {
  bool shows = false;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Buffer buffer(Iota(64));
    Execute(ExchangeHalves(""), buffer, 64, seed);
    shows |= std::isnan(buffer.values[0]) || std::isnan(buffer.values[32]);
  }
  EXPECT_TRUE(shows);
}

TEST(PtxMachine, CopiesArriveWhenTheyAreWaitedFor) {
  const std::string copy =
      "\tcp.async.ca.shared.global [%r4], [%rd3], 4;\n"
      "\tcp.async.commit_group;\n";
  const std::string use =
      "\tld.shared.f32 %f1, [%r4];\n\tadd.rn.f32 %f1, %f1, 0f3F800000;\n"
      "\tst.global.f32 [%rd3], %f1;\n";
  Buffer waited(Iota(32)), early(Iota(32)), wrong_count(Iota(32));
  Execute(copy + "\tcp.async.wait_group 0;\n" + use, waited, 32);
  Execute(copy + use, early, 32);
  Execute(copy + "\tcp.async.wait_group 1;\n" + use, wrong_count, 32);
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(waited.values[i], static_cast<float>(i + 1));
    EXPECT_TRUE(std::isnan(early.values[i]));
    EXPECT_TRUE(std::isnan(wrong_count.values[i]));
  }
}

TEST(PtxMachine, ComparesHalvesOfWordsApart) {
  // The thread's number and 2 with 3 and 1, as float16.
  const std::string compare =
      "\tcvt.rn.f16.u32 %rs1, %r1;\n\tmov.b16 %rs2, 16384;\n"
      "\tmov.b32 %r5, {%rs1, %rs2};\n\tmov.b32 %r6, 1006649856;\n";
  const std::string store =
      "\tselp.f32 %f1, 0f3F800000, 0f00000000, %p1;\n"
      "\tselp.f32 %f2, 0f40000000, 0f00000000, %p2;\n"
      "\tadd.rn.f32 %f1, %f1, %f2;\n\tst.global.f32 [%rd3], %f1;\n";
  Buffer above(Iota(32)), joined(Iota(32));
  Execute(compare + "\tsetp.gt.f16x2 %p1|%p2, %r5, %r6;\n" + store, above, 32);
  Execute(compare + "\tsetp.lt.u32 %p3, %r1, 8;\n" +
              "\tsetp.gt.and.f16x2 %p1|%p2, %r5, %r6, %p3;\n" + store,
          joined, 32);
  for (size_t i = 0; i < 32; ++i) {
    const float expected = i > 3 ? 3 : 2;
    EXPECT_EQ(above.values[i], expected) << i;
    EXPECT_EQ(joined.values[i], i < 8 ? expected : 0) << i;
  }
}

TEST(PtxMachine, AddressesOfNamesHaveOffsets) {
  Buffer buffer(Iota(32));
  Execute(
      "\tsetp.lt.u32 %p1, %r1, 0;\n"
      "\t@%p1 ld.shared.f32 %f1, [s+-4];\n"
      "\tmov.f32 %f1, 0f40E00000;\n\tst.shared.f32 [s+8], %f1;\n"
      "\tadd.s32 %r5, %r2, 12;\n\tld.shared.f32 %f2, [%r5+-4];\n"
      "\tst.global.f32 [%rd3], %f2;\n",
      buffer, 32);
  EXPECT_THAT(buffer.values, Each(7.0F));
}

TEST(PtxMachine, CountsWavefrontsAndSectors) {
  const auto counted = [](const std::string& body) {
    Buffer buffer(Iota(1024));
    std::string json;
    const Outcome outcome = Execute(body, buffer, 32, 1, &json);
    EXPECT_EQ(outcome.fault, Fault::kNone) << outcome.what;
    return json;
  };
  // Neighbours: one wavefront, four sectors.
  const std::string dense =
      counted("\tld.global.f32 %f1, [%rd3];\n\tst.shared.f32 [%r4], %f1;\n");
  // Perhaps not aligned.
  EXPECT_THAT(dense, ContainsRegex("\"lanes\": 32, \"sectors\": [45], "
                                   "\"least_sectors\": 4}"));
  EXPECT_THAT(dense, HasSubstr("\"lanes\": 32, \"wavefronts\": 1, "
                               "\"least_wavefronts\": 1}"));
  // 128 bytes apart: all in one bank, and each in a sector of its own.
  const std::string apart = counted(
      "\tmul.wide.u32 %rd2, %r1, 128;\n\tadd.s64 %rd3, %rd1, %rd2;\n"
      "\tshl.b32 %r3, %r1, 7;\n\tadd.s32 %r4, %r2, %r3;\n"
      "\tld.global.f32 %f1, [%rd3];\n\tst.shared.f32 [%r4], %f1;\n");
  EXPECT_THAT(apart, HasSubstr("\"sectors\": 32, \"least_sectors\": 4}"));
  EXPECT_THAT(apart, HasSubstr("\"wavefronts\": 32, \"least_wavefronts\": 1}"));
  // One word for all lanes; 16 bytes each take four wavefronts.
  EXPECT_THAT(counted("\tmov.f32 %f1, 0f00000000;\n"
                      "\tst.shared.f32 [%r2], %f1;\n"),
              HasSubstr("\"wavefronts\": 1, \"least_wavefronts\": 1}"));
  EXPECT_THAT(counted("\tshl.b32 %r3, %r1, 4;\n\tadd.s32 %r4, %r2, %r3;\n"
                      "\tmov.f32 %f1, 0f00000000;\n"
                      "\tst.shared.v4.f32 [%r4], {%f1, %f1, %f1, %f1};\n"),
              HasSubstr("\"wavefronts\": 4, \"least_wavefronts\": 4}"));
  // Rows of 80 bytes for four lanes each: two rows meet in a bank.
  EXPECT_THAT(counted("\tshr.b32 %r3, %r1, 2;\n\tmul.lo.s32 %r3, %r3, 80;\n"
                      "\tadd.s32 %r4, %r2, %r3;\n\tand.b32 %r3, %r1, 3;\n"
                      "\tshl.b32 %r3, %r3, 4;\n\tadd.s32 %r4, %r4, %r3;\n"
                      "\tmov.f32 %f1, 0f00000000;\n"
                      "\tst.shared.v4.f32 [%r4], {%f1, %f1, %f1, %f1};\n"),
              HasSubstr("\"wavefronts\": 8, \"least_wavefronts\": 4}"));
}

TEST(PtxMachine, LanesThatPartMeetAgain) {
  Buffer buffer(Iota(32));
  // Odd lanes loop as often as their number says.
  const Outcome outcome = Execute(
      "\tld.global.f32 %f1, [%rd3];\n"
      "\tand.b32 %r5, %r1, 1;\n"
      "\tsetp.eq.b32 %p1, %r5, 0;\n"
      "\t@%p1 bra $L2;\n"
      "\tmov.u32 %r6, 0;\n"
      "$L1:\n"
      "\tadd.rn.f32 %f1, %f1, 0f3F800000;\n"
      "\tadd.s32 %r6, %r6, 1;\n"
      "\tsetp.lt.u32 %p2, %r6, %r1;\n"
      "\t@%p2 bra $L1;\n"
      "$L2:\n"
      "\tmov.b32 %r6, %f1;\n"
      "\tshfl.sync.bfly.b32 %r7, %r6, 1, 31, -1;\n"
      "\tmov.b32 %f2, %r7;\n"
      "\tst.global.f32 [%rd3], %f2;\n",
      buffer, 32);
  ASSERT_EQ(outcome.fault, Fault::kNone) << outcome.what;
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned from = i ^ 1;
    EXPECT_EQ(buffer.values[i],
              static_cast<float>(from % 2 == 0 ? from : 2 * from));
  }
}

TEST(PtxMachine, PredicatesAreTrueOrNot) {
  Buffer buffer(std::vector<float>(32, 0));
  // -1 is true: twice the opposite is what it was.
  const Outcome outcome = Execute(
      "\tsetp.lt.u32 %p1, %r1, 16;\n"
      "\txor.pred %p1, %p1, -1;\n"
      "\tselp.f32 %f1, 0f3F800000, 0f40000000, %p1;\n"
      "\tst.global.f32 [%rd3], %f1;\n",
      buffer, 32);
  ASSERT_EQ(outcome.fault, Fault::kNone) << outcome.what;
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(buffer.values[i], i < 16 ? 2 : 1);
}

TEST(PtxMachine, FaultsNameTheInstructionAndTheThread) {
  struct Case {
    const char* body;
    unsigned threads;
    Fault fault;
    const char* text;
  };
  const Case cases[] = {
      {"\tld.global.f32 %f1, [%rd3+128];\n", 32, Fault::kIllegalAddress,
       "`ld.global.f32 %f1, [%rd3+128];`: global address: no allocation"},
      {"\tst.shared.f32 [%r4+4096], %f1;\n", 32, Fault::kIllegalAddress,
       "shared address 5120 of 4096 bytes from 1024"},
      {"\tld.global.f32 %f1, [%rd3+2];\n", 32, Fault::kMisalignedAddress,
       "misaligned global address"},
      {"\tld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r4];\n", 32,
       Fault::kMisalignedAddress, "misaligned shared address 1028"},
      {"\tsetp.lt.u32 %p1, %r1, 32;\n\t@%p1 bra $L1;\n\tbar.sync 0;\n$L1:\n",
       64, Fault::kLaunchFailed, "all warps wait: 1 at `bar.sync 0;`"},
      {"\tsetp.lt.u32 %p1, %r1, 7;\n\t@%p1 bra $L1;\n\tbar.sync 0;\n$L1:\n", 32,
       Fault::kLaunchFailed, "all warps wait"},
      {"\tsetp.lt.u32 %p1, %r1, 7;\n"
       "\t@%p1 shfl.sync.idx.b32 %r5, %r1, 9, 31, 0x7f;\n",
       32, Fault::kLaunchFailed, "reads a lane that is not there"},
      {"\tsetp.eq.u32 %p1, %r1, 3;\n\t@%p1 trap;\n", 32, Fault::kLaunchFailed,
       "trap"},
      {"\tmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], %r1;\n", 1,
       Fault::kLaunchFailed, "there is no barrier"},
  };
  for (const Case& c : cases) {
    Buffer buffer(Iota(32));
    const Outcome outcome = Execute(c.body, buffer, c.threads);
    EXPECT_EQ(outcome.fault, c.fault) << c.body << outcome.what;
    EXPECT_THAT(outcome.what, HasSubstr(c.text)) << c.body;
  }
}

TEST(PtxMachine, AWaitWithoutACopyIsADeadlock) {
  Buffer buffer(Iota(32));
  const std::string init =
      "\tmov.u32 %r5, 1;\n\tmov.u32 %r6, 0;\n"
      "\tmbarrier.init.shared::cta.b64 [%r2], %r5;\n";
  const std::string wait =
      "\tmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], %r6;\n";
  EXPECT_EQ(Execute(init + wait, buffer, 1).fault, Fault::kLaunchFailed);
  const Outcome arrived = Execute(
      init + "\tmbarrier.arrive.shared::cta.b64 _, [%r2];\n" + wait, buffer, 1);
  EXPECT_EQ(arrived.fault, Fault::kNone) << arrived.what;
}

TEST(PtxMachine, WhatItDoesNotKnowIsAnErrorWithTheLine) {
  EXPECT_THAT(ErrorOf("\tfrobnicate.f32 %f1, %f2;\n"),
              HasSubstr("line 18: unsupported instruction: frobnicate.f32"));
  EXPECT_THAT(ErrorOf("\tadd.rz.f32 %f1, %f2, %f3;\n"),
              HasSubstr("unsupported instruction"));
  EXPECT_THAT(ErrorOf("\tadd.s32 %r1, %r2, %r99;\n"),
              HasSubstr("unknown name: %r99"));
  EXPECT_THAT(ErrorOf("\tbra $L9;\n"), HasSubstr("no label $L9"));
  EXPECT_THAT(ErrorOf("\tld.global.f32 %f1, [%r1];\n"),
              HasSubstr("unsupported width of the address %r1"));
}

TEST(PtxMachine, TensorMapsHaveTheLimitsOfTheDriver) {
  alignas(64) unsigned char map[128];
  const uint64_t sizes[] = {64, 64}, strides[] = {128};
  const unsigned box[] = {64, 64}, ones[] = {1, 1};
  const auto encode = [&](uint64_t address, const uint64_t* stride,
                          const unsigned* of_box) {
    return EncodeTensorMap(map, 6, 2, address, sizes, stride, of_box, ones, 0,
                           3, 0);
  };
  EXPECT_EQ(encode(4096, strides, box), 0);
  EXPECT_NE(encode(4104, strides, box), 0);
  const uint64_t odd[] = {136};
  EXPECT_NE(encode(4096, odd, box), 0);
  const unsigned wide[] = {128, 64}, tall[] = {64, 257};
  EXPECT_NE(encode(4096, strides, wide), 0);
  EXPECT_NE(encode(4096, strides, tall), 0);
}

TEST(PtxFloats, Float16IsTheCompilersOne) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    Float16 ours;
    ours.bits = static_cast<uint16_t>(bits);
    _Float16 theirs;
    std::memcpy(&theirs, &ours.bits, 2);
    const auto expected = static_cast<float>(theirs);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(ours)));
      continue;
    }
    ASSERT_EQ(static_cast<float>(ours), expected) << bits;
    ASSERT_EQ(Float16(expected).bits, bits);
  }
  std::mt19937_64 random(3);
  for (int i = 0; i < 200000; ++i) {
    const double value =
        std::ldexp(std::uniform_real_distribution(-1.0, 1.0)(random),
                   static_cast<int>(random() % 45) - 27);
    const auto theirs = static_cast<_Float16>(value);
    uint16_t bits;
    std::memcpy(&bits, &theirs, 2);
    ASSERT_EQ(Float16(value).bits, bits) << value;
  }
}

TEST(PtxFloats, BFloat16IsRoundedOnceToNearestEven) {
  const auto rounded = [](double value) {
    return static_cast<float>(BFloat16(value));
  };
  EXPECT_EQ(rounded(1 + 0x1p-8), 1);            // half way, to even
  EXPECT_EQ(rounded(1 + 0x3p-8), 1 + 0x1p-6F);  // half way, to even
  EXPECT_EQ(rounded(1 + 0x1p-8 + 0x1p-50), 1 + 0x1p-7F);
  EXPECT_EQ(rounded(1 + 0x1p-8 - 0x1p-50), 1);
  EXPECT_EQ(rounded(-0.0), 0);
  EXPECT_TRUE(std::signbit(rounded(-0.0)));
  EXPECT_EQ(rounded(1e300), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(rounded(NAN)));
  EXPECT_EQ(rounded(0x1p-133), 0x1p-133F);  // the least
}

}  // namespace
}  // namespace tilefarm::ptx
