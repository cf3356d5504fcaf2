// Compares an output with the reference.
#ifndef TILEFARM_WORKER_RUNNER_VERIFY_H_
#define TILEFARM_WORKER_RUNNER_VERIFY_H_

#include <cstdint>
#include <string>

#include "worker/runner_protocol.h"

namespace tilefarm::worker {

// The root mean square of the finite bounds.
double RootMeanSquare(const BufferSpec& spec, const void* bounds);
// The root mean square of the finite elements; 0 for integers.
double RootMeanSquareOf(const BufferSpec& spec, const void* data);
// Whether there is no NaN and no infinity. For floats only.
bool AllFinite(const BufferSpec& spec, const void* data);

struct Comparison {
  bool equal = true;
  double max_abs_error = 0;
  // Largest |difference| / bound.
  double max_rel_error = 0;
  std::string error;  // the first element that is wrong
};

// The rule (compiler/oracle/README.md): each element differs from the reference
// by at most its bound plus `slack`, and NaN and infinities are in the same
// places. If `bounds` is null, elements are equal. An element with an infinite
// bound is not judged. `number` is the parameter's, for the message.
Comparison Compare(const BufferSpec& spec, uint32_t number,
                   const void* reference, const void* bounds, double slack,
                   const void* output);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_VERIFY_H_
