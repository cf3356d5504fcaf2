// Devices that fail, come and go, and are administered, with real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/e2e/farm_fixture.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;

class DeviceHealthTest : public FarmFixture {
 protected:
  Json Device(const std::string& name) {
    for (const Json& device : TuneJson({"devices"})) {
      if (device["name"] == name) return device;
    }
    return {{"state", "unknown"}, {"reason", ""}};
  }
  bool WaitForDevice(const std::string& name, const std::string& state) {
    return Until([&] { return Device(name)["state"] == state; }, 60);
  }
  bool WaitForWork(const std::string& name) {
    return Until(
        [&] {
          const Json state = Device(name)["state"];
          return state == "idle" || state == "busy";
        },
        60);
  }
  bool Logged(const std::string& name, const std::string& action) {
    for (const Json& entry : TuneJson({"devices", "log", name})) {
      if (entry["action"] == action) return true;
    }
    return false;
  }
  // A runner that fails while the file `broken` exists, and records its pid.
  std::string BreakableRunner() {
    const std::string script = dir_.Write(
        "runner.sh", "#!/bin/sh\n[ -e " + dir_.File("broken") +
                         " ] && exit 1\necho $$ > " + dir_.File("pid") +
                         "\nexec " + Bin("tune-runner") + " \"$@\"\n");
    chmod(script.c_str(), 0755);
    return script;
  }
  void Break() {
    dir_.Write("broken", "");
    std::ifstream file(dir_.File("pid"));
    pid_t pid = 0;
    if (file >> pid && pid > 0) kill(pid, SIGKILL);
  }
  void Repair() { std::filesystem::remove(dir_.File("broken")); }
  std::unique_ptr<Process> StartBreakable(const std::string& name) {
    return Process::Spawn({Bin("rpc-worker"), "--server", address_, "--name",
                           name, "--state-dir", dir_.File("state-" + name),
                           "--lock-dir", dir_.File("locks"), "--runner-command",
                           BreakableRunner()});
  }
};

TEST_F(DeviceHealthTest, DrainedDeviceFinishesAndGetsNothingUntilResumed) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartWorker("w0");
  ASSERT_TRUE(WaitForWork("w0")) << worker->errors();
  const std::string id = Submit(100);
  ASSERT_TRUE(WaitForTrials(id, 5));
  const Json drained =
      TuneJson({"devices", "drain", "w0", "--reason", "a new fan"});
  EXPECT_THAT(std::string(drained["reason"]), HasSubstr("a new fan"));
  ASSERT_TRUE(WaitForDevice("w0", "drained"));
  // Its leases have ended properly, and no other was started. A result leaves
  // the spool once it is stored, which may be after its lease has ended.
  ASSERT_TRUE(Until([&] { return Spooled("w0").empty(); }));
  const size_t stored = Export().size();
  EXPECT_LT(stored, 100u);
  for (const Json& record : Export()) {
    EXPECT_NE(record["status"], "device_lost");
  }
  EXPECT_FALSE(Until([&] { return Export().size() != stored; }, 1));
  EXPECT_EQ(Tune({"measure", program_, "--target", "host,cores=1"}).exit_code,
            1);
  TuneJson({"devices", "resume", "w0"});
  EXPECT_TRUE(WaitForState(id, "done"));
  EXPECT_EQ(Job(id)["trials_done"], 100);
  EXPECT_TRUE(Logged("w0", "drain"));
  EXPECT_TRUE(Logged("w0", "resume"));
}

TEST_F(DeviceHealthTest, QuarantineByAnOperatorSurvivesRestarts) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  auto worker = StartWorker("w0");
  ASSERT_TRUE(WaitForWork("w0")) << worker->errors();
  TuneJson({"devices", "quarantine", "w0", "--reason", "smoke"});
  server_->Kill(SIGKILL);
  server_->Wait();
  worker.reset();
  ASSERT_NO_FATAL_FAILURE(StartServer());
  EXPECT_EQ(Device("w0")["state"], "offline");
  EXPECT_THAT(std::string(Device("w0")["reason"]), HasSubstr("smoke"));
  worker = StartWorker("w0");
  ASSERT_TRUE(WaitForDevice("w0", "quarantined")) << worker->errors();
  const std::string id = Submit(3);
  ASSERT_TRUE(Until([&] { return Job(id)["state"] == "running"; }));
  EXPECT_EQ(Tune({"measure", program_, "--target", "host,cores=1"}).exit_code,
            1);
  EXPECT_EQ(Job(id)["trials_done"], 0);
  TuneJson({"devices", "resume", "w0"});
  EXPECT_TRUE(WaitForState(id, "done"));
}

