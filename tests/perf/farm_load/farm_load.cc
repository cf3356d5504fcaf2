// Measures how large a farm one server can serve:
//
//   farm_load [--json FILE] [--seconds S] [--rate R] [--workers N,...]
//   farm_load --check --workers 60 --seconds 2 --rate 300
//
// A real tune-server with mutual TLS, in a process and on a core of its own,
// and simulated workers (fleet.h) in this process on the other core. Each has a
// TCP connection, which is counted at the server. The work is that of jobs
// whose candidates a former server had proposed and not granted
// (prepared_jobs.h): the search is not measured here, everything else is real.
//
// Reports, for each number of workers at the same rate, durable results per
// second, server CPU per result, lease latency and memory per worker; then, for
// the first and the last number, the server's maximum rate and that of the
// disk. With --check it reports no times, but fails unless every acknowledged
// result is in the database exactly once and every worker had its share.
#include <sched.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file_limit.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"
#include "tests/perf/farm_load/fleet.h"
#include "tests/perf/farm_load/observe.h"
#include "tests/perf/farm_load/prepared_jobs.h"
#include "tests/support/process.h"

namespace tilefarm::load {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSlots = 2;  // of a real worker: one runs, one builds
constexpr int kJobs = 4;
constexpr int kServerCpu = 0, kFleetCpu = 1;
constexpr absl::Duration kPatience = absl::Seconds(60);
// Until caches are warm and every worker has its leases.
constexpr absl::Duration kWarmUp = absl::Seconds(2);

struct Options {
  std::vector<int> workers = {10, 100, 1000};
  double seconds = 8;
  double rate = 2500;
  double most_rate = 8000;
  std::string folder;
  std::string json;
  bool check = false;
  bool pin = true;
};

// A temporary folder with certificates.
struct Place {
  testing::TempDir dir;
  std::string Cert(const std::string& file) const {
    return dir.File("certs/" + file);
  }
};

// The service time for this rate with N workers; one worker answers no earlier.
absl::Duration ServiceFor(int workers, double rate) {
  return absl::Seconds(workers / rate);
}

double Percentile(std::vector<float> values, double share) {
  if (values.empty()) return 0;
  const auto at =
      static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + static_cast<long>(at),
                   values.end());
  return values[at];
}

void PinTo(int cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  sched_setaffinity(0, sizeof(cpus), &cpus);
}

class Run {
 public:
  Run(const Options& options, const Place& place, int workers, double rate)
      : options_(options), place_(place), workers_(workers), rate_(rate) {}

  absl::StatusOr<Json> Do() {
    const std::string database =
        place_.dir.File(absl::StrCat("run-", workers_, "-", rate_, ".db"));
    const double at_most =
        rate_ * (options_.seconds + absl::ToDoubleSeconds(kWarmUp) + 2) +
        workers_ * kSlots;
    TF_RETURN_IF_ERROR(
        PrepareJobs(database, kJobs, static_cast<int64_t>(at_most) + 1000));
    bytes_before_ = FileBytes(database);
    TF_RETURN_IF_ERROR(StartServer(database));
    Fleet fleet({.server = address_,
                 .ca = place_.Cert("ca.crt"),
                 .cert = place_.Cert("worker-load.crt"),
                 .key = place_.Cert("worker-load.key"),
                 .fingerprint = driver::Fingerprint(),
                 .workers = workers_,
                 .service = ServiceFor(workers_, rate_)});
    Json report = {{"workers", workers_}, {"offered_per_second", rate_}};
    const absl::Status done = Load(fleet, report);
    fleet.Close();
    const Totals totals = fleet.totals();
    server_->Kill(SIGTERM);
    const auto code = server_->Wait(absl::Seconds(20));
    if (!done.ok()) {
      return absl::Status(done.code(),
                          absl::StrCat(std::string(done.message()), "; ",
                                       totals.why, "\n", server_->errors()));
    }
    if (code != 0) {
      return absl::InternalError(
          absl::StrCat("the server ended badly: ", server_->errors()));
    }
    TF_RETURN_IF_ERROR(Verify(database, totals, report));
    return report;
  }

 private:
  absl::Status StartServer(const std::string& database) {
    std::vector<std::string> command;
    for (const std::string& part :
         {std::string(TILEFARM_BIN_DIR "/tune-server"), std::string("--db"),
          database, std::string("--listen"), std::string("127.0.0.1:0"),
          std::string("--tls-cert"), place_.Cert("server.crt"),
          std::string("--tls-key"), place_.Cert("server.key"),
          std::string("--tls-client-ca"), place_.Cert("ca.crt"),
          std::string("--timeout"), std::string("former_hold=0")}) {
      command.push_back(part);
    }
    // The child inherits the affinity of the thread that starts it.
    if (options_.pin) PinTo(kServerCpu);
    server_ = testing::Process::Spawn(std::move(command));
    if (options_.pin) PinTo(kFleetCpu);
    const auto address =
        server_ == nullptr
            ? std::nullopt
            : server_->WaitForOutput("listening on ", absl::Seconds(120));
    if (!address.has_value()) {
      return absl::UnavailableError(
          absl::StrCat("the server does not start: ",
                       server_ == nullptr ? "" : server_->errors()));
    }
    address_ = *address;
    return absl::OkStatus();
  }

