// A lease on its way through the pipeline. Private to pipeline*.cc.
#ifndef TILEFARM_WORKER_PIPELINE_JOB_H_
#define TILEFARM_WORKER_PIPELINE_JOB_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "proto/tilefarm/v1/farm.pb.h"
#include "worker/artifact_cache.h"
#include "worker/builder_protocol.h"
#include "worker/pipeline.h"

namespace tilefarm::worker {

// In seconds of one clock.
inline double Moment() {
  return absl::ToDoubleSeconds(Clock::Real().Monotonic());
}

// Start and end.
struct TimeSpan {
  double from = 0, to = 0;
};

struct Pipeline::Reference {
  std::string key;
  BuildReply build;

  // The part of the protocol that the program decides.
  const char* layout() const {
    const std::vector<BufferSpec>& buffers = build.program.buffers;
    return std::any_of(buffers.begin(), buffers.end(),
                       [](const BufferSpec& b) { return b.layout_free; })
               ? "packed"
               : "as_stated";
  }
};

struct Pipeline::Job {
  v1::Lease lease;
  std::string database_uuid;
  uint64_t run_id = 0;
  v1::LeasePhase phase = v1::LEASE_PHASE_GRANTED;  // guarded by the lock
  bool cancelled = false;                          // guarded by the lock
  ReferencePtr reference;
  BuildReply build;
  // Of a comparison.
  ArtifactCache::Bytes baseline, candidate;
  v1::Measurement measurement;
  double added = Moment();
  TimeSpan built, ran;
  double child_seconds = 0;

  // JSON, for the worker's timeline.
  std::string Timeline() const;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_PIPELINE_JOB_H_
