#include "cost_model/store_features.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/check.h"
#include "compiler/target/strided_loads.h"
#include "cost_model/feature_columns.h"
#include "cost_model/store_view.h"

namespace tilefarm::cost_model {
namespace {

using ir::ForKind;

constexpr double kMaxPressure = 8;

double Log(double x) { return x > 0 ? std::log2(1 + x) : 0; }

// A cache of logarithms: extents, iterations and bytes repeat within a row and
// from one candidate to the next.
class RecentLogs {
 public:
  double Of(double x) {
    if (!(x > 0)) return 0;
    const auto bits = std::bit_cast<uint64_t>(x);
    // Fibonacci hashing (Knuth, volume 3).
    Entry& entry = entries_[(bits * 0x9E3779B97F4A7C15u) >> (64 - kBits)];
    if (entry.bits != bits) entry = {bits, Log(x)};
    return entry.log;
  }

 private:
  static constexpr int kBits = 9;
  struct Entry {
    uint64_t bits = 0;  // matches no number above 0
    double log = 0;
  };
  std::array<Entry, size_t{1} << kBits> entries_;
};

// Appends values to a row; the groups must fill it exactly.
class RowWriter {
 public:
  explicit RowWriter(std::span<float> row) : row_(row), logs_(ThreadsLogs()) {}
  void Add(double value) {
    Put(std::isfinite(value) ? static_cast<float>(value) : 0.0f);
  }
  double LogOf(double value) { return logs_.Of(value); }
  void AddLog(double value) { Add(LogOf(value)); }
  void AddFlag(bool value) { Put(value ? 1.0f : 0.0f); }
  void Skip(int columns) {
    TF_CHECK(static_cast<size_t>(columns) <= row_.size() - at_);
    std::fill_n(row_.begin() + static_cast<std::ptrdiff_t>(at_), columns, 0.0f);
    at_ += static_cast<size_t>(columns);
  }
  bool full() const { return at_ == row_.size(); }

 private:
  static RecentLogs& ThreadsLogs() {
    static thread_local RecentLogs logs;
    return logs;
  }
  void Put(float value) {
    TF_CHECK(at_ < row_.size());
    row_[at_++] = value;
  }

