// Artifacts of CUDA (compiler/runtime/cuda.c) with a fake driver.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <thread>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gpu/artifact.h"
#include "tests/gpu/cuda_functions.h"
#include "tests/gpu/fake_cuda.h"

namespace tilefarm::codegen {
namespace {

using ::testing::HasSubstr;

constexpr char kNothing[] =
    "0 allocations, 0 modules, 0 pools, 0 retained contexts, 0 overruns";
// to[i] = from[i] + 1
void AddOne(void** arguments, const unsigned*, const unsigned*, unsigned) {
  const auto* from = static_cast<const float*>(arguments[0]);
  auto* to = static_cast<float*>(arguments[1]);
  for (unsigned i = 0; i < kCount; ++i) to[i] = from[i] + 1;
}

// to[i] += from[i]
void Add(void** arguments, const unsigned*, const unsigned*, unsigned) {
  const auto* from = static_cast<const float*>(arguments[0]);
  auto* to = static_cast<float*>(arguments[1]);
  for (unsigned i = 0; i < kCount; ++i) to[i] += from[i];
}

absl::StatusOr<Kernel> Load(const std::vector<DeviceFunction>& functions,
                            const std::string& image = kImage) {
  return LoadArtifact(functions, image, Cuda());
}

std::vector<float> Iota(float first) {
  std::vector<float> values(kCount);
  std::iota(values.begin(), values.end(), first);
  return values;
}

class CudaTest : public testing::Test {
 protected:
  CudaTest() : fake_(TILEFARM_FAKE_CUDA) {}

  void SetUp() override {
    ASSERT_TRUE(fake_.found());
    Use(TILEFARM_FAKE_CUDA);
    Restart();
  }
  void TearDown() override {
    for (const char* name :
         {"TILEFARM_CUDA_DRIVER", "TILEFARM_CUDA_DEVICE",
          "TILEFARM_POISON_WORKSPACE", "FAKE_CUDA_DEVICES", "FAKE_CUDA_MEMORY",
          "FAKE_CUDA_FAIL_LAUNCH", "FAKE_CUDA_ERROR", "FAKE_CUDA_FAIL_CALL",
          "FAKE_CUDA_HANG"}) {
      unsetenv(name);
    }
  }

  void Use(const char* library) {
    setenv("TILEFARM_CUDA_DRIVER", library, 1);
    fake_ = FakeCuda(library);
  }
  void Restart() {
    fake_.Reset();
    fake_.Register("add_one", 2, &AddOne);
    fake_.Register("add", 2, &Add);
  }

  // A context of the test's own, which becomes current.
  void* MakeContext() {
    void* context = nullptr;
    fake_.Call<int(unsigned)>("cuInit", 0u);
    EXPECT_EQ((fake_.Call<int(void**, unsigned, int)>("cuCtxCreate_v2",
                                                      &context, 0u, 0)),
              0);
    return context;
  }
  void Push(void* context) {
    EXPECT_EQ(fake_.Call<int(void*)>("cuCtxPushCurrent_v2", context), 0);
  }
  void Pop() {
    void* context = nullptr;
    EXPECT_EQ(fake_.Call<int(void**)>("cuCtxPopCurrent_v2", &context), 0);
  }
  void* MakeStream() {
    void* stream = nullptr;
    EXPECT_EQ(
        (fake_.Call<int(void**, unsigned)>("cuStreamCreate", &stream, 1u)), 0);
    return stream;
  }
  int Synchronize(void* stream) {
    return fake_.Call<int(void*)>("cuStreamSynchronize", stream);
  }
  // Device memory with these values, which is also the host's.
  float* Allocate(const std::vector<float>& values) {
    void* memory = nullptr;
    EXPECT_EQ((fake_.Call<int(void**, size_t)>("cuMemAlloc_v2", &memory,
                                               values.size() * sizeof(float))),
              0);
    std::copy(values.begin(), values.end(), static_cast<float*>(memory));
    return static_cast<float*>(memory);
  }
  // The same of another kind: "cuMemAllocManaged", "cuMemHostAlloc".
  float* Allocate(const std::vector<float>& values, const char* function) {
    void* memory = nullptr;
    EXPECT_EQ((fake_.Call<int(void**, size_t, unsigned)>(
                  function, &memory, values.size() * sizeof(float), 1u)),
              0);
    std::copy(values.begin(), values.end(), static_cast<float*>(memory));
    return static_cast<float*>(memory);
  }
  // The logged calls of the function.
  int Count(const std::string& call) { return fake_.Count(call); }

