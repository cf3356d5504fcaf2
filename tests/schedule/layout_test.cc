// set_scope, storage_align, transform_layout and index maps.
#include <gtest/gtest.h>

#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/index_map.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

TEST(SetScope, RenamesAndMovesTheBuffer) {
  ExpectBecomes(
      TwoElementwise(), R"(b0 = sch.get_block("B")
sch.set_scope(b0, 0, "shared")
)",
      Program("A: T.Buffer((32, 32), \"float32\"), "
              "C: T.Buffer((32, 32), \"float32\")",
              R"(B = T.alloc_buffer((32, 32), "float32", scope="shared")
for i, j in T.grid(32, 32):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj] * T.float32(2)
for i, j in T.grid(32, 32):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi, vj] + T.float32(1))"));
}

TEST(SetScope, RefusesParametersAndUnknownScopes) {
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("C")
sch.set_scope(b0, 0, "shared")
)",
                kIllegal, {"set_scope", "buffer C", "parameter"});
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("B")
sch.set_scope(b0, 0, "attic")
)",
                kInvalid, {"set_scope", "attic"});
}

TEST(StorageAlign, AnnotatesTheBlockAndTheBuffer) {
  auto schedule =
      Apply(ParseProgram(TwoElementwise()), R"(b0 = sch.get_block("B")
sch.storage_align(b0, 0, axis=-2, factor=32, offset=8)
)");
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const std::string text = ir::Print(schedule->module());
  EXPECT_NE(text.find("\"buffer_dim_align\": [[0, 0, 32, 8]]"),
            std::string::npos)
      << text;
  const auto* root = schedule->module().functions[0]->root();
  ASSERT_EQ(root->allocs.size(), 1u);
  EXPECT_EQ(root->allocs[0]->dim_align,
            (std::vector<std::vector<int64_t>>{{0, 32, 8}}));
  // The text contains all of it.
  const auto again = ir::ParseModule(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->functions[0]->root()->allocs[0]->dim_align,
            root->allocs[0]->dim_align);
  EXPECT_TRUE(ir::StructuralEqual(*again->functions[0],
                                  *schedule->module().functions[0]));
  EXPECT_EQ(ir::Print(*again), text);
}

TEST(StorageAlign, EndsWithTheLayoutItIsOf) {
  auto schedule =
      Apply(ParseProgram(TwoElementwise()), R"t(b0 = sch.get_block("B")
sch.storage_align(b0, 0, axis=0, factor=32, offset=8)
sch.transform_layout(b0, ("write", 0), "lambda i, j: (i // 16, j, i % 16)")
)t");
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const std::string text = ir::Print(schedule->module());
  EXPECT_EQ(text.find("buffer_dim_align"), std::string::npos) << text;
  EXPECT_TRUE(
      schedule->module().functions[0]->root()->allocs[0]->dim_align.empty());
}

TEST(StorageAlign, RefusesWrongArguments) {
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("B")
sch.storage_align(b0, 0, axis=2, factor=32, offset=8)
)",
                kInvalid, {"storage_align", "axis 2"});
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("B")
sch.storage_align(b0, 0, axis=0, factor=0, offset=8)
)",
                kInvalid, {"storage_align", "factor 0"});
  ExpectRefused(TwoElementwise(), R"(b0 = sch.get_block("B")
sch.storage_align(b0, 0, axis=1, factor=2147483647, offset=2147483646)
)",
                kInvalid, {"storage_align", "buffer B", "too large"});
}

TEST(TransformLayout, RewritesEveryAccess) {
  ExpectBecomes(TwoElementwise(), R"t(b0 = sch.get_block("B")
sch.transform_layout(b0, ("write", 0), "lambda i, j: (i // 16, j, i % 16)")
)t",
                Program("A: T.Buffer((32, 32), \"float32\"), "
                        "C: T.Buffer((32, 32), \"float32\")",
                        R"(B = T.alloc_buffer((2, 32, 16), "float32")
for i, j in T.grid(32, 32):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi // 16, vj, vi % 16] = A[vi, vj] * T.float32(2)
for i, j in T.grid(32, 32):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = B[vi // 16, vj, vi % 16] + T.float32(1))"));
}

TEST(TransformLayout, TheLastPieceMayBeUsedInPart) {
  auto schedule =
      Apply(ParseProgram(TwoElementwise()), R"t(b0 = sch.get_block("B")
sch.transform_layout(b0, ("write", 0), "lambda i, j: (i // 5, j, i % 5)")
)t");
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const auto* root = schedule->module().functions[0]->root();
  ASSERT_EQ(root->allocs.size(), 1u);
  EXPECT_EQ(root->allocs[0]->shape, (std::vector<int64_t>{7, 32, 5}));
}

TEST(TransformLayout, RefusesParametersAndPadding) {
  ExpectRefused(TwoElementwise(), R"t(b0 = sch.get_block("B")
sch.transform_layout(b0, ("read", 0), "lambda i, j: (j, i)")
)t",
                kIllegal, {"transform_layout", "buffer A", "parameter"});
  ExpectRefused(TwoElementwise(), R"t(b0 = sch.get_block("B")
sch.transform_layout(b0, ("write", 0), "lambda i, j: (i * 2, j)")
)t",
                kIllegal, {"transform_layout", "block B"});
  ExpectRefused(TwoElementwise(), R"t(b0 = sch.get_block("B")
sch.transform_layout(b0, ("write", 0), "lambda i, j: (i,)")
)t",
                kIllegal, {"transform_layout"});
  ExpectRefused(TwoElementwise(), R"t(b0 = sch.get_block("B")
sch.transform_layout(b0, ("write", 0), "lambda i: (i,)")
)t",
                kInvalid, {"transform_layout", "takes 1 indices"});
}

TEST(IndexMap, ReadsTheForms) {
  for (const char* text :
       {"lambda i, j: (i // 16, j, i % 16)", "lambda i,j:[i//16,j,i%16]",
        "T.index_map(lambda i, j: (i // 16, j, i % 16))"}) {
    auto map = schedule::IndexMap::Parse(text);
    ASSERT_TRUE(map.ok()) << map.status();
    EXPECT_EQ(map->num_inputs(), 2);
    EXPECT_EQ(map->num_outputs(), 3);
    auto shape = map->OutputShape({32, 8});
    ASSERT_TRUE(shape.ok()) << shape.status();
    EXPECT_EQ(*shape, (std::vector<int64_t>{2, 8, 16}));
  }
  auto flat = schedule::IndexMap::Parse("lambda i, j: (i * 8 + j) * 1");
  ASSERT_TRUE(flat.ok()) << flat.status();
  EXPECT_EQ(flat->num_outputs(), 1);
  EXPECT_EQ(*flat->OutputShape({4, 8}), (std::vector<int64_t>{32}));
}

TEST(IndexMap, RefusesBadText) {
  for (const char* text :
       {"", "lambda", "lambda i: (i", "lambda i: j", "lambda i, i: i",
        "lambda i: i // 0", "lambda i: i % i", "lambda i: i) x", "i",
        "lambda i: ()", "lambda i: 99999999999999999999"}) {
    const auto map = schedule::IndexMap::Parse(text);
    EXPECT_EQ(map.status().code(), kInvalid) << text;
  }
  const std::string deep = "lambda i: " + std::string(5000, '(') + "i";
  EXPECT_EQ(schedule::IndexMap::Parse(deep).status().code(), kInvalid);
}

}  // namespace
}  // namespace tilefarm::testing
