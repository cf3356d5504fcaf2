// Inputs from a seed, equal on every platform.
#ifndef TILEFARM_WORKER_RUNNER_INPUTS_H_
#define TILEFARM_WORKER_RUNNER_INPUTS_H_

#include <cstdint>

#include "worker/runner_protocol.h"

namespace tilefarm::worker {

// Fills the `index`-th parameter. Floats are uniform in [-1, 1], or in (0, 1]
// if `positive`; integers are in [low, high] of the spec, from 1 on if
// `positive` and the range permits; bools are 0 or 1. Each parameter has its
// own random stream (splitmix64; Steele, Lea, Flood 2014).
void FillInput(const BufferSpec& spec, uint64_t seed, uint32_t index,
               bool positive, void* data);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_INPUTS_H_