  FakeCuda fake_;
};

TEST_F(CudaTest, HostMemoryIsCopiedAsAccessSays) {
  {
    const auto artifact = Load({ThreeKernels()});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    std::vector<float> in = Iota(0), out(kCount, -1), sum = Iota(1000);
    for (int call = 1; call <= 2; ++call) {
      ASSERT_EQ(artifact->Call("f", in.data(), out.data(), sum.data()), 0)
          << ErrorOf(*artifact, "f");
      EXPECT_EQ(in, Iota(0));
      EXPECT_EQ(out, Iota(2));
      for (unsigned i = 0; i < kCount; ++i) {
        ASSERT_EQ(sum[i], 1000 + i + call * (i + 1.0f));
      }
    }
    EXPECT_EQ(Count("cuMemcpyHtoD"), 4);
    EXPECT_EQ(Count("cuMemcpyDtoH"), 4);
    EXPECT_EQ(Count("cuModuleLoadDataEx"), 1);
    EXPECT_EQ(Count("cuModuleGetFunction"), 3);
    EXPECT_THAT(fake_.Log(),
                HasSubstr("cuLaunchKernel add_one grid 2 3 4 block 32 1 1 "
                          "shared 0 on 0\n"
                          "cuLaunchKernel add_one grid 1 1 1 block 8 4 2 "
                          "shared 64 on 0\n"
                          "cuLaunchKernel add grid 1 1 1 block 1 1 1 "
                          "shared 0 on 0\n"));
    EXPECT_EQ(fake_.Live(),
              "0 allocations, 1 modules, 1 pools, 1 retained contexts, "
              "0 overruns");
  }
  EXPECT_EQ(fake_.Live(), kNothing);
}

TEST_F(CudaTest, DeviceMemoryIsUsedInPlace) {
  void* context = MakeContext();
  {
    const auto artifact = Load({ThreeKernels()});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    float* in = Allocate(Iota(0));
    // Managed memory is the device's too; pinned memory is copied.
    float* out = Allocate(Iota(-9), "cuMemAllocManaged");
    float* sum = Allocate(Iota(0), "cuMemHostAlloc");
    ASSERT_EQ(artifact->Call("f", in, out, sum), 0) << ErrorOf(*artifact, "f");
    EXPECT_EQ(std::vector<float>(out, out + kCount), Iota(2));
    for (unsigned i = 0; i < kCount; ++i) ASSERT_EQ(sum[i], 2 * i + 1.0f);
    EXPECT_EQ(Count("cuMemcpyHtoD"), 1);
    EXPECT_EQ(Count("cuMemcpyDtoH"), 1);
    EXPECT_EQ(Count("cuDevicePrimaryCtxRetain"), 0);
  }
  EXPECT_EQ(fake_.Live(),
            "3 allocations, 0 modules, 0 pools, 0 retained contexts, "
            "0 overruns");
  EXPECT_EQ(fake_.Call<int(void*)>("cuCtxDestroy_v2", context), 0);
}

TEST_F(CudaTest, KernelsAreEnqueuedOnTheCallersStream) {
  MakeContext();
  void* stream = MakeStream();
  const auto artifact = Load({ThreeKernels()});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  float* in = Allocate(Iota(0));
  float* out = Allocate(Iota(-9));
  float* sum = Allocate(Iota(0));
  fake_.ClearLog();
  ASSERT_EQ(artifact->Call("f_on", static_cast<char*>(stream), in, out, sum), 0)
      << ErrorOf(*artifact, "f");
  ASSERT_EQ(artifact->Call("f_on", static_cast<char*>(stream), out, in, sum),
            0);
  EXPECT_EQ(Count("cuStreamSynchronize"), 0);
  EXPECT_EQ(Count("cuCtxSynchronize"), 0);
  EXPECT_EQ(Count("cuPointerGetAttribute"), 0);
  EXPECT_EQ(Count("cuMemAllocFromPoolAsync 256 on stream"), 2);
  EXPECT_EQ(Count("cuMemFreeAsync on stream"), 2);
  EXPECT_THAT(fake_.Log(), HasSubstr("shared 64 on stream"));
  EXPECT_EQ(out[0], -9);
  ASSERT_EQ(Synchronize(stream), 0);
  EXPECT_EQ(std::vector<float>(out, out + kCount), Iota(2));
  EXPECT_EQ(std::vector<float>(in, in + kCount), Iota(4));
  for (unsigned i = 0; i < kCount; ++i) ASSERT_EQ(sum[i], 3 * i + 4.0f);
}

TEST_F(CudaTest, WithoutPoolsEachStreamKeepsItsWorkspace) {
  Use(TILEFARM_FAKE_CUDA_OLD);
  Restart();
  MakeContext();
  void* stream = MakeStream();
  void* other = MakeStream();
  {
    const auto artifact = Load({ThreeKernels()});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    float* in = Allocate(Iota(0));
    float* out = Allocate(Iota(-9));
    float* sum = Allocate(Iota(0));
    fake_.ClearLog();
    for (void* on : {stream, other, stream, other}) {
      ASSERT_EQ(artifact->Call("f_on", static_cast<char*>(on), in, out, sum), 0)
          << ErrorOf(*artifact, "f");
    }
    EXPECT_EQ(Count("cuMemAlloc"), 2);
    EXPECT_EQ(Synchronize(other), 0);
    EXPECT_EQ(std::vector<float>(out, out + kCount), Iota(2));
  }
  EXPECT_EQ(fake_.Live(),
            "3 allocations, 0 modules, 0 pools, 0 retained contexts, "
            "0 overruns");
}

TEST_F(CudaTest, WorkspaceIsPoisonedOnRequest) {
  setenv("TILEFARM_POISON_WORKSPACE", "1", 1);
  const auto artifact = Load({ThreeKernels()});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::vector<float> in = Iota(0), out(kCount), sum(kCount);
  ASSERT_EQ(artifact->Call("f", in.data(), out.data(), sum.data()), 0);
  EXPECT_EQ(Count("cuMemsetD8Async 256"), 1);
  EXPECT_EQ(out, Iota(2));
}

TEST_F(CudaTest, CodeIsLoadedOncePerContext) {
  void* first = MakeContext();
  Pop();
  void* second = MakeContext();
  Pop();
  {
    const auto artifact = Load({ThreeKernels(), OneKernel()});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    std::vector<float> x = Iota(1);
    for (int repeat = 0; repeat < 3; ++repeat) {
      for (void* context : {first, second}) {
        Push(context);
        ASSERT_EQ(artifact->Call("g", x.data()), 0) << ErrorOf(*artifact, "g");
        Pop();
      }
    }
    EXPECT_EQ(x[1], 128);
    EXPECT_EQ(Count("cuModuleLoadDataEx"), 2);
    EXPECT_EQ(Count("cuModuleGetFunction add"), 2);
    EXPECT_EQ(Count("cuDevicePrimaryCtxRetain"), 0);
  }
  EXPECT_EQ(Count("cuModuleUnload"), 2);
  EXPECT_EQ(fake_.Live(), kNothing);
}

TEST_F(CudaTest, DestroyedContextIsForgotten) {
  {
    const auto artifact = Load({OneKernel()});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    std::vector<float> x = Iota(1);
    void* context = MakeContext();
    ASSERT_EQ(artifact->Call("g", x.data()), 0);
    EXPECT_EQ(fake_.Call<int(void*)>("cuCtxDestroy_v2", context), 0);
    ASSERT_EQ(artifact->Call("g", x.data()), 0) << ErrorOf(*artifact, "g");
    EXPECT_EQ(x[0], 4);
    fake_.ClearLog();
  }
  EXPECT_EQ(Count("cuModuleUnload"), 1);
  EXPECT_EQ(fake_.Live(), kNothing);
}

TEST_F(CudaTest, ThreadsLoadTheCodeOnce) {
  const auto artifact = Load({ThreeKernels()});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int repeat = 0; repeat < 20; ++repeat) {
        std::vector<float> in = Iota(0), out(kCount), sum(kCount, 0);
        if (artifact->Call("f", in.data(), out.data(), sum.data()) != 0 ||
            out != Iota(2) || sum != Iota(1)) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Count("cuInit"), 1);
  EXPECT_EQ(Count("cuModuleLoadDataEx"), 1);
  EXPECT_EQ(Count("cuDevicePrimaryCtxRetain"), 1);
}

TEST_F(CudaTest, DeviceIsChosenByTheEnvironment) {
  setenv("FAKE_CUDA_DEVICES", "2", 1);
  std::vector<float> x = Iota(1);
  for (const auto& [text, status, error] :
       std::vector<std::tuple<const char*, int, std::string>>{
           {"1", 0, "no error"},
           {"2", 101,
            "cuDeviceGet of device 2: CUDA error 101 (invalid device "
            "ordinal)"},
           {"first", -1, "TILEFARM_CUDA_DEVICE is not a number"}}) {
    setenv("TILEFARM_CUDA_DEVICE", text, 1);
    const auto artifact = Load({OneKernel()});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    EXPECT_EQ(artifact->Call("g", x.data()), status);
    EXPECT_EQ(ErrorOf(*artifact, "g"), error);
  }
  EXPECT_EQ(Count("cuDevicePrimaryCtxRetain 1"), 1);
  EXPECT_EQ(fake_.Live(), kNothing);
}

TEST_F(CudaTest, LargeSharedMemoryIsRequested) {
  std::vector<float> x = Iota(1);
  for (const uint32_t bytes : {48u << 10, 200u << 10}) {
    fake_.ClearLog();
    const auto artifact = Load({OneKernel(bytes)});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    ASSERT_EQ(artifact->Call("g", x.data()), 0) << ErrorOf(*artifact, "g");
    EXPECT_EQ(Count("cuFuncSetAttribute 8 204800"), bytes > 48u << 10);
  }
}

TEST_F(CudaTest, UnloadOfAnUnusedArtifactDoesNotOpenTheDriver) {
  {
    const auto artifact = Load({OneKernel()});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    EXPECT_EQ(ErrorOf(*artifact, "g"), "no error");
  }
  EXPECT_EQ(fake_.Log(), "");
}

// The status and the error of a call of g.
std::string CallG(const std::string& image = kImage, uint32_t shared = 0) {
  const auto artifact = Load({OneKernel(shared)}, image);
  if (!artifact.ok()) return artifact.status().ToString();
  std::vector<float> x = Iota(1);
  const int status = artifact->Call("g", x.data());
  return absl::StrCat(status, " ", ErrorOf(*artifact, "g"));
}

TEST_F(CudaTest, MissingDriverIsAnError) {
  setenv("TILEFARM_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  EXPECT_THAT(CallG(),
              HasSubstr("-2 /nowhere/libcuda.so.1 is not here: install "
                        "NVIDIA's driver (/nowhere/libcuda.so.1: "));
  setenv("TILEFARM_CUDA_DRIVER", TILEFARM_FAKE_CUDA_BROKEN, 1);
  EXPECT_EQ(CallG(), absl::StrCat("-2 ", TILEFARM_FAKE_CUDA_BROKEN,
                                  " has no function cuLaunchKernel: install a "
                                  "newer driver of NVIDIA"));
}

TEST_F(CudaTest, MissingDeviceIsAnErrorUntilThereIsOne) {
  const auto artifact = Load({OneKernel()});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::vector<float> x = Iota(1);
  setenv("FAKE_CUDA_DEVICES", "0", 1);
  EXPECT_EQ(artifact->Call("g", x.data()), 100);
  EXPECT_EQ(ErrorOf(*artifact, "g"),
            "cuInit: CUDA error 100 (no CUDA-capable device is detected)");
  unsetenv("FAKE_CUDA_DEVICES");
  EXPECT_EQ(artifact->Call("g", x.data()), 0);
  EXPECT_EQ(x[0], 2);
}

TEST_F(CudaTest, CodeThatDoesNotLoadIsAnErrorWithTheLog) {
  EXPECT_EQ(CallG("syntax error"),
            "218 cuModuleLoadDataEx: CUDA error 218 (a PTX JIT compilation "
            "failed): ptxas application ptx input, line 1; fatal");
  EXPECT_EQ(CallG(".entry other() {}"),
            "500 cuModuleGetFunction of add: CUDA error 500 (named symbol not "
            "found)");
  EXPECT_EQ(fake_.Live(), kNothing);
}

TEST_F(CudaTest, ErrorsOfCallsHaveNameAndNumber) {
  const std::pair<const char*, const char*> kCases[] = {
      {"cuCtxGetCurrent:201",
       "201 cuCtxGetCurrent: CUDA error 201 (invalid device context)"},
      {"cuDevicePrimaryCtxRetain:2",
       "2 cuDevicePrimaryCtxRetain: CUDA error 2 (out of memory)"},
      {"cuCtxPushCurrent:709",
       "709 cuCtxPushCurrent: CUDA error 709 (context is destroyed)"},
      {"cuPointerGetAttribute:700",
       "700 cuPointerGetAttribute of parameter 0: CUDA error 700 (an illegal "
       "memory access was encountered)"},
      {"cuMemAlloc:2",
       "2 cuMemAlloc of parameter 0: CUDA error 2 (out of memory)"},
      {"cuMemcpyHtoD:1",
       "1 cuMemcpyHtoD of parameter 0: CUDA error 1 (invalid argument)"},
      {"cuLaunchKernel:98765",
       "98765 cuLaunchKernel of add: CUDA error 98765 (unknown)"},
      {"cuStreamSynchronize:719",
       "719 cuStreamSynchronize of add: CUDA error 719 (unspecified launch "
       "failure)"},
      {"cuMemcpyDtoH:1",
       "1 cuMemcpyDtoH of parameter 0: CUDA error 1 (invalid argument)"},
      {"cuFuncSetAttribute:1",
       "1 cuFuncSetAttribute (dynamic shared memory) of add: CUDA error 1 "
       "(invalid argument)"}};
  for (const auto& [fail, error] : kCases) {
    setenv("FAKE_CUDA_FAIL_CALL", fail, 1);
    EXPECT_EQ(CallG(kImage, 100 << 10), error);
    unsetenv("FAKE_CUDA_FAIL_CALL");
    if (std::string(fail) != "cuCtxPushCurrent:709") {
      EXPECT_EQ(fake_.Live(), kNothing) << fail;
    }
    Restart();
  }
}

TEST_F(CudaTest, OutOfWorkspaceIsAnError) {
  MakeContext();
  for (const char* library : {TILEFARM_FAKE_CUDA, TILEFARM_FAKE_CUDA_OLD}) {
    Use(library);
    Restart();
    MakeContext();
    const auto artifact = Load({ThreeKernels()});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    float* x = Allocate(Iota(0));
    setenv("FAKE_CUDA_MEMORY", "300", 1);
    char* stream = nullptr;
    EXPECT_EQ(artifact->Call("f_on", stream, x, x, x), 2);
    EXPECT_EQ(ErrorOf(*artifact, "f"),
              absl::StrCat(library == std::string(TILEFARM_FAKE_CUDA)
                               ? "cuMemAllocFromPoolAsync"
                               : "cuMemAlloc",
                           " of workspace: CUDA error 2 (out of memory)"));
    unsetenv("FAKE_CUDA_MEMORY");
    EXPECT_EQ(artifact->Call("f_on", stream, x, x, x), 0);
    EXPECT_EQ(Synchronize(nullptr), 0);
  }
}

TEST_F(CudaTest, FaultOfAKernelIsReportedByEveryLaterCall) {
  setenv("FAKE_CUDA_FAIL_LAUNCH", "2", 1);
  {
    const auto artifact = Load({ThreeKernels(), OneKernel()});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    std::vector<float> in = Iota(0), out(kCount, -1), sum = Iota(0);
    EXPECT_EQ(artifact->Call("f", in.data(), out.data(), sum.data()), 700);
    EXPECT_EQ(ErrorOf(*artifact, "f"),
              "cuStreamSynchronize: CUDA error 700 (an illegal memory access "
              "was encountered)");
    EXPECT_EQ(out[0], -1);
    EXPECT_EQ(artifact->Call("g", in.data()), 700);
    EXPECT_THAT(ErrorOf(*artifact, "g"), HasSubstr("CUDA error 700"));
  }
  // The process can go on, but for this device.
  EXPECT_THAT(fake_.Live(), HasSubstr("1 modules"));
}

TEST_F(CudaTest, ErrorsBelongToTheirThread) {
  const auto artifact = Load({OneKernel()});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::string other;
  std::thread([&] {
    float* null = nullptr;
    EXPECT_EQ(artifact->Call("g", null), -1);
    other = ErrorOf(*artifact, "g");
  }).join();
  EXPECT_EQ(other, "parameter 0 is null");
  EXPECT_EQ(ErrorOf(*artifact, "g"), "no error");
}

// In a child, which the test ends.
TEST_F(CudaTest, FakeDriverHangsOnRequest) {
  for (const char* call : {"cuLaunchKernel", "cuStreamSynchronize"}) {
    setenv("FAKE_CUDA_HANG", call, 1);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      CallG();
      _exit(1);
    }
    usleep(300'000);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, WNOHANG), 0) << call;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  }
}

// The driver as the loader finds it, in a process of its own.
TEST_F(CudaTest, DriverIsFoundByTheLoader) {
  const std::string command =
      absl::StrCat("env -u TILEFARM_CUDA_DRIVER LD_LIBRARY_PATH=",
                   std::string(TILEFARM_FAKE_CUDA)
                       .substr(0, std::string(TILEFARM_FAKE_CUDA).rfind('/')),
                   " FAKE_CUDA_LOG=", testing::TempDir(), "/fake_cuda_",
                   getpid(), ".log ", "/proc/", getpid(),
                   "/exe --gtest_filter=LoadedDriver.* "
                   "--gtest_also_run_disabled_tests >&2");
  const std::string log =
      absl::StrCat(testing::TempDir(), "/fake_cuda_", getpid(), ".log");
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(access(log.c_str(), R_OK), 0);
  unlink(log.c_str());
}

// The process of the test above.
TEST(LoadedDriver, DISABLED_Runs) { EXPECT_EQ(CallG(), "0 no error"); }

}  // namespace
}  // namespace tilefarm::codegen
