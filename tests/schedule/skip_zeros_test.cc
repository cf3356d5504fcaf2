// skip_zeros: rewrites and rejections.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

constexpr char kSkipParams[] =
    "A: T.Buffer((8,), \"float32\"), W: T.Buffer((6,), \"float32\"), "
    "C: T.Buffer((8,), \"float32\")";
constexpr char kTrace[] = "b0 = sch.get_block(\"C\")\nsch.skip_zeros(b0)\n";

// C[h] = sum over r of a term, h in 8 and r in 4.
std::string SumOf(const std::string& term) {
  return Program(kSkipParams, absl::StrCat(R"(for h, r in T.grid(8, 4):
    with T.block("C"):
        vh, vr = T.axis.remap("SR", [h, r])
        with T.init():
            C[vh] = T.float32(0)
        C[vh] = C[vh] + )",
                                           term));
}

// One dimension of a transposed convolution of stride 2.
std::string Transposed() {
  return SumOf(
      "T.if_then_else((vh + vr) % 2 == 0, A[(vh + vr) // 2], T.float32(0)) * "
      "W[3 - vr]");
}

TEST(SkipZeros, KeepsTheTermsOfOneRemainder) {
  const std::string expected =
      Program(kSkipParams, R"(for h_0, h_1, r_0 in T.grid(4, 2, 2):
    with T.block("C"):
        vh_0, vh_1, vr_0 = T.axis.remap("SSR", [h_0, h_1, r_0])
        with T.init():
            C[vh_0 * 2 + vh_1] = T.float32(0)
        C[vh_0 * 2 + vh_1] = C[vh_0 * 2 + vh_1] + A[vh_0 + vh_1 + vr_0] * W[3 - vh_1 - vr_0 * 2])");
  ExpectBecomes(Transposed(), kTrace, expected);
}

TEST(SkipZeros, OtherOffsetsAndStrides) {
  // A guard shifted by one selects the other remainder.
  ExpectSameResults(SumOf("T.if_then_else((vh + vr + 1) % 2 == 0, "
                          "A[(vh + vr + 1) // 2], T.float32(0)) * W[vr]"),
                    kTrace);
  ExpectSameResults(SumOf("W[vr] * T.if_then_else((vh - vr) % 2 == 1, "
                          "A[vh], T.float32(0))"),
                    kTrace);
  // Only the guard, without a product.
  ExpectSameResults(
      SumOf("T.if_then_else((vh + vr) % 4 == 3, A[vr], T.float32(0))"), kTrace);
}

TEST(SkipZeros, OtherConditionsStay) {
  ExpectBecomes(
      SumOf("T.if_then_else(1 <= vh and (vh + vr) % 2 == 0, A[vh - 1], "
            "T.float32(0)) * W[vr]"),
      kTrace, Program(kSkipParams, R"(for h_0, h_1, r_0 in T.grid(4, 2, 2):
    with T.block("C"):
        vh_0, vh_1, vr_0 = T.axis.remap("SSR", [h_0, h_1, r_0])
        with T.init():
            C[vh_0 * 2 + vh_1] = T.float32(0)
        C[vh_0 * 2 + vh_1] = C[vh_0 * 2 + vh_1] + T.if_then_else(1 <= vh_0 * 2 + vh_1, A[vh_0 * 2 + vh_1 - 1], T.float32(0)) * W[vr_0 * 2 + vh_1])"));
}

TEST(SkipZeros, TwoDimensions) {
  ExpectSameResults(Program("A: T.Buffer((5, 5, 3), \"float32\"), "
                            "W: T.Buffer((4, 4, 3, 2), \"float32\"), "
                            "C: T.Buffer((6, 6, 2), \"float32\")",
                            R"(for h, w, c, r, s, k in T.grid(6, 6, 2, 4, 4, 3):
    with T.block("C"):
        vh, vw, vc, vr, vs, vk = T.axis.remap("SSSRRR", [h, w, c, r, s, k])
        with T.init():
            C[vh, vw, vc] = T.float32(0)
        C[vh, vw, vc] = C[vh, vw, vc] + T.if_then_else((vh + vr) % 2 == 0 and (vw + vs) % 2 == 0, A[(vh + vr) // 2, (vw + vs) // 2, vk], T.float32(0)) * W[3 - vr, 3 - vs, vk, vc])"),
                    kTrace);
}

TEST(SkipZeros, RefusesOtherTerms) {
  // The guarded operand is not zero.
  ExpectRefused(
      SumOf("T.if_then_else((vh + vr) % 2 == 0, A[vh], T.float32(1))"), kTrace,
      kIllegal, {"skip_zeros", "block C", "no sum"});
  // The zero is a summand, not a factor.
  ExpectRefused(
      SumOf(
          "(T.if_then_else((vh + vr) % 2 == 0, A[vh], T.float32(0)) + W[vr])"),
      kTrace, kIllegal, {"skip_zeros", "no sum of products"});
  ExpectRefused(SumOf("A[vh] * W[vr]"), kTrace, kIllegal,
                {"skip_zeros", "no sum of products"});
}

TEST(SkipZeros, RefusesOtherConditions) {
  const auto refuse = [](const std::string& condition) {
    ExpectRefused(SumOf(absl::StrCat("T.if_then_else(", condition,
                                     ", A[vh], T.float32(0)) * W[vr]")),
                  kTrace, kIllegal,
                  {"skip_zeros", "block C", "no spatial variable"});
  };
  refuse("vh < 4");
  refuse("vr % 2 == 0");             // no spatial variable
  refuse("(vh + vr) % 3 == 0");      // does not divide the extents
  refuse("(vh + 2 * vr) % 4 == 0");  // none or two remainders fit
  refuse("(vh + vr) % 4 == 0");      // not linear in the remainder
}

TEST(SkipZeros, RefusesLoopsThatAreNotItsOwn) {
  ExpectRefused(Transposed(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
l3, l4 = sch.split(l1, factors=[None, 2])
sch.skip_zeros(b0)
)",
                kIllegal, {"skip_zeros", "not its own"});
  ExpectRefused(Transposed(), R"(b0 = sch.get_block("C")
l1, l2 = sch.get_loops(b0)
sch.parallel(l1)
sch.skip_zeros(b0)
)",
                kIllegal, {"skip_zeros", "serial"});
}

}  // namespace
}  // namespace tilefarm::testing
