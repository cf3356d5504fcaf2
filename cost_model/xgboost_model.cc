// Gradient-boosted trees on the rows of each candidate.
//
//   Predict: snapshot (immutable forest) -> sums, no lock while walking
//   Update:  samples -> bounded set -> new forest from scratch -> swap
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/byte_stream.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "cost_model/cost_model.h"
#include "cost_model/feature_columns.h"
#include "cost_model/forest.h"
#include "cost_model/model_bytes.h"
#include "cost_model/sample_set.h"
#include "cost_model/xgboost_trainer.h"

namespace tilefarm::cost_model {
namespace {

constexpr char kXgboostKind[] = "xgboost";

// Bounds of a training: it takes about 0.1 s on one core.
constexpr size_t kMaxSamples = 2048;
constexpr size_t kMaxRows = 8192;
// Samples that a stored model keeps for the next training.
constexpr size_t kMaxStoredSamples = 512;

// With this many samples, deeper trees are grown.
constexpr size_t kManySamples = 512;

// The label is the binary logarithm of best / seconds, because features are
// logarithms, too, and a change that doubles the speed then has the same value
// everywhere. Labels below this bound, and failures, have this value.
constexpr float kWorst = -6;

// The weight of the slowest candidates; the order among fast ones matters most.
constexpr float kLeastWeight = 0.3f;

bool HasRightSize(const FeatureRows& features) {
  return features.rows >= 0 &&
         features.values.size() ==
             static_cast<size_t>(features.rows) * kColumns;
}

class XgboostModel final : public CostModel {
 public:
  explicit XgboostModel(uint64_t seed)
      : seed_(seed), samples_(kMaxSamples, kMaxRows, seed) {}

  std::vector<float> Predict(
      std::span<const FeatureRows* const> candidates) const override {
    std::vector<float> scores(candidates.size());
    std::vector<const FeatureRows*> right;
    right.reserve(candidates.size());
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (HasRightSize(*candidates[i])) {
        right.push_back(candidates[i]);
      } else {
        scores[i] = std::numeric_limits<float>::lowest();
      }
    }
    const std::shared_ptr<const Forest> forest = snapshot();
    if (forest == nullptr) return scores;
    const std::vector<float> sums = forest->PredictAll(right);
    size_t next = 0;
    for (float& score : scores) {
      if (score == 0) score = sums[next++];
    }
    return scores;
  }

