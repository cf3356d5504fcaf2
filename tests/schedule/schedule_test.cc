// Lookup, sampling, identity of blocks and loops, transactions, replay.
#include "compiler/schedule/schedule.h"

#include "absl/strings/str_cat.h"
#include "tests/schedule/schedule_testing.h"

namespace tilefarm::schedule {
namespace {

TEST(ScheduleLookupTest, FindsBlocksByName) {
  Schedule schedule(ModuleOf(kChain));
  ASSERT_OK_AND_ASSIGN(BlockRv b, schedule.GetBlock("B"));
  ASSERT_OK_AND_ASSIGN(BlockRv root, schedule.GetBlock("root"));
  ExpectInvalid(schedule.GetBlock("D").status(),
                "get_block: main has no block \"D\"; it has root, B, C");
  ExpectInvalid(schedule.GetBlock("B", "other").status(),
                "no function \"other\"");
  ASSERT_OK_AND_ASSIGN(auto children, schedule.GetChildBlocks(root));
  ASSERT_EQ(children.size(), 2);
  EXPECT_EQ(schedule.Get(children[1]).value()->name, "C");
  ASSERT_OK_AND_ASSIGN(auto consumers, schedule.GetConsumers(b));
  ASSERT_EQ(consumers.size(), 1);
  EXPECT_EQ(schedule.Get(consumers[0]).value()->name, "C");
  ASSERT_OK_AND_ASSIGN(auto producers, schedule.GetProducers(consumers[0]));
  ASSERT_EQ(producers.size(), 1);
  EXPECT_EQ(schedule.Get(producers[0]).value()->name, "B");
  ASSERT_OK_AND_ASSIGN(auto none, schedule.GetProducers(b));
  EXPECT_TRUE(none.empty());
  // An error names the primitive that runs, or none that ran before.
  ExpectIllegal(schedule.GetProducers(root).status(),
                "get_producers: block root: the root block has no scope");
  ExpectInvalid(schedule.Get(BlockRv{99}).status(), "get: b99 is not a block");
}

TEST(ScheduleLookupTest, ReportsRepeatedNames) {
  Schedule schedule(ModuleOf(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("X"):
            v = T.axis.spatial(4, i)
            A[v] = T.float32(1)
    for i in range(4):
        with T.block("X"):
            v = T.axis.spatial(4, i)
            B[v] = T.float32(1)
)"));
  const auto found = schedule.GetBlock("X");
  if (!found.ok()) {
    ExpectInvalid(found.status(), "2 blocks of main are named \"X\"");
  } else {
    // The parser numbers repeated names.
    EXPECT_TRUE(schedule.GetBlock("X_1").ok());
  }
}

TEST(ScheduleIdentityTest, VariablesFollowTheirBlocks) {
  Schedule schedule(ModuleOf(kMatmul));
  ASSERT_OK_AND_ASSIGN(BlockRv c, schedule.GetBlock("C"));
  ASSERT_OK_AND_ASSIGN(auto loops, schedule.GetLoops(c));
  ASSERT_OK_AND_ASSIGN(auto parts, schedule.Split(loops[0], {4, 4}));
  ASSERT_TRUE(schedule.Annotate(c, "x", ir::Attr(1)).ok());
  ASSERT_TRUE(schedule.Reorder({loops[2], parts[0]}).ok());
  ASSERT_OK_AND_ASSIGN(auto after, schedule.GetLoops(c));
  EXPECT_EQ(after.size(), 4);
  EXPECT_EQ(schedule.Get(loops[2]).value()->var->name, "k");
  // The split loop is gone.
  ExpectInvalid(schedule.Parallel(loops[0]),
                "parallel: the loop of l1 (i) no longer exists");
  ExpectInvalid(schedule.Get(BlockRv{99}).status(), "b99 is not a block");
  ExpectInvalid(schedule.Get(BlockRv{loops[1].id}).status(), "is not a block");
}

TEST(ScheduleTransactionTest, FailuresLeaveEverythingAsItWas) {
  Schedule schedule(ModuleOf(kMatmul));
  ASSERT_OK_AND_ASSIGN(BlockRv c, schedule.GetBlock("C"));
  ASSERT_OK_AND_ASSIGN(auto loops, schedule.GetLoops(c));
  const std::string trace = schedule.trace().Print();
  const std::string text = ir::Print(schedule.module());
  EXPECT_FALSE(schedule.Vectorize(loops[2]).ok());
  EXPECT_FALSE(schedule.Split(loops[0], {2, 2}).ok());
  EXPECT_EQ(schedule.trace().Print(), trace);
  EXPECT_EQ(ir::Print(schedule.module()), text);
  const Schedule copy = schedule;
  ASSERT_TRUE(schedule.Parallel(loops[0]).ok());
  EXPECT_EQ(ir::Print(copy.module()), text);
  EXPECT_EQ(copy.trace().Print(), trace);
}

// --- Sampling ---

class SamplingTest : public ::testing::Test {
 protected:
  SamplingTest() : schedule_(ModuleOf(kChain), 7) {
    loop_ = schedule_.GetLoops(*schedule_.GetBlock("B")).value()[0];
  }
  int64_t Value(ExprRv v) { return *schedule_.Get(v); }

  Schedule schedule_;
  LoopRv loop_;
};

TEST_F(SamplingTest, PerfectTilesMultiplyToTheExtent) {
  for (int i = 0; i < 50; ++i) {
    ASSERT_OK_AND_ASSIGN(auto tile, schedule_.SamplePerfectTile(loop_, 3, 6));
    EXPECT_EQ(Value(tile[0]) * Value(tile[1]) * Value(tile[2]), 30);
    EXPECT_LE(Value(tile[2]), 6);
  }
  ExpectIllegal(
      schedule_.SamplePerfectTile(loop_, 2, 64, std::vector<int64_t>{4, 8})
          .status(),
      "sample_perfect_tile: loop i (block B): the decision's product 32 is "
      "not the extent 30");
  ExpectIllegal(
      schedule_.SamplePerfectTile(loop_, 2, 8, std::vector<int64_t>{3, 10})
          .status(),
      "innermost factor 10 exceeds");
  ExpectIllegal(
      schedule_.SamplePerfectTile(loop_, 2, 8, std::vector<int64_t>{30})
          .status(),
      "has 1 factors, not 2");
  ExpectInvalid(schedule_.SamplePerfectTile(loop_, 0, 8).status(), "n is 0");
}

TEST_F(SamplingTest, TilesCoverTheExtent) {
  for (int i = 0; i < 50; ++i) {
    ASSERT_OK_AND_ASSIGN(auto tile, schedule_.SampleTile(loop_, 2, 16));
    EXPECT_GE(Value(tile[0]) * Value(tile[1]), 30);
    EXPECT_LT((Value(tile[0]) - 1) * Value(tile[1]), 30);
    EXPECT_LE(Value(tile[1]), 16);
  }
  ASSERT_OK_AND_ASSIGN(
      auto tile,
      schedule_.SampleTile(loop_, 2, 16, std::vector<int64_t>{4, 8}));
  ASSERT_TRUE(schedule_.Split(loop_, {tile[0], tile[1]}).ok());
  EXPECT_THAT(Nest(schedule_),
              ::testing::HasSubstr("T.where(i_0 * 8 + i_1 < 30)"));
}

TEST_F(SamplingTest, CategoricalsPickCandidates) {
  ASSERT_OK_AND_ASSIGN(ExprRv v,
                       schedule_.SampleCategorical({5, 7}, {0.0, 1.0}));
  EXPECT_EQ(Value(v), 7);
  ASSERT_OK_AND_ASSIGN(v, schedule_.SampleCategorical({5, 7}, {0.5, 0.5}, 0));
  EXPECT_EQ(Value(v), 5);
  ExpectIllegal(schedule_.SampleCategorical({5, 7}, {0.5, 0.5}, 2).status(),
                "decision 2 is no index of the 2 candidates");
  ExpectInvalid(schedule_.SampleCategorical({5, 7}, {1.0}).status(),
                "2 candidates with 1 probabilities");
}

TEST_F(SamplingTest, ComputeLocationsAreLoopsOrMarks) {
  ASSERT_OK_AND_ASSIGN(BlockRv b, schedule_.GetBlock("B"));
  ASSERT_OK_AND_ASSIGN(LoopRv root, schedule_.SampleComputeLocation(b, -1));
  const std::string before = ir::Print(schedule_.module());
  ASSERT_TRUE(schedule_.ComputeAt(b, root).ok());
  EXPECT_EQ(ir::Print(schedule_.module()), before);
  ExpectInvalid(schedule_.Parallel(root), "stands for the root");
  ASSERT_OK_AND_ASSIGN(LoopRv at, schedule_.SampleComputeLocation(b, 0));
  EXPECT_EQ(schedule_.Get(at).value()->var->name, "i");
  ExpectIllegal(schedule_.SampleComputeLocation(b, 1).status(),
                "decision 1 is no loop around its consumers");
  ASSERT_OK_AND_ASSIGN(LoopRv drawn, schedule_.SampleComputeLocation(b));
  (void)drawn;
  EXPECT_NE(schedule_.trace().instructions.back().decision, ir::Attr());
  ASSERT_OK_AND_ASSIGN(LoopRv inlined, schedule_.SampleComputeLocation(b, -2));
  ASSERT_TRUE(schedule_.ComputeAt(b, inlined).ok());
  ExpectInvalid(schedule_.GetLoops(b).status(), "no longer exists");
}

// --- Replay ---

TEST(ReplayTest, GivesTheSameProgramAndTrace) {
  Schedule schedule(ModuleOf(kMatmul), 3);
  ASSERT_OK_AND_ASSIGN(BlockRv c, schedule.GetBlock("C"));
  ASSERT_OK_AND_ASSIGN(auto loops, schedule.GetLoops(c));
  ASSERT_OK_AND_ASSIGN(auto tile, schedule.SamplePerfectTile(loops[0], 2, 8));
  ASSERT_OK_AND_ASSIGN(auto parts,
                       schedule.Split(loops[0], {tile[0], tile[1]}));
  ASSERT_TRUE(schedule.Reorder({loops[2], parts[1]}).ok());
  ASSERT_TRUE(schedule.Parallel(parts[0]).ok());
  const auto again = Replay(schedule.trace(), ModuleOf(kMatmul), 99);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ir::Print(again->module()), ir::Print(schedule.module()));
  EXPECT_EQ(again->trace().Print(), schedule.trace().Print());
}

TEST(ReplayTest, DrawsAbsentDecisionsFromTheSeed) {
  const auto trace = Trace::Parse(
      "b0 = sch.get_block(\"C\")\n"
      "l1, l2, l3 = sch.get_loops(b0)\n"
      "v4, v5 = sch.sample_perfect_tile(l1, n=2, max_innermost_factor=16)\n"
      "l6, l7 = sch.split(l1, factors=[v4, v5])\n");
  ASSERT_TRUE(trace.ok());
  const auto a = Replay(*trace, ModuleOf(kMatmul), 1);
  const auto b = Replay(*trace, ModuleOf(kMatmul), 1);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->trace().Print(), b->trace().Print());
  EXPECT_NE(a->trace().Decisions()[0], ir::Attr());
}

// Copies of the same beginning continue independently.
TEST(ReplayTest, GoesOnFromACopyOfItsBeginning) {
  const auto trace = [](int inner) {
    return *Trace::Parse(absl::StrCat(
        "b0 = sch.get_block(\"C\")\n"
        "l1, l2, l3 = sch.get_loops(b0)\n"
        "b9 = sch.cache_write(b0, 0, \"global\")\n"
        "v4, v5 = sch.sample_perfect_tile(l1, n=2, max_innermost_factor=16, "
        "decision=[",
        16 / inner, ", ", inner,
        "])\n"
        "l6, l7 = sch.split(l1, factors=[v4, v5])\n"
        "sch.reverse_compute_at(b9, l6)\n"
        "sch.unroll(l7)\n"));
  };
  const size_t size = trace(2).instructions.size();
  for (size_t common = 0; common <= 3; ++common) {
    PartialReplay start(ModuleOf(kMatmul));
    ASSERT_TRUE(start.Advance(trace(2), common).ok());
    for (const int inner : {2, 4, 8, 2}) {
      PartialReplay rest = start;
      ASSERT_TRUE(rest.Advance(trace(inner), size).ok());
      const Schedule parts = std::move(rest).Take();
      const auto whole = Replay(trace(inner), ModuleOf(kMatmul));
      ASSERT_TRUE(whole.ok()) << whole.status();
      EXPECT_EQ(ir::Print(parts.module()), ir::Print(whole->module()));
      EXPECT_EQ(parts.trace().Print(), whole->trace().Print());
    }
    // Instructions count from the beginning of the trace.
    PartialReplay rest = start;
    ExpectIllegal(rest.Advance(trace(3), size), "instruction 4 `");
  }
}

TEST(ReplayTest, ChecksConcurrencyAfterEachStepOrAtTheEnd) {
  const ir::IRModule module = ModuleOf(kCopyOfEachIteration);
  ASSERT_OK_AND_ASSIGN(const Trace trace, Trace::Parse(R"(
b0 = sch.get_block("B")
l1, = sch.get_loops(b0)
sch.parallel(l1)
sch.compute_inline(b0)
)"));
  PartialReplay stepwise(module), at_once(module), half(module);
  EXPECT_EQ(stepwise.Advance(trace, 4).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(at_once.AdvanceAtOnce(trace, 4).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(half.AdvanceAtOnce(trace, 3).ok());
  // Later steps are checked again.
  EXPECT_EQ(half.Advance(trace, 4).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(ReplayTest, NamesTheInstructionThatFails) {
  const auto replay = [](const std::string& text) {
    return Replay(*Trace::Parse(text), ModuleOf(kMatmul)).status();
  };
  ExpectIllegal(replay("c = sch.get_block('C')\ni, j, k = sch.get_loops(c)\n"
                       "sch.vectorize(k)\n"),
                "instruction 3 `sch.vectorize(l3)`: vectorize: loop k");
  ExpectInvalid(replay("c = sch.get_block('C')\ni, j = sch.get_loops(c)\n"),
                "it gives 3 results, 2 are named");
  ExpectInvalid(replay("c = sch.get_block('C')\nsch.parallel(c)\n"),
                "argument \"loop\" is not a loop");
  ExpectInvalid(replay("c = sch.get_block(3)\n"), "is not a string");
  ExpectInvalid(replay("c = sch.get_block('C')\n"
                       "sch.transform_layout(c, buffer=('read', 0), "
                       "index_map=lambda i, j: (j, i), pad_value=0)\n"),
                "argument \"pad_value\" must be None");
  ExpectInvalid(replay("c = sch.get_block('C')\ni, j, k = sch.get_loops(c)\n"
                       "a, b = sch.split(i, factors=['x', 2])\n"),
                "is not a list of factors");
}

TEST(ReplayTest, UnnamedResultsTakeNoNumbers) {
  const std::string text =
      "b0 = sch.get_block(\"C\")\n"
      "sch.get_loops(b0)\n"
      "l1, l2, l3 = sch.get_loops(b0)\n"
      "sch.parallel(l1)\n";
  const auto out = Replay(*Trace::Parse(text), ModuleOf(kMatmul));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->trace().Print(), text);
}

}  // namespace
}  // namespace tilefarm::schedule
