#include "cost_model/skeleton/evaluator.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "cost_model/features.h"

namespace tilefarm::skeleton {
namespace {

using cost_model::FeatureRows;

// Attempts at a skeleton whose candidates turned out to be illegal.
constexpr int kMostAttempts = 8;

bool Same(const FeatureRows& a, const FeatureRows& b) {
  return a.rows == b.rows && a.values.size() == b.values.size() &&
         std::memcmp(a.values.data(), b.values.data(),
                     a.values.size() * sizeof(float)) == 0;
}

}  // namespace

struct CandidateEvaluator::Entry {
  std::optional<SketchPlan> plan;
  int attempts = 0;
  bool checked = false;       // was right once
  cost_model::LoopNest nest;  // keeps its memory

  void Drop() {
    plan.reset();
    attempts = kMostAttempts;
  }
};

CandidateEvaluator::CandidateEvaluator(
    std::shared_ptr<const space::DesignSpace> space,
    const target::Target& target, int threads)
    : space_(std::move(space)), target_(target), threads_(threads) {
  checked_.resize(space_->sketches().size());
  for (const schedule::Trace& sketch : space_->sketches()) {
    std::vector<size_t>& sites = locations_.emplace_back();
    size_t site = 0;
    for (const schedule::Instruction& instruction : sketch.instructions) {
      if (!instruction.is_sample()) continue;
      if (instruction.primitive == "sample_compute_location") {
        sites.push_back(site);
      }
      ++site;
    }
  }
}

CandidateEvaluator::~CandidateEvaluator() = default;

CandidateEvaluator::Entry* CandidateEvaluator::Find(
    const space::Candidate& candidate) {
  const auto sketch = static_cast<size_t>(candidate.sketch);
  if (sketch >= locations_.size()) return nullptr;
  key_.assign(1, candidate.sketch);
  for (const size_t site : locations_[sketch]) {
    if (site >= candidate.decisions.size()) return nullptr;
    key_.push_back(candidate.decisions[site].AsInt().value_or(INT64_MIN));
  }
  std::unique_ptr<Entry>& entry = entries_[key_];
  if (entry == nullptr) entry = std::make_unique<Entry>();
  if (!entry->plan && entry->attempts < kMostAttempts) {
    auto built =
        target_.is_gpu()
            ? absl::UnimplementedError("no skeleton: kernels of a GPU")
        : space_->has_postprocs(candidate.sketch)
            ? PlanSketch(*space_->program(), space_->Start(candidate.sketch),
                         space_->sketches()[sketch], candidate.decisions)
            : absl::UnimplementedError("no skeleton: a sketch by hand");
    if (built.ok()) {
      entry->plan = std::move(built->plan);
      planned_ = std::move(built->schedule);
      ++stats_.skeletons;
    } else {
      // Illegal or odd decisions say nothing about the sketch.
      const bool never = absl::IsUnimplemented(built.status());
      entry->attempts = never ? kMostAttempts : entry->attempts + 1;
      if (never || absl::IsOutOfRange(built.status())) {
        ++stats_.reasons[std::string(built.status().message())];
      }
    }
  }
  return entry->plan ? entry.get() : nullptr;
}

std::optional<FeatureRows> CandidateEvaluator::Replay(
    const space::Candidate& candidate) {
  ++stats_.by_replay;
  if (!planned_) return FeaturesOf(space_->Draft(candidate));
  const auto schedule = space_->Finish(*std::move(planned_));
  if (!schedule.ok()) return std::nullopt;
  return FeaturesOf(schedule->module().Find(space_->program()->name));
}

std::optional<FeatureRows> CandidateEvaluator::FeaturesOf(
    const absl::StatusOr<ir::PrimFuncPtr>& scheduled) const {
  if (!scheduled.ok()) return std::nullopt;
  return cost_model::ExtractFeatures(**scheduled, target_);
}

int CandidateEvaluator::HalfOfTheMachine() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / 2);
}

std::vector<std::optional<FeatureRows>> CandidateEvaluator::EvaluateAll(
    std::span<const space::Candidate> candidates) {
  std::vector<std::optional<FeatureRows>> rows(candidates.size());
  if (!replays_all()) {
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = Evaluate(candidates[i]);
    return rows;
  }
  stats_.by_replay += static_cast<int64_t>(rows.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < rows.size(); i = next++) {
      rows[i] = FeaturesOf(space_->Draft(candidates[i]));
    }
  };
  const size_t all = std::min(static_cast<size_t>(threads_), rows.size());
  std::vector<std::thread> threads;
  for (size_t n = 1; n < all; ++n) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return rows;
}

std::optional<FeatureRows> CandidateEvaluator::Evaluate(
    const space::Candidate& candidate) {
  planned_.reset();
  Entry* entry = Find(candidate);
  if (entry == nullptr) return Replay(candidate);
  const char* why = "an illegal decision";
  if (values_.Assign(candidate.decisions)) {
    why = nest_.Run(*entry->plan, values_);
    if (why == nullptr) why = nest_.Finish(*entry->plan, target_);
  }
  if (why != nullptr) {
    ++stats_.reasons[why];
    return Replay(candidate);
  }
  nest_.Write(entry->nest);
  FeatureRows rows = cost_model::FeaturesOf(entry->nest, target_);
  absl::flat_hash_set<uint32_t>& checked =
      checked_[static_cast<size_t>(candidate.sketch)];
  const auto events = nest_.events();
  const bool known =
      entry->checked && std::ranges::all_of(events, [&](uint32_t e) {
        return checked.contains(e);
      });
  if (!known) {
    ++stats_.checks;
    std::optional<FeatureRows> replayed = Replay(candidate);
    if (!replayed) return std::nullopt;
    if (!Same(rows, *replayed)) {
      ++stats_.mismatches;
      entry->Drop();
      return replayed;
    }
    entry->checked = true;
    checked.insert(events.begin(), events.end());
    return replayed;
  }
  ++stats_.by_skeleton;
  return rows;
}

bool CandidateEvaluator::Check(const space::Candidate& candidate,
                               const ir::PrimFunc& scheduled,
                               FeatureRows& features) {
  FeatureRows exact = cost_model::ExtractFeatures(scheduled, target_);
  if (Same(features, exact)) return true;
  features = std::move(exact);
  ++stats_.mismatches;
  if (Entry* entry = Find(candidate)) entry->Drop();
  return false;
}

}  // namespace tilefarm::skeleton
