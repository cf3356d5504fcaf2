// Weights in a file beside the library (compiler/driver/weights_file.h).
#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "compiler/driver/compile_model.h"
#include "compiler/driver/loaded_model.h"
#include "compiler/graph/passes.h"
#include "compiler/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/driver/model_library.h"
#include "tests/graph/test_graphs.h"

namespace tilefarm::driver {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kInputs = 512;
constexpr int64_t kOutputs = 2048;
constexpr int64_t kWeightBytes = kInputs * kOutputs * 4;  // 4 MiB

// y = x * w, where w begins with `first`.
ModelArtifact Compiled(float first, const std::string& weights_name) {
  graph::GraphBuilder builder(graph::Interpreted);
  const auto x = builder.Input("x", graph::F32({1, kInputs}));
  std::vector<float> w(kInputs * kOutputs);
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 31) / 7;
  w[0] = first;
  const auto y = graph::Matmul(
      builder, x, builder.Constant("w", graph::F32({kInputs, kOutputs}), w));
  const auto graph = *builder.Finish({y}, {"y"});
  const ModelKernels kernels = ExtractKernels(graph);
  ModelOptions options;
  options.target = *target::Parse("host,cores=1");
  options.symbol = "net";
  options.weights_name = weights_name;
  auto artifact = CompileModel(graph, kernels, kernels.module, options);
  EXPECT_TRUE(artifact.ok()) << artifact.status();
  return *std::move(artifact);
}

const ModelArtifact& Outside() {
  static const auto* artifact = new ModelArtifact(Compiled(1, "net.weights"));
  return *artifact;
}

// A library opened by its path.
class OpenedFile {
 public:
  explicit OpenedFile(const fs::path& path)
      : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), &dlclose) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  void* Find(const std::string& symbol) const {
    return dlsym(handle_.get(), symbol.c_str());
  }

 private:
  std::shared_ptr<void> handle_;
};
using NetFile = NetOf<OpenedFile>;

std::vector<float> ResultOf(const NetFile& net, void* model) {
  std::vector<float> x(kInputs), y(kOutputs, -1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 5) - 2;
  const void* in[] = {x.data()};
  void* out[] = {y.data()};
  EXPECT_EQ(net.run(model, in, out), 0) << net.error();
  return y;
}

class ModelWeightsFile : public testing::Test {
 protected:
  ModelWeightsFile() {
    std::string pattern = testing::TempDir() + "/weights-XXXXXX";
    folder_ = fs::canonical(mkdtemp(pattern.data()));
    Write("net.so", Outside().shared_object);
  }
  ~ModelWeightsFile() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  // Lines of a file of this process about the weights, without their newlines.
  std::vector<std::string> Mappings() const {
    std::ifstream maps("/proc/self/maps");
    std::vector<std::string> found;
    for (std::string line; std::getline(maps, line);) {
      if (line.ends_with(".weights")) found.push_back(line);
    }
    return found;
  }
  // The error of a create with this file (empty: beside the library).
  std::string CreateError(const NetFile& net, const std::string& path = "") {
    const Options options = {sizeof(Options),
                             path.empty() ? nullptr : path.c_str(), 0, 0};
    void* model = &folder_;
    EXPECT_NE(net.create(&options, &model), 0) << path;
    EXPECT_EQ(model, nullptr);
    return net.error();
  }

  fs::path folder_;
};

TEST_F(ModelWeightsFile, GivesTheBytesOfWeightsInside) {
  Write("net.weights", Outside().weights_file);
  const ModelArtifact inside = Compiled(1, "");
  EXPECT_EQ(inside.weights_file, "");
  EXPECT_EQ(static_cast<int64_t>(Outside().weights_file.size()),
            kWeightBytes + 64);
  EXPECT_LT(
      static_cast<int64_t>(Outside().shared_object.size()),
      static_cast<int64_t>(inside.shared_object.size()) - kWeightBytes / 2);
  Write("inside.so", inside.shared_object);
  std::vector<std::vector<float>> results;
  for (const char* library : {"net.so", "inside.so"}) {
    const NetFile net(OpenedFile(folder_ / library));
    void* model = nullptr;
    ASSERT_EQ(net.create(nullptr, &model), 0) << net.error();
    results.push_back(ResultOf(net, model));
    net.destroy(model);
  }
  EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), kOutputs * 4), 0);
}

TEST_F(ModelWeightsFile, OptionsNameItsPlace) {
  fs::create_directory(folder_ / "elsewhere");
  Write("elsewhere/renamed.weights", Outside().weights_file);
  const NetFile net(OpenedFile(folder_ / "net.so"));
  EXPECT_THAT(CreateError(net),
              AllOf(HasSubstr(folder_ / "net.weights"),
                    HasSubstr("No such file"), HasSubstr("options.weights")));
  const std::string path = folder_ / "elsewhere/renamed.weights";
  const Options options = {sizeof(Options), path.c_str(), 0, 0};
  void* model = nullptr;
  ASSERT_EQ(net.create(&options, &model), 0) << net.error();
  ResultOf(net, model);
  net.destroy(model);
}

