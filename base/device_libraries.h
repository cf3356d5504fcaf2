// Libraries of kernels that a device may have and that a schedule may call,
// where the user permits it.
#ifndef TILEFARM_BASE_DEVICE_LIBRARIES_H_
#define TILEFARM_BASE_DEVICE_LIBRARIES_H_

namespace tilefarm {

struct DeviceLibrary {
  const char* name;  // as workers announce it and kernels begin: "openblas"
  const char*
      file;  // as the loader finds it; an artifact that calls it says so
};

inline constexpr DeviceLibrary kDeviceLibraries[] = {
    {"onednn", "libdnnl.so.2"},
    {"openblas", "libopenblas.so.0"},
};

}  // namespace tilefarm

#endif  // TILEFARM_BASE_DEVICE_LIBRARIES_H_
