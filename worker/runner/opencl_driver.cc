#include "worker/runner/opencl_driver.h"

#include <dlfcn.h>
#include <stdio.h>

#include <algorithm>
#include <string_view>

#include "worker/runner/driver_library.h"

namespace tilefarm::worker {
namespace {

constexpr char kOpenClLibrary[] = "libOpenCL.so.1";
constexpr OpenClResult kDeviceNotFound = -1, kPlatformNotFound = -1001;

// Numbers of cl.h.
constexpr uint32_t kPlatformName = 0x0902;
enum class OpenClProperty : uint32_t {
  kComputeUnits = 0x1002,   // uint32_t
  kClockMhz = 0x100c,       // uint32_t
  kAlignmentBits = 0x1019,  // uint32_t
  kCacheBytes = 0x101e,     // uint64_t
  kMemoryBytes = 0x101f,    // uint64_t
  kLocalBytes = 0x1023,     // uint64_t
  kName = 0x102b,
  kVendor = 0x102c,
  kDriverVersion = 0x102d,
  kPciBus = 0x410f,  // cl_khr_pci_bus_info: domain, bus, device, function
};

// Those that our calls may return.
struct NamedError {
  OpenClResult error;
  const char* name;
};
constexpr NamedError kNamedErrors[] = {
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-30, "CL_INVALID_VALUE"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-58, "CL_INVALID_EVENT"},
    {-59, "CL_INVALID_OPERATION"},
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

std::string OpenClFailure(const char* call, OpenClResult result) {
  return std::string(call) + ": " + OpenClErrorText(result);
}

// In any case of letters.
bool ContainsWord(std::string_view text, std::string_view word) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(),
                     [&](char a, char b) { return lower(a) == lower(b); }) !=
         text.end();
}

// In printable characters, without spaces around it.
std::string DeviceText(const OpenClDriver& driver, OpenClDeviceId device,
                       OpenClProperty property) {
  char bytes[256] = {};
  driver.GetDeviceInfo(device, static_cast<uint32_t>(property),
                       sizeof bytes - 1, bytes, nullptr);
  std::string text = bytes;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, ' ');
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

// 0 if the device does not tell.
template <typename T>
uint64_t DeviceNumber(const OpenClDriver& driver, OpenClDeviceId device,
                      OpenClProperty property) {
  T value = 0;
  driver.GetDeviceInfo(device, static_cast<uint32_t>(property), sizeof value,
                       &value, nullptr);
  return value;
}

// As CUDA's driver writes it, so that workers of both lock the same device.
std::string BusId(const OpenClDriver& driver, OpenClDeviceId device,
                  int number) {
  uint32_t place[4] = {};
  char text[64];
  if (driver.GetDeviceInfo(device,
                           static_cast<uint32_t>(OpenClProperty::kPciBus),
                           sizeof place, place, nullptr) == 0) {
    snprintf(text, sizeof text, "%04X:%02X:%02X.%X", place[0], place[1],
             place[2], place[3]);
  } else {
    snprintf(text, sizeof text, "opencl:%d", number);
  }
  return text;
}

std::string FindDevice(const OpenClDriver& driver, int number,
                       OpenClDeviceHandle* handle) {
  uint32_t count = 0;
  OpenClResult result = driver.GetPlatformIds(0, nullptr, &count);
  if (result == kPlatformNotFound || (result == 0 && count == 0)) {
    return "the loader knows no OpenCL driver";
  }
  if (result != 0) return OpenClFailure("clGetPlatformIDs", result);
  std::vector<OpenClPlatform> platforms(count);
  result = driver.GetPlatformIds(count, platforms.data(), nullptr);
  if (result != 0) return OpenClFailure("clGetPlatformIDs", result);
  uint32_t before = 0;
  for (const OpenClPlatform platform : platforms) {
    result =
        driver.GetDeviceIds(platform, kOpenClAllDevices, 0, nullptr, &count);
    if (result == kDeviceNotFound) continue;
    if (result != 0) return OpenClFailure("clGetDeviceIDs", result);
    std::vector<OpenClDeviceId> devices(count);
    result = driver.GetDeviceIds(platform, kOpenClAllDevices, count,
                                 devices.data(), nullptr);
    if (result != 0) return OpenClFailure("clGetDeviceIDs", result);
    const auto wanted = static_cast<uint32_t>(number) - before;
    if (wanted < count) {
      *handle = {platform, devices[wanted]};
      return "";
    }
    before += count;
  }
  return before == 0
             ? "the OpenCL drivers have no devices"
             : "OpenCL's devices are 0 to " + std::to_string(before - 1);
}

}  // namespace

