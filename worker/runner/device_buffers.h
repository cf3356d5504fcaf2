// The buffers of a workload in the memory of a device.
#ifndef TILEFARM_WORKER_RUNNER_DEVICE_BUFFERS_H_
#define TILEFARM_WORKER_RUNNER_DEVICE_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/runner/cuda_driver.h"
#include "worker/runner/device_job.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {

// One buffer for each parameter, between guards:
//
//   | guard | data | guard |
//
// A guard has a pattern, which is NaN for floats: a kernel that reads beyond a
// buffer spoils its result, and one that writes there is found out. Data begins
// at a multiple of 256 bytes, as cuMemAlloc has it, and the second guard begins
// right behind its last byte. Used with a current context, on one stream; the
// destructor frees the memory. Every method returns the driver's first error;
// 0: none.
class DeviceBuffers {
 public:
  DeviceBuffers(const CudaDriver& driver, CudaStream stream)
      : driver_(driver), stream_(stream) {}
  ~DeviceBuffers() { Free(); }
  DeviceBuffers(const DeviceBuffers&) = delete;
  DeviceBuffers& operator=(const DeviceBuffers&) = delete;

  // Makes all buffers, and uploads the inputs from where `layout` has them.
  CudaResult Make(const ProgramSpec& program, const DeviceLayout& layout,
                  const char* inputs);
  // Gives every output its initial contents, which are poison or its inputs,
  // and every guard its pattern. Does not wait.
  CudaResult Restore();
  // Waits, and copies the outputs to where `layout` has them.
  CudaResult KeepOutputs(const DeviceLayout& layout, char* outputs) const;
  // Waits, and describes the first guard or input that has changed; empty:
  // none has.
  CudaResult FindDamage(const DeviceLayout& layout, const char* inputs,
                        std::string* damage) const;
  // Makes further copies of all buffers, until there are `count`. Fewer if
  // memory runs out.
  CudaResult Multiply(size_t count);

  size_t copies() const { return copies_.size(); }
  // The address of a parameter in one of the copies; copy 0 is verified.
  void* address(size_t copy, size_t param) const;
  // Of all parameters, once.
  uint64_t bytes() const { return bytes_; }
  // Of everything on the device.
  uint64_t allocated_bytes() const { return allocated_; }
  // Whether a parameter is both input and output, so that runs differ.
  bool in_place() const { return in_place_; }

 private:
  struct Buffer {
    CudaAddress memory = 0;  // of the first guard
    CudaAddress data = 0;
  };

  CudaResult Allocate(uint64_t bytes, CudaAddress* address);
  CudaResult MakeCopy(std::vector<Buffer>* copy);
  CudaResult SetGuards(const std::vector<Buffer>& copy) const;
  unsigned char Pattern(size_t param) const;
  uint64_t BytesOf(size_t param) const;
  void Free();

  const CudaDriver& driver_;
  const CudaStream stream_;
  ProgramSpec program_;
  uint64_t guard_bytes_ = 0;
  std::vector<std::vector<Buffer>> copies_;
  // The inputs of parameters that are also outputs; 0 for others.
  std::vector<CudaAddress> initial_;
  std::vector<CudaAddress> allocations_;
  uint64_t bytes_ = 0;
  uint64_t allocated_ = 0;
  bool in_place_ = false;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_DEVICE_BUFFERS_H_
