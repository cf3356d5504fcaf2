// Makes a failing case small: lines of the program and of its traces go as long
// as the same kind of failure stays.
#ifndef TILEFARM_TESTS_PROPERTY_SHRINK_H_
#define TILEFARM_TESTS_PROPERTY_SHRINK_H_

#include <functional>

#include "tests/property/differential.h"

namespace tilefarm::property {

// Whether a smaller case still fails as the first one did.
using StillFails = std::function<bool(const Case&)>;

// Tries at most `max_tries` smaller cases.
Case Shrink(Case failing, const StillFails& still_fails, int max_tries = 400);

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_PROPERTY_SHRINK_H_
