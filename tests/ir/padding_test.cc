#include "compiler/ir/padding.h"

#include <gtest/gtest.h>

#include "compiler/ir/printer.h"
#include "compiler/ir/visitor.h"
#include "tests/ir/parse_or_die.h"

namespace tilefarm::ir {
namespace {

// The only store of a block over v and vk, under the condition of its term.
std::string Match(const std::string& value) {
  const PrimFuncPtr function =
      ParseOrDie(WithBuffers("for i, k in T.grid(8, 8):\n"
                             "    with T.block(\"b\"):\n"
                             "        v, vk = T.axis.remap(\"SR\", [i, k])\n"
                             "        C[v] = " +
                             value + "\n"));
  std::string out = "none";
  PreOrder(function->body, [&](const Stmt& stmt) {
    if (const auto* store = As<StoreNode>(stmt)) {
      const auto term = MatchPaddedTerm(*store);
      if (term) {
        out =
            Print(MakeIf(term->inside, MakeStore(store->buffer, store->indices,
                                                 term->value)));
      }
    }
    return true;
  });
  return out;
}

TEST(MatchPaddedTerm, ProductsLoseTheirChoice) {
  EXPECT_EQ(Match("C[v] + T.if_then_else(1 <= vk, A[vk - 1], 0) * B[v]"),
            "if 1 <= vk:\n    C[v] = C[v] + A[vk - 1] * B[v]\n");
  EXPECT_EQ(Match("B[v] * T.if_then_else(1 <= vk, A[vk - 1], 0) + C[v]"),
            "if 1 <= vk:\n    C[v] = B[v] * A[vk - 1] + C[v]\n");
  EXPECT_EQ(Match("C[v] + T.if_then_else(vk < 5, A[vk], 0)"),
            "if vk < 5:\n    C[v] = C[v] + A[vk]\n");
}

TEST(MatchPaddedTerm, BothFactorsMayBePadded) {
  EXPECT_EQ(Match("C[v] + T.if_then_else(vk < 5, A[vk], 0) * "
                  "T.if_then_else(2 <= v, B[v - 2], 0)"),
            "if vk < 5 and 2 <= v:\n    C[v] = C[v] + A[vk] * B[v - 2]\n");
}

TEST(MatchPaddedTerm, WhatIsNotZeroCounts) {
  EXPECT_EQ(Match("C[v] + T.if_then_else(1 <= vk, A[vk - 1], 1) * B[v]"),
            "none");
  // Padding that is a summand instead of a factor is not skipped.
  EXPECT_EQ(Match("C[v] + (T.if_then_else(1 <= vk, A[vk - 1], 0) + B[v])"),
            "none");
}

TEST(MatchPaddedTerm, MaximaAndMinimaOfTheirIdentity) {
  EXPECT_EQ(Match("T.max(C[v], T.if_then_else(1 <= vk, A[vk - 1], "
                  "T.float32(-3.4028234663852886e+38)))"),
            "if 1 <= vk:\n    C[v] = T.max(C[v], A[vk - 1])\n");
  EXPECT_EQ(Match("T.min(T.if_then_else(vk < 5, A[vk] * B[v], "
                  "T.float32(\"inf\")), C[v])"),
            "if vk < 5:\n    C[v] = T.min(A[vk] * B[v], C[v])\n");
  // Not the identity, or not an operand of the maximum.
  EXPECT_EQ(Match("T.max(C[v], T.if_then_else(1 <= vk, A[vk - 1], 0))"),
            "none");
  EXPECT_EQ(Match("T.min(C[v], T.if_then_else(1 <= vk, A[vk - 1], "
                  "T.float32(\"-inf\")))"),
            "none");
  EXPECT_EQ(Match("T.max(C[v], B[v] * T.if_then_else(1 <= vk, A[vk - 1], "
                  "T.float32(\"-inf\")))"),
            "none");
}

TEST(MatchPaddedTerm, OtherStoresAreLeft) {
  EXPECT_EQ(Match("T.if_then_else(1 <= vk, A[vk - 1], 0)"), "none");
  EXPECT_EQ(Match("C[v] * T.if_then_else(1 <= vk, A[vk - 1], 0)"), "none");
  // Not the element that is stored.
  EXPECT_EQ(Match("C[vk] + T.if_then_else(1 <= vk, A[vk - 1], 0)"), "none");
  EXPECT_EQ(Match("C[v] + A[vk]"), "none");
}

// Whether the block of Match, with an init, skips exactly.
bool Exact(const std::string& value, const std::string& init = "T.float32(0)") {
  const PrimFuncPtr function =
      ParseOrDie(WithBuffers("for i, k in T.grid(8, 8):\n"
                             "    with T.block(\"b\"):\n"
                             "        v, vk = T.axis.remap(\"SR\", [i, k])\n"
                             "        with T.init():\n"
                             "            C[v] = " +
                             init + "\n        C[v] = " + value + "\n"));
  bool exact = false;
  PreOrder(function->body, [&](const Stmt& stmt) {
    const auto* block = As<BlockNode>(stmt);
    if (block != nullptr && block->name == "b") exact = SkipsExactly(*block);
    return true;
  });
  return exact;
}

constexpr char kChoice[] = "C[v] + T.if_then_else(1 <= vk, A[vk - 1], 0)";

TEST(SkipsExactly, WhereTheOtherFactorsAreFinite) {
  EXPECT_FALSE(Exact(std::string(kChoice) + " * B[v]"));
  // Alone, times a constant, times what was an integer.
  EXPECT_TRUE(Exact(kChoice));
  EXPECT_TRUE(Exact(std::string(kChoice) + " * T.float32(0.5)"));
  EXPECT_TRUE(Exact(std::string(kChoice) + " * T.cast(I[v], \"float32\")"));
  // Finite factors may have an infinite product.
  EXPECT_FALSE(Exact(std::string(kChoice) +
                     " * (T.float32(3e38) * T.cast(I[v], \"float32\"))"));
  EXPECT_FALSE(Exact(std::string(kChoice) + " * T.float32(\"inf\")"));
  // What a 16-bit float cannot hold.
  EXPECT_FALSE(Exact(std::string(kChoice) +
                     " * T.cast(T.cast(I[v], \"float16\"), \"float32\")"));
}

TEST(SkipsExactly, WhereBothFactorsArePadded) {
  // Outside of one condition the other factor may be anything.
  EXPECT_FALSE(
      Exact(std::string(kChoice) + " * T.if_then_else(2 <= v, B[v - 2], 0)"));
  EXPECT_TRUE(
      Exact("C[v] + T.if_then_else(1 <= vk, T.float32(2), 0) * "
            "T.if_then_else(2 <= v, T.cast(I[v - 2], \"float32\"), "
            "0)"));
}

TEST(SkipsExactly, WhereAnExtremumStartsBeyondThePadding) {
  const std::string lowest = "T.float32(-3.4028234663852886e+38)";
  const std::string value =
      "T.max(C[v], T.if_then_else(1 <= vk, A[vk - 1], " + lowest + "))";
  EXPECT_TRUE(Exact(value, lowest));
  EXPECT_FALSE(Exact(value, "T.float32(\"-inf\")"));
}

TEST(SkipsExactly, WhereNothingIsSkipped) {
  EXPECT_TRUE(Exact("C[v] + A[vk] * B[v]"));
}

}  // namespace
}  // namespace tilefarm::ir
