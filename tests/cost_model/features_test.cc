#include "cost_model/features.h"

#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_format.h"
#include "compiler/ir/parser.h"
#include "gtest/gtest.h"
#include "tests/cost_model/test_programs.h"

namespace tilefarm::cost_model {
namespace {

target::Target Avx512() {
  target::Target target;
  target.kind = "x86-64";
  target.cpu = "znver4";
  target.vector_bits = 512;
  target.vector_registers = 32;
  target.caches = {32 << 10, 1 << 20, 32 << 20};
  target.cores = 4;
  return target;
}

double Log(double x) { return std::log2(1 + x); }

// A row with named columns.
using Row = std::map<std::string, float>;
std::vector<Row> RowsOf(const FeatureRows& features) {
  const std::vector<std::string> names = FeatureNames();
  std::vector<Row> rows(static_cast<size_t>(features.rows));
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t c = 0; c < names.size(); ++c) {
      rows[r][names[c]] = features.values[r * kColumns + c];
    }
  }
  return rows;
}
// The update of the matmul: its second store.
Row MatmulRow(const MatmulTiles& tiles) {
  return RowsOf(ExtractFeatures(TiledMatmul(tiles), Avx512())).at(1);
}

TEST(FeatureColumns, HaveDifferentNamesAndAMeaning) {
  const std::vector<std::string> names = FeatureNames();
  const std::vector<std::string> meanings = FeatureMeanings();
  ASSERT_EQ(names.size(), static_cast<size_t>(kColumns));
  ASSERT_EQ(meanings.size(), static_cast<size_t>(kColumns));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(),
            names.size());
  for (const std::string& meaning : meanings) EXPECT_FALSE(meaning.empty());
}

TEST(BuildLoopNest, SeesLoopsAccessesAndOperations) {
  const LoopNest nest = BuildLoopNest(TiledMatmul({}));
  ASSERT_EQ(nest.stores.size(), 2u);
  const NestStore& init = nest.stores[0];
  EXPECT_TRUE(init.is_init);
  ASSERT_EQ(init.loops.size(), 6u);
  EXPECT_EQ(init.loops[2].extent, 1);  // k0: a reduction
  const NestStore& update = nest.stores[1];
  EXPECT_FALSE(update.is_init);
  EXPECT_EQ(update.loops[2].extent, 8);
  EXPECT_EQ(update.loops[5].kind, ir::ForKind::kVectorized);
  ASSERT_EQ(update.accesses.size(), 3u);
  EXPECT_TRUE(update.accesses[0].reads && update.accesses[0].writes);
  EXPECT_EQ(update.ops.float_fma, 1);
  EXPECT_EQ(update.ops.float_mul, 0);
  EXPECT_EQ(update.domain_size, 64.0 * 64 * 64);
  // B[vk, vn]: k1 moves the first index by one.
  const NestAccess& b = update.accesses[2];
  EXPECT_EQ(b.strides[0 * 6 + 4], 1);
  EXPECT_EQ(b.spans[0 * 6 + 2], 56);
  EXPECT_EQ(b.strides[1 * 6 + 5], 1);
}

// A copy of the nest with `ones` loops of one iteration inside each loop of a
// store, as loops or as counts.
LoopNest WithOnes(LoopNest nest, int ones, bool as_loops) {
  for (NestStore& store : nest.stores) {
    const std::vector<NestLoop> loops = std::move(store.loops);
    store.loops.clear();
    for (const NestLoop& loop : loops) {
      store.loops.push_back(loop);
      if (as_loops) {
        store.loops.resize(store.loops.size() + ones);
      } else {
        store.loops.back().ones = ones;
      }
    }
    for (NestAccess& access : store.accesses) {
      for (std::vector<double>* moves : {&access.strides, &access.spans}) {
        std::vector<double> wider;
        for (const double move : *moves) {
          wider.push_back(move);
          if (as_loops) wider.resize(wider.size() + ones);
        }
        *moves = std::move(wider);
      }
    }
  }
  return nest;
}

