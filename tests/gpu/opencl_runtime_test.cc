// Artifacts of OpenCL (compiler/runtime/opencl.c) on PoCL.
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <thread>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/c_header.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gpu/artifact.h"
#include "tests/gpu/pocl.h"

namespace tilefarm::codegen {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsNan;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kSource[] = R"(
__kernel void twice(__global const float* from, __global float* to) {
  to[get_global_id(0)] = 2 * from[get_global_id(0)];
}
__kernel void add_one(__global const float* from, __global float* to) {
  to[get_global_id(0)] = from[get_global_id(0)] + 1;
}
__kernel void subtract(__global const float* a, __global const float* b,
                       __global float* to) {
  to[get_global_id(0)] = a[get_global_id(0)] - b[get_global_id(0)];
}
__kernel void add(__global const float* from, __global float* to) {
  to[get_global_id(0)] += from[get_global_id(0)];
}
__kernel __attribute__((reqd_work_group_size(4, 2, 2)))
void where(__global float* to) {
  __local float last[16];
  const size_t i = (get_local_id(2) * 2 + get_local_id(1)) * 4 + get_local_id(0);
  last[15 - i] = get_local_id(2) * 100 + get_local_id(1) * 10 + get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  const size_t group =
      (get_group_id(2) * 3 + get_group_id(1)) * 2 + get_group_id(0);
  to[group * 16 + i] = group * 1000 + last[15 - i];
}
)";
constexpr unsigned kCount = 64;
constexpr int64_t kBytes = kCount * sizeof(float);

target::Target OpenCl() { return *target::Parse("opencl:pocl"); }

DeviceKernel Launch(const std::string& name, const std::vector<int>& arguments,
                    unsigned count = kCount) {
  return {name, {count / 16, 1, 1}, {16, 1, 1}, 0, arguments, {}};
}

// f(in, out, sum): out = 2 * in - (in + 1); sum += out. Both intermediates live
// at once.
DeviceFunction FourKernels() {
  DeviceFunction function;
  function.symbol = "f";
  function.parameter_bytes = {kBytes, kBytes, kBytes};
  function.parameter_access = {1, 2, 3};
  function.workspace_bytes = {kBytes, kBytes};
  function.kernels = {Launch("twice", {0, 3}), Launch("add_one", {0, 4}),
                      Launch("subtract", {3, 4, 1}), Launch("add", {1, 2})};
  return function;
}

// g(x): x += x.
DeviceFunction OneKernel() {
  DeviceFunction function;
  function.symbol = "g";
  function.parameter_bytes = {kBytes};
  function.parameter_access = {3};
  function.kernels = {Launch("add", {0, 0})};
  return function;
}

std::vector<float> Iota(float first, unsigned count = kCount) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

absl::StatusOr<Kernel> Load(const std::vector<DeviceFunction>& functions,
                            const std::string& source = kSource) {
  return LoadArtifact(functions, source, OpenCl());
}

// The status and the error of a call of g.
std::string CallG(const DeviceFunction& g = OneKernel(),
                  const std::string& source = kSource) {
  target::Target target = OpenCl();
  // The runtime, not the stub, is to find what is too large.
  target.gpu->block_threads = 1 << 20;
  target.gpu->block_shared = 1 << 30;
  const auto artifact = LoadArtifact({g}, source, target);
  if (!artifact.ok()) return artifact.status().ToString();
  std::vector<float> x = Iota(1);
  const int status = artifact->Call("g", x.data());
  return absl::StrCat(status, " ", ErrorOf(*artifact, "g"));
}

