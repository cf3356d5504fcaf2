// The library of a compiled model, called as C programs call it
// (docs/formats.md, "Model artifacts").
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/model_object.h"
#include "compiler/driver/compile_model.h"
#include "compiler/driver/loaded_model.h"
#include "compiler/graph/passes.h"
#include "compiler/ir/function_attrs.h"
#include "compiler/ir/layout_free.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/driver/model_library.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::driver {
namespace {

namespace fs = std::filesystem;

using graph::F32;
using graph::Graph;
using graph::GraphBuilder;
using graph::ValueId;
using testing::HasSubstr;

ModelArtifact Compiled(const Graph& graph, const std::string& symbol = "net") {
  const ModelKernels kernels = ExtractKernels(graph);
  ModelOptions options;
  options.target = *target::Parse("host,cores=1");
  options.symbol = symbol;
  auto artifact = CompileModel(graph, kernels, kernels.module, options);
  EXPECT_TRUE(artifact.ok()) << artifact.status();
  return *std::move(artifact);
}

// "h" = relu(x) + w with w = 0, 1, 2, ...; "y" = its product with itself.
Graph SmallGraph(int64_t n = 4) {
  GraphBuilder builder(graph::Interpreted);
  const ValueId x = builder.Input("x", F32({n, n}));
  std::vector<float> w(static_cast<size_t>(n * n));
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 16);
  const ValueId h = graph::Add(builder, graph::Relu(builder, x),
                               builder.Constant("w", F32({n, n}), w));
  // The arena holds what the product reads.
  const ValueId y = graph::Sigmoid(
      builder, graph::Matmul(builder, graph::Relu(builder, h), h));
  return *builder.Finish({y, h}, {"y", "h"});
}

std::vector<float> Expected(const Graph& graph, const std::vector<float>& x,
                            int output) {
  const std::vector<graph::TensorData> in = {graph::DataOf(x)};
  return graph::Elements<float>(
      (*graph::RunGraph(graph, in, graph::Interpreted))[output]);
}

// Panels of 40 columns; the last of three is shorter.
constexpr char kPackWeights[] = R"t(
b0 = sch.get_block("T_matmul", func_name="matmul_0")
b1 = sch.cache_read(b0, 1, "global")
sch.annotate(b1, ann_key="tilefarm.prepack", ann_val=1)
sch.transform_layout(b1, buffer=("write", 0), index_map="lambda i, j: (j // 40, i, j % 40)")
)t";

TEST(ModelArtifact, PacksConstantsWhenItIsCompiled) {
  GraphBuilder builder(graph::Interpreted);
  std::vector<float> weights(64 * 96);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>(i % 13) - 6;
  }
  const ValueId x = builder.Input("x", F32({8, 64}));
  const ValueId w = builder.Constant("w", F32({64, 96}), weights);
  const ValueId v = builder.Input("v", F32({64, 96}));
  const ValueId y = graph::Matmul(builder, x, w);
  const ValueId z = graph::Matmul(builder, x, v);
  const Graph graph = *builder.Finish({y, z}, {"y", "z"});

  // One program, but only one of the calls has a constant.
  const ModelKernels kernels = ExtractKernels(graph);
  ASSERT_EQ(kernels.module.functions.size(), 2u);
  EXPECT_THAT(*ir::LayoutFreeParams(*kernels.module.functions[0]),
              testing::ElementsAre(1));
  EXPECT_THAT(*ir::LayoutFreeParams(*kernels.module.functions[1]),
              testing::IsEmpty());

  const auto trace = schedule::Trace::Parse(kPackWeights);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const auto scheduled = schedule::Replay(*trace, kernels.module);
  ASSERT_TRUE(scheduled.ok()) << scheduled.status();
  ModelOptions options;
  options.target = *target::Parse("host,cores=1");
  options.symbol = "net";
  const auto artifact =
      CompileModel(graph, kernels, scheduled->module(), options);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  // The packed form only, with the columns that fill the last panel.
  EXPECT_EQ(artifact->weight_bytes, 3 * 64 * 40 * 4);

  const auto model = LoadedModel::Load(artifact->shared_object, "net");
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<float> in(8 * 64), from_constant(8 * 96), from_input(8 * 96);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 7) - 3;
  const std::vector<const void*> inputs = {in.data(), weights.data()};
  const std::vector<void*> outputs = {from_constant.data(), from_input.data()};
  ASSERT_TRUE(model->Run(inputs, outputs).ok());
  EXPECT_EQ(from_constant, from_input);  // small integers: exact in any order
  float sum = 0;
  for (size_t k = 0; k < 64; ++k) sum += in[64 + k] * weights[k * 96 + 95];
  EXPECT_EQ(from_constant[96 + 95], sum);
}

