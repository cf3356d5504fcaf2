// Structure-aware fuzzing of the worker's input, from seeds.
#include "tests/fuzz/seeded.h"
#include "tests/fuzz/worker_targets.h"

namespace tilefarm::fuzz {
namespace {

TEST(WorkerFuzz, StreamsOfServers) {
  WorkerTarget target;
  RunSeeded(4, [&](ByteSource& source) { return target.ServerStream(source); });
}

TEST(WorkerFuzz, PayloadsOfFrames) { RunSeeded(1, FramePayloads); }

TEST(WorkerFuzz, FilesOfSpools) { RunSeeded(1, SpoolFiles); }

}  // namespace
}  // namespace tilefarm::fuzz
