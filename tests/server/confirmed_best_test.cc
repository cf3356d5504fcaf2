#include "server/farm/confirmed_best.h"

#include <gtest/gtest.h>

namespace tilefarm::farm {
namespace {

TEST(ConfirmedBestTest, OneTimeAloneIsHeldAgainstNobody) {
  ConfirmedBest best;
  EXPECT_EQ(best.For("v"), 0);
  best.Note("v", 1e-9);
  EXPECT_EQ(best.For("v"), 0);
  EXPECT_EQ(best.For("w"), 0);
}

TEST(ConfirmedBestTest, ASecondCandidateConfirmsADevicesOwnTime) {
  ConfirmedBest best;
  best.Note("v", 1e-3);
  best.Note("v", 3e-3);
  EXPECT_EQ(best.For("v"), 3e-3);
  best.Note("v", 2e-3);
  EXPECT_EQ(best.For("v"), 2e-3);
  EXPECT_EQ(best.For("w"), 0);
}

TEST(ConfirmedBestTest, ALiarIsHeldAgainstItselfAlone) {
  ConfirmedBest best;
  for (int i = 0; i < 10; ++i) best.Note("liar", 1e-9);
  best.Note("a", 2e-3);
  EXPECT_EQ(best.For("a"), 2e-3);
  best.Note("b", 1e-3);
  EXPECT_EQ(best.For("a"), 1e-3);
  EXPECT_EQ(best.For("new"), 1e-3);
  EXPECT_EQ(best.For("liar"), 1e-9);
  best.Note("liar", 1e-10);
  EXPECT_EQ(best.For("b"), 1e-3);
}

}  // namespace
}  // namespace tilefarm::farm