TEST(BuildLoopNest, ConditionsOnLoopVariablesComputeNoValues) {
  const auto module = ir::ParseModule(R"(
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), M: T.Buffer((64,), "int32"), B: T.Buffer((64, 3), "float32"), C: T.Buffer((64,), "float32")):
        for i, r in T.grid(64, 3):
            with T.block("B"):
                vi, vr = T.axis.remap("SS", [i, r])
                B[vi, vr] = T.if_then_else(1 <= vi + vr and vi * 2 + vr < 65, A[vi + vr - 1], T.float32(0))
        for i in range(64):
            with T.block("C"):
                vi = T.axis.spatial(64, i)
                C[vi] = T.if_then_else(M[vi] + 1 < 3, A[vi], T.float32(0))
)");
  ASSERT_TRUE(module.ok()) << module.status();
  const LoopNest nest = BuildLoopNest(*module->functions[0]);
  ASSERT_EQ(nest.stores.size(), 2);
  EXPECT_EQ(nest.stores[0].ops.int_add, 0);
  EXPECT_EQ(nest.stores[0].ops.int_mul, 0);
  EXPECT_EQ(nest.stores[0].ops.int_compare, 2);
  EXPECT_EQ(nest.stores[0].ops.selects, 1);
  // Those on data do.
  EXPECT_EQ(nest.stores[1].ops.int_add, 1);
}

TEST(FeaturesOf, LoopsOfOneIterationNeedNotBeListed) {
  for (const ir::ForKind reduce :
       {ir::ForKind::kSerial, ir::ForKind::kUnrolled}) {
    MatmulTiles tiles;
    tiles.outer = ir::ForKind::kParallel;
    tiles.reduce = reduce;
    const LoopNest nest = BuildLoopNest(TiledMatmul(tiles));
    for (const int ones : {0, 1, 3}) {
      const FeatureRows listed =
          FeaturesOf(WithOnes(nest, ones, true), Avx512());
      const FeatureRows left_out =
          FeaturesOf(WithOnes(nest, ones, false), Avx512());
      EXPECT_EQ(listed.values, left_out.values) << ones;
      EXPECT_EQ(listed.values == FeaturesOf(nest, Avx512()).values, ones == 0);
    }
  }
}

TEST(BuildLoopNest, MergesTheLoadsOfAStencil) {
  using namespace ir;
  Buffer a = MakeBuffer("A", F32(), {66});
  Buffer b = MakeBuffer("B", F32(), {64});
  Var i = MakeVar("i");
  const LoopNest nest = BuildLoopNest(
      WithRoot({a, b}, MakeFor(i, IntConst(64),
                               MakeStore(b, {i},
                                         Load(a, {i}) + Load(a, {Expr(i) + 1}) +
                                             Load(a, {Expr(i) + 2})))));
  ASSERT_EQ(nest.stores.size(), 1u);
  ASSERT_EQ(nest.stores[0].accesses.size(), 2u);
  EXPECT_EQ(nest.stores[0].accesses[1].loads, 3);
  EXPECT_EQ(nest.stores[0].accesses[1].offset_spans[0], 2);
}

TEST(BuildLoopNest, SeesOneInstructionInADotProduct) {
  const auto program = ir::ParseFunction(R"(
@T.prim_func
def main(A: T.Buffer((8,), "uint8"), B: T.Buffer((2, 16, 4), "int8"), C: T.Buffer((16,), "int32")):
    for k in range(2):
        for l in T.vectorized(16, annotations={"tilefarm.dot_product": 1}):
            with T.block("C"):
                vk, vl = T.axis.remap("RS", [k, l])
                C[vl] = C[vl] + T.cast(A[vk * 4 + 1], "int32") * T.cast(B[vk, vl, 1], "int32") + T.cast(A[vk * 4], "int32") * T.cast(B[vk, vl, 0], "int32")
)",
                                         "main.py");
  ASSERT_TRUE(program.ok()) << program.status();
  const LoopNest nest = BuildLoopNest(**program);
  ASSERT_EQ(nest.stores.size(), 1u);
  const NestStore& store = nest.stores[0];
  EXPECT_EQ(store.ops.int_ops(), 1);
  EXPECT_EQ(store.ops.casts, 0);
  ASSERT_EQ(store.accesses.size(), 3u);
  // One group of A for all lanes; the lanes of B are a group apart.
  const NestAccess& a = store.accesses[1];
  EXPECT_EQ(a.loads, 1);
  EXPECT_EQ(a.group, 4);
  EXPECT_EQ(a.strides[0 * 2 + 1], 0);
  const NestAccess& b = store.accesses[2];
  EXPECT_EQ(b.loads, 1);
  EXPECT_EQ(b.strides[1 * 2 + 1] * 4, 1);
  EXPECT_EQ(b.spans[1 * 2 + 1], 15);
}

