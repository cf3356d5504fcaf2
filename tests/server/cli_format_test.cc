// The JSON shapes are contracts: changing one of these texts breaks users.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "server/cli/format.h"
#include "server/cli/task_table.h"

namespace tilefarm::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::JobUpdate Update() {
  v1::JobUpdate update;
  update.set_job_id("job-1");
  update.set_state("running");
  update.set_trials(256);
  update.set_trials_done(64);
  (*update.mutable_by_status())["ok"] = 60;
  (*update.mutable_by_status())["compile_error"] = 4;
  update.set_best_seconds(2e-3);
  update.set_best_gflops(107.4);
  update.set_unscheduled_seconds(0.5);
  update.set_trials_per_second(6.4);
  update.set_seconds_left(30);
  v1::TaskProgress& task = *update.add_tasks();
  task.set_function("mm");
  task.set_workload_hash("abc");
  task.set_trials_done(64);
  task.set_best_seconds(2e-3);
  task.set_best_gflops(107.4);
  task.set_unscheduled_seconds(0.5);
  v1::Device& device = *update.add_devices();
  device.set_name("w0");
  device.set_state("busy");
  return update;
}

TEST(AlgorithmsText, NamesFunctionsByWhatTheyDo) {
  v1::JobUpdate update;
  EXPECT_EQ(AlgorithmsText(update), "");
  const auto add = [&](const std::string& name,
                       const std::vector<std::string>& algorithms,
                       bool changes) {
    v1::TaskProgress& task = *update.add_tasks();
    task.set_function(name);
    task.mutable_algorithms()->Add(algorithms.begin(), algorithms.end());
    task.set_changes_floats(changes);
  };
  add("plain", {}, false);
  add("dot", {"tensorized with x"}, false);
  EXPECT_EQ(AlgorithmsText(update), "dot: tensorized with x\n");
  for (int i = 1; i <= 6; ++i) {
    add(absl::StrCat("conv", i), {"winograd F(4,3)", "partial sums"}, true);
  }
  add("conv1", {"winograd F(4,3)", "partial sums"}, true);  // another target
  EXPECT_THAT(
      AlgorithmsText(update),
      testing::StartsWith("dot: tensorized with x\n"
                          "conv1, conv2, conv3, conv4 and 2 more: winograd "
                          "F(4,3), partial sums; rounds differently\n"
                          "(rounds differently than the program"));
}

TEST(CliFormatTest, JobsJson) {
  v1::ListJobsResponse jobs;
  v1::Job& job = *jobs.add_jobs();
  job.set_id("job-1");
  job.set_state("done");
  job.set_user("ann");
  job.set_program("mm.py");
  job.set_target("x86-64:znver4,cores=1");
  job.set_trials(256);
  job.set_trials_done(256);
  job.set_best_seconds(0.5);
  job.set_created("2026-01-31T12:00:59Z");
  EXPECT_EQ(JobsJson(jobs).dump(),
            R"([{"id":"job-1","state":"done","user":"ann","program":"mm.py",)"
            R"("target":"x86-64:znver4,cores=1","trials":256,)"
            R"("trials_done":256,"best_seconds":0.5,"error":"",)"
            R"("created":"2026-01-31T12:00:59Z","ended":""}])");
  job.set_best_seconds(0);
  EXPECT_THAT(JobsJson(jobs).dump(), HasSubstr(R"("best_seconds":null)"));
  EXPECT_EQ(JobsJson({}).dump(), "[]");
  job.add_more_targets("aarch64:cortex-a72,cores=1");
  EXPECT_THAT(JobsJson(jobs).dump(),
              HasSubstr(R"("ended":"","targets":["x86-64:znver4,cores=1",)"
                        R"("aarch64:cortex-a72,cores=1"]})"));
  EXPECT_THAT(JobsTable(jobs), HasSubstr("  x86-64:znver4,cores=1 + "
                                         "aarch64:cortex-a72,cores=1  "));
  EXPECT_THAT(JobsTable(jobs), HasSubstr("job-1  2026-01-31 12:00  done  "));
}

