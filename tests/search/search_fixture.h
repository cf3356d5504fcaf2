// What tests of the search share.
#ifndef TILEFARM_TESTS_SEARCH_SEARCH_FIXTURE_H_
#define TILEFARM_TESTS_SEARCH_SEARCH_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/search/search.h"
#include "tests/search/fake_seconds.h"
#include "tests/space/space_test_programs.h"

namespace tilefarm::search {

using space::DesignSpace;

class SearchTest : public testing::Test {
 protected:
  std::unique_ptr<Search> Make(SearchOptions options,
                               std::span<const database::Record> known = {},
                               ir::PrimFuncPtr program = nullptr) {
    if (program == nullptr) program = space::MatmulRelu(64, 64, 64);
    auto created = DesignSpace::Create(program, space::TestTarget());
    EXPECT_TRUE(created.ok()) << created.status();
    space_ = *std::move(created);
    auto search =
        Search::Create(space_, space::TestTarget(), "task",
                       cost_model::MakeXgboostModel(1), options, known);
    EXPECT_TRUE(search.ok()) << search.status();
    return *std::move(search);
  }

  // Proposes and reports `trials` in batches; returns the ids in order.
  std::vector<std::string> Run(Search& search, int trials, int batch = 8) {
    std::vector<std::string> ids;
    while (static_cast<int>(ids.size()) < trials) {
      auto proposals = search.Propose(batch);
      EXPECT_TRUE(proposals.ok()) << proposals.status();
      if (!proposals.ok() || proposals->empty()) break;
      std::vector<Outcome> outcomes;
      for (const Proposal& proposal : *proposals) {
        ids.push_back(proposal.candidate_id);
        outcomes.push_back({proposal.candidate_id, database::Status::kOk,
                            FakeSeconds(proposal.candidate)});
      }
      EXPECT_TRUE(search.Report(outcomes).ok());
    }
    return ids;
  }

  std::shared_ptr<const DesignSpace> space_;
};

}  // namespace tilefarm::search

#endif  // TILEFARM_TESTS_SEARCH_SEARCH_FIXTURE_H_
