// A lease, and what a worker says about the leases that it holds.
#ifndef TILEFARM_SERVER_FARM_LEASE_H_
#define TILEFARM_SERVER_FARM_LEASE_H_

#include <cstdint>
#include <string>

#include "server/farm/work.h"

namespace tilefarm::farm {

// In the order in which a lease passes through them. A candidate in kGranted
// waits for the worker to build it; one in kBuilt waits for the device's cores.
enum class Phase { kGranted, kBuilding, kBuilt, kRunning };

// A candidate as it is sent to one worker.
struct Lease {
  std::string lease_id;  // 128 bits in hexadecimal, see lease_id.h
  uint32_t attempt = 1;
  WorkItem item;
  double best_seconds = 0;  // confirmed best time of its task; 0: none
};

// A lease in the list that a worker sends with its state.
struct HeldLease {
  std::string lease_id;
  uint32_t attempt = 0;
  Phase phase = Phase::kGranted;
  // The measurement is done; its result waits to be sent or acknowledged.
  bool reported = false;
};

struct WorkerResult {
  std::string lease_id;
  uint32_t attempt = 1;  // 0: not given
  std::string candidate_id;
  Measurement measurement;
};

}  // namespace tilefarm::farm

#endif  // TILEFARM_SERVER_FARM_LEASE_H_
