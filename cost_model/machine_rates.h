// What a core does in a cycle, where nothing was measured: a typical one of the
// last ten years. The estimate ranks candidates by it, and pages draw a
// program's limits with it.
#ifndef TILEFARM_COST_MODEL_MACHINE_RATES_H_
#define TILEFARM_COST_MODEL_MACHINE_RATES_H_

namespace tilefarm::cost_model {

inline constexpr double kVectorOpsPerCycle = 2;
// Of data, per core.
inline constexpr double kBytesFromL2PerCycle = 56;
inline constexpr double kBytesFromL3PerCycle = 24;
inline constexpr double kBytesFromMemoryPerCycle = 8;

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_MACHINE_RATES_H_