TEST(CliFormatTest, DevicesJson) {
  v1::ListDevicesResponse devices;
  v1::Device& device = *devices.add_devices();
  device.set_name("w0");
  device.set_state("incompatible");
  device.set_reason("its compiler is older");
  device.set_model("Test Processor");
  device.set_target("x86-64:znver4,cores=4");
  device.set_last_seen("2026-01-02T03:04:05Z");
  (*device.mutable_libraries())["openblas"] = "0.3.21";
  EXPECT_EQ(DevicesJson(devices).dump(),
            R"([{"name":"w0","state":"incompatible",)"
            R"("reason":"its compiler is older","model":"Test Processor",)"
            R"("target":"x86-64:znver4,cores=4",)"
            R"("last_seen":"2026-01-02T03:04:05Z","trials_per_second":0.0,)"
            R"("libraries":{"openblas":"0.3.21"},"labels":{},)"
            R"("reserved_for":"","reserved_until":"","unsteady":false,)"
            R"("clock_mhz":null,"temperature_c":null,"isolation":""}])");
  EXPECT_THAT(DevicesTable(devices), HasSubstr("  -    -     -          its "));
  (*device.mutable_labels())["rack"] = "b2";
  device.set_reserved_for("ann");
  device.set_reserved_until("2026-01-02T04:04:05Z");
  device.set_unsteady(true);
  device.set_clock_mhz(3000);
  device.set_temperature_c(61.5);
  device.set_isolation("seccomp+netns");
  EXPECT_THAT(
      DevicesJson(devices).dump(),
      HasSubstr(R"("labels":{"rack":"b2"},"reserved_for":"ann",)"
                R"("reserved_until":"2026-01-02T04:04:05Z","unsteady":true,)"
                R"("clock_mhz":3000.0,"temperature_c":61.5,)"
                R"("isolation":"seccomp+netns"})"));
  EXPECT_THAT(DevicesTable(devices),
              HasSubstr("  3000  62 C  seccomp+netns  its "));
  EXPECT_EQ(DevicesJson({}).dump(), "[]");
}

TEST(CliFormatTest, AuditJson) {
  v1::DeviceLogResponse log;
  v1::AuditEntry& entry = *log.add_entries();
  entry.set_id(7);
  entry.set_at("2026-01-02T03:04:05Z");
  entry.set_actor("ann");
  entry.set_action("drain");
  entry.set_subject("w0");
  entry.set_detail("a new fan");
  EXPECT_EQ(AuditJson(log.entries()).dump(),
            R"([{"id":7,"at":"2026-01-02T03:04:05Z","actor":"ann",)"
            R"("action":"drain","subject":"w0","detail":"a new fan"}])");
  EXPECT_EQ(AuditJson(AuditEntries()).dump(), "[]");
  EXPECT_THAT(AuditTable(log.entries(), "DEVICE"),
              HasSubstr("ann  drain  w0      a new fan"));
}

TEST(CliFormatTest, TokensJson) {
  v1::ListTokensResponse tokens;
  v1::Token& token = *tokens.add_tokens();
  token.set_name("board1");
  token.set_role("worker");
  token.set_created("2026-01-02T03:04:05Z");
  token.set_expires("2026-04-02T03:04:05Z");
  EXPECT_EQ(TokensJson(tokens).dump(),
            R"([{"name":"board1","role":"worker",)"
            R"("created":"2026-01-02T03:04:05Z",)"
            R"("expires":"2026-04-02T03:04:05Z","revoked":""}])");
  EXPECT_EQ(TokensTable(tokens),
            "NAME    ROLE    CREATED               EXPIRES               "
            "REVOKED\n"
            "board1  worker  2026-01-02T03:04:05Z  2026-04-02T03:04:05Z  "
            "never\n");
  EXPECT_EQ(TokensJson({}).dump(), "[]");
}

TEST(CliFormatTest, StatsJson) {
  EXPECT_EQ(
      StatsJson(3, 1, {{"ok", 2}, {"run_error", 1}}).dump(),
      R"({"records":3,"workloads":1,"by_status":{"ok":2,"run_error":1}})");
  EXPECT_EQ(StatsJson(0, 0, {}).dump(),
            R"({"records":0,"workloads":0,"by_status":{}})");
}

TEST(CliFormatTest, UpdateJson) {
  EXPECT_EQ(
      UpdateJson(Update()).dump(),
      R"({"job_id":"job-1","state":"running","trials":256,"trials_done":64,)"
      R"("by_status":{"compile_error":4,"ok":60},"best_seconds":0.002,)"
      R"("best_gflops":107.4,"unscheduled_seconds":0.5,)"
      R"("projected_seconds":null,"projected_untuned_seconds":null,)"
      R"("trials_per_second":6.4,"seconds_left":30.0,"message":"",)"
      R"("error":"","tasks":[{"function":"mm","workload":"abc",)"
      R"("trials_done":64,"best_seconds":0.002,"best_gflops":107.4,)"
      R"("unscheduled_seconds":0.5,"default_seconds":null,"weight":null,)"
      R"("share":null,"flops":0.0,"shape":"","algorithms":[],)"
      R"("keeps_floats":true,"state":""}],)"
      R"("devices":[{"name":"w0","state":"busy"}]})");
}

