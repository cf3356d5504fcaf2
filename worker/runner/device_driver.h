// What measuring on a device takes of its driver; CudaDevice and OpenClDevice
// implement it.
//
// Knows the C and C++ standard libraries only, like all of tune-runner: drivers
// are loaded at run time.
#ifndef TILEFARM_WORKER_RUNNER_DEVICE_DRIVER_H_
#define TILEFARM_WORKER_RUNNER_DEVICE_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/runner_protocol.h"

namespace tilefarm::worker {

// What the driver says about one of its devices.
struct DeviceProperties {
  std::string target;  // "cuda:sm_90a", "opencl:mali"
  // What decides how fast code runs on it: "NVIDIA H100 80GB HBM3, driver
  // 550.54.15, 1980 MHz, memory 2619 MHz, 700 W".
  std::string brand;
  std::string bus_id;            // unique in its machine
  uint64_t multiprocessors = 0;  // OpenCL: compute units
  uint64_t multiprocessor_shared_bytes = 0;
  uint64_t l2_bytes = 0;  // of the last cache
  uint64_t memory_bytes = 0;
  // Where data in memory begins at a multiple of so many bytes.
  uint64_t alignment = 1;
};

// The result of calls of the driver.
struct DeviceError {
  const char* call = "";  // the first one that failed
  int code = 0;           // as artifacts return it; 0: none failed

  explicit operator bool() const { return code != 0; }
};

// A part of the device's memory, or all zero:
//
//   | guard | data | guard |
//
// The second guard begins right behind the last byte of the data.
struct DeviceMemory {
  void* whole = nullptr;
  void* data = nullptr;  // what artifacts get
  uint64_t guard_bytes = 0;
  uint64_t data_bytes = 0;

  uint64_t bytes() const { return data_bytes + 2 * guard_bytes; }
};

// One device, its context and a queue, which runs in order. Used by one thread.
// The destructor leaves the context to the end of the process, because drivers
// may hang in their own cleaning up.
class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;

  // Loads the driver's library, and finds the properties of its device with
  // this number. The error; empty: none.
  virtual std::string Query(int number) = 0;
  // After Query: makes the context and the queue. The error; empty: none.
  virtual std::string Open() = 0;
  // Whether the driver does what candidates need: compiles a kernel, launches
  // it, takes memory and copies it. The error; empty: it does.
  virtual std::string Try() = 0;

  const DeviceProperties& properties() const { return properties_; }
  // The first argument of an artifact's functions.
  virtual void* queue() const = 0;
  // "cuMemAlloc: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was
  // encountered"
  virtual std::string Text(const DeviceError& error) const = 0;
  // Whether no call may succeed after this error in the same process. So after
  // too little memory: earlier candidates may have taken it.
  virtual bool EndsContext(int code) const = 0;

  // `guard_bytes` is a multiple of the alignment.
  virtual DeviceError Allocate(uint64_t guard_bytes, uint64_t data_bytes,
                               DeviceMemory* memory) = 0;
  virtual void Free(const DeviceMemory& memory) = 0;
  virtual DeviceError FreeBytes(uint64_t* bytes) = 0;
  // Enqueues. `at` counts from the first guard's start.
  virtual DeviceError Fill(const DeviceMemory& memory, uint64_t at,
                           uint64_t bytes, unsigned char value) = 0;
  // Enqueues. Copies all data to other memory of that size.
  virtual DeviceError Copy(const DeviceMemory& from,
                           const DeviceMemory& to) = 0;
  // To and from the host. The host's memory may be used after Write; what is
  // enqueued later sees the data after WaitForAll.
  virtual DeviceError Write(const void* from, const DeviceMemory& to,
                            uint64_t at, uint64_t bytes) = 0;
  virtual DeviceError Read(const DeviceMemory& from, uint64_t at,
                           uint64_t bytes, void* to) = 0;

  // Waits for the queue; for everything.
  virtual DeviceError Wait() = 0;
  virtual DeviceError WaitForAll() = 0;

  // Enqueues writing twice as much memory as the last cache has, at least 1
  // MiB.
  virtual DeviceError Flush() = 0;
  // The time of one Flush.
  double flush_seconds() const { return flush_seconds_; }

  // The time between what is enqueued before StartTimer and the end of what is
  // enqueued before StopTimer. ReadTimer waits.
  virtual DeviceError StartTimer() = 0;
  virtual DeviceError StopTimer() = 0;
  virtual DeviceError ReadTimer(double* seconds) = 0;
  virtual const char* TimerName() const { return "events"; }

  // What the device measures of itself now.
  virtual DeviceConditions Conditions() const { return {}; }
  // Keeps this thread on these cores, and the driver's threads if they compute.
  virtual void UseCores(const std::vector<uint32_t>& cores);

 protected:
  DeviceProperties properties_;
  double flush_seconds_ = 0;
};

// A device as --device names it: "cuda:0".
struct DeviceName {
  std::string kind;
  int number = 0;

  std::string Text() const { return kind + ":" + std::to_string(number); }
};
// False: the text names none of a kind that we know.
bool ParseDeviceName(const std::string& text, DeviceName* name);
// What --device can name: "cuda:N or opencl:N".
std::string DeviceNames();

// Null: no such kind.
std::unique_ptr<DeviceDriver> MakeDeviceDriver(const std::string& kind);
// How long an artifact may take to load its kernels in its first run.
double LoadingSeconds(const std::string& kind);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_DEVICE_DRIVER_H_
