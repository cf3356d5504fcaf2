#include "server/demo/replay_search.h"

#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"

namespace tilefarm::demo {
namespace {

class ReplaySearch : public search::Search {
 public:
  ReplaySearch(std::shared_ptr<const Recording> recording,
               const std::vector<jobs::LoggedProposal>& proposals,
               std::span<const database::Record> known)
      : recording_(std::move(recording)), proposals_(proposals) {
    for (const database::Record& record : known) {
      known_.insert(record.candidate_id);
    }
  }

  absl::StatusOr<std::vector<search::Proposal>> Propose(int count) override {
    std::vector<search::Proposal> out;
    while (next_ < proposals_.size() && static_cast<int>(out.size()) < count) {
      const jobs::LoggedProposal& logged = proposals_[next_++];
      // Some were proposed and never measured, such as at the end.
      if (known_.contains(logged.candidate_id) ||
          !recording_->records.contains(logged.candidate_id)) {
        continue;
      }
      search::Proposal proposal;
      proposal.candidate_id = logged.candidate_id;
      proposal.trace = logged.trace;
      proposal.scheduled_hash = logged.scheduled_hash;
      float score = 0;
      if (absl::SimpleAtof(logged.model_score, &score)) {
        proposal.predicted = score;
      }
      out.push_back(std::move(proposal));
    }
    return out;
  }
  absl::Status Report(std::span<const search::Outcome> /*outcomes*/) override {
    return absl::OkStatus();
  }
  void Suggest(const std::string& /*source*/,
               const std::string& /*trace*/) override {}
  std::optional<cost_model::RankingMetrics> last_metrics() const override {
    return std::nullopt;
  }
  double best_seconds() const override { return 0; }
  // A search begins with the default schedule.
  std::string default_candidate() const override {
    return next_ == 0 ? "" : proposals_.front().candidate_id;
  }

 private:
  const std::shared_ptr<const Recording> recording_;
  const std::vector<jobs::LoggedProposal>& proposals_;  // in the recording
  std::set<std::string> known_;
  size_t next_ = 0;
};

}  // namespace

jobs::SearchFactory ReplayFactory(std::shared_ptr<const Recording> recording) {
  const auto make_search = [recording](const jobs::SearchRequest& request)
      -> absl::StatusOr<std::unique_ptr<search::Search>> {
    const auto found = recording->proposals.find(request.task_id);
    if (found == recording->proposals.end()) {
      return absl::FailedPreconditionError(
          "the demo replays a recorded run and tunes nothing else");
    }
    return std::make_unique<ReplaySearch>(recording, found->second,
                                          request.known);
  };
  return {.make_model = jobs::RealSearchFactory().make_model,
          .make_search = make_search};
}

}  // namespace tilefarm::demo
