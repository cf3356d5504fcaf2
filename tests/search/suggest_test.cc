// What similar tasks suggest.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "server/search/search.h"
#include "tests/search/search_fixture.h"
#include "tests/space/space_test_programs.h"

namespace tilefarm::search {
namespace {

class SuggestTest : public SearchTest {
 protected:
  // Complete traces of another extent.
  std::vector<std::string> Traces(int count, const ir::PrimFuncPtr& program) {
    const auto space = *DesignSpace::Create(program, space::TestTarget());
    Rng rng(9);
    std::vector<std::string> traces;
    while (static_cast<int>(traces.size()) < count) {
      const auto schedule = space->Apply(*space->Sample(rng));
      if (schedule.ok()) traces.push_back(schedule->trace().Print());
    }
    return traces;
  }
  // Positions of the nearest candidates of the trace among the proposals.
  std::vector<size_t> Places(const std::vector<Proposal>& proposals,
                             const std::string& trace) {
    const auto nearest = space_->Nearest(*schedule::Trace::Parse(trace));
    EXPECT_TRUE(nearest.ok()) << nearest.status();
    std::vector<size_t> places;
    for (size_t i = 0; i < proposals.size(); ++i) {
      if (proposals[i].candidate == *nearest) places.push_back(i);
    }
    return places;
  }
};

TEST_F(SuggestTest, SuggestionsComeFirstAndOnlyOnce) {
  const auto search = Make({.seed = 1});
  const auto traces = Traces(3, space::MatmulRelu(128, 64, 32));
  for (size_t i = 0; i < traces.size(); ++i) {
    search->Suggest("other" + std::to_string(i), traces[i]);
  }
  // A quarter of the proposals, so that the search goes on beside them.
  const std::vector<Proposal> first = *search->Propose(8);
  ASSERT_EQ(first.size(), 8u);
  EXPECT_EQ(Places(first, traces[0]), std::vector<size_t>{0});
  EXPECT_EQ(Places(first, traces[1]), std::vector<size_t>{1});
  const std::vector<Proposal> second = *search->Propose(8);
  EXPECT_EQ(Places(second, traces[2]), std::vector<size_t>{0});
  search->Suggest("other0", traces[0]);
  EXPECT_TRUE(Places(*search->Propose(8), traces[0]).empty());
}

TEST_F(SuggestTest, ALaterSuggestionOfTheSameSourceReplacesTheEarlierOne) {
  const auto search = Make({.seed = 1});
  const auto traces = Traces(2, space::MatmulRelu(128, 64, 32));
  search->Suggest("other", traces[0]);
  search->Suggest("other", traces[1]);
  const std::vector<Proposal> proposals = *search->Propose(8);
  EXPECT_TRUE(Places(proposals, traces[0]).empty());
  EXPECT_EQ(Places(proposals, traces[1]), std::vector<size_t>{0});
}

TEST_F(SuggestTest, WhatHasNoCounterpartChangesNothing) {
  const auto plain = Make({.seed = 1});
  const auto search = Make({.seed = 1});
  search->Suggest("text", "no trace");
  search->Suggest("other", Traces(1, space::Norm(2, 96)).front());
  EXPECT_EQ(Run(*search, 24), Run(*plain, 24));
  // A random search stays one.
  const SearchOptions random = {.seed = 1, .strategy = Strategy::kRandom};
  const auto drawn = Make(random);
  const auto again = Make(random);
  again->Suggest("other", Traces(1, space::MatmulRelu(128, 64, 32)).front());
  EXPECT_EQ(Run(*again, 24), Run(*drawn, 24));
}

}  // namespace
}  // namespace tilefarm::search