TEST(Features, CountTheRegistersOfDotProducts) {
  const auto program = ir::ParseFunction(R"(
@T.prim_func
def main(A: T.Buffer((8, 64), "uint8"), B: T.Buffer((16, 2, 16, 4), "int8"), C: T.Buffer((8, 32), "int32")):
    for k in range(16):
        for i in T.unroll(8):
            for j in T.unroll(2):
                for l in T.vectorized(16, annotations={"tilefarm.dot_product": 1}):
                    with T.block("C"):
                        vk, vi = T.axis.remap("RS", [k, i])
                        vj, vl = T.axis.remap("SS", [j, l])
                        C[vi, vj * 16 + vl] = C[vi, vj * 16 + vl] + (T.cast(A[vi, vk * 4], "int32") * T.cast(B[vk, vj, vl, 0], "int32") + T.cast(A[vi, vk * 4 + 1], "int32") * T.cast(B[vk, vj, vl, 1], "int32") + T.cast(A[vi, vk * 4 + 2], "int32") * T.cast(B[vk, vj, vl, 2], "int32") + T.cast(A[vi, vk * 4 + 3], "int32") * T.cast(B[vk, vj, vl, 3], "int32"))
)",
                                         "main.py");
  ASSERT_TRUE(program.ok()) << program.status();
  const std::vector<Row> rows = RowsOf(ExtractFeatures(**program, Avx512()));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_NEAR(rows[0].at("register.accumulators"), Log(16), 1e-4);
  EXPECT_NEAR(rows[0].at("register.load_vectors"), Log(2), 1e-4);
  EXPECT_NEAR(rows[0].at("register.broadcasts"), Log(8), 1e-4);
}

TEST(Features, DescribeTheMatmul) {
  const Row row = MatmulRow({});
  EXPECT_NEAR(row.at("float_fma"), Log(64 * 64 * 64), 1e-4);
  EXPECT_EQ(row.at("vectorized.count"), 1);
  EXPECT_NEAR(row.at("vectorized.innermost_extent"), Log(16), 1e-4);
  EXPECT_EQ(row.at("vectorized.position"), 1);
  EXPECT_EQ(row.at("parallel.count"), 0);
  EXPECT_NEAR(row.at("nest.reduction_iterations"), Log(64), 1e-4);
  EXPECT_EQ(row.at("inner1.is_reduction"), 1);  // k1
  // First C: updated, in contiguous lanes, repeated by k1.
  EXPECT_EQ(row.at("buffer0.updates"), 1);
  EXPECT_NEAR(row.at("buffer0.unique_bytes"), Log(64 * 64 * 4), 1e-4);
  EXPECT_EQ(row.at("buffer0.vector_contiguous"), 1);
  EXPECT_EQ(row.at("buffer0.reused"), 1);
  EXPECT_NEAR(row.at("buffer0.reuse_iterations"), Log(16), 1e-4);
  EXPECT_NEAR(row.at("buffer0.reuse_count"), Log(8), 1e-4);
  // A is broadcast to the lanes.
  EXPECT_EQ(
      row.at("buffer1.vector_broadcast") + row.at("buffer2.vector_broadcast"),
      1);
  EXPECT_EQ(row.at("buffer3.bytes"), 0);
  EXPECT_EQ(row.at("register.lane_waste"), 0);
  EXPECT_EQ(row.at("nest.waste"), 0);
}

// for k: for i of 6: for j (vectorized) of 64: C[i, j] += A[i, k] * B[k, j]
Row RegisterTileRow(ir::ForKind rows, ir::AttrMap annotations = {}) {
  using namespace ir;
  Buffer a = MakeBuffer("A", F32(), {6, 256});
  Buffer b = MakeBuffer("B", F32(), {256, 64});
  Buffer c = MakeBuffer("C", F32(), {6, 64});
  Var k = MakeVar("k"), i = MakeVar("i"), j = MakeVar("j");
  Stmt body =
      MakeStore(c, {i, j}, Load(c, {i, j}) + Load(a, {i, k}) * Load(b, {k, j}));
  body = MakeFor(j, IntConst(64), body, ForKind::kVectorized);
  body = MakeFor(i, IntConst(6), body, rows);
  body =
      MakeFor(k, IntConst(256), body, ForKind::kSerial, std::move(annotations));
  const FeatureRows features =
      ExtractFeatures(WithRoot({a, b, c}, body), Avx512());
  return RowsOf(features).at(0);
}

TEST(Features, SeeRegisterTiles) {
  const Row row = RegisterTileRow(ir::ForKind::kUnrolled);
  EXPECT_NEAR(row.at("register.accumulators"), Log(24), 1e-4);  // 6 x 4
  EXPECT_NEAR(row.at("register.load_vectors"), Log(4), 1e-4);
  EXPECT_NEAR(row.at("register.broadcasts"), Log(6), 1e-4);
  EXPECT_NEAR(row.at("register.pressure"), 29.0 / 32, 1e-4);
  EXPECT_EQ(row.at("register.spills"), 0);
}

