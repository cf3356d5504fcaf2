// The steps of sketches on numbers, one by one.
#include "cost_model/skeleton/nest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/space/space_test_programs.h"

namespace tilefarm::skeleton {
namespace {

using testing::HasSubstr;

absl::StatusOr<SketchPlan> Plan(const ir::PrimFuncPtr& program,
                                const std::string& text,
                                const std::vector<ir::Attr>& decisions) {
  auto trace = schedule::Trace::Parse(text);
  EXPECT_TRUE(trace.ok()) << trace.status();
  auto planned =
      PlanSketch(*program, schedule::PartialReplay(ir::IRModule{{program}}),
                 *trace, decisions);
  if (!planned.ok()) return planned.status();
  return std::move(planned->plan);
}

ir::Attr List(const std::vector<int64_t>& values) {
  return ir::Attr(ir::AttrList(values.begin(), values.end()));
}

// "extent.. | binding.. " of each block: a binding as coefficient*loop, loops
// counted from the block's outermost.
std::string Describe(const Nest& nest) {
  std::vector<std::string> blocks;
  for (const int number : nest.order()) {
    const NestedBlock& block = nest.block(number);
    std::vector<std::string> extents, bindings;
    for (const int loop : block.loops) {
      extents.push_back(absl::StrCat(nest.loops()[loop].extent));
    }
    for (const std::vector<LoopPart>& parts : block.bindings) {
      std::vector<std::string> terms;
      for (const LoopPart& part : parts) {
        const auto at =
            std::find(block.loops.begin(), block.loops.end(), part.loop);
        std::string term =
            absl::StrCat(part.coefficient, "*l", at - block.loops.begin());
        if (part.upper != 0) absl::StrAppend(&term, "%", part.upper);
        if (part.lower != 1) absl::StrAppend(&term, "/", part.lower);
        terms.push_back(term);
      }
      bindings.push_back(absl::StrJoin(terms, "+"));
    }
    blocks.push_back(absl::StrCat(
        absl::StrJoin(extents, " "), " | ", absl::StrJoin(bindings, " "),
        block.guarded || block.reduce_guarded ? " guarded" : ""));
  }
  return absl::StrJoin(blocks, "; ");
}

std::string LoopsOf(const SketchPlan& plan,
                    const std::vector<ir::Attr>& decisions, Nest& nest) {
  DecisionValues values;
  EXPECT_TRUE(values.Assign(decisions));
  const char* why = nest.Run(plan, values);
  return why == nullptr ? Describe(nest) : why;
}

constexpr char kTiles[] = R"(
b0 = sch.get_block("C", func_name="main")
l1, l2, l3 = sch.get_loops(b0)
v4, v5 = sch.sample_tile(l1, n=2, max_innermost_factor=64)
l6, l7 = sch.split(l1, factors=[v4, v5])
sch.reorder(l6, l2, l3, l7)
)";

TEST(NestTest, OnePlanServesAllNumbers) {
  const auto plan = Plan(space::Matmul(60, 8, 4), kTiles, {List({4, 15})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  Nest nest;
  EXPECT_EQ(LoopsOf(*plan, {List({4, 15})}, nest),
            "4 8 4 15 | 15*l0+1*l3 1*l1 1*l2");
  EXPECT_EQ(LoopsOf(*plan, {List({2, 30})}, nest),
            "2 8 4 30 | 30*l0+1*l3 1*l1 1*l2");
  // A tail.
  EXPECT_EQ(LoopsOf(*plan, {List({8, 8})}, nest),
            "8 8 4 8 | 8*l0+1*l3 1*l1 1*l2 guarded");
}

TEST(NestTest, SaysWhichDecisionsAreIllegal) {
  const auto plan = Plan(space::Matmul(60, 8, 4), kTiles, {List({4, 15})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  Nest nest;
  for (const ir::Attr& decision :
       {List({3, 15}), List({0, 60}), List({-4, -15}), List({4, 15, 1}),
        List({1, 65}), List({INT64_MAX, 3}), ir::Attr(0)}) {
    EXPECT_EQ(LoopsOf(*plan, {decision}, nest), "an illegal decision");
  }
  EXPECT_EQ(LoopsOf(*plan, {}, nest), "an illegal decision");
  DecisionValues values;
  EXPECT_FALSE(values.Assign(std::vector{ir::Attr("4")}));
  EXPECT_FALSE(
      Plan(space::Matmul(60, 8, 4), kTiles, {List({3, 15})}).status().ok());
}

TEST(NestTest, FusedLoopsAreDigits) {
  const char* const text = R"(
b0 = sch.get_block("C", func_name="main")
l1, l2, l3 = sch.get_loops(b0)
l4 = sch.fuse(l1, l2)
v5, v6 = sch.sample_perfect_tile(l4, n=2, max_innermost_factor=64)
l7, l8 = sch.split(l4, factors=[v5, v6])
)";
  const auto plan = Plan(space::Matmul(6, 8, 4), text, {List({4, 12})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  Nest nest;
  ASSERT_EQ(LoopsOf(*plan, {List({4, 12})}, nest).substr(0, 6), "4 12 4");
  const NestedBlock& block = nest.block(nest.order()[0]);
  // Both variables are digits of the fused loop, which both loops are parts of.
  const LoopPart high = block.bindings[0][0], low = block.bindings[1][0];
  EXPECT_EQ(high.lower, 8);
  EXPECT_EQ(low.upper, 8);
  EXPECT_EQ(high.loop, low.loop);
  EXPECT_EQ(nest.loops()[block.loops[0]].parent, high.loop);
  EXPECT_EQ(nest.loops()[block.loops[0]].step, 12);
}

constexpr char kFactored[] = R"(
b0 = sch.get_block("C", func_name="main")
l1, l2, l3 = sch.get_loops(b0)
v4, v5 = sch.sample_perfect_tile(l3, n=2, max_innermost_factor=64)
l6, l7 = sch.split(l3, factors=[v4, v5])
b8 = sch.rfactor(l7, factor_axis=2)
)";

TEST(NestTest, FactorsReductions) {
  const auto plan = Plan(space::Matmul(6, 8, 32), kFactored, {List({4, 8})});
  ASSERT_TRUE(plan.ok()) << plan.status();
  Nest nest;
  // Partial results: the factored loop, the outputs, the rest of the reduction.
  EXPECT_EQ(LoopsOf(*plan, {List({4, 8})}, nest),
            "6 8 4 8 | 1*l3 1*l0 1*l1 1*l2; 6 8 8 | 1*l2 1*l0 1*l1");
  EXPECT_EQ(LoopsOf(*plan, {List({2, 16})}, nest),
            "6 8 2 16 | 1*l3 1*l0 1*l1 1*l2; 6 8 16 | 1*l2 1*l0 1*l1");
  const NestedBlock& factored = nest.block(nest.order()[0]);
  EXPECT_EQ(factored.iters[0].type, ir::IterType::kSpatial);
  EXPECT_EQ(factored.iters[3].type, ir::IterType::kReduce);
  // The old variable, expressed by new ones for use in expressions.
  ASSERT_EQ(factored.written_out.size(), 1u);
  EXPECT_EQ(factored.written_out[0][0].coefficient, 16);
  EXPECT_EQ(nest.block(nest.order()[1]).iters[0].extent, 16);
}

TEST(NestTest, MovesBlocksToWhatIsNeeded) {
  const char* const text = R"(
b0 = sch.get_block("C", func_name="main")
b1 = sch.get_block("D", func_name="main")
l2, l3, l4 = sch.get_loops(b0)
v5, v6 = sch.sample_tile(l2, n=2, max_innermost_factor=64)
l7, l8 = sch.split(l2, factors=[v5, v6])
sch.reverse_compute_at(b1, l7, preserve_unit_loops=True)
)";
  const ir::PrimFuncPtr program = space::MatmulRelu(60, 8, 4);
  auto plan = Plan(program, text, {List({4, 15})});
  if (!plan.ok()) GTEST_FAIL() << plan.status() << program->name;
  Nest nest;
  EXPECT_EQ(LoopsOf(*plan, {List({4, 15})}, nest),
            "4 15 8 4 | 15*l0+1*l1 1*l2 1*l3; 4 15 8 | 15*l0+1*l1 1*l2");
  // If one tile covers everything, no loop feeds the variable.
  EXPECT_EQ(LoopsOf(*plan, {List({1, 60})}, nest),
            "1 60 8 4 | 60*l0+1*l1 1*l2 1*l3; 1 60 8 | 1*l1 1*l2");
}

TEST(NestTest, RefusesWhatNoStepExpresses) {
  const auto refused = [](const std::string& rest,
                          const std::vector<ir::Attr>& decisions) {
    const auto plan =
        Plan(space::Matmul(60, 8, 4), std::string(kTiles) + rest, decisions);
    return absl::StrCat(plan.status().ToString());
  };
  // It makes blocks from loops that depend on decisions.
  const std::string status =
      refused("b8 = sch.decompose_reduction(b0, l3)\n", {List({4, 15})});
  EXPECT_THAT(status, HasSubstr("UNIMPLEMENTED"));
  EXPECT_THAT(status, HasSubstr("decompose_reduction"));
  // The program rejects it, too, so it is not unknown.
  EXPECT_THAT(refused("sch.parallel(l3)\n", {List({4, 15})}),
              HasSubstr("FAILED_PRECONDITION"));
}

}  // namespace
}  // namespace tilefarm::skeleton
