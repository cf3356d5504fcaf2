#include <algorithm>

#include "cost_model/features.h"
#include "cost_model/loop_nest.h"

namespace tilefarm::cost_model {

double CountFlops(const ir::PrimFunc& program) {
  const LoopNest nest = BuildLoopNest(program);
  // Integer operations of a float store are conditions and indices. They only
  // count if the program has no other operations.
  double work = 0, other = 0;
  for (const NestStore& store : nest.stores) {
    if (store.is_init) continue;
    double times = 1;
    for (const NestLoop& loop : store.loops) {
      times *= static_cast<double>(loop.extent);
    }
    work += times * store.ops.float_ops();
    (store.integral ? work : other) += times * store.ops.int_ops();
  }
  return work > 0 ? work : other;
}

}  // namespace tilefarm::cost_model
