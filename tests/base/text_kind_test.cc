#include "base/text_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilefarm {
namespace {

TEST(TextKindTest, NumbersAreLeftOut) {
  EXPECT_EQ(WithoutNumbers("A: T.Buffer((128, 7), \"float32\")"),
            "A: T.Buffer((#, #), \"float32\")");
  EXPECT_EQ(WithoutNumbers("A[i + 1]"), WithoutNumbers("A[i + 23]"));
  EXPECT_NE(WithoutNumbers("A[i + 1]"), WithoutNumbers("B[i + 1]"));
  EXPECT_NE(WithoutNumbers("v1 + 1"), WithoutNumbers("v2 + 1"));
  EXPECT_EQ(WithoutNumbers("T.float32(1.5)"), "T.float32(#.#)");
  EXPECT_EQ(WithoutNumbers(""), "");
}

TEST(TextKindTest, NumbersAreInTheirOrder) {
  EXPECT_THAT(NumbersOf("A: T.Buffer((128, 7), \"float32\")"),
              testing::ElementsAre(128, 7));
  EXPECT_THAT(NumbersOf("i"), testing::IsEmpty());
  EXPECT_THAT(NumbersOf("v12 + 0.25 * 3"), testing::ElementsAre(0, 25, 3));
  // Longer than any integer type.
  EXPECT_THAT(NumbersOf("100000000000000000000"), testing::ElementsAre(1e20));
}

}  // namespace
}  // namespace tilefarm
