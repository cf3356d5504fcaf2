#include "compiler/space/sample_site.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "tests/space/space_test_programs.h"

namespace tilefarm::space {
namespace {

std::vector<int64_t> Factors(const ir::Attr& attr) {
  std::vector<int64_t> out;
  for (const ir::Attr& item : *attr.AsList()) out.push_back(*item.AsInt());
  return out;
}

int64_t Product(const std::vector<int64_t>& factors) {
  int64_t product = 1;
  for (int64_t factor : factors) product *= factor;
  return product;
}

SampleSite Tile(SiteKind kind, int64_t extent) {
  SampleSite site;
  site.kind = kind;
  site.extent = extent;
  site.factors = 4;
  site.max_innermost = 64;
  return site;
}

ir::Attr Decision(const std::vector<int64_t>& factors) {
  ir::AttrList list;
  for (const int64_t factor : factors) list.emplace_back(factor);
  return ir::Attr(std::move(list));
}

std::vector<int64_t> Nearest(SiteKind kind, int64_t extent,
                             const std::vector<int64_t>& factors) {
  const auto nearest = NearestDecision(Tile(kind, extent), Decision(factors));
  EXPECT_TRUE(nearest.has_value());
  return Factors(*nearest);
}

TEST(NearestDecisionTest, InnerLevelsStayAndTheOutermostTakesTheRest) {
  using F = std::vector<int64_t>;
  const auto kPerfect = SiteKind::kPerfectTile;
  EXPECT_EQ(Nearest(kPerfect, 512, {4, 2, 4, 16}), (F{4, 2, 4, 16}));
  EXPECT_EQ(Nearest(kPerfect, 1024, {4, 2, 4, 16}), (F{8, 2, 4, 16}));
  EXPECT_EQ(Nearest(kPerfect, 64, {4, 2, 4, 16}), (F{1, 1, 4, 16}));
  EXPECT_EQ(Nearest(kPerfect, 8, {4, 2, 4, 16}), (F{1, 1, 1, 8}));
  // Of the divisors of 27 and 9, 3 is nearest to 4 and to 2.
  EXPECT_EQ(Nearest(kPerfect, 27 * 16, {4, 2, 4, 16}), (F{3, 3, 3, 16}));
  // At most as much as the site permits.
  EXPECT_EQ(Nearest(kPerfect, 256, {1, 1, 1, 128}), (F{4, 1, 1, 64}));
}

TEST(NearestDecisionTest, WidthsWithTailsStayUnlessTheyWasteMuch) {
  using F = std::vector<int64_t>;
  const auto kTail = SiteKind::kTile;
  // 63 rows of 16 for 1,000.
  EXPECT_EQ(Nearest(kTail, 1000, {4, 1, 1, 16}), (F{63, 1, 1, 16}));
  // A second tile of 16 for one element more would double the work.
  EXPECT_EQ(Nearest(kTail, 17, {4, 1, 1, 16}), (F{1, 1, 1, 17}));
  EXPECT_EQ(Nearest(kTail, 5, {4, 1, 1, 16}), (F{1, 1, 1, 5}));
  // What may be drawn here stays, whatever it wastes.
  EXPECT_EQ(Nearest(kTail, 17, {2, 1, 1, 16}), (F{2, 1, 1, 16}));
}

TEST(NearestDecisionTest, AlwaysCoversTheExtent) {
  Rng rng(7);
  for (const auto kind : {SiteKind::kPerfectTile, SiteKind::kTile}) {
    for (int64_t from : {1, 6, 56, 97, 512}) {
      for (int64_t to : {1, 5, 28, 97, 768}) {
        for (int i = 0; i < 50; ++i) {
          const auto drawn = DrawDecision(Tile(kind, from), TestTarget(), rng);
          const auto nearest = NearestDecision(Tile(kind, to), drawn);
          ASSERT_TRUE(nearest.has_value());
          const auto factors = Factors(*nearest);
          EXPECT_LE(factors.back(), 64);
          EXPECT_GE(Product(factors), to);
          EXPECT_LT(Product(factors) - factors.back(), to);
          if (kind == SiteKind::kPerfectTile) {
            EXPECT_EQ(Product(factors), to);
          }
        }
      }
    }
  }
}

TEST(NearestDecisionTest, WhatHasNoCounterpartIsRefused) {
  EXPECT_FALSE(NearestDecision(Tile(SiteKind::kTile, 8), Decision({2, 4})));
  EXPECT_FALSE(NearestDecision(Tile(SiteKind::kTile, 8), ir::Attr(int64_t{1})));
  SampleSite category;
  category.kind = SiteKind::kCategorical;
  category.weights = {0.5, 0.5};
  EXPECT_EQ(NearestDecision(category, ir::Attr(int64_t{1})),
            ir::Attr(int64_t{1}));
  EXPECT_FALSE(NearestDecision(category, ir::Attr(int64_t{2})));
  EXPECT_FALSE(NearestDecision(category, ir::Attr(int64_t{-1})));
  SampleSite location;
  location.kind = SiteKind::kComputeLocation;
  location.locations = {-1, 2};
  EXPECT_EQ(NearestDecision(location, ir::Attr(int64_t{2})),
            ir::Attr(int64_t{2}));
  EXPECT_FALSE(NearestDecision(location, ir::Attr(int64_t{1})));
  category.fixed = ir::Attr(int64_t{0});
  EXPECT_EQ(NearestDecision(category, ir::Attr(int64_t{1})),
            ir::Attr(int64_t{0}));
}

TEST(DrawDecisionTest, PerfectTilesDivideAndTailsCover) {
  Rng rng(1);
  for (int64_t extent : {1, 7, 48, 96, 1000, 1024}) {
    for (int i = 0; i < 200; ++i) {
      const auto perfect = Factors(DrawDecision(
          Tile(SiteKind::kPerfectTile, extent), TestTarget(), rng));
      EXPECT_EQ(Product(perfect), extent);
      EXPECT_LE(perfect.back(), 64);
      const auto tail = Factors(
          DrawDecision(Tile(SiteKind::kTile, extent), TestTarget(), rng));
      EXPECT_GE(Product(tail), extent);
      // Outer iterations are not empty.
      EXPECT_LT(Product(tail) - tail.back(), extent);
    }
  }
}

TEST(DrawDecisionTest, WidthsDivideTheMoreOftenTheMoreOfThemDo) {
  const auto share = [](int64_t extent) {
    Rng rng(1);
    int divide = 0;
    for (int i = 0; i < 1000; ++i) {
      const auto factors = Factors(
          DrawDecision(Tile(SiteKind::kTile, extent), TestTarget(), rng));
      divide += extent % factors.back() == 0;
    }
    return divide;
  };
  EXPECT_LT(share(1009), 100);  // no width but 1
  EXPECT_GT(share(129), 400);   // 43
  EXPECT_LT(share(129), 700);
  EXPECT_GT(share(512), 800);  // 4 to 64
  EXPECT_LT(share(512), 950);
}

TEST(SampleSiteTest, CountsTilings) {
  EXPECT_EQ(Tile(SiteKind::kPerfectTile, 1).Count(), 1);
  EXPECT_EQ(Tile(SiteKind::kPerfectTile, 7).Count(), 4);
  EXPECT_EQ(Tile(SiteKind::kPerfectTile, 12).Count(), 40);
  // Widths 1 to 7 in 7, 4, 3, 2, 2, 2 and 1 parts at three levels.
  EXPECT_EQ(Tile(SiteKind::kTile, 7).Count(), 3 + 6 + 3 + 3 + 3 + 3 + 1);
  SampleSite fixed = Tile(SiteKind::kTile, 96);
  fixed.fixed = ir::Attr(ir::AttrList{96, 1, 1, 1});
  EXPECT_EQ(fixed.Count(), 1);
}

TEST(DrawDecisionTest, VectorAxesPreferWholeVectors) {
  SampleSite site = Tile(SiteKind::kPerfectTile, 1024);
  site.vector_axis = true;
  Rng rng(1);
  int whole = 0;
  for (int i = 0; i < 1000; ++i) {
    whole += Factors(DrawDecision(site, TestTarget(), rng)).back() % 16 == 0;
  }
  EXPECT_GT(whole, 850);
}

TEST(MutateDecisionTest, TilesStayLegalAndMove) {
  Rng rng(1);
  for (const SiteKind kind : {SiteKind::kPerfectTile, SiteKind::kTile}) {
    const SampleSite site = Tile(kind, 96);
    ir::Attr at = DrawDecision(site, TestTarget(), rng);
    int moved = 0;
    for (int i = 0; i < 300; ++i) {
      const auto next = MutateDecision(site, at, TestTarget(), rng);
      if (!next) continue;
      moved += !(*next == at);
      at = *next;
      EXPECT_GE(Product(Factors(at)), 96);
      if (kind == SiteKind::kPerfectTile) {
        EXPECT_EQ(Product(Factors(at)), 96);
      }
      EXPECT_LE(Factors(at).back(), 64);
    }
    EXPECT_GT(moved, 200);
  }
}

TEST(MutateDecisionTest, EveryWidthIsOneStepAway) {
  // Moving factors gets from 2 to 7 only by 1 or 14.
  const SampleSite site = Tile(SiteKind::kPerfectTile, 28);
  const ir::Attr old(ir::AttrList{1, 14, 1, 2});
  Rng rng(1);
  std::map<int64_t, int> widths;
  bool kept = false;
  for (int i = 0; i < 500; ++i) {
    const auto next = MutateDecision(site, old, TestTarget(), rng);
    ASSERT_TRUE(next);
    EXPECT_EQ(Product(Factors(*next)), 28);
    ++widths[Factors(*next).back()];
    kept |= *next == ir::Attr(ir::AttrList{1, 4, 1, 7});
  }
  for (const int64_t width : {1, 2, 4, 7, 14, 28}) {
    EXPECT_GE(widths[width], 10) << width;
  }
  EXPECT_TRUE(kept) << "the levels outside stay what they were";
}

TEST(MutateDecisionTest, OneDecisionHasNoNeighbour) {
  SampleSite site;
  site.kind = SiteKind::kComputeLocation;
  site.locations = {-1};
  Rng rng(1);
  EXPECT_FALSE(MutateDecision(site, ir::Attr(-1), TestTarget(), rng));
  SampleSite fixed = Tile(SiteKind::kPerfectTile, 96);
  fixed.fixed = ir::Attr(ir::AttrList{96, 1, 1, 1});
  EXPECT_FALSE(MutateDecision(fixed, *fixed.fixed, TestTarget(), rng));
}

TEST(SwapLevelsTest, OuterLevelsOfOneBlockChangePlaces) {
  // Two blocks of two spatial loops; the first has a reduction.
  std::vector<SampleSite> sites;
  for (const int group : {0, 0, 0, 1, 1}) {
    sites.push_back(Tile(SiteKind::kPerfectTile, 0));
    sites.back().tile_group = group;
  }
  sites[2].factors = 2;
  const std::vector<ir::Attr> decisions = {
      ir::Attr(ir::AttrList{28, 1, 1, 2}), ir::Attr(ir::AttrList{7, 1, 1, 8}),
      ir::Attr(ir::AttrList{9, 3}), ir::Attr(ir::AttrList{2, 3, 5, 4}),
      ir::Attr(ir::AttrList{1, 1, 1, 16})};
  Rng rng(1);
  bool both = false;
  for (int i = 0; i < 300; ++i) {
    const auto next = SwapLevels(sites, decisions, rng);
    ASSERT_TRUE(next);
    EXPECT_NE(*next, decisions);
    EXPECT_TRUE((*next)[2] == decisions[2]);
    EXPECT_TRUE((*next)[4] == decisions[4]);
    const bool first =
        !((*next)[0] == decisions[0]) || !((*next)[1] == decisions[1]);
    EXPECT_NE(first, !((*next)[3] == decisions[3])) << "one block at a time";
    for (const size_t at : {0, 1, 3}) {
      EXPECT_EQ(Factors((*next)[at]).back(), Factors(decisions[at]).back());
      EXPECT_EQ(Product(Factors((*next)[at])), Product(Factors(decisions[at])));
    }
    both |= (*next)[0] == ir::Attr(ir::AttrList{1, 28, 1, 2}) &&
            (*next)[1] == ir::Attr(ir::AttrList{1, 7, 1, 8});
  }
  EXPECT_TRUE(both) << "two loops in one step";
}

TEST(SwapLevelsTest, NothingToSwap) {
  Rng rng(1);
  SampleSite untiled = Tile(SiteKind::kPerfectTile, 96);
  EXPECT_FALSE(
      SwapLevels({untiled}, {ir::Attr(ir::AttrList{2, 3, 4, 4})}, rng));
  SampleSite alike = untiled;
  alike.tile_group = 0;
  EXPECT_FALSE(SwapLevels({alike}, {ir::Attr(ir::AttrList{1, 1, 1, 96})}, rng));
  SampleSite fixed = alike;
  fixed.fixed = ir::Attr(ir::AttrList{2, 3, 4, 4});
  EXPECT_FALSE(SwapLevels({fixed}, {*fixed.fixed}, rng));
}

TEST(RetileTest, AllSpatialLoopsOfOneBlockAtOnce) {
  std::vector<SampleSite> sites;
  for (const int group : {0, 0, 0, 1}) {
    sites.push_back(Tile(SiteKind::kPerfectTile, 28));
    sites.back().tile_group = group;
    sites.back().register_tile = true;
  }
  sites[2].register_tile = false;  // a reduction
  sites[2].factors = 2;
  const std::vector<ir::Attr> decisions = {
      ir::Attr(ir::AttrList{14, 1, 1, 2}), ir::Attr(ir::AttrList{14, 1, 1, 2}),
      ir::Attr(ir::AttrList{7, 4}), ir::Attr(ir::AttrList{14, 1, 1, 2})};
  Rng rng(1);
  bool both = false, other = false;
  for (int i = 0; i < 300; ++i) {
    const auto next = Retile(sites, decisions, TestTarget(), rng);
    if (!next) continue;  // drew the same
    EXPECT_NE(*next, decisions);
    EXPECT_TRUE((*next)[2] == decisions[2]);
    const bool first =
        !((*next)[0] == decisions[0]) || !((*next)[1] == decisions[1]);
    EXPECT_NE(first, !((*next)[3] == decisions[3])) << "one block at a time";
    for (const size_t at : {0, 1, 3}) {
      EXPECT_EQ(Product(Factors((*next)[at])), 28);
    }
    both |= (*next)[0] == ir::Attr(ir::AttrList{28, 1, 1, 1}) &&
            (*next)[1] == ir::Attr(ir::AttrList{2, 1, 1, 14});
    other |= !first;
  }
  EXPECT_TRUE(both) << "two loops in one step";
  EXPECT_TRUE(other);
}

TEST(RetileTest, DecisionsOfAnotherShapeAreDrawn) {
  // As a record of other rules may contain.
  SampleSite site = Tile(SiteKind::kPerfectTile, 28);
  site.register_tile = true;
  site.tile_group = 0;
  Rng rng(1);
  for (const ir::Attr& odd :
       {ir::Attr(), ir::Attr(ir::AttrList{}), ir::Attr(ir::AttrList{28})}) {
    const auto next = Retile({site}, {odd}, TestTarget(), rng);
    ASSERT_TRUE(next);
    EXPECT_EQ(Product(Factors((*next)[0])), 28);
  }
}

TEST(RetileTest, NothingToTileAnew) {
  Rng rng(1);
  SampleSite plain = Tile(SiteKind::kPerfectTile, 96);
  EXPECT_FALSE(
      Retile({plain}, {ir::Attr(ir::AttrList{2, 3, 4, 4})}, TestTarget(), rng));
  plain.register_tile = true;
  plain.tile_group = 0;
  plain.fixed = ir::Attr(ir::AttrList{2, 3, 4, 4});
  EXPECT_FALSE(Retile({plain}, {*plain.fixed}, TestTarget(), rng));
}

TEST(SampleSiteTest, CountsOrderedFactorisations) {
  // 2^2 over four levels: C(5, 2).
  EXPECT_EQ(Tile(SiteKind::kPerfectTile, 4).Count(), 10);
  EXPECT_EQ(Tile(SiteKind::kPerfectTile, 1).Count(), 1);
  // 2 * 3: four levels each.
  EXPECT_EQ(Tile(SiteKind::kPerfectTile, 6).Count(), 16);
}

TEST(FitsRegistersTest, AccumulatorsAndOperandsMustFit) {
  SampleSite rows = Tile(SiteKind::kPerfectTile, 96);
  SampleSite columns = Tile(SiteKind::kPerfectTile, 96);
  rows.register_tile = columns.register_tile = true;
  rows.tile_group = columns.tile_group = 0;
  columns.vector_axis = true;
  const auto fits = [&](int64_t r, int64_t c) {
    return FitsRegisters({rows, columns},
                         {ir::Attr(ir::AttrList{1, 1, 1, r}),
                          ir::Attr(ir::AttrList{1, 1, 1, c})},
                         TestTarget());
  };
  EXPECT_TRUE(fits(6, 64));    // 24 + 4
  EXPECT_TRUE(fits(8, 48));    // 24 + 3
  EXPECT_TRUE(fits(7, 64));    // 28 + 4
  EXPECT_FALSE(fits(8, 64));   // 32 + 4
  EXPECT_FALSE(fits(32, 16));  // 32 + 1
}

TEST(FindSitesTest, ReadsExtentsOffTheProgram) {
  auto trace = schedule::Trace::Parse(R"(
b0 = sch.get_block("C")
l1, l2, l3 = sch.get_loops(b0)
v4, v5 = sch.sample_perfect_tile(l2, n=2, max_innermost_factor=16, decision=[4, 2])
v6 = sch.sample_categorical(candidates=[0, 16], probs=[0.25, 0.75], decision=1)
)");
  ASSERT_TRUE(trace.ok()) << trace.status();
  auto sites = FindSites(*trace, ir::IRModule{{Matmul(4, 8, 16)}});
  ASSERT_TRUE(sites.ok()) << sites.status();
  ASSERT_EQ(sites->size(), 2u);
  EXPECT_EQ((*sites)[0].kind, SiteKind::kPerfectTile);
  EXPECT_EQ((*sites)[0].extent, 8);
  EXPECT_EQ((*sites)[0].max_innermost, 16);
  EXPECT_EQ((*sites)[1].weights, (std::vector<double>{0.25, 0.75}));
}

}  // namespace
}  // namespace tilefarm::space
