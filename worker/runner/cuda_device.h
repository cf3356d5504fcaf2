// A GPU of NVIDIA, by CUDA's driver.
#ifndef TILEFARM_WORKER_RUNNER_CUDA_DEVICE_H_
#define TILEFARM_WORKER_RUNNER_CUDA_DEVICE_H_

#include <cstdint>
#include <string>

#include "worker/runner/cuda_driver.h"
#include "worker/runner/device_driver.h"
#include "worker/runner/nvml.h"

namespace tilefarm::worker {

// Artifacts get a CUstream and the addresses of memory. The primary context is
// current in the thread that calls Open.
class CudaDevice final : public DeviceDriver {
 public:
  std::string Query(int number) override;
  std::string Open() override;
  std::string Try() override;

  void* queue() const override { return stream_; }
  std::string Text(const DeviceError& error) const override;
  bool EndsContext(int code) const override;

  DeviceError Allocate(uint64_t guard_bytes, uint64_t data_bytes,
                       DeviceMemory* memory) override;
  void Free(const DeviceMemory& memory) override;
  DeviceError FreeBytes(uint64_t* bytes) override;
  DeviceError Fill(const DeviceMemory& memory, uint64_t at, uint64_t bytes,
                   unsigned char value) override;
  DeviceError Copy(const DeviceMemory& from, const DeviceMemory& to) override;
  DeviceError Write(const void* from, const DeviceMemory& to, uint64_t at,
                    uint64_t bytes) override;
  DeviceError Read(const DeviceMemory& from, uint64_t at, uint64_t bytes,
                   void* to) override;

  DeviceError Wait() override;
  DeviceError WaitForAll() override;
  DeviceError Flush() override;
  DeviceError StartTimer() override;
  DeviceError StopTimer() override;
  DeviceError ReadTimer(double* seconds) override;
  DeviceConditions Conditions() const override;

 private:
  CudaDriver driver_;
  int number_ = 0;
  CudaStream stream_ = nullptr;
  CudaEvent start_ = nullptr, stop_ = nullptr;
  CudaAddress flushed_ = 0;  // what Flush writes
  uint64_t flushed_bytes_ = 0;
  unsigned flush_value_ = 0;
  Nvml nvml_;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_CUDA_DEVICE_H_
