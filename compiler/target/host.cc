#include "compiler/target/host.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"

namespace tilefarm::target {
namespace {

std::string ReadWord(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// "48K" or "1024K" or "32M"; 0 where it is none of these.
int64_t ParseSize(const std::string& text) {
  int64_t value = 0;
  size_t i = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9' && i < 9; ++i) {
    value = value * 10 + (text[i] - '0');
  }
  if (i == text.size()) return value;
  if (text[i] == 'K') return value << 10;
  if (text[i] == 'M') return value << 20;
  if (text[i] == 'G') return value << 30;
  return 0;
}

// The first "key : value" of /proc/cpuinfo.
std::string CpuInfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (line.compare(0, key.size(), key) != 0 || colon == std::string::npos) {
      continue;
    }
    const size_t start = line.find_first_not_of(' ', colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

}  // namespace

std::string HostBrand() {
  for (const char* key : {"model name", "Model", "Hardware", "uarch"}) {
    const std::string brand = CpuInfo(key);
    if (!brand.empty()) return brand;
  }
  return "";
}

CacheSizes HostCaches() {
  CacheSizes caches;
  for (int index = 0; index < 8; ++index) {
    const std::string folder =
        absl::StrCat("/sys/devices/system/cpu/cpu0/cache/index", index, "/");
    const std::string level = ReadWord(folder + "level");
    const std::string type = ReadWord(folder + "type");
    const int64_t bytes = ParseSize(ReadWord(folder + "size"));
    if (bytes <= 0 || type == "Instruction") continue;
    if (level == "1") caches.l1_bytes = bytes;
    if (level == "2") caches.l2_bytes = bytes;
    if (level == "3") caches.l3_bytes = bytes;
  }
  return caches;
}

int HostCores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    return std::max(1, CPU_COUNT(&mask));
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace tilefarm::target
