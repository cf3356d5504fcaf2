// The features of a skeleton equal those of the replayed program bit for bit,
// and both agree on which candidates are legal: random sketches and decisions
// of several workloads.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <tuple>

#include "cost_model/features.h"
#include "cost_model/skeleton/evaluator.h"
#include "tests/space/space_test_programs.h"
#include "tests/support/candidate_text.h"
#include "tests/support/two_reductions.h"

namespace tilefarm::skeleton {
namespace {

using ir::DataType;
using te::Tensor;

constexpr int kCandidates = 300;

struct Workload {
  const char* name;
  std::function<ir::PrimFuncPtr()> make;
  // The minimum share of candidates that a skeleton must support.
  double by_skeleton;
  const char* cpu = "skylake-avx512";
};

Tensor Input(const char* name, std::vector<int64_t> shape) {
  return te::Placeholder(name, std::move(shape), DataType::Float(32));
}

ir::PrimFuncPtr Bytes() {
  return space::NarrowMatmul(48, 192, 96, "uint8", "int8", "int32");
}

std::vector<Workload> Workloads() {
  using space::Build;
  return {
      {"matmul_relu", [] { return space::MatmulRelu(128, 96, 64); }, 0.5},
      {"matmul", [] { return space::Matmul(256, 512, 128); }, 0.5},
      // Tails: no tile divides the extents.
      {"matmul_prime", [] { return space::MatmulRelu(61, 67, 64); }, 0.3},
      {"matmul_all_prime", [] { return space::Matmul(127, 131, 109); }, 0.3},
      {"dense_gelu",
       [] {
         const Tensor x = Input("x", {32, 64}), w = Input("w", {96, 64});
         const Tensor bias = Input("bias", {96});
         return Build(
             {x, w, bias, te::Dense(x, w, &bias, te::Activation::kGelu)});
       },
       0.2},
      // Exceeds the L2 cache: with and without streaming stores.
      {"large_relu",
       [] {
         const Tensor x = Input("x", {2048, 1024});
         return Build({x, te::Relu(x)});
       },
       0.5},
      {"batch_matmul",
       [] {
         const Tensor a = Input("a", {4, 32, 48}), b = Input("b", {4, 48, 64});
         return Build({a, b, te::BatchMatmul(a, b)});
       },
       0.5},
      {"padded_conv", [] { return space::PaddedConv(); }, 0.1},
      {"strided_conv",
       [] {
         const Tensor data = Input("data", {1, 28, 28, 16});
         const Tensor weight = Input("weight", {3, 3, 16, 32});
         te::ConvOptions options;
         options.padding = {1, 1};
         options.stride = {2, 2};
         return Build(
             {data, weight, te::Relu(te::Conv2dNhwc(data, weight, options))});
       },
       0.1},
      {"wide_conv",
       [] {
         const Tensor data = Input("data", {1, 112, 112, 3});
         const Tensor weight = Input("weight", {7, 7, 3, 64});
         te::ConvOptions options;
         options.padding = {3, 3};
         options.stride = {2, 2};
         return Build({data, weight, te::Conv2dNhwc(data, weight, options)});
       },
       0.1},
      {"odd_conv",
       [] {
         const Tensor data = Input("data", {1, 23, 19, 17});
         const Tensor weight = Input("weight", {3, 3, 17, 37});
         const Tensor bias = Input("bias", {37});
         te::ConvOptions options;
         options.padding = {1, 1};
         return Build(
             {data, weight, bias,
              te::Relu(te::Add(te::Conv2dNhwc(data, weight, options), bias))});
       },
       0.1},
      {"conv_nchw",
       [] {
         const Tensor data = Input("data", {1, 8, 14, 14});
         const Tensor weight = Input("weight", {16, 8, 3, 3});
         return Build({data, weight, te::Conv2dNchw(data, weight)});
       },
       0.3},
      {"grouped_conv",
       [] {
         const Tensor data = Input("data", {1, 14, 14, 32});
         const Tensor weight = Input("weight", {3, 3, 8, 32});
         te::ConvOptions options;
         options.groups = 4;
         return Build({data, weight, te::Conv2dNhwc(data, weight, options)});
       },
       0},
      {"depthwise",
       [] {
         const Tensor data = Input("data", {1, 28, 28, 32});
         const Tensor weight = Input("weight", {3, 3, 32, 1});
         te::ConvOptions options;
         options.padding = {1, 1};
         return Build(
             {data, weight,
              te::Relu(te::DepthwiseConv2dNhwc(data, weight, options))});
       },
       0},
      {"constant_matmul",
       [] { return space::WithConstants(space::MatmulRelu(128, 96, 64), {1}); },
       0.5},
      {"constant_prime",
       [] { return space::WithConstants(space::Matmul(61, 131, 109), {1}); },
       0.3},
      {"constant_both",
       [] {
         return space::WithConstants(space::Matmul(64, 96, 48), {0, 1});
       },
       0.5},
      {"constant_dense",
       [] { return space::WithConstants(space::Dense(1, 200, 384), {1}); },
       0.1},
      {"constant_conv",
       [] {
         const Tensor data = Input("data", {1, 23, 19, 17});
         const Tensor weight = Input("weight", {3, 3, 17, 37});
         const Tensor bias = Input("bias", {37});
         te::ConvOptions options;
         options.padding = {1, 1};
         return space::WithConstants(
             Build({data, weight, bias,
                    te::Relu(
                        te::Add(te::Conv2dNhwc(data, weight, options), bias))}),
             {1, 2});
       },
       0.1},
      // Includes Winograd's algorithm: with tiles that cover the outputs
      // exactly, and not.
      {"winograd",
       [] {
         const Tensor data = Input("data", {1, 8, 24, 32});
         const Tensor weight = Input("weight", {3, 3, 32, 64});
         te::ConvOptions options;
         options.padding = {1, 1};
         return space::WithConstants(
             Build({data, weight,
                    te::Relu(te::Conv2dNhwc(data, weight, options))}),
             {1});
       },
       0.1},
      {"winograd_tails",
       [] {
         const Tensor data = Input("data", {1, 9, 13, 16});
         const Tensor weight = Input("weight", {3, 3, 16, 32});
         return Build({data, weight, te::Conv2dNhwc(data, weight)});
       },
       0.1},
      {"constant_conv_nchw",
       [] {
         const Tensor data = Input("data", {1, 8, 14, 14});
         const Tensor weight = Input("weight", {16, 8, 3, 3});
         return space::WithConstants(
             Build({data, weight, te::Conv2dNchw(data, weight)}), {1});
       },
       0.3},
      {"constant_batch",
       [] {
         const Tensor a = Input("a", {4, 32, 48}), b = Input("b", {4, 48, 64});
         return space::WithConstants(Build({a, b, te::BatchMatmul(a, b)}), {1});
       },
       0.5},
      {"transposed_conv", [] { return space::TransposedConv(); }, 0.1},
      {"max_pool",
       [] {
         const Tensor data = Input("data", {1, 30, 30, 16});
         return Build({data, te::Pool2dNhwc(data, te::Pooling::kMax, {})});
       },
       0},
      {"elementwise",
       [] {
         const Tensor a = Input("a", {64, 200}), b = Input("b", {64, 200});
         return Build({a, b, te::Tanh(te::Add(te::Exp(a), te::Relu(b)))});
       },
       0},
      {"transpose",
       [] {
         const Tensor a = Input("a", {96, 80});
         return Build({a, te::Transpose(a, {1, 0})});
       },
       0},
      // Partial results (rfactor), of one loop and of two.
      {"row_sum", [] { return space::Norm(64, 512); }, 0.9},
      {"row_sum_prime", [] { return space::Norm(7, 1013); }, 0.5},
      {"row_sum_of_two",
       [] {
         const Tensor a = Input("a", {8, 24, 36});
         return Build(
             {a, te::ReduceOver(a, te::Reducer::kSum, {1, 2}, false, "S")});
       },
       0.3},
      {"two_sums", [] { return property::TwoReductions(8, 512); }, 0.3},
      {"softmax", [] { return space::SmallSoftmax(); }, 0.3},
      // One pass (online_softmax), with complete chunks and incomplete ones.
      {"long_softmax",
       [] {
         const Tensor a = Input("a", {4608, 8192});
         return Build({a, te::Softmax(a)});
       },
       0.3},
      {"long_softmax_tails",
       [] {
         const Tensor a = Input("a", {4608, 8009});
         return Build({a, te::Softmax(a)});
       },
       0.3},
      // Two products, by tiles of rows (chain_products).
      {"attention", [] { return space::AttentionHead(48, 64, 16); }, 0.35},
      {"attention_tails", [] { return space::AttentionHead(37, 53, 16); },
       0.25},
      {"layer_norm",
       [] {
         const Tensor a = Input("a", {32, 96});
         const Tensor gamma = Input("gamma", {96}), beta = Input("beta", {96});
         return Build({a, gamma, beta, te::LayerNorm(a, gamma, beta)});
       },
       0},
      // Dot products.
      {"bytes", Bytes, 0.7, "cooperlake"},
      {"bytes_8_lanes", Bytes, 0.7, "alderlake"},
      // Rows have tails; zero-padded dimensions have none.
      {"bytes_tails",
       [] { return space::NarrowMatmul(37, 75, 54, "uint8", "int8", "int32"); },
       0.7, "cooperlake"},
      {"one_group",
       [] {
         return space::WithConstants(
             space::NarrowMatmul(24, 96, 4, "uint8", "int8", "int32"), {1});
       },
       0.6, "cooperlake"},
      {"constant_bytes", [] { return space::WithConstants(Bytes(), {1}); }, 0.8,
       "cooperlake"},
      {"constant_words",
       [] {
         return space::WithConstants(
             space::NarrowMatmul(64, 96, 64, "int16", "int16", "int32"), {1});
       },
       0.8, "cooperlake"},
      {"constant_bf16",
       [] {
         return space::WithConstants(
             space::NarrowMatmul(61, 160, 64, "bfloat16", "bfloat16",
                                 "float32"),
             {1});
       },
       0.8, "cooperlake"},
      // Tiles of a matrix unit.
      {"tiles",
       [] {
         return space::NarrowMatmul(64, 96, 128, "uint8", "int8", "int32");
       },
       0.5, "sapphirerapids"},
      {"tiles_tails",
       [] { return space::NarrowMatmul(61, 90, 120, "int8", "int8", "int32"); },
       0.5, "sapphirerapids"},
      {"constant_tiles",
       [] {
         return space::WithConstants(
             space::NarrowMatmul(48, 64, 96, "bfloat16", "bfloat16", "float32"),
             {1});
       },
       0.5, "sapphirerapids"},
      {"tiles_conv", [] { return space::NarrowConvRelu(14, 64, 32); }, 0.4,
       "sapphirerapids"},
      {"bytes_conv", [] { return space::NarrowConvRelu(12, 16, 48); }, 0.6,
       "cooperlake"},
      {"constant_bytes_conv",
       [] {
         return space::WithConstants(space::NarrowConvRelu(12, 16, 48), {1});
       },
       0.6, "cooperlake"},
  };
}

class SkeletonPropertyTest
    : public testing::TestWithParam<std::tuple<size_t, int>> {};

TEST_P(SkeletonPropertyTest, FeaturesAreThoseOfTheProgram) {
  const auto [number, cores] = GetParam();
  const Workload workload = Workloads()[number];
  SCOPED_TRACE(workload.name);
  const target::Target target = space::TestTarget(cores, workload.cpu);
  const ir::PrimFuncPtr program = workload.make();
  auto made = space::DesignSpace::Create(program, target);
  ASSERT_TRUE(made.ok()) << made.status();
  const std::shared_ptr<const space::DesignSpace> space = *std::move(made);
  CandidateEvaluator evaluator(space, target);
  const uint64_t seed = 17 * number + static_cast<uint64_t>(cores);
  Rng rng(seed);
  std::optional<space::Candidate> last;
  for (int i = 0; i < kCandidates; ++i) {
    auto candidate = last && rng.Chance(0.5) ? space->Mutate(*last, rng)
                                             : space->Sample(rng);
    if (!candidate.ok()) candidate = space->Sample(rng);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    last = *candidate;
    SCOPED_TRACE(testing::Message()
                 << "seed " << seed << ", candidate " << i << ": "
                 << space::CandidateText(*candidate));
    const auto schedule = space->Apply(*candidate);
    const auto rows = evaluator.Evaluate(*candidate);
    ASSERT_EQ(schedule.ok(), rows.has_value()) << schedule.status();
    if (!rows) continue;
    const cost_model::FeatureRows want = cost_model::ExtractFeatures(
        *schedule->module().Find(program->name), target);
    ASSERT_EQ(rows->rows, want.rows);
    ASSERT_EQ(std::memcmp(rows->values.data(), want.values.data(),
                          want.values.size() * sizeof(float)),
              0);
    // No skeleton gave a wrong result, not even one that was detected.
    ASSERT_EQ(evaluator.stats().mismatches, 0);
  }
  const double share =
      static_cast<double>(evaluator.stats().by_skeleton) / kCandidates;
  RecordProperty("by_skeleton_percent", static_cast<int>(100 * share));
  for (const auto& [reason, count] : evaluator.stats().reasons) {
    RecordProperty("replayed: " + reason, static_cast<int>(count));
  }
  EXPECT_GE(share, workload.by_skeleton);
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, SkeletonPropertyTest,
    testing::Combine(testing::Range<size_t>(0, Workloads().size()),
                     testing::Values(1, 4)),
    [](const auto& info) {
      return std::string(Workloads()[std::get<0>(info.param)].name) + "_cores" +
             std::to_string(std::get<1>(info.param));
    });

}  // namespace
}  // namespace tilefarm::skeleton
