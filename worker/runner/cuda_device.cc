#include "worker/runner/cuda_device.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <vector>

namespace tilefarm::worker {
namespace {

// CU_CTX_SCHED_SPIN: a measurement has its core for itself, and a thread that
// sleeps is woken late.
constexpr unsigned kSpin = 1;
constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
constexpr CudaResult kCudaOutOfMemory = 2;
// Then artifacts must have machine code, and nothing is wrong with confinement.
constexpr CudaResult kNoJitCompiler = 221, kNewerPtx = 222;

CudaAddress AddressOf(const DeviceMemory& memory) {
  return reinterpret_cast<uintptr_t>(memory.whole);
}

}  // namespace

std::string CudaDevice::Query(int number) {
  // The driver's own cache of compiled code is in the user's home.
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  // Numbers as nvidia-smi has them.
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  number_ = number;
  const std::string error = driver_.Load();
  return error.empty() ? QueryCudaDevice(driver_, number, &properties_) : error;
}

std::string CudaDevice::Open() {
  std::string error;
  const auto check = [&](const char* call, CudaResult result) {
    if (result != 0 && error.empty()) error = Text({call, result});
    return result == 0;
  };
  int handle = 0;
  CudaContext context = nullptr;
  flushed_bytes_ =
      std::max<uint64_t>(2 * properties_.l2_bytes, uint64_t{1} << 20);
  float milliseconds = 0;
  check("cuDeviceGet", driver_.DeviceGet(&handle, number_)) &&
      check("cuDevicePrimaryCtxSetFlags",
            driver_.PrimaryCtxSetFlags(handle, kSpin)) &&
      check("cuDevicePrimaryCtxRetain",
            driver_.PrimaryCtxRetain(&context, handle)) &&
      check("cuCtxSetCurrent", driver_.CtxSetCurrent(context)) &&
      check("cuStreamCreate", driver_.StreamCreate(&stream_, kNonBlocking)) &&
      check("cuEventCreate", driver_.EventCreate(&start_, 0)) &&
      check("cuEventCreate", driver_.EventCreate(&stop_, 0)) &&
      check("cuMemAlloc", driver_.MemAlloc(&flushed_, flushed_bytes_)) &&
      check("cuMemsetD32Async", Flush().code) &&
      check("cuEventRecord", StartTimer().code) &&
      check("cuMemsetD32Async", Flush().code) &&
      check("cuEventRecord", StopTimer().code) &&
      check("cuStreamSynchronize", Wait().code) &&
      check("cuEventElapsedTime",
            driver_.EventElapsedTime(&milliseconds, start_, stop_));
  flush_seconds_ = std::max(milliseconds * 1e-3, 1e-6);
  nvml_.Open(properties_.bus_id);
  return error;
}

std::string CudaDevice::Try() {
  const std::string ptx = ".version 8.0\n.target " +
                          properties_.target.substr(strlen("cuda:")) +
                          "\n.address_size 64\n"
                          ".visible .entry trial() { ret; }\n";
  std::string error;
  const auto check = [&](const char* call, CudaResult result) {
    if (result != 0 && error.empty()) {
      error = "trial of " + Text({call, result});
    }
    return result == 0;
  };
  void* module = nullptr;
  void* kernel = nullptr;
  CudaAddress memory = 0;
  std::vector<char> bytes(size_t{4} << 20);
  const CudaResult loaded = driver_.ModuleLoadData(&module, ptx.c_str());
  if (loaded != kNoJitCompiler && loaded != kNewerPtx) {
    check("cuModuleLoadData", loaded) &&
        check("cuModuleGetFunction",
              driver_.ModuleGetFunction(&kernel, module, "trial")) &&
        check("cuLaunchKernel",
              driver_.LaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream_,
                                   nullptr, nullptr));
  }
  error.empty() &&
      check("cuMemAlloc", driver_.MemAlloc(&memory, bytes.size())) &&
      check("cuMemcpyHtoD",
            driver_.MemcpyHtoD(memory, bytes.data(), bytes.size())) &&
      check("cuMemcpyDtoH",
            driver_.MemcpyDtoH(bytes.data(), memory, bytes.size())) &&
      check("cuCtxSynchronize", driver_.CtxSynchronize()) &&
      check("cuMemFree", driver_.MemFree(memory));
  if (module != nullptr) driver_.ModuleUnload(module);
  return error;
}

