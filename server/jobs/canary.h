// The canary kernel, whose time tells whether a device is well.
#ifndef TILEFARM_SERVER_JOBS_CANARY_H_
#define TILEFARM_SERVER_JOBS_CANARY_H_

#include <functional>
#include <optional>

#include "compiler/target/target.h"
#include "server/farm/work.h"

namespace tilefarm::jobs {

// A small matrix product with a fixed schedule, on one core: compute-bound, a
// fraction of a millisecond, verified. nullopt where its schedule does not
// apply, which is logged.
std::optional<farm::WorkItem> MakeCanary(const target::Target& device);

// MakeCanary that remembers the canary of each target. Thread-safe.
std::function<std::optional<farm::WorkItem>(const target::Target&)>
CanaryMaker();

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_CANARY_H_
