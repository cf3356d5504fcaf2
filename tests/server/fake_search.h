// A search over invented candidates, for tests of jobs.
#ifndef TILEFARM_TESTS_SERVER_FAKE_SEARCH_H_
#define TILEFARM_TESTS_SERVER_FAKE_SEARCH_H_

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "server/jobs/search_factory.h"
#include "tests/server/fake_worker.h"

namespace tilefarm::testing {

class FakeModel : public cost_model::CostModel {
 public:
  std::vector<float> Predict(std::span<const cost_model::FeatureRows* const>
                                 candidates) const override {
    return std::vector<float>(candidates.size());
  }
  absl::StatusOr<cost_model::RankingMetrics> Update(
      std::span<const cost_model::Sample>) override {
    return cost_model::RankingMetrics();
  }
  absl::StatusOr<std::string> Serialize() const override { return "model"; }
  absl::Status Load(std::string_view) override { return absl::OkStatus(); }
  bool trained() const override { return true; }
};

// Proposes task/0, task/1, ... up to `size`, without known ones.
class FakeSearch : public search::Search {
 public:
  FakeSearch(const jobs::SearchRequest& request, int size)
      : task_id_(request.task_id), size_(size) {
    for (const database::Record& record : request.known) {
      known_.insert(record.candidate_id);
    }
  }
  absl::StatusOr<std::vector<search::Proposal>> Propose(int count) override {
    std::vector<search::Proposal> proposals;
    while (next_ < size_ && static_cast<int>(proposals.size()) < count) {
      search::Proposal proposal;
      proposal.trace = "# candidate " + std::to_string(next_);
      proposal.scheduled_hash = Sha256Hex(proposal.trace);
      proposal.candidate_id = Sha256Hex(task_id_ + proposal.trace);
      ++next_;
      if (known_.contains(proposal.candidate_id)) continue;
      proposals.push_back(std::move(proposal));
    }
    return proposals;
  }
  absl::Status Report(std::span<const search::Outcome> outcomes) override {
    reported_ += static_cast<int>(outcomes.size());
    metrics_.emplace();
    metrics_->samples = reported_;
    return absl::OkStatus();
  }
  void Suggest(const std::string& /*source*/,
               const std::string& /*trace*/) override {}
  std::optional<cost_model::RankingMetrics> last_metrics() const override {
    return metrics_;
  }
  double best_seconds() const override { return 0; }
  // The first candidate.
  std::string default_candidate() const override {
    return next_ == 0 ? "" : Sha256Hex(task_id_ + "# candidate 0");
  }

 private:
  const std::string task_id_;
  const int size_;
  std::set<std::string> known_;
  int next_ = 0;
  int reported_ = 0;
  std::optional<cost_model::RankingMetrics> metrics_;
};

inline jobs::SearchFactory FakeSearchFactory(int size = 1'000'000) {
  return {
      .make_model =
          [](const jobs::JobSpec&) { return std::make_unique<FakeModel>(); },
      .make_search = [size](const jobs::SearchRequest& request)
          -> absl::StatusOr<std::unique_ptr<search::Search>> {
        return std::make_unique<FakeSearch>(request, size);
      },
  };
}

inline constexpr char kMatmul[] = R"(from tvm.script import tir as T

@T.prim_func
def matmul(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

inline constexpr char kAddRelu[] = R"(from tvm.script import ir as I
from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def add(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("C"):
                v = T.axis.spatial(64, i)
                C[v] = A[v] + T.float32(1)

    @T.prim_func
    def relu(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("C"):
                v = T.axis.spatial(64, i)
                C[v] = T.max(A[v], T.float32(0))

    @T.prim_func
    def relu_again(X: T.Buffer((64,), "float32"), Y: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.block("Y"):
                v = T.axis.spatial(64, i)
                Y[v] = T.max(X[v], T.float32(0))
)";

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_SERVER_FAKE_SEARCH_H_
