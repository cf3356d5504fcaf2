#include "compiler/schedule/access_facts.h"

#include <utility>

#include "compiler/schedule/independence.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/schedule_state.h"
#include "tests/schedule/schedule_testing.h"

namespace tilefarm::schedule {
namespace {

using Access = AccessFacts::Access;

// A block that writes C[v + 2, 0] in 30 iterations of one loop.
class AccessFactsTest : public testing::Test {
 protected:
  AccessFactsTest() {
    block_.iters.push_back({ir::MakeVar("v"),
                            {ir::IntConst(0), ir::IntConst(32)},
                            ir::IterType::kSpatial,
                            loop_->var});
    region_.region = {{block_.iters[0].var + 2, ir::IntConst(1)},
                      {ir::IntConst(0), ir::IntConst(1)}};
  }
  // Whether the question whether these accesses are apart is asked again.
  bool IsAsked(const Access& a, const Access& b) {
    bool asked = false;
    EXPECT_TRUE(
        facts_.Ask(loop_->var.get(), a, b, [&] { return asked = true; }));
    return asked;
  }
  bool IsAsked(const Access& both) { return IsAsked(both, both); }
  ir::ForPtr LoopOfKind(ir::ForKind kind) const {
    return std::make_shared<const ir::ForNode>(loop_->var, loop_->min,
                                               loop_->extent, kind, ir::NoOp());
  }

  const ir::ForPtr loop_ = std::make_shared<const ir::ForNode>(
      ir::MakeVar("i"), ir::IntConst(0), ir::IntConst(30), ir::ForKind::kSerial,
      ir::NoOp());
  ir::BlockNode block_;
  ir::BufferRegion region_{
      ir::MakeBuffer("C", ir::DataType::Float(32), {32, 8}), {}};
  AccessFacts facts_;
};

TEST_F(AccessFactsTest, WhatElseABlockHasMayChange) {
  EXPECT_TRUE(IsAsked({&block_, &region_, {loop_}}));
  EXPECT_FALSE(IsAsked({&block_, &region_, {loop_}}));
  // Another node with another name, reads and body; another buffer of the same
  // shape; a loop with another body.
  ir::BlockNode other = block_;
  other.name = "other";
  other.reads = {region_};
  other.body = ir::NoOp();
  ir::BufferRegion local = region_;
  local.buffer =
      ir::MakeBuffer("C_local", ir::DataType::Float(32), {32, 8}, "local");
  EXPECT_FALSE(IsAsked({&other, &local, {LoopOfKind(ir::ForKind::kSerial)}}));
}

TEST_F(AccessFactsTest, WhatTheAnswerDependsOnMayNot) {
  const Access known{&block_, &region_, {loop_}};
  const auto is_asked_for = [&](const Access& other) {
    IsAsked(known);
    const bool asked = IsAsked(other);
    EXPECT_TRUE(IsAsked(known) == asked) << "the newest answer is kept";
    return asked;
  };
  ir::BlockNode bound = block_;
  bound.iters[0].binding = loop_->var + 1;
  EXPECT_TRUE(is_asked_for({&bound, &region_, {loop_}}));
  ir::BlockNode renamed = block_;
  renamed.iters[0].var = ir::MakeVar("v");
  EXPECT_TRUE(is_asked_for({&renamed, &region_, {loop_}}));
  ir::BlockNode guarded = block_;
  guarded.predicate = ir::BoolConst(false);
  EXPECT_TRUE(is_asked_for({&guarded, &region_, {loop_}}));
  ir::BufferRegion wide = region_;
  wide.region[1].extent = ir::IntConst(8);
  EXPECT_TRUE(is_asked_for({&block_, &wide, {loop_}}));
  ir::BufferRegion flat = region_;
  flat.buffer = ir::MakeBuffer("C", ir::DataType::Float(32), {32, 4});
  EXPECT_TRUE(is_asked_for({&block_, &flat, {loop_}}));
  EXPECT_TRUE(is_asked_for({&block_, &region_, {loop_, loop_}}));
  EXPECT_TRUE(is_asked_for({&block_, &region_, {}}));
  EXPECT_TRUE(is_asked_for(
      {&block_, &region_, {LoopOfKind(ir::ForKind::kThreadBinding)}}));
  EXPECT_FALSE(is_asked_for(known));
}

TEST_F(AccessFactsTest, EachOfTwoAccessesCounts) {
  const Access a{&block_, &region_, {loop_}};
  ir::BufferRegion below = region_;
  below.region[0].min = block_.iters[0].var;
  const Access b{&block_, &below, {loop_}};
  EXPECT_TRUE(IsAsked(a, b));
  EXPECT_TRUE(IsAsked(b, a));
  EXPECT_TRUE(IsAsked(a, a));
  EXPECT_FALSE(IsAsked(a, b));
  ir::BlockNode guarded = block_;
  guarded.predicate = ir::BoolConst(false);
  EXPECT_TRUE(IsAsked(a, {&guarded, &below, {loop_}}));
}

TEST_F(AccessFactsTest, AScalarIsKnownByItsBlock) {
  ir::BufferRegion scalar{ir::MakeBuffer("S", ir::DataType::Float(32), {}), {}};
  EXPECT_TRUE(IsAsked({&block_, &scalar, {loop_}}));
  EXPECT_FALSE(IsAsked({&block_, &scalar, {loop_}}));
  const ir::BlockNode other = block_;
  EXPECT_TRUE(IsAsked({&other, &scalar, {loop_}}));
}

TEST_F(AccessFactsTest, ForgetsBeforeItGrowsWithoutBound) {
  IsAsked({&block_, &region_, {loop_}});
  bool forgot = false;
  for (int i = 0; i < 100000 && !forgot; ++i) {
    ir::BufferRegion other = region_;
    other.region[0].min = block_.iters[0].var + i;
    EXPECT_TRUE(IsAsked({&block_, &other, {loop_}}));
    if (i % 100 == 0) forgot = IsAsked({&block_, &region_, {loop_}});
  }
  EXPECT_TRUE(forgot);
}

// The block's node stays while the loop around it gets other ranges.
TEST(AreApartTest, LooksAtTheLoopsAsTheyAreNow) {
  ScheduleState state(ModuleOf(kBlockInTwoLoops), 0, ir::FloatRule::kMayDiffer);
  const ir::BlockPtr block =
      state.BlocksOf(state.module().functions[0].get()).back();
  const ir::BufferRegion& write = block->writes[0];
  for (const bool apart : {true, false, true, false}) {
    const ir::ForPtr inner = state.LoopsAbove(block.get())[1];
    state.Replace(inner.get(),
                  std::make_shared<const ir::ForNode>(
                      inner->var, inner->min, ir::IntConst(apart ? 6 : 7),
                      inner->for_kind, inner->body));
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(AreApart(state, {state.LoopsAbove(block.get())[0]}, *block,
                         write, *block, write),
                apart);
    }
  }
}

}  // namespace
}  // namespace tilefarm::schedule
