#include "server/jobs/contender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tilefarm::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kFingerprint[] = "compiler";
constexpr char kJob[] = "job-1";

database::Record Full(const std::string& id, std::vector<double> seconds) {
  database::Record record;
  record.candidate_id = id;
  record.device = "device";
  record.fingerprint = kFingerprint;
  record.trace = "one\ntwo\n";
  record.verified = true;
  const MedianInterval interval = MedianOf(seconds);
  record.median_seconds = interval.median;
  record.ci_low_seconds = interval.low;
  record.ci_high_seconds = interval.high;
  record.seconds = std::move(seconds);
  return record;
}

database::Record Early(const std::string& id, std::vector<double> seconds) {
  database::Record record = Full(id, std::move(seconds));
  record.stopped_early = true;
  return record;
}

// Six samples at distances up to `spread` below and above the time.
std::vector<double> Around(double seconds, double spread = 0) {
  return {seconds - spread, seconds - spread, seconds,
          seconds,          seconds + spread, seconds + spread};
}

class ContenderTest : public ::testing::Test {
 protected:
  std::vector<std::string> NextRound() {
    std::vector<std::string> ids;
    for (const Contender* one : contenders_.NextRound(kJob)) {
      ids.push_back(one->record.candidate_id);
    }
    return ids;
  }
  void Note(const std::string& id, std::vector<double> seconds,
            const std::string& job = kJob) {
    database::Record measured = Full("", std::move(seconds));
    measured.job_id = job;
    contenders_.NoteMeasurement(id, measured, kFingerprint);
  }
  std::string Winner() {
    const Contender* winner = contenders_.winner();
    return winner == nullptr ? "" : winner->record.candidate_id;
  }

  Contenders contenders_;
};

TEST_F(ContenderTest, NobodyRunsWhereThereIsNobody) {
  EXPECT_THAT(NextRound(), IsEmpty());
  EXPECT_EQ(Winner(), "");
  EXPECT_EQ(contenders_.best_seconds(), 0);
}

TEST_F(ContenderTest, TheCloseOnesRunAndAtLeastThree) {
  contenders_.Add(Full("d", Around(2.0)));
  contenders_.Add(Full("b", Around(1.5)));
  contenders_.Add(Full("a", Around(1.0)));
  contenders_.Add(Full("c", Around(1.8)));
  EXPECT_THAT(NextRound(), ElementsAre("a", "b", "c"));
  Contenders many;
  for (int i = 0; i < 20; ++i) many.Add(Full("x", Around(1 + 1e-3 * i)));
  EXPECT_EQ(many.NextRound(kJob).size(), 8u);
}

TEST_F(ContenderTest, OneThatIsAheadBeyondDoubtRunsOnAlone) {
  contenders_.Add(Full("a", Around(1.0)));
  contenders_.Add(Full("b", Around(1.4)));
  EXPECT_THAT(NextRound(), ElementsAre("a", "b"));
  Note("a", Around(1.0, 0.01));
  Note("b", Around(1.4, 0.01));
  for (int round = 2; round <= 3; ++round) {
    EXPECT_THAT(NextRound(), ElementsAre("a"));
    Note("a", Around(1.0, 0.01));
  }
  EXPECT_THAT(NextRound(), IsEmpty());
  EXPECT_EQ(Winner(), "a");
}

TEST_F(ContenderTest, OneProcessMayBeUnlucky) {
  contenders_.Add(Full("a", Around(1.0)));
  contenders_.Add(Full("b", Around(1.0)));
  EXPECT_THAT(NextRound(), ElementsAre("a", "b"));
  Note("a", Around(1.00, 0.001));
  Note("b", Around(1.08, 0.001));
  EXPECT_THAT(NextRound(), ElementsAre("a", "b"));
  Note("a", Around(1.00, 0.001));
  Note("b", Around(1.08, 0.001));
  // Two measurements are enough.
  EXPECT_THAT(NextRound(), ElementsAre("a"));
}

TEST_F(ContenderTest, ThoseAbreastRunThreeRoundsThatCountTogether) {
  contenders_.Add(Full("a", Around(1.0)));
  contenders_.Add(Full("b", Around(1.01)));
  contenders_.Add(Full("c", Around(1.02)));
  for (int round = 1; round <= 3; ++round) {
    const std::vector<std::string> runners = NextRound();
    EXPECT_EQ(runners.size(), round == 1 ? 3u : 2u) << round;
    for (const std::string& id : runners) {
      // The lucky first time is not repeated.
      if (id == "a") Note("a", Around(1.05, 0.02));
      if (id == "b") Note("b", Around(1.03, 0.02));
      if (id == "c") Note("c", Around(2.00, 0.02));
    }
  }
  EXPECT_THAT(NextRound(), IsEmpty());
  EXPECT_EQ(Winner(), "b");
  EXPECT_EQ(contenders_.winner()->rounds.seconds().size(), 18u);
  EXPECT_DOUBLE_EQ(contenders_.best_seconds(), 1.03);
}

