#include "compiler/lower/iteration_analysis.h"

#include <gtest/gtest.h>

namespace tilefarm::lower {
namespace {

using ir::Expr;

TEST(Determines, IterationsAreToldApart) {
  const ir::Var i = ir::MakeVar("i"), j = ir::MakeVar("j");
  IndexMath math;
  math.Bind(i.get(), 0, 15);
  math.Bind(j.get(), 0, 7);
  const auto div = [](Expr a, int64_t b) {
    return ir::FloorDiv(std::move(a), ir::IntConst(b));
  };
  const auto mod = [](Expr a, int64_t b) {
    return ir::FloorMod(std::move(a), ir::IntConst(b));
  };

  const auto dims = [&](std::vector<Expr> indices) {
    AccessDims out;
    for (const Expr& index : indices) out.push_back(math.Decompose(index));
    return out;
  };
  // Tiles do not overlap, but halos do.
  EXPECT_TRUE(Determines(math, {dims({Expr(i) * 8 + j})}, i.get(), 16));
  EXPECT_FALSE(Determines(math, {dims({Expr(i) * 7 + j})}, i.get(), 16));
  // Both digits of a fused loop are needed.
  EXPECT_TRUE(Determines(math, {dims({div(i, 4), mod(i, 4)})}, i.get(), 16));
  EXPECT_FALSE(Determines(math, {dims({div(i, 4), j})}, i.get(), 16));
  // Another access must not reach into the neighbour.
  EXPECT_FALSE(
      Determines(math, {dims({Expr(i) * 8 + j}), dims({Expr(i) * 8 + j + 1})},
                 i.get(), 16));
}

}  // namespace
}  // namespace tilefarm::lower
