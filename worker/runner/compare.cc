#include "worker/runner/compare.h"

#include <algorithm>

#include "base/quiet_core.h"
#include "worker/runner/core_wait.h"
#include "worker/runner/kernel.h"

namespace tilefarm::worker {
namespace {

constexpr double kSampleMicroseconds = 500;
constexpr double kClusterMilliseconds = 40;
constexpr uint32_t kFewestRounds = 4;
constexpr uint32_t kUsualMostRounds = 64;
// Rounds between two placements of the buffers.
constexpr uint32_t kRoundsOfAPlacement = 2;

template <typename T>
T Or(T value, T otherwise) {
  return value == 0 ? otherwise : value;
}

// The artifacts take part by their place in the order of loading.
class Pairs {
 public:
  Pairs(const SharedRun& run, const std::array<int, 2>& files,
        const std::array<KeptOutputs, 2>& outputs,
        const CompareRequest& request)
      : run_(run),
        report_(*run.report),
        outputs_(outputs),
        request_(request),
        kernel_(run, Files(files, request)),
        flusher_(kernel_, request.flush_cache, request.last_cache_bytes,
                 run.program->cold_constants),
        end_(SampleClock() + kTimeShare * request.limits.timeout_ms * 1e-3) {}

  void Measure(double alone_contention) {
    for (const size_t side : {size_t{0}, size_t{1}}) FirstRun(side);
    report_.stage = Stage::kTiming;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      Use(side);
      if (!kernel_.in_place()) {
        run_seconds_[side] = WarmUp(kernel_, run_seconds_[side]);
      }
    }
    const CompareSizes sizes =
        SizesOf(request_, run_seconds_[0], run_seconds_[1],
                flusher_.flushes() || kernel_.in_place());
    runs_ = sizes.runs;
    most_retakes_ = sizes.rounds;
    // Each sample comes after an untimed run, or a flush.
    const double round_seconds = kSamplesOfARound *
                                 static_cast<double>(runs_ + 1) *
                                 std::max(run_seconds_[0], run_seconds_[1]);
    CoreWait wait(alone_contention, /*best_seconds=*/0, run_.patience);
    bool may_place = true;
    for (uint32_t round = 0; round < sizes.rounds; ++round) {
      const double left = end_ - SampleClock() - 2 * round_seconds;
      const bool last = round + 1 == sizes.rounds || left < 0;
      bool waited = false;
      const bool alone = wait.Await(left, &waited);
      report_.waited_seconds = wait.waited_seconds();
      if (round % kRoundsOfAPlacement == 1 && may_place) {
        may_place = kernel_.PlaceAnew();
      }
      TakePair(0, 1, /*checks=*/false);
      TakePair(1, 0, /*checks=*/last);
      if (!alone || !wait.IsAlone()) ++report_.shared;
      if (last) break;
    }
    report_.canary_seconds = ClockCanary();
    report_.sample_count = taken_;
    report_.stage = Stage::kDone;
  }

 private:
  static std::array<ArtifactFile, 2> Files(const std::array<int, 2>& files,
                                           const CompareRequest& request) {
    const auto& first =
        request.candidate_first ? request.candidate : request.baseline;
    const auto& second =
        request.candidate_first ? request.baseline : request.candidate;
    return {ArtifactFile{files[0], first.symbol, request.is_model},
            ArtifactFile{files[1], second.symbol, request.is_model}};
  }

  void Use(size_t side) {
    kernel_.Use(side);
    report_.artifact = static_cast<uint32_t>(side);
  }

  void FirstRun(size_t side) {
    Use(side);
    kernel_.RestoreOutputs();
    report_.stage = Stage::kFirstRun;
    run_seconds_[side] = kernel_.TimedRun();
    kernel_.KeepOutputs(outputs_[side].of_first_run);
    if (!kernel_.PackConstants(/*reuse_rooms=*/false)) return;
    kernel_.RestoreOutputs();
    report_.stage = Stage::kFirstRun;
    run_seconds_[side] = kernel_.TimedRun();
  }

  // `checks`: on poisoned outputs, which are kept.
  double Sample(size_t side, bool checks) {
    Use(side);
    if (checks || kernel_.in_place()) kernel_.RestoreOutputs();
    // Brings its own constants and code into the caches again.
    if (!flusher_.flushes_all() && !kernel_.in_place()) kernel_.TimedRun();
    if (flusher_.flushes()) flusher_.Flush();
    const double seconds = kernel_.TimedRuns(runs_);
    if (checks) kernel_.KeepOutputs(outputs_[side].of_last_run);
    return seconds;
  }

  // A sample of each, in this order.
  void TakePair(size_t a, size_t b, bool checks) {
    for (;;) {
      const long switches = InvoluntarySwitches();
      const double first = Sample(a, checks);
      const double second = Sample(b, checks);
      const bool disturbed = InvoluntarySwitches() != switches;
      if (disturbed && report_.retaken < most_retakes_ &&
          SampleClock() + 4 * (first + second) * static_cast<double>(runs_) <
              end_) {
        ++report_.retaken;
        continue;
      }
      report_.samples[taken_++] = first;
      report_.samples[taken_++] = second;
      return;
    }
  }

  const SharedRun& run_;
  ChildReport& report_;
  const std::array<KeptOutputs, 2>& outputs_;
  const CompareRequest& request_;
  Kernel kernel_;
  CacheFlusher flusher_;
  const double end_;
  std::array<double, 2> run_seconds_ = {};
  int64_t runs_ = 1;  // of a sample
  uint32_t most_retakes_ = 0;
  uint32_t taken_ = 0;
};

}  // namespace

CompareSizes SizesOf(const CompareRequest& request, double first_seconds,
                     double second_seconds, bool single_runs) {
  CompareSizes sizes;
  // Of the slower one, so that a cluster with a very slow artifact ends.
  sizes.runs =
      IterationsFor(single_runs, std::max(first_seconds, second_seconds),
                    Or<double>(request.sample_us, kSampleMicroseconds) * 1e-6);
  const double round_seconds = kSamplesOfARound / 2 *
                               (first_seconds + second_seconds) *
                               static_cast<double>(sizes.runs);
  const double rounds = Or<double>(request.cluster_ms, kClusterMilliseconds) *
                        1e-3 / std::max(round_seconds, 1e-9);
  const uint32_t fewest =
      std::min(Or(request.fewest_rounds, kFewestRounds), kMostRounds);
  const uint32_t most = std::clamp(Or(request.most_rounds, kUsualMostRounds),
                                   fewest, kMostRounds);
  sizes.rounds = static_cast<uint32_t>(std::clamp(
      rounds, static_cast<double>(fewest), static_cast<double>(most)));
  return sizes;
}

void MeasurePairs(const SharedRun& run, const std::array<int, 2>& files,
                  const std::array<KeptOutputs, 2>& outputs,
                  const CompareRequest& request) {
  double alone_contention = 0;
  if (request.limits.cpus.size() == 1) {
    run.report->contention = CoreContention();
    alone_contention = run.alone_contention > 0
                           ? run.alone_contention
                           : LearnAloneContention(kContentionLooks);
  }
  Pairs(run, files, outputs, request).Measure(alone_contention);
}

}  // namespace tilefarm::worker
