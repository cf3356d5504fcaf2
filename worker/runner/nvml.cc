#include "worker/runner/nvml.h"

#include <dlfcn.h>

namespace tilefarm::worker {
namespace {

constexpr int kClockOfMultiprocessors = 1;  // NVML_CLOCK_SM
constexpr int kClockOfMemory = 2;           // NVML_CLOCK_MEM
constexpr int kTemperatureOfGpu = 0;        // NVML_TEMPERATURE_GPU

template <typename Function>
Function Find(void* library, const char* name) {
  return library == nullptr ? nullptr
                            : reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

bool Nvml::Open(const std::string& pci_bus_id) {
  library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto init = Find<int (*)()>(library_, "nvmlInit_v2");
  const auto handle = Find<int (*)(const char*, Device*)>(
      library_, "nvmlDeviceGetHandleByPciBusId_v2");
  if (init == nullptr || handle == nullptr || init() != 0) return false;
  if (handle(pci_bus_id.c_str(), &device_) != 0) device_ = nullptr;
  return device_ != nullptr;
}

std::string Nvml::DriverVersion() const {
  const auto version =
      Find<int (*)(char*, unsigned)>(library_, "nvmlSystemGetDriverVersion");
  char text[128] = {};
  if (version == nullptr || version(text, sizeof text) != 0) return "";
  return text;
}

double Nvml::PowerLimitWatts() const {
  const auto limit = Find<int (*)(Device, unsigned*)>(
      library_, "nvmlDeviceGetEnforcedPowerLimit");
  unsigned milliwatts = 0;
  if (!is_open() || limit == nullptr || limit(device_, &milliwatts) != 0) {
    return 0;
  }
  return milliwatts / 1000.0;
}

double Nvml::ClockMhz() const {
  const auto clock =
      Find<int (*)(Device, int, unsigned*)>(library_, "nvmlDeviceGetClockInfo");
  unsigned mhz = 0;
  if (!is_open() || clock == nullptr ||
      clock(device_, kClockOfMultiprocessors, &mhz) != 0) {
    return 0;
  }
  return mhz;
}

double Nvml::MemoryClockMhz() const {
  const auto clock =
      Find<int (*)(Device, int, unsigned*)>(library_, "nvmlDeviceGetClockInfo");
  unsigned mhz = 0;
  if (!is_open() || clock == nullptr ||
      clock(device_, kClockOfMemory, &mhz) != 0) {
    return 0;
  }
  return mhz;
}

double Nvml::TemperatureC() const {
  const auto temperature = Find<int (*)(Device, int, unsigned*)>(
      library_, "nvmlDeviceGetTemperature");
  unsigned degrees = 0;
  if (!is_open() || temperature == nullptr ||
      temperature(device_, kTemperatureOfGpu, &degrees) != 0) {
    return 0;
  }
  return degrees;
}

double Nvml::PowerWatts() const {
  const auto power =
      Find<int (*)(Device, unsigned*)>(library_, "nvmlDeviceGetPowerUsage");
  unsigned milliwatts = 0;
  if (!is_open() || power == nullptr || power(device_, &milliwatts) != 0) {
    return 0;
  }
  return milliwatts / 1000.0;
}

}  // namespace tilefarm::worker
