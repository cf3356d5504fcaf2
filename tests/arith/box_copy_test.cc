#include "compiler/arith/box_copy.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <utility>

#include "compiler/arith/evaluate.h"
#include "compiler/arith/window_rows.h"
#include "compiler/ir/tensor_box.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::arith {
namespace {

using ir::Expr;
using ir::IntConst;

Expr Div(Expr a, int64_t b) { return ir::FloorDiv(std::move(a), IntConst(b)); }
Expr Mod(Expr a, int64_t b) { return ir::FloorMod(std::move(a), IntConst(b)); }

// A convolution of images [n, h, w, c] with kernels of 3 x 2 (or so), and tiles
// of 64 or 128 of its windows.
struct Conv {
  int64_t images, height, width, channels;
  std::array<int64_t, 2> kernel, step, dilation, before, after;
  int64_t tile = 64;
  int64_t cuts = 1;  // of the terms
  int64_t length(size_t i) const {
    const int64_t size = i == 0 ? height : width;
    return (size + before[i] + after[i] - dilation[i] * (kernel[i] - 1) - 1) /
               step[i] +
           1;
  }
  int64_t windows() const { return images * length(0) * length(1); }
};

// The copy of a tile in block `block` and the part `part` of its terms, after
// cut `cut` of them.
class ConvCopy {
 public:
  explicit ConvCopy(const Conv& c) : c_(c) {
    const int64_t parts = c.channels / kColumns;
    const int64_t h = c.length(0), w = c.length(1);
    tile.row = ir::MakeVar("row");
    tile.column = ir::MakeVar("column");
    tile.rows = c.tile;
    tile.is_place = [this](const Expr& e) {
      return ir::UsesVar(e, part.get());
    };
    blocks = (c.windows() + c.tile - 1) / c.tile;
    places = c.kernel[0] * c.kernel[1] * parts;
    math.Bind(block.get(), 0, blocks - 1);
    math.Bind(part.get(), 0, places / c.cuts - 1);
    math.Bind(cut.get(), 0, c.cuts - 1);
    math.Bind(tile.row.get(), 0, c.tile - 1);
    math.Bind(tile.column.get(), 0, kColumns - 1);
    const Expr m = Expr(block) * c.tile + tile.row;
    const Expr place = Expr(cut) * (places / c.cuts) + part;
    const Expr y = Div(Mod(m, h * w), w) * c.step[0] +
                   Div(place, c.kernel[1] * parts) * c.dilation[0] -
                   c.before[0];
    const Expr x = Mod(m, w) * c.step[1] +
                   Div(Mod(place, c.kernel[1] * parts), parts) * c.dilation[1] -
                   c.before[1];
    indices = {Div(m, h * w), y, x, Mod(place, parts) * kColumns + tile.column};
    number = m;
    tensor = ir::MakeBuffer("X", ir::DataType::Float(16),
                            {c.images, c.height, c.width, c.channels});
  }

  // With the conditions of padding, and others.
  std::optional<BoxCopy> Find(const Expr& other = nullptr) {
    for (Expr& index : indices) index = math.Simplify(index);
    Expr inside =
        ir::And(ir::And(ir::LE(IntConst(0), indices[1]),
                        ir::LT(indices[1], IntConst(c_.height))),
                ir::And(ir::LE(IntConst(1), math.Simplify(indices[2] + 1)),
                        ir::LT(indices[2], IntConst(c_.width))));
    if (c_.windows() % c_.tile != 0) {
      inside = ir::And(inside, ir::LT(number, IntConst(c_.windows())));
    }
    if (other != nullptr) inside = ir::And(inside, other);
    load_ = ir::Load(tensor, indices);
    tile.element = {ir::As<ir::LoadNode>(load_), inside};
    return FindBoxCopy(math, tile);
  }

  static constexpr int64_t kColumns = 64;
  IndexMath math;
  ir::Var block = ir::MakeVar("block"), part = ir::MakeVar("part"),
          cut = ir::MakeVar("cut");
  CopiedTile tile;
  std::vector<Expr> indices;
  Expr number;
  ir::Buffer tensor;
  int64_t blocks = 0, places = 0;

