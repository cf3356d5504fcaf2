// The difference of two texts, line by line.
#ifndef TILEFARM_COMPILER_DRIVER_LINE_DIFF_H_
#define TILEFARM_COMPILER_DRIVER_LINE_DIFF_H_

#include <string>
#include <string_view>

namespace tilefarm::driver {

// In the unified format of diff(1), with three lines around each change; empty:
// the texts are equal. The fewest changed lines, except for parts of thousands
// of different lines, which are replaced as a whole.
std::string UnifiedDiff(std::string_view before, std::string_view after,
                        std::string_view before_name,
                        std::string_view after_name);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_LINE_DIFF_H_
