// What the machine's dot-product instructions can do.
#ifndef TILEFARM_TESTS_PERF_SUITE_DOT_PEAKS_H_
#define TILEFARM_TESTS_PERF_SUITE_DOT_PEAKS_H_

#include <map>
#include <string>

namespace tilefarm::perf {

// Operations a second of one core by the dtype of the left operand ("uint8",
// "bfloat16"), for those that it has an instruction for.
std::map<std::string, double> DotPeaks();

}  // namespace tilefarm::perf

#endif  // TILEFARM_TESTS_PERF_SUITE_DOT_PEAKS_H_
