// The placement of choices between streaming and plain stores.
#include "compiler/codegen/streaming_choice.h"

#include <vector>

#include "compiler/ir/visitor.h"
#include "gtest/gtest.h"

namespace tilefarm::codegen {
namespace {

using ir::IntConst;
using ir::Stmt;

const ir::Buffer kSums =
    ir::MakeBuffer("sums", ir::DataType::Float(32), {1024});
const ir::Buffer kOut = ir::MakeBuffer("out", ir::DataType::Float(32), {1024});
const ir::Var kAligned = ir::MakeVar("aligned", ir::DataType::Bool());

Stmt StoreTo(const ir::Buffer& buffer, int64_t at) {
  return ir::MakeStore(buffer, {IntConst(at)},
                       ir::ConstOf(ir::DataType::Float(32), 0));
}

// `count` consecutive stores.
std::vector<Stmt> Stores(const ir::Buffer& buffer, int64_t count) {
  std::vector<Stmt> stores;
  for (int64_t i = 0; i < count; ++i) stores.push_back(StoreTo(buffer, i));
  return stores;
}

Stmt Loop(int64_t extent, Stmt body) {
  return ir::MakeFor(ir::MakeVar("i"), IntConst(extent), std::move(body));
}

// Every store to `out` is one vector.
Stmt Choose(const Stmt& body) {
  return ChooseAtStores(body, kAligned, [](const ir::StoreNode& store) {
    return int64_t{store.buffer == kOut};
  });
}

struct Found {
  int choices = 0;
  int sums = 0;    // stores to it
  int beside = 0;  // those inside of a choice
};
Found Look(const Stmt& stmt) {
  Found found;
  const auto count_sums = [](const Stmt& in) {
    int sums = 0;
    ir::PreOrder(in, [&](const Stmt& s) {
      const auto* store = ir::As<ir::StoreNode>(s);
      sums += store != nullptr && store->buffer == kSums;
      return true;
    });
    return sums;
  };
  found.sums = count_sums(stmt);
  ir::PreOrder(stmt, [&](const Stmt& s) {
    const auto* branch = ir::As<ir::IfNode>(s);
    if (branch == nullptr || branch->condition != kAligned) return true;
    ++found.choices;
    EXPECT_EQ(branch->then_case, branch->else_case);
    found.beside += count_sums(branch->then_case);
    return false;
  });
  return found;
}

TEST(ChooseAtStoresTest, NeighboursShareAChoiceBesideTheRest) {
  std::vector<Stmt> tile = Stores(kSums, 16);
  for (Stmt& store : Stores(kOut, 8)) tile.push_back(std::move(store));
  const Stmt chosen = Choose(Loop(4, ir::MakeSeq(tile)));
  ASSERT_NE(chosen, nullptr);
  const Found found = Look(chosen);
  EXPECT_EQ(found.choices, 1);
  EXPECT_EQ(found.sums, 16);
  EXPECT_EQ(found.beside, 0);
}

TEST(ChooseAtStoresTest, EachTileHasItsOwn) {
  std::vector<Stmt> tiles;
  for (int i = 0; i < 3; ++i) {
    std::vector<Stmt> tile = Stores(kSums, 16);
    tile.push_back(Loop(8, StoreTo(kOut, i)));
    tiles.push_back(Loop(4, ir::MakeAlloc(kSums, ir::MakeSeq(tile))));
  }
  // A tile at the border, with guarded rows.
  tiles.push_back(
      ir::MakeIf(ir::MakeVar("inside", ir::DataType::Bool()),
                 ir::MakeSeq({StoreTo(kSums, 0), Loop(4, StoreTo(kOut, 3))})));
  const Stmt chosen = Choose(ir::MakeSeq(tiles));
  ASSERT_NE(chosen, nullptr);
  const Found found = Look(chosen);
  EXPECT_EQ(found.choices, 4);
  EXPECT_EQ(found.beside, 0);
}

TEST(ChooseAtStoresTest, AChoiceStandsBeforeFourVectors) {
  // Eight tiles with three sums each: around the loop of tiles.
  std::vector<Stmt> tile = Stores(kSums, 2);
  for (Stmt& store : Stores(kOut, 3)) tile.push_back(std::move(store));
  std::vector<Stmt> all = Stores(kSums, 16);
  all.push_back(Loop(8, ir::MakeSeq(tile)));
  const Stmt chosen = Choose(Loop(5, ir::MakeSeq(all)));
  ASSERT_NE(chosen, nullptr);
  const Found found = Look(chosen);
  EXPECT_EQ(found.choices, 1);
  EXPECT_EQ(found.beside, 2);
  // With a fourth: inside of the loop.
  tile.push_back(StoreTo(kOut, 3));
  all.back() = Loop(8, ir::MakeSeq(tile));
  EXPECT_EQ(Look(Choose(Loop(5, ir::MakeSeq(all)))).beside, 0);
}

TEST(ChooseAtStoresTest, LittleCodeIsCopiedWhole) {
  std::vector<Stmt> tile = Stores(kSums, 15);
  for (Stmt& store : Stores(kOut, 8)) tile.push_back(std::move(store));
  EXPECT_EQ(Choose(Loop(4, ir::MakeSeq(tile))), nullptr);
}

TEST(ChooseAtStoresTest, WhatStandsTooFarApartIsCopiedWhole) {
  // A sum, a vector, a sum, a vector, ...
  std::vector<Stmt> mixed;
  for (int64_t i = 0; i < 20; ++i) {
    mixed.push_back(StoreTo(kSums, i));
    mixed.push_back(StoreTo(kOut, i));
  }
  EXPECT_EQ(Choose(ir::MakeSeq(mixed)), nullptr);
  // No streaming stores at all.
  EXPECT_EQ(Look(Choose(ir::MakeSeq(Stores(kSums, 20)))).choices, 0);
}

}  // namespace
}  // namespace tilefarm::codegen
