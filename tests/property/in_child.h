// Work that may crash, in a child process.
#ifndef TILEFARM_TESTS_PROPERTY_IN_CHILD_H_
#define TILEFARM_TESTS_PROPERTY_IN_CHILD_H_

#include <functional>
#include <ostream>
#include <string>

#include "tests/property/random_trace.h"

namespace tilefarm::property {

// Returns the output of `work`, run in a child; `crashed` says how it ended,
// empty if well. After so many seconds a signal ends it.
std::string InChild(const std::function<void(std::ostream&)>& work,
                    unsigned seconds, std::string* crashed);

// The counts as lines, and one of these lines added to other counts.
void PrintCounts(const PrimitiveCounts& counts, std::ostream& out);
void AddCounts(const std::string& line, PrimitiveCounts& counts);

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_PROPERTY_IN_CHILD_H_