std::string CudaDevice::Text(const DeviceError& error) const {
  return std::string(error.call) + ": " + driver_.Text(error.code);
}

bool CudaDevice::EndsContext(int code) const {
  return EndsCudaContext(code) || code == kCudaOutOfMemory;
}

DeviceError CudaDevice::Allocate(uint64_t guard_bytes, uint64_t data_bytes,
                                 DeviceMemory* memory) {
  memory->guard_bytes = guard_bytes;
  memory->data_bytes = data_bytes;
  CudaAddress address = 0;
  const CudaResult result = driver_.MemAlloc(&address, memory->bytes());
  memory->whole = reinterpret_cast<void*>(static_cast<uintptr_t>(address));
  memory->data = static_cast<char*>(memory->whole) + guard_bytes;
  return {"cuMemAlloc", result};
}

void CudaDevice::Free(const DeviceMemory& memory) {
  driver_.MemFree(AddressOf(memory));
}

DeviceError CudaDevice::FreeBytes(uint64_t* bytes) {
  size_t free_bytes = 0;
  size_t all = 0;
  const CudaResult result = driver_.MemGetInfo(&free_bytes, &all);
  *bytes = free_bytes;
  return {"cuMemGetInfo", result};
}

DeviceError CudaDevice::Fill(const DeviceMemory& memory, uint64_t at,
                             uint64_t bytes, unsigned char value) {
  return {"cuMemsetD8Async",
          driver_.MemsetD8Async(AddressOf(memory) + at, value, bytes, stream_)};
}

DeviceError CudaDevice::Copy(const DeviceMemory& from, const DeviceMemory& to) {
  return {"cuMemcpyDtoDAsync",
          driver_.MemcpyDtoDAsync(AddressOf(to) + to.guard_bytes,
                                  AddressOf(from) + from.guard_bytes,
                                  from.data_bytes, stream_)};
}

DeviceError CudaDevice::Write(const void* from, const DeviceMemory& to,
                              uint64_t at, uint64_t bytes) {
  return {"cuMemcpyHtoD", driver_.MemcpyHtoD(AddressOf(to) + at, from, bytes)};
}

DeviceError CudaDevice::Read(const DeviceMemory& from, uint64_t at,
                             uint64_t bytes, void* to) {
  return {"cuMemcpyDtoH", driver_.MemcpyDtoH(to, AddressOf(from) + at, bytes)};
}

DeviceError CudaDevice::Wait() {
  return {"cuStreamSynchronize", driver_.StreamSynchronize(stream_)};
}

DeviceError CudaDevice::WaitForAll() {
  return {"cuCtxSynchronize", driver_.CtxSynchronize()};
}

DeviceError CudaDevice::Flush() {
  return {"cuMemsetD32Async",
          driver_.MemsetD32Async(flushed_, ++flush_value_, flushed_bytes_ / 4,
                                 stream_)};
}

DeviceError CudaDevice::StartTimer() {
  return {"cuEventRecord", driver_.EventRecord(start_, stream_)};
}

DeviceError CudaDevice::StopTimer() {
  return {"cuEventRecord", driver_.EventRecord(stop_, stream_)};
}

DeviceError CudaDevice::ReadTimer(double* seconds) {
  if (const DeviceError error = Wait()) return error;
  float milliseconds = 0;
  const CudaResult result =
      driver_.EventElapsedTime(&milliseconds, start_, stop_);
  *seconds = milliseconds * 1e-3;
  return {"cuEventElapsedTime", result};
}

DeviceConditions CudaDevice::Conditions() const {
  if (!nvml_.is_open()) return {};
  return {
      .clock_mhz = nvml_.ClockMhz(),
      .memory_clock_mhz = nvml_.MemoryClockMhz(),
      .temperature_c = nvml_.TemperatureC(),
      .power_w = nvml_.PowerWatts(),
  };
}

}  // namespace tilefarm::worker
