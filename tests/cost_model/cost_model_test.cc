#include "cost_model/cost_model.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <limits>
#include <thread>

#include "absl/status/status.h"
#include "base/rng.h"
#include "cost_model/feature_columns.h"
#include "cost_model/model_bytes.h"
#include "gtest/gtest.h"

namespace tilefarm::cost_model {
namespace {

// An invented machine: time falls with two features, up to a cliff in a third.
Sample RandomSample(Rng& rng, int64_t group = 0) {
  Sample sample;
  sample.group = group;
  sample.features.rows = 2;
  sample.features.values.resize(2 * kColumns);
  for (float& value : sample.features.values) {
    if (rng.Chance(0.5)) value = static_cast<float>(rng.Uniform() * 10);
  }
  // A flag distinguishes the two rows, as for an init store.
  sample.features.values[14] = 1;
  sample.features.values[kColumns + 14] = 0;
  const auto& v = sample.features.values;
  double seconds = 1 + std::exp(-0.3 * v[3]) + 0.2 * v[kColumns + 7];
  if (v[20] > 6) seconds *= 2;
  sample.seconds = seconds * 1e-3;
  return sample;
}

std::vector<Sample> RandomSamples(uint64_t seed, int n, int64_t group = 0) {
  Rng rng(seed);
  std::vector<Sample> samples;
  for (int i = 0; i < n; ++i) samples.push_back(RandomSample(rng, group));
  return samples;
}

std::vector<float> PredictAll(const CostModel& model,
                              const std::vector<Sample>& samples) {
  std::vector<const FeatureRows*> features;
  for (const Sample& sample : samples) features.push_back(&sample.features);
  return model.Predict(features);
}

double AccuracyOn(const CostModel& model, const std::vector<Sample>& samples) {
  std::vector<float> truth;
  for (const Sample& s : samples) {
    truth.push_back(static_cast<float>(1 / s.seconds));
  }
  return ComputeRankingMetrics(PredictAll(model, samples), truth, 10)
      .pairwise_accuracy;
}

TEST(XgboostModel, LearnsToRank) {
  const auto model = MakeXgboostModel(1);
  EXPECT_FALSE(model->trained());
  ASSERT_TRUE(model->Update(RandomSamples(11, 400)).ok());
  EXPECT_TRUE(model->trained());
  EXPECT_GT(AccuracyOn(*model, RandomSamples(12, 200)), 0.8);
}

TEST(XgboostModel, LearnsFromScoresAlone) {
  const auto model = MakeXgboostModel(1);
  std::vector<Sample> samples = RandomSamples(11, 400);
  for (Sample& sample : samples) {
    sample.score = static_cast<float>(1e-3 / sample.seconds);
    sample.seconds = 0;
  }
  ASSERT_TRUE(model->Update(samples).ok());
  EXPECT_GT(AccuracyOn(*model, RandomSamples(12, 200)), 0.8);
}

TEST(XgboostModel, ReportsMetricsOfTheModelBefore) {
  const auto model = MakeXgboostModel(1);
  const auto first = model->Update(RandomSamples(11, 300));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->samples, 300);
  EXPECT_EQ(first->pairwise_accuracy, 0.5);
  const auto second = model->Update(RandomSamples(12, 100));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->samples, 100);
  EXPECT_GT(second->pairwise_accuracy, 0.75);
  EXPECT_GT(second->top_k_recall, 0.3);
}

TEST(XgboostModel, GroupsAreComparedWithThemselvesOnly) {
  // The second group is a thousand times slower for the same features.
  const auto model = MakeXgboostModel(1);
  std::vector<Sample> samples = RandomSamples(11, 200, 1);
  for (Sample& s : RandomSamples(13, 200, 2)) {
    s.seconds *= 1000;
    samples.push_back(s);
  }
  ASSERT_TRUE(model->Update(samples).ok());
  EXPECT_GT(AccuracyOn(*model, RandomSamples(12, 200)), 0.8);
}

