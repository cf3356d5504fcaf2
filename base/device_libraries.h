// Kernel libraries that a device may have and that a schedule may call if the
// user permits it.
#ifndef TILEFARM_BASE_DEVICE_LIBRARIES_H_
#define TILEFARM_BASE_DEVICE_LIBRARIES_H_

namespace tilefarm {

struct DeviceLibrary {
  const char* name;  // announced by workers; prefix of kernel names
  const char* file;  // for the loader; artifacts that call it list it
};

inline constexpr DeviceLibrary kDeviceLibraries[] = {
    {"onednn", "libdnnl.so.2"},
    {"openblas", "libopenblas.so.0"},
};

}  // namespace tilefarm

#endif  // TILEFARM_BASE_DEVICE_LIBRARIES_H_
