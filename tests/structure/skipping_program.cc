// Input of must_not_skip_test.py: one case that runs and others that skip.
#include <gtest/gtest.h>

namespace tilefarm {
namespace {

TEST(Skipping, Runs) { EXPECT_EQ(1 + 1, 2); }

TEST(Skipping, Skips) { GTEST_SKIP() << "no such machine"; }

TEST(Skipping, DISABLED_Case) {}

class SkippingFixture : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_SKIP() << "nothing here"; }
};

TEST_F(SkippingFixture, Case) { FAIL() << "it was to be skipped"; }

}  // namespace
}  // namespace tilefarm
