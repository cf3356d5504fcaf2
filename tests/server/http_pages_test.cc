// The pages of the HTTP port for probes and Prometheus.
#include "server/services/http_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "absl/time/clock.h"

namespace tilefarm::services {
namespace {

using ::testing::HasSubstr;

ServerFigures SomeFigures() {
  ServerFigures figures;
  figures.release = "1.2";
  figures.fingerprint = "llvm-\"19\"";
  figures.jobs = {{"queued", 0}, {"running", 2}};
  figures.devices = {{"idle", 1}, {"offline", 3}};
  figures.each_device = {{.name = "box",
                          .busy_seconds = 12.5,
                          .clock_hertz = 3.7e9,
                          .temperature_celsius = 61},
                         {.name = "rack"}};
  figures.farm.leases_running = 1;
  figures.farm.candidates_ready = 7;
  figures.farm.canary_seconds = {{"a\\b\n", 1.5e-5}};
  figures.results = {{"ok", 1000000}, {"run_error", 2}};
  figures.results_not_stored = 4;
  figures.writer.commit_seconds.Observe(0.002);
  figures.writer.commit_seconds.Observe(0.0025);
  figures.writer.commit_seconds.Observe(100);
  figures.gate = {.unauthenticated = 5, .streams = 6};
  figures.http_answers = {{200, 8}, {403, 1}};
  figures.database_bytes = 4096;
  figures.process.cpu_seconds = 1.25;
  return figures;
}

constexpr char kGolden[] = R"(# HELP tilefarm_build_info Always 1.
# TYPE tilefarm_build_info gauge
tilefarm_build_info{release="1.2",fingerprint="llvm-\"19\""} 1
# HELP tilefarm_jobs Jobs by state, ended ones included.
# TYPE tilefarm_jobs gauge
tilefarm_jobs{state="queued"} 0
tilefarm_jobs{state="running"} 2
# HELP tilefarm_devices Devices by state, as tune devices shows it.
# TYPE tilefarm_devices gauge
tilefarm_devices{state="idle"} 1
tilefarm_devices{state="offline"} 3
# HELP tilefarm_device_canary_seconds Known time of the device's canary: its best median so far.
# TYPE tilefarm_device_canary_seconds gauge
tilefarm_device_canary_seconds{device="a\\b\n"} 1.5e-05
# HELP tilefarm_device_busy_seconds_total Time in which the device measured, since the server started.
# TYPE tilefarm_device_busy_seconds_total counter
tilefarm_device_busy_seconds_total{device="box"} 12.5
tilefarm_device_busy_seconds_total{device="rack"} 0
# HELP tilefarm_device_clock_hertz Clock at the device's latest measurement, where it is known.
# TYPE tilefarm_device_clock_hertz gauge
tilefarm_device_clock_hertz{device="box"} 3700000000
# HELP tilefarm_device_temperature_celsius Temperature at the device's latest measurement, where its system tells.
# TYPE tilefarm_device_temperature_celsius gauge
tilefarm_device_temperature_celsius{device="box"} 61
# HELP tilefarm_leases Leases on devices by phase.
# TYPE tilefarm_leases gauge
tilefarm_leases{phase="granted"} 0
tilefarm_leases{phase="building"} 0
tilefarm_leases{phase="built"} 0
tilefarm_leases{phase="running"} 1
# HELP tilefarm_candidates Candidates in the farm: ready (wait for a device), leased, held (wait for a former process's result), doubted (wait for a canary), committing.
# TYPE tilefarm_candidates gauge
tilefarm_candidates{state="ready"} 7
tilefarm_candidates{state="leased"} 0
tilefarm_candidates{state="held"} 0
tilefarm_candidates{state="doubted"} 0
tilefarm_candidates{state="committing"} 0
# HELP tilefarm_results_total Results stored durably since the start, by status.
# TYPE tilefarm_results_total counter
tilefarm_results_total{status="ok"} 1000000
tilefarm_results_total{status="run_error"} 2
# HELP tilefarm_results_not_stored_total Results acknowledged without being stored: their candidate has a record, or the database refuses them.
# TYPE tilefarm_results_not_stored_total counter
tilefarm_results_not_stored_total 4
# HELP tilefarm_results_waiting Results that wait for their commit.
# TYPE tilefarm_results_waiting gauge
tilefarm_results_waiting 0
# HELP tilefarm_commit_seconds Time of a commit of a group of results, tries that failed included.
# TYPE tilefarm_commit_seconds histogram
tilefarm_commit_seconds_count 3
tilefarm_commit_seconds_sum 100.0045
tilefarm_commit_seconds_bucket{le="0.001"} 0
tilefarm_commit_seconds_bucket{le="0.0025"} 2
tilefarm_commit_seconds_bucket{le="0.005"} 2
tilefarm_commit_seconds_bucket{le="0.01"} 2
tilefarm_commit_seconds_bucket{le="0.025"} 2
tilefarm_commit_seconds_bucket{le="0.05"} 2
tilefarm_commit_seconds_bucket{le="0.1"} 2
tilefarm_commit_seconds_bucket{le="0.25"} 2
tilefarm_commit_seconds_bucket{le="1"} 2
tilefarm_commit_seconds_bucket{le="5"} 2
tilefarm_commit_seconds_bucket{le="30"} 2
tilefarm_commit_seconds_bucket{le="+Inf"} 3
# HELP tilefarm_commit_failures_total Commits that failed and are tried again.
# TYPE tilefarm_commit_failures_total counter
tilefarm_commit_failures_total 0
# HELP tilefarm_database_bytes Size of the database and of its write-ahead log.
# TYPE tilefarm_database_bytes gauge
tilefarm_database_bytes{file="main"} 4096
tilefarm_database_bytes{file="wal"} 0
# HELP tilefarm_streams Calls that last: workers, watches and measurements; imports and exports.
# TYPE tilefarm_streams gauge
tilefarm_streams{kind="stream"} 6
tilefarm_streams{kind="transfer"} 0
# HELP tilefarm_refusals_total Calls refused before they were read: no valid credential, not this role, too many.
# TYPE tilefarm_refusals_total counter
tilefarm_refusals_total{reason="unauthenticated"} 5
tilefarm_refusals_total{reason="permission_denied"} 0
tilefarm_refusals_total{reason="resource_exhausted"} 0
# HELP tilefarm_http_requests_total Answers of this port by status.
# TYPE tilefarm_http_requests_total counter
tilefarm_http_requests_total{code="200"} 8
tilefarm_http_requests_total{code="403"} 1
# HELP process_cpu_seconds_total User and system CPU time.
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 1.25
# HELP process_resident_memory_bytes Resident memory.
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 0
# HELP process_virtual_memory_bytes Virtual memory.
# TYPE process_virtual_memory_bytes gauge
process_virtual_memory_bytes 0
# HELP process_open_fds Open file descriptors.
# TYPE process_open_fds gauge
process_open_fds 0
# HELP process_max_fds Limit of file descriptors.
# TYPE process_max_fds gauge
process_max_fds 0
# HELP process_threads Threads.
# TYPE process_threads gauge
process_threads 0
# HELP process_start_time_seconds When the process started, Unix time.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 0
)";

TEST(MetricsTest, TheExpositionIsAContract) {
  EXPECT_EQ(MetricsPage(SomeFigures()), kGolden);
}

TEST(MetricsTest, TheProcessIsThisOne) {
  const ProcessFigures figures = ReadProcessFigures();
  EXPECT_GT(figures.resident_bytes, 1 << 20);
  EXPECT_GT(figures.virtual_bytes, figures.resident_bytes);
  EXPECT_GE(figures.threads, 1);
  EXPECT_GE(figures.open_files, 3);
  EXPECT_GE(figures.max_files, figures.open_files);
  EXPECT_GT(figures.start_time, 1.7e9);
}

class PagesTest : public ::testing::Test {
 protected:
  http::Response Get(const std::string& path) {
    return pages_.Answer({.path = path, .host = "localhost"}, {{200, 3}});
  }

