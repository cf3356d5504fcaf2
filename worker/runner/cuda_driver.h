// CUDA's driver API, loaded at run time: tune-runner is built and starts
// without it.
//
// Knows the C and C++ standard libraries only, like all of tune-runner. The
// types below have the layout of cuda.h; the `_v2` names are the ones that
// cuda.h maps these functions to.
#ifndef TILEFARM_WORKER_RUNNER_CUDA_DRIVER_H_
#define TILEFARM_WORKER_RUNNER_CUDA_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "worker/runner/device_driver.h"

namespace tilefarm::worker {

using CudaResult = int;  // CUresult; 0 is success
using CudaAddress = unsigned long long;
using CudaContext = struct CudaContextTag*;
using CudaStream = struct CudaStreamTag*;
using CudaEvent = struct CudaEventTag*;

// CUdevice_attribute, as far as we ask for them.
enum class CudaAttribute : int {
  kClockKhz = 13,
  kMultiprocessors = 16,
  kMemoryClockKhz = 36,
  kL2Bytes = 38,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kMultiprocessorShared = 81,  // bytes of shared memory
};

// The functions that we call, by the names of cuda.h. All are there after a
// successful Load. A context belongs to the thread that made it current.
class CudaDriver {
 public:
  // The file named by TILEFARM_CUDA_DRIVER, otherwise libcuda.so.1. The error
  // names the file and the reason; empty: none. Initializes the driver.
  std::string Load();
  // "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was
  // encountered"
  std::string Text(CudaResult result) const;

  CudaResult (*Init)(unsigned) = nullptr;
  CudaResult (*DriverGetVersion)(int*) = nullptr;
  CudaResult (*DeviceGetCount)(int*) = nullptr;
  CudaResult (*DeviceGet)(int*, int) = nullptr;
  CudaResult (*DeviceGetName)(char*, int, int) = nullptr;
  CudaResult (*DeviceGetAttribute)(int*, int, int) = nullptr;
  CudaResult (*DeviceTotalMem)(size_t*, int) = nullptr;
  CudaResult (*DeviceGetPciBusId)(char*, int, int) = nullptr;
  CudaResult (*PrimaryCtxSetFlags)(int, unsigned) = nullptr;
  CudaResult (*PrimaryCtxRetain)(CudaContext*, int) = nullptr;
  CudaResult (*CtxSetCurrent)(CudaContext) = nullptr;
  CudaResult (*CtxSynchronize)() = nullptr;
  CudaResult (*MemAlloc)(CudaAddress*, size_t) = nullptr;
  CudaResult (*MemFree)(CudaAddress) = nullptr;
  CudaResult (*MemGetInfo)(size_t*, size_t*) = nullptr;
  CudaResult (*MemcpyHtoD)(CudaAddress, const void*, size_t) = nullptr;
  CudaResult (*MemcpyDtoH)(void*, CudaAddress, size_t) = nullptr;
  CudaResult (*MemcpyDtoDAsync)(CudaAddress, CudaAddress, size_t,
                                CudaStream) = nullptr;
  CudaResult (*MemsetD8Async)(CudaAddress, unsigned char, size_t,
                              CudaStream) = nullptr;
  CudaResult (*MemsetD32Async)(CudaAddress, unsigned, size_t,
                               CudaStream) = nullptr;
  CudaResult (*StreamCreate)(CudaStream*, unsigned) = nullptr;
  CudaResult (*StreamSynchronize)(CudaStream) = nullptr;
  CudaResult (*EventCreate)(CudaEvent*, unsigned) = nullptr;
  CudaResult (*EventRecord)(CudaEvent, CudaStream) = nullptr;
  // Only for a trial: artifacts load and launch their kernels themselves.
  CudaResult (*ModuleLoadData)(void**, const void*) = nullptr;
  CudaResult (*ModuleGetFunction)(void**, void*, const char*) = nullptr;
  CudaResult (*ModuleUnload)(void*) = nullptr;
  // Function, grid, block, bytes of shared memory, stream, parameters, more.
  CudaResult (*LaunchKernel)(void*, unsigned, unsigned, unsigned, unsigned,
                             unsigned, unsigned, unsigned, CudaStream, void**,
                             void**) = nullptr;
  // In milliseconds.
  CudaResult (*EventElapsedTime)(float*, CudaEvent, CudaEvent) = nullptr;

 private:
  CudaResult (*GetErrorName)(CudaResult, const char**) = nullptr;
  CudaResult (*GetErrorString)(CudaResult, const char**) = nullptr;
};

// Whether no call can succeed after this error in the same process (cuda.h: "to
// continue using CUDA, the process must be terminated and relaunched"), or the
// context may not be usable.
bool EndsCudaContext(CudaResult result);

// Fills `properties` of the device with this number. The brand has the clocks
// at their highest, and the driver is that of the kernel, or of CUDA. The
// error; empty: none.
std::string QueryCudaDevice(const CudaDriver& driver, int device,
                            DeviceProperties* properties);

// The architecture of the target: PTX for sm_90a has all instructions of
// Hopper; other devices have no such variant that we compile for.
std::string CudaArchitecture(int major, int minor);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_CUDA_DRIVER_H_
