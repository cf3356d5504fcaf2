#include <algorithm>

#include "cost_model/features.h"
#include "cost_model/loop_nest.h"

namespace tilefarm::cost_model {

double CountFlops(const ir::PrimFunc& program) {
  const LoopNest nest = BuildLoopNest(program);
  double float_ops = 0, int_ops = 0;
  for (const NestStore& store : nest.stores) {
    if (store.is_init) continue;
    double times = 1;
    for (const NestLoop& loop : store.loops) {
      times *= static_cast<double>(loop.extent);
    }
    float_ops += times * store.ops.float_ops();
    int_ops += times * store.ops.int_ops();
  }
  return float_ops > 0 ? float_ops : int_ops;
}

}  // namespace tilefarm::cost_model
