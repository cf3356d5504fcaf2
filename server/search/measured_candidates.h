// The measured candidates that a search remembers: the fastest, which breed,
// and the latest, whose times may be corrected.
#ifndef TILEFARM_SERVER_SEARCH_MEASURED_CANDIDATES_H_
#define TILEFARM_SERVER_SEARCH_MEASURED_CANDIDATES_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/search/individual.h"

namespace tilefarm::search {

// A value type of bounded size.
class MeasuredCandidates {
 public:
  // Usually more than a device measures between two canaries.
  static constexpr size_t kMostRecent = 512;

  explicit MeasuredCandidates(size_t elite, size_t recent = kMostRecent)
      : most_elite_(elite), most_recent_(recent) {}

  // Adds a candidate unless it failed (`seconds` 0). One outside the space does
  // not breed.
  void Add(const std::string& candidate_id, Individual individual);
  // Removes and returns it, from the elite as well; nullopt: it is not
  // remembered.
  std::optional<Individual> Take(const std::string& candidate_id);

  // Fastest first.
  const std::vector<Individual>& elite() const { return elite_; }

 private:
  size_t most_elite_, most_recent_;
  std::vector<Individual> elite_;
  std::deque<std::pair<std::string, Individual>> recent_;  // oldest first
};

}  // namespace tilefarm::search

#endif  // TILEFARM_SERVER_SEARCH_MEASURED_CANDIDATES_H_
