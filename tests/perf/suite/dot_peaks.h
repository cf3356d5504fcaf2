// Peak rates of the machine's dot-product instructions.
#ifndef TILEFARM_TESTS_PERF_SUITE_DOT_PEAKS_H_
#define TILEFARM_TESTS_PERF_SUITE_DOT_PEAKS_H_

#include <map>
#include <string>

namespace tilefarm::perf {

// Operations per second of one core, by the dtype of the left operand ("uint8",
// "bfloat16"), for supported types.
std::map<std::string, double> DotPeaks();

}  // namespace tilefarm::perf

#endif  // TILEFARM_TESTS_PERF_SUITE_DOT_PEAKS_H_
