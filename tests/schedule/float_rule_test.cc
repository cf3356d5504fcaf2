// What is refused where floats come out as written (ir::FloatRule).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/schedule/trace.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;

// OK, or why the trace is refused as written; it must be legal otherwise.
absl::Status AsWritten(const std::string& program, const std::string& trace) {
  const auto parsed = schedule::Trace::Parse(trace);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const ir::IRModule module = ParseProgram(program);
  const auto rounds = schedule::Replay(*parsed, module);
  EXPECT_TRUE(rounds.ok()) << rounds.status();
  return schedule::Replay(*parsed, module, /*seed=*/0,
                          ir::FloatRule::kAsWritten)
      .status();
}

void ExpectRefusedAsWritten(const std::string& program,
                            const std::string& trace,
                            const std::string& reason) {
  const absl::Status status = AsWritten(program, trace);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(reason));
  EXPECT_THAT(std::string(status.message()), HasSubstr("as written"));
}

// One dimension of a convolution of the padded P.
std::string Convolution(const std::string& type) {
  return absl::StrReplaceAll(
      Program("A: T.Buffer((8,), \"TYPE\"), W: T.Buffer((3,), \"TYPE\"), "
              "C: T.Buffer((8,), \"TYPE\")",
              R"(P = T.alloc_buffer((10,), "TYPE")
for i in range(10):
    with T.block("P"):
        v = T.axis.spatial(10, i)
        P[v] = T.if_then_else(1 <= v and v < 9, A[v - 1], T.cast(0, "TYPE"))
for i, k in T.grid(8, 3):
    with T.block("C"):
        v, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[v] = T.cast(0, "TYPE")
        C[v] = C[v] + P[v + vk] * W[vk])"),
      {{"TYPE", type}});
}

constexpr char kInline[] =
    "b0 = sch.get_block(\"P\")\nsch.compute_inline(b0)\n";
constexpr char kSkip[] =
    "b1 = sch.get_block(\"C\")\n"
    "sch.annotate(b1, \"tilefarm.skip_padding\", 1)\n";

TEST(FloatRule, SkippedPaddingOfFloats) {
  const std::string floats = Convolution("float32");
  ExpectRefusedAsWritten(floats, absl::StrCat(kInline, kSkip),
                         "annotate: block C: it leaves out terms");
  // Nothing is skipped until padding is inlined.
  EXPECT_TRUE(AsWritten(floats, kSkip).ok());
  ExpectRefusedAsWritten(floats, absl::StrCat(kSkip, kInline),
                         "compute_inline: block C: it leaves out terms");
  EXPECT_TRUE(AsWritten(floats, kInline).ok());
}

TEST(FloatRule, SkippedPaddingOfIntegers) {
  EXPECT_TRUE(
      AsWritten(Convolution("int32"), absl::StrCat(kInline, kSkip)).ok());
}

// A program that carries the annotation says itself what it computes.
TEST(FloatRule, WhatTheProgramPermits) {
  std::string program = Convolution("float32");
  const std::string init = "        with T.init():";
  program.insert(program.find(init),
                 "        T.block_attr({\"tilefarm.skip_padding\": 1})\n    ");
  EXPECT_TRUE(AsWritten(program,
                        "b1 = sch.get_block(\"C\")\n"
                        "l1, l2 = sch.get_loops(b1)\n"
                        "sch.decompose_reduction(b1, l2)\n")
                  .ok());
}

TEST(FloatRule, ZerosByARemainder) {
  const auto transposed = [](const std::string& type) {
    return absl::StrReplaceAll(
        Program("A: T.Buffer((8,), \"TYPE\"), W: T.Buffer((6,), \"TYPE\"), "
                "C: T.Buffer((8,), \"TYPE\")",
                R"(for h, r in T.grid(8, 4):
    with T.block("C"):
        vh, vr = T.axis.remap("SR", [h, r])
        with T.init():
            C[vh] = T.cast(0, "TYPE")
        C[vh] = C[vh] + T.if_then_else((vh + vr) % 2 == 0, A[(vh + vr) // 2], T.cast(0, "TYPE")) * W[3 - vr])"),
        {{"TYPE", type}});
  };
  const std::string trace = "b0 = sch.get_block(\"C\")\nsch.skip_zeros(b0)\n";
  ExpectRefusedAsWritten(transposed("float32"), trace,
                         "skip_zeros: block C: it leaves out terms");
  EXPECT_TRUE(AsWritten(transposed("int32"), trace).ok());
}

TEST(FloatRule, Winograd) {
  const std::string program = Program(
      "A: T.Buffer((10, 10, 4), \"float32\"), W: T.Buffer((3, 3, 4, "
      "4), \"float32\"), C: T.Buffer((8, 8, 4), \"float32\")",
      R"(for h, w, o, r, s, k in T.grid(8, 8, 4, 3, 3, 4):
    with T.block("C"):
        vh, vw, vo, vr, vs, vk = T.axis.remap("SSSRRR", [h, w, o, r, s, k])
        with T.init():
            C[vh, vw, vo] = T.float32(0)
        C[vh, vw, vo] = C[vh, vw, vo] + A[vh + vr, vw + vs, vk] * W[vr, vs, vk, vo])");
  const std::string trace =
      "b0 = sch.get_block(\"C\")\n"
      "b1, b2, b3, b4, b5, b6 = sch.winograd(b0, tile=2)\n";
  ExpectRefusedAsWritten(program, trace,
                         "winograd: block C: it rounds differently");
  const auto without =
      schedule::Replay(*schedule::Trace::Parse(trace), ParseProgram(program),
                       /*seed=*/0, ir::FloatRule::kNoWinograd);
  EXPECT_EQ(without.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(without.status().message().find(
                "but Winograd's algorithm is not permitted"),
            absl::string_view::npos)
      << without.status();
}

TEST(FloatRule, OnlineSoftmax) {
  ExpectRefusedAsWritten(
      Program("A: T.Buffer((4, 32), \"float32\"), S: T.Buffer((4,), "
              "\"float32\")",
              R"(M = T.alloc_buffer((4,), "float32")
for i, k in T.grid(4, 32):
    with T.block("M"):
        v, vk = T.axis.remap("SR", [i, k])
        with T.init():
            M[v] = T.float32(-3.4028234663852886e+38)
        M[v] = T.max(M[v], A[v, vk])
for i, k in T.grid(4, 32):
    with T.block("S"):
        v, vk = T.axis.remap("SR", [i, k])
        with T.init():
            S[v] = T.float32(0)
        S[v] = S[v] + T.exp(A[v, vk] - M[v]))"),
      "b0 = sch.get_block(\"S\")\n"
      "b1, b2 = sch.online_softmax(b0, chunk=16, lanes=4)\n",
      "online_softmax: block S: it rounds differently");
}

// What the rule leaves open: the order of a sum.
TEST(FloatRule, OrderOfSums) {
  EXPECT_TRUE(AsWritten(MatmulRelu(),
                        "b0 = sch.get_block(\"C\")\n"
                        "l1, l2, l3 = sch.get_loops(b0)\n"
                        "sch.reorder(l3, l1, l2)\n")
                  .ok());
}

}  // namespace
}  // namespace tilefarm::testing
