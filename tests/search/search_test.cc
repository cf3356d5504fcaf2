#include "server/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "compiler/ir/structural.h"
#include "server/search/individual.h"
#include "server/search/sketch_shares.h"
#include "tests/search/fake_seconds.h"
#include "tests/search/search_fixture.h"
#include "tests/space/space_test_programs.h"

namespace tilefarm::search {
namespace {

TEST_F(SearchTest, NeverProposesACandidateTwice) {
  SearchOptions options;
  options.seed = 1;
  const auto search = Make(options);
  const std::vector<std::string> ids = Run(*search, 160);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
  EXPECT_TRUE(search->last_metrics().has_value());
}

TEST_F(SearchTest, IsAFunctionOfSeedAndReports) {
  SearchOptions options;
  options.seed = 4;
  const auto a = Make(options);
  const auto first = Run(*a, 96);
  const auto b = Make(options);
  EXPECT_EQ(Run(*b, 96), first);
  options.seed = 5;
  const auto c = Make(options);
  EXPECT_NE(Run(*c, 96), first);
}

TEST_F(SearchTest, GuidedFindsBetterThanRandomOnAverage) {
  double guided = 0, random = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SearchOptions options;
    options.seed = seed;
    const auto a = Make(options);
    Run(*a, 96);
    guided += a->best_seconds();
    options.strategy = Strategy::kRandom;
    const auto b = Make(options);
    Run(*b, 96);
    random += b->best_seconds();
  }
  EXPECT_LT(guided, random);
}

// The number of decisions in which two candidates differ; all of them if their
// sketches differ.
size_t Distance(const space::Candidate& a, const space::Candidate& b) {
  if (a.sketch != b.sketch || a.decisions.size() != b.decisions.size()) {
    return std::max(a.decisions.size(), b.decisions.size());
  }
  size_t distance = 0;
  for (size_t i = 0; i < a.decisions.size(); ++i) {
    distance += a.decisions[i] == b.decisions[i] ? 0 : 1;
  }
  return distance;
}

// The fastest candidates with each of the four fastest register tiles.
std::vector<space::Candidate> FastestByTile(
    std::vector<std::pair<double, space::Candidate>> measured) {
  std::stable_sort(
      measured.begin(), measured.end(),
      [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<space::Candidate> fastest;
  std::set<uint64_t> tiles;
  for (const auto& [seconds, candidate] : measured) {
    if (fastest.size() == 4) break;
    if (tiles.insert(RegisterTile(candidate)).second) {
      fastest.push_back(candidate);
    }
  }
  return fastest;
}

TEST_F(SearchTest, AQuarterOfTheProposalsAreNextToTheFastest) {
  SearchOptions options;
  options.seed = 3;
  // A population too small to keep candidates that the model predicted to be
  // slow.
  options.population = 4;
  const auto search = Make(options);
  std::vector<std::pair<double, space::Candidate>> measured;
  std::map<std::pair<int, int>, int> steps;  // by sketch and decision
  int all_near = 0, guided_batches = 0;
  for (int batch = 0; batch < 20; ++batch) {
    const auto proposals = search->Propose(8);
    ASSERT_TRUE(proposals.ok()) << proposals.status();
    const std::vector<space::Candidate> fastest = FastestByTile(measured);
    int near = 0;
    std::vector<Outcome> outcomes;
    for (const Proposal& proposal : *proposals) {
      for (const space::Candidate& parent : fastest) {
        if (Distance(parent, proposal.candidate) != 1) continue;
        ++near;
        ++steps[{parent.sketch,
                 StepBetween(parent, proposal.candidate).decision}];
        break;
      }
      outcomes.push_back({proposal.candidate_id, database::Status::kOk,
                          FakeSeconds(proposal.candidate)});
    }
    if (batch >= options.initial_random / 8) {
      all_near += near;
      ++guided_batches;
    }
    for (size_t i = 0; i < proposals->size(); ++i) {
      measured.emplace_back(outcomes[i].seconds, (*proposals)[i].candidate);
    }
    ASSERT_TRUE(search->Report(outcomes).ok());
  }
  // A mutation may change a second decision with the first, so this does not
  // hold in each batch.
  EXPECT_GE(all_near, 2 * guided_batches);
  // Each of its decisions was changed in some trial, whatever the model
  // predicts.
  const space::Candidate best = FastestByTile(measured).front();
  for (size_t i = 0; i < best.decisions.size(); ++i) {
    const auto at = std::make_pair(best.sketch, static_cast<int>(i));
    EXPECT_GE(steps[at], 1) << "decision " << i;
  }
}

TEST_F(SearchTest, EverySketchIsTriedEarly) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    SearchOptions options;
    options.seed = seed;
    const auto search = Make(options);
    std::vector<int> trials(space_->sketches().size());
    ASSERT_GT(trials.size(), 1u);
    ASSERT_LE(trials.size(), 8u);
    while (std::accumulate(trials.begin(), trials.end(), 0) <
           options.initial_random) {
      const auto proposals = search->Propose(8);
      ASSERT_TRUE(proposals.ok()) << proposals.status();
      std::vector<Outcome> outcomes;
      for (const Proposal& proposal : *proposals) {
        ++trials[static_cast<size_t>(proposal.candidate.sketch)];
        outcomes.push_back({proposal.candidate_id, database::Status::kOk,
                            FakeSeconds(proposal.candidate)});
      }
      ASSERT_TRUE(search->Report(outcomes).ok());
    }
    for (const int count : trials) EXPECT_GE(count, SketchShares::kMinTrials);
  }
}

// A device on which one sketch is the fastest, but only with tiles that its
// first trials do not have; the other sketches are equal from the start.
TEST_F(SearchTest, ASketchThatStartsBadlyIsNotGivenUp) {
  int found = 0;
  constexpr int kSeeds = 6;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SearchOptions options;
    options.seed = seed;
    const auto search = Make(options);
    const int last = static_cast<int>(space_->sketches().size()) - 1;
    int trials = 0;
    for (int batch = 0; batch < 16; ++batch) {
      const auto proposals = search->Propose(8);
      ASSERT_TRUE(proposals.ok()) << proposals.status();
      std::vector<Outcome> outcomes;
      for (const Proposal& proposal : *proposals) {
        const bool mine = proposal.candidate.sketch == last;
        trials += mine;
        // From 1.6 down to 0.6 as the tiles get closer; otherwise 1.
        const double seconds =
            mine ? 0.6 + std::min(1.0,
                                  FakeSeconds(proposal.candidate) * 500 - 0.05)
                 : 1 + 10 * FakeSeconds(proposal.candidate);
        outcomes.push_back(
            {proposal.candidate_id, database::Status::kOk, seconds});
      }
      ASSERT_TRUE(search->Report(outcomes).ok());
    }
    found += search->best_seconds() < 0.95;
    EXPECT_GE(trials, 6) << "seed " << seed;
  }
  EXPECT_GE(found, kSeeds / 2);
}

