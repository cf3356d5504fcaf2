#include "server/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "compiler/ir/structural.h"
#include "cost_model/feature_columns.h"
#include "server/search/individual.h"
#include "server/search/sketch_shares.h"
#include "tests/space/space_test_programs.h"

namespace tilefarm::search {
namespace {

using space::DesignSpace;

// An invented device: tiles near 8 x 32 with a long inner reduction are fast.
double FakeSeconds(const Proposal& proposal) {
  double penalty = 1;
  for (const ir::Attr& decision : proposal.candidate.decisions) {
    const ir::AttrList* factors = decision.AsList();
    if (factors == nullptr || factors->empty()) continue;
    const double inner =
        static_cast<double>(factors->back().AsInt().value_or(1));
    penalty += std::abs(std::log2(inner) - 4);
  }
  return 1e-4 * penalty;
}

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
                            FakeSeconds(proposal)});
      }
      EXPECT_TRUE(search.Report(outcomes).ok());
    }
    return ids;
  }

  std::shared_ptr<const DesignSpace> space_;
};

// Records the samples it is trained on.
class NotingModel : public cost_model::CostModel {
 public:
  std::vector<float> Predict(std::span<const cost_model::FeatureRows* const>
                                 candidates) const override {
    return std::vector<float>(candidates.size());
  }
  absl::StatusOr<cost_model::RankingMetrics> Update(
      std::span<const cost_model::Sample> samples) override {
    taught.insert(taught.end(), samples.begin(), samples.end());
    return cost_model::RankingMetrics();
  }
  absl::StatusOr<std::string> Serialize() const override { return ""; }
  absl::Status Load(std::string_view) override { return absl::OkStatus(); }
  bool trained() const override { return !taught.empty(); }

  std::vector<cost_model::Sample> taught;
};

// Trained before the search starts, on others' results; it likes many
// accumulators, or few.
class OpinionatedModel : public NotingModel {
 public:
  explicit OpinionatedModel(float sign) : sign_(sign) {}
  bool trained() const override { return true; }
  std::vector<float> Predict(std::span<const cost_model::FeatureRows* const>
                                 candidates) const override {
    const std::vector<std::string> names = cost_model::FeatureNames();
    const auto at = static_cast<size_t>(
        std::ranges::find(names, "register.accumulators") - names.begin());
    std::vector<float> scores;
    for (const cost_model::FeatureRows* rows : candidates) {
      float most = 0;
      for (size_t row = 0; row < rows->values.size();
           row += cost_model::kColumns) {
        most = std::max(most, rows->values[row + at]);
      }
      scores.push_back(sign_ * most);
    }
    return scores;
  }

 private:
  const float sign_;
};

TEST_F(SearchTest, AModelOfOtherTasksChoosesSomeOfTheDrafts) {
  auto created =
      DesignSpace::Create(space::MatmulRelu(64, 64, 64), space::TestTarget());
  ASSERT_TRUE(created.ok());
  const std::shared_ptr<const DesignSpace> space = *std::move(created);
  // The mean of the logarithms over the first proposals of some seeds.
  const auto accumulators = [&](float sign) {
    float sum = 0;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const auto search = *Search::Create(
          space, space::TestTarget(), "task",
          std::make_shared<OpinionatedModel>(sign), {.seed = seed}, {});
      for (const Proposal& one : *search->Propose(8)) sum += one.predicted;
    }
    return sign * sum / (8 * 8);
  };
  EXPECT_GT(accumulators(1), accumulators(-1) + 0.5F);
}