TEST(XgboostModel, FailuresAreLearnt) {
  // Candidates with this flag fail.
  const auto model = MakeXgboostModel(1);
  std::vector<Sample> samples = RandomSamples(11, 300);
  for (size_t i = 0; i < samples.size(); ++i) {
    const bool fails = i % 3 == 0;
    samples[i].features.values[30] = fails ? 5.0f : 0.0f;
    if (fails) samples[i].seconds = 0;
  }
  ASSERT_TRUE(model->Update(samples).ok());
  Sample good = RandomSamples(12, 1)[0];
  good.features.values[30] = 0;
  Sample bad = good;
  bad.features.values[30] = 5;
  const std::vector<float> scores = PredictAll(*model, {good, bad});
  EXPECT_GT(scores[0], scores[1] + 0.2);
}

TEST(XgboostModel, TheSameEveryTime) {
  const std::vector<Sample> test = RandomSamples(12, 50);
  std::vector<float> first;
  for (int run = 0; run < 2; ++run) {
    const auto model = MakeXgboostModel(7);
    const auto other = MakeXgboostModel(8);
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(model->Update(RandomSamples(20 + i, 64)).ok());
      // Trainings of other models do not matter.
      if (run == 1) {
        ASSERT_TRUE(other->Update(RandomSamples(30 + i, 32)).ok());
      }
    }
    const std::vector<float> scores = PredictAll(*model, test);
    if (run == 0) {
      first = scores;
    } else {
      EXPECT_EQ(scores, first);
    }
  }
}

TEST(XgboostModel, BytesRoundTrip) {
  const auto model = MakeXgboostModel(7);
  ASSERT_TRUE(model->Update(RandomSamples(11, 300)).ok());
  const auto bytes = model->Serialize();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto copy = MakeXgboostModel(7);
  ASSERT_TRUE(copy->Load(*bytes).ok());
  EXPECT_TRUE(copy->trained());
  const std::vector<Sample> test = RandomSamples(12, 50);
  EXPECT_EQ(PredictAll(*copy, test), PredictAll(*model, test));
  EXPECT_EQ(copy->Serialize().value(), *bytes);
  // Earlier knowledge survives a training on few samples.
  ASSERT_TRUE(copy->Update(RandomSamples(14, 8)).ok());
  EXPECT_GT(AccuracyOn(*copy, test), 0.75);
}

// Samples of another kind: they are flagged, and time falls with another
// feature.
std::vector<Sample> OtherSamples(uint64_t seed, int n) {
  std::vector<Sample> samples = RandomSamples(seed, n, /*group=*/2);
  for (Sample& sample : samples) {
    sample.features.values[41] = 9;
    sample.seconds = 1e-3 * (3 - 0.2 * sample.features.values[50]);
  }
  return samples;
}

void NameSamples(std::vector<Sample>& samples) {
  uint64_t id = 1;
  for (Sample& sample : samples) sample.id = id++;
}

