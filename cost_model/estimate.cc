#include "cost_model/estimate.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/check.h"
#include "cost_model/feature_columns.h"

namespace tilefarm::cost_model {
namespace {

// Arithmetic and traffic overlap; this share of the shorter one adds to the
// longer.
constexpr double kNotHidden = 0.1;
// The same of arithmetic and the loads and stores of registers.
constexpr double kPortsNotHidden = 0.2;
constexpr double kDivisionCycles = 8;
constexpr double kFunctionCycles = 8;
// Cycles to start and end one run of a reduction in registers: the first loads,
// the last results, a mispredicted branch, the start of new rows.
constexpr double kRunCycles = 64;
// If a tile is larger than the registers by this share, all of it is spilled
// and reloaded: the register allocator spills more than the excess.
constexpr double kAllSpilled = 0.125;
// A masked store is not forwarded to the load of the next update, which waits
// for the cache.
constexpr double kMaskedUpdateCycles = 12;
// Conditions on loop variables are mostly known before the inner loop.
constexpr double kConditionShare = 0.25;
// Cycles per iteration of a loop that is neither vectorized nor unrolled.
constexpr double kLoopCycles = 1;

// The positions of the columns that the estimate reads.
struct Columns {
  int add, mul, fma, div, compare, math, int_add, int_mul, int_div, int_compare,
      casts, selects;
  int vector_product, vectors_per_loop, parallel_product;
  int iterations, guards;
  int band, accumulators, kept, load_vectors, broadcasts, more_loads, pressure,
      spills;
  int traffic[kCaches];
  int updates, scatter, lane_waste, waste;
  int imbalance;
  int estimated, estimated_total;
};

int Find(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  TF_CHECK(found != names.end());
  return static_cast<int>(found - names.begin());
}

Columns FindColumns() {
  const std::vector<std::string> names = FeatureNames();
  const auto at = [&](const std::string& name) { return Find(names, name); };
  Columns c;
  c.add = at("float_add");
  c.mul = at("float_mul");
  c.fma = at("float_fma");
  c.div = at("float_div");
  c.compare = at("float_compare");
  c.math = at("float_math");
  c.int_add = at("int_add");
  c.int_mul = at("int_mul");
  c.int_div = at("int_div");
  c.int_compare = at("int_compare");
  c.casts = at("casts");
  c.selects = at("selects");
  c.vector_product = at("vectorized.product");
  c.vectors_per_loop = at("register.vectors_per_loop");
  c.parallel_product = at("parallel.product");
  c.iterations = at("nest.iterations");
  c.guards = at("nest.guards");
  c.band = at("register.band_iterations");
  c.accumulators = at("register.accumulators");
  c.kept = at("register.kept_iterations");
  c.load_vectors = at("register.load_vectors");
  c.broadcasts = at("register.broadcasts");
  c.more_loads = at("register.more_loads");
  c.pressure = at("register.pressure");
  c.spills = at("register.spills");
  const char* const caches[] = {"l1.", "l2.", "l3."};
  for (int i = 0; i < kCaches; ++i) {
    c.traffic[i] = at(std::string(caches[i]) + "traffic");
  }
  c.updates = at("buffer0.updates");
  c.scatter = at("buffer0.vector_gather");
  c.lane_waste = at("register.lane_waste");
  c.waste = at("nest.waste");
  c.imbalance = at("parallel_work.imbalance");
  c.estimated = at("estimate.cycles");
  c.estimated_total = at("estimate.total");
  return c;
}

// The x of a column that holds log2(1 + x).
double Exp(float value) {
  // Most columns of operations are 0.
  return value == 0 ? 0 : std::exp2(value) - 1;
}

StoreCost CostOf(const Columns& c, const float* row,
                 const target::Target& target, const CoreModel& core) {
  StoreCost cost;
  const double iterations = std::max(Exp(row[c.iterations]), 1.0);
  const double band = std::max(Exp(row[c.band]), 1.0);
  cost.bands = std::max(iterations / band, 1.0);
  const bool vector = row[c.vector_product] > 0;
  const double accumulators = std::max(Exp(row[c.accumulators]), 1.0);
  const double loads = Exp(row[c.load_vectors]) + Exp(row[c.broadcasts]) +
                       Exp(row[c.more_loads]);
  const double kept = std::max(Exp(row[c.kept]), 1.0);

  const bool updates = row[c.updates] > 0;

  // Operations of one execution; in vectors one instruction serves the lanes of
  // a register.
  const auto per_execution = [&](int column) {
    return Exp(row[column]) / iterations;
  };
  const double simple =
      per_execution(c.add) + per_execution(c.mul) + per_execution(c.fma) +
      per_execution(c.compare) + per_execution(c.int_add) +
      per_execution(c.int_mul) + per_execution(c.casts) +
      kConditionShare *
          (per_execution(c.int_compare) + per_execution(c.selects));
  const double lanes = std::max(Exp(row[c.vector_product]), 1.0) /
                       std::max(Exp(row[c.vectors_per_loop]), 1.0);
  const double instructions =
      vector ? std::max(band / lanes, accumulators) : band;
  cost.arithmetic = instructions * (simple / core.vector_ops +
                                    per_execution(c.div) * kDivisionCycles +
                                    per_execution(c.int_div) * kDivisionCycles +
                                    per_execution(c.math) * kFunctionCycles);
  // Dependent steps of an accumulator wait for each other; there are several in
  // a band with unrolled reduce loops.
  if (updates) cost.latency = instructions / accumulators * core.latency;

  // Where the lanes of a result are apart, each is stored by itself.
  const double results =
      (vector && row[c.scatter] > 0 ? lanes : 1) * accumulators / kept;
  cost.ports = loads / core.loads + results / core.stores;
  if (updates) cost.ports += results / core.loads;
  if (updates && row[c.lane_waste] > 0) {
    // The last vector of each row is masked.
    cost.masked = accumulators / std::max(Exp(row[c.vectors_per_loop]), 1.0) /
                  kept * kMaskedUpdateCycles;
  }
  if (row[c.spills] > 0 && kept > 1) {
    const double share = std::min(1.0, (row[c.pressure] - 1) / kAllSpilled);
    cost.spills = 2 * share * instructions / core.stores;
  }
  if (row[c.guards] > 0) cost.guards = cost.bands * row[c.guards];
  cost.loops = cost.bands * kLoopCycles;
  if (updates) {
    const double steps = std::max(kept * instructions / accumulators, 1.0);
    cost.runs = cost.bands / kept * kRunCycles * (1 - 1 / steps);
  }

  cost.is_parallel = target.cores > 1 && row[c.parallel_product] > 0;
  const double from_memory =
      cost.is_parallel ? core.bytes_from_memory_shared : core.bytes_from_memory;
  const double rates[kCaches] = {core.bytes_from_l2, core.bytes_from_l3,
                                 from_memory};
  for (int i = 0; i < kCaches; ++i) {
    cost.bytes[i] = Exp(row[c.traffic[i]]);
    cost.traffic[i] = cost.bytes[i] / rates[i];
  }
  if (cost.is_parallel) {
    cost.imbalance = row[c.imbalance];
    cost.cores = target.cores;
  }
  cost.lane_waste = row[c.lane_waste];
  cost.repeated = Exp(row[c.waste]);
  return cost;
}

const Columns& TheColumns() {
  static const Columns* const columns = new Columns(FindColumns());
  return *columns;
}

float LogOfCycles(double cycles) {
  return static_cast<float>(std::log2(1 + cycles));
}

// `note` gets the start of each row and the cycles of its store.
template <typename Note>
double Total(const FeatureRows& rows, const target::Target& target,
             const Note& note) {
  const Columns& columns = TheColumns();
  const CoreModel core;
  double cycles = 1;
  float parallel = 0;  // iterations around the store before
  const size_t end = rows.values.size();
  for (size_t at = 0; at + kColumns <= end; at += kColumns) {
    const float* row = rows.values.data() + at;
    const double store = CyclesOf(CostOf(columns, row, target, core));
    cycles += store;
    // Neighbouring stores with the same number of parallel iterations are
    // assumed to be in one loop, which starts once.
    const float around = row[columns.parallel_product];
    if (target.cores > 1 && around > 0 && around != parallel) {
      cycles += kParallelCycles;
    }
    parallel = around;
    note(at, store);
  }
  return cycles;
}

}  // namespace

double BytesPerCycle(const CoreModel& core, int cache, bool is_parallel) {
  if (cache == 0) return core.bytes_from_l2;
  if (cache == 1) return core.bytes_from_l3;
  return is_parallel ? core.bytes_from_memory_shared : core.bytes_from_memory;
}

double CyclesOf(const StoreCost& cost) {
  const double compute = std::max(cost.arithmetic, cost.latency);
  const double memory = cost.ports + cost.masked + cost.spills;
  double cycles = cost.bands * (std::max(compute, memory) +
                                kPortsNotHidden * std::min(compute, memory));
  cycles += cost.guards;
  cycles += cost.loops;
  cycles += cost.runs;
  // Cache traffic overlaps with arithmetic, but not completely.
  const double traffic =
      std::max({cost.traffic[0], cost.traffic[1], cost.traffic[2]});
  cycles = std::max(cycles, traffic) + kNotHidden * std::min(cycles, traffic);
  if (cost.is_parallel) cycles *= (1 + cost.imbalance) / cost.cores;
  return cycles;
}

std::vector<StoreCost> CostsOf(const FeatureRows& rows,
                               const target::Target& target,
                               const CoreModel& core) {
  std::vector<StoreCost> costs;
  const Columns& columns = TheColumns();
  float parallel = 0;
  const size_t end = rows.values.size();
  for (size_t at = 0; at + kColumns <= end; at += kColumns) {
    const float* row = rows.values.data() + at;
    costs.push_back(CostOf(columns, row, target, core));
    const float around = row[columns.parallel_product];
    costs.back().starts_parallel =
        costs.back().is_parallel && around != parallel;
    parallel = around;
  }
  return costs;
}

double EstimateCycles(const FeatureRows& rows, const target::Target& target) {
  return Total(rows, target, [](size_t, double) {});
}

void WriteEstimate(FeatureRows& rows, const target::Target& target) {
  const Columns& columns = TheColumns();
  const double total = Total(rows, target, [&](size_t row, double cycles) {
    rows.values[row + columns.estimated] = LogOfCycles(cycles);
  });
  const size_t end = rows.values.size();
  for (size_t row = 0; row + kColumns <= end; row += kColumns) {
    rows.values[row + columns.estimated_total] = LogOfCycles(total);
  }
}

}  // namespace tilefarm::cost_model