 private:
  const Conv c_;
  Expr load_;
};

// What the engine does (PTX ISA, "Im2col mode"): it goes along the bounding box
// from the origin, the width first.
using Place = std::array<int64_t, 4>;
std::vector<Place> EnginePlaces(const ir::TensorMap& map, Place at,
                                const std::array<int64_t, 2>& offsets,
                                int64_t pixels) {
  std::vector<Place> out;
  for (int64_t i = 0; i < pixels; ++i) {
    out.push_back({at[0], at[1] + offsets[0], at[2] + offsets[1], at[3]});
    at[2] += map.steps[2];
    if (at[2] <= map.sizes[3] - 1 + map.upper[2]) continue;
    at[2] = map.lower[2];
    at[1] += map.steps[1];
    if (at[1] <= map.sizes[2] - 1 + map.upper[1]) continue;
    at[1] = map.lower[1];
    ++at[0];
  }
  return out;
}

// Compares the elements, where there are windows, for some blocks and places.
void ExpectSameElements(const Conv& c, std::mt19937& random) {
  ConvCopy copy(c);
  const std::optional<BoxCopy> found = copy.Find();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->tensor_rows, c.windows());
  ASSERT_FALSE(found->differs_beyond);
  ASSERT_EQ(found->map.spatial, 2);
  for (int draw = 0; draw < 8; ++draw) {
    VarValues values;
    const int64_t block = draw < 2
                              ? (draw == 0 ? 0 : copy.blocks - 1)
                              : static_cast<int64_t>(random()) % copy.blocks;
    values[copy.block.get()] = block;
    values[copy.part.get()] =
        static_cast<int64_t>(random()) % (copy.places / c.cuts);
    values[copy.cut.get()] = static_cast<int64_t>(random()) % c.cuts;
    const auto at = [&](const Expr& e) { return *arith::Evaluate(e, values); };
    const auto& origin = found->origin;
    const std::vector<Place> places = EnginePlaces(
        found->map,
        {at(origin[0]), at(origin[2]), at(origin[3]), at(origin[4])},
        {at(found->offsets[1]), at(found->offsets[2])}, c.tile);
    for (int64_t r = 0; r < c.tile; ++r) {
      values[copy.tile.row.get()] = r;
      values[copy.tile.column.get()] = 0;
      const Place& place = places[static_cast<size_t>(r)];
      if (block * c.tile + r >= c.windows()) {
        ASSERT_GE(place[0], c.images);
        continue;
      }
      for (size_t d = 0; d < 4; ++d) {
        ASSERT_EQ(place[d], at(copy.indices[d])) << "row " << r;
      }
    }
  }
}

TEST(BoxCopyTest, WindowsAreWhatTheEngineCopies) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random()) % (most - least + 1);
  };
  for (int i = 0; i < 300; ++i) {
    Conv c{draw(1, 4), draw(4, 60), draw(4, 60), 64 * draw(1, 3), {}, {},
           {},         {},          {}};
    for (size_t d = 0; d < 2; ++d) {
      c.kernel[d] = draw(2, 3);
      c.step[d] = draw(1, 3);
      c.dilation[d] = draw(1, 2);
      c.before[d] = draw(0, 2);
      c.after[d] = draw(0, 2);
    }
    c.tile = 64 << draw(0, 2);
    do {
      c.cuts = draw(1, 6);
    } while (c.kernel[0] * c.kernel[1] * c.channels / 64 % c.cuts != 0);
    if (c.length(0) < 2 || c.length(1) < 2 || c.windows() < 64) continue;
    SCOPED_TRACE(testing::Message()
                 << c.images << " x " << c.height << " x " << c.width << ", "
                 << c.kernel[0] << " x " << c.kernel[1] << ", steps "
                 << c.step[0] << " " << c.step[1] << ", tile " << c.tile << ", "
                 << c.cuts << " cuts");
    ExpectSameElements(c, random);
    if (HasFatalFailure()) return;
  }
}

const Conv kPlain{2, 14, 14, 128, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};

TEST(BoxCopyTest, OtherConditionsAreRefused) {
  EXPECT_TRUE(ConvCopy(kPlain).Find());
  ConvCopy channels(kPlain), rows(kPlain);
  EXPECT_FALSE(channels.Find(ir::LT(channels.indices[3], IntConst(100))));
  EXPECT_FALSE(rows.Find(ir::LT(rows.number, IntConst(100))));
}

TEST(BoxCopyTest, WhatTheEngineCannotDoIsRefused) {
  Conv far = kPlain;
  far.step = {9, 1};
  far.height = 100;
  EXPECT_FALSE(ConvCopy(far).Find());
  Conv wide = kPlain;
  wide.before = {1, 129};
  EXPECT_FALSE(ConvCopy(wide).Find());
  // Places that go backwards.
  ConvCopy flipped(kPlain);
  flipped.indices[1] = flipped.indices[1] - Div(flipped.part, 6) * 2;
  EXPECT_FALSE(flipped.Find());
  // Rows that leave out the last window of each row of the image.
  ConvCopy gaps(kPlain);
  gaps.indices[2] = Mod(gaps.number, 13);
  EXPECT_FALSE(gaps.Find());
  // Columns that are not side by side.
  ConvCopy across(kPlain);
  across.indices[3] = Expr(across.tile.column) * 2;
  EXPECT_FALSE(across.Find());
}