TEST_F(DeviceHealthTest, BrokenRunnerIsQuarantinedAndComesBackWhenRepaired) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartBreakable("w0");
  ASSERT_TRUE(WaitForWork("w0")) << worker->errors();
  const std::string id = Submit(40);
  ASSERT_TRUE(WaitForTrials(id, 5));
  Break();
  ASSERT_TRUE(WaitForDevice("w0", "quarantined")) << worker->errors();
  EXPECT_THAT(std::string(Device("w0")["reason"]),
              HasSubstr("its canary failed"));
  Repair();
  EXPECT_TRUE(WaitForState(id, "done"));
  EXPECT_EQ(Job(id)["trials_done"], 40);
  EXPECT_TRUE(Logged("w0", "quarantine"));
  EXPECT_TRUE(Logged("w0", "recover"));
  // Candidates are not blamed for the runner's failure.
  for (const Json& record : Export()) {
    EXPECT_NE(record["status"], "run_error") << record["error"];
  }
}

TEST_F(DeviceHealthTest, ASlowedDeviceIsPausedAndItsRecordsAreMeasuredAgain) {
  server_ = Process::Spawn({Bin("tune-server"), "--db", db(), "--listen",
                            "127.0.0.1:0", "--health", "canary_period=1s"});
  const auto address = server_->WaitForOutput("listening on ");
  ASSERT_TRUE(address.has_value()) << server_->errors();
  address_ = *address;
  const auto worker =
      Process::Spawn({Bin("rpc-worker"), "--server", address_, "--name", "w0",
                      "--state-dir", dir_.File("state-w0"), "--lock-dir",
                      dir_.File("locks"), "--runner-command",
                      TILEFARM_SLOW_RUNNER " " + dir_.File("factor") + " " +
                          Bin("tune-runner")});
  ASSERT_TRUE(WaitForWork("w0")) << worker->errors();
  const std::string id = Submit(100);
  ASSERT_TRUE(WaitForTrials(id, 10));
  dir_.Write("factor", "20");
  ASSERT_TRUE(WaitForDevice("w0", "paused")) << worker->errors();
  EXPECT_THAT(std::string(Device("w0")["reason"]),
              HasSubstr("times its known"));
  std::filesystem::remove(dir_.File("factor"));
  EXPECT_TRUE(WaitForState(id, "done"));
  EXPECT_EQ(Job(id)["trials_done"], 100);
  EXPECT_TRUE(Logged("w0", "pause"));
  EXPECT_TRUE(Logged("w0", "recover"));
  EXPECT_TRUE(Logged("w0", "remeasure"));
}

TEST_F(DeviceHealthTest, ADeviceThatWasNeverWellMeasuresNothing) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  dir_.Write("broken", "");
  const auto worker = StartBreakable("w0");
  ASSERT_TRUE(WaitForDevice("w0", "quarantined")) << worker->errors();
  const std::string id = Submit(5);
  ASSERT_TRUE(Until([&] { return Job(id)["state"] == "running"; }));
  EXPECT_TRUE(Export().empty());
  Repair();
  EXPECT_TRUE(WaitForState(id, "done"));
}

TEST_F(DeviceHealthTest, FlappingDeviceRestsAndTheReasonSaysSo) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  for (int i = 0; i < 8; ++i) {
    const auto worker = StartWorker("w0");
    ASSERT_TRUE(Until([&] {
      const Json state = Device("w0")["state"];
      return state != "unknown" && state != "offline";
    })) << worker->errors();
    worker->Kill(SIGKILL);
    worker->Wait();
    ASSERT_TRUE(WaitForDevice("w0", "offline"));
  }
  EXPECT_TRUE(Logged("w0", "rest"));
  // Not a failure: it works again by itself.
  const auto worker = StartWorker("w0");
  EXPECT_TRUE(WaitForWork("w0")) << worker->errors();
  EXPECT_FALSE(Logged("w0", "quarantine"));
}

