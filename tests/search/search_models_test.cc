// What the search teaches its cost model, and what the model decides.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost_model/feature_columns.h"
#include "server/search/search.h"
#include "tests/search/search_fixture.h"
#include "tests/space/space_test_programs.h"

namespace tilefarm::search {
namespace {

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
      const std::vector<Proposal> proposals = *search->Propose(8);
      for (const Proposal& one : proposals) sum += one.predicted;
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

}  // namespace
}  // namespace tilefarm::search
