// The properties of this device, and its current state.
#ifndef TILEFARM_WORKER_DEVICE_H_
#define TILEFARM_WORKER_DEVICE_H_

#include <string>

#include "worker/cpus.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

uint64_t MemoryBytes();

// JSON for Measurement.device_state: {"clock_mhz", "temperature_c", "load",
// "canary_seconds", "retaken", "shared"}. Values that cannot be read are
// absent. Clock and temperature are those of the first of `cpus`, where the
// measurement ran. "shared" counts samples during which something else used the
// core. Of a GPU: {"clock_mhz", "memory_clock_mhz", "temperature_c", "power_w",
// "timing"}, all of the GPU, and "load".
std::string DeviceState(const CpuList& cpus, const RunReply& reply);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_DEVICE_H_
