// The child's part of a comparison: loads two artifacts of one program and
// times them alternately. The parent checks what the child reports, and
// compares the outputs of both (runner_compare.cc).
//
// Whatever decides about the course of the comparison is the same if the two
// artifacts are exchanged, except which one comes first. With a fair coin for
// that, the sign of the difference of two equally fast artifacts is a fair coin
// (server/regression/paired_ratio.h).
#ifndef TILEFARM_WORKER_RUNNER_COMPARE_H_
#define TILEFARM_WORKER_RUNNER_COMPARE_H_

#include <array>
#include <cstdint>

#include "worker/runner/measure.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

inline constexpr uint32_t kMostRounds = 128;
// Samples of a round: first, second, second, first.
inline constexpr uint32_t kSamplesOfARound = 4;
static_assert(kMostRounds * kSamplesOfARound <= kMaxSamples);

// Space for the outputs of one artifact.
struct KeptOutputs {
  char* of_first_run = nullptr;
  char* of_last_run = nullptr;
};

// The number of rounds, and the runs of a sample.
struct CompareSizes {
  int64_t runs = 1;
  uint32_t rounds = 4;
};
// For artifacts whose runs take these times. `single_runs`: samples must be of
// one run each.
CompareSizes SizesOf(const CompareRequest& request, double first_seconds,
                     double second_seconds, bool single_runs);

// Called in the child. `files` and `outputs` are in the order of loading. The
// steps:
//  1. Both are loaded. Each runs once, on poisoned outputs, which are kept.
//     With layout-free parameters, later runs are of SYMBOL_packed.
//  2. Warm-up runs find the time of a run of each.
//  3. Rounds of four samples: first, second, second, first. Before each
//     sample its artifact runs once, untimed, so that it finds its own
//     constants and code in the caches, or all caches are flushed, as for a
//     measurement (measure.h). A pair of samples is taken again if one of them
//     was switched out, as long as time permits. After every few rounds the
//     buffers are moved.
//  4. In the last round both begin with poisoned outputs, which are kept after
//     their last sample.
// report.samples has the samples in the order in which they were taken.
void MeasurePairs(const SharedRun& run, const std::array<int, 2>& files,
                  const std::array<KeptOutputs, 2>& outputs,
                  const CompareRequest& request);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_COMPARE_H_
