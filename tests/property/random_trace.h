// Random legal schedules: primitives with random arguments, of which those that
// the schedule accepts are kept.
#ifndef TILEFARM_TESTS_PROPERTY_RANDOM_TRACE_H_
#define TILEFARM_TESTS_PROPERTY_RANDOM_TRACE_H_

#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "compiler/schedule/schedule.h"

namespace tilefarm::property {

// How often each primitive was tried and accepted.
struct PrimitiveCounts {
  std::map<std::string, int> tried, accepted;
};

// Applies up to `steps` accepted primitives to `program`.
schedule::Schedule RandomSchedule(const ir::PrimFuncPtr& program, int steps,
                                  Rng& rng, PrimitiveCounts* counts);

// One of the primitives by name, with random arguments, on a random block; if
// it is accepted, `schedule` changes.
bool TryPrimitive(const std::string& primitive, schedule::Schedule& schedule,
                  Rng& rng, PrimitiveCounts* counts);

// One of the items, which are not none.
template <typename T>
const T& Pick(const std::vector<T>& items, Rng& rng) {
  return items[rng.Below(items.size())];
}

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_PROPERTY_RANDOM_TRACE_H_