TEST(ModelArtifact, DescribesItsTensors) {
  GraphBuilder builder(graph::Interpreted);
  const ValueId x = builder.Input("data", F32({2, 3}));
  const ValueId scalar = builder.Input("k", {ir::DataType::Int(64), {}});
  const ValueId y = graph::Relu(builder, x);
  const Graph graph = *builder.Finish({y, scalar}, {"result", "same k"});
  const Net net(Compiled(graph).shared_object);
  ASSERT_EQ(net.inputs(), 2);
  ASSERT_EQ(net.outputs(), 2);
  EXPECT_STREQ(net.input(0)->name, "data");
  EXPECT_EQ(net.input(0)->dtype, 1);  // TensorProto.FLOAT
  ASSERT_EQ(net.input(0)->rank, 2);
  EXPECT_EQ(net.input(0)->shape[0], 2);
  EXPECT_EQ(net.input(0)->shape[1], 3);
  EXPECT_STREQ(net.input(1)->name, "k");
  EXPECT_EQ(net.input(1)->dtype, 7);  // TensorProto.INT64
  EXPECT_EQ(net.input(1)->rank, 0);
  EXPECT_EQ(net.input(1)->shape, nullptr);
  EXPECT_STREQ(net.output(0)->name, "result");
  EXPECT_STREQ(net.output(1)->name, "same k");
  for (int number : {-1, 2, 1 << 30, INT32_MIN}) {
    EXPECT_EQ(net.input(number), nullptr) << number;
    EXPECT_EQ(net.output(number), nullptr) << number;
  }
}

TEST(ModelArtifact, HasOnnxNumbersOfAllDtypes) {
  GraphBuilder builder(graph::Interpreted);
  const std::vector<std::pair<ir::DataType, int32_t>> dtypes = {
      {ir::DataType::Float(32), 1},  {ir::DataType::UInt(8), 2},
      {ir::DataType::Int(8), 3},     {ir::DataType::UInt(16), 4},
      {ir::DataType::Int(16), 5},    {ir::DataType::Int(32), 6},
      {ir::DataType::Int(64), 7},    {ir::DataType::Bool(), 9},
      {ir::DataType::Float(16), 10}, {ir::DataType::Float(64), 11},
      {ir::DataType::UInt(32), 12},  {ir::DataType::UInt(64), 13},
      {ir::DataType::BFloat16(), 16}};
  std::vector<ValueId> values;
  std::vector<std::string> names;
  for (const auto& [dtype, number] : dtypes) {
    values.push_back(builder.Input("x", {dtype, {3}}));
    names.push_back("y");
  }
  const Net net(Compiled(*builder.Finish(values, names)).shared_object);
  for (size_t i = 0; i < dtypes.size(); ++i) {
    EXPECT_EQ(net.input(static_cast<int>(i))->dtype, dtypes[i].second);
    EXPECT_EQ(net.output(static_cast<int>(i))->dtype, dtypes[i].second);
  }
}

TEST(ModelArtifact, RunsTwiceWithTheSameResult) {
  const Graph graph = SmallGraph();
  const Net net(Compiled(graph).shared_object);
  void* model = nullptr;
  ASSERT_EQ(net.create(nullptr, &model), 0) << net.error();
  for (int i = 0; i < 2; ++i) {
    std::vector<float> x(16, -1), y(16), h(16);
    x[3] = 0.5f;
    const void* in[] = {x.data()};
    void* out[] = {y.data(), h.data()};
    ASSERT_EQ(net.run(model, in, out), 0) << net.error();
    EXPECT_EQ(h, Expected(graph, x, 1));
    EXPECT_THAT(y, testing::Pointwise(testing::FloatNear(1e-6f),
                                      Expected(graph, x, 0)));
  }
  net.destroy(model);
}

TEST(ModelArtifact, CopiesOutputsThatAreInputsAndConstants) {
  GraphBuilder builder(graph::Interpreted);
  const ValueId x = builder.Input("x", F32({3}));
  const ValueId c = builder.Constant("c", F32({2}), std::vector<float>{7, 8});
  const Graph graph = *builder.Finish({c, x, x}, {"c", "x1", "x2"});
  const Net net(Compiled(graph).shared_object);
  void* model = nullptr;
  ASSERT_EQ(net.create(nullptr, &model), 0) << net.error();
  const std::vector<float> x_data = {1, 2, 3};
  std::vector<float> c_out(2), first(3), second(3);
  const void* in[] = {x_data.data()};
  void* out[] = {c_out.data(), first.data(), second.data()};
  ASSERT_EQ(net.run(model, in, out), 0) << net.error();
  EXPECT_THAT(c_out, testing::ElementsAre(7, 8));
  EXPECT_EQ(first, x_data);
  EXPECT_EQ(second, x_data);
  net.destroy(model);
}