  absl::StatusOr<RankingMetrics> Update(
      std::span<const Sample> samples) override {
    for (const Sample& sample : samples) {
      if (!HasRightSize(sample.features) ||
          sample.features.rows > static_cast<int>(kMaxRows)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "a sample has ", sample.features.values.size(), " values in ",
            sample.features.rows, " rows, not ", kColumns, " a row"));
      }
      if (!(sample.weight > 0 && sample.weight <= 1)) {
        return absl::InvalidArgumentError("a sample's weight is not in (0, 1]");
      }
    }
    MutexLock lock(training_mutex_);
    const RankingMetrics metrics = Evaluate(samples);
    for (const Sample& sample : samples) samples_.Add(sample);
    TF_RETURN_IF_ERROR(Retrain());
    return metrics;
  }

  absl::StatusOr<std::string> Serialize() const override {
    MutexLock lock(training_mutex_);
    ByteWriter writer;
    writer.U32(kColumns);
    const std::shared_ptr<const Forest> forest = snapshot();
    (forest != nullptr ? *forest : Forest()).Write(writer);
    samples_.Write(writer, kMaxStoredSamples);
    return Seal(kXgboostKind, writer.bytes());
  }

  absl::Status Load(std::string_view bytes) override {
    TF_ASSIGN_OR_RETURN(Stored stored, Parse(bytes));
    MutexLock lock(training_mutex_);
    samples_.Assign(std::move(stored.samples));
    Swap(std::move(stored.forest));
    return absl::OkStatus();
  }

  absl::Status Merge(std::string_view bytes) override {
    TF_ASSIGN_OR_RETURN(const Stored other, Parse(bytes));
    MutexLock lock(training_mutex_);
    const std::deque<Sample>& mine = samples_.samples();
    const std::deque<Sample>& theirs = other.samples.samples();
    std::set<std::pair<int64_t, uint64_t>> known;
    for (const Sample& sample : mine) known.emplace(sample.group, sample.id);
    // Add alternately, in proportion to their sizes: a full set drops older
    // samples, and neither set is older as a whole.
    SampleSet both(kMaxSamples, kMaxRows, seed_);
    size_t i = 0, j = 0;
    while (i < mine.size() || j < theirs.size()) {
      if (j < theirs.size() && j * mine.size() <= i * theirs.size()) {
        const Sample& sample = theirs[j++];
        if (!known.contains({sample.group, sample.id})) both.Add(sample);
      } else {
        both.Add(mine[i++]);
      }
    }
    samples_.Assign(std::move(both));
    return Retrain();
  }

  bool trained() const override { return snapshot() != nullptr; }

 private:
  struct Stored {
    Forest forest;
    SampleSet samples;
  };

  absl::StatusOr<Stored> Parse(std::string_view bytes) const {
    TF_ASSIGN_OR_RETURN(const std::string_view body,
                        Unseal(kXgboostKind, bytes));
    ByteReader reader(body);
    const uint32_t columns = reader.U32();
    if (columns != kColumns) {
      return absl::DataLossError(
          absl::StrCat("cost model: made for ", columns,
                       " feature columns, this program has ", kColumns));
    }
    TF_ASSIGN_OR_RETURN(Forest forest, Forest::Read(reader, kColumns));
    SampleSet samples(kMaxSamples, kMaxRows, seed_);
    TF_RETURN_IF_ERROR(samples.Read(reader, kColumns));
    if (!reader.Finished()) {
      return absl::DataLossError("cost model: wrong size");
    }
    return Stored{std::move(forest), std::move(samples)};
  }

  // Grows a new forest from the samples, if there are any.
  absl::Status Retrain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(training_mutex_) {
    if (samples_.rows() == 0) return absl::OkStatus();
    TrainingOptions options;
    options.seed = seed_;
    if (samples_.samples().size() >= kManySamples) ++options.max_depth;
    TF_ASSIGN_OR_RETURN(TrainingResult result, Train(MakeSet(), options));
    Swap(std::move(result.forest));
    return absl::OkStatus();
  }

  std::shared_ptr<const Forest> snapshot() const {
    MutexLock lock(snapshot_mutex_);
    return forest_;
  }

  void Swap(Forest forest) {
    auto next = std::make_shared<const Forest>(std::move(forest));
    MutexLock lock(snapshot_mutex_);
    forest_ = std::move(next);
  }

  // The current model on samples it has not seen; groups weigh by their pairs.
  RankingMetrics Evaluate(std::span<const Sample> samples) const {
    std::map<int64_t, std::pair<std::vector<float>, std::vector<float>>> groups;
    const std::shared_ptr<const Forest> forest = snapshot();
    for (const Sample& sample : samples) {
      auto& [predicted, truth] = groups[sample.group];
      predicted.push_back(forest != nullptr ? forest->Predict(sample.features)
                                            : 0.0f);
      truth.push_back(sample.seconds > 0
                          ? static_cast<float>(1 / sample.seconds)
                          : (sample.score > 0 ? sample.score : 0.0f));
    }
    RankingMetrics total;
    double weight = 0;
    for (const auto& [group, both] : groups) {
      const int size = static_cast<int>(both.first.size());
      const RankingMetrics one =
          ComputeRankingMetrics(both.first, both.second, (size + 9) / 10);
      const double pairs = 0.5 * size * (size - 1) + 1e-9;
      total.samples += one.samples;
      total.k += one.k;
      total.pairwise_accuracy += pairs * one.pairwise_accuracy;
      total.top_k_recall += pairs * one.top_k_recall;
      weight += pairs;
    }
    if (weight > 0) {
      total.pairwise_accuracy /= weight;
      total.top_k_recall /= weight;
    }
    return total;
  }

  TrainingSet MakeSet() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(training_mutex_) {
    TrainingSet set;
    set.columns = kColumns;
    const std::vector<float> scores = samples_.Scores();
    float sum = 0;
    size_t i = 0;
    set.values.reserve(samples_.rows() * kColumns);
    for (const Sample& sample : samples_.samples()) {
      const float score = scores[i++];
      const float weight = sample.weight * (kLeastWeight + std::sqrt(score));
      set.values.insert(set.values.end(), sample.features.values.begin(),
                        sample.features.values.end());
      set.rows.push_back(sample.features.rows);
      set.targets.push_back(score > 0 ? std::max(kWorst, std::log2(score))
                                      : kWorst);
      set.weights.push_back(weight);
      sum += weight;
    }
    const float scale = static_cast<float>(set.weights.size()) / sum;
    for (float& weight : set.weights) weight *= scale;
    return set;
  }

  const uint64_t seed_;
  // Held while training; Predict never takes it.
  mutable Mutex training_mutex_;
  SampleSet samples_ ABSL_GUARDED_BY(training_mutex_);
  mutable Mutex snapshot_mutex_;
  std::shared_ptr<const Forest> forest_ ABSL_GUARDED_BY(snapshot_mutex_);
};

}  // namespace

std::unique_ptr<CostModel> MakeXgboostModel(uint64_t seed) {
  return std::make_unique<XgboostModel>(seed);
}

}  // namespace tilefarm::cost_model