  std::span<float> row_;
  RecentLogs& logs_;
  size_t at_ = 0;
};

void WriteOps(const StoreView& view, RowWriter& row) {
  const OpCounts& ops = view.store().ops;
  const double times = view.iterations(0);
  for (const double count :
       {ops.float_add, ops.float_mul, ops.float_fma, ops.float_div,
        ops.float_compare, ops.float_math, ops.int_add, ops.int_mul,
        ops.int_div, ops.int_compare, ops.int_other, ops.casts, ops.selects,
        ops.logical}) {
    row.AddLog(count * times);
  }
  row.AddFlag(view.store().is_init);
}

void WriteLoopKind(const StoreView& view, ForKind kind, RowWriter& row) {
  int count = 0;
  double product = 1;
  size_t innermost = 0;
  for (size_t l = 0; l < view.depth(); ++l) {
    if (view.loop(l).kind != kind || view.loop(l).extent == 1) continue;
    ++count;
    product *= static_cast<double>(view.loop(l).extent);
    innermost = l;
  }
  if (count == 0) return row.Skip(kLoopKindColumns);
  row.Add(count);
  row.AddLog(product);
  row.AddLog(static_cast<double>(view.loop(innermost).extent));
  // The loop's position, counted from the innermost one.
  int place = 0;
  for (size_t l = innermost; l < view.depth(); ++l) {
    place += 1 + view.loop(l).ones;
  }
  row.Add(place);
  row.AddFlag(view.IsReduction(innermost));
}

void WriteInnerLoops(const StoreView& view, RowWriter& row) {
  int written = 0;
  for (size_t l = view.depth(); l-- > 0 && written < kInnerLoops;) {
    const NestLoop& loop = view.loop(l);
    if (loop.extent == 1) continue;
    row.AddLog(static_cast<double>(loop.extent));
    row.AddFlag(loop.kind == ForKind::kSerial);
    row.AddFlag(loop.kind == ForKind::kVectorized);
    row.AddFlag(loop.kind == ForKind::kUnrolled);
    row.AddFlag(loop.kind == ForKind::kParallel ||
                loop.kind == ForKind::kThreadBinding);
    row.AddFlag(view.IsReduction(l));
    ++written;
  }
  row.Skip((kInnerLoops - written) * kInnerLoopColumns);
}

// The loop whose lanes form a vector; depth() if there is none.
size_t VectorLoop(const StoreView& view) {
  for (size_t l = view.depth(); l-- > 0;) {
    if (view.loop(l).kind == ForKind::kVectorized && view.loop(l).extent > 1) {
      return l;
    }
  }
  return view.depth();
}

// Registers that one run of the vectorized loop fills; 1 without one.
double RegistersPerRun(const StoreView& view, const target::Target& target) {
  const size_t vector = VectorLoop(view);
  if (vector == view.depth()) return 1;
  const int element = std::max(view.BufferOf(0).element_bytes, 1);
  return CeilDiv(static_cast<double>(view.loop(vector).extent),
                 std::max(target.vector_lanes(element), 1));
}

// The first loop of the innermost band, which becomes straight-line code.
// Lowering counts a store for each register when it unrolls.
size_t BandOf(const StoreView& view, const target::Target& target) {
  const auto limit = static_cast<double>(view.store().unroll_max_step);
  double copies = RegistersPerRun(view, target);
  size_t band = view.depth();
  for (; band > 0; --band) {
    const NestLoop& outer = view.loop(band - 1);
    if (outer.extent == 1 || outer.kind == ForKind::kVectorized) continue;
    copies *= static_cast<double>(outer.extent);
    const bool unrolled = outer.kind == ForKind::kUnrolled ||
                          (outer.kind == ForKind::kSerial && copies <= limit);
    if (!unrolled) break;
  }
  return band;
}

void WriteNest(const StoreView& view, size_t band, RowWriter& row) {
  const NestStore& store = view.store();
  int loops = 0;
  double reduction = 1, unrolled = 1;
  for (size_t l = view.depth(); l-- > 0;) {
    const NestLoop& loop = view.loop(l);
    if (loop.extent == 1) continue;
    ++loops;
    const double extent = static_cast<double>(loop.extent);
    if (view.IsReduction(l)) reduction *= extent;
    if (l >= band && loop.kind != ForKind::kVectorized) {
      unrolled *= extent;
    }
  }
  row.Add(loops);
  row.AddLog(view.iterations(0));
  row.AddLog(reduction);
  row.Add(store.guards);
  row.AddLog(store.domain_size > 0
                 ? std::max(0.0, view.iterations(0) / store.domain_size - 1)
                 : 0);
  row.AddLog(static_cast<double>(store.unroll_max_step));
  row.AddLog(unrolled);
  const NestBuffer& written = view.BufferOf(0);
  if (written.intermediate) {
    row.AddLog(written.bytes());
    const size_t d = std::min<size_t>(store.alloc_depth, view.depth());
    row.AddLog(view.iterations(0) / view.iterations(d));
  } else {
    row.Skip(2);
  }
  row.Add(static_cast<double>(store.accesses.size()));
}

void WriteBuffer(const StoreView& view, size_t access, RowWriter& row) {
  const NestAccess& a = view.store().accesses[access];
  const double element = view.BufferOf(access).element_bytes;
  const Footprint& whole = view.At(access, 0);
  row.AddFlag(a.reads && !a.writes);
  row.AddFlag(a.writes && !a.reads);
  row.AddFlag(a.reads && a.writes);
  row.AddFlag(view.BufferOf(access).intermediate);
  row.AddFlag(a.irregular);

  size_t innermost = view.depth();
  for (size_t l = view.depth(); l-- > 0;) {
    if (view.loop(l).extent > 1) {
      innermost = l;
      break;
    }
  }
  const double bytes =
      view.iterations(0) * element * (a.loads + (a.writes ? 1 : 0));
  const double lines = innermost == view.depth()
                           ? whole.lines
                           : view.At(access, innermost).lines *
                                 view.iterations(0) /
                                 view.iterations(innermost);
  row.AddLog(bytes);
  row.AddLog(whole.bytes);
  row.AddLog(lines);
  row.AddLog(whole.lines);

  // The innermost loop that repeats the same addresses.
  size_t repeating = view.depth();
  for (size_t l = view.depth(); l-- > 0;) {
    if (view.loop(l).extent > 1 && !view.Moves(access, l)) {
      repeating = l;
      break;
    }
  }
  const bool reused = repeating < view.depth();
  const double uses =
      reused ? static_cast<double>(view.loop(repeating).extent) : 1;
  row.AddFlag(reused);
  row.AddLog(reused ? view.iterations(repeating + 1) : 0);
  row.AddLog(reused ? view.total_bytes(repeating + 1) : 0);
  row.AddLog(reused ? uses : 0);
  row.AddLog(bytes / uses);
  row.AddLog(whole.bytes / uses);
  row.AddLog(lines / uses);
  row.AddLog(whole.lines / uses);

  row.AddLog(
      innermost == view.depth() ? 0 : view.Stride(access, innermost) * element);
  const size_t vector = VectorLoop(view);
  if (vector == view.depth()) return row.Skip(3);
  const double stride = view.Stride(access, vector);
  row.AddFlag(stride == 1);
  row.AddFlag(stride == 0);
  row.AddFlag(stride != 0 && stride != 1);
}

double OpsPerExecution(const NestStore& store) {
  const double ops = store.ops.float_ops() + store.ops.int_ops();
  // A copy has no arithmetic; count it as one operation.
  return std::max(ops, 1.0);
}

void WriteCurve(const StoreView& view, RowWriter& row) {
  const double ops = OpsPerExecution(view.store());
  // For each depth: share of the whole, and intensity.
  absl::InlinedVector<double, 40> x(view.depth() + 1), y(view.depth() + 1);
  for (size_t d = view.depth() + 1; d-- > 0;) {
    const bool same = d < view.depth() &&
                      view.iterations(d) == view.iterations(d + 1) &&
                      view.total_bytes(d) == view.total_bytes(d + 1);
    x[d] = same ? x[d + 1] : row.LogOf(view.iterations(d));
    y[d] = same ? y[d + 1]
                : row.LogOf(ops * view.iterations(d) / view.total_bytes(d));
  }
  const double whole = x[0];
  const double start = row.LogOf(ops / view.total_bytes(view.depth()));
  for (int point = 1; point <= kCurvePoints; ++point) {
    const double wanted = whole * point / kCurvePoints;
    // Interpolate between the two depths around the wanted share.
    double x0 = 0, y0 = start;
    double value = y0;
    for (size_t d = view.depth() + 1; d-- > 0;) {
      value = y[d];
      if (x[d] >= wanted) {
        if (x[d] > x0) {
          value = y0 + (y[d] - y0) * (wanted - x0) / (x[d] - x0);
        }
        break;
      }
      x0 = x[d];
      y0 = y[d];
    }
    row.Add(value);
  }
}

// `all_bytes`: of all buffers of the program.
void WriteCache(const StoreView& view, double all_bytes, int level,
                double capacity, RowWriter& row) {
  size_t fit = view.depth();
  while (fit > 0 && view.Fits(fit - 1, level, capacity)) --fit;
  row.AddLog(view.iterations(fit));
  row.AddLog(view.total_bytes(fit));
  size_t next = fit;
  while (next > 0 && view.iterations(next) == view.iterations(fit)) --next;
  row.AddLog(view.total_bytes(next));
  double traffic = 0;
  // A run finds in a cache what the run before left there.
  const size_t accesses =
      all_bytes <= capacity ? 0 : view.store().accesses.size();
  for (size_t a = 0; a < accesses; ++a) {
    double runs = view.iterations(0) / view.iterations(fit);
    // Data that does not change with the loop around the part is reused.
    if (next < fit && !view.Moves(a, next)) {
      runs /= static_cast<double>(view.loop(next).extent);
    }
    traffic += runs * std::max(view.At(a, fit).lines * kLineBytes,
                               view.At(a, fit).bytes);
  }
  row.AddLog(traffic);
  row.AddLog(OpsPerExecution(view.store()) * view.iterations(0) /
             std::max(traffic, 1.0));
}

// The loads and shuffles of one run of the vectorized loop, which fills
// `registers`.
double LoadsOf(const StoreView& view, size_t access, size_t vector,
               double length, double registers) {
  if (view.store().accesses[access].irregular) return 2 * length;
  const double stride = std::abs(view.Stride(access, vector));
  if (stride <= 1) return registers;
  return stride <= target::kMostLoadsOfStrided ? (2 * stride - 1) * registers
                                               : 2 * length;
}

// The start of the part of the band that the outermost of its loops that uses
// the same elements again repeats; depth() where no loop does.
size_t InnerReuse(const StoreView& view, size_t access, size_t band) {
  for (size_t l = band; l < view.depth(); ++l) {
    if (view.loop(l).extent > 1 && view.loop(l).kind != ForKind::kVectorized &&
        !view.Moves(access, l)) {
      return l + 1;
    }
  }
  return view.depth();
}

void WriteRegisters(const StoreView& view, size_t band,
                    const target::Target& target, RowWriter& row) {
  double kept = 1;
  for (size_t l = band; l-- > 0;) {
    if (view.loop(l).extent == 1) continue;
    if (!view.IsReduction(l)) break;
    kept *= static_cast<double>(view.loop(l).extent);
  }
  const size_t vector = VectorLoop(view);
  const bool has_vector = vector < view.depth();
  const int element = std::max(view.BufferOf(0).element_bytes, 1);
  const double lanes = std::max(target.vector_lanes(element), 1);
  const double length =
      has_vector ? static_cast<double>(view.loop(vector).extent) : 1;
  const double registers_per_run = RegistersPerRun(view, target);

  // The vectors of an access in the nest from depth d on.
  const auto vectors = [&](size_t access, size_t d) {
    const double elements =
        view.At(access, d).elements / view.store().accesses[access].group;
    return has_vector && view.Moves(access, vector)
               ? elements / length * registers_per_run
               : elements;
  };
  const double accumulators = vectors(0, band);
  double load_vectors = 0, broadcasts = 0, more_loads = 0;
  for (size_t a = 1; a < view.store().accesses.size(); ++a) {
    const double loaded = vectors(a, band);
    if (has_vector && view.Moves(a, vector)) {
      load_vectors += loaded;
      more_loads += loaded / registers_per_run *
                    (LoadsOf(view, a, vector, length, registers_per_run) -
                     registers_per_run);
    } else {
      broadcasts += loaded;
    }
  }
  // The accumulators, one row of loads, one broadcast.
  const double held =
      accumulators + std::min(load_vectors, registers_per_run) + 1;
  const double registers = std::max(target.vector_registers, 1);
  const double pressure = held / registers;
  // What loops of the band use again has the other registers; the part of it
  // that they do not hold is loaded for each use.
  const double uses = view.iterations(band) / length * registers_per_run;
  double left = std::max(registers - accumulators, 0.0);
  for (size_t a = 1; a < view.store().accesses.size(); ++a) {
    const double reused = vectors(a, InnerReuse(view, a, band));
    const double stays = reused == 1 ? 1 : std::min(reused, left);
    left = std::max(left - stays, 0.0);
    more_loads += std::max(uses - vectors(a, band), 0.0) * (1 - stays / reused);
  }
  row.AddLog(view.iterations(band));
  row.AddLog(accumulators);
  row.AddLog(kept);
  row.AddLog(load_vectors);
  row.AddLog(broadcasts);
  row.AddLog(more_loads);
  row.Add(std::min(pressure, kMaxPressure));
  row.AddFlag(pressure > 1);
  const double operations =
      OpsPerExecution(view.store()) * view.iterations(band) / lanes;
  row.AddLog(operations /
             std::max(accumulators + load_vectors + broadcasts, 1.0));
  row.AddLog(registers_per_run);
  row.Add(has_vector ? 1 - length / (registers_per_run * lanes) : 0);
}

void WriteParallel(const StoreView& view, const target::Target& target,
                   RowWriter& row) {
  double tasks = 1;
  for (size_t l = 0; l < view.depth(); ++l) {
    if (view.loop(l).kind == ForKind::kParallel) {
      tasks *= static_cast<double>(view.loop(l).extent);
    }
  }
  const double cores = std::max(target.cores, 1);
  row.AddLog(tasks / cores);
  row.Add(CeilDiv(tasks, cores) * cores / tasks - 1);
  row.AddLog(OpsPerExecution(view.store()) * view.iterations(0) / tasks);
}

}  // namespace

void WriteStoreFeatures(const LoopNest& nest, const NestStore& store,
                        double all_bytes, const target::Target& target,
                        std::span<float> out) {
  const StoreView view(nest, store);
  RowWriter row(out);
  WriteOps(view, row);
  WriteLoopKind(view, ForKind::kVectorized, row);
  WriteLoopKind(view, ForKind::kUnrolled, row);
  WriteLoopKind(view, ForKind::kParallel, row);
  WriteInnerLoops(view, row);
  const size_t band = BandOf(view, target);
  WriteNest(view, band, row);
  const size_t buffers = std::min<size_t>(view.order().size(), kBuffers);
  for (size_t i = 0; i < buffers; ++i) WriteBuffer(view, view.order()[i], row);
  row.Skip(static_cast<int>(kBuffers - buffers) * kBufferColumns);
  WriteCurve(view, row);
  int level = 0;
  for (const int64_t capacity : {target.caches.l1_bytes, target.caches.l2_bytes,
                                 target.caches.l3_bytes}) {
    WriteCache(view, all_bytes, level++, static_cast<double>(capacity), row);
  }
  WriteRegisters(view, band, target, row);
  WriteParallel(view, target, row);
  // Computed later, from all stores together: estimate.h.
  row.Skip(kEstimateColumns);
  TF_CHECK(row.full());
}

}  // namespace tilefarm::cost_model
