#include "worker/runner/libraries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/device_libraries.h"

namespace tilefarm::worker {
namespace {

// The result of dnnl_version() since oneDNN 1.
struct OnednnVersion {
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};
constexpr unsigned kOnednnOpenMp = 2;

// Empty: the library is not built for OpenMP, so that we could not control the
// number of its threads.
std::string VersionOfOnednn(void* library) {
  using Function = const OnednnVersion* (*)();
  const auto function =
      reinterpret_cast<Function>(dlsym(library, "dnnl_version"));
  if (function == nullptr || dlsym(library, "dnnl_sgemm") == nullptr) return "";
  const OnednnVersion& version = *function();
  if (version.cpu_runtime != kOnednnOpenMp) return "";
  char text[64];
  snprintf(text, sizeof text, "%d.%d.%d", version.major, version.minor,
           version.patch);
  return text;
}

// Parses "OpenBLAS 0.3.21 DYNAMIC_ARCH ..."; empty: its integers have 64 bits.
std::string VersionOfOpenblas(void* library) {
  using Function = const char* (*)();
  const auto function =
      reinterpret_cast<Function>(dlsym(library, "openblas_get_config"));
  if (function == nullptr || dlsym(library, "cblas_sgemm") == nullptr) {
    return "";
  }
  const char* config = function();
  if (strstr(config, "USE64BITINT") != nullptr) return "";
  char text[64] = {};
  if (sscanf(config, "OpenBLAS %63s", text) != 1) return "unknown";
  return text;
}

}  // namespace

std::map<std::string, std::string> FindLibraries() {
  std::map<std::string, std::string> found;
  for (const DeviceLibrary& library : kDeviceLibraries) {
    void* handle = dlopen(library.file, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) continue;
    const std::string name = library.name;
    const std::string version =
        name == "onednn" ? VersionOfOnednn(handle) : VersionOfOpenblas(handle);
    if (!version.empty()) found[name] = version;
  }
  return found;
}

}  // namespace tilefarm::worker
