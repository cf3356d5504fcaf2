#include "server/services/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tilefarm::services {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using Type = prometheus::MetricType;

// The families of a page. Names have units as OpenMetrics asks for them:
// seconds, bytes, hertz, celsius; counters end in _total.
class Families {
 public:
  using Labels = std::initializer_list<std::pair<const char*, std::string>>;

  // Begins a family; the following samples belong to it.
  void Add(const char* name, Type type, const char* help) {
    families_.push_back({.name = name, .help = help, .type = type});
  }
  void Sample(Labels labels, double value) {
    ClientMetric& metric = families_.back().metric.emplace_back();
    for (const auto& [name, text] : labels)
      metric.label.push_back({name, text});
    if (families_.back().type == Type::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
  }
  void Sample(const Histogram& histogram) {
    ClientMetric& metric = families_.back().metric.emplace_back();
    metric.histogram.sample_count = static_cast<uint64_t>(histogram.count());
    metric.histogram.sample_sum = histogram.sum();
    uint64_t below = 0;
    for (size_t i = 0; i < Histogram::kBounds.size(); ++i) {
      below += static_cast<uint64_t>(histogram.counts()[i]);
      metric.histogram.bucket.push_back({below, Histogram::kBounds[i]});
    }
    metric.histogram.bucket.push_back(
        {metric.histogram.sample_count,
         std::numeric_limits<double>::infinity()});
  }
  // A family with one sample.
  void Add(const char* name, Type type, const char* help, double value) {
    Add(name, type, help);
    Sample({}, value);
  }

  std::string Text() const {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, families_);
    return out.str();
  }

 private:
  std::vector<MetricFamily> families_;
};

void AddDevices(const std::vector<DeviceFigures>& devices, Families& text) {
  text.Add("tilefarm_device_busy_seconds_total", Type::Counter,
           "Time in which the device measured, since the server started.");
  for (const DeviceFigures& device : devices) {
    text.Sample({{"device", device.name}}, device.busy_seconds);
  }
  text.Add("tilefarm_device_clock_hertz", Type::Gauge,
           "Clock at the device's latest measurement, where it is known.");
  for (const DeviceFigures& device : devices) {
    if (device.clock_hertz > 0) {
      text.Sample({{"device", device.name}}, device.clock_hertz);
    }
  }
  text.Add("tilefarm_device_temperature_celsius", Type::Gauge,
           "Temperature at the device's latest measurement, where its system "
           "tells.");
  for (const DeviceFigures& device : devices) {
    if (device.temperature_celsius > 0) {
      text.Sample({{"device", device.name}}, device.temperature_celsius);
    }
  }
}

void AddFarm(const ServerFigures& figures, Families& text) {
  text.Add("tilefarm_jobs", Type::Gauge, "Jobs by state, ended ones included.");
  for (const auto& [state, count] : figures.jobs) {
    text.Sample({{"state", state}}, count);
  }
  text.Add("tilefarm_devices", Type::Gauge,
           "Devices by state, as tune devices shows it.");
  for (const auto& [state, count] : figures.devices) {
    text.Sample({{"state", state}}, count);
  }
  text.Add("tilefarm_device_canary_seconds", Type::Gauge,
           "Known time of the device's canary: its best median so far.");
  for (const auto& [device, seconds] : figures.farm.canary_seconds) {
    text.Sample({{"device", device}}, seconds);
  }
  AddDevices(figures.each_device, text);
  const farm::FarmFigures& farm = figures.farm;
  text.Add("tilefarm_leases", Type::Gauge, "Leases on devices by phase.");
  text.Sample({{"phase", "granted"}}, farm.leases_granted);
  text.Sample({{"phase", "building"}}, farm.leases_building);
  text.Sample({{"phase", "built"}}, farm.leases_built);
  text.Sample({{"phase", "running"}}, farm.leases_running);
  text.Add("tilefarm_candidates", Type::Gauge,
           "Candidates in the farm: ready (wait for a device), leased, held "
           "(wait for a former process's result), doubted (wait for a canary), "
           "committing.");
  text.Sample({{"state", "ready"}}, farm.candidates_ready);
  text.Sample({{"state", "leased"}}, farm.candidates_leased);
  text.Sample({{"state", "held"}}, farm.candidates_held);
  text.Sample({{"state", "doubted"}}, farm.candidates_doubted);
  text.Sample({{"state", "committing"}}, farm.candidates_committing);
}

