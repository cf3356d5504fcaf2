#include "worker/runner/cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>

#include "worker/runner/driver_library.h"
#include "worker/runner/nvml.h"

namespace tilefarm::worker {
namespace {

constexpr char kCudaLibrary[] = "libcuda.so.1";
// Of what cuMemAlloc returns.
constexpr uint64_t kCudaAlignment = 256;

std::string Failure(const CudaDriver& driver, const char* call,
                    CudaResult result) {
  return std::string(call) + ": " + driver.Text(result);
}

}  // namespace

std::string CudaDriver::Load() {
  DriverLibrary library("TILEFARM_CUDA_DRIVER", kCudaLibrary, RTLD_GLOBAL);
  library.Take(Init, "cuInit");
  library.Take(DriverGetVersion, "cuDriverGetVersion");
  library.Take(DeviceGetCount, "cuDeviceGetCount");
  library.Take(DeviceGet, "cuDeviceGet");
  library.Take(DeviceGetName, "cuDeviceGetName");
  library.Take(DeviceGetAttribute, "cuDeviceGetAttribute");
  library.Take(DeviceTotalMem, "cuDeviceTotalMem_v2");
  library.Take(DeviceGetPciBusId, "cuDeviceGetPCIBusId");
  library.Take(PrimaryCtxSetFlags, "cuDevicePrimaryCtxSetFlags_v2");
  library.Take(PrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  library.Take(CtxSetCurrent, "cuCtxSetCurrent");
  library.Take(CtxSynchronize, "cuCtxSynchronize");
  library.Take(MemAlloc, "cuMemAlloc_v2");
  library.Take(MemFree, "cuMemFree_v2");
  library.Take(MemGetInfo, "cuMemGetInfo_v2");
  library.Take(MemcpyHtoD, "cuMemcpyHtoD_v2");
  library.Take(MemcpyDtoH, "cuMemcpyDtoH_v2");
  library.Take(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2");
  library.Take(MemsetD8Async, "cuMemsetD8Async");
  library.Take(MemsetD32Async, "cuMemsetD32Async");
  library.Take(StreamCreate, "cuStreamCreate");
  library.Take(StreamSynchronize, "cuStreamSynchronize");
  library.Take(EventCreate, "cuEventCreate");
  library.Take(EventRecord, "cuEventRecord");
  library.Take(EventElapsedTime, "cuEventElapsedTime");
  library.Take(ModuleLoadData, "cuModuleLoadData");
  library.Take(ModuleGetFunction, "cuModuleGetFunction");
  library.Take(ModuleUnload, "cuModuleUnload");
  library.Take(LaunchKernel, "cuLaunchKernel");
  library.Take(GetErrorName, "cuGetErrorName");
  library.Take(GetErrorString, "cuGetErrorString");
  if (!library.error().empty()) return library.error();
  const CudaResult result = Init(0);
  return result == 0 ? "" : Failure(*this, "cuInit", result);
}

std::string CudaDriver::Text(CudaResult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (GetErrorName(result, &name) != 0 || name == nullptr) name = "error";
  if (GetErrorString(result, &text) != 0 || text == nullptr) text = "unknown";
  return std::string(name) + " (" + std::to_string(result) + "): " + text;
}

bool EndsCudaContext(CudaResult result) {
  switch (result) {
    case 4:    // the driver is shutting down
    case 46:   // the device is unavailable
    case 214:  // an uncorrectable error of the memory
    case 220:  // an uncorrectable error of NVLink
    case 226:  // a contained error of the memory
    case 700:  // illegal address
    case 702:  // a kernel ran too long
    case 709:  // the context is destroyed
    case 710:  // an assertion of the device
    case 999:  // unknown: the device may be lost
      return true;
    default:
      // Stack, instruction, alignment, address space, program counter, launch.
      return result >= 714 && result <= 721;
  }
}

std::string CudaArchitecture(int major, int minor) {
  return "sm_" + std::to_string(major) + std::to_string(minor) +
         (major == 9 && minor == 0 ? "a" : "");
}

std::string QueryCudaDevice(const CudaDriver& driver, int device,
                            DeviceProperties* properties) {
  int count = 0;
  CudaResult result = driver.DeviceGetCount(&count);
  if (result != 0) return Failure(driver, "cuDeviceGetCount", result);
  if (device < 0 || device >= count) {
    return count == 0
               ? "the driver has no devices"
               : "the driver's devices are 0 to " + std::to_string(count - 1);
  }
  int handle = 0;
  result = driver.DeviceGet(&handle, device);
  if (result != 0) return Failure(driver, "cuDeviceGet", result);
  char text[256] = {};
  result = driver.DeviceGetName(text, sizeof text, handle);
  if (result != 0) return Failure(driver, "cuDeviceGetName", result);
  const std::string name = text;
  if (driver.DeviceGetPciBusId(text, sizeof text, handle) == 0) {
    properties->bus_id = text;
  }
  size_t bytes = 0;
  result = driver.DeviceTotalMem(&bytes, handle);
  if (result != 0) return Failure(driver, "cuDeviceTotalMem", result);
  properties->memory_bytes = bytes;
  std::string error;
  const auto attribute = [&](CudaAttribute which) {
    int value = 0;
    const CudaResult failure =
        driver.DeviceGetAttribute(&value, static_cast<int>(which), handle);
    if (failure != 0 && error.empty()) {
      error = Failure(driver, "cuDeviceGetAttribute", failure);
    }
    return value;
  };
  properties->target =
      "cuda:" + CudaArchitecture(attribute(CudaAttribute::kComputeMajor),
                                 attribute(CudaAttribute::kComputeMinor));
  properties->multiprocessors =
      static_cast<uint64_t>(attribute(CudaAttribute::kMultiprocessors));
  properties->multiprocessor_shared_bytes =
      static_cast<uint64_t>(attribute(CudaAttribute::kMultiprocessorShared));
  properties->l2_bytes =
      static_cast<uint64_t>(attribute(CudaAttribute::kL2Bytes));
  properties->alignment = kCudaAlignment;
  const double clock_mhz = attribute(CudaAttribute::kClockKhz) / 1000.0;
  if (!error.empty()) return error;
  // Newer drivers may not say this any more.
  const double memory_clock_mhz =
      attribute(CudaAttribute::kMemoryClockKhz) / 1000.0;

  Nvml nvml;
  std::string version;
  double power_limit_w = 0;
  if (nvml.Open(properties->bus_id)) {
    version = nvml.DriverVersion();
    power_limit_w = nvml.PowerLimitWatts();
  } else {
    int cuda = 0;
    driver.DriverGetVersion(&cuda);
    version = "of CUDA " + std::to_string(cuda / 1000) + "." +
              std::to_string(cuda % 1000 / 10);
  }
  char clocks[128];
  snprintf(clocks, sizeof clocks, ", %.0f MHz, memory %.0f MHz", clock_mhz,
           memory_clock_mhz);
  properties->brand = name + ", driver " + version + clocks;
  if (power_limit_w > 0) {
    snprintf(clocks, sizeof clocks, ", %.0f W", power_limit_w);
    properties->brand += clocks;
  }
  return "";
}

}  // namespace tilefarm::worker
