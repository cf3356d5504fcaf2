// The clock canary: a chain of dependent operations, each a multiplication by a
// constant and an addition of one in 64 bits. Workers time it after each
// measurement. Records keep the time, "canary_seconds", so that the length of
// the chain is part of their format.
#ifndef TILEFARM_BASE_CLOCK_CANARY_H_
#define TILEFARM_BASE_CLOCK_CANARY_H_

namespace tilefarm {

inline constexpr int kClockCanarySteps = 10'000;
// On cores of x86-64 that multiply in three cycles: all large ones of Intel
// since Nehalem and of AMD since Zen.
inline constexpr double kClockCanaryCyclesPerStep = 4;

}  // namespace tilefarm

#endif  // TILEFARM_BASE_CLOCK_CANARY_H_
