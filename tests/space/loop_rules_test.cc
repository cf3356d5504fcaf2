#include "compiler/space/loop_rules.h"

#include <gtest/gtest.h>

#include "compiler/space/panels.h"

namespace tilefarm::space {
namespace {

using ir::ForKind;

LoopView Spatial(int iter, int64_t extent, ForKind kind = ForKind::kSerial) {
  return {extent, kind, false, false, {iter}};
}
LoopView Reduce(int iter, int64_t extent) {
  return {extent, ForKind::kSerial, true, true, {iter}};
}
LoopView Unused(int64_t extent) {
  return {extent, ForKind::kSerial, false, false, {}};
}

std::string Describe(const std::optional<VectorLoop>& vector) {
  return vector ? std::to_string(vector->loop) + " by " +
                      std::to_string(vector->length)
                : "none";
}

TEST(VectorLoopTest, IsTheInnermostOfMoreThanOneIteration) {
  const std::vector<LoopView> loops = {Spatial(1, 4), Spatial(0, 8),
                                       Spatial(1, 16), Spatial(1, 1)};
  EXPECT_EQ(Describe(ChooseVectorLoop(loops, 1, 0, 16)), "2 by 0");
  EXPECT_EQ(Describe(ChooseVectorLoop(loops, 0, 0, 16)), "1 by 0");
  EXPECT_EQ(Describe(ChooseVectorLoop(loops, 2, 0, 16)), "none");
  EXPECT_EQ(Describe(ChooseVectorLoop({}, 0, 0, 16)), "none");
}

TEST(VectorLoopTest, IsCutWhereItIsLong) {
  const auto with = [](int64_t extent, int64_t lanes) {
    const std::vector<LoopView> loops = {Spatial(0, extent)};
    return Describe(ChooseVectorLoop(loops, 0, 0, lanes));
  };
  EXPECT_EQ(with(kMaxVectorExtent, 16), "0 by 0");
  EXPECT_EQ(with(kMaxVectorExtent + 1, 16), "0 by 64");
  EXPECT_EQ(with(100, 32), "0 by 32");
}

TEST(VectorLoopTest, NeedsSerialDataParallelLoops) {
  const std::vector<LoopView> reduces = {Spatial(0, 8), Reduce(0, 4)};
  EXPECT_EQ(Describe(ChooseVectorLoop(reduces, 0, 0, 16)), "none");
  const std::vector<LoopView> taken = {Spatial(0, 8, ForKind::kUnrolled)};
  EXPECT_EQ(Describe(ChooseVectorLoop(taken, 0, 0, 16)), "none");
  // It would have to move across a loop that is not serial.
  const std::vector<LoopView> outer = {Spatial(0, 8),
                                       Spatial(1, 4, ForKind::kUnrolled)};
  EXPECT_EQ(Describe(ChooseVectorLoop(outer, 0, 0, 16)), "none");
}

TEST(VectorLoopTest, StaysWithinAPanel) {
  const std::vector<LoopView> loops = {Spatial(0, 8)};
  EXPECT_EQ(Describe(ChooseVectorLoop(loops, 0, 16, 16)), "0 by 0");
  EXPECT_EQ(Describe(ChooseVectorLoop(loops, 0, 12, 16)), "none");
}

TEST(ParallelLoopsTest, AreAsManyAsTheJobsNeed) {
  const std::vector<LoopView> loops = {Spatial(0, 4), Spatial(1, 8),
                                       Spatial(2, 16), Reduce(3, 2)};
  EXPECT_EQ(CountParallelLoops(loops, 1), 0u);
  EXPECT_EQ(CountParallelLoops(loops, 4), 1u);
  EXPECT_EQ(CountParallelLoops(loops, 5), 2u);
  EXPECT_EQ(CountParallelLoops(loops, 10000), 3u);
  const std::vector<LoopView> taken = {Spatial(0, 4, ForKind::kVectorized)};
  EXPECT_EQ(CountParallelLoops(taken, 8), 0u);
}

TEST(RegisterTileTest, IsInsideTheInnermostReduction) {
  const std::vector<LoopView> loops = {Spatial(0, 100), Reduce(2, 8),
                                       Spatial(0, 6),
                                       Spatial(1, 64, ForKind::kVectorized)};
  EXPECT_EQ(FindRegisterTile(loops, 16), 2u);
  // 6 rows of 4 vectors are 24 statements; with one lane per vector, 384.
  EXPECT_EQ(FindRegisterTile(loops, 1), std::nullopt);
}

TEST(RegisterTileTest, OfAnInstructionGoesAsFarAsItsStatementsDo) {
  const std::vector<LoopView> loops = {Spatial(0, 100), Reduce(2, 8),
                                       Spatial(0, 6), Spatial(1, 4)};
  EXPECT_EQ(FindInstructionTile(loops), 2u);
  const std::vector<LoopView> large = {Spatial(0, kMaxTileStatements),
                                       Spatial(1, 2)};
  EXPECT_EQ(FindInstructionTile(large), 1u);
  EXPECT_EQ(FindInstructionTile({}), 0u);
}

TEST(FirstReduceLoopTest, HasMoreThanOneIteration) {
  const std::vector<LoopView> loops = {Spatial(0, 4), Reduce(1, 1), Unused(3),
                                       Reduce(1, 8)};
  EXPECT_EQ(FindFirstReduceLoop(loops, 0), 3u);
  // Not the instruction's own loop, but the loop of one iteration.
  EXPECT_EQ(FindFirstReduceLoop(loops, 1), 1u);
  const std::vector<LoopView> units = {Spatial(0, 4), Reduce(1, 1)};
  EXPECT_EQ(FindFirstReduceLoop(units, 0), std::nullopt);
}

TEST(PanelsTest, CutADimension) {
  const int64_t shape[] = {64, 32};
  EXPECT_EQ(PanelsOf(shape, 1, 16).IndexMap(2),
            "lambda i0, i1: (i1 // 16, i0, i1 % 16)");
  EXPECT_EQ(PanelsOf(shape, 0, 64).IndexMap(2), "lambda i0, i1: (i1, i0)");
  // The present layout, panels of one element, a tail, no dimension.
  EXPECT_TRUE(PanelsOf(shape, 1, 32).empty());
  EXPECT_TRUE(PanelsOf(shape, 0, 1).empty());
  EXPECT_TRUE(PanelsOf(shape, 0, 48).empty());
  EXPECT_TRUE(PanelsOf(shape, -1, 16).empty());
  const Panels panels = PanelsOf(shape, 1, 16);
  EXPECT_EQ(panels.ExtentOf(PanelDim::kPanel, 40), 3);
  EXPECT_EQ(panels.ExtentOf(PanelDim::kWithin, 40), 16);
  EXPECT_EQ(panels.ExtentOf(PanelDim::kWhole, 64), 64);
}

TEST(PanelsTest, OfAnInstruction) {
  const int64_t shape[] = {64, 96};
  const Panels panels = InstructionPanels(shape, 1, 0, 2, 16, 4);
  EXPECT_EQ(panels.IndexMap(2),
            "lambda i0, i1: (i1 // 32, i0 // 4, i1 % 32 // 16, i1 % 16, "
            "i0 % 4)");
  EXPECT_EQ(panels.ExtentOf(PanelDim::kRegister, 96), 2);
  EXPECT_EQ(panels.ExtentOf(PanelDim::kGroup, 64), 16);
  EXPECT_EQ(InstructionPanels(shape, 1, 0, 6, 16, 4).IndexMap(2),
            "lambda i0, i1: (i0 // 4, i1 // 16, i1 % 16, i0 % 4)");
  EXPECT_EQ(InstructionPanels(shape, 1, 0, 1, 16, 4).IndexMap(2),
            "lambda i0, i1: (i1 // 16, i0 // 4, i1 % 16, i0 % 4)");
}

// The dimensions as text: "1/4 0 1%4".
std::string Dims(const Panels& panels) {
  std::string text;
  for (const PanelDim& dim : panels.dims) {
    text += text.empty() ? "" : " ";
    text += std::to_string(dim.dim);
    if (dim.part == PanelDim::kWhole) continue;
    text += dim.part == PanelDim::kPanel ? "/" : "%";
    text += std::to_string(panels.width);
  }
  return text;
}

TEST(PanelsTest, AheadOfTimeFollowTheReader) {
  // Variables 0 (rows) and 1 (columns), reduced over 2 and 3; the loops are
  // those of the tiles.
  struct Index {
    ReadIndex index;
    int64_t extent;
  };
  const Index row{{false, 0, 0}, 20}, column{{false, 1, 1}, 100};
  const Index k{{true, 2, 2}, 16}, tap{{true, 3, 3}, 3};
  const auto dims = [](const std::vector<Index>& read, int64_t rows,
                       int64_t columns) {
    std::vector<ReadIndex> indices;
    std::vector<int64_t> shape;
    for (const Index& each : read) {
      indices.push_back(each.index);
      shape.push_back(each.extent);
    }
    const std::vector<LoopView> loops = {Spatial(1, 4), Reduce(2, 8),
                                         Reduce(3, 3), Spatial(0, rows),
                                         Spatial(1, columns)};
    return Dims(PanelsAheadOfTime(shape, indices, loops));
  };
  EXPECT_EQ(dims({k, column}, 4, 48), "1/48 0 1%48");
  EXPECT_EQ(dims({column, k}, 4, 48), "0/48 1 0%48");
  // Taps come after channels if the reader's variables do.
  EXPECT_EQ(dims({tap, k, column}, 4, 16), "2/16 1 0 2%16");
  // One panel is not split; scalar columns have no panels.
  EXPECT_EQ(dims({k, column}, 4, 100), "0 1");
  EXPECT_EQ(dims({k, column}, 4, 1), "1 0");
  // Rows make panels of operands that the columns do not index.
  EXPECT_EQ(dims({row, k}, 4, 16), "0/4 1 0%4");
}

}  // namespace
}  // namespace tilefarm::space
