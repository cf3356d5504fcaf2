// Which queue is served next.
#include "server/farm/shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace tilefarm::farm {
namespace {

constexpr absl::Duration kAging = absl::Seconds(10);

class SharesTest : public ::testing::Test {
 protected:
  void Open(const std::string& queue, const std::string& user, int priority = 0,
            bool urgent = false) {
    shares_.Open(queue, user, priority, urgent, now_);
    users_[queue] = user;
  }
  void Close(const std::string& queue) {
    shares_.Close(queue);
    users_.erase(queue);
  }
  std::string First() const {
    std::vector<const std::string*> queues;
    for (const auto& [queue, user] : users_) queues.push_back(&queue);
    return *shares_.First(queues, now_);
  }
  // Serves the first queue for this time on one device; returns its name.
  std::string Serve(absl::Duration time) {
    const std::string queue = First();
    const absl::Duration charged = shares_.Grant(queue, now_);
    now_ += time;
    shares_.Settle(users_[queue], queue, charged, time);
    return queue;
  }

  Shares shares_{kAging};
  absl::Duration now_ = absl::Hours(1);
  std::map<std::string, std::string> users_;
};

TEST_F(SharesTest, UsersShareDeviceTimeAndNotJobs) {
  // Ann submits a hundred queues; each candidate of hers takes four times as
  // long.
  for (int i = 0; i < 100; ++i) Open("ann-" + std::to_string(i), "ann");
  Open("bob", "bob");
  std::map<std::string, absl::Duration> time;
  for (int i = 0; i < 1000; ++i) {
    const std::string next = First();
    const absl::Duration lasts =
        absl::Milliseconds(users_[next] == "ann" ? 400 : 100);
    Serve(lasts);
    time[users_[next]] += lasts;
  }
  EXPECT_NEAR(absl::FDivDuration(time["ann"], time["bob"]), 1, 0.05);
}

TEST_F(SharesTest, WhoComesIntoAFloodIsServedAtOnce) {
  for (int i = 0; i < 100; ++i) Open("ann-" + std::to_string(i), "ann");
  for (int i = 0; i < 500; ++i) Serve(absl::Seconds(1));
  Open("bob", "bob");
  EXPECT_TRUE(Serve(absl::Seconds(1)) == "bob" ||
              Serve(absl::Seconds(1)) == "bob");
}

TEST_F(SharesTest, WhoWasAwayHasNoClaimOnThePast) {
  Open("ann", "ann");
  Open("bob", "bob");
  for (int i = 0; i < 10; ++i) Serve(absl::Seconds(1));
  Close("bob");
  for (int i = 0; i < 500; ++i) Serve(absl::Seconds(1));
  Open("bob", "bob");
  int bobs = 0;
  for (int i = 0; i < 20; ++i) bobs += Serve(absl::Seconds(1)) == "bob";
  EXPECT_LE(bobs, 11);
  EXPECT_GE(bobs, 9);
}

TEST_F(SharesTest, JobAfterJobIsNoWayAroundTheShares) {
  Open("bob", "bob");
  std::map<std::string, int> served;
  for (int i = 0; i < 100; ++i) {
    Open("ann-" + std::to_string(i), "ann");
    for (int j = 0; j < 4; ++j) ++served[users_[Serve(absl::Seconds(1))]];
    Close("ann-" + std::to_string(i));
  }
  EXPECT_NEAR(served["ann"], served["bob"], 20);
}

TEST_F(SharesTest, PrioritiesOrderTheQueuesOfAUser) {
  Open("low", "ann", -1);
  Open("high", "ann", 1);
  EXPECT_EQ(Serve(absl::Seconds(1)), "high");
  EXPECT_EQ(Serve(absl::Seconds(1)), "high");
}

TEST_F(SharesTest, ALowPriorityWaitsABoundedTime) {
  Open("low", "ann", kLowestPriority);
  Open("high", "ann", kHighestPriority);
  absl::Duration since = now_;
  int lows = 0;
  for (int i = 0; i < 2000; ++i) {
    if (Serve(absl::Seconds(1)) != "low") continue;
    ++lows;
    EXPECT_LE(now_ - since, (kHighestPriority - kLowestPriority + 1) * kAging +
                                absl::Seconds(2));
    since = now_;
  }
  EXPECT_GE(lows, 9);
}

TEST_F(SharesTest, PriorityIsNoWayAroundTheShares) {
  Open("ann", "ann", kHighestPriority);
  Open("bob", "bob", kLowestPriority);
  std::map<std::string, int> served;
  for (int i = 0; i < 100; ++i) ++served[Serve(absl::Seconds(1))];
  EXPECT_NEAR(served["ann"], served["bob"], 2);
}

TEST_F(SharesTest, UrgentQueuesComeFirstAmongTheUsersOwn) {
  Open("job", "ann", kHighestPriority);
  Open("measure", "ann", 0, /*urgent=*/true);
  Open("bob", "bob");
  std::map<std::string, int> served;
  for (int i = 0; i < 20; ++i) ++served[Serve(absl::Seconds(1))];
  EXPECT_EQ(served["job"], 0);
  EXPECT_NEAR(served["bob"], 10, 1);
}

}  // namespace
}  // namespace tilefarm::farm
