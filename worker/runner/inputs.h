// Seeded inputs, the same on every platform.
#ifndef TILEFARM_WORKER_RUNNER_INPUTS_H_
#define TILEFARM_WORKER_RUNNER_INPUTS_H_

#include <cstdint>

#include "worker/runner_protocol.h"

namespace tilefarm::worker {

// Fills the `index`-th parameter. Floats are uniform in [-1, 1], or in
// (0, 1] where `positive`; integers in [low, high] of the spec, from 1 up
// where `positive` and the range has room; bools 0 or 1. Each parameter has a
// stream of its own (splitmix64; Steele, Lea, Flood 2014).
void FillInput(const BufferSpec& spec, uint64_t seed, uint32_t index,
               bool positive, void* data);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_INPUTS_H_
