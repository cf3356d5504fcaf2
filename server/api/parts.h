// What the API answers from.
#ifndef TILEFARM_SERVER_API_PARTS_H_
#define TILEFARM_SERVER_API_PARTS_H_

#include <string>

#include "database/store.h"
#include "server/api/device_history.h"
#include "server/farm/farm.h"
#include "server/jobs/jobs.h"
#include "server/security/gate.h"

namespace tilefarm::api {

// All outlive the API, and are thread-safe.
struct Parts {
  database::Store& store;
  farm::Farm& farm;
  jobs::Jobs& jobs;
  security::Gate& gate;
  DeviceHistory& history;
  std::string fingerprint, release;
  bool demo = false;  // a recorded run is replayed
};

}  // namespace tilefarm::api

#endif  // TILEFARM_SERVER_API_PARTS_H_
