#include "base/text_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilefarm {
namespace {

TEST(TextKindTest, NumbersAreLeftOut) {
  EXPECT_EQ(WithoutNumbers("A: T.Buffer((128, 7), \"float32\")"),
            "A: T.Buffer((#, #), \"float#\")");
  EXPECT_EQ(WithoutNumbers("A[i + 1]"), WithoutNumbers("A[i + 23]"));
  EXPECT_NE(WithoutNumbers("A[i + 1]"), WithoutNumbers("B[i + 1]"));
  EXPECT_EQ(WithoutNumbers(""), "");
}

TEST(TextKindTest, NumbersAreInTheirOrder) {
  EXPECT_THAT(NumbersOf("A: T.Buffer((128, 7), \"float32\")"),
              testing::ElementsAre(128, 7, 32));
  EXPECT_THAT(NumbersOf("i"), testing::IsEmpty());
  EXPECT_THAT(NumbersOf("12x3"), testing::ElementsAre(12, 3));
  // Longer than any integer type.
  EXPECT_THAT(NumbersOf("100000000000000000000"), testing::ElementsAre(1e20));
}

}  // namespace
}  // namespace tilefarm
