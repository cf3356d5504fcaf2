// Lowered functions, built by hand, run on this machine.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/codegen/lowered_function.h"

namespace tilefarm::codegen {
namespace {

using ir::BinaryOp;
using ir::DataType;
using ir::Expr;
using ir::IntConst;

Expr VectorLoad(const ir::Buffer& buffer, Expr index, Expr predicate) {
  const DataType dtype = buffer->dtype.with_lanes(index->dtype.lanes);
  return std::make_shared<const ir::LoadNode>(
      buffer, std::vector<Expr>{std::move(index)}, dtype, predicate);
}

// out[i] = op(a[i], b[i]) over the whole range, one element at a time.
template <typename T>
std::vector<T> RunBinary(BinaryOp op, DataType dtype, std::vector<T> a,
                         std::vector<T> b) {
  const auto n = static_cast<int64_t>(a.size());
  const auto buf_a = Flat("a", dtype, n), buf_b = Flat("b", dtype, n),
             out = Flat("out", dtype, n);
  const auto i = ir::MakeVar("i");
  const auto kernel = Kernel::Build(
      Function({buf_a, buf_b, out},
               For(i, n,
                   ir::MakeStore(out, {i},
                                 ir::MakeBinary(op, ir::Load(buf_a, {i}),
                                                ir::Load(buf_b, {i}))))),
      HostOptions());
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  std::vector<T> result(a.size());
  if (kernel.ok()) {
    EXPECT_EQ(kernel->Call("kernel", a.data(), b.data(), result.data()), 0);
  }
  return result;
}

TEST(Emit, ScalarLoopAddsFloats) {
  EXPECT_THAT(RunBinary<float>(BinaryOp::kAdd, kF32, {1, 2, 3}, {10, 20, 30}),
              testing::ElementsAre(11, 22, 33));
}

TEST(Emit, FloorDivisionAndModuloFloor) {
  const std::vector<int32_t> a = {7, -7, 7, -7, 6, -6, 0};
  const std::vector<int32_t> b = {2, 2, -2, -2, 3, 3, 5};
  EXPECT_THAT(RunBinary(BinaryOp::kFloorDiv, DataType::Int(32), a, b),
              testing::ElementsAre(3, -4, -4, 3, 2, -2, 0));
  EXPECT_THAT(RunBinary(BinaryOp::kFloorMod, DataType::Int(32), a, b),
              testing::ElementsAre(1, 1, -1, -1, 0, 0, 0));
  EXPECT_THAT(RunBinary(BinaryOp::kDiv, DataType::Int(32), a, b),
              testing::ElementsAre(3, -3, -3, 3, 2, -2, 0));
  EXPECT_THAT(RunBinary(BinaryOp::kMod, DataType::Int(32), a, b),
              testing::ElementsAre(1, -1, 1, -1, 0, 0, 0));
}

TEST(Emit, DivisionNeverTraps) {
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  const std::vector<int64_t> a = {kLowest, 5, kLowest, 5};
  const std::vector<int64_t> b = {-1, 0, 0, -1};
  EXPECT_THAT(RunBinary(BinaryOp::kFloorDiv, DataType::Int(64), a, b),
              testing::ElementsAre(kLowest, 0, 0, -5));
  EXPECT_THAT(RunBinary(BinaryOp::kFloorMod, DataType::Int(64), a, b),
              testing::ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(RunBinary<uint8_t>(BinaryOp::kFloorDiv, DataType::UInt(8),
                                 {200, 7}, {3, 0}),
              testing::ElementsAre(66, 0));
}

TEST(Emit, ShiftCountsAreTakenModuloTheWidth) {
  EXPECT_THAT(RunBinary<int32_t>(BinaryOp::kShiftLeft, DataType::Int(32),
                                 {1, 1, 1}, {3, 32, 33}),
              testing::ElementsAre(8, 1, 2));
  EXPECT_THAT(
      RunBinary<int32_t>(BinaryOp::kShiftRight, DataType::Int(32), {-8}, {1}),
      testing::ElementsAre(-4));
}

// Copies `lanes` elements with the given index shapes.
TEST(Emit, VectorIndexShapes) {
  constexpr int kLanes = 8;
  std::vector<float> in(64);
  std::iota(in.begin(), in.end(), 0.0f);
  const auto a = Flat("a", kF32, 64), out = Flat("out", kF32, 64);
  struct Case {
    const char* name;
    Expr index;
    std::vector<float> expected;
  };
  const Expr quadratic = ir::MakeBinary(
      BinaryOp::kMul, ir::MakeRamp(IntConst(0), IntConst(1), kLanes),
      ir::MakeRamp(IntConst(0), IntConst(1), kLanes));
  const std::vector<Case> cases = {
      {"contiguous",
       ir::MakeRamp(IntConst(3), IntConst(1), kLanes),
       {3, 4, 5, 6, 7, 8, 9, 10}},
      {"reversed",
       ir::MakeRamp(IntConst(10), IntConst(-1), kLanes),
       {10, 9, 8, 7, 6, 5, 4, 3}},
      {"broadcast",
       ir::MakeBroadcast(IntConst(5), kLanes),
       {5, 5, 5, 5, 5, 5, 5, 5}},
      {"strided",
       ir::MakeRamp(IntConst(1), IntConst(4), kLanes),
       {1, 5, 9, 13, 17, 21, 25, 29}},
      {"gather", quadratic, {0, 1, 4, 9, 16, 25, 36, 49}},
      {"sum of ramps",
       ir::MakeBinary(BinaryOp::kAdd,
                      ir::MakeRamp(IntConst(1), IntConst(1), kLanes),
                      ir::MakeBroadcast(IntConst(4), kLanes)),
       {5, 6, 7, 8, 9, 10, 11, 12}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Expr to = ir::MakeRamp(IntConst(0), IntConst(1), kLanes);
    const auto load = Kernel::Build(
        Function({a, out}, ir::MakeStore(out, {to}, ir::Load(a, {c.index}))),
        HostOptions());
    ASSERT_TRUE(load.ok()) << load.status();
    std::vector<float> got(64, -1);
    ASSERT_EQ(load->Call("kernel", in.data(), got.data()), 0);
    EXPECT_EQ(std::vector<float>(got.begin(), got.begin() + kLanes),
              c.expected);
    EXPECT_EQ(got[kLanes], -1);
    // Storing with the same index shape writes the lanes there.
    const auto store = Kernel::Build(
        Function({a, out}, ir::MakeStore(out, {c.index}, ir::Load(a, {to}))),
        HostOptions());
    ASSERT_TRUE(store.ok()) << store.status();
    std::vector<float> expected(64, -1), stored(64, -1);
    for (int lane = 0; lane < kLanes; ++lane) {
      expected[static_cast<size_t>(c.expected[lane])] = in[lane];
    }
    ASSERT_EQ(store->Call("kernel", in.data(), stored.data()), 0);
    EXPECT_EQ(stored, expected);
  }
}

TEST(Emit, PredicatesMaskLanesAndTouchNothingElse) {
  constexpr int kLanes = 16;
  const auto a = Flat("a", kF32, 1 << 20), out = Flat("out", kF32, 1 << 20);
  const Expr lanes = ir::MakeRamp(IntConst(0), IntConst(1), kLanes);
  const Expr below = ir::MakeBinary(BinaryOp::kLT, lanes,
                                    ir::MakeBroadcast(IntConst(5), kLanes));
  // Lanes from 5 on would read and write past the end of the page.
  const long page = sysconf(_SC_PAGESIZE);
  char* pages =
      static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(mprotect(pages + page, page, PROT_NONE), 0);
  auto* edge = reinterpret_cast<float*>(pages + page) - 5;
  std::vector<float> in(kLanes, 2), zeros(kLanes, 7);
  // Loads: masked lanes read as zero.
  const auto reader = Kernel::Build(
      Function({a, out},
               ir::MakeStore(out, {lanes}, VectorLoad(a, lanes, below))),
      HostOptions());
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (int i = 0; i < 5; ++i) edge[i] = 3;
  ASSERT_EQ(reader->Call("kernel", edge, zeros.data()), 0);
  for (int i = 0; i < kLanes; ++i) EXPECT_EQ(zeros[i], i < 5 ? 3 : 0);
  // Stores.
  const auto writer = Kernel::Build(
      Function({a, out},
               ir::MakeStore(out, {lanes}, ir::Load(a, {lanes}), below)),
      HostOptions());
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_EQ(writer->Call("kernel", in.data(), edge), 0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(edge[i], 2);
  munmap(pages, 2 * page);
}

TEST(Emit, IfThenElseReadsOnlyTheChosenSide) {
  constexpr int kLanes = 8;
  const auto a = Flat("a", kF32, 64), out = Flat("out", kF32, 64);
  const Expr lanes = ir::MakeRamp(IntConst(0), IntConst(1), kLanes);
  const Expr below = ir::MakeBinary(BinaryOp::kLT, lanes,
                                    ir::MakeBroadcast(IntConst(3), kLanes));
  const auto i = ir::MakeVar("i");
  const auto vector = Kernel::Build(
      Function({a, out},
               ir::MakeStore(
                   out, {lanes},
                   ir::IfThenElseExpr(
                       below, ir::Load(a, {lanes}),
                       ir::MakeBroadcast(ir::FloatConst(9, kF32), kLanes)))),
      HostOptions());
  ASSERT_TRUE(vector.ok()) << vector.status();
  const auto scalar = Kernel::Build(
      Function({a, out},
               For(i, kLanes,
                   ir::MakeStore(out, {i},
                                 ir::IfThenElseExpr(ir::LT(i, IntConst(3)),
                                                    ir::Load(a, {i}),
                                                    ir::FloatConst(9, kF32))))),
      HostOptions());
  ASSERT_TRUE(scalar.ok()) << scalar.status();
  const long page = sysconf(_SC_PAGESIZE);
  char* pages =
      static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(mprotect(pages + page, page, PROT_NONE), 0);
  auto* edge = reinterpret_cast<float*>(pages + page) - 3;
  edge[0] = edge[1] = edge[2] = 1;
  for (const Kernel* kernel : {&*vector, &*scalar}) {
    std::vector<float> got(kLanes);
    ASSERT_EQ(kernel->Call("kernel", edge, got.data()), 0);
    EXPECT_THAT(got, testing::ElementsAre(1, 1, 1, 9, 9, 9, 9, 9));
  }
  munmap(pages, 2 * page);
}

TEST(Emit, LocalBuffersBecomeRegisters) {
  // acc[0:16] += a[16 k : 16 k + 16], then stored.
  const auto a = Flat("a", kF32, 1024), out = Flat("out", kF32, 16),
             acc = Flat("acc", kF32, 16, "local");
  const auto k = ir::MakeVar("k");
  const Expr all = ir::MakeRamp(IntConst(0), IntConst(1), 16);
  const auto function = Function(
      {a, out},
      ir::MakeAlloc(
          acc,
          ir::MakeSeq(
              {ir::MakeStore(acc, {all},
                             ir::MakeBroadcast(ir::FloatConst(0, kF32), 16)),
               For(k, 64,
                   ir::MakeStore(
                       acc, {all},
                       ir::MakeBinary(
                           BinaryOp::kAdd, ir::Load(acc, {all}),
                           ir::Load(a,
                                    {ir::MakeRamp(k * 16, IntConst(1), 16)})))),
               ir::MakeStore(out, {all}, ir::Load(acc, {all}))})));
  const std::vector<LoweredFunction> functions = {{function, "kernel"}};
  const auto text = EmitLlvmIr(functions, HostOptions(), /*optimized=*/true);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, testing::Not(testing::HasSubstr("alloca")));
  EXPECT_THAT(*text, testing::HasSubstr("phi <16 x float>"));
  const auto kernel = Kernel::Build(function, HostOptions());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<float> in(1024, 1), got(16);
  ASSERT_EQ(kernel->Call("kernel", in.data(), got.data()), 0);
  EXPECT_EQ(got, std::vector<float>(16, 64));
}

int Occurrences(const std::string& text, const std::string& of) {
  int found = 0;
  for (size_t at = 0; (at = text.find(of, at)) != std::string::npos; ++at) {
    ++found;
  }
  return found;
}

int CountPrefetches(const ir::PrimFuncPtr& function) {
  const std::vector<LoweredFunction> functions = {{function, "kernel"}};
  const auto text = EmitAssembly(functions, HostOptions());
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? Occurrences(*text, "prefetch") : 0;
}

TEST(Emit, LoopsFetchAheadWhatTheyStream) {
  // out[0:16] = b[0:16] + a[16 k : 16 k + 16] * a[16 k : 16 k + 16]
  const auto a = Flat("a", kF32, 1024), b = Flat("b", kF32, 16),
             out = Flat("out", kF32, 16);
  const auto k = ir::MakeVar("k");
  const Expr all = ir::MakeRamp(IntConst(0), IntConst(1), 16);
  const auto load_a = [&] {
    return ir::Load(a, {ir::MakeRamp(k * 16, IntConst(1), 16)});
  };
  const auto body = ir::MakeStore(
      out, {all},
      ir::MakeBinary(BinaryOp::kAdd, ir::Load(b, {all}),
                     ir::MakeBinary(BinaryOp::kMul, load_a(), load_a())));
  const auto count = [&](ir::AttrMap annotations) {
    return CountPrefetches(Function(
        {a, b, out},
        ir::MakeFor(k, IntConst(64), body, ir::ForKind::kSerial, annotations)));
  };
  EXPECT_EQ(count({}), 0);
  EXPECT_EQ(count({{ir::kPrefetchBytes, ir::Attr(0)}}), 0);
  // One prefetch, although it is read twice; b does not move.
  EXPECT_EQ(count({{ir::kPrefetchBytes, ir::Attr(4096)}}), 1);
}

TEST(Emit, LoopsOverLinesFetchTheNextRow) {
  // out[0:16] += a[16 l + k] * a[16 l + k] * b[k]
  const auto a = Flat("a", kF32, 1024), b = Flat("b", kF32, 16),
             out = Flat("out", kF32, 16);
  const auto l = ir::MakeVar("l"), k = ir::MakeVar("k");
  const Expr all = ir::MakeRamp(IntConst(0), IntConst(1), 16);
  const auto load_a = [&] { return ir::Load(a, {l * 16 + k}); };
  const auto product = ir::MakeBinary(
      BinaryOp::kMul, ir::MakeBinary(BinaryOp::kMul, load_a(), load_a()),
      ir::Load(b, {k}));
  const auto body =
      ir::MakeStore(out, {all},
                    ir::MakeBinary(BinaryOp::kAdd, ir::Load(out, {all}),
                                   ir::MakeBroadcast(product, 16)));
  const auto inner = ir::MakeFor(k, IntConst(16), body);
  const auto count = [&](ir::Attr value, bool nested = true) {
    return CountPrefetches(Function(
        {a, b, out},
        nested
            ? ir::MakeFor(l, IntConst(64), inner, ir::ForKind::kSerial,
                          {{ir::kPrefetchLines, std::move(value)}})
            : ir::MakeFor(k, IntConst(16), ir::Substitute(body, {{l.get(), k}}),
                          ir::ForKind::kSerial,
                          {{ir::kPrefetchLines, std::move(value)}})));
  };
  // One prefetch, although it is read twice; b is the same for every line.
  EXPECT_EQ(count(ir::AttrList{"a", 4096, "b", 64}), 1);
  EXPECT_EQ(count(ir::AttrList{"b", 64}), 0);
  EXPECT_EQ(count(ir::AttrList{"no such buffer", 64}), 0);
  // Other lists are ignored.
  EXPECT_EQ(count(ir::AttrList{"a"}), 0);
  EXPECT_EQ(count(ir::AttrList{4096, "a"}), 0);
  EXPECT_EQ(count(ir::AttrList{"a", "b"}), 0);
  EXPECT_EQ(count(1), 0);
  EXPECT_EQ(count({}), 0);
  EXPECT_EQ(count(ir::AttrList{"a", 4096}, /*nested=*/false), 0);
}

TEST(Emit, WorkspaceLargerThanTheStackAndNestedLoops) {
  const int64_t n = 1 << 20;
  const auto in = Flat("in", kF32, n), out = Flat("out", kF32, n),
             space = Flat("space", kF32, n);
  const auto i = ir::MakeVar("i"), j = ir::MakeVar("j");
  const auto kernel = Kernel::Build(
      Function(
          {in, out},
          ir::MakeAlloc(
              space,
              ir::MakeSeq(
                  {For(i, n,
                       ir::MakeStore(
                           space, {i},
                           ir::Load(in, {i}) + ir::FloatConst(1, kF32))),
                   For(j, n, ir::MakeStore(out, {j}, ir::Load(space, {j})))}))),
      HostOptions());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<float> a(n, 2), b(n);
  for (int repeat = 0; repeat < 3; ++repeat) {
    ASSERT_EQ(kernel->Call("kernel", a.data(), b.data()), 0);
    EXPECT_EQ(b, std::vector<float>(n, 3));
  }
}

TEST(Emit, ThreadBindingIsRefusedOnACpu) {
  const auto out = Flat("out", kF32, 4);
  const auto i = ir::MakeVar("i");
  const auto loop = std::make_shared<const ir::ForNode>(
      i, IntConst(0), IntConst(4), ir::ForKind::kThreadBinding,
      ir::MakeStore(out, {i}, ir::FloatConst(0, kF32)), ir::AttrMap{},
      "threadIdx.x");
  const auto kernel = Kernel::Build(Function({out}, loop), HostOptions());
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(kernel.status().message()),
              testing::HasSubstr("threadIdx.x"));
}

TEST(Emit, UndefinedVariableIsAnInternalError) {
  const auto out = Flat("out", kF32, 4);
  const auto kernel =
      Kernel::Build(Function({out}, ir::MakeStore(out, {ir::MakeVar("ghost")},
                                                  ir::FloatConst(0, kF32))),
                    HostOptions());
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(kernel.status().message()),
              testing::HasSubstr("ghost"));
}

TEST(Emit, StreamingStoresWriteTheSameAtAnyAlignment) {
  constexpr int64_t kRows = 8, kWidth = 128;
  for (const int cores : {1, 2}) {
    for (const ir::ForKind kind :
         {ir::ForKind::kSerial, ir::ForKind::kParallel}) {
      const ir::Buffer a = Flat("A", kF32, kRows * kWidth);
      const ir::Buffer b = Flat("B", kF32, kRows * kWidth);
      const ir::Var row = ir::MakeVar("row");
      const Expr at = ir::MakeRamp(row * kWidth, IntConst(1), kWidth);
      const auto loop = ir::MakeFor(
          row, IntConst(kRows),
          ir::MakeStore(b, {at}, ir::Load(a, {at}) + ir::Load(a, {at})), kind,
          {{ir::kStreamingStores, 1}});
      const auto kernel =
          Kernel::Build(Function({a, b}, loop), HostOptions(cores));
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      std::vector<float> in(kRows * kWidth);
      std::iota(in.begin(), in.end(), 1.0f);
      alignas(64) static float out[kRows * kWidth + 32];
      for (const int64_t shift : {0, 1, 8, 16}) {
        std::fill(std::begin(out), std::end(out), -1.0f);
        ASSERT_EQ(kernel->Call("kernel", in.data(), out + shift), 0);
        for (int64_t i = 0; i < kRows * kWidth; ++i) {
          ASSERT_EQ(out[shift + i], 2 * in[i]) << shift << " " << i;
        }
        EXPECT_EQ(out[shift + kRows * kWidth], -1.0f);
        if (shift > 0) {
          EXPECT_EQ(out[shift - 1], -1.0f);
        }
      }
    }
  }
}

// The same if a tile's sums precede its stores: the sums exist once, and the
// choice is at the stores.
TEST(Emit, StreamingStoresOfTilesWriteTheSameAtAnyAlignment) {
  constexpr int64_t kTiles = 6, kRows = 16, kWidth = 16;
  constexpr int64_t kTile = kRows * kWidth;
  for (const int cores : {1, 2}) {
    for (const ir::ForKind kind :
         {ir::ForKind::kSerial, ir::ForKind::kParallel}) {
      const ir::Buffer a = Flat("A", kF32, kTiles * kTile);
      const ir::Buffer b = Flat("B", kF32, kTiles * kTile);
      const ir::Buffer sums = Flat("sums", kF32, kTile);
      const ir::Var tile = ir::MakeVar("tile");
      std::vector<ir::Stmt> stmts;
      for (int64_t row = 0; row < kRows; ++row) {
        const Expr in =
            ir::MakeRamp(tile * kTile + row * kWidth, IntConst(1), kWidth);
        const Expr at =
            ir::MakeRamp(IntConst(row * kWidth), IntConst(1), kWidth);
        stmts.push_back(
            ir::MakeStore(sums, {at}, ir::Load(a, {in}) + ir::Load(a, {in})));
      }
      for (int64_t row = 0; row < kRows; ++row) {
        const Expr in =
            ir::MakeRamp(IntConst(row * kWidth), IntConst(1), kWidth);
        const Expr at =
            ir::MakeRamp(tile * kTile + row * kWidth, IntConst(1), kWidth);
        stmts.push_back(ir::MakeStore(b, {at}, ir::Load(sums, {in})));
      }
      const auto loop = ir::MakeFor(tile, IntConst(kTiles),
                                    ir::MakeAlloc(sums, ir::MakeSeq(stmts)),
                                    kind, {{ir::kStreamingStores, 1}});
      const Options options = HostOptions(cores);
      const auto function = Function({a, b}, loop);
      const std::vector<LoweredFunction> functions = {{function, "kernel"}};
      const auto llvm = EmitLlvmIr(functions, options, /*optimized=*/false);
      ASSERT_TRUE(llvm.ok()) << llvm.status();
      if (options.target.kind == "x86-64" &&
          kWidth * 4 % (options.target.vector_bits / 8) == 0) {
        EXPECT_THAT(*llvm, testing::HasSubstr("!nontemporal"));
        EXPECT_EQ(Occurrences(*llvm, "= fadd"), kRows);
      }
      const auto kernel = Kernel::Build(function, options);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      std::vector<float> in(kTiles * kTile);
      std::iota(in.begin(), in.end(), 1.0f);
      alignas(64) static float out[kTiles * kTile + 32];
      for (const int64_t shift : {0, 1, 8, 16}) {
        std::fill(std::begin(out), std::end(out), -1.0f);
        ASSERT_EQ(kernel->Call("kernel", in.data(), out + shift), 0);
        for (int64_t i = 0; i < kTiles * kTile; ++i) {
          ASSERT_EQ(out[shift + i], 2 * in[i]) << shift << " " << i;
        }
        EXPECT_EQ(out[shift + kTiles * kTile], -1.0f);
        if (shift > 0) {
          EXPECT_EQ(out[shift - 1], -1.0f);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilefarm::codegen
