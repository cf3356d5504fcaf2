// call_library: marks and rejections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/ir/library_call.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

using ::testing::ElementsAre;

constexpr absl::StatusCode kWrong = absl::StatusCode::kInvalidArgument;
constexpr char kCall[] =
    "b0 = sch.get_block(\"C\")\n"
    "sch.call_library(b0, kernel=\"openblas.sgemm\")\n";
constexpr char kCallParams[] =
    "A: T.Buffer((8, 4), \"float32\"), B: T.Buffer((4, 16), \"float32\"), "
    "C: T.Buffer((8, 16), \"float32\")";

// `attribute` precedes the computation.
std::string Matmul(const std::string& attribute = "") {
  return Program(kCallParams, absl::StrCat(R"(for i, j, k in T.grid(8, 16, 4):
    with T.block("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
)",
                                           attribute, R"(        with T.init():
            C[vi, vj] = T.float32(0)
        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj])"));
}

TEST(CallLibrary, MarksTheBlockAndLeavesTheProgram) {
  ExpectBecomes(Matmul(), kCall,
                Matmul("        T.block_attr({\"tilefarm.library\": "
                       "\"openblas.sgemm\"})\n"));
}

TEST(CallLibrary, ATraceWithItIsReadAsItIsPrinted) {
  const auto schedule = Apply(ParseProgram(Matmul()), kCall);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const std::string text = schedule->trace().Print();
  EXPECT_THAT(text, ::testing::HasSubstr(
                        "sch.call_library(b0, kernel=\"openblas.sgemm\")"));
  const auto again = Apply(ParseProgram(Matmul()), text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->trace().Print(), text);
  EXPECT_THAT(ir::LibraryCallsIn(again->module().functions[0]->body),
              ElementsAre("openblas.sgemm"));
}

TEST(CallLibrary, AnEpilogueStaysABlockOfItsOwn) {
  ExpectSameResults(MatmulRelu(), kCall);
}

TEST(CallLibrary, RefusesUnknownKernels) {
  ExpectRefused(Matmul(),
                "b0 = sch.get_block(\"C\")\n"
                "sch.call_library(b0, kernel=\"magic.sgemm\")\n",
                kWrong, {"call_library", "magic.sgemm", "openblas.sgemm"});
}

TEST(CallLibrary, RefusesOtherNests) {
  ExpectRefused(Matmul(),
                absl::StrCat("b1 = sch.get_block(\"C\")\n"
                             "l1, l2, l3 = sch.get_loops(b1)\n"
                             "sch.split(l1, factors=[2, 4])\n",
                             kCall),
                kIllegal, {"call_library", "block C", "loop of its own"});
  ExpectRefused(Matmul(),
                absl::StrCat("b1 = sch.get_block(\"C\")\n"
                             "l1, l2, l3 = sch.get_loops(b1)\n"
                             "sch.parallel(l1)\n",
                             kCall),
                kIllegal, {"call_library", "not serial"});
  ExpectRefused(MatmulRelu(),
                absl::StrCat("b1 = sch.get_block(\"D\")\n"
                             "b2 = sch.get_block(\"C\")\n"
                             "l1, l2, l3 = sch.get_loops(b2)\n"
                             "sch.reverse_compute_at(b1, l1)\n",
                             kCall),
                kIllegal, {"call_library", "another statement"});
  ExpectRefused(Matmul(), absl::StrCat(kCall, kCall), kIllegal,
                {"call_library", "already"});
}

TEST(CallLibrary, RefusesWhatIsNoProduct) {
  ExpectRefused(TwoElementwise(), kCall, kIllegal, {"call_library", "init"});
}

TEST(CallLibrary, TheMarkIsNotSetByHand) {
  ExpectRefused(Matmul(),
                "b0 = sch.get_block(\"C\")\n"
                "sch.annotate(b0, ann_key=\"tilefarm.library\", "
                "ann_val=\"openblas.sgemm\")\n",
                kWrong, {"call_library"});
}

}  // namespace
}  // namespace tilefarm::testing
