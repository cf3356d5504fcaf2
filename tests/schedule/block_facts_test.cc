#include "compiler/schedule/block_facts.h"

#include "compiler/schedule/block_info.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/schedule_state.h"
#include "tests/schedule/schedule_testing.h"

namespace tilefarm::schedule {
namespace {

ir::ForPtr WithExtent(const ir::ForNode& loop, int64_t extent) {
  return std::make_shared<const ir::ForNode>(
      loop.var, loop.min, ir::IntConst(extent), loop.for_kind, loop.body);
}

class BlockFactsTest : public testing::Test {
 protected:
  ir::BlockPtr Block(const std::string& name) const {
    for (ir::BlockPtr& block : state_.BlocksOf(Function())) {
      if (block->name == name) return block;
    }
    ADD_FAILURE() << "no block " << name;
    return nullptr;
  }
  const ir::PrimFunc* Function() const {
    return state_.module().functions[0].get();
  }
  BlockFacts::Place PlaceOf(const std::string& name) const {
    return {Block(name), state_.LoopsAbove(Block(name).get())};
  }

  ScheduleState state_{ModuleOf(kChain), 0, ir::FloatRule::kMayDiffer};
};

TEST_F(BlockFactsTest, AnAnswerHoldsForTheSamePlaces) {
  BlockFacts facts;
  EXPECT_EQ(facts.Find({PlaceOf("C"), PlaceOf("B")}), std::nullopt);
  facts.Remember({PlaceOf("C"), PlaceOf("B")}, false);
  EXPECT_EQ(facts.Find({PlaceOf("C"), PlaceOf("B")}), false);
  EXPECT_EQ(facts.Find({PlaceOf("C")}), std::nullopt);
  EXPECT_EQ(facts.Find({PlaceOf("B"), PlaceOf("C")}), std::nullopt);
  facts.Remember({PlaceOf("C")}, true);
  EXPECT_EQ(facts.Find({PlaceOf("C")}), true);
  EXPECT_EQ(facts.Find({PlaceOf("C"), PlaceOf("B")}), std::nullopt);
  const BlockFacts copy = facts;
  facts.Remember({PlaceOf("C")}, false);
  EXPECT_EQ(copy.Find({PlaceOf("C")}), true);
}

TEST_F(BlockFactsTest, QuestionsAboutSeveralDetailsStandBesideEachOther) {
  BlockFacts facts;
  const BlockFacts::Place place = PlaceOf("C");
  const void* outer = place.loops[0]->var.get();
  facts.Remember({place}, true, outer);
  EXPECT_EQ(facts.Find({place}), std::nullopt);
  facts.Remember({place}, false);
  EXPECT_EQ(facts.Find({place}), false);
  EXPECT_EQ(facts.Find({place}, outer), true);
  EXPECT_EQ(facts.Find({place}, place.block.get()), std::nullopt);
}

TEST_F(BlockFactsTest, OnlyTheLoopsBodiesMayChange) {
  BlockFacts facts;
  const BlockFacts::Place place = PlaceOf("C");
  facts.Remember({place}, true);
  const ir::ForNode& loop = *place.loops[0];
  EXPECT_EQ(facts.Find({{place.block, {WithBody(loop, ir::NoOp())}}}), true);
  EXPECT_EQ(facts.Find({{place.block, {WithExtent(loop, 29)}}}), std::nullopt);
  EXPECT_EQ(facts.Find({{place.block, {place.loops[0], place.loops[0]}}}),
            std::nullopt);
  const auto other = std::make_shared<const ir::ForNode>(
      ir::MakeVar("i"), loop.min, loop.extent, loop.for_kind, loop.body);
  EXPECT_EQ(facts.Find({{place.block, {other}}}), std::nullopt);
}

TEST_F(BlockFactsTest, ForgetsBeforeItGrowsWithoutBound) {
  BlockFacts facts;
  const BlockFacts::Place first = PlaceOf("C");
  facts.Remember({first}, true);
  bool forgot = false;
  for (int i = 0; i < 100000 && !forgot; ++i) {
    const auto block = std::make_shared<const ir::BlockNode>(*first.block);
    facts.Remember({{block, first.loops}}, true);
    EXPECT_EQ(facts.Find({{block, first.loops}}), true);
    forgot = !facts.Find({first});
  }
  EXPECT_TRUE(forgot);
}

// The consumer's node does not change while its producer's loop is shortened
// and restored.
TEST_F(BlockFactsTest, WhatChangesElsewhereChangesTheAnswer) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(IsRegionCovered(state_, Block("C").get()));
    const ir::BlockPtr consumer = Block("C");
    const ir::ForPtr whole = state_.LoopsAbove(Block("B").get())[0];
    state_.Replace(whole.get(), WithExtent(*whole, 29));
    EXPECT_EQ(Block("C"), consumer);
    EXPECT_FALSE(IsRegionCovered(state_, consumer.get()));
    // The second call uses the cache.
    EXPECT_FALSE(IsRegionCovered(state_, consumer.get()));
    const ir::ForPtr part = state_.LoopsAbove(Block("B").get())[0];
    state_.Replace(part.get(), WithExtent(*part, 30));
  }
}

TEST(HasAffineBindingsTest, LooksAtTheLoopsAsTheyAreNow) {
  ScheduleState state(ModuleOf(kBlockInTwoLoops), 0, ir::FloatRule::kMayDiffer);
  const ir::BlockPtr block =
      state.BlocksOf(state.module().functions[0].get()).back();
  for (const bool affine : {true, false, true, false}) {
    const ir::ForPtr inner = state.LoopsAbove(block.get())[1];
    state.Replace(inner.get(), WithExtent(*inner, affine ? 6 : 5));
    EXPECT_EQ(HasAffineBindings(state, block.get()), affine);
    EXPECT_EQ(HasAffineBindings(state, block.get()), affine);
  }
}

}  // namespace
}  // namespace tilefarm::schedule