TEST(XgboostModel, AMergedModelKnowsWhatEitherKnew) {
  std::vector<Sample> first = RandomSamples(11, 400, /*group=*/1);
  std::vector<Sample> second = OtherSamples(13, 400);
  NameSamples(first);
  NameSamples(second);
  const auto mine = MakeXgboostModel(1), theirs = MakeXgboostModel(2);
  ASSERT_TRUE(mine->Update(first).ok());
  ASSERT_TRUE(theirs->Update(second).ok());
  const std::vector<Sample> unseen = RandomSamples(12, 200);
  const std::vector<Sample> unseen_others = OtherSamples(14, 200);
  ASSERT_LT(AccuracyOn(*mine, unseen_others), 0.65);
  ASSERT_TRUE(mine->Merge(*theirs->Serialize()).ok());
  // Like a model trained on all samples.
  const auto both = MakeXgboostModel(1);
  ASSERT_TRUE(both->Update(first).ok());
  ASSERT_TRUE(both->Update(second).ok());
  EXPECT_NEAR(AccuracyOn(*mine, unseen), AccuracyOn(*both, unseen), 0.05);
  EXPECT_NEAR(AccuracyOn(*mine, unseen_others),
              AccuracyOn(*both, unseen_others), 0.05);
  // Merging again changes nothing.
  const std::string merged = *mine->Serialize();
  ASSERT_TRUE(mine->Merge(merged).ok());
  EXPECT_EQ(*mine->Serialize(), merged);
  // Damaged bytes change nothing.
  EXPECT_EQ(mine->Merge("damaged").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(*mine->Serialize(), merged);
}

TEST(XgboostModel, AnUntrainedModelRoundTrips) {
  const auto bytes = MakeXgboostModel(7)->Serialize();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(MakeXgboostModel(7)->Load(*bytes).ok());
}

TEST(XgboostModel, BadBytesAreDataLossAndChangeNothing) {
  const auto model = MakeXgboostModel(7);
  ASSERT_TRUE(model->Update(RandomSamples(11, 100)).ok());
  const std::vector<Sample> test = RandomSamples(12, 20);
  const std::vector<float> before = PredictAll(*model, test);
  const std::string good = model->Serialize().value();

  const uint64_t seed = 3;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Rng rng(seed);
  std::vector<std::string> bad = {"", "x", "TFCM", std::string(100, '\0'),
                                  MakeRandomModel(1)->Serialize().value()};
  for (int i = 0; i < 50; ++i) {
    std::string damaged = good;
    damaged[rng.Below(damaged.size())] ^= static_cast<char>(1 + rng.Below(255));
    bad.push_back(damaged);
    bad.push_back(good.substr(0, rng.Below(good.size())));
  }
  // A valid checksum over invalid content: all of it is rejected.
  for (int i = 0; i < 200; ++i) {
    std::string body(Unseal("xgboost", good).value());
    for (int n = 0; n < 3; ++n) {
      body[rng.Below(std::min<size_t>(body.size(), 4000))] =
          static_cast<char>(rng.Below(256));
    }
    const auto other = MakeXgboostModel(7);
    const absl::Status status = other->Load(Seal("xgboost", body));
    if (status.ok()) {
      PredictAll(*other, test);
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    }
  }
  for (const std::string& bytes : bad) {
    EXPECT_EQ(model->Load(bytes).code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_EQ(PredictAll(*model, test), before);
}

// Samples with ids and inverted times, as if measured by a faulty machine.
std::vector<Sample> Disturbed(std::vector<Sample> samples) {
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].id = i + 1;
    samples[i].seconds = 1e-5 / samples[i].seconds;
  }
  return samples;
}

TEST(XgboostModel, WhatWasMeasuredAgainTakesTheOldTimesPlace) {
  const std::vector<Sample> truth = RandomSamples(11, 400);
  std::vector<Sample> corrected = Disturbed(truth);
  const auto model = MakeXgboostModel(1), untouched = MakeXgboostModel(1);
  ASSERT_TRUE(model->Update(corrected).ok());
  const std::vector<Sample> unseen = RandomSamples(12, 200);
  EXPECT_LT(AccuracyOn(*model, unseen), 0.4);
  for (size_t i = 0; i < truth.size(); ++i) {
    corrected[i].seconds = truth[i].seconds;
  }
  ASSERT_TRUE(model->Update(corrected).ok());
  ASSERT_TRUE(untouched->Update(corrected).ok());
  // As if the disturbed times had never existed.
  EXPECT_EQ(PredictAll(*model, unseen), PredictAll(*untouched, unseen));
  EXPECT_EQ(*model->Serialize(), *untouched->Serialize());
  // Also after loading its bytes; equal ids of other groups are different.
  const auto small = MakeXgboostModel(1), loaded = MakeXgboostModel(1);
  corrected.resize(100);
  ASSERT_TRUE(small->Update(corrected).ok());
  const std::string bytes = *small->Serialize();
  ASSERT_TRUE(loaded->Load(bytes).ok());
  ASSERT_TRUE(loaded->Update(corrected).ok());
  EXPECT_EQ(*loaded->Serialize(), bytes);
  for (Sample& sample : corrected) sample.group = 1;
  ASSERT_TRUE(loaded->Update(corrected).ok());
  EXPECT_GT(loaded->Serialize()->size(), bytes.size() * 3 / 2);
}

TEST(XgboostModel, WhatIsLessTrustedWeighsLess) {
  const std::vector<Sample> good = RandomSamples(11, 200);
  // The same candidates, measured twice with different results.
  std::vector<Sample> bad = Disturbed(good);
  for (Sample& sample : bad) sample.weight = 0.01f;
  const auto model = MakeXgboostModel(1);
  std::vector<Sample> both = good;
  both.insert(both.end(), bad.begin(), bad.end());
  ASSERT_TRUE(model->Update(both).ok());
  const std::vector<Sample> unseen = RandomSamples(12, 200);
  const double trusting_the_good = AccuracyOn(*model, unseen);
  for (size_t i = 0; i < both.size(); ++i) {
    both[i].weight = i < good.size() ? 0.01f : 1;
  }
  const auto fooled = MakeXgboostModel(1);
  ASSERT_TRUE(fooled->Update(both).ok());
  EXPECT_GT(trusting_the_good, 0.6);
  EXPECT_LT(AccuracyOn(*fooled, unseen), 0.4);
  for (const float weight : {0.0f, -1.0f, 2.0f, std::nanf("")}) {
    both.front().weight = weight;
    EXPECT_EQ(model->Update(both).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(XgboostModel, RowsOfTheWrongSizeAreRefused) {
  const auto model = MakeXgboostModel(7);
  Sample sample = RandomSamples(1, 1)[0];
  sample.features.values.pop_back();
  EXPECT_EQ(model->Update(std::vector{sample}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PredictAll(*model, {sample})[0],
            std::numeric_limits<float>::lowest());
}

TEST(XgboostModel, OddSamplesAreHarmless) {
  const auto model = MakeXgboostModel(7);
  std::vector<Sample> samples = RandomSamples(11, 40);
  samples[0].features.values[0] = std::numeric_limits<float>::infinity();
  samples[1].features.values[0] = std::numeric_limits<float>::quiet_NaN();
  samples[2].seconds = std::numeric_limits<double>::infinity();
  samples[3].seconds = std::numeric_limits<double>::quiet_NaN();
  samples[4].score = std::numeric_limits<float>::quiet_NaN();
  samples[4].seconds = 0;
  samples[5].features = {};
  ASSERT_TRUE(model->Update(samples).ok());
  for (const float score : PredictAll(*model, RandomSamples(12, 20))) {
    EXPECT_TRUE(std::isfinite(score));
  }
  EXPECT_TRUE(model->Update({}).ok());
  EXPECT_TRUE(MakeXgboostModel(1)->Update({}).ok());
}

TEST(XgboostModel, KeepsLearningBeyondItsBound) {
  const auto model = MakeXgboostModel(7);
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(model->Update(RandomSamples(100 + i, 500)).ok());
  }
  EXPECT_GT(AccuracyOn(*model, RandomSamples(12, 200)), 0.85);
}

TEST(XgboostModel, PredictsWhileItTrains) {
  const auto model = MakeXgboostModel(7);
  const std::vector<Sample> test = RandomSamples(12, 50);
  ASSERT_TRUE(model->Update(RandomSamples(11, 64)).ok());
  std::atomic<bool> stop = false;
  std::atomic<int> predictions = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        for (const float score : PredictAll(*model, test)) {
          EXPECT_TRUE(std::isfinite(score));
        }
        ++predictions;
      }
    });
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(model->Update(RandomSamples(30 + i, 32)).ok());
    EXPECT_TRUE(model->Serialize().ok());
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(predictions, 0);
}

TEST(RandomModel, ScoresDependOnSeedAndFeaturesAlone) {
  const auto model = MakeRandomModel(1);
  const std::vector<Sample> test = RandomSamples(12, 50);
  const std::vector<float> scores = PredictAll(*model, test);
  EXPECT_EQ(PredictAll(*model, test), scores);
  EXPECT_EQ(PredictAll(*MakeRandomModel(1), test), scores);
  EXPECT_NE(PredictAll(*MakeRandomModel(2), test), scores);
  EXPECT_FALSE(model->trained());
  const auto metrics = model->Update(RandomSamples(13, 300));
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(metrics->samples, 300);
  EXPECT_TRUE(model->trained());
  EXPECT_EQ(PredictAll(*model, test), scores);
}

TEST(RandomModel, BytesRoundTrip) {
  const auto model = MakeRandomModel(1);
  const auto copy = MakeRandomModel(2);
  ASSERT_TRUE(copy->Load(model->Serialize().value()).ok());
  const std::vector<Sample> test = RandomSamples(12, 20);
  EXPECT_EQ(PredictAll(*copy, test), PredictAll(*model, test));
  EXPECT_EQ(copy->Load("junk").code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tilefarm::cost_model