TEST(ModelArtifact, RejectsOptionsItDoesNotHave) {
  const Net net(Compiled(SmallGraph()).shared_object);
  EXPECT_STREQ(net.error(), "no error");
  const auto create_error = [&](Options options) -> std::string {
    void* model = &options;
    EXPECT_NE(net.create(&options, &model), 0);
    EXPECT_EQ(model, nullptr);
    return net.error();
  };
  EXPECT_THAT(create_error({.size = 4}), HasSubstr("options.size"));
  EXPECT_THAT(create_error({sizeof(Options), "weights.bin", 0, 0}),
              HasSubstr("weights"));
  EXPECT_NE(net.create(nullptr, nullptr), 0);
  EXPECT_THAT(net.error(), HasSubstr("null"));
  // Larger options are those of a newer header.
  const Options options = {sizeof(Options) + 8, nullptr, 0, 0};
  void* model = nullptr;
  EXPECT_EQ(net.create(&options, &model), 0);
  net.destroy(model);
}

TEST(ModelArtifact, ErrorsBelongToTheirThread) {
  const Net net(Compiled(SmallGraph()).shared_object);
  EXPECT_NE(net.run(nullptr, nullptr, nullptr), 0);
  EXPECT_STREQ(net.error(), "run: the model is null");
  std::string other;
  std::thread([&] { other = net.error(); }).join();
  EXPECT_EQ(other, "no error");
  net.destroy(nullptr);
}

TEST(ModelArtifact, InstancesRunAtTheSameTime) {
  const Graph graph = SmallGraph();
  const Net net(Compiled(graph).shared_object);
  std::atomic<int> wrong{0};
  const auto work = [&](float value) {
    void* model = nullptr;
    if (net.create(nullptr, &model) != 0) {
      ++wrong;
      return;
    }
    const std::vector<float> x(16, value);
    const std::vector<float> expected = Expected(graph, x, 1);
    for (int i = 0; i < 500; ++i) {
      std::vector<float> y(16), h(16);
      const void* in[] = {x.data()};
      void* out[] = {y.data(), h.data()};
      if (net.run(model, in, out) != 0 || h != expected) ++wrong;
    }
    net.destroy(model);
  };
  std::thread first(work, 1.0f), second(work, 2.0f);
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ModelArtifact, AnInstanceRunsInOneThreadAtATime) {
  const Net net(Compiled(SmallGraph(256)).shared_object);
  void* model = nullptr;
  ASSERT_EQ(net.create(nullptr, &model), 0) << net.error();
  const std::vector<float> x(256 * 256, 0);
  std::atomic<bool> refused{false};
  const auto work = [&] {
    std::vector<float> y(x.size()), h(x.size());
    const void* in[] = {x.data()};
    void* out[] = {y.data(), h.data()};
    for (int i = 0; i < 2000 && !refused; ++i) {
      if (net.run(model, in, out) == 0) continue;
      EXPECT_STREQ(net.error(), "run: this instance runs in another thread");
      refused = true;
    }
  };
  std::thread first(work), second(work);
  first.join();
  second.join();
  EXPECT_TRUE(refused);
  net.destroy(model);
}

TEST(ModelArtifact, EqualGraphsGiveEqualBytes) {
  const ModelArtifact a = Compiled(SmallGraph());
  const ModelArtifact b = Compiled(SmallGraph());
  EXPECT_EQ(a.shared_object, b.shared_object);
  EXPECT_EQ(a.header, b.header);
  EXPECT_EQ(a.code_digest, b.code_digest);
  EXPECT_EQ(a.weight_bytes, 64);
  EXPECT_GE(a.arena_bytes, a.largest_live_bytes);
}

TEST(ModelArtifact, EqualFunctionsAreOneKernel) {
  GraphBuilder builder(graph::Interpreted);
  const ValueId x = builder.Input("x", F32({4}));
  const ValueId y = builder.Input("y", F32({4}));
  const Graph graph =
      *builder.Finish({graph::Relu(builder, x), graph::Relu(builder, y),
                       graph::Sigmoid(builder, x)},
                      {"a", "b", "c"});
  const ModelKernels kernels = ExtractKernels(graph);
  EXPECT_EQ(kernels.module.functions.size(), 2u);
  EXPECT_THAT(kernels.kernel_of_call, testing::ElementsAre(0, 0, 1));
  EXPECT_THAT(kernels.uses, testing::ElementsAre(2, 1));
}

TEST(ModelArtifact, LargeResultsInsideTheModelAreMarkedAsRead) {
  const auto marks = [](int64_t n) {
    GraphBuilder builder(graph::Interpreted);
    const ValueId x = builder.Input("x", F32({n, n}));
    const ValueId h = graph::Relu(builder, x);
    const Graph graph = *builder.Finish({graph::Matmul(builder, h, h)}, {"y"});
    std::vector<bool> marked;
    for (const auto& function : ExtractKernels(graph).module.functions) {
      marked.push_back(function->attrs.contains(ir::kResultsAreRead));
    }
    return marked;
  };
  EXPECT_THAT(marks(512), testing::ElementsAre(true, false));
  EXPECT_THAT(marks(16), testing::ElementsAre(false, false));
}