TEST_F(SearchTest, KnownRecordsAreNotProposedAgain) {
  SearchOptions options;
  const auto first = Make(options);
  auto proposals = first->Propose(40);
  ASSERT_TRUE(proposals.ok());
  std::vector<database::Record> known;
  for (const Proposal& proposal : *proposals) {
    database::Record record;
    record.candidate_id = proposal.candidate_id;
    record.trace = proposal.trace;
    record.median_seconds = FakeSeconds(proposal.candidate);
    known.push_back(std::move(record));
  }
  const auto second = Make(options, known);
  EXPECT_GT(second->best_seconds(), 0);
  std::set<std::string> old;
  for (const Proposal& proposal : *proposals) old.insert(proposal.candidate_id);
  for (const std::string& id : Run(*second, 64)) EXPECT_FALSE(old.contains(id));
}

TEST_F(SearchTest, TheFirstTraceIsProposedFirstAndOnce) {
  const ir::PrimFuncPtr program = space::MatmulRelu(64, 64, 64);
  const auto schedule = space::DefaultSchedule(
      ir::IRModule{{program}}, space::TestTarget(), ir::FloatRule::kMayDiffer);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  SearchOptions options;
  options.first_traces = {schedule->trace().Print()};
  const auto search = Make(options);
  const auto proposals = search->Propose(4);
  ASSERT_TRUE(proposals.ok()) << proposals.status();
  ASSERT_EQ(proposals->size(), 4u);
  const Proposal& first = proposals->front();
  EXPECT_EQ(first.trace, options.first_traces[0]);
  EXPECT_EQ(first.scheduled_hash,
            ir::ProgramHash(*schedule->module().functions.front()));
  // Its time counts, although it may be outside of the space.
  ASSERT_TRUE(
      search->Report({{{first.candidate_id, database::Status::kOk, 1e-9}}})
          .ok());
  EXPECT_EQ(search->best_seconds(), 1e-9);
  const std::vector<std::string> ids = Run(*search, 96);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), first.candidate_id), 0);

  database::Record record;
  record.candidate_id = first.candidate_id;
  record.trace = first.trace;
  record.median_seconds = 1e-3;
  const auto again = Make(options, {{record}});
  EXPECT_NE((*again->Propose(1))[0].candidate_id, first.candidate_id);
}

TEST_F(SearchTest, AFirstTraceOfTheSpaceBreeds) {
  Make({});  // space_
  Rng rng(5);
  const auto start = space_->Sample(rng);
  ASSERT_TRUE(start.ok()) << start.status();
  const auto schedule = space_->Apply(*start);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  SearchOptions options;
  options.first_traces = {schedule->trace().Print()};
  const auto search = Make(options);
  int near = 0;
  for (int batch = 0; batch < 8; ++batch) {
    const auto proposals = search->Propose(8);
    ASSERT_TRUE(proposals.ok()) << proposals.status();
    std::vector<Outcome> outcomes;
    for (const Proposal& proposal : *proposals) {
      const bool first = batch == 0 && outcomes.empty();
      if (first) {
        EXPECT_EQ(proposal.candidate, *start);
      }
      near += !first && Distance(proposal.candidate, *start) <= 1;
      // By far the fastest, so the proposals are its neighbours.
      outcomes.push_back({proposal.candidate_id, database::Status::kOk,
                          first ? 1e-6 : FakeSeconds(proposal.candidate)});
    }
    ASSERT_TRUE(search->Report(outcomes).ok());
  }
  EXPECT_GE(near, 4);
}

