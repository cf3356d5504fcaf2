#include "server/search/individual.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tilefarm::search {
namespace {

ir::Attr Tiling(const std::vector<int64_t>& factors) {
  ir::AttrList list;
  for (const int64_t factor : factors) list.push_back(ir::Attr(factor));
  return ir::Attr(std::move(list));
}

// Two spatial tilings, one reduction tiling, one choice.
space::Candidate Of(int64_t rows, int64_t columns, int64_t reduced,
                    int64_t choice) {
  return {
      0,
      {Tiling({64 / rows, 1, 1, rows}), Tiling({64 / columns, 1, 1, columns}),
       Tiling({64 / reduced, reduced}), ir::Attr(choice)}};
}

TEST(RegisterTileTest, IsTheInnermostFactorsOfSpatialTilings) {
  const uint64_t tile = RegisterTile(Of(4, 16, 8, 0));
  EXPECT_EQ(RegisterTile(Of(4, 16, 2, 1)), tile);
  space::Candidate outside = Of(4, 16, 8, 0);
  outside.decisions[0] = Tiling({1, 16, 1, 4});
  EXPECT_EQ(RegisterTile(outside), tile);

  EXPECT_NE(RegisterTile(Of(8, 16, 8, 0)), tile);
  EXPECT_NE(RegisterTile(Of(16, 4, 8, 0)), tile);
  space::Candidate other_sketch = Of(4, 16, 8, 0);
  other_sketch.sketch = 1;
  EXPECT_NE(RegisterTile(other_sketch), tile);
}

TEST(RegisterTileTest, CandidatesWithoutTilingsHaveOneEach) {
  EXPECT_EQ(RegisterTile({0, {}}), RegisterTile({0, {ir::Attr(int64_t{3})}}));
  EXPECT_NE(RegisterTile({0, {}}), RegisterTile({1, {}}));
}

TEST(StepBetweenTest, IsTheOneDecisionThatDiffers) {
  const space::Candidate parent = Of(4, 16, 8, 0);
  EXPECT_EQ(StepBetween(parent, Of(8, 16, 8, 0)), (Step{0, 8}));
  EXPECT_EQ(StepBetween(parent, Of(4, 16, 2, 0)), (Step{2, 2}));
  EXPECT_EQ(StepBetween(parent, Of(4, 16, 8, 1)), (Step{3, 1}));
  EXPECT_EQ(StepBetween(parent, Of(8, 8, 8, 0)), Step());
  EXPECT_EQ(StepBetween(parent, parent), Step());
}

TEST(RemoveTest, TakesOneOutAndKeepsTheOrder) {
  std::vector<Individual> all(3);
  for (size_t i = 0; i < all.size(); ++i) all[i].seconds = double(i + 1);
  EXPECT_EQ(Remove(all, 1).seconds, 2);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].seconds, 1);
  EXPECT_EQ(all[1].seconds, 3);
}

TEST(FirstWithNewTileTest, IsTheBestOfThoseThatAreNew) {
  std::vector<Individual> ranked(3);
  ranked[0].candidate = Of(4, 16, 8, 0);
  ranked[1].candidate = Of(4, 16, 2, 1);
  ranked[2].candidate = Of(8, 16, 8, 0);
  EXPECT_EQ(FirstWithNewTile(ranked, {}), 0u);
  const uint64_t first = RegisterTile(ranked[0].candidate);
  EXPECT_EQ(FirstWithNewTile(ranked, {first}), 2u);
  const uint64_t last = RegisterTile(ranked[2].candidate);
  EXPECT_EQ(FirstWithNewTile(ranked, {first, last}), 0u) << "the best";
}

TEST(SortByPredictionTest, PutsTheBestFirstAndKeepsTiesInOrder) {
  std::vector<Individual> all(3);
  all[0].predicted = 1;
  all[1].predicted = 2;
  all[2].predicted = 1;
  all[0].seconds = 10;
  all[2].seconds = 20;
  SortByPrediction(all);
  EXPECT_EQ(all[0].predicted, 2);
  EXPECT_EQ(all[1].seconds, 10);
  EXPECT_EQ(all[2].seconds, 20);
}

}  // namespace
}  // namespace tilefarm::search
