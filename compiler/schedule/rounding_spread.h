// How far the rounding of an algorithm that a trace chooses reaches beyond one
// element.
#ifndef TILEFARM_COMPILER_SCHEDULE_ROUNDING_SPREAD_H_
#define TILEFARM_COMPILER_SCHEDULE_ROUNDING_SPREAD_H_

#include "compiler/schedule/trace.h"

namespace tilefarm::schedule {

// The fraction of the root mean square of an output's bounds that verification
// adds to each bound, because the rounding of an element depends on its
// neighbours (WinogradSpread); 0 for most traces.
double RoundingSpread(const Trace& trace);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_ROUNDING_SPREAD_H_
