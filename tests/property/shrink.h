// Reduces a failing case: removes lines of the program and of its traces as
// long as the kind of failure stays the same.
#ifndef TILEFARM_TESTS_PROPERTY_SHRINK_H_
#define TILEFARM_TESTS_PROPERTY_SHRINK_H_

#include <functional>

#include "tests/property/differential.h"

namespace tilefarm::property {

// Whether a smaller case fails in the same way as the first one.
using StillFails = std::function<bool(const Case&)>;

// Tries at most `max_tries` smaller cases.
Case Shrink(Case failing, const StillFails& still_fails, int max_tries = 400);

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_PROPERTY_SHRINK_H_
