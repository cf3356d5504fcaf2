// What the cost model sees of a candidate, without making its program: by the
// skeleton of its sketch where there is one, by replay where there is none.
//
//   CandidateEvaluator evaluator(space, target);
//   std::optional<FeatureRows> rows = evaluator.Evaluate(candidate);
//
// Both ways give the same features, bit for bit. To keep that so while design
// space and skeletons change, a skeleton is believed only where it has been
// right: its first candidate, and the first of a sketch for which the postprocs
// do something new, are also replayed, callers that replay a candidate anyway
// hand the result to Check, and a skeleton that was wrong once is not used
// again. So results do not depend on skeletons; only time does.
#ifndef TILEFARM_COST_MODEL_SKELETON_EVALUATOR_H_
#define TILEFARM_COST_MODEL_SKELETON_EVALUATOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/space/design_space.h"
#include "compiler/target/target.h"
#include "cost_model/cost_model.h"
#include "cost_model/skeleton/nest.h"
#include "cost_model/skeleton/sketch_plan.h"

namespace tilefarm::skeleton {

struct EvaluatorStats {
  int64_t by_skeleton = 0;
  int64_t by_replay = 0;  // of these `checks` for comparison alone
  int64_t checks = 0;
  int64_t mismatches = 0;  // skeletons that were wrong, and were dropped
  int64_t skeletons = 0;   // made
  // Why candidates are replayed: what skeletons do not express.
  std::map<std::string, int64_t> reasons;
};

// Not thread-safe; keeps the space alive.
class CandidateEvaluator {
 public:
  // `threads`: at most so many in EvaluateAll.
  CandidateEvaluator(std::shared_ptr<const space::DesignSpace> space,
                     const target::Target& target,
                     int threads = HalfOfTheMachine());
  ~CandidateEvaluator();

  // nullopt: the candidate is illegal. A candidate that only a skeleton has
  // seen is legal as far as its sketch goes; DesignSpace::Apply has the last
  // word.
  std::optional<cost_model::FeatureRows> Evaluate(
      const space::Candidate& candidate);
  // Half of the processors, which others use as well; at least 1.
  static int HalfOfTheMachine();
  // Evaluate of each, on several threads if replays_all().
  std::vector<std::optional<cost_model::FeatureRows>> EvaluateAll(
      std::span<const space::Candidate> candidates);
  // Whether there are no skeletons for the target.
  bool replays_all() const { return target_.is_gpu(); }
  // Holds the features that Evaluate gave against the candidate's program.
  // Where they differ: false, the features become the program's, and there are
  // no more skeletons for the candidate's like.
  bool Check(const space::Candidate& candidate, const ir::PrimFunc& scheduled,
             cost_model::FeatureRows& features);

  const EvaluatorStats& stats() const { return stats_; }

 private:
  struct Entry;
  // The skeleton of the candidate's sketch and compute locations; null where
  // there is none.
  Entry* Find(const space::Candidate& candidate);
  std::optional<cost_model::FeatureRows> Replay(
      const space::Candidate& candidate);
  // The features of a scheduled program; nullopt: it is illegal.
  std::optional<cost_model::FeatureRows> FeaturesOf(
      const absl::StatusOr<ir::PrimFuncPtr>& scheduled) const;

  const std::shared_ptr<const space::DesignSpace> space_;
  const target::Target target_;
  const int threads_;
  // Sites whose decision is a compute location, by sketch.
  std::vector<std::vector<size_t>> locations_;
  std::map<std::vector<int64_t>, std::unique_ptr<Entry>> entries_;
  // What postprocs did where a skeleton was right, by sketch.
  std::vector<absl::flat_hash_set<uint32_t>> checked_;
  // What the evaluated candidate's sketch made, if it was just planned.
  std::optional<schedule::Schedule> planned_;
  std::vector<int64_t> key_;
  DecisionValues values_;
  Nest nest_;
  EvaluatorStats stats_;
};

}  // namespace tilefarm::skeleton

#endif  // TILEFARM_COST_MODEL_SKELETON_EVALUATOR_H_
