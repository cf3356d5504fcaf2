// Each rule: its result, and where it does not apply.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/design_space.h"
#include "compiler/space/sketch_rules.h"
#include "tests/space/schedule_text.h"
#include "tests/space/space_test_programs.h"
#include "tests/support/two_reductions.h"

namespace tilefarm::space {
namespace {

using schedule::Schedule;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<Schedule> Apply(SketchRule* rule, const ir::PrimFuncPtr& program,
                            const std::string& block, int cores = 1) {
  const RuleContext context{"main", TestTarget(cores)};
  auto results = ApplyRule(rule, context, Make(program), block);
  EXPECT_TRUE(results.ok()) << results.status();
  return *results;
}

TEST(SplitReductionsTest, EachSumIsAReductionOfItsOwn) {
  const ir::PrimFuncPtr program = property::TwoReductions(4, 512);
  const auto results = Apply(SplitReductions, program, "sums");
  ASSERT_EQ(results.size(), 1u);
  EXPECT_THAT(Blocks(results[0]), ElementsAre("sums_S", "sums_Q", "B"));
  ExpectSameOutputs(*program, *results[0].module().Find("main"));
  // What is no reduction to several results stays.
  EXPECT_EQ(Text(Apply(SplitReductions, program, "B")[0]), Text(Make(program)));
  EXPECT_EQ(Text(Apply(SplitReductions, Norm(2, 256), "S")[0]),
            Text(Make(Norm(2, 256))));
}

TEST(SplitReductionsTest, SumsOfOneBlockHaveManyCandidates) {
  const auto space =
      DesignSpace::Create(property::TwoReductions(32, 8192), TestTarget());
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_GT((*space)->ApproximateSize(), 1000);
}

TEST(AutoInlineTest, ElementwiseProducerVanishes) {
  const te::Tensor a = te::Placeholder("A", {8}, ir::DataType::Float(32));
  const te::Tensor b = te::Relu(a, "B");
  const auto results = Apply(AutoInline, Build({a, te::Add(b, a, "C")}), "B");
  ASSERT_EQ(results.size(), 1u);
  EXPECT_THAT(Blocks(results[0]), ElementsAre("C"));
}

TEST(AutoInlineTest, PaddingIsCopiedOrSkipped) {
  const auto results = Apply(AutoInline, PaddedConv(), "pad_temp");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_THAT(Blocks(results[0]), ElementsAre("conv2d_nhwc", "T_relu"));
  EXPECT_THAT(Text(results[0]), HasSubstr("\"tilefarm.skip_padding\": 1"));
  EXPECT_THAT(Blocks(results[1]),
              ElementsAre("pad_temp", "conv2d_nhwc", "T_relu"));
  ExpectSameOutputs(*PaddedConv(), *results[0].module().Find("main"));
}

TEST(AutoInlineTest, PaddingOfAMaximumStays) {
  const te::Tensor data =
      te::Placeholder("data", {1, 6, 6, 4}, ir::DataType::Float(32));
  te::PoolOptions options;
  options.padding = {1, 1};
  const ir::PrimFuncPtr pool =
      Build({data, te::Pool2dNhwc(data, te::Pooling::kMax, options)});
  const std::vector<std::string> blocks = Blocks(Make(pool));
  ASSERT_EQ(blocks.size(), 2u);
  const auto results = Apply(AutoInline, pool, blocks[0]);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(Blocks(results[0]), blocks);
}

TEST(AutoInlineTest, OutputsAndCostlyFunctionsStay) {
  EXPECT_THAT(Blocks(Apply(AutoInline, MatmulRelu(4, 4, 4), "D")[0]),
              ElementsAre("C", "D"));
  EXPECT_THAT(Blocks(Apply(AutoInline, SmallSoftmax(), "T_softmax_exp")[0]),
              ::testing::Contains("T_softmax_exp"));
}

TEST(AutoInlineTest, ProductsDoNotRepeatDivisions) {
  const ir::PrimFuncPtr attention = AttentionHead(8, 16, 4);
  EXPECT_THAT(Blocks(Apply(AutoInline, attention, "T_softmax_norm")[0]),
              ::testing::Contains("T_softmax_norm"));
  const te::Tensor a = te::Placeholder("A", {8, 8}, ir::DataType::Float(32));
  const te::Tensor b = te::Divide(a, a, "B");
  EXPECT_THAT(Blocks(Apply(AutoInline, Build({a, te::Add(b, a, "C")}), "B")[0]),
              ElementsAre("C"));
}

TEST(SkipZerosTest, TransposedConvolutionsBecomeDense) {
  const auto results = Apply(SkipZeros, TransposedConv(), "C");
  ASSERT_EQ(results.size(), 1u);
  EXPECT_THAT(Text(results[0]), Not(HasSubstr("if_then_else")));
  EXPECT_THAT(results[0].trace().Print(), HasSubstr("sch.skip_zeros("));
  ExpectSameOutputs(*TransposedConv(), *results[0].module().Find("main"));
}

TEST(SkipZerosTest, OtherSumsStay) {
  EXPECT_EQ(Text(Apply(SkipZeros, Matmul(8, 8, 8), "C")[0]),
            Text(Make(Matmul(8, 8, 8))));
  EXPECT_EQ(Text(Apply(SkipZeros, PaddedConv(), "conv2d_nhwc")[0]),
            Text(Make(PaddedConv())));
}

// 3x3 over `groups` times 8 channels into `groups` times `out`.
te::Tensor ConvInGroups(int64_t groups, int64_t out,
                        std::vector<te::Tensor>* params) {
  const auto type = ir::DataType::Float(32);
  const te::Tensor data = te::Placeholder("data", {1, 7, 6, 8 * groups}, type);
  const te::Tensor weight =
      te::Placeholder("weight", {3, 3, 8, groups * out}, type);
  *params = {data, weight};
  te::ConvOptions options;
  options.groups = groups;
  return te::Conv2dNhwc(data, weight, options);
}

TEST(SplitGroupsTest, GroupsBecomeAnAxis) {
  std::vector<te::Tensor> params;
  const te::Tensor conv = ConvInGroups(3, 4, &params);
  params.push_back(te::Relu(conv));
  const ir::PrimFuncPtr program = Build(params);
  const auto results = Apply(SplitGroups, program, "conv2d_nhwc");
  ASSERT_EQ(results.size(), 1u);
  EXPECT_THAT(Blocks(results[0]), ElementsAre("conv2d_nhwc", "T_relu"));
  // Groups of four of the result; no lane divides its index.
  EXPECT_THAT(Text(results[0]), HasSubstr("(1, 5, 4, 3, 4)"));
  EXPECT_THAT(Text(results[0]), Not(HasSubstr("//")));
  ExpectSameOutputs(*program, *results[0].module().Find("main"));

  // The consumer still writes tile by tile: two levels, with and without a
  // packed operand.
  for (Schedule sketch : results) {
    auto tiled = ApplyRule(MultiLevelTiling, {"main", TestTarget()},
                           std::move(sketch), "conv2d_nhwc");
    ASSERT_TRUE(tiled.ok()) << tiled.status();
    ASSERT_EQ(tiled->size(), 4u);
    for (const Schedule& one : *tiled) {
      EXPECT_THAT(one.trace().Print(), HasSubstr("reverse_compute_at"));
      ExpectSameOutputs(*program, *one.module().Find("main"));
    }
  }
}

TEST(SplitGroupsTest, OutputsAreWrittenByACopy) {
  std::vector<te::Tensor> params;
  const te::Tensor conv = ConvInGroups(2, 8, &params);
  params.push_back(conv);
  const ir::PrimFuncPtr program = Build(params);
  const auto results = Apply(SplitGroups, program, "conv2d_nhwc");
  ASSERT_EQ(results.size(), 1u);
  EXPECT_THAT(Blocks(results[0]),
              ElementsAre("conv2d_nhwc", "conv2d_nhwc_global"));
  ExpectSameOutputs(*program, *results[0].module().Find("main"));
}

TEST(SplitGroupsTest, OtherSumsStay) {
  // One group, and groups of two.
  for (const auto& [groups, out] :
       {std::pair<int64_t, int64_t>{1, 8}, {4, 2}}) {
    std::vector<te::Tensor> params;
    const te::Tensor conv = ConvInGroups(groups, out, &params);
    params.push_back(te::Relu(conv));
    const ir::PrimFuncPtr program = Build(params);
    EXPECT_EQ(Text(Apply(SplitGroups, program, "conv2d_nhwc")[0]),
              Text(Make(program)));
  }
  EXPECT_EQ(Text(Apply(SplitGroups, MatmulRelu(8, 8, 8), "C")[0]),
            Text(Make(MatmulRelu(8, 8, 8))));
  EXPECT_EQ(Text(Apply(SplitGroups, MatmulRelu(8, 8, 8), "D")[0]),
            Text(Make(MatmulRelu(8, 8, 8))));
}

// 16 into 32 channels, followed by a ReLU.
ir::PrimFuncPtr ConvOf(int64_t kernel, int64_t stride, int64_t channels) {
  const auto type = ir::DataType::Float(32);
  const te::Tensor data = te::Placeholder("data", {1, 10, 9, channels}, type);
  const te::Tensor weight =
      te::Placeholder("weight", {kernel, kernel, channels, 32}, type);
  te::ConvOptions options;
  options.stride = {stride, stride};
  return Build({data, weight, te::Relu(te::Conv2dNhwc(data, weight, options))});
}

TEST(WinogradTest, IsASecondAndThirdWay) {
  const ir::PrimFuncPtr conv = WithConstants(ConvOf(3, 1, 16), {1});
  const auto results = Apply(Winograd, conv, "conv2d_nhwc");
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(Text(results[0]), Text(Make(conv)));
  for (const size_t i : {1u, 2u}) {
    EXPECT_THAT(results[i].trace().Print(),
                HasSubstr(i == 1 ? "tile=2)" : "tile=4)"));
    EXPECT_THAT(Text(results[i]), HasSubstr("\"SSRSRSV\""));
    EXPECT_THAT(Text(results[i]), HasSubstr("\"tilefarm.prepack\": 1"));
    EXPECT_THAT(Blocks(results[i]),
                ElementsAre("conv2d_nhwc_kernel", "conv2d_nhwc_tile",
                            "conv2d_nhwc_tile_rows", "conv2d_nhwc_input",
                            "conv2d_nhwc_product", "conv2d_nhwc_product_rows",
                            "T_relu"));
    ExpectSameOutputs(*conv, *results[i].module().Find("main"));
  }
}

TEST(WinogradTest, OtherConvolutionsStay) {
  for (const ir::PrimFuncPtr& conv : {ConvOf(3, 2, 16), ConvOf(5, 1, 16),
                                      ConvOf(1, 1, 16), ConvOf(3, 1, 7)}) {
    EXPECT_EQ(Apply(Winograd, conv, "conv2d_nhwc").size(), 1u)
        << ir::Print(*conv);
  }
  EXPECT_EQ(Apply(Winograd, Matmul(32, 32, 32), "C").size(), 1u);
}

// Softmax over rows of `terms`, on a machine with small caches.
std::vector<Schedule> OnlineSoftmaxOf(const ir::PrimFuncPtr& program,
                                      const std::string& block,
                                      int64_t l3_bytes) {
  RuleContext context{"main", TestTarget(1)};
  context.target.caches.l3_bytes = l3_bytes;
  auto results = ApplyRule(OnlineSoftmax, context, Make(program), block);
  EXPECT_TRUE(results.ok()) << results.status();
  return *results;
}

ir::PrimFuncPtr SoftmaxOf(int64_t rows, int64_t terms) {
  const te::Tensor a =
      te::Placeholder("A", {rows, terms}, ir::DataType::Float(32));
  return Build({a, te::Softmax(a)});
}

TEST(OnlineSoftmaxTest, IsASecondWayForRowsFromMemory) {
  for (const int64_t terms : {6144, 5003}) {
    const ir::PrimFuncPtr softmax = SoftmaxOf(3, terms);
    const auto results = OnlineSoftmaxOf(softmax, "T_softmax_expsum", 64 << 10);
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(Text(results[0]), Text(Make(softmax)));
    EXPECT_THAT(
        Blocks(results[1]),
        ElementsAre("T_softmax_maxelem_part", "T_softmax_expsum_part",
                    "T_softmax_maxelem", "T_softmax_expsum", "T_softmax_norm"));
    // One nest: row by row, and chunk by chunk within a row.
    EXPECT_THAT(
        Text(results[1]),
        HasSubstr(absl::StrCat("for k0_0 in range(", (terms + 1023) / 1024,
                               "):\n            for k0_1, k0_2")));
    EXPECT_THAT(Text(results[1]),
                HasSubstr(absl::StrCat("for ax0, ax1 in T.grid(1, ", terms)));
    ExpectSameOutputs(*softmax, *results[1].module().Find("main"));
    // Its location is chosen: other rules do not change it.
    const RuleContext context{"main", TestTarget(1)};
    for (SketchRule* const rule :
         {AddRfactor, TileReduction, FollowConsumers, RandomComputeLocation}) {
      for (const char* name :
           {"T_softmax_maxelem", "T_softmax_expsum", "T_softmax_expsum_part"}) {
        const auto next = ApplyRule(rule, context, results[1], name);
        ASSERT_TRUE(next.ok()) << next.status();
        EXPECT_EQ(next->size(), 1u) << name;
        EXPECT_EQ(Text(next->front()), Text(results[1])) << name;
      }
    }
  }
}

TEST(OnlineSoftmaxTest, OneRowRunsChunkByChunk) {
  const ir::PrimFuncPtr softmax = SoftmaxOf(1, 40000);
  const auto results = OnlineSoftmaxOf(softmax, "T_softmax_expsum", 64 << 10);
  ASSERT_EQ(results.size(), 2u) << ir::Print(*softmax);
  ExpectSameOutputs(*softmax, *results[1].module().Find("main"));
}

TEST(OnlineSoftmaxTest, OtherProgramsStay) {
  const ir::PrimFuncPtr softmax = SoftmaxOf(3, 6144);
  // Data in a cache; short rows; other blocks; other sums.
  EXPECT_EQ(OnlineSoftmaxOf(softmax, "T_softmax_expsum", 1 << 20).size(), 1u);
  EXPECT_EQ(
      OnlineSoftmaxOf(SoftmaxOf(64, 384), "T_softmax_expsum", 64 << 10).size(),
      1u);
  EXPECT_EQ(OnlineSoftmaxOf(softmax, "T_softmax_maxelem", 64 << 10).size(), 1u);
  EXPECT_EQ(OnlineSoftmaxOf(softmax, "T_softmax_norm", 64 << 10).size(), 1u);
  EXPECT_EQ(OnlineSoftmaxOf(Matmul(32, 8192, 32), "C", 64 << 10).size(), 1u);
}

// From the scores to the last product, all is below the tiles of rows.
TEST(ChainProductsTest, AttentionGoesTileByTileOfRows) {
  for (const int64_t keys : {32, 37}) {
    const ir::PrimFuncPtr attention = AttentionHead(12, keys, 8);
    const auto results = Apply(ChainProducts, attention, "O");
    ASSERT_GT(results.size(), 2u);
    EXPECT_EQ(Text(results.back()), Text(Make(attention)));
    for (size_t i = 0; i + 1 < results.size(); ++i) {
      const ir::PrimFuncPtr chained = results[i].module().Find("main");
      EXPECT_EQ(chained->root()->body->kind, ir::StmtKind::kFor);
      ExpectSameOutputs(*attention, *chained);
    }
    EXPECT_THAT(Text(results[0]), HasSubstr("T_softmax_expsum_rf"));
  }
}

TEST(ChainProductsTest, ChainsOfConstantWeights) {
  const auto type = ir::DataType::Float(32);
  const te::Tensor x = te::Placeholder("X", {12, 8}, type);
  const te::Tensor a = te::Placeholder("A", {8, 32}, type);
  const te::Tensor b = te::Placeholder("B", {32, 8}, type);
  const ir::PrimFuncPtr layers = WithConstants(
      Build({x, a, b,
             te::Matmul(te::Relu(te::Matmul(x, a, {}, "H")), b, {}, "Y")}),
      {1, 2});
  const auto results = Apply(ChainProducts, layers, "Y");
  ASSERT_GT(results.size(), 1u);
  EXPECT_THAT(Text(results[0]), HasSubstr("\"tilefarm.prepack\": 1"));
  ExpectSameOutputs(*layers, *results[0].module().Find("main"));
}

TEST(ChainProductsTest, OtherProductsStay) {
  const auto type = ir::DataType::Float(32);
  const te::Tensor a = te::Placeholder("A", {8, 8}, type);
  const te::Tensor b = te::Placeholder("B", {8, 8}, type);
  // No product makes the rows.
  EXPECT_EQ(Apply(ChainProducts, Matmul(8, 8, 8), "C").size(), 1u);
  EXPECT_EQ(Apply(ChainProducts,
                  Build({a, b, te::Matmul(te::Softmax(a), b, {}, "C")}), "C")
                .size(),
            1u);
  // All of the first product is needed outside of the second one's rows.
  const te::Tensor s = te::Matmul(a, b, {}, "S");
  EXPECT_EQ(Apply(ChainProducts,
                  Build({a, b, te::Add(te::Matmul(s, b, {}, "C"), s)}), "C")
                .size(),
            1u);
  // What each row needs of the first product is all of it.
  const te::Tensor norm =
      te::Subtract(s, te::ReduceOver(s, te::Reducer::kMax, {0, 1}, true, "M"));
  EXPECT_EQ(
      Apply(ChainProducts, Build({a, b, te::Matmul(norm, b, {}, "C")}), "C")
          .size(),
      1u);
}

TEST(MultiLevelTilingTest, FusesTheConsumerOrCachesTheResult) {
  // With or without packing, with the consumer below the second or first level.
  const auto fused = Apply(MultiLevelTiling, MatmulRelu(32, 32, 32), "C");
  EXPECT_EQ(fused.size(), 4u);
  for (const Schedule& sketch : fused) {
    EXPECT_THAT(Text(sketch), Not(HasSubstr("C_global")));
  }
  // Without a consumer: a write cache at either level, or in place.
  const auto cached = Apply(MultiLevelTiling, Matmul(32, 32, 32), "C");
  EXPECT_EQ(cached.size(), 6u);
  EXPECT_THAT(Text(cached[0]), HasSubstr("C_global"));
  EXPECT_THAT(Text(cached[0]), HasSubstr("B_global"));
  EXPECT_THAT(Text(cached.back()), Not(HasSubstr("_global")));
  EXPECT_THAT(cached.back().trace().Print(), HasSubstr("ann_val=\"SSRSRS\""));
}

TEST(MultiLevelTilingTest, ConstantsArePackedAtTheRoot) {
  const ir::PrimFuncPtr program = WithConstants(Matmul(32, 32, 32), {1});
  const auto sketches = Apply(MultiLevelTiling, program, "C");
  // Never packed in the call, never left unpacked.
  EXPECT_EQ(sketches.size(), 3u);
  for (const Schedule& sketch : sketches) {
    EXPECT_THAT(Text(sketch), HasSubstr("tilefarm.prepack"));
    EXPECT_THAT(sketch.trace().Print(), Not(HasSubstr(kPack)));
    ExpectSameOutputs(*program, *sketch.module().Find("main"));
  }
  // The other operand may be packed in the call, and vectors may be of rows.
  const auto data =
      Apply(MultiLevelTiling, WithConstants(Matmul(32, 32, 32), {0}), "C");
  EXPECT_EQ(data.size(), 8u);
  EXPECT_THAT(Text(data[0]), HasSubstr("A_global"));
  EXPECT_THAT(Text(data[0]), HasSubstr("B_global"));
}

// A convolution of NCHW images, and a ReLU if `fused`.
ir::PrimFuncPtr ConvNchw(int64_t channels, bool fused) {
  const auto type = ir::DataType::Float(32);
  const te::Tensor data = te::Placeholder("data", {1, 4, 7, 7}, type);
  const te::Tensor weight =
      te::Placeholder("weight", {channels, 4, 3, 3}, type);
  const te::Tensor sums = te::Conv2dNchw(data, weight, {});
  return Build({data, weight, fused ? te::Relu(sums) : sums});
}

TEST(MultiLevelTilingTest, VectorsMayBeAlongAnAxisOfPackedConstants) {
  for (const bool fused : {true, false}) {
    const ir::PrimFuncPtr program = WithConstants(ConvNchw(32, fused), {1});
    const auto sketches = Apply(MultiLevelTiling, program, "conv2d_nchw");
    size_t moved = 0;
    for (const Schedule& sketch : sketches) {
      ExpectSameOutputs(*program, *sketch.module().Find("main"));
      const std::string trace = sketch.trace().Print();
      if (trace.find("transform_layout") == std::string::npos) continue;
      ++moved;
      EXPECT_THAT(trace, HasSubstr("lambda i0, i1, i2, i3: (i0, i2, i3, i1)"));
      EXPECT_THAT(Text(sketch), HasSubstr("(1, 5, 5, 32)"));
    }
    // Written below the first or the second level.
    EXPECT_EQ(moved, 2u) << "fused: " << fused;
  }
}

TEST(MultiLevelTilingTest, OtherAxesStayWhereTheyAre) {
  const auto expect_none = [](const ir::PrimFuncPtr& program,
                              const std::string& block) {
    for (const Schedule& sketch : Apply(MultiLevelTiling, program, block)) {
      EXPECT_THAT(sketch.trace().Print(), Not(HasSubstr("transform_layout")));
    }
  };
  // No constants; an axis shorter than a vector; an axis that the data have,
  // too; the last axis.
  expect_none(ConvNchw(32, true), "conv2d_nchw");
  expect_none(WithConstants(ConvNchw(2, true), {1}), "conv2d_nchw");
  const auto type = ir::DataType::Float(32);
  const te::Tensor data = te::Placeholder("data", {1, 32, 7, 7}, type);
  const te::Tensor weight = te::Placeholder("weight", {32, 1, 3, 3}, type);
  te::ConvOptions depthwise;
  depthwise.groups = 32;
  expect_none(
      WithConstants(
          Build({data, weight, te::Conv2dNchw(data, weight, depthwise)}), {1}),
      "conv2d_nchw");
  expect_none(WithConstants(Matmul(32, 32, 32), {1}), "C");
}

TEST(MultiLevelTilingTest, LeavesWhatReusesNothing) {
  EXPECT_EQ(Apply(MultiLevelTiling, Norm(4, 64), "S").size(), 1u);
  EXPECT_EQ(Text(Apply(MultiLevelTiling, Norm(4, 64), "S")[0]),
            Text(Make(Norm(4, 64))));
}

TEST(MultiLevelTilingTest, AnyLastTileMayBeIncomplete) {
  const std::string trace =
      Apply(MultiLevelTiling, Matmul(2048, 1009, 512), "C")[0].trace().Print();
  EXPECT_THAT(trace, HasSubstr("sch.sample_tile(l1, n=4"));
  EXPECT_THAT(trace, HasSubstr("sch.sample_tile(l2, n=4"));
  EXPECT_THAT(trace, HasSubstr("sch.sample_tile(l3, n=2"));
}

TEST(MultiLevelTilingTest, LongReductionsStayInRegisters) {
  // The whole extent may be the innermost tile.
  for (const int64_t length : {512, 1009}) {
    EXPECT_THAT(
        Apply(MultiLevelTiling, Matmul(32, 32, length), "C")[0].trace().Print(),
        HasSubstr("sample_tile(l3, n=2, max_innermost_factor=2048"));
  }
}

TEST(MultiLevelTilingTest, FewRowsMayBeCutAnywhere) {
  // 7 rows in tiles of 2; a kernel of 7 as a whole.
  const te::Tensor data =
      te::Placeholder("data", {1, 13, 14, 4}, ir::DataType::Float(32));
  const te::Tensor weight =
      te::Placeholder("weight", {7, 7, 4, 16}, ir::DataType::Float(32));
  const auto sketches = Apply(
      MultiLevelTiling, Build({data, weight, te::Conv2dNhwc(data, weight, {})}),
      "conv2d_nhwc");
  const std::string trace = sketches[0].trace().Print();
  EXPECT_THAT(trace, HasSubstr("sch.sample_tile(l3, n=4"));
  EXPECT_THAT(trace, HasSubstr("sch.sample_perfect_tile(l6, n=2"));
}

TEST(AddRfactorTest, FewOutputsAreFactoredEitherWay) {
  const auto results = Apply(AddRfactor, Norm(2, 256), "S");
  ASSERT_EQ(results.size(), 3u);
  EXPECT_THAT(Blocks(results[0]), ElementsAre("S"));
  EXPECT_THAT(Blocks(results[1]), ElementsAre("S_rf", "S"));
  EXPECT_THAT(Blocks(results[2]), ElementsAre("S_rf", "S"));
  for (const Schedule& result : results) {
    ExpectSameOutputs(*Norm(2, 256), *result.module().Find("main"));
  }
}

TEST(AddRfactorTest, ShortReductionsAndMatmulsStay) {
  EXPECT_EQ(Apply(AddRfactor, Norm(2, 8), "S").size(), 1u);
  EXPECT_EQ(Apply(AddRfactor, Matmul(8, 8, 64), "C").size(), 1u);
  // Enough outputs for the cores: only the alternative for vectors.
  EXPECT_EQ(Apply(AddRfactor, Norm(512, 64), "S").size(), 2u);
}

// y[i, j] += x[i, k] * W[j, k]: lanes along k, several outputs at once.
TEST(AddRfactorTest, DotProductsOfFewRowsAreFactored) {
  const auto results = Apply(AddRfactor, Dense(1, 48, 256), "C");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_THAT(results[1].trace().Print(), HasSubstr("sch.rfactor("));
  EXPECT_THAT(results[1].trace().Print(), HasSubstr("sch.reverse_compute_at("));
  // With many rows, a packed operand is reused often enough.
  EXPECT_EQ(Apply(AddRfactor, Dense(64, 48, 256), "C").size(), 1u);
}

TEST(TileTransposedTest, BothAxesAreCutAndOthersAreLeft) {
  const auto results = Apply(TileTransposed, Transposed(64, 48), "T_transpose");
  ASSERT_EQ(results.size(), 2u);
  const std::string trace = results[0].trace().Print();
  EXPECT_THAT(trace, HasSubstr("sch.reorder("));
  EXPECT_THAT(trace, HasSubstr(kTilingStructure));
  // By registers: without the annotation, so that the innermost loop is
  // vectorized.
  const std::string registers = results[1].trace().Print();
  EXPECT_THAT(registers, HasSubstr("sch.reorder("));
  EXPECT_THAT(registers, Not(HasSubstr(kTilingStructure)));
  ExpectSameOutputs(*Transposed(64, 48), *results[1].module().Find("main"));
  // Rows that are not a multiple of registers are only tiled in squares.
  EXPECT_EQ(Apply(TileTransposed, Transposed(63, 49), "T_transpose").size(),
            1u);
  // Too short, or not a transposition.
  for (const auto& unchanged :
       {Apply(TileTransposed, Transposed(64, 4), "T_transpose"),
        Apply(TileTransposed, MatmulRelu(16, 16, 16), "D")}) {
    EXPECT_THAT(unchanged[0].trace().Print(), Not(HasSubstr("sch.split(")));
  }
}

TEST(TileReductionTest, OutputsSideBySideAreTiledWithTheirConsumer) {
  const te::Tensor a =
      te::Placeholder("A", {6, 9, 64}, ir::DataType::Float(32));
  const te::Tensor total =
      te::ReduceOver(a, te::Reducer::kSum, {0}, false, "S");
  const auto results =
      Apply(TileReduction, Build({a, te::Relu(total, "R")}), "S");
  ASSERT_EQ(results.size(), 2u);
  const std::string trace = results[1].trace().Print();
  EXPECT_THAT(trace, HasSubstr("sch.reorder("));
  EXPECT_THAT(trace, HasSubstr("sch.reverse_compute_at("));
  // Lanes along the reduction need rfactor; blocks with reuse have other tiles.
  EXPECT_EQ(Apply(TileReduction, Norm(64, 64), "S").size(), 1u);
  EXPECT_EQ(Apply(TileReduction, Matmul(8, 8, 8), "C").size(), 1u);
}

// Every block of a softmax is below one loop over its rows.
TEST(FollowConsumersTest, ChainsGoRowByRow) {
  const auto results = Apply(FollowConsumers, SmallSoftmax(), "root");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(Text(results[0]), Text(Make(SmallSoftmax())));
  const ir::PrimFuncPtr followed = results[1].module().Find("main");
  EXPECT_EQ(followed->root()->body->kind, ir::StmtKind::kFor);
  ExpectSameOutputs(*SmallSoftmax(), *followed);
}

TEST(FollowConsumersTest, NothingIsComputedTwice) {
  // The rows of a window overlap; a single matmul has no producers.
  EXPECT_EQ(Apply(FollowConsumers, PaddedConv(), "pad_temp").size(), 2u);
  const auto conv = Apply(FollowConsumers, PaddedConv(), "pad_temp");
  EXPECT_THAT(Text(conv[1]), HasSubstr("in T.grid(1, 8, 8, 4):"));
  EXPECT_EQ(Apply(FollowConsumers, Matmul(8, 8, 8), "root").size(), 1u);
}

TEST(FollowConsumersTest, TiledConsumersAreLeft) {
  for (const Schedule& tiled :
       Apply(MultiLevelTiling, PaddedConv(), "conv2d_nhwc")) {
    auto results =
        ApplyRule(FollowConsumers, {"main", TestTarget()}, tiled, "root");
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ(results->size(), 1u);
  }
}

TEST(RandomComputeLocationTest, ProducersMayMoveOutputsMayNot) {
  const auto moved =
      Apply(RandomComputeLocation, SmallSoftmax(), "T_softmax_expsum");
  EXPECT_THAT(moved[0].trace().Print(),
              HasSubstr("sch.sample_compute_location("));
  const auto output =
      Apply(RandomComputeLocation, SmallSoftmax(), "T_softmax_norm");
  EXPECT_THAT(output[0].trace().Print(),
              Not(HasSubstr("sch.sample_compute_location(")));
}

TEST(ParallelVectorizeUnrollTest, AsksForJobsOnlyWithCores) {
  const auto one = Apply(ParallelVectorizeUnroll, Matmul(8, 8, 8), "root", 1);
  EXPECT_THAT(one[0].trace().Print(), Not(HasSubstr(kParallel)));
  EXPECT_THAT(one[0].trace().Print(), HasSubstr(kUnrollExplicit));
  const auto four = Apply(ParallelVectorizeUnroll, Matmul(8, 8, 8), "root", 4);
  EXPECT_THAT(four[0].trace().Print(), HasSubstr(kParallel));
}

}  // namespace
}  // namespace tilefarm::space
