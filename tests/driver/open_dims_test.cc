// Libraries of models with open dimensions (docs/formats.md, "Open
// dimensions").
#include <string>
#include <vector>

#include "compiler/driver/compile_model.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/driver/model_library.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::driver {
namespace {

using graph::F32;
using graph::Graph;
using graph::GraphBuilder;
using graph::ValueId;
using testing::ElementsAre;
using testing::HasSubstr;

using RunShaped = int (*)(void*, const void* const*, const int64_t* const*,
                          void* const*, int64_t* const*);

// y = relu(x W) for n rows; `k` is a scalar that is passed through.
Graph Rows(int64_t n) {
  GraphBuilder builder(graph::Interpreted);
  const ValueId x = builder.Input("x", F32({n, 4}));
  const ValueId k = builder.Input("k", F32({}));
  std::vector<float> w(12);
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i) - 5;
  const ValueId y = graph::Relu(
      builder,
      graph::Matmul(builder, x, builder.Constant("w", F32({4, 3}), w)));
  return *builder.Finish({y, k}, {"y", "same k"});
}

absl::StatusOr<ModelArtifact> Compile(const std::vector<Graph>& graphs,
                                      const std::string& sizes) {
  const ModelKernels kernels = ExtractKernels(graphs);
  ModelOptions options;
  options.target = *target::Parse("host,cores=1");
  options.symbol = "net";
  options.sizes = sizes;
  return CompileModel(graphs, kernels, kernels.module, options);
}

class OpenDims : public testing::Test {
 protected:
  OpenDims()
      : artifact_(*Compile({Rows(2), Rows(5)}, "N=2; N=5")),
        net_(artifact_.shared_object) {
    net_.Find("net_run_shaped", run_shaped_);
    EXPECT_EQ(net_.create(nullptr, &model_), 0) << net_.error();
  }
  ~OpenDims() override { net_.destroy(model_); }

  // Of rows of ones.
  std::vector<float> RunRows(int64_t n) {
    const std::vector<float> x(static_cast<size_t>(4 * n), 1), k = {7};
    std::vector<float> y(static_cast<size_t>(3 * n), -1), same_k = {0};
    const int64_t shape[] = {n, 4};
    int64_t result_shape[2] = {};
    const void* in[] = {x.data(), k.data()};
    const int64_t* in_shapes[] = {shape, nullptr};
    void* out[] = {y.data(), same_k.data()};
    int64_t* out_shapes[] = {result_shape, nullptr};
    EXPECT_EQ(run_shaped_(model_, in, in_shapes, out, out_shapes), 0)
        << net_.error();
    EXPECT_THAT(result_shape, ElementsAre(n, 3));
    EXPECT_EQ(same_k[0], 7);
    return y;
  }

  ModelArtifact artifact_;
  Net net_;
  RunShaped run_shaped_ = nullptr;
  void* model_ = nullptr;
};

TEST_F(OpenDims, RunsEachSize) {
  // The sums of the columns of w are -2, 2 and 6.
  EXPECT_THAT(RunRows(2), ElementsAre(0, 2, 6, 0, 2, 6));
  EXPECT_THAT(RunRows(5),
              ElementsAre(0, 2, 6, 0, 2, 6, 0, 2, 6, 0, 2, 6, 0, 2, 6));
  EXPECT_THAT(RunRows(2), ElementsAre(0, 2, 6, 0, 2, 6));
}

TEST_F(OpenDims, DescribesThemAsOpen) {
  ASSERT_EQ(net_.input(0)->rank, 2);
  EXPECT_EQ(net_.input(0)->shape[0], -1);
  EXPECT_EQ(net_.input(0)->shape[1], 4);
  EXPECT_EQ(net_.output(0)->shape[0], -1);
  EXPECT_EQ(net_.output(0)->shape[1], 3);
  EXPECT_THAT(artifact_.header, HasSubstr("Compiled for N=2; N=5;"));
  EXPECT_THAT(artifact_.header, HasSubstr("0: x, float [-1, 4]"));
  EXPECT_THAT(artifact_.header, HasSubstr("int net_run_shaped(net_model*"));
}

TEST_F(OpenDims, StoreTheWeightsOnce) {
  EXPECT_EQ(artifact_.weight_bytes, 64);
  // Two kernels of each graph, which differ in their rows.
  ASSERT_EQ(artifact_.steps.size(), 2u);
  EXPECT_EQ(artifact_.steps[0].size(), artifact_.steps[1].size());
}

TEST_F(OpenDims, GiveTheShapesOfResultsWithoutARun) {
  const int64_t shape[] = {5, 4};
  const int64_t* in_shapes[] = {shape, nullptr};
  int64_t result_shape[2] = {};
  int64_t* out_shapes[] = {result_shape, nullptr};
  EXPECT_EQ(run_shaped_(model_, nullptr, in_shapes, nullptr, out_shapes), 0);
  EXPECT_THAT(result_shape, ElementsAre(5, 3));
}

