#include "server/farm/lease_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilefarm::farm {
namespace {

using ::testing::SizeIs;

TEST(LeaseIdTest, ProvesItsTermsAndNoOthers) {
  const LeaseTerms terms{.candidate_id = "c", .attempt = 2, .device_id = "d@1"};
  const std::string id = MakeLeaseId("key", terms);
  EXPECT_THAT(id, SizeIs(32));
  EXPECT_NE(id, MakeLeaseId("key", terms));
  EXPECT_TRUE(ProvesLease("key", id, terms));
  EXPECT_FALSE(ProvesLease("other", id, terms));
  EXPECT_FALSE(ProvesLease("", MakeLeaseId("", terms), terms));
  EXPECT_FALSE(ProvesLease("key", id.substr(1), terms));
  EXPECT_FALSE(ProvesLease("key", "", terms));
  EXPECT_FALSE(ProvesLease(
      "key", id, {.candidate_id = "e", .attempt = 2, .device_id = "d@1"}));
  EXPECT_FALSE(ProvesLease(
      "key", id, {.candidate_id = "c", .attempt = 1, .device_id = "d@1"}));
  EXPECT_FALSE(ProvesLease(
      "key", id, {.candidate_id = "c", .attempt = 2, .device_id = "d@2"}));
}

}  // namespace
}  // namespace tilefarm::farm
