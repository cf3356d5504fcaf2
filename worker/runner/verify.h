// Is an output what the reference computed?
#ifndef TILEFARM_WORKER_RUNNER_VERIFY_H_
#define TILEFARM_WORKER_RUNNER_VERIFY_H_

#include <cstdint>
#include <string>

#include "worker/runner_protocol.h"

namespace tilefarm::worker {

// Root of the mean square of the finite elements; 0 for integers.
double RootMeanSquare(const BufferSpec& spec, const void* data);
// Floats only: no NaN and no infinity.
bool AllFinite(const BufferSpec& spec, const void* data);

struct Comparison {
  bool equal = true;
  double max_abs_error = 0;
  // Largest |difference| / (|ref| + rms(ref)).
  double max_rel_error = 0;
  std::string error;  // the first element that is wrong
};

// The rule (base/tolerance.h): each float within 4 eps (4 + sqrt(K)) (|ref| +
// rms(ref)) of the reference, NaN and infinities in the same places; integers
// exact. `number` is the parameter's, for the message.
Comparison Compare(const BufferSpec& spec, uint64_t reduction_length,
                   uint32_t number, const void* reference, double rms,
                   const void* output);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_VERIFY_H_
