// Devices and the database: orders that survive the server, the audit log, and
// measurements that are repeated.
#include <gmock/gmock.h>

#include <atomic>

#include "absl/time/clock.h"
#include "server/jobs/canary.h"
#include "server/jobs/jobs.h"
#include "tests/server/jobs_fixture.h"
#include "tests/support/until.h"

namespace tilefarm::jobs {
namespace {

using database::AuditEntry;
using ::testing::Contains;
using testing::FakeWorker;
using ::testing::Field;
using ::testing::HasSubstr;
using testing::Measured;

class DeviceAdministrationTest : public JobsTest {
 protected:
  DeviceAdministrationTest() { RestartWithCanary(); }

  void RestartWithCanary() {
    jobs_.reset();
    farm_.reset();
    farm::Timeouts timeouts;
    timeouts.tick = absl::Milliseconds(10);
    timeouts.watch_interval = absl::Milliseconds(10);
    timeouts.search_poll = absl::Milliseconds(5);
    farm_ = std::make_unique<farm::Farm>(
        farm::FarmOptions{.timeouts = timeouts,
                          .health = rules_,
                          .canary = CanaryMaker(),
                          .fingerprint = testing::kFingerprint});
    jobs_ = std::make_unique<Jobs>(
        *store_, *farm_,
        JobsOptions{.timeouts = timeouts,
                    .fingerprint = testing::kFingerprint,
                    .search_factory = testing::FakeSearchFactory()});
    ASSERT_TRUE(jobs_->Recover().ok());
    jobs_->Start();
  }
  farm::DeviceStatus Device(const std::string& name = "w") {
    for (const farm::DeviceStatus& device : farm_->Devices()) {
      if (device.name == name) return device;
    }
    ADD_FAILURE() << "no device " << name;
    return {};
  }
  std::vector<AuditEntry> Log(const std::string& name = "w") {
    return *jobs_->devices().Log(name, 1000);
  }

