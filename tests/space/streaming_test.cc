// Streaming stores: where the space offers them, and the resulting code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/function_attrs.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/design_space.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"
#include "tests/space/space_test_programs.h"

namespace tilefarm::space {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kMark[] = "\"tilefarm.streaming_stores\": 1";

ir::PrimFuncPtr Relu(int64_t rows, int64_t columns) {
  const te::Tensor a =
      te::Placeholder("A", {rows, columns}, ir::DataType::Float(32));
  return Build({a, te::Relu(a, "B")});
}

// The number of sketch sites for it.
size_t Sites(const ir::PrimFuncPtr& program, const target::Target& target) {
  const auto space = DesignSpace::Create(program, target);
  EXPECT_TRUE(space.ok()) << space.status();
  size_t count = 0;
  for (const schedule::Trace& sketch : (*space)->sketches()) {
    if (sketch.Print().find(kStream) != std::string::npos) ++count;
  }
  return count;
}

TEST(StreamingTest, OfferedWhereAnOutputIsLargerThanTheCache) {
  const target::Target target = TestTarget();
  ASSERT_EQ(target.kind, "x86-64");
  const int64_t rows = target.caches.l2_bytes / 4 / 1024;
  EXPECT_GT(Sites(Relu(2 * rows, 1024), target), 0u);
  EXPECT_EQ(Sites(Relu(rows, 1024), target), 0u);
  // Operands are reused, so stores take little of the time.
  EXPECT_EQ(Sites(Matmul(2 * rows, 1024, 64), target), 0u);
  target::Target other = *target::Parse("aarch64:neoverse-v1,cores=1");
  other.caches = target.caches;
  EXPECT_EQ(Sites(Relu(2 * rows, 1024), other), 0u);
}

TEST(StreamingTest, ResultsThatAnotherFunctionReadsStayInTheCaches) {
  target::Target target = TestTarget();
  target.caches.l3_bytes = 8 * target.caches.l2_bytes;
  const int64_t rows = target.caches.l2_bytes / 4 / 1024;
  const auto read_later = [](const ir::PrimFuncPtr& program) {
    auto marked = std::make_shared<ir::PrimFunc>(*program);
    marked->attrs[ir::kResultsAreRead] = ir::Attr(int64_t{1});
    return marked;
  };
  EXPECT_EQ(Sites(read_later(Relu(2 * rows, 1024)), target), 0u);
  EXPECT_EQ(Sites(read_later(Relu(8 * rows, 1024)), target), 0u);
  EXPECT_GT(Sites(read_later(Relu(16 * rows, 1024)), target), 0u);
}

TEST(StreamingTest, NotWhereTheOutputIsReadOrWrittenByElements) {
  EXPECT_THAT(StreamedBlocks(*Relu(64, 64), 1), ElementsAre("B"));
  EXPECT_THAT(StreamedBlocks(*Relu(64, 64), 64 * 64 * 4), IsEmpty());
  const auto read = ir::ParseFunction(R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = B[vi] + A[vi]
)");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(StreamedBlocks(**read, 1), IsEmpty());
  const RuleContext context{"main", TestTarget()};
  const auto tiled =
      ApplyRule(TileTransposed, context,
                schedule::Schedule(ir::IRModule{{Transposed(64, 64)}}),
                TopBlockNames(*Transposed(64, 64)).front());
  ASSERT_TRUE(tiled.ok()) << tiled.status();
  EXPECT_THAT(StreamedBlocks(*tiled->front().module().Find("main"), 1),
              IsEmpty());
  // By registers, streaming is possible.
  ASSERT_EQ(tiled->size(), 2u);
  EXPECT_THAT(StreamedBlocks(*tiled->back().module().Find("main"), 1),
              ::testing::SizeIs(1));
}

TEST(StreamingTest, TheDecisionMarksTheOutermostLoop) {
  const ir::PrimFuncPtr program = Relu(64, 64);
  for (const int streams : {0, 1}) {
    schedule::Schedule schedule(ir::IRModule{{program}});
    const auto root = schedule.GetBlock("root");
    ASSERT_TRUE(schedule.Annotate(*root, kStream, ir::Attr(streams)).ok());
    ASSERT_TRUE(RewriteStreaming(schedule, "main").ok());
    const std::string text = ir::Print(*schedule.module().Find("main"));
    // The processed annotation is removed from the root.
    EXPECT_THAT(text, Not(HasSubstr("\"tilefarm.stream\"")));
    if (streams != 0) {
      EXPECT_THAT(text, HasSubstr(kMark));
    } else {
      EXPECT_THAT(text, Not(HasSubstr(kMark)));
    }
    ExpectSameOutputs(*program, *schedule.module().Find("main"));
  }
}

TEST(StreamingTest, CandidatesAreMadeBothWays) {
  const target::Target target = TestTarget(2);
  const auto space = DesignSpace::Create(Relu(1024, 1024), target);
  ASSERT_TRUE(space.ok()) << space.status();
  Rng rng(3);
  int marked = 0, plain = 0;
  for (int i = 0; i < 40; ++i) {
    const auto schedule = (*space)->Apply(*(*space)->Sample(rng));
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const std::string text = ir::Print(*schedule->module().Find("main"));
    ++(text.find(kMark) == std::string::npos ? plain : marked);
  }
  EXPECT_GT(marked, 0);
  EXPECT_GT(plain, 0);
}

}  // namespace
}  // namespace tilefarm::space