// An update of a job for two targets, of which the second has no results yet.
v1::JobUpdate UpdateOfTwoTargets() {
  v1::JobUpdate update = Update();
  update.set_best_seconds(0);
  update.mutable_tasks(0)->set_target("x86-64:znver4,cores=1");
  v1::TaskProgress& task = *update.add_tasks();
  task.set_function("mm");
  task.set_workload_hash("abc");
  task.set_target("aarch64:cortex-a72,cores=1");
  update.set_message("waits for a device");
  return update;
}

TEST(CliFormatTest, UpdateOfSeveralTargets) {
  const v1::JobUpdate update = UpdateOfTwoTargets();
  EXPECT_THAT(
      UpdateJson(update).dump(),
      HasSubstr(
          R"("tasks":[{"function":"mm","workload":"abc","trials_done":64,)"
          R"("best_seconds":0.002,"best_gflops":107.4,)"
          R"("unscheduled_seconds":0.5,"default_seconds":null,"weight":null,)"
          R"("share":null,"flops":0.0,"shape":"","algorithms":[],)"
          R"("keeps_floats":true,"state":"",)"
          R"("target":"x86-64:znver4,cores=1"},)"
          R"({"function":"mm","workload":"abc","trials_done":0,)"
          R"("best_seconds":null,"best_gflops":null,)"
          R"("unscheduled_seconds":null,"default_seconds":null,"weight":null,)"
          R"("share":null,"flops":0.0,"shape":"","algorithms":[],)"
          R"("keeps_floats":true,"state":"",)"
          R"("target":"aarch64:cortex-a72,cores=1"}])"));
  EXPECT_EQ(ProgressLine(update),
            "running 64/256 trials, 6.4/s, 0:30 left | x86-64:znver4,cores=1: "
            "64 trials, best 2.000 ms | aarch64:cortex-a72,cores=1: 0 trials, "
            "best - | waits for a device | compile_error 4, ok 60 | devices: 1 "
            "busy");
  EXPECT_EQ(Summary(update),
            "job-1 running, 64/256 trials\n"
            "FUNCTION  TARGET                      UNSCHEDULED  TUNED     "
            "SPEED-UP  GFLOPS  TRIALS\n"
            "mm        x86-64:znver4,cores=1       500.000 ms   2.000 ms  "
            "250.0x    107.4   64\n"
            "mm        aarch64:cortex-a72,cores=1  -            -         "
            "-         -       0\n");
}

// An update of a model of two kernels, of which one runs four times.
v1::JobUpdate UpdateOfAModel() {
  v1::JobUpdate update = Update();
  v1::TaskProgress& first = *update.mutable_tasks(0);
  first.set_weight(1);
  first.set_default_seconds(4e-3);
  first.set_flops(2.5e6);
  first.set_shape("1x64 float32");
  first.set_state("negligible");
  v1::TaskProgress& second = *update.add_tasks();
  second.set_function("conv");
  second.set_workload_hash("def");
  second.set_trials_done(8);
  second.set_best_seconds(1.5e-3);
  second.set_best_gflops(8);
  second.set_weight(4);
  second.set_flops(1.2e10);
  second.set_state("tuning");
  return update;
}

TEST(CliFormatTest, UpdateOfAModel) {
  v1::JobUpdate update = UpdateOfAModel();
  EXPECT_THAT(
      UpdateJson(update).dump(),
      HasSubstr(
          R"("projected_seconds":0.008,"projected_untuned_seconds":null,)"));
  EXPECT_THAT(
      UpdateJson(update).dump(),
      HasSubstr(
          R"("unscheduled_seconds":0.5,"default_seconds":0.004,"weight":1.0,)"
          R"("share":0.25,"flops":2500000.0,"shape":"1x64 float32",)"
          R"("algorithms":[],"keeps_floats":true,)"
          R"("state":"negligible"},{"function":"conv","workload":"def",)"
          R"("trials_done":8,"best_seconds":0.0015,"best_gflops":8.0,)"
          R"("unscheduled_seconds":null,"default_seconds":null,)"
          R"("weight":4.0,"share":0.75,"flops":12000000000.0,"shape":"",)"
          R"("algorithms":[],"keeps_floats":true,)"
          R"("state":"tuning"}])"));
  EXPECT_THAT(UpdateJson(update).dump(), Not(HasSubstr("latency_seconds")));
  EXPECT_EQ(ProgressLine(update),
            "running 64/256 trials, 6.4/s, 0:30 left | projected 8.000 ms | "
            "compile_error 4, ok 60 | devices: 1 busy");
  EXPECT_EQ(
      Summary(update),
      "job-1 running, 64/256 trials\n"
      "FUNCTION  OUTPUT        FLOP    WEIGHT  UNSCHEDULED  TUNED     SPEED-UP "
      " SHARE  TRIALS  STATE\n"
      "conv      -             12.00G  4       -            1.500 ms  -        "
      " 75.0%  8       tuning\n"
      "mm        1x64 float32  2.50M   1       500.000 ms   2.000 ms  250.0x   "
      " 25.0%  64      negligible\n"
      "projected 8.000 ms\n");
  update.mutable_tasks(1)->set_default_seconds(2e-3);
  update.mutable_tasks(1)->set_unscheduled_seconds(1);
  EXPECT_THAT(UpdateJson(update).dump(),
              HasSubstr(R"("projected_untuned_seconds":0.012,)"));
  EXPECT_THAT(Summary(update),
              HasSubstr("projected 8.000 ms, 12.000 ms with default schedules, "
                        "4.500 s unscheduled\n"));
  // A task without a time: nothing is known of the whole.
  update.mutable_tasks(0)->set_best_seconds(0);
  EXPECT_THAT(UpdateJson(update).dump(),
              HasSubstr(R"("projected_seconds":null,)"));
  EXPECT_THAT(UpdateJson(update).dump(), HasSubstr(R"("share":null)"));
  EXPECT_THAT(Summary(update), Not(HasSubstr("projected")));
}

