// Measures the server's cost of one more trial as trials add up:
//
//   flat_cost [--json] [--trials N] [--target T] [PROGRAM.py]
//
// Runs one job of N trials on a simulated device that answers at once, through
// the real search, cost model, farm, job log and database file; only network
// and device are missing. Reports the time per trial around trials 500 and
// 5,000 and at the end, in wall and CPU time, and the memory of the process.
// Only reports.
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "database/store.h"
#include "server/farm/farm.h"
#include "server/jobs/jobs.h"
#include "server/jobs/search_factory.h"

namespace tilefarm {
namespace {

constexpr char kFingerprint[] = "simulated";
constexpr int kSlots = 8;
// The number of trials around a mark over which time is measured.
constexpr int kAround = 250;

struct Options {
  std::string target = "x86-64:x86-64-v4,cores=1";
  int64_t trials = 20000;
  std::string program;
  bool json = false;
};

// Depends on the innermost tiles of a trace's decisions, and on chance.
double SimulatedSeconds(const std::string& trace) {
  double penalty = 1;
  for (size_t at = trace.find("decision=["); at != std::string::npos;
       at = trace.find("decision=[", at + 1)) {
    const size_t end = trace.find(']', at);
    const size_t last = trace.find_last_of("[, ", end - 1);
    const double inner = std::atof(trace.c_str() + last + 1);
    penalty += std::abs(std::log2(std::max(inner, 1.0)) - 4);
  }
  const double chance = static_cast<double>(Sha256Prefix(trace) % 1000) / 1000;
  return 1e-4 * penalty * (1 + 0.1 * chance);
}

// The state of the process when a trial was granted.
struct Mark {
  double wall, cpu;
};

Mark Now() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) +
           1e-6 * static_cast<double>(t.tv_usec);
  };
  return {absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()),
          seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

// "VmRSS" or "VmHWM" of this process, in MiB.
double MemoryMib(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(field + ":", 0) == 0) {
      return std::atof(line.c_str() + field.size() + 1) / 1024;
    }
  }
  return 0;
}

// Measures every lease at once, in a thread of its own.
class SimulatedDevice : public farm::WorkerLink {
 public:
  void SendLease(const farm::Lease& lease) override {
    MutexLock lock(mutex_);
    leases_.push_back(lease);
    changed_.NotifyAll();
  }
  void SendCancel(const std::string&) override {}
  void SendAck(const std::string&, bool) override {}
  void FlushAcks(absl::Duration) override {}
  void Close(const absl::Status&) override { Stop(); }

  void Stop() {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }

  void Run(farm::Farm& farm, int64_t session) {
    for (;;) {
      farm::Lease lease;
      {
        MutexLock lock(mutex_);
        while (leases_.empty() && !stopped_) changed_.Wait(mutex_);
        if (stopped_) return;
        lease = std::move(leases_.front());
        leases_.pop_front();
      }
      if (lease.item.purpose == farm::Purpose::kTrial) {
        marks_.push_back(Now());
        if (marks_.size() % 1000 == 0) {
          resident_.push_back(MemoryMib("VmRSS"));
        }
      }
      farm::Measurement measured;
      const double seconds = SimulatedSeconds(lease.item.trace);
      measured.seconds = {seconds, seconds, seconds};
      measured.median_seconds = seconds;
      measured.ci_low_seconds = measured.ci_high_seconds = seconds;
      measured.verified = true;
      measured.fingerprint = kFingerprint;
      farm.OnResult(session, {.lease_id = lease.lease_id,
                              .attempt = lease.attempt,
                              .candidate_id = lease.item.candidate_id,
                              .measurement = std::move(measured)});
    }
  }
  // After Run has returned.
  const std::vector<Mark>& marks() const { return marks_; }
  const std::vector<double>& resident() const { return resident_; }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<farm::Lease> leases_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Mark> marks_;
  std::vector<double> resident_;  // MiB, every 1,000 trials
};

nlohmann::ordered_json PerTrial(const std::vector<Mark>& marks, size_t around) {
  const size_t from = around - std::min<size_t>(around, kAround);
  const size_t to = std::min(marks.size() - 1, around + kAround);
  const double trials = static_cast<double>(to - from);
  return {
      {"trial", around},
      {"milliseconds", (marks[to].wall - marks[from].wall) / trials * 1e3},
      {"cpu_milliseconds", (marks[to].cpu - marks[from].cpu) / trials * 1e3}};
}

