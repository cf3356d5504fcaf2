// Chooses which candidates of a task are measured next.
//
// A Search owns nothing that outlives it: the server feeds it outcomes and
// takes proposals. Its choices are a function of the seed, the records known
// at the start, and the order of the calls to Propose and Report (DESIGN 3.4:
// determinism), which the server logs.
#ifndef TILEFARM_SERVER_SEARCH_SEARCH_H_
#define TILEFARM_SERVER_SEARCH_SEARCH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/space/design_space.h"
#include "cost_model/cost_model.h"
#include "database/record.h"

namespace tilefarm::search {

enum class Strategy { kEvolutionary, kRandom };

struct SearchOptions {
  uint64_t seed = 0;
  Strategy strategy = Strategy::kEvolutionary;
  int population = 512;  // candidates kept between generations
  int generations = 4;   // per call that needs new candidates
  // Maximum number of candidates evaluated for each one proposed. It is lower
  // while little is measured: the best of very many by a model of few samples
  // is mostly an error of the model.
  int evaluations_per_proposal = 125;
  double mutation_probability = 0.85;
  double crossover_probability = 0.1;
  double epsilon = 0.05;    // share of proposals taken at random
  int initial_random = 32;  // trials before the model is trusted
  int retrain_every = 8;    // outcomes between trainings, growing with size
  std::string fingerprint;  // part of the candidate id
  // Complete traces, in the space or not, of which the first is proposed before
  // all others: the schedule that a user without records gets, so that the
  // result of tuning is not slower. The rest are half of the next proposals.
  std::vector<std::string> first_traces;
};

// A candidate about to be leased.
struct Proposal {
  space::Candidate candidate;  // empty for first_traces outside of the space
  std::string candidate_id;    // hash of (task, scheduled program, fingerprint)
  std::string trace;           // complete text
  std::string scheduled_hash;  // ir::ProgramHash
  float predicted = 0;
};

struct Outcome {
  std::string candidate_id;
  database::Status status = database::Status::kOk;
  double seconds = 0;  // median; only with kOk
  // Its device was unsteady: the time is less certain.
  bool unsteady = false;
};

// Not thread-safe; the caller serialises. Propose and Report may take tens of
// milliseconds (evolution, training): call them from the search thread.
class Search {
 public:
  // `known`: the task's records so far, with their current times. They are not
  // proposed again, and those in the space are the first training set. `model`
  // may be shared with other tasks.
  static absl::StatusOr<std::unique_ptr<Search>> Create(
      std::shared_ptr<const space::DesignSpace> space,
      const target::Target& target, const std::string& task_id,
      std::shared_ptr<cost_model::CostModel> model, SearchOptions options,
      std::span<const database::Record> known);
  virtual ~Search() = default;

  // Up to `count` candidates never proposed before; fewer, or none, only when
  // the space is exhausted. FailedPrecondition: no point of it is legal; the
  // message says why.
  virtual absl::StatusOr<std::vector<Proposal>> Propose(int count) = 0;
  // The outcome of a proposal. A second outcome of the same one replaces its
  // time, unless the search no longer remembers it.
  virtual absl::Status Report(std::span<const Outcome> outcomes) = 0;

  // The complete trace of a fast candidate of another task, whose reductions
  // differ from these in numbers alone: the nearest candidate here will be
  // proposed soon, unless it was proposed before. A later trace of the same
  // source replaces an earlier one that was not proposed yet. Without effect
  // where there is no candidate like it, and in random search.
  virtual void Suggest(const std::string& source, const std::string& trace) = 0;

  // Metrics of the latest retraining, on results the model had not seen.
  virtual std::optional<cost_model::RankingMetrics> last_metrics() const = 0;
  virtual double best_seconds() const = 0;  // 0: none yet
  // The id of the first of SearchOptions::first_traces, proposed or known
  // before; empty until Propose has come to it, and without such traces.
  virtual std::string default_candidate() const { return ""; }
};

// hash of (task, scheduled program, fingerprint).
std::string CandidateId(const std::string& task_id,
                        const std::string& scheduled_hash,
                        const std::string& fingerprint);
// hash of (workload, target key).
std::string TaskId(const std::string& workload_hash,
                   const std::string& target_key);

}  // namespace tilefarm::search

#endif  // TILEFARM_SERVER_SEARCH_SEARCH_H_
