#include "compiler/ir/padding.h"

#include <gtest/gtest.h>

#include "compiler/ir/printer.h"
#include "compiler/ir/visitor.h"
#include "tests/ir/parse_or_die.h"

namespace tilefarm::ir {
namespace {

// The one store of a block over v and vk, under the condition of its term.
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
  // Padding that is added to is no zero.
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
  // Not the identity, or not what is compared.
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
  // Not its own element.
  EXPECT_EQ(Match("C[vk] + T.if_then_else(1 <= vk, A[vk - 1], 0)"), "none");
  EXPECT_EQ(Match("C[v] + A[vk]"), "none");
}

}  // namespace
}  // namespace tilefarm::ir