void AddDatabase(const ServerFigures& figures, Families& text) {
  const jobs::WriterFigures& writer = figures.writer;
  text.Add("tilefarm_results_total", Type::Counter,
           "Results stored durably since the start, by status.");
  for (const auto& [status, count] : figures.results) {
    text.Sample({{"status", status}}, static_cast<double>(count));
  }
  text.Add("tilefarm_results_not_stored_total", Type::Counter,
           "Results acknowledged without being stored: their candidate has a "
           "record, or the database refuses them.",
           static_cast<double>(figures.results_not_stored));
  text.Add("tilefarm_results_waiting", Type::Gauge,
           "Results that wait for their commit.",
           static_cast<double>(writer.waiting));
  text.Add("tilefarm_commit_seconds", Type::Histogram,
           "Time of a commit of a group of results, tries that failed "
           "included.");
  text.Sample(writer.commit_seconds);
  text.Add("tilefarm_commit_failures_total", Type::Counter,
           "Commits that failed and are tried again.",
           static_cast<double>(writer.failures));
  text.Add("tilefarm_database_bytes", Type::Gauge,
           "Size of the database and of its write-ahead log.");
  text.Sample({{"file", "main"}}, static_cast<double>(figures.database_bytes));
  text.Sample({{"file", "wal"}}, static_cast<double>(figures.wal_bytes));
}

void AddCalls(const ServerFigures& figures, Families& text) {
  text.Add("tilefarm_streams", Type::Gauge,
           "Calls that last: workers, watches and measurements; imports and "
           "exports.");
  text.Sample({{"kind", "stream"}}, figures.gate.streams);
  text.Sample({{"kind", "transfer"}}, figures.gate.transfers);
  text.Add("tilefarm_refusals_total", Type::Counter,
           "Calls refused before they were read: no valid credential, not "
           "this role, too many.");
  const security::GateFigures& gate = figures.gate;
  text.Sample({{"reason", "unauthenticated"}},
              static_cast<double>(gate.unauthenticated));
  text.Sample({{"reason", "permission_denied"}},
              static_cast<double>(gate.permission_denied));
  text.Sample({{"reason", "resource_exhausted"}},
              static_cast<double>(gate.resource_exhausted));
  text.Add("tilefarm_http_requests_total", Type::Counter,
           "Answers of this port by status.");
  for (const auto& [status, count] : figures.http_answers) {
    text.Sample({{"code", absl::StrCat(status)}}, static_cast<double>(count));
  }
  if (!figures.spans.has_value()) return;
  text.Add("tilefarm_spans_total", Type::Counter,
           "Lives of candidates for the collector of --otlp.");
  text.Sample({{"result", "sent"}}, static_cast<double>(figures.spans->sent));
  text.Sample({{"result", "dropped"}},
              static_cast<double>(figures.spans->dropped));
}

void AddProcess(const ProcessFigures& process, Families& text) {
  text.Add("process_cpu_seconds_total", Type::Counter,
           "User and system CPU time.", process.cpu_seconds);
  text.Add("process_resident_memory_bytes", Type::Gauge, "Resident memory.",
           static_cast<double>(process.resident_bytes));
  text.Add("process_virtual_memory_bytes", Type::Gauge, "Virtual memory.",
           static_cast<double>(process.virtual_bytes));
  text.Add("process_open_fds", Type::Gauge, "Open file descriptors.",
           static_cast<double>(process.open_files));
  text.Add("process_max_fds", Type::Gauge, "Limit of file descriptors.",
           static_cast<double>(process.max_files));
  text.Add("process_threads", Type::Gauge, "Threads.",
           static_cast<double>(process.threads));
  text.Add("process_start_time_seconds", Type::Gauge,
           "When the process started, Unix time.", process.start_time);
}

}  // namespace

std::string MetricsPage(const ServerFigures& figures) {
  Families text;
  text.Add("tilefarm_build_info", Type::Gauge, "Always 1.");
  text.Sample(
      {{"release", figures.release}, {"fingerprint", figures.fingerprint}}, 1);
  AddFarm(figures, text);
  AddDatabase(figures, text);
  AddCalls(figures, text);
  AddProcess(figures.process, text);
  return text.Text();
}

ProcessFigures ReadProcessFigures() {
  ProcessFigures figures;
  std::stringstream stat;
  stat << std::ifstream("/proc/self/stat").rdbuf();
  // The name, in parentheses, may contain spaces; field 3 follows it.
  const std::string text = stat.str();
  std::istringstream rest(text.substr(text.rfind(')') + 1));
  std::string word;
  double ticks = 0, started = 0;
  const double per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  for (int field = 3; rest >> word; ++field) {
    if (field == 14 || field == 15) ticks += std::stod(word);
    if (field == 20) figures.threads = std::stoll(word);
    if (field == 22) started = std::stod(word) / per_second;
    if (field == 23) figures.virtual_bytes = std::stoll(word);
    if (field == 24) {
      figures.resident_bytes = std::stoll(word) * sysconf(_SC_PAGESIZE);
    }
  }
  figures.cpu_seconds = ticks / per_second;
  std::ifstream boot("/proc/stat");
  for (std::string line; std::getline(boot, line);) {
    if (line.rfind("btime ", 0) == 0) {
      figures.start_time = std::stod(line.substr(6)) + started;
    }
  }
  std::error_code error;
  for (const auto& file :
       std::filesystem::directory_iterator("/proc/self/fd", error)) {
    static_cast<void>(file);
    ++figures.open_files;
  }
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    figures.max_files = static_cast<int64_t>(limit.rlim_cur);
  }
  return figures;
}

}  // namespace tilefarm::services