TEST(OpenClStub, HeaderTellsHowToCall) {
  auto function = std::make_shared<ir::PrimFunc>();
  function->params = {ir::MakeBuffer("y", ir::DataType::Float(32), {64})};
  function->body = ir::MakeStore(function->params[0], {ir::IntConst(0)},
                                 ir::FloatConst(1, ir::DataType::Float(32)));
  const LoweredFunction named = {function, "f"};
  const std::string header =
      CHeader(std::vector{SignatureOf(named, named, OpenCl())}, OpenCl());
  EXPECT_THAT(header, HasSubstr("\nint f(void* y_0);\n"
                                "int f_on(void* queue, void* y_0);\n"
                                "const char* f_error(void);\n"));
  EXPECT_THAT(header, HasSubstr("NAME_on(queue, ...) enqueues"));
}

TEST(OpenClStub, TensorMapsAreForCuda) {
  DeviceFunction function = OneKernel();
  function.kernels[0].maps = {{}};
  EXPECT_EQ(
      EmitHostStub({&function, 1}, kSource, {OpenCl()}).status().ToString(),
      "INTERNAL: the kernel 'add' of 'g': tensor maps, which OpenCL does "
      "not have");
}

const Pocl& GetPocl() {
  static const Pocl pocl;
  return pocl;
}

class OpenClRuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!pocl_.found()) {
      GTEST_SKIP() << "pocl-opencl-icd or ocl-icd-libopencl1 is not installed";
    }
  }
  void TearDown() override {
    for (const char* name : {"TILEFARM_OPENCL_DRIVER", "TILEFARM_OPENCL_DEVICE",
                             "TILEFARM_POISON_WORKSPACE", "OPENCL_FAIL_CALL",
                             "OPENCL_FAIL_KERNELS"}) {
      unsetenv(name);
    }
  }

  const Pocl& pocl_ = GetPocl();
};

TEST_F(OpenClRuntimeTest, HostMemoryIsCopiedAsAccessSays) {
  // Writes what is only read: h's parameter is not copied back.
  DeviceFunction h = OneKernel();
  h.symbol = "h";
  h.parameter_access = {1};
  const auto artifact = Load({FourKernels(), h});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::vector<float> in = Iota(0), out(kCount, -1), sum = Iota(1000);
  for (int call = 1; call <= 2; ++call) {
    ASSERT_EQ(artifact->Call("f", in.data(), out.data(), sum.data()), 0)
        << ErrorOf(*artifact, "f");
    EXPECT_EQ(in, Iota(0));
    EXPECT_EQ(out, Iota(-1));
    for (unsigned i = 0; i < kCount; ++i) {
      ASSERT_EQ(sum[i], 1000 + i + call * (i - 1.0f));
    }
  }
  ASSERT_EQ(artifact->Call("h", in.data()), 0) << ErrorOf(*artifact, "h");
  EXPECT_EQ(in, Iota(0));
}

TEST_F(OpenClRuntimeTest, KernelsAreEnqueuedOnTheCallersQueue) {
  OwnQueue first(pocl_), second(pocl_, 1);
  const auto artifact = Load({FourKernels(), OneKernel()});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  for (OwnQueue* queue : {&first, &second, &first}) {
    void* in = queue->Buffer(Iota(5));
    void* out = queue->Buffer(Iota(0));
    void* sum = queue->Buffer(Iota(0));
    ASSERT_EQ(artifact->Call("f_on", queue->get(), in, out, sum), 0)
        << ErrorOf(*artifact, "f");
    ASSERT_EQ(artifact->Call("f_on", queue->get(), out, in, sum), 0);
    ASSERT_EQ(artifact->Call("g_on", queue->get(), in), 0);
    EXPECT_EQ(queue->Read(out), Iota(4));
    for (unsigned i = 0; i < kCount; ++i) {
      ASSERT_EQ(queue->Read(in)[i], 2 * (i + 3.0f));
      ASSERT_EQ(queue->Read(sum)[i], i + (i + 4.0f) + (i + 3.0f));
    }
  }
}

