// A scheduled program's loops as people look at them: what each part of the
// nest touches, which cache holds it, and how often it uses each byte.
#ifndef TILEFARM_COST_MODEL_NEST_TABLE_H_
#define TILEFARM_COST_MODEL_NEST_TABLE_H_

#include <string>
#include <vector>

#include "compiler/target/target.h"
#include "cost_model/loop_nest.h"

namespace tilefarm::cost_model {

// The part of a nest that one iteration of the loops outside of `loop` runs.
struct NestRow {
  std::string loop;     // "i_0 in 8"; empty: the store itself
  std::string kind;     // "parallel", "vectorized", "unrolled" or "serial"
  double runs = 1;      // of this part
  double bytes = 0;     // distinct ones that one run touches
  double reuse = 1;     // accesses of a run, in bytes, over `bytes`
  std::string fits_in;  // "L1", "L2", "L3" or "memory"
};

struct NestTable {
  std::string block;   // empty: none
  std::string buffer;  // that is written
  bool is_init = false;
  std::vector<NestRow> rows;  // outermost first, the store last
};

// One for each store, in program order. Loops of one iteration are left out.
std::vector<NestTable> NestTables(const LoopNest& nest, const NestNames& names,
                                  const target::CacheSizes& caches);

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_NEST_TABLE_H_