TEST(BoxCopyTest, WindowsOfOneElementAreRowsOfAMatrix) {
  IndexMath math;
  const ir::Var block = ir::MakeVar("block");
  CopiedTile tile{{}, ir::MakeVar("row"), ir::MakeVar("column"), 128, {}, {}};
  tile.is_place = [](const Expr&) { return false; };
  math.Bind(block.get(), 0, 3);
  math.Bind(tile.row.get(), 0, 127);
  math.Bind(tile.column.get(), 0, 63);
  const Expr m = Expr(block) * 128 + tile.row;
  const ir::Buffer tensor =
      ir::MakeBuffer("X", ir::DataType::Float(16), {2, 14, 14, 64});
  const Expr load = ir::Load(
      tensor, {math.Simplify(Div(m, 196)), math.Simplify(Div(Mod(m, 196), 14)),
               math.Simplify(Mod(m, 14)), tile.column});
  tile.element = {ir::As<ir::LoadNode>(load), nullptr};
  const std::optional<BoxCopy> found = FindBoxCopy(math, tile);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->map.spatial, 0);
  EXPECT_EQ(found->tensor_rows, 392);
  EXPECT_EQ(found->map.sizes, (std::array<int64_t, 5>{1, 1, 1, 392, 64}));
  EXPECT_EQ(math.Difference(found->origin[3], Expr(block) * 128), 0);
}

// Of windows whose step is their distance in the image, conditions are divided
// by it: 2 <= 2 * x is 1 <= x.
TEST(BoxCopyTest, DividedConditionsAreBounds) {
  IndexMath math;
  const ir::Var x = ir::MakeVar("x");
  math.Bind(x.get(), 0, 20);
  const Expr index = Expr(x) * 2 - 2;
  const auto is_bound = [&](const Expr& condition) {
    return IsBoundOf(math, condition, index, /*extent=*/16);
  };
  EXPECT_TRUE(is_bound(ir::LE(IntConst(1), x)));
  EXPECT_TRUE(is_bound(ir::LT(x, IntConst(9))));
  EXPECT_TRUE(is_bound(ir::LE(IntConst(0), index)));
  EXPECT_TRUE(is_bound(ir::LT(index, IntConst(16))));
  for (const int64_t other : {0, 2}) {
    EXPECT_FALSE(is_bound(ir::LE(IntConst(other), x))) << other;
  }
  for (const int64_t other : {8, 10}) {
    EXPECT_FALSE(is_bound(ir::LT(x, IntConst(other)))) << other;
  }
  EXPECT_FALSE(is_bound(ir::LT(Expr(x) * 3, IntConst(16))));
}

// Rows that a product does not use may be beyond the last window.
TEST(BoxCopyTest, UnusedRowsNeedNoCondition) {
  IndexMath math;
  const ir::Var block = ir::MakeVar("block"), part = ir::MakeVar("part");
  CopiedTile tile{{}, ir::MakeVar("row"), ir::MakeVar("column"), 64, {}, {}};
  tile.is_place = [&](const Expr& e) { return ir::UsesVar(e, part.get()); };
  math.Bind(block.get(), 0, 1);
  math.Bind(part.get(), 0, 2);
  math.Bind(tile.row.get(), 0, 63);
  math.Bind(tile.column.get(), 0, 63);
  const Expr m = Expr(block) * 64 + tile.row;
  const Expr y = Div(m, 8) + part - 1;
  const ir::Buffer tensor =
      ir::MakeBuffer("X", ir::DataType::Float(16), {1, 9, 8, 64});
  const Expr load = ir::Load(tensor, {IntConst(0), y, Mod(m, 8), tile.column});
  tile.element = {ir::As<ir::LoadNode>(load),
                  ir::And(ir::LE(IntConst(0), y), ir::LT(y, IntConst(9)))};
  tile.used_windows = {{Expr(block) * 64, 100},
                       {Expr(block) * 64 + 8, 72},
                       {Expr(block) * 64, 72}};
  const std::optional<BoxCopy> found = FindBoxCopy(math, tile);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->tensor_rows, 72);
  EXPECT_TRUE(found->differs_beyond);
}

}  // namespace
}  // namespace tilefarm::arith