  absl::Status Load(Fleet& fleet, Json& report) {
    Quiet();
    const ProcessView empty = Look(server_->pid());
    const absl::Duration dialled = Clock::Real().Monotonic();
    TF_RETURN_IF_ERROR(fleet.Connect(kPatience));
    report["connect_seconds"] =
        absl::ToDoubleSeconds(Clock::Real().Monotonic() - dialled);
    Quiet();
    const ProcessView idle = Look(server_->pid());
    report["server_connections"] = idle.sockets - empty.sockets;
    report["idle_kib_per_worker"] =
        (idle.resident_kib - empty.resident_kib) / workers_;
    fleet.Go(kSlots);
    absl::SleepFor(kWarmUp);
    const ProcessView first = Look(server_->pid());
    fleet.StartWindow();
    const absl::Duration start = Clock::Real().Monotonic();
    absl::SleepFor(absl::Seconds(options_.seconds));
    const Seen seen = fleet.EndWindow();
    const double took =
        absl::ToDoubleSeconds(Clock::Real().Monotonic() - start);
    const ProcessView last = Look(server_->pid());
    TF_RETURN_IF_ERROR(fleet.Settle(kPatience));
    Quiet();
    const ProcessView end = Look(server_->pid());
    report["durable_per_second"] =
        static_cast<double>(seen.acknowledged) / took;
    report["server_load"] = (last.cpu_seconds - first.cpu_seconds) / took;
    // All CPU time of the server for these results, including the jobs' own
    // bookkeeping (which may come late).
    report["cpu_seconds_from_first_lease"] = end.cpu_seconds - idle.cpu_seconds;
    report["lease_p50_ms"] = Percentile(seen.lease_milliseconds, 0.5);
    report["lease_p99_ms"] = Percentile(seen.lease_milliseconds, 0.99);
    report["lease_max_ms"] = Percentile(seen.lease_milliseconds, 1);
    report["loaded_kib"] = last.resident_kib;
    report["loaded_kib_per_worker"] =
        (last.resident_kib - empty.resident_kib) / workers_;
    report["server_threads"] = last.threads;
    return absl::OkStatus();
  }

  // Waits, for a limited time, until the server is idle.
  void Quiet() {
    for (int i = 0; i < 40; ++i) {
      const double before = Look(server_->pid()).cpu_seconds;
      absl::SleepFor(absl::Milliseconds(300));
      if (Look(server_->pid()).cpu_seconds - before < 0.02) return;
    }
  }

  absl::Status Verify(const std::string& path, const Totals& totals,
                      Json& report) {
    TF_ASSIGN_OR_RETURN(const DatabaseView database, LookAtDatabase(path));
    int64_t missing = 0;
    for (const std::string& id : totals.acknowledged) {
      if (!database.candidates.contains(id)) ++missing;
    }
    std::set<std::string> once(totals.acknowledged.begin(),
                               totals.acknowledged.end());
    const auto starved = std::count(totals.leases_of_worker.begin(),
                                    totals.leases_of_worker.end(), 0);
    report["results"] = totals.results;
    report["records"] = database.records;
    report["cpu_ms_per_result"] =
        report["cpu_seconds_from_first_lease"].get<double>() * 1e3 /
        static_cast<double>(std::max<int64_t>(totals.results, 1));
    report["acknowledged_and_missing"] = missing;
    report["workers_without_a_lease"] = starved;
    report["superseded"] = totals.superseded;
    report["cancelled_leases"] = totals.cancelled;
    report["streams_ended"] = totals.ended;
    report["bytes_per_record"] =
        (FileBytes(path) - bytes_before_) /
        static_cast<double>(std::max<int64_t>(database.records, 1));
    std::vector<std::string> wrong;
    const auto expect = [&](bool holds, const std::string& what) {
      if (!holds) wrong.push_back(what);
    };
    expect(missing == 0, "acknowledged results are not in the database");
    expect(once.size() == totals.acknowledged.size(),
           "a candidate was acknowledged twice");
    expect(database.records == static_cast<int64_t>(database.candidates.size()),
           "a candidate has two records");
    expect(database.records == static_cast<int64_t>(once.size()),
           "records and acknowledgements differ in number");
    expect(!once.empty(), "nothing was acknowledged");
    expect(database.intact, "PRAGMA integrity_check failed");
    expect(starved == 0, "a worker got no lease");
    expect(totals.superseded == 0 && totals.cancelled == 0,
           "leases were taken back");
    expect(totals.ended == 0, "the server ended streams");
    expect(report["server_connections"] == workers_,
           "workers share connections");
    if (wrong.empty()) return absl::OkStatus();
    std::string all = absl::StrCat(workers_, " workers:");
    for (const std::string& one : wrong) absl::StrAppend(&all, "\n  ", one);
    return absl::InternalError(absl::StrCat(all, "\n", report.dump(2)));
  }

