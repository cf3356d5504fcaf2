// The bounded set of samples for trainings: the cost of a training does not
// grow with the number of trials.
#ifndef TILEFARM_COST_MODEL_SAMPLE_SET_H_
#define TILEFARM_COST_MODEL_SAMPLE_SET_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/byte_stream.h"
#include "base/rng.h"
#include "cost_model/cost_model.h"

namespace tilefarm::cost_model {

// Keeps the newest samples, the best of each group, and a random choice of the
// others. Not thread-safe.
class SampleSet {
 public:
  SampleSet(size_t max_samples, size_t max_rows, uint64_t seed)
      : max_samples_(max_samples), max_rows_(max_rows), rng_(seed) {}

  // Replaces the sample with the same group and id, if there is one.
  void Add(const Sample& sample);
  // Takes over the other's samples.
  void Assign(SampleSet other) {
    samples_ = std::move(other.samples_);
    rows_ = other.rows_;
  }
  const std::deque<Sample>& samples() const { return samples_; }
  size_t rows() const { return rows_; }
  // The current score of each sample: best / seconds of its group if its
  // seconds are known, otherwise the sample's own score.
  std::vector<float> Scores() const;

  // At most `max` samples, chosen as when the set is full.
  void Write(ByteWriter& writer, size_t max) const;
  // Replaces the content. DataLoss: no valid samples of `columns` columns.
  absl::Status Read(ByteReader& reader, int columns);

 private:
  void Evict();
  // The least known seconds of each group.
  std::map<int64_t, double> BestSeconds() const;

  const size_t max_samples_;
  const size_t max_rows_;
  Rng rng_;
  std::deque<Sample> samples_;  // oldest first
  size_t rows_ = 0;
};

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_SAMPLE_SET_H_
