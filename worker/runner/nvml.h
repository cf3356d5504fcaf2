// The state of an NVIDIA GPU (NVML), where libnvidia-ml.so.1 is there. Loaded
// at run time.
#ifndef TILEFARM_WORKER_RUNNER_NVML_H_
#define TILEFARM_WORKER_RUNNER_NVML_H_

#include <string>

namespace tilefarm::worker {

// Values that cannot be read are 0 or empty. Single-threaded; not to be used
// across a fork.
class Nvml {
 public:
  // The device with this bus id (cuDeviceGetPCIBusId). False: no such device,
  // or no NVML.
  bool Open(const std::string& pci_bus_id);
  bool is_open() const { return device_ != nullptr; }

  std::string DriverVersion() const;
  double PowerLimitWatts() const;
  // Now.
  double ClockMhz() const;  // of the multiprocessors
  double MemoryClockMhz() const;
  double TemperatureC() const;
  double PowerWatts() const;

 private:
  using Device = struct NvmlDeviceTag*;
  void* library_ = nullptr;
  Device device_ = nullptr;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_NVML_H_
