#include "compiler/driver/draft_schedule.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/status_macros.h"
#include "compiler/space/design_space.h"
#include "cost_model/estimate.h"
#include "cost_model/features.h"
#include "cost_model/skeleton/evaluator.h"

namespace tilefarm::driver {
namespace {

// The number of random points, then of neighbours of the best in each round.
constexpr int kDraws = 512;
constexpr int kRounds = 8;
constexpr int kNeighbours = 64;
constexpr size_t kKept = 8;
// Evaluating a point that needs its program costs as much as fifty others.
constexpr int64_t kMaxReplays = 384;
// The estimate ranks points of one sketch better than it compares them with
// another program, so only a clear gain counts.
constexpr double kMargin = 0.9;

struct Point {
  double cycles = 0;
  space::Candidate candidate;
};

// The best points of the space according to the estimate, best first.
std::vector<Point> BestPoints(
    const std::shared_ptr<const space::DesignSpace>& space,
    const target::Target& target) {
  skeleton::CandidateEvaluator evaluator(space, target);
  Rng rng(/*seed=*/1);
  std::vector<Point> best;
  const auto look = [&](absl::StatusOr<space::Candidate> candidate) {
    if (!candidate.ok() || evaluator.stats().by_replay > kMaxReplays) return;
    const auto same = [&](const Point& p) { return p.candidate == *candidate; };
    if (std::any_of(best.begin(), best.end(), same)) return;
    const std::optional<cost_model::FeatureRows> rows =
        evaluator.Evaluate(*candidate);
    if (!rows) return;
    const double cycles = cost_model::EstimateCycles(*rows, target);
    const auto place = std::upper_bound(
        best.begin(), best.end(), cycles,
        [](double value, const Point& p) { return value < p.cycles; });
    best.insert(place, {cycles, *std::move(candidate)});
    if (best.size() > kKept) best.pop_back();
  };
  for (int i = 0; i < kDraws; ++i) look(space->Sample(rng));
  for (int round = 0; round < kRounds && !best.empty(); ++round) {
    const std::vector<Point> parents = best;
    for (int i = 0; i < kNeighbours; ++i) {
      look(space->Mutate(parents[rng.Below(parents.size())].candidate, rng));
    }
  }
  return best;
}

double Cycles(const schedule::Schedule& schedule,
              const target::Target& target) {
  return cost_model::EstimateCycles(
      cost_model::ExtractFeatures(*schedule.module().functions[0], target),
      target);
}

}  // namespace

absl::StatusOr<schedule::Schedule> DraftSchedule(
    const ir::PrimFuncPtr& function, const target::Target& target,
    ir::FloatRule floats) {
  TF_ASSIGN_OR_RETURN(
      schedule::Schedule heuristic,
      space::DefaultSchedule(ir::IRModule{{function}}, target, floats));
  // The estimate knows CPUs only.
  if (target.is_gpu()) return heuristic;
  auto made = space::DesignSpace::Create(function, target, floats);
  if (!made.ok()) return heuristic;
  const std::shared_ptr<const space::DesignSpace> space = *std::move(made);
  const double bound = kMargin * Cycles(heuristic, target);
  for (const Point& point : BestPoints(space, target)) {
    if (point.cycles >= bound) break;
    auto schedule = space->Apply(point.candidate);
    if (schedule.ok()) return schedule;
  }
  return heuristic;
}

}  // namespace tilefarm::driver
