// Facts of this machine that the operating system knows.
#ifndef TILEFARM_COMPILER_TARGET_HOST_H_
#define TILEFARM_COMPILER_TARGET_HOST_H_

#include <string>

#include "compiler/target/target.h"

namespace tilefarm::target {

// The processor as it calls itself; empty where it does not say.
std::string HostBrand();
// Data caches of cpu 0 from sysfs; defaults for what is not there.
CacheSizes HostCaches();
// Number of CPUs in this process's affinity mask, at least 1.
int HostCores();

}  // namespace tilefarm::target

#endif  // TILEFARM_COMPILER_TARGET_HOST_H_