TEST(Features, SeeTilesThatAPragmaUnrolls) {
  const Row plain = RegisterTileRow(ir::ForKind::kSerial);
  EXPECT_NEAR(plain.at("register.accumulators"), Log(4), 1e-4);
  EXPECT_NEAR(plain.at("register.kept_iterations"), Log(1), 1e-4);
  const Row tile = RegisterTileRow(ir::ForKind::kUnrolled);
  EXPECT_NEAR(tile.at("register.kept_iterations"), Log(256), 1e-4);
  // Six rows of four registers each.
  const ir::AttrMap pragmas = {{"pragma_auto_unroll_max_step", 24},
                               {"pragma_unroll_explicit", 1}};
  const Row unrolled = RegisterTileRow(ir::ForKind::kSerial, pragmas);
  EXPECT_EQ(unrolled.at("register.accumulators"),
            tile.at("register.accumulators"));
  EXPECT_NEAR(unrolled.at("nest.body_unrolled"), Log(6), 1e-4);
  // With too many copies, or only a hint, the loop stays.
  ir::AttrMap small = pragmas;
  small["pragma_auto_unroll_max_step"] = 23;
  EXPECT_NEAR(
      RegisterTileRow(ir::ForKind::kSerial, small).at("register.accumulators"),
      Log(4), 1e-4);
  ir::AttrMap hint = pragmas;
  hint["pragma_unroll_explicit"] = 0;
  EXPECT_NEAR(
      RegisterTileRow(ir::ForKind::kSerial, hint).at("register.accumulators"),
      Log(4), 1e-4);
}

TEST(Features, SeeLoadsOfLanesThatAreApart) {
  const auto more_loads = [](int stride) {
    const auto module = ir::ParseModule(absl::StrFormat(R"(
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, %d), "float32"), B: T.Buffer((64, 32), "float32")):
        for i in range(64):
            for j in T.vectorized(32):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj * %d]
)",
                                                        32 * stride, stride));
    EXPECT_TRUE(module.ok()) << module.status();
    return RowsOf(ExtractFeatures(*module->functions[0], Avx512()))
        .at(0)
        .at("register.more_loads");
  };
  // Two registers: as many loads as elements from one lane to the next, and
  // shuffles that join them; then a load and an insertion for each lane.
  EXPECT_EQ(more_loads(1), 0);
  EXPECT_NEAR(more_loads(2), Log(2 * 2), 1e-4);
  EXPECT_NEAR(more_loads(4), Log(2 * 6), 1e-4);
  EXPECT_NEAR(more_loads(5), Log(2 * 32 - 2), 1e-4);
}

TEST(Features, SeeLoadsThatRegistersDoNotHold) {
  // Six rows of four registers leave eight. With k outside, a step uses a value
  // of A for all columns, and four vectors of B for all rows. With k inside,
  // those of both steps would have to stay: two and eight.
  const auto more_loads = [](const std::string& loops) {
    const auto module = ir::ParseModule(absl::StrFormat(R"(
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((6, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((6, 64), "float32")):
        for k0 in range(32):
%s
                        for j1 in T.vectorized(16):
                            with T.block("C"):
                                vi = T.axis.spatial(6, i)
                                vj = T.axis.spatial(64, j0 * 16 + j1)
                                vk = T.axis.reduce(64, k0 * 2 + k1)
                                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)",
                                                        loops));
    EXPECT_TRUE(module.ok()) << module.status();
    return RowsOf(ExtractFeatures(*module->functions[0], Avx512()))
        .at(0)
        .at("register.more_loads");
  };
  const std::string k = "for k1 in T.unroll(2):\n";
  const std::string i = "for i in T.unroll(6):\n";
  const std::string j = "for j0 in T.unroll(4):\n";
  const std::string first(12, ' '), second(16, ' '), third(20, ' ');
  EXPECT_EQ(more_loads(first + k + second + i + third + j), 0);
  // Each of 48 uses of the 8 vectors of B; six of these stay.
  EXPECT_NEAR(more_loads(first + i + second + j + third + k), Log(40 * 2 / 8.0),
              1e-4);
}

TEST(Features, SeeLanesThatIdle) {
  MatmulTiles tiles;
  tiles.n1 = 20;
  EXPECT_NEAR(MatmulRow(tiles).at("register.lane_waste"), 1 - 20.0 / 32, 1e-4);
}

