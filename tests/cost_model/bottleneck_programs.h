// Scheduled programs with one bottleneck each that is built in, and beside each
// one the same kind of kernel without it. Their sizes follow from the target,
// so that the bottleneck is there on every processor.
#ifndef TILEFARM_TESTS_COST_MODEL_BOTTLENECK_PROGRAMS_H_
#define TILEFARM_TESTS_COST_MODEL_BOTTLENECK_PROGRAMS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/target/target.h"
#include "cost_model/bottleneck.h"

namespace tilefarm::cost_model {

// Replaces {NAME}.
inline std::string Filled(
    const std::string& text,
    const std::vector<std::pair<std::string, int64_t>>& words) {
  std::string filled = text;
  for (const auto& [name, value] : words) {
    filled = absl::StrReplaceAll(
        filled, {{absl::StrCat("{", name, "}"), absl::StrCat(value)}});
  }
  return filled;
}

// The largest register tile of a product: two vectors of columns, and as many
// rows as leave registers for what is loaded.
inline int TileRows(const target::Target& target) {
  return (target.vector_registers - 4) / 2;
}
inline int TileColumns(const target::Target& target) {
  return 2 * target.vector_lanes(4);
}

// C = A * B in register tiles of rows x columns, with `k` terms in one run,
// four of them unrolled.
inline std::string TiledProduct(int m, int n, int k, int rows, int columns,
                                const std::string& outer = "range") {
  constexpr char kText[] = R"(
@T.prim_func
def mm(A: T.Buffer(({M}, {K}), "float32"), B: T.Buffer(({K}, {N}), "float32"), C: T.Buffer(({M}, {N}), "float32")):
    for j0 in OUTER({PANELS}):
        for i0 in range({TILES}):
            for k0 in range({STEPS}):
                for k1 in T.unroll(4):
                    for i1 in T.unroll({ROWS}):
                        for j1 in T.vectorized({COLUMNS}):
                            with T.block("C"):
                                vi = T.axis.spatial({M}, i0 * {ROWS} + i1)
                                vj = T.axis.spatial({N}, j0 * {COLUMNS} + j1)
                                vk = T.axis.reduce({K}, k0 * 4 + k1)
                                with T.init():
                                    C[vi, vj] = T.float32(0)
                                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";
  return Filled(absl::StrReplaceAll(kText, {{"OUTER", outer}}),
                {{"M", m},
                 {"N", n},
                 {"K", k},
                 {"STEPS", k / 4},
                 {"PANELS", n / columns},
                 {"TILES", m / rows},
                 {"ROWS", rows},
                 {"COLUMNS", columns}});
}

// Each element is used once.
inline std::string Scaling(int64_t elements, int lanes) {
  constexpr char kText[] = R"(
@T.prim_func
def scale(A: T.Buffer(({N},), "float32"), B: T.Buffer(({N},), "float32")):
    for i0 in range({OUTER}):
        for i1 in T.unroll(4):
            for i2 in T.vectorized({LANES}):
                with T.block("B"):
                    vi = T.axis.spatial({N}, i0 * {FOUR} + i1 * {LANES} + i2)
                    B[vi] = A[vi] * T.float32(2)
)";
  const int64_t outer = elements / (4 * lanes);
  return Filled(kText, {{"N", outer * 4 * lanes},
                        {"OUTER", outer},
                        {"FOUR", 4 * lanes},
                        {"LANES", lanes}});
}

// One sum, one element after the other.
inline std::string SerialSum(int terms) {
  constexpr char kText[] = R"(
@T.prim_func
def dot(A: T.Buffer(({K},), "float32"), B: T.Buffer(({K},), "float32"), S: T.Buffer((1,), "float32")):
    for k in range({K}):
        with T.block("S"):
            vs = T.axis.spatial(1, 0)
            vk = T.axis.reduce({K}, k)
            with T.init():
                S[vs] = T.float32(0)
            S[vs] = S[vs] + A[vk] * B[vk]
)";
  return Filled(kText, {{"K", terms}});
}

