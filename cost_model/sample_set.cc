#include "cost_model/sample_set.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tilefarm::cost_model {
namespace {

// Attempts to find a sample to evict that is not among the best of its group.
constexpr int kEvictionTries = 8;
// A sample at least this good is kept while others can be evicted.
constexpr float kGoodScore = 0.7f;

}  // namespace

void SampleSet::Add(const Sample& sample) {
  const auto same =
      sample.id == 0
          ? samples_.end()
          : std::ranges::find_if(samples_, [&](const Sample& other) {
              return other.id == sample.id && other.group == sample.group;
            });
  Sample& place = same == samples_.end() ? samples_.emplace_back() : *same;
  rows_ += static_cast<size_t>(sample.features.rows);
  rows_ -= static_cast<size_t>(place.features.rows);
  place = sample;
  for (float& value : place.features.values) {
    if (!std::isfinite(value)) value = 0;
  }
  while (samples_.size() > 1 &&
         (samples_.size() > max_samples_ || rows_ > max_rows_)) {
    Evict();
  }
}

void SampleSet::Evict() {
  // Evict from the older half, because the newer one is about candidates that
  // the search considers now.
  const size_t older = std::max<size_t>(samples_.size() / 2, 1);
  const std::map<int64_t, double> best = BestSeconds();
  size_t victim = 0;
  for (int attempt = 0; attempt < kEvictionTries; ++attempt) {
    victim = rng_.Below(older);
    const Sample& sample = samples_[victim];
    const double score = sample.seconds > 0
                             ? best.at(sample.group) / sample.seconds
                             : sample.score;
    if (score < kGoodScore) break;
  }
  rows_ -= static_cast<size_t>(samples_[victim].features.rows);
  samples_.erase(samples_.begin() + static_cast<std::ptrdiff_t>(victim));
}

std::map<int64_t, double> SampleSet::BestSeconds() const {
  std::map<int64_t, double> best;
  for (const Sample& sample : samples_) {
    if (sample.seconds <= 0) continue;
    const auto [it, added] = best.try_emplace(sample.group, sample.seconds);
    if (!added) it->second = std::min(it->second, sample.seconds);
  }
  return best;
}

std::vector<float> SampleSet::Scores() const {
  const std::map<int64_t, double> best = BestSeconds();
  std::vector<float> scores;
  scores.reserve(samples_.size());
  for (const Sample& sample : samples_) {
    const double score = sample.seconds > 0
                             ? best.at(sample.group) / sample.seconds
                             : static_cast<double>(sample.score);
    scores.push_back(std::isfinite(score)
                         ? static_cast<float>(std::clamp(score, 0.0, 1.0))
                         : 0.0f);
  }
  return scores;
}

void SampleSet::Write(ByteWriter& writer, size_t max) const {
  SampleSet kept(max, max_rows_, /*seed=*/0);
  for (const Sample& sample : samples_) kept.Add(sample);
  writer.U32(static_cast<uint32_t>(kept.samples_.size()));
  for (const Sample& sample : kept.samples_) {
    writer.U64(static_cast<uint64_t>(sample.group));
    writer.F32(sample.score);
    writer.F64(sample.seconds);
    writer.U64(sample.id);
    writer.F32(sample.weight);
    writer.U32(static_cast<uint32_t>(sample.features.rows));
    // Most values are 0. Write only the others, each with its position.
    uint32_t count = 0;
    for (const float value : sample.features.values) count += value != 0;
    writer.U32(count);
    for (size_t i = 0; i < sample.features.values.size(); ++i) {
      if (sample.features.values[i] == 0) continue;
      writer.U32(static_cast<uint32_t>(i));
      writer.F32(sample.features.values[i]);
    }
  }
}

absl::Status SampleSet::Read(ByteReader& reader, int columns) {
  samples_.clear();
  rows_ = 0;
  const uint32_t count = reader.U32();
  for (uint32_t n = 0; n < count; ++n) {
    Sample sample;
    sample.group = static_cast<int64_t>(reader.U64());
    sample.score = reader.F32();
    sample.seconds = reader.F64();
    sample.id = reader.U64();
    sample.weight = reader.F32();
    if (!(sample.weight > 0 && sample.weight <= 1)) {
      return absl::DataLossError("cost model: a sample without weight");
    }
    const uint32_t rows = reader.U32();
    const uint32_t nonzero = reader.U32();
    if (!reader.Has(nonzero, 8) || rows > max_rows_) {
      return absl::DataLossError("cost model: cut off");
    }
    sample.features.rows = static_cast<int>(rows);
    sample.features.values.assign(
        static_cast<size_t>(rows) * static_cast<size_t>(columns), 0);
    for (uint32_t i = 0; i < nonzero; ++i) {
      const uint32_t at = reader.U32();
      const float value = reader.F32();
      if (at >= sample.features.values.size()) {
        return absl::DataLossError(
            absl::StrCat("cost model: a feature out of range: ", at));
      }
      sample.features.values[at] = value;
    }
    Add(sample);
  }
  if (!reader.ok()) return absl::DataLossError("cost model: cut off");
  return absl::OkStatus();
}

}  // namespace tilefarm::cost_model
