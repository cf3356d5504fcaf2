#include "worker/device.h"

#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace tilefarm::worker {
namespace {

std::optional<double> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  double value;
  if (file >> value) return value;
  return std::nullopt;
}

// The value of the n-th line "key : value" of /proc/cpuinfo, from 0.
std::string CpuInfo(const std::string& key, uint32_t n) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (line.compare(0, key.size(), key) != 0 || colon == std::string::npos) {
      continue;
    }
    if (n-- > 0) continue;
    const size_t start = line.find_first_not_of(' ', colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

std::optional<double> ClockMhz(uint32_t cpu) {
  const std::optional<double> khz = ReadNumber(absl::StrCat(
      "/sys/devices/system/cpu/cpu", cpu, "/cpufreq/scaling_cur_freq"));
  if (khz.has_value()) return *khz / 1000;
  const double mhz = atof(CpuInfo("cpu MHz", cpu).c_str());
  if (mhz > 0) return mhz;
  return std::nullopt;
}

}  // namespace

uint64_t MemoryBytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

namespace {

std::string GpuState(const RunReply& reply) {
  std::vector<std::string> fields;
  const auto add = [&](const char* name, double value) {
    if (value <= 0) return;
    fields.push_back(absl::StrFormat("\"%s\":%.1f", name, value));
  };
  add("clock_mhz", reply.conditions.clock_mhz);
  add("memory_clock_mhz", reply.conditions.memory_clock_mhz);
  add("temperature_c", reply.conditions.temperature_c);
  add("power_w", reply.conditions.power_w);
  double load = 0;
  if (getloadavg(&load, 1) == 1) {
    fields.push_back(absl::StrFormat("\"load\":%.2f", load));
  }
  // The child may have written any text there.
  std::string timing;
  for (const char c : reply.timing) {
    if (c != '"' && c != '\\') timing.push_back(c);
  }
  fields.push_back(absl::StrCat("\"timing\":\"", timing, "\""));
  return absl::StrCat("{", absl::StrJoin(fields, ","), "}");
}

}  // namespace

std::string DeviceState(const CpuList& cpus, const RunReply& reply) {
  if (!reply.timing.empty()) return GpuState(reply);
  std::vector<std::string> fields;
  const std::optional<double> mhz = ClockMhz(cpus.empty() ? 0 : cpus.front());
  if (mhz.has_value()) {
    fields.push_back(absl::StrFormat("\"clock_mhz\":%.1f", *mhz));
  }
  const std::optional<double> millidegrees =
      ReadNumber("/sys/class/thermal/thermal_zone0/temp");
  if (millidegrees.has_value()) {
    fields.push_back(
        absl::StrFormat("\"temperature_c\":%.1f", *millidegrees / 1000));
  }
  double load = 0;
  if (getloadavg(&load, 1) == 1) {
    fields.push_back(absl::StrFormat("\"load\":%.2f", load));
  }
  if (reply.canary_seconds > 0) {
    fields.push_back(
        absl::StrFormat("\"canary_seconds\":%.9f", reply.canary_seconds));
  }
  fields.push_back(absl::StrCat("\"retaken\":", reply.retaken));
  fields.push_back(absl::StrCat("\"shared\":", reply.shared));
  return absl::StrCat("{", absl::StrJoin(fields, ","), "}");
}

}  // namespace tilefarm::worker
