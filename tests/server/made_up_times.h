// Devices whose times are invented, for tests with the real search.
#ifndef TILEFARM_TESTS_SERVER_MADE_UP_TIMES_H_
#define TILEFARM_TESTS_SERVER_MADE_UP_TIMES_H_

#include <string>

#include "base/hash.h"
#include "tests/server/fake_worker.h"

namespace tilefarm::testing {

// An invented time that depends only on the schedule.
inline double MadeUpSeconds(const std::string& scheduled_hash) {
  return 1e-3 * (1 + static_cast<double>(Sha256Prefix(scheduled_hash) % 1000));
}

inline farm::WorkerHello HelloFor(const std::string& target, int index) {
  farm::WorkerHello hello = TestHello("w" + std::to_string(index));
  hello.device.target = target;
  hello.device.l2_bytes <<= index;  // a different one for each
  return hello;
}

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_SERVER_MADE_UP_TIMES_H_
