// Quantities as all programs print them for people, and read them. JSON has
// seconds, bytes and plain numbers instead.
#ifndef TILEFARM_BASE_UNITS_H_
#define TILEFARM_BASE_UNITS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilefarm {

// "2.500 s", "2.500 ms", "2.500 us": three digits after the point. "-": not
// above 0, which stands for an unknown time.
std::string FormatSeconds(double seconds);
// "96 B", "1.5 KiB", "64 MiB", "2.25 GiB", up to TiB: four digits at most.
std::string FormatBytes(double bytes);
// "64MiB", "96B", "96": a whole number of units up to TiB. nullopt: no such
// text, or 2^63 or more.
std::optional<int64_t> ParseBytes(std::string_view text);
// "488.3 GFLOPS", "12.1 GB/s": `per_second` in thousands of millions.
std::string FormatRate(double per_second, const std::string& unit);
// "45 %".
std::string FormatShare(double share);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_UNITS_H_
