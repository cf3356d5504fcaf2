// What this device is, and how it is doing.
#ifndef TILEFARM_WORKER_DEVICE_H_
#define TILEFARM_WORKER_DEVICE_H_

#include <string>

#include "worker/cpus.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

uint64_t MemoryBytes();

// JSON for Measurement.device_state: {"clock_mhz", "temperature_c", "load",
// "canary_seconds", "retaken", "shared"}; what cannot be read is absent. Clock
// and temperature are of the first of `cpus`, where the measurement ran;
// "shared" counts samples during which something else used the core.
std::string DeviceState(const CpuList& cpus, const RunReply& reply);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_DEVICE_H_