TEST_F(ModelWeightsFile, IsMappedOnceAndNotCopied) {
  Write("net.weights", Outside().weights_file);
  const NetFile net(OpenedFile(folder_ / "net.so"));
  EXPECT_THAT(Mappings(), testing::IsEmpty());
  const struct mallinfo2 before = mallinfo2();
  void *first = nullptr, *second = nullptr;
  ASSERT_EQ(net.create(nullptr, &first), 0) << net.error();
  ASSERT_EQ(net.create(nullptr, &second), 0) << net.error();
  const struct mallinfo2 after = mallinfo2();
  EXPECT_LT(after.uordblks + after.hblkhd,
            before.uordblks + before.hblkhd + kWeightBytes / 4);
  // Shared and read-only: the page cache's own pages.
  EXPECT_THAT(Mappings(), testing::ElementsAre(HasSubstr(" r--s ")));
  EXPECT_EQ(ResultOf(net, first), ResultOf(net, second));
  net.destroy(first);
  EXPECT_EQ(Mappings().size(), 1u);
  ResultOf(net, second);
  net.destroy(second);
  EXPECT_THAT(Mappings(), testing::IsEmpty());
  // A later instance maps it again.
  ASSERT_EQ(net.create(nullptr, &first), 0) << net.error();
  ResultOf(net, first);
  net.destroy(first);
}

TEST_F(ModelWeightsFile, InstancesMayComeAndGoInSeveralThreads) {
  Write("net.weights", Outside().weights_file);
  const NetFile net(OpenedFile(folder_ / "net.so"));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        void* model = nullptr;
        if (net.create(nullptr, &model) != 0) {
          ++wrong;
        } else if (repeat % 10 == 0 && ResultOf(net, model)[1] == -1) {
          ++wrong;
        }
        net.destroy(model);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_THAT(Mappings(), testing::IsEmpty());
}

TEST_F(ModelWeightsFile, RejectsFilesThatAreNotTheLibrarys) {
  const NetFile net(OpenedFile(folder_ / "net.so"));
  const std::string& good = Outside().weights_file;
  const auto error_with = [&](const std::string& bytes) {
    Write("net.weights", bytes);
    const std::string error = CreateError(net);
    EXPECT_THAT(error, HasSubstr(folder_ / "net.weights"));
    return error;
  };
  EXPECT_THAT(error_with(""), HasSubstr("not a weights file"));
  EXPECT_THAT(error_with(good.substr(0, 63)), HasSubstr("not a weights file"));
  EXPECT_THAT(error_with("P" + good.substr(1)),
              HasSubstr("not a weights file"));
  EXPECT_THAT(error_with(good.substr(0, 64)), HasSubstr("truncated"));
  EXPECT_THAT(error_with(good.substr(0, good.size() - 1)),
              HasSubstr("truncated"));
  EXPECT_THAT(error_with(good + "x"), HasSubstr("bytes after its end"));
  std::string newer = good;
  newer[8] = 2;
  EXPECT_THAT(error_with(newer), HasSubstr("another version"));
  EXPECT_THAT(error_with(Compiled(2, "net.weights").weights_file),
              HasSubstr("belongs to another library"));
  std::string damaged = good;
  damaged[40] = static_cast<char>(damaged[40] ^ 1);
  EXPECT_THAT(error_with(damaged), HasSubstr("belongs to another library"));
  EXPECT_THAT(CreateError(net, folder_),
              HasSubstr("cannot be read: Is a directory"));
  EXPECT_THAT(CreateError(net, std::string(10'000, 'x')),
              HasSubstr("the weights file xxx"));
  EXPECT_THAT(Mappings(), testing::IsEmpty());
  // No open file is left, and the right one is accepted afterwards.
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    EXPECT_NE(fs::read_symlink(entry, error), folder_ / "net.weights");
  }
  Write("net.weights", good);
  void* model = nullptr;
  ASSERT_EQ(net.create(nullptr, &model), 0) << net.error();
  ResultOf(net, model);
  net.destroy(model);
}

// While another instance has the right file mapped, too.
TEST_F(ModelWeightsFile, EachInstanceChecksItsFile) {
  Write("net.weights", Outside().weights_file);
  Write("other.weights", Compiled(2, "net.weights").weights_file);
  const NetFile net(OpenedFile(folder_ / "net.so"));
  void* model = nullptr;
  ASSERT_EQ(net.create(nullptr, &model), 0) << net.error();
  EXPECT_THAT(CreateError(net, folder_ / "other.weights"),
              HasSubstr("belongs to another library"));
  EXPECT_THAT(CreateError(net, folder_ / "absent"), HasSubstr("No such file"));
  ResultOf(net, model);
  net.destroy(model);
}

TEST_F(ModelWeightsFile, ErrorsBelongToTheirThread) {
  const NetFile net(OpenedFile(folder_ / "net.so"));
  const std::string mine = CreateError(net, "/absent/mine");
  std::thread([&] {
    EXPECT_THAT(CreateError(net, "/absent/other"), HasSubstr("/absent/other"));
  }).join();
  EXPECT_EQ(net.error(), mine);
}

TEST_F(ModelWeightsFile, ALoadedModelTakesThePath) {
  Write("some.weights", Outside().weights_file);
  EXPECT_TRUE(LoadedModel::Load(Outside().shared_object, "net",
                                folder_ / "some.weights")
                  .ok());
  // The loaded copy of the library is elsewhere.
  EXPECT_EQ(LoadedModel::Load(Outside().shared_object, "net").status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(ModelWeightsFileFormat, IsThatOfTheDocument) {
  const std::string& file = Outside().weights_file;
  EXPECT_EQ(file.substr(0, 8), "TFWEIGHT");
  uint32_t version = 0, header = 0;
  uint64_t bytes = 0;
  std::memcpy(&version, file.data() + 8, 4);
  std::memcpy(&header, file.data() + 12, 4);
  std::memcpy(&bytes, file.data() + 16, 8);
  EXPECT_EQ(version, 1u);
  EXPECT_EQ(header, 64u);
  EXPECT_EQ(bytes, static_cast<uint64_t>(kWeightBytes));
  EXPECT_EQ(file.substr(56, 8), std::string(8, '\0'));
  float first = 0;
  std::memcpy(&first, file.data() + 64, 4);
  EXPECT_EQ(first, 1.0f);
}

}  // namespace
}  // namespace tilefarm::driver