TEST_F(SearchTest, ACandidateMeasuredAgainIsLearntAgain) {
  auto created =
      DesignSpace::Create(space::MatmulRelu(64, 64, 64), space::TestTarget());
  ASSERT_TRUE(created.ok());
  const std::shared_ptr<const DesignSpace> space = *std::move(created);
  const auto model = std::make_shared<NotingModel>();
  const auto search =
      *Search::Create(space, space::TestTarget(), "task", model, {}, {});
  const std::vector<Proposal> proposals = *search->Propose(8);
  ASSERT_EQ(proposals.size(), 8u);
  std::vector<Outcome> outcomes;
  for (const Proposal& one : proposals) {
    outcomes.push_back({.candidate_id = one.candidate_id,
                        .seconds = 2e-3,
                        .unsteady = outcomes.size() == 1});
  }
  ASSERT_TRUE(search->Report(outcomes).ok());
  ASSERT_EQ(model->taught.size(), 8u);
  std::set<uint64_t> ids;
  for (const cost_model::Sample& sample : model->taught) {
    EXPECT_NE(sample.id, 0u);
    ids.insert(sample.id);
  }
  EXPECT_EQ(ids.size(), 8u);
  EXPECT_EQ(model->taught[0].weight, 1);
  EXPECT_LT(model->taught[1].weight, 0.5);
  EXPECT_EQ(search->best_seconds(), 2e-3);
  // All of them again, one of which fails this time; an unknown id is ignored.
  for (Outcome& outcome : outcomes) {
    outcome.seconds = 1e-3;
    outcome.unsteady = false;
  }
  outcomes[2].status = database::Status::kWrongResult;
  outcomes.push_back({.candidate_id = "unknown", .seconds = 1e-6});
  ASSERT_TRUE(search->Report(outcomes).ok());
  ASSERT_EQ(model->taught.size(), 16u);
  for (size_t i = 0; i < 8; ++i) {
    const cost_model::Sample& again = model->taught[8 + i];
    EXPECT_EQ(again.id, model->taught[i].id);
    EXPECT_EQ(again.features.values, model->taught[i].features.values);
    EXPECT_EQ(again.weight, 1);
    EXPECT_EQ(again.seconds, i == 2 ? 0 : 1e-3);
  }
  EXPECT_EQ(search->best_seconds(), 1e-3);
  // It was not one of its proposals.
  const std::vector<Proposal> more = *search->Propose(8);
  for (const Proposal& one : more) {
    for (const Proposal& old : proposals) {
      EXPECT_NE(one.candidate_id, old.candidate_id);
    }
  }
}

TEST_F(SearchTest, RecordsOfAnUnsteadyDeviceWeighLess) {
  SearchOptions options;
  const auto first = Make(options);
  const std::vector<Proposal> proposals = *first->Propose(4);
  std::vector<database::Record> known;
  for (const Proposal& one : proposals) {
    database::Record record;
    record.candidate_id = one.candidate_id;
    record.trace = one.trace;
    record.median_seconds = 1e-3;
    record.device_state =
        known.empty() ? R"({"unsteady":true})" : R"({"unsteady":false})";
    known.push_back(std::move(record));
  }
  const auto model = std::make_shared<NotingModel>();
  ASSERT_TRUE(
      Search::Create(space_, space::TestTarget(), "task", model, options, known)
          .ok());
  ASSERT_EQ(model->taught.size(), 4u);
  EXPECT_LT(model->taught[0].weight, 0.5);
  EXPECT_EQ(model->taught[1].weight, 1);
}

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
  for (uint64_t seed = 0; seed < 3; ++seed) {
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
  EXPECT_LE(guided, random);
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
                          FakeSeconds(proposal)});
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
                            FakeSeconds(proposal)});
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
            mine ? 0.6 + std::min(1.0, FakeSeconds(proposal) * 500 - 0.05)
                 : 1 + 10 * FakeSeconds(proposal);
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
    record.median_seconds = FakeSeconds(proposal);
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
                          first ? 1e-6 : FakeSeconds(proposal)});
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

TEST_F(SearchTest, ProposesKernelsOfGpus) {
  const auto target = target::Parse("sim:sm_80");
  ASSERT_TRUE(target.ok()) << target.status();
  for (const ir::PrimFuncPtr& program :
       {space::MatmulRelu(64, 64, 64), space::SmallSoftmax()}) {
    auto created = DesignSpace::Create(program, *target);
    ASSERT_TRUE(created.ok()) << created.status();
    space_ = *std::move(created);
    SearchOptions options;
    options.seed = 5;
    const auto first = space::DefaultSchedule(ir::IRModule{{program}}, *target,
                                              ir::FloatRule::kAsWritten);
    ASSERT_TRUE(first.ok()) << first.status();
    options.first_traces.push_back(first->trace().Print());
    // It is a point of the space, whose neighbours are worth a try.
    EXPECT_TRUE(space_->FromRecord(first->trace()).ok());
    auto search = Search::Create(space_, *target, "task",
                                 cost_model::MakeXgboostModel(1), options, {});
    ASSERT_TRUE(search.ok()) << search.status();
    const std::vector<std::string> ids = Run(**search, 32);
    EXPECT_EQ(ids.size(), 32u);
    EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 32u);
  }
}

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