std::string OpenClDriver::Load() {
  DriverLibrary library("TILEFARM_OPENCL_DRIVER", kOpenClLibrary, RTLD_LOCAL);
  library.Take(GetPlatformIds, "clGetPlatformIDs");
  library.Take(GetPlatformInfo, "clGetPlatformInfo");
  library.Take(GetDeviceIds, "clGetDeviceIDs");
  library.Take(GetDeviceInfo, "clGetDeviceInfo");
  library.Take(CreateContext, "clCreateContext");
  library.Take(CreateCommandQueue, "clCreateCommandQueue");
  library.Take(CreateBuffer, "clCreateBuffer");
  library.Take(CreateSubBuffer, "clCreateSubBuffer");
  library.Take(ReleaseMemObject, "clReleaseMemObject");
  library.Take(EnqueueReadBuffer, "clEnqueueReadBuffer");
  library.Take(EnqueueWriteBuffer, "clEnqueueWriteBuffer");
  library.Take(EnqueueCopyBuffer, "clEnqueueCopyBuffer");
  library.Take(EnqueueFillBuffer, "clEnqueueFillBuffer");
  library.Take(EnqueueMarkerWithWaitList, "clEnqueueMarkerWithWaitList");
  library.Take(Finish, "clFinish");
  library.Take(GetEventProfilingInfo, "clGetEventProfilingInfo");
  library.Take(ReleaseEvent, "clReleaseEvent");
  library.Take(CreateProgramWithSource, "clCreateProgramWithSource");
  library.Take(BuildProgram, "clBuildProgram");
  library.Take(GetProgramBuildInfo, "clGetProgramBuildInfo");
  library.Take(ReleaseProgram, "clReleaseProgram");
  library.Take(CreateKernel, "clCreateKernel");
  library.Take(SetKernelArg, "clSetKernelArg");
  library.Take(EnqueueNdRangeKernel, "clEnqueueNDRangeKernel");
  library.Take(ReleaseKernel, "clReleaseKernel");
  return library.error();
}

std::string OpenClErrorText(OpenClResult result) {
  for (const NamedError& named : kNamedErrors) {
    if (named.error == result) {
      return std::string(named.name) + " (" + std::to_string(result) + ")";
    }
  }
  return "OpenCL error " + std::to_string(result);
}

std::string OpenClFamily(const std::string& platform, const std::string& vendor,
                         const std::string& name) {
  struct Family {
    const char* name;
    const std::string& text;
    const char* word;
  };
  // The first row that fits. Drivers of the processor come before its vendor.
  const Family families[] = {
      {"pocl", platform, "Portable Computing Language"},
      {"oclgrind", platform, "Oclgrind"},
      {"mali", name, "Mali"},
      {"mali", vendor, "ARM"},
      {"adreno", name, "Adreno"},
      {"adreno", vendor, "QUALCOMM"},
      {"intel", name, "Intel"},
      {"intel", vendor, "Intel"},
      {"nvidia", name, "NVIDIA"},
      {"nvidia", vendor, "NVIDIA"},
      {"amd", name, "AMD"},
      {"amd", vendor, "AMD"},
      {"amd", vendor, "Advanced Micro"},
  };
  for (const Family& family : families) {
    if (ContainsWord(family.text, family.word)) return family.name;
  }
  return "generic";
}

std::string QueryOpenClDevice(const OpenClDriver& driver, int number,
                              OpenClDeviceHandle* handle,
                              DeviceProperties* properties) {
  const std::string error = FindDevice(driver, number, handle);
  if (!error.empty()) return error;
  const OpenClDeviceId device = handle->device;
  char platform[256] = {};
  driver.GetPlatformInfo(handle->platform, kPlatformName, sizeof platform - 1,
                         platform, nullptr);
  const auto text = [&](OpenClProperty property) {
    return DeviceText(driver, device, property);
  };
  const auto number32 = [&](OpenClProperty property) {
    return DeviceNumber<uint32_t>(driver, device, property);
  };
  const auto number64 = [&](OpenClProperty property) {
    return DeviceNumber<uint64_t>(driver, device, property);
  };
  const std::string name = text(OpenClProperty::kName);
  properties->target =
      "opencl:" + OpenClFamily(platform, text(OpenClProperty::kVendor), name);
  properties->bus_id = BusId(driver, device, number);
  properties->multiprocessors = number32(OpenClProperty::kComputeUnits);
  properties->multiprocessor_shared_bytes =
      number64(OpenClProperty::kLocalBytes);
  properties->l2_bytes = number64(OpenClProperty::kCacheBytes);
  properties->memory_bytes = number64(OpenClProperty::kMemoryBytes);
  properties->alignment =
      std::max<uint64_t>(number32(OpenClProperty::kAlignmentBits) / 8, 1);
  properties->brand =
      name + ", driver " + text(OpenClProperty::kDriverVersion) + ", " +
      std::to_string(properties->multiprocessors) + " compute units, " +
      std::to_string(number32(OpenClProperty::kClockMhz)) + " MHz";
  return "";
}

}  // namespace tilefarm::worker