TEST_F(DeviceHealthTest, AReservedDeviceIsForOneUser) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartWorker("w0");
  ASSERT_TRUE(WaitForWork("w0")) << worker->errors();
  TuneJson({"devices", "reserve", "w0", "--for", "30m", "--user", "someone"});
  EXPECT_EQ(Device("w0")["reserved_for"], "someone");
  const std::string id = Submit(3);
  EXPECT_NE(Tune({"measure", program_, "--target", "host,cores=1"}).exit_code,
            0);
  EXPECT_EQ(Job(id)["trials_done"], 0);
  // If no user is named, for the user who asks.
  TuneJson({"devices", "reserve", "w0", "--for", "30m"});
  EXPECT_TRUE(WaitForState(id, "done"));
  TuneJson({"devices", "release", "w0"});
  EXPECT_EQ(Device("w0")["reserved_for"], "");
}

TEST_F(DeviceHealthTest, CommandLineSaysWhatIsWrong) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const CommandResult unknown = Tune({"devices", "drain", "nobody"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.errors, HasSubstr("no device 'nobody'"));
  EXPECT_EQ(Tune({"devices", "log", "nobody"}).exit_code, 3);
  EXPECT_EQ(Tune({"devices", "log"}).exit_code, 0);
  EXPECT_EQ(Tune({"devices", "list"}).exit_code, 0);
  EXPECT_EQ(Tune({"devices", "drain"}).exit_code, 2);
  EXPECT_EQ(Tune({"devices", "reserve", "x"}).exit_code, 2);
  EXPECT_EQ(Tune({"devices", "reserve", "x", "--for", "soon"}).exit_code, 2);

  const auto worker = StartWorker("w0");
  ASSERT_TRUE(WaitForWork("w0")) << worker->errors();
  const CommandResult connected = Tune({"devices", "forget", "w0"});
  EXPECT_EQ(connected.exit_code, 1);
  EXPECT_THAT(connected.errors, HasSubstr("is connected"));
  worker->Kill(SIGKILL);
  ASSERT_TRUE(WaitForDevice("w0", "offline"));
  EXPECT_EQ(TuneJson({"devices", "forget", "w0"})["state"], "forgotten");
  EXPECT_TRUE(TuneJson({"devices"}).empty());

  // A requirement that no device can have is an error; one that no device has
  // now is a wait.
  const std::vector<std::string> submit = {
      "submit", program_, "--target", "host,cores=1", "--trials", "3"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), submit.begin(), submit.end());
    return Tune(more);
  };
  const CommandResult colour = with({"--require", "colour=red"});
  EXPECT_EQ(colour.exit_code, 1);
  EXPECT_THAT(colour.errors, HasSubstr("no device has a property 'colour'"));
  EXPECT_EQ(with({"--require", "cores=4", "--require", "cores>=8"}).exit_code,
            1);
  EXPECT_EQ(with({"--priority", "11"}).exit_code, 2);
  EXPECT_EQ(with({"--require", "label.rack=b2", "--priority", "3"}).exit_code,
            0);
  const auto plain = StartWorker("plain");
  ASSERT_TRUE(WaitForWork("plain")) << plain->errors();
  const std::string id = TuneJson({"jobs"}).back()["id"];
  const auto labelled =
      Process::Spawn({Bin("rpc-worker"), "--server", address_, "--name",
                      "labelled", "--label", "rack=b2", "--state-dir",
                      dir_.File("state-l"), "--lock-dir", dir_.File("locks")});
  EXPECT_TRUE(WaitForState(id, "done"));
  for (const Json& record : Export()) {
    EXPECT_THAT(std::string(record["device"]), HasSubstr("labelled@"));
  }
}

}  // namespace
}  // namespace tilefarm::testing