// As many terms in eight vectors of sums, as rfactor leaves them.
inline std::string ManySums(int terms, int lanes) {
  constexpr char kText[] = R"(
@T.prim_func
def dot(A: T.Buffer(({K}, 8, {LANES}), "float32"), B: T.Buffer(({K}, 8, {LANES}), "float32"), S: T.Buffer((8, {LANES}), "float32")):
    for k in range({K}):
        for i in T.unroll(8):
            for v in T.vectorized({LANES}):
                with T.block("S"):
                    vi, vv, vk = T.axis.remap("SSR", [i, v, k])
                    with T.init():
                        S[vi, vv] = T.float32(0)
                    S[vi, vv] = S[vi, vv] + A[vk, vi, vv] * B[vk, vi, vv]
)";
  return Filled(kText, {{"K", terms / (8 * lanes)}, {"LANES", lanes}});
}

// A whole matrix is copied into panels, for `tiles` register tiles of rows.
inline std::string PackedProduct(int tiles, int rows, int columns) {
  constexpr char kText[] = R"(
@T.prim_func
def mm(A: T.Buffer(({M}, 256), "float32"), B: T.Buffer((256, {N}), "float32"), C: T.Buffer(({M}, {N}), "float32")):
    P = T.alloc_buffer((8, 256, {COLUMNS}), "float32")
    for j0, k in T.grid(8, 256):
        for j1 in T.vectorized({COLUMNS}):
            with T.block("P"):
                vj, vk, vl = T.axis.remap("SSS", [j0, k, j1])
                P[vj, vk, vl] = B[vk, vj * {COLUMNS} + vl]
    for j0, i0 in T.grid(8, {TILES}):
        for k0 in range(256):
            for i1 in T.unroll({ROWS}):
                for j1 in T.vectorized({COLUMNS}):
                    with T.block("C"):
                        vi = T.axis.spatial({M}, i0 * {ROWS} + i1)
                        vj = T.axis.spatial({N}, j0 * {COLUMNS} + j1)
                        vk = T.axis.reduce(256, k0)
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * P[vj // {COLUMNS}, vk, vj % {COLUMNS}]
)";
  return Filled(kText, {{"M", tiles * rows},
                        {"N", 8 * columns},
                        {"TILES", tiles},
                        {"ROWS", rows},
                        {"COLUMNS", columns}});
}

struct BuiltIn {
  Bottleneck bottleneck;
  std::string program;
  std::string without;  // a program that is not held back by it
  int cores = 1;        // that both are for
};

// One for each of six, for the processor of `target`. The last is for a machine
// of `cores`, 2 or more.
inline std::vector<BuiltIn> BuiltInBottlenecks(const target::Target& target,
                                               int cores) {
  const int lanes = target.vector_lanes(4);
  const int rows = TileRows(target), columns = TileColumns(target);
  // Two arrays that are larger than the last cache together, and two that fit
  // the first one.
  const int64_t beyond =
      std::max<int64_t>(target.caches.l3_bytes, 64 << 20) / 4;
  const int64_t within = target.caches.l1_bytes / 16;
  const std::string tile =
      TiledProduct(8 * rows, 8 * columns, 256, rows, columns);
  return {{Bottleneck::kMemory, Scaling(beyond, lanes), Scaling(within, lanes)},
          // Two vectors of sums wait for themselves instead.
          {Bottleneck::kArithmetic, tile,
           TiledProduct(8 * rows, 8 * columns, 256, 2, lanes)},
          {Bottleneck::kLatency, SerialSum(4096), ManySums(4096, lanes)},
          // The copies are for four rows, or for many.
          {Bottleneck::kPacking, PackedProduct(1, 4, columns),
           PackedProduct(64, rows, columns)},
          // One column more than a vector takes two.
          {Bottleneck::kTail,
           TiledProduct(8 * rows, lanes + 1, 256, rows, lanes + 1),
           TiledProduct(8 * rows, columns, 256, rows, columns)},
          // One core computes a panel more than the others.
          {Bottleneck::kImbalance,
           TiledProduct(128 * rows, (cores + 1) * columns, 512, rows, columns,
                        "T.parallel"),
           TiledProduct(128 * rows, 2 * cores * columns, 512, rows, columns,
                        "T.parallel"),
           cores}};
}

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_TESTS_COST_MODEL_BOTTLENECK_PROGRAMS_H_
