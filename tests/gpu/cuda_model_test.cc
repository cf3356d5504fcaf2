// Models on CUDA (compiler/runtime/cuda_model.c) with a fake driver.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gpu/cuda_functions.h"
#include "tests/gpu/fake_cuda.h"
#include "tests/gpu/model_artifact.h"

namespace tilefarm::codegen {
namespace {

using ::testing::HasSubstr;

constexpr char kReleased[] =
    "0 allocations, 0 modules, 0 pools, 0 retained contexts, 0 overruns";

// to[i] = from[i] + 1; a block has a thread for each element.
void AddOneOfModel(void** arguments, const unsigned*, const unsigned* block,
                   unsigned) {
  const auto* from = static_cast<const float*>(arguments[0]);
  auto* to = static_cast<float*>(arguments[1]);
  for (unsigned i = 0; i < block[0]; ++i) to[i] = from[i] + 1;
}

void AddOfModel(void** arguments, const unsigned*, const unsigned* block,
                unsigned) {
  const auto* from = static_cast<const float*>(arguments[0]);
  auto* to = static_cast<float*>(arguments[1]);
  for (unsigned i = 0; i < block[0]; ++i) to[i] += from[i];
}

DeviceKernel LaunchOfModel(const std::string& name,
                           const std::vector<int>& arguments, int64_t floats) {
  return {name, {1, 1, 1}, {static_cast<uint32_t>(floats), 1, 1},
          0,    arguments, {}};
}

DeviceKernel LaunchOfWaiting(const std::string& name,
                             const std::vector<int>& arguments,
                             int64_t floats) {
  DeviceKernel launch = LaunchOfModel(name, arguments, floats);
  launch.overlaps = true;
  return launch;
}

class CudaModelTest : public DeviceModelTest {
 protected:
  CudaModelTest() : fake_(TILEFARM_FAKE_CUDA) {}

  void SetUp() override {
    ASSERT_TRUE(fake_.found());
    Use(TILEFARM_FAKE_CUDA);
  }
  void TearDown() override {
    for (const char* name :
         {"TILEFARM_CUDA_DRIVER", "TILEFARM_POISON_WORKSPACE",
          "TILEFARM_CUDA_OVERLAP", "FAKE_CUDA_MEMORY", "FAKE_CUDA_FAIL_LAUNCH",
          "FAKE_CUDA_FAIL_CALL"}) {
      unsetenv(name);
    }
  }

  void Use(const char* library) {
    setenv("TILEFARM_CUDA_DRIVER", library, 1);
    fake_ = FakeCuda(library);
    fake_.Reset();
    fake_.Register("add_one", 2, &AddOneOfModel);
    fake_.Register("add", 2, &AddOfModel);
  }

  static Kernel Load(bool open = false) {
    return LoadModel(BuildModel(Cuda(), kImage, open, &LaunchOfModel));
  }
  // Of kernels that wait for the one before them.
  static Kernel LoadWaiting() {
    return LoadModel(
        BuildModel(Cuda(), kImage, /*open=*/false, &LaunchOfWaiting));
  }

  int Count(const std::string& call) { return fake_.Count(call); }
  // Whatever was made is destroyed.
  void ExpectNothingLeft() {
    EXPECT_EQ(fake_.Live(), kReleased);
    EXPECT_EQ(Count("cuStreamCreate"), Count("cuStreamDestroy"));
    EXPECT_EQ(Count("cuGraphInstantiate"), Count("cuGraphExecDestroy"));
    EXPECT_EQ(Count("cuStreamBeginCapture"), Count("cuGraphDestroy"));
  }

