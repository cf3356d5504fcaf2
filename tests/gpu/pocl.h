// PoCL, OpenCL on the processor, in a test's process.
#ifndef TILEFARM_TESTS_GPU_POCL_H_
#define TILEFARM_TESTS_GPU_POCL_H_

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "gtest/gtest.h"

namespace tilefarm {

// The loader's library with PoCL as the only driver. It has two devices: 0 runs
// commands in the thread that enqueues them, and so in the same order each
// time; 1 has threads of its own. Use 1 where several threads call OpenCL:
// device 0 of PoCL 3.1 deadlocks if a command is enqueued while another thread
// runs the command before it (pocl_basic_notify runs an event that is locked).
//
// One object in a process, since drivers read their environment once. The
// destructor removes PoCL's cache of programs.
class Pocl {
 public:
  Pocl() {
    folder_ = testing::TempDir() + "/pocl-XXXXXX";
    if (mkdtemp(folder_.data()) == nullptr) return;
    setenv("POCL_CACHE_DIR", folder_.c_str(), 1);
    setenv("POCL_DEVICES", "basic pthread", 1);
    setenv("OCL_ICD_VENDORS", kIcd, 1);
    if (access(kIcd, R_OK) == 0) {
      library_ = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    }
  }
  ~Pocl() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // False if the packages pocl-opencl-icd and ocl-icd-libopencl1 are missing.
  bool found() const { return library_ != nullptr; }

  // A function of OpenCL, all of whose handles are void* here.
  template <typename Signature>
  Signature* Function(const char* name) const {
    return reinterpret_cast<Signature*>(dlsym(library_, name));
  }

  void* Device(unsigned number) const {
    void* platform = nullptr;
    std::vector<void*> devices(2);
    EXPECT_EQ((Function<int(unsigned, void**, unsigned*)>("clGetPlatformIDs")(
                  1, &platform, nullptr)),
              0);
    EXPECT_EQ((Function<int(void*, uint64_t, unsigned, void**, unsigned*)>(
                  "clGetDeviceIDs")(platform, 0xffffffff, 2, devices.data(),
                                    nullptr)),
              0);
    return devices[number];
  }
  void* MakeContext(void* device) const {
    int error = 0;
    void* context =
        Function<void*(const intptr_t*, unsigned, void**, void*, void*, int*)>(
            "clCreateContext")(nullptr, 1, &device, nullptr, nullptr, &error);
    EXPECT_EQ(error, 0);
    return context;
  }
  void* MakeQueue(void* context, void* device, uint64_t properties = 0) const {
    int error = 0;
    void* queue = Function<void*(void*, void*, uint64_t, int*)>(
        "clCreateCommandQueue")(context, device, properties, &error);
    EXPECT_EQ(error, 0);
    return queue;
  }
  // A cl_mem with these values.
  void* MakeBuffer(void* context, const std::vector<float>& values) const {
    int error = 0;
    std::vector<float> copy = values;
    void* buffer = Function<void*(void*, uint64_t, size_t, void*, int*)>(
        "clCreateBuffer")(context, /*READ_WRITE | COPY_HOST_PTR=*/1 | 1 << 5,
                          copy.size() * sizeof(float), copy.data(), &error);
    EXPECT_EQ(error, 0);
    return buffer;
  }
  // The first values, when all that is enqueued has run.
  std::vector<float> Read(void* queue, void* buffer, size_t count) const {
    std::vector<float> values(count);
    EXPECT_EQ((Function<int(void*, void*, unsigned, size_t, size_t, void*,
                            unsigned, void*, void*)>("clEnqueueReadBuffer")(
                  queue, buffer, 1, 0, count * sizeof(float), values.data(), 0,
                  nullptr, nullptr)),
              0);
    return values;
  }
  // "clReleaseContext", ...
  void Release(const char* function, void* object) const {
    EXPECT_EQ(Function<int(void*)>(function)(object), 0);
  }

 private:
  static constexpr char kIcd[] = "/etc/OpenCL/vendors/pocl.icd";

  std::string folder_;
  void* library_ = nullptr;
};

// A queue in a context of its own.
class OwnQueue {
 public:
  explicit OwnQueue(const Pocl& pocl, unsigned device = 0,
                    uint64_t properties = 0)
      : pocl_(pocl),
        device_(pocl.Device(device)),
        context_(pocl.MakeContext(device_)),
        queue_(pocl.MakeQueue(context_, device_, properties)) {}
  ~OwnQueue() {
    for (void* buffer : buffers_) pocl_.Release("clReleaseMemObject", buffer);
    pocl_.Release("clReleaseCommandQueue", queue_);
    pocl_.Release("clReleaseContext", context_);
  }
  OwnQueue(const OwnQueue&) = delete;

  void* device() const { return device_; }
  void* context() const { return context_; }
  void* get() const { return queue_; }
  void* Buffer(const std::vector<float>& values) {
    buffers_.push_back(pocl_.MakeBuffer(context_, values));
    return buffers_.back();
  }
  std::vector<float> Read(void* buffer, size_t count = 64) const {
    return pocl_.Read(queue_, buffer, count);
  }

 private:
  const Pocl& pocl_;
  void* device_;
  void* context_;
  void* queue_;
  std::vector<void*> buffers_;
};

}  // namespace tilefarm

#endif  // TILEFARM_TESTS_GPU_POCL_H_
