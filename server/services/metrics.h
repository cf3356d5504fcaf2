// The server's metrics: collected from its parts, written as Prometheus' text
// by its client library.
#ifndef TILEFARM_SERVER_SERVICES_METRICS_H_
#define TILEFARM_SERVER_SERVICES_METRICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/farm/farm.h"
#include "server/jobs/result_writer.h"
#include "server/security/gate.h"
#include "server/spans/exporter.h"

namespace tilefarm::services {

// From /proc/self; 0 where the system does not tell.
struct ProcessFigures {
  double cpu_seconds = 0;
  double start_time = 0;  // Unix
  int64_t resident_bytes = 0, virtual_bytes = 0;
  int64_t open_files = 0, max_files = 0, threads = 0;
};
ProcessFigures ReadProcessFigures();

struct DeviceFigures {
  std::string name;
  double busy_seconds = 0;
  double clock_hertz = 0, temperature_celsius = 0;  // 0: not known
};

inline constexpr char kMetricsContentType[] =
    "text/plain; version=0.0.4; charset=utf-8";

struct ServerFigures {
  std::string release, fingerprint;
  // All states are present, also those with no device.
  std::map<std::string, int> jobs, devices;
  std::vector<DeviceFigures> each_device;
  farm::FarmFigures farm;
  jobs::WriterFigures writer;
  std::map<std::string, int64_t> results;  // stored, by status
  int64_t results_not_stored = 0;
  security::GateFigures gate;
  std::map<int, int64_t> http_answers;          // by status
  std::optional<spans::ExporterFigures> spans;  // none: they are not sent
  int64_t database_bytes = 0, wal_bytes = 0;
  ProcessFigures process;
};

// The exposition. Its names are a contract (docs/formats.md).
std::string MetricsPage(const ServerFigures& figures);

}  // namespace tilefarm::services

#endif  // TILEFARM_SERVER_SERVICES_METRICS_H_
