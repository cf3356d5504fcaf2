#include "cost_model/feature_columns.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tilefarm::cost_model {
namespace {

// Operations of all executions of the store; log of the count.
constexpr FeatureColumn kOps[] = {
    {"float_add", "float additions and subtractions"},
    {"float_mul", "float multiplications that are not part of a multiply-add"},
    {"float_fma", "float multiply-adds"},
    {"float_div", "float divisions"},
    {"float_compare", "float min, max and comparisons"},
    {"float_math", "float functions: exp, sqrt, tanh, ..."},
    {"int_add", "integer additions and subtractions (not of addresses)"},
    {"int_mul", "integer multiplications"},
    {"int_div", "integer divisions and remainders"},
    {"int_compare", "integer min, max and comparisons"},
    {"int_other", "bit operations, shifts, integer functions"},
    {"casts", "conversions of type"},
    {"selects", "selects and if_then_else"},
    {"logical", "and, or, not"},
    {"is_init", "1 for the initial value of a reduction"},
};

// Loops of one kind around the store.
constexpr FeatureColumn kLoopKind[] = {
    {"count", "number of such loops with more than one iteration"},
    {"product", "log of the product of their extents"},
    {"innermost_extent", "log of the extent of the innermost one"},
    {"position", "loops inside of the innermost one, plus one"},
    {"is_reduction", "1 where the store's address ignores the innermost one"},
};

// The innermost loops with more than one iteration, one by one.
constexpr FeatureColumn kInnerLoop[] = {
    {"extent", "log of the extent"},
    {"is_serial", "1 for a serial loop"},
    {"is_vectorized", "1 for a vectorized loop"},
    {"is_unrolled", "1 for an unrolled loop"},
    {"is_parallel", "1 for a parallel or thread-bound loop"},
    {"is_reduction", "1 where the store's address ignores it"},
};

constexpr FeatureColumn kNest[] = {
    {"loops", "number of loops with more than one iteration"},
    {"iterations", "log of the executions of the store"},
    {"reduction_iterations", "log of the product of the reduction loops"},
    {"guards", "predicates and conditions around the store"},
    {"waste",
     "log of the executions over the instances of the block: what "
     "guarded tails repeat"},
    {"unroll_max_step", "log of the auto-unroll limit in force"},
    {"body_unrolled",
     "log of the copies of the store in the code, loops "
     "within the auto-unroll limit included"},
    {"alloc_bytes",
     "log of the bytes of the written buffer, if the program "
     "allocates it"},
    {"alloc_outer", "log of the iterations around that allocation"},
    {"buffers", "number of buffers accessed"},
};

// One buffer: the written one first, then the others by bytes touched.
constexpr FeatureColumn kBuffer[] = {
    {"reads", "1 where it is read only"},
    {"writes", "1 where it is written only"},
    {"updates", "1 where it is read and written"},
    {"intermediate", "1 where the program allocates it"},
    {"irregular", "1 where an index depends on data"},
    {"bytes", "log of the bytes moved, repeats included"},
    {"unique_bytes", "log of the different bytes touched"},
    {"lines", "log of the cache lines touched, once an innermost loop"},
    {"unique_lines", "log of the different cache lines touched"},
    {"reused", "1 where an inner loop repeats the same addresses"},
    {"reuse_iterations", "log of the iterations from one use to the next"},
    {"reuse_bytes",
     "log of the bytes all buffers touch from one use to the "
     "next"},
    {"reuse_count", "log of the uses: extent of the loop that repeats"},
    {"bytes_per_reuse", "log of bytes over uses"},
    {"unique_bytes_per_reuse", "log of unique bytes over uses"},
    {"lines_per_reuse", "log of lines over uses"},
    {"unique_lines_per_reuse", "log of unique lines over uses"},
    {"inner_stride",
     "log of the bytes from one innermost iteration to the "
     "next"},
    {"vector_contiguous", "1 where lanes of the vectorized loop are adjacent"},
    {"vector_broadcast",
     "1 where lanes of the vectorized loop are one "
     "element"},
    {"vector_gather", "1 where lanes are apart"},
};

constexpr FeatureColumn kCurvePoint = {
    "",
    "log of the arithmetic operations per different byte in the part of "
    "the nest, from the inside, that holds this share of the logarithm "
    "of all iterations"};

// A cache: the largest inner part of the nest whose bytes fit into it; in the
// first level, also without more rows in a set than it has ways.
constexpr FeatureColumn kCache[] = {
    {"fit_iterations", "log of the iterations of that part"},
    {"fit_bytes", "log of the different bytes of that part"},
    {"next_bytes", "log of the different bytes with one loop more"},
    {"traffic",
     "log of the bytes moved into the cache: the part's bytes for "
     "each of its executions, less what the loop around it keeps; none where "
     "all buffers fit"},
    {"intensity", "log of the arithmetic operations per byte of traffic"},
};

// The innermost band of vectorized and unrolled loops (including serial ones
// within the auto-unroll limit), whose data stays in registers.
constexpr FeatureColumn kRegister[] = {
    {"band_iterations", "log of the iterations of the band"},
    {"accumulators", "log of the vectors that the band writes"},
    {"kept_iterations",
     "log of the iterations of the reduction loops right outside of the band, "
     "over which the accumulators stay"},
    {"load_vectors", "log of the vectors that the band reads"},
    {"broadcasts",
     "log of the single elements that the band spreads over "
     "lanes"},
    {"more_loads",
     "log of the loads and shuffles beyond a load a vector: where lanes are "
     "apart, and where registers do not hold what is used again"},
    {"pressure", "vectors held at once over vector registers, at most 8"},
    {"spills", "1 where they do not fit"},
    {"ops_per_access", "log of the operations per vector read or written"},
    {"vectors_per_loop",
     "log of the registers that one run of the "
     "vectorized loop fills"},
    {"lane_waste", "share of lanes that the last of them leaves idle"},
};

constexpr FeatureColumn kParallel[] = {
    {"tasks_per_core", "log of the parallel iterations per core"},
    {"imbalance", "time of the busiest core over the mean, less one"},
    {"task_ops", "log of the operations of one parallel iteration"},
};

// Columns that estimate.h computes from the columns above.
constexpr FeatureColumn kEstimate[] = {
    {"cycles", "log of the cycles of the store"},
    {"total", "log of the cycles of all stores"},
};

static_assert(std::size(kOps) == kOpColumns);
static_assert(std::size(kLoopKind) == kLoopKindColumns);
static_assert(std::size(kInnerLoop) == kInnerLoopColumns);
static_assert(std::size(kNest) == kNestColumns);
static_assert(std::size(kBuffer) == kBufferColumns);
static_assert(std::size(kCache) == kCacheColumns);
static_assert(std::size(kRegister) == kRegisterColumns);
static_assert(std::size(kParallel) == kParallelColumns);
static_assert(std::size(kEstimate) == kEstimateColumns);

struct Named {
  std::string name;
  std::string meaning;
};

std::vector<Named> AllColumns() {
  std::vector<Named> all;
  const auto add = [&](const std::string& prefix,
                       std::span<const FeatureColumn> columns) {
    for (const FeatureColumn& column : columns) {
      all.push_back({absl::StrCat(prefix, column.name), column.meaning});
    }
  };
  add("", kOps);
  for (const char* kind : {"vectorized.", "unrolled.", "parallel."}) {
    add(kind, kLoopKind);
  }
  for (const char* loop : {"inner0.", "inner1.", "inner2."}) {
    add(loop, kInnerLoop);
  }
  add("nest.", kNest);
  for (int i = 0; i < kBuffers; ++i) {
    add(absl::StrCat("buffer", i, "."), kBuffer);
  }
  for (int i = 0; i < kCurvePoints; ++i) {
    all.push_back({absl::StrCat("intensity.", (i + 1) * 100 / kCurvePoints),
                   kCurvePoint.meaning});
  }
  for (const char* cache : {"l1.", "l2.", "l3."}) add(cache, kCache);
  add("register.", kRegister);
  add("parallel_work.", kParallel);
  add("estimate.", kEstimate);
  return all;
}

}  // namespace

std::vector<std::string> FeatureNames() {
  std::vector<std::string> names;
  for (Named& column : AllColumns()) names.push_back(std::move(column.name));
  return names;
}

std::vector<std::string> FeatureMeanings() {
  std::vector<std::string> meanings;
  for (Named& column : AllColumns()) {
    meanings.push_back(std::move(column.meaning));
  }
  return meanings;
}

}  // namespace tilefarm::cost_model