  farm::HealthRules rules_;
};

TEST_F(DeviceAdministrationTest, TheCanaryRunsOnOneCore) {
  const auto item = MakeCanary(testing::TestTarget());
  ASSERT_TRUE(item.has_value());
  EXPECT_EQ(item->target.cores, 1);
  EXPECT_FALSE(item->scheduled_hash.empty());
}

TEST_F(DeviceAdministrationTest, OrdersOutliveTheServer) {
  {
    FakeWorker worker(*farm_, "w", Quick);
    ASSERT_TRUE(jobs_->devices()
                    .SetOrder("w", farm::Order::kQuarantined, "ann", "smoke")
                    .ok());
    EXPECT_EQ(Device().state, farm::DeviceState::kQuarantined);
  }
  RestartWithCanary();
  EXPECT_EQ(Device().state, farm::DeviceState::kOffline);
  EXPECT_THAT(Device().reason, HasSubstr("quarantined by ann: smoke"));
  EXPECT_EQ(Device().model, "Test Processor");
  FakeWorker worker(*farm_, "w", Quick);
  EXPECT_EQ(Device().state, farm::DeviceState::kQuarantined);
  ASSERT_TRUE(
      jobs_->devices().SetOrder("w", farm::Order::kNone, "bob", "").ok());
  EXPECT_TRUE(
      Until([&] { return Device().state == farm::DeviceState::kIdle; }));
  EXPECT_THAT(
      Log(), Contains(::testing::AllOf(Field(&AuditEntry::actor, "ann"),
                                       Field(&AuditEntry::action, "quarantine"),
                                       Field(&AuditEntry::detail, "smoke"))));
  EXPECT_THAT(Log(),
              Contains(::testing::AllOf(Field(&AuditEntry::actor, "bob"),
                                        Field(&AuditEntry::action, "resume"))));
}

TEST_F(DeviceAdministrationTest, ReservationsOutliveTheServerAndEnd) {
  {
    FakeWorker worker(*farm_, "w", Quick);
    ASSERT_TRUE(
        jobs_->devices().Reserve("w", "ann", absl::Minutes(30), "ann").ok());
  }
  RestartWithCanary();
  EXPECT_EQ(Device().reserved_for, "ann");
  FakeWorker worker(*farm_, "w", Quick);
  JobSpec spec = Spec(3);
  spec.user = "bob";
  const std::string id = *jobs_->Submit(spec);
  WaitFor(id, [](const JobSnapshot& s) {
    return s.message.find("reserved for ann") != std::string::npos;
  });
  ASSERT_TRUE(jobs_->devices().Release("w", "bob").ok());
  EXPECT_EQ(WaitForEnd(id).state, JobState::kDone);
}

TEST_F(DeviceAdministrationTest, ClearErrorsForWhatIsNotThere) {
  DeviceAdministration& devices = jobs_->devices();
  for (const absl::Status& status :
       {devices.SetOrder("x", farm::Order::kDrained, "ann", ""),
        devices.Reserve("x", "ann", absl::Minutes(1), "ann"),
        devices.Release("x", "ann"), devices.Forget("x", "ann"),
        devices.Log("x", 10).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), HasSubstr("no device 'x'"));
  }
  FakeWorker worker(*farm_, "w", Quick);
  EXPECT_EQ(devices.Forget("w", "ann").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(devices.Reserve("w", "ann", absl::ZeroDuration(), "ann").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(devices.SetOrder("w", farm::Order::kDrained, "ann", "a\nb").code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DeviceAdministrationTest, AForgottenDeviceLeavesOnlyItsLog) {
  { FakeWorker worker(*farm_, "w", Quick); }
  ASSERT_TRUE(jobs_->devices().Forget("w", "ann").ok());
  EXPECT_TRUE(farm_->Devices().empty());
  RestartWithCanary();
  EXPECT_TRUE(farm_->Devices().empty());
  EXPECT_THAT(Log(), Contains(Field(&AuditEntry::action, "forget")));
}

// A device slows down after its canary; the next canary detects it, and it
// recovers.
TEST_F(DeviceAdministrationTest, SuspectMeasurementsAreMeasuredAgain) {
  rules_.canary_period = absl::Hours(1);
  rules_.first_retry = absl::Milliseconds(50);
  rules_.last_retry = absl::Milliseconds(50);
  RestartWithCanary();
  std::atomic<double> factor = 1;
  const auto measure = [&](const farm::Lease& lease) {
    const bool canary = lease.item.purpose == farm::Purpose::kCanary;
    const double sequence = static_cast<double>(lease.item.sequence);
    return std::make_optional(
        Measured(factor * (canary ? 1e-4 : 1e-3 + 1e-6 * sequence)));
  };
  std::string trusted;
  {
    FakeWorker worker(*farm_, "w", measure);
    trusted = *jobs_->Submit(Spec(5));
    EXPECT_EQ(WaitForEnd(trusted).trials_done, 5);
  }
  {
    // Each connection of a new process gets a canary: earlier measurements stay
    // valid, later ones do not.
    FakeWorker worker(*farm_, testing::TestHello("w", "boot-2"), measure);
    ASSERT_TRUE(
        Until([&] { return Device().state == farm::DeviceState::kIdle; }));
    factor = 4;
    JobSpec spec = Spec(5);
    spec.targets[0].key = testing::TestTarget(1).Key();
    EXPECT_EQ(WaitForEnd(*jobs_->Submit(spec)).trials_done, 5);
  }
  const std::vector<database::Record> before = Records();
  ASSERT_EQ(before.size(), 10u);
  FakeWorker worker(*farm_, testing::TestHello("w", "boot-3"), measure);
  ASSERT_TRUE(
      Until([&] { return Device().state == farm::DeviceState::kPaused; }));
  factor = 1;
  const auto corrected = [&] {
    for (const database::Record& record : Records()) {
      if (record.median_seconds < 3e-3) continue;
      if (record.remeasured.empty() ||
          record.remeasured.back().median_seconds > 3e-3) {
        return false;
      }
    }
    return true;
  };
  EXPECT_TRUE(Until(corrected)) << [&] {
    std::string text;
    for (const AuditEntry& entry : Log()) {
      text += entry.action + ": " + entry.detail + "\n";
    }
    for (const database::Record& record : Records()) {
      text += std::to_string(record.id) + " " + record.device + " " +
              std::to_string(record.median_seconds) + ":";
      for (const database::Record& again : record.remeasured) {
        text += " " + std::to_string(again.median_seconds);
      }
      text += "\n";
    }
    return text;
  }();
  // Records before the last good canary do not change.
  const std::vector<database::Record> after = Records();
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].job_id != trusted) continue;
    EXPECT_EQ(after[i].remeasured.size(), before[i].remeasured.size());
  }
  for (const char* action : {"pause", "recover", "remeasure"}) {
    EXPECT_THAT(Log(), Contains(Field(&AuditEntry::action, action)));
  }
  // Nothing is left to do.
  EXPECT_TRUE(Until([&] {
    const auto rows = store_->device_tables().ListCanaries();
    return rows.ok() && rows->size() == 1 && rows->front().suspect_through == 0;
  }));
}

// The same during a job: its search gets the repeated measurements.
TEST_F(DeviceAdministrationTest, ARunningSearchLearnsWhatWasMeasuredAgain) {
  rules_.canary_period = absl::Hours(1);
  rules_.first_retry = rules_.last_retry = absl::Milliseconds(50);
  RestartWithCanary();
  std::atomic<double> factor = 1;
  // The job does not end by itself: trials stop when the test sets this.
  std::atomic<bool> mute = false;
  const auto measure =
      [&](const farm::Lease& lease) -> std::optional<farm::Measurement> {
    const bool trial = lease.item.purpose == farm::Purpose::kTrial;
    if (trial && mute) return std::nullopt;
    const bool canary = lease.item.purpose == farm::Purpose::kCanary;
    return Measured(factor * (canary ? 1e-4 : 1e-3));
  };
  const std::string id = *jobs_->Submit(Spec(1'000'000));
  {
    FakeWorker worker(*farm_, "w", measure);
    ASSERT_TRUE(
        Until([&] { return Device().state == farm::DeviceState::kBusy; }));
    factor = 4;
    WaitFor(id, [&](const JobSnapshot& s) { return s.trials_done > 20; });
    mute = true;
  }
  const auto corrections = [&] {
    int lines = 0;
    const std::vector<std::string> log = *store_->ReadJobLog(id);
    for (const std::string& line : log) {
      lines += line.find("\"correct\"") != std::string::npos;
    }
    return lines;
  };
  EXPECT_EQ(corrections(), 0);
  FakeWorker worker(*farm_, testing::TestHello("w", "boot-2"), measure);
  EXPECT_TRUE(
      Until([&] { return Device().state == farm::DeviceState::kPaused; }));
  factor = 1;
  mute = false;
  EXPECT_TRUE(Until([&] { return corrections() > 0; }));
  mute = true;
  EXPECT_DOUBLE_EQ(jobs_->Get(id)->best_seconds(), 1e-3);
}

TEST_F(DeviceAdministrationTest, TheKnownTimeOutlivesTheServer) {
  {
    FakeWorker worker(*farm_, "w", [](const farm::Lease&) {
      return std::make_optional(Measured(1e-4));
    });
    ASSERT_TRUE(
        Until([&] { return Device().state == farm::DeviceState::kIdle; }));
    ASSERT_TRUE(Until(
        [&] { return !store_->device_tables().ListCanaries()->empty(); }));
  }
  RestartWithCanary();
  FakeWorker worker(*farm_, "w", [](const farm::Lease&) {
    return std::make_optional(Measured(5e-4));
  });
  EXPECT_TRUE(
      Until([&] { return Device().state == farm::DeviceState::kPaused; }));
  EXPECT_THAT(Device().reason, HasSubstr("5.0 times its known 100.0 us"));
}

TEST_F(DeviceAdministrationTest, UnsteadyRecordsSaySo) {
  farm::Completion completion;
  completion.measurement = Measured(1e-3);
  completion.measurement.device_state = R"({"clock_mhz":3000.0})";
  EXPECT_EQ(MakeRecord(completion, absl::Now()).device_state,
            R"({"clock_mhz":3000.0})");
  completion.unsteady = true;
  EXPECT_EQ(MakeRecord(completion, absl::Now()).device_state,
            R"({"clock_mhz":3000.0,"unsteady":true})");
}

TEST_F(DeviceAdministrationTest,
       AUsersFloodOfJobsDoesNotKeepAnothersFromStarting) {
  // Without a device, started jobs keep running.
  for (int i = 0; i < 40; ++i) {
    JobSpec spec = Spec(1'000'000);
    spec.user = "ann";
    spec.targets[0].key = "x86-64:znver4,cores=" + std::to_string(i + 1);
    ASSERT_TRUE(jobs_->Submit(spec).ok());
  }
  JobSpec spec = Spec(5);
  spec.user = "bob";
  spec.targets[0].key = "x86-64:znver4,cores=99";
  const std::string id = *jobs_->Submit(spec);
  EXPECT_EQ(WaitFor(id,
                    [](const JobSnapshot& s) {
                      return s.state == JobState::kRunning;
                    })
                .state,
            JobState::kRunning);
}

TEST_F(DeviceAdministrationTest, UsersWhoTuneTheSameTakeTurns) {
  // One after the other, since they share measurements. Without a device, only
  // cancelling ends them.
  const auto submit = [&](const std::string& user) {
    JobSpec spec = Spec(1'000'000);
    spec.user = user;
    return *jobs_->Submit(spec);
  };
  const auto runs = [&](const std::string& id) {
    return WaitFor(id, [](const JobSnapshot& s) {
             return s.state == JobState::kRunning;
           }).state == JobState::kRunning;
  };
  const std::string first = submit("ann"), second = submit("ann");
  ASSERT_TRUE(runs(first));
  const std::string other = submit("bob");
  ASSERT_TRUE(jobs_->Cancel(first).ok());
  EXPECT_TRUE(runs(other));
  EXPECT_EQ(jobs_->Get(second)->state, JobState::kQueued);
  ASSERT_TRUE(jobs_->Cancel(other).ok());
  EXPECT_TRUE(runs(second));
}

}  // namespace
}  // namespace tilefarm::jobs