TEST(Features, SeeCores) {
  MatmulTiles tiles;
  tiles.outer = ir::ForKind::kParallel;
  tiles.m0 = 6;
  const Row row = MatmulRow(tiles);
  EXPECT_NEAR(row.at("parallel_work.tasks_per_core"), Log(1.5), 1e-4);
  EXPECT_NEAR(row.at("parallel_work.imbalance"), 8.0 / 6 - 1, 1e-4);
}

TEST(Features, SeeWhatFitsIntoCaches) {
  MatmulTiles small;  // 48 KiB in total
  MatmulTiles large = small;
  large.k0 = 512;
  EXPECT_LT(MatmulRow(small).at("l2.traffic"),
            MatmulRow(large).at("l2.traffic"));
  // The small one fits into L2 as a whole, where the run before left it.
  EXPECT_EQ(MatmulRow(small).at("l2.traffic"), 0);
  target::Target tiny = Avx512();
  tiny.caches.l1_bytes = 4 << 10;
  const Row row = RowsOf(ExtractFeatures(TiledMatmul(small), tiny)).at(1);
  EXPECT_GT(row.at("l1.traffic"), row.at("l2.traffic"));
  EXPECT_LT(row.at("l1.fit_bytes"), Log(4 << 10));
  EXPECT_GT(row.at("l1.next_bytes"), Log(4 << 10));
}

// 16 lines of B that are 4096 bytes apart share a set of 8 ways: a tile of 1
// KiB does not stay in the cache. A line further apart, each has its own.
TEST(Features, SeeRowsThatShareASet) {
  const target::Target target = Avx512();
  ASSERT_LT(target.caches.l1_bytes, 16 * 4096);
  MatmulTiles shared{.n0 = 64, .k0 = 64, .k1 = 16};
  MatmulTiles apart = shared;
  apart.n0 = 65;
  const auto traffic = [&](const MatmulTiles& tiles) {
    return std::exp2(MatmulRow(tiles).at("l1.traffic")) /
           static_cast<double>(tiles.n0);
  };
  EXPECT_GT(traffic(shared), 4 * traffic(apart));
  // Eight of them are held.
  shared.k1 = apart.k1 = 8;
  EXPECT_LT(traffic(shared), 1.1 * traffic(apart));
}

TEST(Features, SeeGuardedTails) {
  using namespace ir;
  Buffer a = MakeBuffer("A", F32(), {100});
  Var o = MakeVar("o"), i = MakeVar("i"), v = MakeVar("v");
  BlockNode block;
  block.name = "A";
  block.iters = {MakeIter(v, 100, IterType::kSpatial, Expr(o) * 16 + Expr(i))};
  block.predicate = LT(Expr(o) * 16 + Expr(i), IntConst(100));
  block.body = MakeStore(a, {v}, FloatConst(1, F32()));
  Stmt body = MakeFor(i, IntConst(16), BlockOf(std::move(block)));
  const Row row =
      RowsOf(ExtractFeatures(WithRoot({a}, MakeFor(o, IntConst(7), body)),
                             Avx512()))
          .at(0);
  EXPECT_EQ(row.at("nest.guards"), 1);
  EXPECT_NEAR(row.at("nest.waste"), Log(0.12), 1e-4);
}

TEST(Features, EveryValueIsFinite) {
  using namespace ir;
  // Scalars, gathers, extents of 1, no loops at all.
  Buffer index = MakeBuffer("I", DataType::Index(), {8});
  Buffer a = MakeBuffer("A", F32(), {8});
  Buffer s = MakeBuffer("S", F32(), {});
  Var i = MakeVar("i");
  const Stmt body = MakeSeq({
      MakeStore(s, {}, FloatConst(1, F32())),
      MakeFor(i, IntConst(1), MakeStore(s, {}, Load(s, {}) + Load(a, {i}))),
      MakeFor(i, IntConst(8),
              MakeIf(GT(i, IntConst(2)),
                     MakeStore(a, {Load(index, {i})}, Load(s, {})))),
  });
  const FeatureRows features =
      ExtractFeatures(WithRoot({index, a, s}, body), Avx512());
  EXPECT_EQ(features.rows, 3);
  for (const float value : features.values) EXPECT_TRUE(std::isfinite(value));
  EXPECT_EQ(RowsOf(features)[2].at("buffer0.irregular"), 1);
}

TEST(Features, AProgramWithoutStoresHasNoRows) {
  const FeatureRows features =
      ExtractFeatures(WithRoot({}, ir::NoOp()), Avx512());
  EXPECT_EQ(features.rows, 0);
  EXPECT_TRUE(features.values.empty());
}

}  // namespace
}  // namespace tilefarm::cost_model