TEST(CliFormatTest, SumsOfAModelAreOfOneTarget) {
  v1::JobUpdate update = UpdateOfAModel();
  update.mutable_tasks(0)->set_target("a");
  update.mutable_tasks(1)->set_target("b");
  const std::string json = UpdateJson(update).dump();
  EXPECT_THAT(json, HasSubstr(R"("projected_seconds":null,)"));
  EXPECT_THAT(json, HasSubstr(R"("share":1.0)"));
  EXPECT_THAT(Summary(update), HasSubstr("TARGET"));
}

TEST(CliFormatTest, LatencyOfAModel) {
  ModelLatency latency;
  EXPECT_THAT(UpdateJson(UpdateOfAModel(), &latency).dump(),
              HasSubstr(R"("unfused_seconds":null,"untuned_seconds":null,)"
                        R"("latency_seconds":null})"));
  EXPECT_EQ(LatencyText(latency), "");
  latency = {.unfused_seconds = 3e-3,
             .untuned_seconds = 2e-3,
             .latency_seconds = 1e-3};
  EXPECT_THAT(UpdateJson(UpdateOfAModel(), &latency).dump(),
              HasSubstr(R"("unfused_seconds":0.003,"untuned_seconds":0.002,)"
                        R"("latency_seconds":0.001})"));
  EXPECT_EQ(LatencyText(latency),
            "measured 1.000 ms, 2.000 ms with default schedules, 3.000 ms "
            "without fusion");
}

TEST(CliFormatTest, LinesAreCutToTheTerminal) {
  EXPECT_EQ(FitLines("head\nlong line\n", "last", 0, 0),
            "head\nlong line\nlast");
  EXPECT_EQ(FitLines("head\nlong line\n", "last one", 6, 24),
            "head\nlong \nlast ");
  EXPECT_EQ(FitLines("head\nlong line\n", "last", 80, 2), "head\nlast");
  EXPECT_EQ(FitLines("", "last", 80, 1), "last");
}

TEST(CliFormatTest, ProgressLine) {
  EXPECT_EQ(ProgressLine(Update()),
            "running 64/256 trials, 6.4/s, 0:30 left | 2.000 ms, 250.0x, 107.4 "
            "GFLOPS | compile_error 4, ok 60 | devices: 1 busy");
  v1::JobUpdate update = Update();
  update.set_message("measures the fastest again, round 2");
  EXPECT_THAT(ProgressLine(update),
              HasSubstr("GFLOPS | measures the fastest again, round 2 | "));
  update.set_message("model: 57 % of pairs in order");
  EXPECT_EQ(ProgressLine(update), ProgressLine(Update()));
  EXPECT_THAT(ProgressLine(update, /*verbose=*/true),
              HasSubstr(" | model: 57 % of pairs in order | "));
}

TEST(CliFormatTest, ShortTarget) {
  EXPECT_EQ(ShortTarget("x86-64:znver5,cores=2,-movdiri,+avx512fp16"),
            "x86-64:znver5,cores=2");
  EXPECT_EQ(ShortTarget("cuda:sm_90a"), "cuda:sm_90a");
}

TEST(CliFormatTest, Seconds) {
  EXPECT_EQ(Seconds(2.5), "2.500 s");
  EXPECT_EQ(Seconds(2.5e-3), "2.500 ms");
  EXPECT_EQ(Seconds(2.5e-6), "2.500 us");
  EXPECT_EQ(Seconds(0), "-");
}

TEST(CliFormatTest, TableAlignsColumns) {
  EXPECT_EQ(Table({{"A", "LONG", ""}, {"word", "x", "note"}, {"a", "b", ""}}),
            "A     LONG\nword  x     note\na     b\n");
}

}  // namespace
}  // namespace tilefarm::cli
