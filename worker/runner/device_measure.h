// The part of a measurement that runs in the child of a device: makes the
// context, then loads, runs and times one candidate after another.
#ifndef TILEFARM_WORKER_RUNNER_DEVICE_MEASURE_H_
#define TILEFARM_WORKER_RUNNER_DEVICE_MEASURE_H_

#include <functional>

#include "worker/runner/device_driver.h"

namespace tilefarm::worker {

// Serves jobs (device_job.h) from `socket` on this device until the socket is
// closed. `confine` is called when the context is made, before any artifact is
// loaded; false: nothing may be loaded.
//
// An artifact has SYMBOL_on(queue, parameters...), which enqueues its kernels
// and returns, and SYMBOL_error(), the text of its last error. The steps:
//  1. The first run starts with poisoned outputs and workspace, and its outputs
//     are kept. It also loads the kernels, so it is not timed.
//  2. If the second run is much slower than best_seconds, it is the result. It
//     is repeated twice if it was short. It is also the result if it takes
//     long.
//  3. Warm-up runs find the time of a run, and of enqueueing one. Samples
//     follow, between two events on the queue, or by the host's clock where the
//     device has no usable events. Before the first event, enough memory is
//     written that the runs are enqueued before the device comes to them; that
//     also flushes the L2 cache.
//       warm  One run that is not timed, then as many as take a millisecond.
//       cold  On request, or if the arguments exceed the L2 cache. One run; if
//             it is too short for the events, runs on different copies of the
//             buffers, each of which was last used before the flush.
//     Samples end when the race is decided (sample_race.h), or well before the
//     time limit.
//  4. Before one last sample the outputs are poisoned again; after it they are
//     kept, and guards and inputs are compared with what they were.
void ServeDevice(int socket, const DeviceName& name,
                 const std::function<bool()>& confine);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_DEVICE_MEASURE_H_
