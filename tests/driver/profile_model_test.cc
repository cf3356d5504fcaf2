#include "compiler/driver/profile_model.h"

#include <string>
#include <vector>

#include "compiler/codegen/model_object.h"
#include "compiler/driver/loaded_library.h"
#include "compiler/graph/passes.h"
#include "compiler/ir/structural.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/graph/test_graphs.h"

namespace tilefarm::driver {
namespace {

using testing::HasSubstr;

// a = relu(x) twice over, b = sigmoid(x), and a copy of the input: four steps
// of two kernels and a copy.
struct Profiled {
  explicit Profiled(bool profile = true) {
    graph::GraphBuilder builder(graph::Interpreted);
    const auto x = builder.Input("x", graph::F32({8}));
    const auto a = graph::Relu(builder, graph::Relu(builder, x));
    const auto graph =
        *builder.Finish({a, graph::Sigmoid(builder, x), x}, {"a", "b", "c"});
    kernels = ExtractKernels(graph);
    ModelOptions options;
    options.target = *target::Parse("host,cores=1");
    options.symbol = "net";
    options.profile = profile;
    artifact = *CompileModel(graph, kernels, kernels.module, options);
  }
  ModelKernels kernels;
  ModelArtifact artifact;
};

TEST(ProfileModel, TimesEveryStepOfEveryRun) {
  const Profiled made;
  ASSERT_EQ(made.artifact.steps[0].size(), 4u);
  const auto model = LoadedModel::Load(made.artifact.profiled_object, "net");
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<float> x(8, 2);
  std::vector<float> a(8), b(8), c(8);
  const std::vector<const void*> in = {x.data()};
  const std::vector<void*> out = {a.data(), b.data(), c.data()};
  int64_t time = 0;
  const auto runs = TimeSteps(
      *model, [&] { return model->Run(in, out); }, 2, [&] { return ++time; });
  ASSERT_TRUE(runs.ok()) << runs.status();
  // The first run had the times 1 to 5.
  EXPECT_THAT(*runs,
              testing::ElementsAre(testing::ElementsAre(6, 7, 8, 9, 10),
                                   testing::ElementsAre(11, 12, 13, 14, 15)));
  EXPECT_EQ(a, x);
  EXPECT_EQ(c, x);
}

TEST(ProfileModel, RunsWithoutAHook) {
  const Profiled made;
  const auto model = LoadedModel::Load(made.artifact.profiled_object, "net");
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<float> x(8, 2);
  std::vector<float> a(8), b(8), c(8);
  const std::vector<const void*> in = {x.data()};
  const std::vector<void*> out = {a.data(), b.data(), c.data()};
  EXPECT_TRUE(model->Run(in, out).ok());
  EXPECT_EQ(a, x);
}

TEST(ProfileModel, TheShippedLibraryHasNoHook) {
  const Profiled with, without(false);
  EXPECT_EQ(with.artifact.shared_object, without.artifact.shared_object);
  EXPECT_EQ(without.artifact.profiled_object, "");
  const auto library = LoadedLibrary::Load(with.artifact.shared_object);
  ASSERT_TRUE(library.ok());
  EXPECT_EQ(library->Find(codegen::ProfileHookSymbol("net")), nullptr);
  const auto model = LoadedModel::Load(with.artifact.shared_object, "net");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(TimeSteps(
                *model, [] { return absl::OkStatus(); }, 1, [] { return 0; })
                .status()
                .code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(ProfileModel, SumsByKernel) {
  const Profiled made;
  // Microseconds of the steps: 1, 2, 10 and 3 in the first run.
  const std::vector<RunTimes> runs = {{0, 1000, 3000, 13000, 16000},
                                      {50000, 51000, 53000, 63000, 66000}};
  const std::vector<KernelTime> sums =
      SumByKernel(made.artifact.steps[0], made.kernels, runs,
                  [](const ir::PrimFunc&) { return 1e5; });
  ASSERT_EQ(sums.size(), 3u);
  EXPECT_EQ(sums[0].calls, 2);
  EXPECT_DOUBLE_EQ(sums[0].total_seconds, 20e-6);
  EXPECT_DOUBLE_EQ(sums[0].share, 20.0 / 32);
  EXPECT_DOUBLE_EQ(sums[0].gflops, 10);
  EXPECT_EQ(sums[0].workload,
            ir::WorkloadHash(*made.kernels.module.functions[1]));
  EXPECT_EQ(sums[1].calls, 4);
  EXPECT_EQ(sums[1].kernel, made.kernels.module.functions[0]->name);
  EXPECT_DOUBLE_EQ(sums[1].total_seconds, 6e-6);
  EXPECT_EQ(sums[2].kernel, "(copy)");
  EXPECT_EQ(sums[2].workload, "");
  EXPECT_EQ(sums[2].gflops, 0);

  const std::string table = PrintProfile(sums, 2);
  EXPECT_THAT(table, HasSubstr("2 runs of 16.000 us in kernels\nkernel"));
  EXPECT_THAT(table, HasSubstr(sums[1].kernel));
  EXPECT_THAT(table, HasSubstr("62.5%     10.00  " +
                               sums[0].workload.substr(0, 12) + "\n"));
  EXPECT_THAT(table, HasSubstr("(copy)"));
}

TEST(ProfileModel, TracesEveryCall) {
  const Profiled made;
  const std::vector<RunTimes> runs = {{7000, 8000, 10000, 20500, 23000},
                                      {50000, 51000, 53000, 63000, 66000}};
  const auto json = nlohmann::json::parse(
      ChromeTrace(made.artifact.steps[0], made.kernels, runs));
  ASSERT_EQ(json["traceEvents"].size(), 8u);
  const auto& third = json["traceEvents"][2];
  EXPECT_EQ(third["name"], made.kernels.module.functions[1]->name);
  EXPECT_EQ(third["ph"], "X");
  EXPECT_EQ(third["ts"], 3.0);
  EXPECT_EQ(third["dur"], 10.5);
  EXPECT_EQ(third["args"]["op"], "sigmoid");
  EXPECT_EQ(third["args"]["run"], 0);
  EXPECT_EQ(third["args"]["inputs"], nlohmann::json({"x"}));
  EXPECT_EQ(third["args"]["outputs"], nlohmann::json({"sigmoid"}));
  EXPECT_EQ(json["traceEvents"][3]["name"], "(copy)");
  EXPECT_EQ(json["traceEvents"][4]["ts"], 43.0);
  EXPECT_EQ(nlohmann::json::parse(ChromeTrace(made.artifact.steps[0],
                                              made.kernels, {}))["traceEvents"]
                .size(),
            0u);
}

}  // namespace
}  // namespace tilefarm::driver
