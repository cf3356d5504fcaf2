// OpenCL 1.2, loaded at run time: tune-runner is built and starts without it.
//
// Knows the C and C++ standard libraries only, like all of tune-runner. The
// types and numbers below are those of cl.h. All handles are pointers.
#ifndef TILEFARM_WORKER_RUNNER_OPENCL_DRIVER_H_
#define TILEFARM_WORKER_RUNNER_OPENCL_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/runner/device_driver.h"

namespace tilefarm::worker {

using OpenClResult = int32_t;  // 0 is success, errors are negative
using OpenClPlatform = struct OpenClPlatformTag*;
using OpenClDeviceId = struct OpenClDeviceTag*;
using OpenClContext = struct OpenClContextTag*;
using OpenClQueue = struct OpenClQueueTag*;
using OpenClMemory = struct OpenClMemoryTag*;
using OpenClProgram = struct OpenClProgramTag*;
using OpenClKernel = struct OpenClKernelTag*;
using OpenClEvent = struct OpenClEventTag*;

// The part of a buffer that a sub-buffer is.
struct OpenClRegion {
  size_t at = 0;
  size_t bytes = 0;
};

// Numbers of cl.h.
inline constexpr uint64_t kOpenClAllDevices = 0xffffffff;
inline constexpr uint64_t kOpenClProfiling = 2;
inline constexpr uint64_t kOpenClReadWrite = 1;
inline constexpr uint32_t kOpenClBlocking = 1;
inline constexpr uint32_t kOpenClRegionType = 0x1220;
inline constexpr intptr_t kOpenClContextPlatform = 0x1084;
inline constexpr uint32_t kOpenClBuildLog = 0x1183;
inline constexpr uint32_t kOpenClEndTime = 0x1283;  // in nanoseconds

// The functions that we call, by the names of cl.h. All are there after a
// successful Load. Functions that make an object store the error at the end.
class OpenClDriver {
 public:
  // The file named by TILEFARM_OPENCL_DRIVER, otherwise libOpenCL.so.1. The
  // error names the file and the reason; empty: none.
  std::string Load();

  OpenClResult (*GetPlatformIds)(uint32_t, OpenClPlatform*,
                                 uint32_t*) = nullptr;
  OpenClResult (*GetPlatformInfo)(OpenClPlatform, uint32_t, size_t, void*,
                                  size_t*) = nullptr;
  OpenClResult (*GetDeviceIds)(OpenClPlatform, uint64_t, uint32_t,
                               OpenClDeviceId*, uint32_t*) = nullptr;
  OpenClResult (*GetDeviceInfo)(OpenClDeviceId, uint32_t, size_t, void*,
                                size_t*) = nullptr;
  OpenClContext (*CreateContext)(const intptr_t*, uint32_t,
                                 const OpenClDeviceId*, void*, void*,
                                 OpenClResult*) = nullptr;
  OpenClQueue (*CreateCommandQueue)(OpenClContext, OpenClDeviceId, uint64_t,
                                    OpenClResult*) = nullptr;
  OpenClMemory (*CreateBuffer)(OpenClContext, uint64_t, size_t, void*,
                               OpenClResult*) = nullptr;
  OpenClMemory (*CreateSubBuffer)(OpenClMemory, uint64_t, uint32_t, const void*,
                                  OpenClResult*) = nullptr;
  OpenClResult (*ReleaseMemObject)(OpenClMemory) = nullptr;
  // Queue, buffer, blocks, offset, bytes, host's memory, events.
  OpenClResult (*EnqueueReadBuffer)(OpenClQueue, OpenClMemory, uint32_t, size_t,
                                    size_t, void*, uint32_t, const OpenClEvent*,
                                    OpenClEvent*) = nullptr;
  OpenClResult (*EnqueueWriteBuffer)(OpenClQueue, OpenClMemory, uint32_t,
                                     size_t, size_t, const void*, uint32_t,
                                     const OpenClEvent*,
                                     OpenClEvent*) = nullptr;
  // Queue, from, to, their offsets, bytes, events.
  OpenClResult (*EnqueueCopyBuffer)(OpenClQueue, OpenClMemory, OpenClMemory,
                                    size_t, size_t, size_t, uint32_t,
                                    const OpenClEvent*, OpenClEvent*) = nullptr;
  // Queue, buffer, pattern, its bytes, offset, bytes, events.
  OpenClResult (*EnqueueFillBuffer)(OpenClQueue, OpenClMemory, const void*,
                                    size_t, size_t, size_t, uint32_t,
                                    const OpenClEvent*, OpenClEvent*) = nullptr;
  OpenClResult (*EnqueueMarkerWithWaitList)(OpenClQueue, uint32_t,
                                            const OpenClEvent*,
                                            OpenClEvent*) = nullptr;
  OpenClResult (*Finish)(OpenClQueue) = nullptr;
  OpenClResult (*GetEventProfilingInfo)(OpenClEvent, uint32_t, size_t, void*,
                                        size_t*) = nullptr;
  OpenClResult (*ReleaseEvent)(OpenClEvent) = nullptr;
  // Only for a trial: artifacts build and launch their kernels themselves.
  OpenClProgram (*CreateProgramWithSource)(OpenClContext, uint32_t,
                                           const char**, const size_t*,
                                           OpenClResult*) = nullptr;
  OpenClResult (*BuildProgram)(OpenClProgram, uint32_t, const OpenClDeviceId*,
                               const char*, void*, void*) = nullptr;
  OpenClResult (*GetProgramBuildInfo)(OpenClProgram, OpenClDeviceId, uint32_t,
                                      size_t, void*, size_t*) = nullptr;
  OpenClResult (*ReleaseProgram)(OpenClProgram) = nullptr;
  OpenClKernel (*CreateKernel)(OpenClProgram, const char*,
                               OpenClResult*) = nullptr;
  OpenClResult (*SetKernelArg)(OpenClKernel, uint32_t, size_t,
                               const void*) = nullptr;
  OpenClResult (*EnqueueNdRangeKernel)(OpenClQueue, OpenClKernel, uint32_t,
                                       const size_t*, const size_t*,
                                       const size_t*, uint32_t,
                                       const OpenClEvent*,
                                       OpenClEvent*) = nullptr;
  OpenClResult (*ReleaseKernel)(OpenClKernel) = nullptr;
};

// "CL_OUT_OF_RESOURCES (-5)"
std::string OpenClErrorText(OpenClResult result);

// The family of a device, which its target has: "mali". From the names of its
// platform, vendor and device.
std::string OpenClFamily(const std::string& platform, const std::string& vendor,
                         const std::string& name);

struct OpenClDeviceHandle {
  OpenClPlatform platform = nullptr;
  OpenClDeviceId device = nullptr;
};
// Finds the device with this number, counted over all devices of all platforms
// in the loader's order, and fills its properties. The error; empty: none.
std::string QueryOpenClDevice(const OpenClDriver& driver, int number,
                              OpenClDeviceHandle* handle,
                              DeviceProperties* properties);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_OPENCL_DRIVER_H_