TEST_F(SearchTest, AFirstTraceThatDoesNotApplyIsAnError) {
  SearchOptions options;
  options.first_traces = {"b0 = sch.get_block(\"nowhere\")\n"};
  EXPECT_FALSE(Make(options)->Propose(1).ok());
}

TEST_F(SearchTest, ASmallSpaceIsExhaustedNotRepeated) {
  SearchOptions options;
  const auto search = Make(options, {}, space::Norm(1, 16));
  const std::vector<std::string> ids = Run(*search, 100000, 16);
  EXPECT_GT(ids.size(), 3u);
  EXPECT_LT(ids.size(), 1000u);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
  auto more = search->Propose(8);
  ASSERT_TRUE(more.ok());
  EXPECT_TRUE(more->empty());
}

TEST_F(SearchTest, FailuresAndUnknownOutcomesAreTaken) {
  SearchOptions options;
  const auto search = Make(options);
  auto proposals = search->Propose(4);
  ASSERT_TRUE(proposals.ok());
  const std::vector<Outcome> outcomes = {
      {(*proposals)[0].candidate_id, database::Status::kCompileError, 0},
      {(*proposals)[1].candidate_id, database::Status::kDeviceLost, 0},
      {"nobody proposed this", database::Status::kOk, 1}};
  EXPECT_TRUE(search->Report(outcomes).ok());
  EXPECT_EQ(search->best_seconds(), 0);
}

TEST(IdTest, DependOnEveryPart) {
  EXPECT_EQ(CandidateId("t", "s", "f"), CandidateId("t", "s", "f"));
  EXPECT_NE(CandidateId("t", "s", "f"), CandidateId("t", "s", "g"));
  EXPECT_NE(CandidateId("t", "s", "f"), CandidateId("u", "s", "f"));
  EXPECT_NE(TaskId("w", "t"), TaskId("w", "u"));
}

// Options with the default schedule as the first trace.
SearchOptions FromDefault(const ir::PrimFuncPtr& program,
                          const target::Target& target) {
  SearchOptions options;
  options.seed = 5;
  const auto first = space::DefaultSchedule(ir::IRModule{{program}}, target,
                                            ir::FloatRule::kAsWritten);
  EXPECT_TRUE(first.ok()) << first.status();
  if (first.ok()) options.first_traces.push_back(first->trace().Print());
  return options;
}

// The default schedule is proposed nevertheless.
TEST_F(SearchTest, ASpaceWithoutALegalPointIsAnErrorThatNamesTheLimit) {
  auto target = target::Parse("sim:sm_80");
  ASSERT_TRUE(target.ok()) << target.status();
  const ir::PrimFuncPtr program = space::Matmul(64, 64, 64);
  const SearchOptions options = FromDefault(program, *target);
  target->gpu->block_shared = 64;
  auto created = DesignSpace::Create(program, *target);
  ASSERT_TRUE(created.ok()) << created.status();
  space_ = *std::move(created);
  auto search = Search::Create(space_, *target, "task",
                               cost_model::MakeXgboostModel(1), options, {});
  ASSERT_TRUE(search.ok()) << search.status();
  const auto proposals = (*search)->Propose(4);
  ASSERT_TRUE(proposals.ok()) << proposals.status();
  EXPECT_EQ(proposals->size(), 1u);
  const auto none = (*search)->Propose(4);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(
      none.status().message().find("bytes of shared memory, the target has 64"),
      std::string::npos)
      << none.status();
}

TEST_F(SearchTest, ProposesKernelsOfGpus) {
  const auto target = target::Parse("sim:sm_80");
  ASSERT_TRUE(target.ok()) << target.status();
  for (const ir::PrimFuncPtr& program :
       {space::MatmulRelu(64, 64, 64), space::SmallSoftmax()}) {
    auto created = DesignSpace::Create(program, *target);
    ASSERT_TRUE(created.ok()) << created.status();
    space_ = *std::move(created);
    const SearchOptions options = FromDefault(program, *target);
    ASSERT_EQ(options.first_traces.size(), 1u);
    // It is a point of the space, whose neighbours are worth a try.
    const auto first = schedule::Trace::Parse(options.first_traces[0]);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_TRUE(space_->FromRecord(*first).ok());
    auto search = Search::Create(space_, *target, "task",
                                 cost_model::MakeXgboostModel(1), options, {});
    ASSERT_TRUE(search.ok()) << search.status();
    const std::vector<std::string> ids = Run(**search, 32);
    EXPECT_EQ(ids.size(), 32u);
    EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 32u);
  }
}

}  // namespace
}  // namespace tilefarm::search
