#include "server/search/step_shares.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace tilefarm::search {
namespace {

Individual Neighbour(int sketch, Step step) {
  Individual one;
  one.candidate.sketch = sketch;
  one.step = step;
  return one;
}

TEST(StepSharesTest, TheModelChoosesBetweenStepsAlike) {
  const StepShares shares;
  EXPECT_EQ(shares.Next(std::vector{Neighbour(0, {1, 4})}), 0u);
  EXPECT_EQ(
      shares.Next(std::vector{Neighbour(0, {1, 4}), Neighbour(0, {2, 4})}), 0u);
}

TEST(StepSharesTest, EveryDecisionHasItsTurnAndInItEverythingItMayBecome) {
  // The model ranks the first best and would always choose it.
  const std::vector<Individual> ranked = {
      Neighbour(0, {0, 2}), Neighbour(0, {0, 4}), Neighbour(0, {1, 1}),
      Neighbour(0, {1, 2}), Neighbour(0, {1, 3}), Neighbour(0, {})};
  StepShares shares;
  std::map<int, int> by_decision;
  std::map<Step, int> by_step;
  for (int i = 0; i < 18; ++i) {
    const Individual& next = ranked[shares.Next(ranked)];
    shares.Proposed(next);
    ++by_decision[next.step.decision];
    ++by_step[next.step];
  }
  EXPECT_EQ(by_decision, (std::map<int, int>{{-1, 6}, {0, 6}, {1, 6}}));
  EXPECT_EQ((by_step[{0, 2}]), 3);
  EXPECT_EQ((by_step[{0, 4}]), 3);
  EXPECT_EQ((by_step[{1, 1}]), 2);
  EXPECT_EQ((by_step[{1, 3}]), 2);
}

TEST(StepSharesTest, SketchesHaveTurnsOfTheirOwn) {
  StepShares shares;
  shares.Proposed(Neighbour(0, {0, 2}));
  EXPECT_EQ(
      shares.Next(std::vector{Neighbour(0, {0, 4}), Neighbour(1, {0, 2})}), 1u);
}

}  // namespace
}  // namespace tilefarm::search