TEST_F(OpenClRuntimeTest, GroupsAndItemsAreThoseOfTheLaunch) {
  DeviceFunction function = OneKernel();
  function.parameter_bytes = {6 * 4 * 16 * sizeof(float)};
  function.kernels = {{"where", {2, 3, 4}, {4, 2, 2}, 64, {0}, {}}};
  const auto artifact = Load({function});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::vector<float> x(6 * 4 * 16, -1);
  ASSERT_EQ(artifact->Call("g", x.data()), 0) << ErrorOf(*artifact, "g");
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(x[i], i / 16 * 1000 + i % 16 / 8 * 100 + i % 8 / 4 * 10 + i % 4);
  }
}

TEST_F(OpenClRuntimeTest, WorkspaceGrowsWithTheFunctions) {
  DeviceFunction small = FourKernels(), large = FourKernels();
  constexpr unsigned kMore = 1 << 16;
  large.symbol = "large";
  for (int64_t& bytes : large.parameter_bytes) bytes = kMore * sizeof(float);
  for (int64_t& bytes : large.workspace_bytes) bytes = kMore * sizeof(float);
  for (DeviceKernel& kernel : large.kernels) kernel.grid[0] = kMore / 16;
  const auto artifact = Load({small, large});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  OwnQueue queue(pocl_);
  void* in = queue.Buffer(Iota(0, kMore));
  void* out = queue.Buffer(Iota(0, kMore));
  void* sum = queue.Buffer(Iota(0, kMore));
  for (const auto& [symbol, count] :
       {std::pair("f_on", kCount), {"large_on", kMore}, {"f_on", kCount}}) {
    ASSERT_EQ(artifact->Call(symbol, queue.get(), in, out, sum), 0)
        << ErrorOf(*artifact, "f");
    EXPECT_EQ(queue.Read(out, count), Iota(-1, count));
  }
}

TEST_F(OpenClRuntimeTest, WorkspaceIsPoisonedBeforeEachCallOnRequest) {
  // Reads its intermediate before it writes it.
  DeviceFunction function = OneKernel();
  function.workspace_bytes = {kBytes};
  function.kernels = {Launch("add_one", {1, 0}), Launch("twice", {0, 1})};
  setenv("TILEFARM_POISON_WORKSPACE", "1", 1);
  const auto artifact = Load({function, FourKernels()});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  for (int call = 0; call < 2; ++call) {
    std::vector<float> x = Iota(1);
    ASSERT_EQ(artifact->Call("g", x.data()), 0) << ErrorOf(*artifact, "g");
    EXPECT_THAT(x, Each(IsNan()));
  }
  std::vector<float> in = Iota(0), out(kCount), sum(kCount);
  ASSERT_EQ(artifact->Call("f", in.data(), out.data(), sum.data()), 0);
  EXPECT_EQ(out, Iota(-1));
}