TEST(ModelArtifact, LargeConstantsOfLargeModelsAreMarkedAsCold) {
  // Products with constants of these many rows of 1,024 floats.
  const auto marks = [](const std::vector<int64_t>& rows) {
    GraphBuilder builder(graph::Interpreted);
    std::vector<ValueId> outputs;
    std::vector<std::string> names;
    for (const int64_t n : rows) {
      const ValueId x = builder.Input(absl::StrCat("x", n), F32({1, n}));
      const ValueId w =
          builder.Constant("w", F32({n, 1024}), std::vector<float>(n * 1024));
      outputs.push_back(graph::Matmul(builder, x, w));
      names.push_back(absl::StrCat("y", n));
    }
    const Graph graph = *builder.Finish(outputs, names);
    std::vector<bool> marked;
    for (const auto& function : ExtractKernels(graph).module.functions) {
      marked.push_back(function->attrs.contains(ir::kColdConstants));
    }
    return marked;
  };
  EXPECT_THAT(marks({2048}), testing::ElementsAre(false));
  EXPECT_THAT(marks({32, 2048, 4096}), testing::ElementsAre(false, true, true));
}

TEST(ModelArtifact, RejectsSymbolsThatAreNoIdentifiers) {
  const Graph graph = SmallGraph();
  const ModelKernels kernels = ExtractKernels(graph);
  ModelOptions options;
  options.target = *target::Parse("host,cores=1");
  options.symbol = "my net";
  EXPECT_EQ(
      CompileModel(graph, kernels, kernels.module, options).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(ModelArtifact, LoadNeedsTheRightName) {
  const ModelArtifact artifact = Compiled(SmallGraph());
  EXPECT_EQ(LoadedModel::Load(artifact.shared_object, "other").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LoadedModel::Load("no library", "net").status().code(),
            absl::StatusCode::kUnavailable);
}

class ModelFiles : public testing::Test {
 protected:
  ModelFiles() {
    std::string pattern = testing::TempDir() + "/model-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~ModelFiles() override { fs::remove_all(folder_); }

  void Write(const char* name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::string Read(const char* name) const {
    std::ifstream file(folder_ / name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // The exit code of a command in the folder; its output is in out.txt.
  int Shell(const std::string& command) {
    const int status = std::system(
        absl::StrCat("cd ", folder_.string(), " && ", command, " >out.txt 2>&1")
            .c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  fs::path folder_;
};

TEST_F(ModelFiles, TheHeaderIsC99AndCxx) {
  GraphBuilder builder(graph::Interpreted);
  // A name that would end the comment.
  const ValueId x = builder.Input("a*/b\n", F32({2}));
  const Graph graph = *builder.Finish({graph::Relu(builder, x)}, {"y"});
  Write("net.h", Compiled(graph).header);
  Write("other.h", Compiled(graph, "other").header);
  // Headers of two models go together, each included twice.
  const std::string source =
      "#include \"net.h\"\n#include \"net.h\"\n#include \"other.h\"\n"
      "int use(net_model* net, other_model* other);\n"
      "int use(net_model* net, other_model* other) {\n"
      "  tf_model_options options = {sizeof(tf_model_options), 0, 0, 0};\n"
      "  const tf_tensor_info* info = net_input(0);\n"
      "  return net_create(&options, &net) + other_create(0, &other) +\n"
      "         (int)info->rank;\n}\n";
  Write("use.c", source);
  Write("use.cc", source);
  const std::string flags = " -Wall -Wextra -pedantic -Werror -fsyntax-only ";
  EXPECT_EQ(Shell(TILEFARM_C_COMPILER + flags + "-std=c99 use.c"), 0)
      << Read("out.txt");
  EXPECT_EQ(Shell(TILEFARM_CXX_COMPILER + flags + "-std=c++11 use.cc"), 0)
      << Read("out.txt");
}

TEST_F(ModelFiles, ExportsTheFunctionsOfTheContractOnly) {
  Write("net.so", Compiled(SmallGraph()).shared_object);
  ASSERT_EQ(Shell(std::string(TILEFARM_NM) + " -D --defined-only net.so"), 0)
      << Read("out.txt");
  std::istringstream lines(Read("out.txt"));
  std::vector<std::string> exported;
  std::string address, type, name;
  while (lines >> address >> type >> name) exported.push_back(name);
  EXPECT_THAT(exported,
              testing::UnorderedElementsAreArray(codegen::ModelSymbols("net")));
}

}  // namespace
}  // namespace tilefarm::driver
