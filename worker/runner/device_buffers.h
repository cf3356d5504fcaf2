// The buffers of a workload in the memory of a device.
#ifndef TILEFARM_WORKER_RUNNER_DEVICE_BUFFERS_H_
#define TILEFARM_WORKER_RUNNER_DEVICE_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/runner/device_driver.h"
#include "worker/runner/device_job.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

// One buffer for each parameter, between guards (DeviceMemory). A guard has a
// pattern, which is NaN for floats: a kernel that reads beyond a buffer spoils
// its result, and one that writes there is found out. Used by the device's
// thread; the destructor frees the memory. Every method returns the driver's
// first error.
class DeviceBuffers {
 public:
  explicit DeviceBuffers(DeviceDriver& device) : device_(device) {}
  ~DeviceBuffers() { Free(); }
  DeviceBuffers(const DeviceBuffers&) = delete;
  DeviceBuffers& operator=(const DeviceBuffers&) = delete;

  // Makes all buffers, and uploads the inputs from where `layout` has them.
  DeviceError Make(const ProgramSpec& program, const DeviceLayout& layout,
                   const char* inputs);
  // Gives every output its initial contents, which are poison or its inputs,
  // and every guard its pattern. Does not wait.
  DeviceError Restore();
  // Waits, and copies the outputs to where `layout` has them.
  DeviceError KeepOutputs(const DeviceLayout& layout, char* outputs) const;
  // Waits, and describes the first guard or input that has changed; empty:
  // none has.
  DeviceError FindDamage(const DeviceLayout& layout, const char* inputs,
                         std::string* damage) const;
  // Makes further copies of all buffers, until there are `count`. Fewer if
  // memory runs out.
  DeviceError Multiply(size_t count);

  size_t copies() const { return copies_.size(); }
  // A parameter in one of the copies, as artifacts get it; copy 0 is verified.
  void* argument(size_t copy, size_t param) const {
    return copies_[copy][param].data;
  }
  // Of all parameters, once.
  uint64_t bytes() const { return bytes_; }
  // Of everything on the device.
  uint64_t allocated_bytes() const { return allocated_; }
  // Whether a parameter is both input and output, so that runs differ.
  bool in_place() const { return in_place_; }

 private:
  DeviceError Allocate(uint64_t guard_bytes, uint64_t data_bytes,
                       DeviceMemory* memory);
  DeviceError MakeCopy(std::vector<DeviceMemory>* copy);
  DeviceError SetGuards(const std::vector<DeviceMemory>& copy) const;
  unsigned char Pattern(size_t param) const;
  uint64_t BytesOf(size_t param) const;
  void Free();

  DeviceDriver& device_;
  ProgramSpec program_;
  uint64_t guard_bytes_ = 0;
  std::vector<std::vector<DeviceMemory>> copies_;
  // The inputs of parameters that are also outputs; all zero for others.
  std::vector<DeviceMemory> initial_;
  std::vector<DeviceMemory> allocations_;
  uint64_t bytes_ = 0;
  uint64_t allocated_ = 0;
  bool in_place_ = false;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_DEVICE_BUFFERS_H_
