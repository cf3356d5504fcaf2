// A driver library of CUDA without a GPU, for tests: fake_cuda.cc, built as
// libcuda.so.1 in a folder of its own. TILEFARM_CUDA_DRIVER (or
// LD_LIBRARY_PATH) makes an artifact use it.
//
// Device memory is the host's, between canaries, and registered, so that the
// driver tells it from other memory. Work that is enqueued runs when somebody
// waits, in the order in which it was enqueued. Kernels are executed from their
// PTX (ptx/ptx_machine.h); events have the time that this takes. What a kernel
// does wrong is an error of the driver, and one line on standard error.
//
// Kernels that would start before the one before them has ended, and do not
// wait for it (cuLaunchKernelEx), are not launched.
//
// Kernels with clusters are launched as they say (".reqnctapercluster"), or as
// an attribute of cuLaunchKernelEx does: along x, of at most 8 blocks.
//
// Kernels of an image with ".entry NAME() {}" are functions that the test
// registers by name; others do nothing. Text with "syntax error" does not load.
//
// Environment, read at each call, so that it also reaches other processes:
//   FAKE_CUDA_DEVICES=n       0: there is no device
//   FAKE_CUDA_MEMORY=n        bytes of each device (1 GiB)
//   FAKE_CUDA_CAPABILITY=80   of the devices (90)
//   FAKE_CUDA_FAIL_LAUNCH=n   the n-th kernel that runs fails, and every later
//   FAKE_CUDA_ERROR=700         call returns this error
//   FAKE_CUDA_FAIL_CALL=cuModuleUnload:999  a function returns this error;
//                             once, with ":once"
//   FAKE_CUDA_HANG=cuLaunchKernel           a function never returns
//   FAKE_CUDA_LOG=FILE        calls are appended to this file
//   FAKE_CUDA_COUNTERS=FILE   what kernels do is appended, one JSON object each
//                             (ptx/ptx_counters.h; gpu_counters.py reads it)
//   FAKE_CUDA_COUNTED_BLOCKS=n  then only n blocks of each kernel are executed
//
// libcuda.so.1 in the folder "old" lacks what drivers before 11.2 lack; the one
// in "broken" lacks cuLaunchKernel.
#ifndef TILEFARM_TESTS_GPU_FAKE_CUDA_H_
#define TILEFARM_TESTS_GPU_FAKE_CUDA_H_

#include <dlfcn.h>

#include <cstdint>
#include <sstream>
#include <string>

namespace tilefarm {

// One launch of a kernel; `arguments` are its pointers.
using FakeKernel = void (*)(void** arguments, const unsigned* grid,
                            const unsigned* block, unsigned shared_bytes);

// The library, opened in this process too. Its functions are those of the
// Driver API and the following, which are found by name.
class FakeCuda {
 public:
  // `path` as in TILEFARM_CUDA_DRIVER. The library stays in the process.
  explicit FakeCuda(const std::string& path)
      : library_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}

  bool found() const { return library_ != nullptr; }
  // Forgets everything: contexts, memory, modules, errors, kernels, the log.
  void Reset() { Function<void()>("fake_cuda_reset")(); }
  void Register(const char* name, int arguments, FakeKernel kernel) {
    Function<void(const char*, int, FakeKernel)>("fake_cuda_register")(
        name, arguments, kernel);
  }
  // The calls since Reset or ClearLog, one a line, with their arguments.
  std::string Log() { return Function<const char*()>("fake_cuda_log")(); }
  void ClearLog() { Function<void()>("fake_cuda_clear_log")(); }
  // How many of them are of this function, or begin with this line.
  int Count(const std::string& call) {
    int count = 0;
    std::istringstream log(Log());
    for (std::string line; std::getline(log, line);) {
      count += line == call || line.starts_with(call + " ");
    }
    return count;
  }
  // What is not released: "2 allocations, 1 modules, 1 pools, 1 retained
  // contexts, 0 overruns"; the last is the number of canaries that were hurt.
  std::string Live() { return Function<const char*()>("fake_cuda_live")(); }

  // A function of the Driver API, all of whose handles are void* here:
  // Call<int(void*)>("cuStreamSynchronize", s).
  template <typename Signature, typename... Arguments>
  int Call(const char* name, Arguments... arguments) {
    return Function<Signature>(name)(arguments...);
  }

 private:
  template <typename Signature>
  Signature* Function(const char* name) {
    return reinterpret_cast<Signature*>(dlsym(library_, name));
  }
  void* library_;
};

}  // namespace tilefarm

#endif  // TILEFARM_TESTS_GPU_FAKE_CUDA_H_