  const Options& options_;
  const Place& place_;
  const int workers_;
  const double rate_;
  std::unique_ptr<testing::Process> server_;
  std::string address_;
  double bytes_before_ = 0;
};

void Print(const Json& run) {
  std::printf(
      "%7d  %7.0f  %8.0f  %6.3f  %5.0f %%  %6.2f  %6.2f  %7.2f  "
      "%6.0f  %6.0f\n",
      run["workers"].get<int>(), run["offered_per_second"].get<double>(),
      run["durable_per_second"].get<double>(),
      run["cpu_ms_per_result"].get<double>(),
      run["server_load"].get<double>() * 100, run["lease_p50_ms"].get<double>(),
      run["lease_p99_ms"].get<double>(), run["lease_max_ms"].get<double>(),
      run["idle_kib_per_worker"].get<double>(),
      run["loaded_kib_per_worker"].get<double>());
  std::fflush(stdout);
}

absl::Status Main(const Options& options) {
  RaiseFileLimit();
  Place place;
  const testing::CommandResult made =
      testing::RunCommand({TILEFARM_SOURCE_DIR "/deploy/make-certs",
                           place.dir.File("certs"), "--worker", "load"});
  if (made.exit_code != 0) {
    return absl::InternalError(absl::StrCat("make-certs: ", made.errors));
  }
  if (options.pin) PinTo(kFleetCpu);
  Json report = {{"runs", Json::array()}};
  std::printf(
      "workers  offered   durable  CPU ms  server  lease ms              "
      "  KiB a worker\n"
      "         /s        /s        a result  load     p50     p99"
      "      max    idle  loaded\n");
  const auto run = [&](int workers, double rate) -> absl::Status {
    TF_ASSIGN_OR_RETURN(Json one, Run(options, place, workers, rate).Do());
    Print(one);
    report["runs"].push_back(std::move(one));
    return absl::OkStatus();
  };
  for (const int workers : options.workers) {
    TF_RETURN_IF_ERROR(run(workers, options.rate));
  }
  if (!options.check) {
    if (options.most_rate > 0) {
      const std::set<int> ends = {options.workers.front(),
                                  options.workers.back()};
      for (const int workers : ends) {
        TF_RETURN_IF_ERROR(run(workers, options.most_rate));
      }
    }
    const int bytes = static_cast<int>(
        report["runs"].back()["bytes_per_record"].get<double>());
    for (const int group : {1, 32, 256}) {
      TF_ASSIGN_OR_RETURN(const double rows,
                          DurableRowsPerSecond(place.dir.path(), group, bytes,
                                               /*seconds=*/2));
      report["disk_limit"].push_back({{"group", group},
                                      {"bytes_per_row", bytes},
                                      {"rows_per_second", rows},
                                      {"commits_per_second", rows / group}});
      std::printf(
          "the disk, rows of %d bytes in groups of %d: %.0f rows/s, "
          "%.0f commits/s\n",
          bytes, group, rows, rows / group);
    }
  }
  if (!options.json.empty()) {
    std::ofstream(options.json) << report.dump(2) << "\n";
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tilefarm::load

int main(int argc, char** argv) {
  tilefarm::load::Options options;
  CLI::App app("How much of a farm one server carries.");
  app.add_option("--workers", options.workers, "Runs, by number of workers")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "Measured in each run")
      ->capture_default_str();
  app.add_option("--rate", options.rate, "Results a second that are offered")
      ->capture_default_str();
  app.add_option("--most", options.most_rate,
                 "... and once more by the first and the last number, more "
                 "than the server can do; 0: not")
      ->capture_default_str();
  app.add_option("--json", options.json, "A file for the report");
  app.add_flag("--check", options.check,
               "Whether results are right, at this rate alone; no pinning");
  CLI11_PARSE(app, argc, argv);
  if (options.check) options.pin = false;
  const absl::Status status = tilefarm::load::Main(options);
  if (!status.ok()) {
    std::cerr << "farm_load: " << status.message() << "\n";
    return 1;
  }
  return 0;
}
