// A device of OpenCL.
#ifndef TILEFARM_WORKER_RUNNER_OPENCL_DEVICE_H_
#define TILEFARM_WORKER_RUNNER_OPENCL_DEVICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "worker/runner/device_driver.h"
#include "worker/runner/opencl_driver.h"

namespace tilefarm::worker {

// Artifacts get a cl_command_queue with profiling, and parameters that are
// cl_mem: sub-buffers of the data of DeviceMemory. Artifacts return errors of
// OpenCL negated, so DeviceError has them so as well.
//
// Runs are timed between the ends of two markers in the queue. Where Open finds
// that the driver gives markers no plausible times, the host's clock is read
// when the queue is empty.
class OpenClDevice final : public DeviceDriver {
 public:
  std::string Query(int number) override;
  std::string Open() override;
  std::string Try() override;

  void* queue() const override { return queue_; }
  std::string Text(const DeviceError& error) const override;
  bool EndsContext(int code) const override;

  DeviceError Allocate(uint64_t guard_bytes, uint64_t data_bytes,
                       DeviceMemory* memory) override;
  void Free(const DeviceMemory& memory) override;
  // OpenCL does not tell, so this counts what Allocate has taken.
  DeviceError FreeBytes(uint64_t* bytes) override;
  DeviceError Fill(const DeviceMemory& memory, uint64_t at, uint64_t bytes,
                   unsigned char value) override;
  DeviceError Copy(const DeviceMemory& from, const DeviceMemory& to) override;
  DeviceError Write(const void* from, const DeviceMemory& to, uint64_t at,
                    uint64_t bytes) override;
  DeviceError Read(const DeviceMemory& from, uint64_t at, uint64_t bytes,
                   void* to) override;

  DeviceError Wait() override;
  DeviceError WaitForAll() override { return Wait(); }
  DeviceError Flush() override;
  DeviceError StartTimer() override;
  DeviceError StopTimer() override;
  DeviceError ReadTimer(double* seconds) override;
  const char* TimerName() const override;
  // The driver's threads run kernels if the device is the processor.
  void UseCores(const std::vector<uint32_t>& cores) override;

 private:
  // The end of what is enqueued before it.
  DeviceError Mark(OpenClEvent* event);
  // Seconds from an event to a later one. Releases both.
  DeviceError Between(OpenClEvent* from, OpenClEvent* to, double* seconds);
  // Finds out whether events have times, and sets the time of Flush.
  DeviceError TryTimer();
  // The compiler's messages about a program.
  std::string BuildLog(OpenClProgram program) const;

  OpenClDriver driver_;
  OpenClDeviceHandle handle_;
  OpenClContext context_ = nullptr;
  OpenClQueue queue_ = nullptr;
  OpenClMemory flushed_ = nullptr;  // what Flush writes
  uint64_t flushed_bytes_ = 0;
  uint32_t flush_value_ = 0;
  uint64_t allocated_ = 0;
  bool events_have_times_ = false;
  OpenClEvent start_ = nullptr, stop_ = nullptr;
  double started_ = 0, stopped_ = 0;  // by the host's clock
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_OPENCL_DEVICE_H_