  bool BecomesReady() {
    for (int i = 0; i < 1000; ++i) {
      if (Get("/readyz").status == 200) return true;
      absl::SleepFor(absl::Milliseconds(30));
    }
    return false;
  }

  std::string stuck_;
  absl::Status write_;
  std::atomic<bool> hang_ = false;
  Pages pages_{PagesOptions{.figures = SomeFigures,
                            .stuck = [this] { return stuck_; },
                            .write =
                                [this] {
                                  while (hang_)
                                    absl::SleepFor(absl::Milliseconds(5));
                                  return write_;
                                }}};
};

TEST_F(PagesTest, ALoopThatStandsStillIsUnhealthy) {
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_TRUE(BecomesReady());
  stuck_ = "the conductor has not moved for 70s";
  EXPECT_EQ(Get("/healthz").status, 503);
  EXPECT_THAT(Get("/readyz").body, HasSubstr("the conductor"));
  EXPECT_EQ(Get("/nothing").status, 404);
  EXPECT_THAT(Get("/metrics").body,
              HasSubstr("tilefarm_http_requests_total{code=\"200\"} 3\n"));
}

TEST_F(PagesTest, ADatabaseThatTakesNoWritesIsHealthyAndNotReady) {
  write_ = absl::UnavailableError("disk full");
  const http::Response full = Get("/readyz");
  EXPECT_EQ(full.status, 503);
  EXPECT_THAT(full.body, HasSubstr("disk full"));
  EXPECT_EQ(Get("/healthz").status, 200);
}

TEST_F(PagesTest, ADiskThatHangsHoldsUpOnePageOnce) {
  hang_ = true;
  EXPECT_THAT(Get("/readyz").body, HasSubstr("does not answer"));
  EXPECT_EQ(Get("/readyz").status, 503);
  EXPECT_EQ(Get("/healthz").status, 200);
  hang_ = false;
  // It recovers by itself.
  EXPECT_TRUE(BecomesReady());
}

}  // namespace
}  // namespace tilefarm::services