TEST_F(OpenDims, RefuseOtherShapes) {
  const auto error = [&](const int64_t* shape) -> std::string {
    const int64_t* in_shapes[] = {shape, nullptr};
    std::vector<float> y(15, -1);
    void* out[] = {y.data(), y.data()};
    EXPECT_NE(run_shaped_(model_, nullptr, in_shapes, out, nullptr), 0);
    EXPECT_EQ(y, std::vector<float>(15, -1));
    return net_.error();
  };
  const int64_t rows[] = {3, 4}, columns[] = {2, 5};
  EXPECT_EQ(error(rows),
            "run_shaped: the library was compiled for N=2; N=5, not for x [3, "
            "4], k []");
  EXPECT_THAT(error(columns), HasSubstr("not for x [2, 5]"));
  EXPECT_EQ(error(nullptr), "run_shaped: the shape of the input x is null");
  EXPECT_NE(run_shaped_(model_, nullptr, nullptr, nullptr, nullptr), 0);
  EXPECT_STREQ(net_.error(), "run_shaped: the shapes of the inputs are null");
  EXPECT_NE(run_shaped_(nullptr, nullptr, nullptr, nullptr, nullptr), 0);
  EXPECT_STREQ(net_.error(), "run_shaped: the model is null");
  EXPECT_NE(net_.run(model_, nullptr, nullptr), 0);
  EXPECT_THAT(net_.error(), HasSubstr("call run_shaped"));
}

TEST(OpenDimsErrors, HaveALimit) {
  const ModelArtifact artifact =
      *Compile({Rows(2), Rows(5)}, std::string(10'000, 's'));
  const Net net(artifact.shared_object);
  void* model = nullptr;
  ASSERT_EQ(net.create(nullptr, &model), 0) << net.error();
  const int64_t shape[] = {3, 4};
  const int64_t* in_shapes[] = {shape, nullptr};
  const auto run_shaped =
      reinterpret_cast<RunShaped>(net.library.Find("net_run_shaped"));
  EXPECT_NE(run_shaped(model, nullptr, in_shapes, nullptr, nullptr), 0);
  EXPECT_THAT(net.error(), HasSubstr("compiled for sss"));
  EXPECT_LT(std::string(net.error()).size(), 4608u);
  net.destroy(model);
}

TEST(OpenDimsErrors, GraphsOfOneModelDifferInSizesOnly) {
  EXPECT_THAT(
      std::string(Compile({Rows(2), Rows(2)}, "N=2; M=2").status().message()),
      HasSubstr("the inputs have the same shapes for several of N=2; "
                "M=2"));
  GraphBuilder builder(graph::Interpreted);
  const ValueId x = builder.Input("x", F32({2, 2, 2}));
  const ValueId k = builder.Input("k", F32({}));
  const Graph deep =
      *builder.Finish({graph::Relu(builder, x), k}, {"y", "same k"});
  EXPECT_THAT(std::string(Compile({Rows(2), deep}, "a; b").status().message()),
              HasSubstr("x has 2 dimensions for some sizes of open dimensions "
                        "and 3 for others"));
  GraphBuilder other(graph::Interpreted);
  const ValueId z = other.Input("z", F32({2, 4}));
  const Graph renamed = *other.Finish({graph::Relu(other, z)}, {"y"});
  EXPECT_THAT(
      std::string(Compile({Rows(3), renamed}, "a; b").status().message()),
      HasSubstr("x and z are no tensors of one model"));
}

TEST(OpenDimsErrors, WebAssemblyHasOneSize) {
  const std::vector<Graph> graphs = {Rows(2), Rows(5)};
  const ModelKernels kernels = ExtractKernels(graphs);
  ModelOptions options;
  options.target = *target::Parse("wasm32");
  options.sizes = "N=2; N=5";
  const auto artifact = CompileModel(graphs, kernels, kernels.module, options);
  EXPECT_EQ(artifact.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(artifact.status().message()),
              HasSubstr("--dim: a wasm32 module is compiled for one size"));
}

// A model with one size has no such function, and its run is as before.
TEST(OpenDimsErrors, OneSizeIsNotOpen) {
  const ModelArtifact artifact = *Compile({Rows(2)}, "");
  const Net net(artifact.shared_object);
  EXPECT_EQ(net.library.Find("net_run_shaped"), nullptr);
  EXPECT_THAT(artifact.header, testing::Not(HasSubstr("run_shaped")));
  EXPECT_EQ(net.input(0)->shape[0], 2);
}

}  // namespace
}  // namespace tilefarm::driver