TEST_F(ContenderTest, WhoeverIsFasterThanTheLeaderProvedEnters) {
  for (const auto& [id, seconds] :
       {std::pair("a", 1.0), {"b", 1.2}, {"c", 1.3}, {"d", 1.4}}) {
    contenders_.Add(Full(id, Around(seconds)));
  }
  EXPECT_THAT(NextRound(), ElementsAre("a", "b", "c"));
  for (const char* id : {"a", "b", "c"}) Note(id, Around(5, 0.1));
  EXPECT_EQ(Winner(), "d");
  for (int round = 1; round <= 3; ++round) {
    EXPECT_THAT(NextRound(), ElementsAre("d"));
    Note("d", Around(1.5, 0.01));
  }
  EXPECT_THAT(NextRound(), IsEmpty());
  EXPECT_EQ(Winner(), "d");
}

TEST_F(ContenderTest, AnotherGuestsHourIsNoProof) {
  contenders_.Add(Full("a", Around(1.0)));
  contenders_.Add(Full("b", Around(1.0)));
  EXPECT_THAT(NextRound(), ElementsAre("a", "b"));
  Note("a", Around(1.00, 0.001));
  Note("b", Around(1.25, 0.001));
  EXPECT_THAT(NextRound(), ElementsAre("a", "b"));
}

TEST_F(ContenderTest, OneThatWasStoppedEarlyEntersWhereTheLeaderWasLucky) {
  contenders_.Add(Full("a", Around(1.0)));
  contenders_.Add(Early("b", Around(1.2)));
  contenders_.Add(Early("c", Around(1.6)));
  // Until then it is no rival and cannot win.
  EXPECT_THAT(NextRound(), ElementsAre("a"));
  Note("a", Around(1.5, 0.01));
  EXPECT_THAT(NextRound(), ElementsAre("b", "a"));
  EXPECT_EQ(Winner(), "a");
  Note("a", Around(1.5, 0.01));
  Note("b", Around(1.2, 0.01));
  EXPECT_EQ(Winner(), "b");
  EXPECT_DOUBLE_EQ(contenders_.best_seconds(), 1.2);
}

TEST_F(ContenderTest, OneThatWasStoppedEarlyStaysOutWhereTheLeaderHeldItsTime) {
  contenders_.Add(Full("a", Around(1.0)));
  contenders_.Add(Early("b", Around(1.02)));
  for (int round = 1; round <= 3; ++round) {
    EXPECT_THAT(NextRound(), ElementsAre("a"));
    Note("a", Around(1.0, 0.01));
  }
  EXPECT_THAT(NextRound(), IsEmpty());
}

TEST_F(ContenderTest, ThoseStoppedEarlyAreWhatIsLeftWhenTheFastestFails) {
  contenders_.Add(Full("a", Around(1.0)));
  for (int i = 0; i < 40; ++i) contenders_.Add(Early("x", Around(0.9)));
  // Regardless of their number, the one that can win stays.
  EXPECT_EQ(Winner(), "a");
  contenders_ = {};
  contenders_.Add(Full("a", Around(1.0)));
  contenders_.Add(Early("b", Around(2.0)));
  EXPECT_THAT(NextRound(), ElementsAre("a"));
  database::Record failed = Full("", Around(1.0));
  failed.status = database::Status::kWrongResult;
  contenders_.NoteMeasurement("a", failed, kFingerprint);
  EXPECT_EQ(Winner(), "");
  EXPECT_EQ(contenders_.best_seconds(), 0);
  EXPECT_THAT(NextRound(), ElementsAre("b"));
  Note("b", Around(2.0));
  EXPECT_EQ(Winner(), "b");
}

TEST_F(ContenderTest, AFailureOfTheCodeRulesOut) {
  contenders_.Add(Full("a", Around(1.0)));
  contenders_.Add(Full("b", Around(2.0)));
  database::Record failed = Full("", Around(1.0));
  failed.status = database::Status::kDeviceLost;
  contenders_.NoteMeasurement("a", failed, kFingerprint);
  EXPECT_EQ(Winner(), "a");
  failed.status = database::Status::kWrongResult;
  contenders_.NoteMeasurement("a", failed, kFingerprint);
  EXPECT_EQ(Winner(), "b");
}

TEST_F(ContenderTest, OtherDevicesAndPartialMeasurementsSayNothing) {
  contenders_.Add(Full("a", Around(1.0)));
  database::Record other = Full("", Around(9.0));
  other.device = "another";
  contenders_.NoteMeasurement("a", other, kFingerprint);
  other = Full("", Around(9.0));
  other.stopped_early = true;
  contenders_.NoteMeasurement("a", other, kFingerprint);
  EXPECT_EQ(contenders_.best_seconds(), 1.0);
}

TEST_F(ContenderTest, RoundsOfThisJobBeforeARestartCount) {
  contenders_.Add(Full("a", Around(1.0)));
  contenders_.Add(Full("b", Around(1.01)));
  // Of another job: measured again, with its new rivals.
  Note("b", Around(1.0), "job-0");
  for (int i = 0; i < 3; ++i) Note("a", Around(1.0, 0.1));
  EXPECT_THAT(NextRound(), ElementsAre("b"));
}

}  // namespace
}  // namespace tilefarm::jobs