TEST_F(OpenClRuntimeTest, ThreadsGetTheirOwnResults) {
  setenv("TILEFARM_OPENCL_DEVICE", "1", 1);
  const auto artifact = Load({FourKernels()});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int repeat = 0; repeat < 100; ++repeat) {
        const float first = t * 1000 + repeat;
        std::vector<float> in = Iota(first), out(kCount), sum(kCount, 0);
        if (artifact->Call("f", in.data(), out.data(), sum.data()) != 0 ||
            out != Iota(first - 1) || sum != out) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Threads with a queue each share the kernels of their context.
TEST_F(OpenClRuntimeTest, QueuesOfOneContextShareKernels) {
  const auto artifact = Load({FourKernels()});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  OwnQueue home(pocl_, 1);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    void* in = home.Buffer(Iota(t * 1000));
    void* out = home.Buffer(Iota(0));
    void* sum = home.Buffer(Iota(0));
    threads.emplace_back([&, t, in, out, sum] {
      void* queue = pocl_.MakeQueue(home.context(), home.device());
      for (int repeat = 0; repeat < 100; ++repeat) {
        if (artifact->Call("f_on", queue, in, out, sum) != 0 ||
            pocl_.Read(queue, out, kCount) != Iota(t * 1000 - 1)) {
          ++wrong;
        }
      }
      pocl_.Release("clReleaseCommandQueue", queue);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(OpenClRuntimeTest, EmptyParametersMayBeNull) {
  DeviceFunction function = FourKernels();
  function.parameter_bytes[1] = 0;
  function.workspace_bytes.push_back(0);
  function.kernels = {Launch("add", {0, 2})};
  const auto artifact = Load({function});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::vector<float> in = Iota(0), sum = Iota(1);
  float* null = nullptr;
  ASSERT_EQ(artifact->Call("f", in.data(), null, sum.data()), 0)
      << ErrorOf(*artifact, "f");
  EXPECT_EQ(sum[9], 19);
}

TEST_F(OpenClRuntimeTest, DeviceIsChosenByTheEnvironment) {
  for (const auto& [text, error] :
       {std::pair("1", "0 no error"),
        {"2", "1 there is no device 2: OpenCL has 2 devices"},
        {"first", "-1 TILEFARM_OPENCL_DEVICE is not a number"}}) {
    setenv("TILEFARM_OPENCL_DEVICE", text, 1);
    EXPECT_EQ(CallG(), error);
  }
}

TEST_F(OpenClRuntimeTest, MissingDriverIsAnError) {
  setenv("TILEFARM_OPENCL_DRIVER", "/nonexistent", 1);
  EXPECT_THAT(CallG(),
              StartsWith("-2 /nonexistent is not here: install the device's "
                         "OpenCL driver and a loader such as ocl-icd "
                         "(/nonexistent: "));
  setenv("TILEFARM_OPENCL_DRIVER", "libm.so.6", 1);
  EXPECT_EQ(CallG(),
            "-2 libm.so.6 has no function clGetPlatformIDs: install one of "
            "OpenCL 1.2 or later");
}

TEST_F(OpenClRuntimeTest, SourceThatDoesNotBuildIsAnErrorWithTheLog) {
  const std::string error = CallG(
      OneKernel(), std::string(kSource) + "__kernel void k() { nonsense; }");
  EXPECT_THAT(error, StartsWith("11 clBuildProgram: OpenCL error -11 "
                                "(CL_BUILD_PROGRAM_FAILURE): "));
  EXPECT_THAT(error, HasSubstr("nonsense"));
  // Of a long log the end, which has no warnings.
  std::string errors, warnings;
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&warnings, "#warning number ", i, " of many\n");
  }
  EXPECT_THAT(CallG(OneKernel(), "#error first\n" + warnings),
              HasSubstr("first"));
  for (int i = 0; i < 10; ++i) {
    absl::StrAppend(&errors, "#error ", i, std::string(400, 'x'), "\n");
  }
  EXPECT_THAT(CallG(OneKernel(), "#error first\n" + errors + "#error last"),
              AllOf(HasSubstr("last"), Not(HasSubstr("first"))));
}

TEST_F(OpenClRuntimeTest, KernelsThatDoNotFitTheDeviceAreErrors) {
  DeviceFunction g = OneKernel();
  g.kernels[0].grid = {1, 1, 1};
  g.kernels[0].block = {4096, 4, 1};
  EXPECT_EQ(CallG(g),
            "54 the kernel add has groups of 16384 work items; the device can "
            "run 4096");
  g = OneKernel();
  g.kernels[0].shared_bytes = 1 << 30;
  EXPECT_THAT(CallG(g), StartsWith("5 the kernel add needs 1073741824 bytes of "
                                   "local memory; the device has "));
}

TEST_F(OpenClRuntimeTest, KernelsThatTheSourceDoesNotHaveAreErrors) {
  DeviceFunction g = OneKernel();
  g.kernels[0].name = "other";
  EXPECT_EQ(CallG(g),
            "46 clCreateKernel of other: OpenCL error -46 "
            "(CL_INVALID_KERNEL_NAME)");
  g = OneKernel();
  g.kernels[0].arguments = {0};
  EXPECT_EQ(CallG(g),
            "52 clEnqueueNDRangeKernel of add: OpenCL error -52 "
            "(CL_INVALID_KERNEL_ARGS)");
  g.kernels[0].arguments = {0, 0, 0};
  EXPECT_EQ(CallG(g),
            "49 clSetKernelArg of argument 2 of add: OpenCL error -49 "
            "(CL_INVALID_ARG_INDEX)");
}

TEST_F(OpenClRuntimeTest, WrongArgumentsAreErrors) {
  const auto artifact = Load({OneKernel()});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  void* null = nullptr;
  OwnQueue queue(pocl_);
  EXPECT_EQ(artifact->Call("g", null), -1);
  EXPECT_EQ(ErrorOf(*artifact, "g"), "parameter 0 is null");
  EXPECT_EQ(artifact->Call("g_on", null, queue.Buffer(Iota(0))), -1);
  EXPECT_EQ(ErrorOf(*artifact, "g"), "the queue is null");
  OwnQueue unordered(pocl_, 0, /*OUT_OF_ORDER_EXEC_MODE=*/1);
  EXPECT_EQ(artifact->Call("g_on", unordered.get(), unordered.Buffer(Iota(0))),
            -1);
  EXPECT_THAT(ErrorOf(*artifact, "g"), HasSubstr("runs out of order"));
}

// With a library that makes calls fail. Nothing is kept after any error.
class OpenClFaultTest : public OpenClRuntimeTest {
 protected:
  void SetUp() override {
    OpenClRuntimeTest::SetUp();
    setenv("TILEFARM_OPENCL_DRIVER", TILEFARM_OPENCL_FAULTS, 1);
  }
  static int Live() {
    void* library = dlopen(TILEFARM_OPENCL_FAULTS, RTLD_NOW);
    auto* live =
        reinterpret_cast<int (*)()>(dlsym(library, "opencl_faults_live"));
    const int count = live();
    dlclose(library);
    return count;
  }
};

TEST_F(OpenClFaultTest, UnloadReleasesAll) {
  {
    const auto artifact = Load({FourKernels(), OneKernel()});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    OwnQueue queue(pocl_);
    std::vector<float> in = Iota(0), out(kCount), sum(kCount);
    for (int call = 0; call < 3; ++call) {
      ASSERT_EQ(artifact->Call("f", in.data(), out.data(), sum.data()), 0);
      ASSERT_EQ(artifact->Call("g_on", queue.get(), queue.Buffer(in)), 0);
      // A context, two retained contexts, a queue, two programs, five kernels
      // and two workspaces.
      EXPECT_EQ(Live(), 13);
    }
  }
  EXPECT_EQ(Live(), 0);
}

TEST_F(OpenClFaultTest, ErrorsOfCallsHaveNameAndNumber) {
  const std::pair<const char*, const char*> kCases[] = {
      {"clGetPlatformIDs:-1001",
       "1001 clGetPlatformIDs: OpenCL error -1001 (CL_PLATFORM_NOT_FOUND_KHR)"},
      {"clGetDeviceIDs:-1", "1 there is no device 0: OpenCL has 0 devices"},
      {"clCreateContext:-2",
       "2 clCreateContext of device 0: OpenCL error -2 "
       "(CL_DEVICE_NOT_AVAILABLE)"},
      {"clCreateCommandQueue:-6",
       "6 clCreateCommandQueue of device 0: OpenCL error -6 "
       "(CL_OUT_OF_HOST_MEMORY)"},
      {"clGetDeviceInfo:-33",
       "33 clGetDeviceInfo: OpenCL error -33 (CL_INVALID_DEVICE)"},
      {"clCreateProgramWithSource:-34",
       "34 clCreateProgramWithSource: OpenCL error -34 (CL_INVALID_CONTEXT)"},
      {"clBuildProgram:-3",
       "3 clBuildProgram: OpenCL error -3 (CL_COMPILER_NOT_AVAILABLE)"},
      {"clGetKernelWorkGroupInfo:-48",
       "48 clGetKernelWorkGroupInfo of add: OpenCL error -48 "
       "(CL_INVALID_KERNEL)"},
      {"clCreateBuffer:-61",
       "61 clCreateBuffer of parameter 0: OpenCL error -61 "
       "(CL_INVALID_BUFFER_SIZE)"},
      {"clEnqueueWriteBuffer:-4",
       "4 clEnqueueWriteBuffer of parameter 0: OpenCL error -4 "
       "(CL_MEM_OBJECT_ALLOCATION_FAILURE)"},
      {"clEnqueueNDRangeKernel:-54",
       "54 clEnqueueNDRangeKernel of add: OpenCL error -54 "
       "(CL_INVALID_WORK_GROUP_SIZE)"},
      {"clFinish:-5",
       "5 clFinish of add: OpenCL error -5 (CL_OUT_OF_RESOURCES)"},
      {"clEnqueueReadBuffer:-63",
       "63 clEnqueueReadBuffer of parameter 0: OpenCL error -63 "
       "(CL_INVALID_GLOBAL_WORK_SIZE)"},
      {"clFinish:-12345",
       "12345 clFinish of add: OpenCL error -12345 (unknown)"}};
  for (const auto& [fail, error] : kCases) {
    setenv("OPENCL_FAIL_CALL", fail, 1);
    EXPECT_THAT(CallG(), StartsWith(error));
    unsetenv("OPENCL_FAIL_CALL");
    EXPECT_EQ(Live(), 0) << fail;
  }
}

// Drivers need not report it in clFinish.
TEST_F(OpenClFaultTest, KernelThatFailsIsAnError) {
  setenv("OPENCL_FAIL_KERNELS", "-9999", 1);
  EXPECT_EQ(CallG(), "9999 the run of add: OpenCL error -9999 (unknown)");
  EXPECT_EQ(Live(), 0);
}

TEST_F(OpenClFaultTest, WorkspaceThatDoesNotFitIsAnErrorOfItsCall) {
  const auto artifact = Load({FourKernels()});
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  OwnQueue queue(pocl_);
  void* in = queue.Buffer(Iota(0));
  void* out = queue.Buffer(Iota(0));
  setenv("OPENCL_FAIL_CALL", "clCreateBuffer:-4", 1);
  EXPECT_EQ(artifact->Call("f_on", queue.get(), in, out, in), 4);
  EXPECT_EQ(ErrorOf(*artifact, "f"),
            "clCreateBuffer of workspace: OpenCL error -4 "
            "(CL_MEM_OBJECT_ALLOCATION_FAILURE)");
  unsetenv("OPENCL_FAIL_CALL");
  EXPECT_EQ(artifact->Call("f_on", queue.get(), in, out, in), 0);
  EXPECT_EQ(queue.Read(out), Iota(-1));
}

// A process may exit while artifacts are loaded.
TEST_F(OpenClFaultTest, ProcessExitsWithLoadedArtifacts) {
  const std::string command =
      absl::StrCat("/proc/", getpid(),
                   "/exe --gtest_filter=LoadedArtifact.* "
                   "--gtest_also_run_disabled_tests >&2");
  EXPECT_EQ(std::system(command.c_str()), 0);
}

// The process of the test above. One artifact stays loaded, the other is
// unloaded when static objects are destroyed.
TEST(LoadedArtifact, DISABLED_AtExit) {
  ASSERT_TRUE(GetPocl().found());
  static std::unique_ptr<Kernel> unloaded_late;
  for (const bool late : {false, true}) {
    auto artifact = Load({FourKernels()});
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    std::vector<float> in = Iota(0), out(kCount), sum(kCount);
    EXPECT_EQ(artifact->Call("f", in.data(), out.data(), sum.data()), 0);
    EXPECT_EQ(out, Iota(-1));
    auto kept = std::make_unique<Kernel>(*std::move(artifact));
    if (late) {
      unloaded_late = std::move(kept);
    } else {
      kept.release();
    }
  }
}

}  // namespace
}  // namespace tilefarm::codegen
