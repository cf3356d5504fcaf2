// Models on OpenCL (compiler/runtime/opencl_model.c) on PoCL.
#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gpu/model_artifact.h"
#include "tests/gpu/pocl.h"

namespace tilefarm::codegen {
namespace {

using ::testing::HasSubstr;

constexpr char kModelSource[] = R"(
__kernel void add_one(__global const float* from, __global float* to) {
  to[get_global_id(0)] = from[get_global_id(0)] + 1;
}
__kernel void add(__global const float* from, __global float* to) {
  to[get_global_id(0)] += from[get_global_id(0)];
}
)";

DeviceKernel LaunchOfOpenCl(const std::string& name,
                            const std::vector<int>& arguments, int64_t floats) {
  return {name,       {static_cast<uint32_t>(floats / 16), 1, 1},
          {16, 1, 1}, 0,
          arguments,  {}};
}

const Pocl& GetPocl() {
  static const Pocl pocl;
  return pocl;
}

class OpenClModelTest : public DeviceModelTest {
 protected:
  void SetUp() override {
    if (!pocl_.found()) {
      GTEST_SKIP() << "pocl-opencl-icd or ocl-icd-libopencl1 is not installed";
    }
    // One that counts objects.
    setenv("TILEFARM_OPENCL_DRIVER", TILEFARM_OPENCL_FAULTS, 1);
    void* library = dlopen(TILEFARM_OPENCL_FAULTS, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    live_ = reinterpret_cast<int (*)()>(dlsym(library, "opencl_faults_live"));
    ASSERT_NE(live_, nullptr);
  }
  void TearDown() override {
    for (const char* name : {"TILEFARM_OPENCL_DRIVER", "TILEFARM_OPENCL_DEVICE",
                             "TILEFARM_POISON_WORKSPACE", "OPENCL_FAIL_CALL"}) {
      unsetenv(name);
    }
  }

  static Kernel Load(bool open = false) {
    return LoadModel(BuildModel(*target::Parse("opencl:pocl"), kModelSource,
                                open, &LaunchOfOpenCl));
  }

  const Pocl& pocl_ = GetPocl();
  int (*live_)() = nullptr;
};

TEST_F(OpenClModelTest, RunsAndReleasesAll) {
  const int before = live_();
  {
    const Kernel library = Load();
    DeviceModel first(library), second(library);
    ASSERT_EQ(first.Create(), 0) << first.Error();
    ASSERT_EQ(second.Create(), 0) << second.Error();
    for (int run = 0; run < 3; ++run) {
      x_[0] += 1;
      RunRight(first);
      RunRight(second);
    }
    first.Destroy();
    RunRight(second);
  }
  EXPECT_EQ(live_(), before);
}

TEST_F(OpenClModelTest, RunsOnTheCallersQueueWithItsMemory) {
  OwnQueue queue(pocl_), other(pocl_);
  const Kernel library = Load();
  DeviceModel model(library);
  ASSERT_EQ(model.CreateOn(queue.get()), 0) << model.Error();
  void* x = queue.Buffer(x_);
  void* y = queue.Buffer(y_);
  void* x2 = queue.Buffer(x2_);
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(model.RunOn(queue.get(), x, y, x2), 0) << model.Error();
    EXPECT_EQ(queue.Read(y), ModelResult(x_));
    EXPECT_EQ(queue.Read(x2), x_);
  }
  // Host memory, on the caller's device.
  RunRight(model);
  // Of another context.
  EXPECT_NE(model.RunOn(other.get(), x, y, x2), 0);
  EXPECT_THAT(model.Error(), HasSubstr("clEnqueueCopyBuffer of input 0"));
}

TEST_F(OpenClModelTest, InstancesRunInSeveralThreads) {
  setenv("TILEFARM_OPENCL_DEVICE", "1", 1);
  const Kernel library = Load();
  RunInTwoThreads(library);
}

TEST_F(OpenClModelTest, EachCombinationOfShapesHasItsKernels) {
  setenv("TILEFARM_POISON_WORKSPACE", "1", 1);
  const Kernel library = Load(/*open=*/true);
  DeviceModel model(library);
  ASSERT_EQ(model.Create(), 0) << model.Error();
  for (const int64_t rows : {int64_t{1}, kModelRows, int64_t{1}}) {
    RunRowsRight(model, rows);
  }
}

TEST_F(OpenClModelTest, SaysWhatFailed) {
  const int before = live_();
  {
    const Kernel library = Load();
    DeviceModel model(library);
    for (const auto& [call, what] :
         std::vector<std::pair<std::string, std::string>>{
             {"clCreateBuffer", " of the model's values"},
             {"clCreateSubBuffer", " of the model's values"},
             {"clEnqueueWriteBuffer", " of the weights"}}) {
      setenv("OPENCL_FAIL_CALL", (call + ":-5").c_str(), 1);
      EXPECT_NE(model.Create(), 0) << call;
      EXPECT_THAT(model.Error(), HasSubstr(call + what));
      unsetenv("OPENCL_FAIL_CALL");
    }
    ASSERT_EQ(model.Create(), 0) << model.Error();
    EXPECT_NE(model.Run(nullptr, y_.data(), x2_.data()), 0);
    EXPECT_EQ(model.Error(), "run: input 0 is null");
    RunRight(model);
    for (const std::string call :
         {"clEnqueueWriteBuffer", "clEnqueueNDRangeKernel",
          "clEnqueueCopyBuffer", "clEnqueueReadBuffer", "clFinish"}) {
      setenv("OPENCL_FAIL_CALL", (call + ":-5").c_str(), 1);
      EXPECT_NE(model.Run(x_.data(), y_.data(), x2_.data()), 0) << call;
      EXPECT_THAT(model.Error(), HasSubstr(call));
      unsetenv("OPENCL_FAIL_CALL");
      RunRight(model);
    }
  }
  EXPECT_EQ(live_(), before);
}

}  // namespace
}  // namespace tilefarm::codegen