  FakeCuda fake_;
};

TEST_F(CudaModelTest, StepsBecomeOneGraphAfterTheFirstRun) {
  {
    const Kernel library = Load();
    DeviceModel model(library);
    ASSERT_EQ(model.Create(), 0) << model.Error();
    RunRight(model);
    EXPECT_EQ(Count("cuLaunchKernel"), 6);
    EXPECT_EQ(Count("cuStreamBeginCapture"), 0);
    for (int run = 0; run < 3; ++run) {
      x_[0] += 1;
      RunRight(model);
    }
    // Launched once more, for the recording.
    EXPECT_EQ(Count("cuLaunchKernel"), 12);
    EXPECT_EQ(Count("cuGraphInstantiate"), 1);
    EXPECT_EQ(Count("cuGraphLaunch on stream"), 3);
    // The weights went to the device once, and in one piece.
    EXPECT_EQ(Count("cuMemcpyHtoD"), 1);
    // Of each run: the input and both outputs; the copied output while
    // launched.
    EXPECT_EQ(Count("cuMemcpyAsync 256"), 4 * 3 + 2);
  }
  ExpectNothingLeft();
}

// Behind a kernel of the model, that is: the first of them follows copies of
// the inputs, and one the copy of an output.
TEST_F(CudaModelTest, KernelsOverlapTheOneBefore) {
  {
    const Kernel library = LoadWaiting();
    DeviceModel model(library);
    ASSERT_EQ(model.Create(), 0) << model.Error();
    RunRight(model);
    EXPECT_EQ(Count("cuLaunchKernel") + Count("cuLaunchKernelEx"), 6);
    EXPECT_GE(Count("cuLaunchKernelEx"), 3);
    const std::string log = fake_.Log();
    EXPECT_LT(log.find("cuLaunchKernel "), log.find("cuLaunchKernelEx "));
    RunRight(model);
    RunRight(model);
    EXPECT_EQ(Count("cuLaunchKernel") + Count("cuLaunchKernelEx"), 12);
    EXPECT_EQ(Count("cuGraphInstantiate"), 1);
  }
  ExpectNothingLeft();
}

TEST_F(CudaModelTest, KernelsWaitWhereTheDriverCannotOverlapThem) {
  setenv("FAKE_CUDA_FAIL_CALL", "cuLaunchKernelEx:801", 1);
  {
    const Kernel library = LoadWaiting();
    DeviceModel model(library);
    ASSERT_EQ(model.Create(), 0) << model.Error();
    RunRight(model);
    RunRight(model);
    EXPECT_EQ(Count("cuLaunchKernelEx"), 1);
    EXPECT_EQ(Count("cuLaunchKernel"), 12);
  }
  ExpectNothingLeft();
}

// The graph of overlapping kernels is refused, the one without is not.
TEST_F(CudaModelTest, GraphsWaitWhereTheDriverCannotRecordOverlaps) {
  {
    const Kernel library = LoadWaiting();
    DeviceModel model(library);
    ASSERT_EQ(model.Create(), 0) << model.Error();
    RunRight(model);
    fake_.ClearLog();
    setenv("FAKE_CUDA_FAIL_CALL", "cuGraphInstantiate:801:once", 1);
    RunRight(model);
    EXPECT_EQ(Count("cuGraphInstantiate"), 2);
    EXPECT_EQ(Count("cuLaunchKernel") + Count("cuLaunchKernelEx"), 12);
    EXPECT_GE(Count("cuLaunchKernel"), 6);
    EXPECT_EQ(Count("cuGraphLaunch on stream"), 1);
  }
}

TEST_F(CudaModelTest, NoKernelsOverlapWhereTheUserSaysSo) {
  setenv("TILEFARM_CUDA_OVERLAP", "0", 1);
  {
    const Kernel library = LoadWaiting();
    DeviceModel model(library);
    ASSERT_EQ(model.Create(), 0) << model.Error();
    RunRight(model);
    EXPECT_EQ(Count("cuLaunchKernelEx"), 0);
    EXPECT_EQ(Count("cuLaunchKernel"), 6);
  }
  ExpectNothingLeft();
}

TEST_F(CudaModelTest, WithoutPoolsStepsAreLaunchedEachTime) {
  Use(TILEFARM_FAKE_CUDA_OLD);
  {
    const Kernel library = Load();
    DeviceModel model(library);
    ASSERT_EQ(model.Create(), 0) << model.Error();
    for (int run = 0; run < 3; ++run) RunRight(model);
    EXPECT_EQ(Count("cuLaunchKernel"), 18);
  }
  ExpectNothingLeft();
}

TEST_F(CudaModelTest, InstancesShareTheWeights) {
  {
    const Kernel library = Load();
    DeviceModel first(library), second(library);
    ASSERT_EQ(first.Create(), 0) << first.Error();
    ASSERT_EQ(second.Create(), 0) << second.Error();
    EXPECT_EQ(Count("cuMemcpyHtoD"), 1);
    RunRight(first);
    first.Destroy();
    RunRight(second);
    RunRight(second);
    second.Destroy();
    // They leave with the last of them.
    ASSERT_EQ(first.Create(), 0) << first.Error();
    EXPECT_EQ(Count("cuMemcpyHtoD"), 2);
    RunRight(first);
  }
  ExpectNothingLeft();
}

TEST_F(CudaModelTest, InstancesRunInSeveralThreads) {
  {
    const Kernel library = Load();
    RunInTwoThreads(library);
  }
  ExpectNothingLeft();
}

TEST_F(CudaModelTest, RunsOnTheCallersStreamWithItsMemory) {
  void *context = nullptr, *stream = nullptr;
  fake_.Call<int(unsigned)>("cuInit", 0u);
  ASSERT_EQ((fake_.Call<int(void**, unsigned, int)>("cuCtxCreate_v2", &context,
                                                    0u, 0)),
            0);
  ASSERT_EQ((fake_.Call<int(void**, unsigned)>("cuStreamCreate", &stream, 1u)),
            0);
  std::vector<float*> memory;
  for (const std::vector<float>* values : {&x_, &y_, &x2_}) {
    void* block = nullptr;
    ASSERT_EQ((fake_.Call<int(void**, size_t)>("cuMemAlloc_v2", &block,
                                               values->size() * sizeof(float))),
              0);
    memory.push_back(static_cast<float*>(block));
    std::copy(values->begin(), values->end(), memory.back());
  }
  const Kernel library = Load();
  DeviceModel model(library);
  ASSERT_EQ(model.Create(), 0) << model.Error();
  fake_.ClearLog();
  for (int run = 0; run < 3; ++run) {
    memory[1][0] = -1;
    ASSERT_EQ(model.RunOn(stream, memory[0], memory[1], memory[2]), 0)
        << model.Error();
    EXPECT_EQ(Count("cuStreamSynchronize"), run);
    EXPECT_EQ(memory[1][0], -1);
    ASSERT_EQ(fake_.Call<int(void*)>("cuStreamSynchronize", stream), 0);
    EXPECT_EQ(std::vector<float>(memory[1], memory[1] + x_.size()),
              ModelResult(x_));
    EXPECT_EQ(std::vector<float>(memory[2], memory[2] + x_.size()), x_);
  }
  EXPECT_EQ(Count("cuGraphLaunch on stream"), 2);
  // The device's memory serves a run that waits, too.
  memory[1][0] = -1;
  ASSERT_EQ(model.Run(memory[0], memory[1], memory[2]), 0) << model.Error();
  EXPECT_EQ(memory[1][0], ModelResult(x_)[0]);
  // A stream of the caller's in the place of one of the library's.
  fake_.ClearLog();
  DeviceModel other(library);
  ASSERT_EQ(other.CreateOn(stream), 0) << other.Error();
  RunRight(other);
  RunRight(other);
  other.Destroy();
  EXPECT_EQ(Count("cuStreamCreate") + Count("cuStreamDestroy"), 0);
}

TEST_F(CudaModelTest, EachCombinationOfShapesHasAGraph) {
  {
    const Kernel library = Load(/*open=*/true);
    DeviceModel model(library);
    ASSERT_EQ(model.Create(), 0) << model.Error();
    for (int run = 0; run < 3; ++run) {
      for (const int64_t rows : {int64_t{1}, kModelRows}) {
        RunRowsRight(model, rows);
      }
    }
    EXPECT_EQ(Count("cuGraphInstantiate"), 2);
    EXPECT_EQ(Count("cuGraphLaunch on stream"), 4);
    EXPECT_NE(model.Run(x_.data(), y_.data(), x2_.data()), 0);
    EXPECT_NE(model.RunRows(3, x_.data(), y_.data(), x2_.data()), 0);
    EXPECT_THAT(model.Error(), HasSubstr("rows=4; rows=1"));
  }
  ExpectNothingLeft();
}

TEST_F(CudaModelTest, PoisonsTheValues) {
  setenv("TILEFARM_POISON_WORKSPACE", "1", 1);
  const Kernel library = Load();
  DeviceModel model(library);
  ASSERT_EQ(model.Create(), 0) << model.Error();
  // Of the arena, the input and both outputs, each aligned to 512 bytes.
  EXPECT_EQ(Count("cuMemsetD8Async 2048"), 1);
  for (int run = 0; run < 3; ++run) RunRight(model);
}

TEST_F(CudaModelTest, SaysWhatFailed) {
  const Kernel library = Load();
  DeviceModel model(library);
  const auto fails_to_create = [&](const char* call, const char* why) {
    setenv("FAKE_CUDA_FAIL_CALL", call, 1);
    EXPECT_NE(model.Create(), 0) << call;
    EXPECT_THAT(model.Error(), HasSubstr(why));
    unsetenv("FAKE_CUDA_FAIL_CALL");
    EXPECT_THAT(fake_.Live(), HasSubstr("0 allocations"));
  };
  fails_to_create("cuMemAlloc:2", "cuMemAlloc of the model's values");
  fails_to_create("cuMemcpyHtoD:700", "cuMemcpyHtoD of the weights");
  fails_to_create("cuStreamCreate:2", "cuStreamCreate");
  setenv("FAKE_CUDA_MEMORY", "2048", 1);
  EXPECT_NE(model.Create(), 0);
  EXPECT_THAT(model.Error(), HasSubstr("cuMemAlloc of the weights"));
  unsetenv("FAKE_CUDA_MEMORY");

  ASSERT_EQ(model.Create(), 0) << model.Error();
  EXPECT_NE(model.Run(nullptr, y_.data(), x2_.data()), 0);
  EXPECT_EQ(model.Error(), "run: input 0 is null");
  EXPECT_NE(model.Run(x_.data(), y_.data(), nullptr), 0);
  EXPECT_EQ(model.Error(), "run: output 1 is null");
  const auto fails_to_run = [&](const char* call) {
    setenv("FAKE_CUDA_FAIL_CALL", (std::string(call) + ":900").c_str(), 1);
    EXPECT_NE(model.Run(x_.data(), y_.data(), x2_.data()), 0) << call;
    EXPECT_THAT(model.Error(), HasSubstr(call));
    unsetenv("FAKE_CUDA_FAIL_CALL");
  };
  fails_to_run("cuMemcpyAsync");
  RunRight(model);
  for (const char* call :
       {"cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiate",
        "cuLaunchKernel", "cuGraphLaunch", "cuStreamSynchronize"}) {
    fails_to_run(call);
    // A graph from now on, if not before; but a failed call ends no instance.
    if (std::string(call) == "cuLaunchKernel") RunRight(model);
  }
  RunRight(model);
}

TEST_F(CudaModelTest, KernelFailsOnTheDevice) {
  setenv("FAKE_CUDA_FAIL_LAUNCH", "2", 1);
  const Kernel library = Load();
  DeviceModel model(library);
  ASSERT_EQ(model.Create(), 0) << model.Error();
  for (int run = 0; run < 2; ++run) {
    EXPECT_NE(model.Run(x_.data(), y_.data(), x2_.data()), 0);
    EXPECT_THAT(model.Error(), HasSubstr("CUDA error 700"));
  }
}

}  // namespace
}  // namespace tilefarm::codegen
