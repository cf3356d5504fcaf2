#include "compiler/lower/allocation_regions.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace tilefarm::lower {
namespace {

using Term = Box::Term;

// Of one dimension, from element 0.
Box BoxOf(std::vector<Term> terms, int64_t first = 0) {
  Box box;
  box.first.emplace_back();
  box.first[0].constant = first;
  box.terms.push_back(std::move(terms));
  return box;
}

Term Loop(int64_t scale, int64_t extent) { return {scale, extent}; }
Term Of(int64_t scale, std::string name) { return {scale, 0, std::move(name)}; }

TEST(ContainsTest, EqualTermsAreOfTheSameElements) {
  const Box box = BoxOf({Loop(1, 3), Of(8, "v % 4")});
  EXPECT_TRUE(Contains(box, box));
  EXPECT_FALSE(Contains(box, BoxOf({Loop(1, 3), Of(8, "v % 4")}, 1)));
  EXPECT_FALSE(Contains(box, BoxOf({Loop(1, 3), Of(8, "v // 4")})));
  EXPECT_FALSE(Contains(box, BoxOf({Loop(1, 3)})));
}

TEST(ContainsTest, BesideThemThereIsARangeWithoutGaps) {
  const Box box = BoxOf({Loop(1, 3), Of(8, "v % 4")});
  EXPECT_TRUE(Contains(box, BoxOf({Loop(2, 2), Of(8, "v % 4")})));
  EXPECT_TRUE(Contains(box, BoxOf({Of(8, "v % 4")})));
  EXPECT_FALSE(Contains(box, BoxOf({Loop(2, 3), Of(8, "v % 4")})));
  EXPECT_FALSE(Contains(box, BoxOf({Loop(2, 2), Of(8, "v")})));
  EXPECT_FALSE(Contains(BoxOf({Loop(2, 3)}), BoxOf({Loop(1, 2)})));
  EXPECT_FALSE(Contains(BoxOf({Loop(2, 3)}), BoxOf({Loop(4, 2)})));
}

TEST(ContainsTest, SeveralLoopsMayMakeTheRange) {
  const Box box = BoxOf({Loop(1, 4), Loop(3, 5)});  // 0 to 15
  EXPECT_TRUE(Contains(box, BoxOf({Loop(5, 4)})));
  EXPECT_FALSE(Contains(box, BoxOf({Loop(8, 3)})));
  // 0 to 3 and 8 to 11: only the first part counts.
  const Box gaps = BoxOf({Loop(1, 4), Loop(8, 2)});
  EXPECT_TRUE(Contains(gaps, BoxOf({Loop(3, 2)})));
  EXPECT_FALSE(Contains(gaps, BoxOf({Loop(4, 2)})));
  EXPECT_FALSE(Contains(BoxOf({Loop(-1, 4)}), BoxOf({Loop(1, 2)})));
  EXPECT_FALSE(Contains(BoxOf({Loop(1, 4)}), BoxOf({Loop(-1, 2)})));
}

TEST(ContainsTest, EveryDimensionCounts) {
  Box outer = BoxOf({Loop(1, 4)}), inner = outer;
  outer.first.emplace_back();
  inner.first.emplace_back();
  outer.terms.push_back({Loop(1, 2)});
  inner.terms.push_back({Loop(1, 2)});
  EXPECT_TRUE(Contains(outer, inner));
  inner.terms[1] = {Loop(1, 3)};
  EXPECT_FALSE(Contains(outer, inner));
}

}  // namespace
}  // namespace tilefarm::lower
