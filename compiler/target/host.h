// Facts of this machine that the operating system knows.
#ifndef TILEFARM_COMPILER_TARGET_HOST_H_
#define TILEFARM_COMPILER_TARGET_HOST_H_

#include <string>

#include "compiler/target/target.h"

namespace tilefarm::target {

// The processor's brand string; empty if it has none.
std::string HostBrand();
// Data caches of cpu 0 from sysfs; defaults for missing ones.
CacheSizes HostCaches();
// Number of CPUs in this process's affinity mask, at least 1.
int HostCores();

}  // namespace tilefarm::target

#endif  // TILEFARM_COMPILER_TARGET_HOST_H_
