// The rates of a core that the estimate and pages compute a program's limits
// with.
#ifndef TILEFARM_COST_MODEL_MACHINE_RATES_H_
#define TILEFARM_COST_MODEL_MACHINE_RATES_H_

namespace tilefarm::cost_model {

// What a core does in a cycle. The defaults are a typical one of the last ten
// years; explanations have measured ones (compiler/driver/machine_peaks.h).
struct CoreModel {
  double vector_ops = 2;  // arithmetic on vectors
  double loads = 2;
  double stores = 1;
  double latency = 4;  // cycles from a multiply-add to the next one on its sum
  // Bytes that a core gets from the next cache, or from memory: alone, and
  // while all of them ask for it.
  double bytes_from_l2 = 56;
  double bytes_from_l3 = 24;
  double bytes_from_memory = 8;
  double bytes_from_memory_shared = 8;
};

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_MACHINE_RATES_H_
