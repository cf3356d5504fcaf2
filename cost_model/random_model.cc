#include <atomic>
#include <cstring>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "base/byte_stream.h"
#include "base/hash.h"
#include "base/split_mix.h"
#include "cost_model/cost_model.h"
#include "cost_model/model_bytes.h"

namespace tilefarm::cost_model {
namespace {

constexpr char kRandomKind[] = "random";

class RandomModel final : public CostModel {
 public:
  explicit RandomModel(uint64_t seed) : seed_(seed) {}

  std::vector<float> Predict(
      std::span<const FeatureRows* const> candidates) const override {
    const uint64_t seed = seed_;
    std::vector<float> scores;
    scores.reserve(candidates.size());
    for (const FeatureRows* candidate : candidates) {
      uint64_t state = MixBits(seed + kSplitMixStep);
      for (const float value : candidate->values) {
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof(bits));
        state = MixBits(state ^ bits);
      }
      // A float has 24 bits of precision.
      scores.push_back(static_cast<float>(state >> 40) / 16777216.0f);
    }
    return scores;
  }

  absl::StatusOr<RankingMetrics> Update(
      std::span<const Sample> samples) override {
    std::vector<const FeatureRows*> features;
    std::vector<float> truth;
    for (const Sample& sample : samples) {
      features.push_back(&sample.features);
      truth.push_back(sample.score);
    }
    const std::vector<float> predicted = Predict(features);
    trained_ = true;
    return ComputeRankingMetrics(predicted, truth,
                                 static_cast<int>(samples.size() + 9) / 10);
  }

  absl::StatusOr<std::string> Serialize() const override {
    ByteWriter writer;
    writer.U64(seed_);
    return Seal(kRandomKind, writer.bytes());
  }

  absl::Status Load(std::string_view bytes) override {
    absl::StatusOr<std::string_view> body = Unseal(kRandomKind, bytes);
    if (!body.ok()) return body.status();
    ByteReader reader(*body);
    const uint64_t seed = reader.U64();
    if (!reader.Finished()) {
      return absl::DataLossError("cost model: wrong size");
    }
    seed_ = seed;
    trained_ = true;
    return absl::OkStatus();
  }

  bool trained() const override { return trained_; }

 private:
  std::atomic<uint64_t> seed_;
  std::atomic<bool> trained_ = false;
};

}  // namespace

std::unique_ptr<CostModel> MakeRandomModel(uint64_t seed) {
  return std::make_unique<RandomModel>(seed);
}

}  // namespace tilefarm::cost_model