int Run(const Options& options) {
  std::ifstream file(options.program);
  std::stringstream text;
  text << file.rdbuf();
  char folder[] = "/tmp/tilefarm-flat-cost-XXXXXX";
  if (!file || mkdtemp(folder) == nullptr) {
    std::cerr << "cannot read " << options.program << "\n";
    return 1;
  }
  auto store = database::Store::Open(absl::StrCat(folder, "/tune.db"),
                                     database::Store::Mode::kReadWrite);
  if (!store.ok()) {
    std::cerr << store.status() << "\n";
    return 1;
  }
  farm::Farm farm({.fingerprint = kFingerprint});
  auto device = std::make_shared<SimulatedDevice>();
  jobs::JobSnapshot end;
  std::string database_bytes;
  {
    jobs::Jobs jobs(**store, farm,
                    {.fingerprint = kFingerprint,
                     .search_factory = jobs::RealSearchFactory()});
    if (!jobs.Recover().ok()) return 1;
    jobs.Start();
    farm::WorkerHello hello;
    hello.protocol_version = farm::kProtocolVersion;
    hello.name = "simulated";
    hello.boot_id = "1";
    hello.fingerprint = kFingerprint;
    hello.device.target = options.target;
    hello.device.l1_bytes = 48 << 10;
    hello.device.l2_bytes = 2 << 20;
    hello.device.l3_bytes = 32 << 20;
    const auto session = farm.Connect(hello, device);
    if (!session.ok()) {
      std::cerr << session.status() << "\n";
      return 1;
    }
    farm.OnState(*session, {}, /*draining=*/false, kSlots);
    std::thread thread([&] { device->Run(farm, *session); });
    jobs::JobSpec spec;
    spec.request_id = "flat-cost";
    spec.program = text.str();
    spec.targets = {{options.target, std::nullopt}};
    spec.trials = options.trials;
    const auto id = jobs.Submit(spec);
    if (!id.ok()) std::cerr << id.status() << "\n";
    while (id.ok()) {
      end = *jobs.Get(*id);
      if (jobs::Ended(end.state)) break;
      absl::SleepFor(absl::Milliseconds(20));
    }
    device->Stop();
    thread.join();
  }
  std::filesystem::remove_all(folder);
  const std::vector<Mark>& marks = device->marks();
  if (marks.size() < 2) return 1;
  nlohmann::ordered_json result = {
      {"benchmark", "flat_cost"},
      {"program", std::filesystem::path(options.program).filename().string()},
      {"state", std::string(jobs::JobStateName(end.state))},
      {"trials", marks.size()},
      {"seconds", marks.back().wall - marks.front().wall},
      {"memory_mib", MemoryMib("VmHWM")},
      {"resident_mib_every_1000", device->resident()},
      {"marks", nlohmann::ordered_json::array()}};
  for (const size_t around : {size_t{500}, size_t{1000}, size_t{2000},
                              size_t{5000}, size_t{10000}, marks.size()}) {
    if (around > marks.size()) continue;
    result["marks"].push_back(PerTrial(marks, around));
  }
  if (marks.size() > 5000 + kAround) {
    const auto at = [&](size_t n) {
      return PerTrial(marks, n)["milliseconds"].get<double>();
    };
    result["ratio_5000_to_500"] = at(5000) / at(500);
  }
  if (options.json) {
    std::cout << result.dump() << "\n";
    return 0;
  }
  for (const auto& mark : result["marks"]) {
    std::cout << "trial " << mark["trial"] << ": " << mark["milliseconds"]
              << " ms each, " << mark["cpu_milliseconds"] << " of the CPU\n";
  }
  std::cout << marks.size() << " trials, " << result["seconds"] << " s, "
            << result["memory_mib"] << " MiB";
  if (result.contains("ratio_5000_to_500")) {
    std::cout << ", at 5,000 " << result["ratio_5000_to_500"]
              << " times the cost at 500";
  }
  std::cout << "\n";
  return 0;
}

}  // namespace
}  // namespace tilefarm

int main(int argc, char** argv) {
  tilefarm::Options options;
  options.program = TILEFARM_SOURCE_DIR "/tests/perf/programs/mm_relu_1024.py";
  CLI::App app("What one more trial costs the server", "flat_cost");
  app.add_flag("--json", options.json, "one JSON object");
  app.add_option("--trials", options.trials, "trials of the job")
      ->check(CLI::Range(2, 1000000));
  app.add_option("--target", options.target, "what to tune for");
  app.add_option("program", options.program, "a TVMScript file");
  CLI11_PARSE(app, argc, argv);
  return tilefarm::Run(options);
}
