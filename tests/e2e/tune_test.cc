// From a program's text to the tuned library, on real processes.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "tests/e2e/farm_fixture.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;

class TuneTest : public FarmFixture {};

// Calls the library's function and returns the largest error of relu(A B);
// `packed`: calls SYMBOL_packed, with B packed by SYMBOL_pack.
double LargestError(const std::string& library, const std::string& symbol,
                    bool packed = false) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  if (handle == nullptr) return INFINITY;
  using Function = int (*)(void*, void*, void*);
  const auto function = reinterpret_cast<Function>(
      dlsym(handle, (packed ? symbol + "_packed" : symbol).c_str()));
  EXPECT_NE(function, nullptr) << symbol;
  if (function == nullptr) return INFINITY;
  constexpr int kN = 128;
  std::vector<float> a(kN * kN), b(kN * kN), c(kN * kN, 1e30f);
  for (int i = 0; i < kN * kN; ++i) {
    a[i] = static_cast<float>(i * 7 % 31 - 15) / 16;
    b[i] = static_cast<float>(i * 11 % 29 - 14) / 16;
  }
  std::vector<float> b_packed;
  if (packed) {
    const auto bytes = reinterpret_cast<size_t (*)(int)>(
        dlsym(handle, (symbol + "_packed_bytes").c_str()));
    const auto pack = reinterpret_cast<int (*)(int, const void*, void*)>(
        dlsym(handle, (symbol + "_pack").c_str()));
    EXPECT_TRUE(bytes != nullptr && pack != nullptr);
    if (bytes == nullptr || pack == nullptr) return INFINITY;
    b_packed.assign(bytes(1) / sizeof(float), NAN);
    EXPECT_EQ(pack(1, b.data(), b_packed.data()), 0);
  }
  float* const second = packed ? b_packed.data() : b.data();
  EXPECT_EQ(function(a.data(), second, c.data()), 0);
  double largest = 0;
  for (int i = 0; i < kN; ++i) {
    for (int j = 0; j < kN; ++j) {
      double sum = 0;
      for (int k = 0; k < kN; ++k) {
        sum += static_cast<double>(a[i * kN + k]) * b[k * kN + j];
      }
      largest = std::max(largest, std::abs(std::max(sum, 0.0) - c[i * kN + j]));
    }
  }
  dlclose(handle);
  return largest;
}

TEST_F(TuneTest, FromTheProgramToTheLibrary) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartWorker("w0");

  const CommandResult run = Tune({"run", program_, "--target", "host,cores=1",
                                  "--trials", "24", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  // One object per line; the last one has the result.
  std::istringstream lines(run.output);
  Json last;
  for (std::string line; std::getline(lines, line);) {
    last = Json::parse(line);
  }
  EXPECT_EQ(last["state"], "done");
  EXPECT_EQ(last["trials_done"], 24);
  EXPECT_GT(last["best_gflops"], 0);
  EXPECT_GT(last["unscheduled_seconds"], last["best_seconds"]);

  const Json devices = TuneJson({"devices"});
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0]["name"], "w0");
  const Json stats = TuneJson({"db", "stats"});
  EXPECT_EQ(stats["records"], 24);
  EXPECT_EQ(stats["workloads"], 1);
  const Json job = Job(last["job_id"]);
  EXPECT_EQ(job["state"], "done");
  EXPECT_EQ(job["program"], "mm_relu.py");

  // The best record, in every output form.
  Json best = TuneJson({"best", program_, "--target", "host,cores=1"});
  EXPECT_EQ(best["status"], "ok");
  EXPECT_EQ(best["verified"], true);
  // "host" names this device; its key any of the kind.
  EXPECT_EQ(best["reason"], "exact device model");
  EXPECT_THAT(std::string(TuneJson(
                  {"best", program_, "--target", best["target"]})["reason"]),
              HasSubstr("same microarchitecture"));
  for (const char* form : {"program", "trace", "asm"}) {
    const CommandResult print =
        Tune({"best", program_, "--target", "host,cores=1", "--print", form});
    EXPECT_EQ(print.exit_code, 0) << print.errors;
    EXPECT_FALSE(print.output.empty());
  }
  EXPECT_EQ(
      Tune({"best", program_, "--target", "x86-64:skylake,cores=1"}).exit_code,
      3);

  // Its trace, given explicitly: another measurement of the same record.
  const std::string trace = dir_.Write(
      "best.trace",
      Tune({"best", program_, "--target", "host,cores=1", "--print", "trace"})
          .output);
  const Json measured = TuneJson(
      {"measure", program_, "--target", "host,cores=1", "--trace", trace});
  EXPECT_EQ(measured["status"], "ok");
  EXPECT_EQ(measured["candidate_id"], best["candidate_id"]);
  EXPECT_EQ(TuneJson({"db", "stats"})["records"], 24);
  // The measurement counts, and may make another record the fastest.
  best = TuneJson({"best", program_, "--target", "host,cores=1"});

  // Another database, made of the export, answers the same, without a server.
  const std::string copy = dir_.File("copy.db");
  const std::string jsonl =
      dir_.Write("all.jsonl", Tune({"db", "export"}).output);
  const Json imported = TuneJson({"db", "import", jsonl, "--db", copy});
  EXPECT_EQ(imported["added"], 24);
  EXPECT_EQ(TuneJson({"db", "import", jsonl})["known"], 24);
  EXPECT_EQ(Tune({"db", "export", "--db", copy}).output,
            Tune({"db", "export"}).output);
  EXPECT_EQ(TuneJson({"best", program_, "--target", "host,cores=1", "--db",
                      copy})["trace"],
            best["trace"]);
  EXPECT_EQ(TuneJson({"best", program_, "--target", "host,cores=1", "--db",
                      copy})["reason"],
            "exact device model");

  // A record that claims to hold another program for the workload is stored,
  // but never used.
  Json variant =
      Json::parse(ReadFile(jsonl).substr(0, ReadFile(jsonl).find('\n')));
  std::string text = variant["program"];
  text.replace(text.find("T.max("), 6, "T.min(");
  variant["program"] = text;
  variant["candidate_id"] = std::string(64, 'f');
  const std::string variants =
      dir_.Write("variant.jsonl", variant.dump() + "\n");
  const CommandResult warned =
      Tune({"db", "import", variants, "--db", copy, "--json"});
  EXPECT_EQ(warned.exit_code, 0) << warned.errors;
  EXPECT_THAT(warned.errors, HasSubstr("1 record holds another program"));
  EXPECT_EQ(Json::parse(warned.output),
            (Json{{"added", 1}, {"known", 0}, {"variants", 1}}));
  EXPECT_EQ(TuneJson({"db", "import", variants})["variants"], 1);

  // The library, built from the database of the running server.
  const std::string library = dir_.File("mm_relu.so");
  const CommandResult compiled =
      RunCommand({Bin("tunec"), program_, "--target", "host,cores=1", "--db",
                  db(), "--require-tuned", "-o", library});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.errors;
  EXPECT_LT(LargestError(library, "mm_relu"), 1e-3);
  EXPECT_THAT(compiled.errors, HasSubstr("exact device model"));

  // The same library, built from the server's answer.
  const std::string asked = dir_.File("asked.so");
  const CommandResult by_server = RunCommand(
      {Bin("tunec"), program_, "--target", "host,cores=1", "--server", address_,
       "--require-tuned", "--json", "-o", asked});
  ASSERT_EQ(by_server.exit_code, 0) << by_server.errors;
  const Json built = Json::parse(by_server.output);
  EXPECT_EQ(built["functions"][0]["schedule"], "record");
  EXPECT_EQ(built["functions"][0]["reason"], "exact device model");
  EXPECT_EQ(built["functions"][0]["candidate_id"], best["candidate_id"]);
  EXPECT_EQ(ReadFile(asked), ReadFile(library));
}

TEST_F(TuneTest, RecordsOfAFormerCompilerAreMeasuredAgain) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartWorker("w0");
  ASSERT_EQ(Tune({"run", program_, "--target", "host,cores=1", "--trials", "8"})
                .exit_code,
            0);
  // Nothing is stale yet.
  CommandResult none = Tune({"db", "revalidate"});
  EXPECT_EQ(none.exit_code, 0) << none.errors;
  EXPECT_THAT(none.output, HasSubstr("0 of 0 measured again for "));

  // The fastest of them, as another compiler's, twice as fast; and one of a
  // target that no device has.
  const Json best = TuneJson({"best", program_, "--target", "host,cores=1"});
  Json stale = best;
  stale["fingerprint"] = "llvm-18.1.0+tf3";
  stale["candidate_id"] = std::string(64, 'a');
  for (const char* time :
       {"median_seconds", "ci_low_seconds", "ci_high_seconds"}) {
    stale[time] = best[time].get<double>() / 2;
  }
  Json& seconds = stale["seconds"];
  for (Json& sample : seconds) sample = sample.get<double>() / 2;
  Json elsewhere = stale;
  elsewhere["target"] = "aarch64:cortex-a72,cores=1";
  elsewhere["candidate_id"] = std::string(64, 'b');
  const std::string lines =
      dir_.Write("stale.jsonl", stale.dump() + "\n" + elsewhere.dump() + "\n");
  ASSERT_EQ(TuneJson({"db", "import", lines})["added"], 2);

  const CommandResult done = Tune({"db", "revalidate", "--json"});
  EXPECT_EQ(done.exit_code, 1);
  std::map<std::string, Json> by_target;
  std::istringstream output(done.output);
  for (std::string line; std::getline(output, line);) {
    const Json json = Json::parse(line);
    by_target[json["target"]] = json;
  }
  ASSERT_EQ(by_target.size(), 2u) << done.output << done.errors;
  const Json& here = by_target[best["target"]];
  EXPECT_EQ(here["workload"], best["workload"]);
  EXPECT_EQ(here["stale_fingerprint"], "llvm-18.1.0+tf3");
  EXPECT_EQ(here["error"], nullptr);
  EXPECT_GT(here["seconds"].get<double>(), 0);
  EXPECT_THAT(std::string(by_target["aarch64:cortex-a72,cores=1"]["error"]),
              HasSubstr("a device that matches aarch64"));
  EXPECT_EQ(Tune({"db", "revalidate", "--best", "0"}).exit_code, 2);
  EXPECT_EQ(Tune({"db", "--db", db(), "revalidate"}).exit_code, 2);
}

TEST_F(TuneTest, ConstantsAreLaidOutAheadOfTime) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartWorker("w0");
  std::string text = ReadFile(program_);
  text.insert(text.find("    Y = "),
              "    T.func_attr({\"layout_free_buffers\": [1]})\n");
  const std::string program = dir_.Write("constant_b.py", text);
  const CommandResult run = Tune(
      {"run", program, "--target", "host,cores=1", "--trials", "16", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const Json best = TuneJson({"best", program, "--target", "host,cores=1"});
  EXPECT_EQ(best["status"], "ok");
  EXPECT_EQ(best["protocol"]["layout"], "packed");
  EXPECT_THAT(std::string(best["trace"]), HasSubstr("tilefarm.prepack"));
  EXPECT_THAT(
      Tune({"best", program, "--target", "host,cores=1", "--print", "asm"})
          .output,
      HasSubstr("tilefarm_main_pack"));
  const auto build = [&](std::vector<std::string> more) {
    const std::string library = dir_.File("constant_b.so");
    std::vector<std::string> command = {Bin("tunec"),   program,  "--target",
                                        "host,cores=1", "--json", "-o",
                                        library};
    command.insert(command.end(), more.begin(), more.end());
    const CommandResult compiled = RunCommand(command);
    EXPECT_EQ(compiled.exit_code, 0) << compiled.errors;
    EXPECT_EQ(Json::parse(compiled.output)["functions"][0]["packed_parameters"],
              Json({1}));
    EXPECT_LT(LargestError(library, "mm_relu"), 1e-3);
    EXPECT_LT(LargestError(library, "mm_relu", /*packed=*/true), 1e-3);
  };
  build({"--db", db(), "--require-tuned"});
  // The default schedule packs nothing; its callers need not know this.
  build({});
}

TEST_F(TuneTest, TunecWithoutARecordOnTheServer) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto tunec = [&](std::vector<std::string> more) {
    std::vector<std::string> command = {
        Bin("tunec"), program_, "--target", "host,cores=1",
        "--server",   address_, "-o",       dir_.File("out.so")};
    command.insert(command.end(), more.begin(), more.end());
    return RunCommand(command);
  };
  EXPECT_EQ(tunec({"--require-tuned"}).exit_code, 3);
  EXPECT_EQ(ReadFile(dir_.File("out.so")), "");
  const CommandResult fallback = tunec({});
  EXPECT_EQ(fallback.exit_code, 0) << fallback.errors;
  EXPECT_THAT(fallback.errors, HasSubstr("default schedule, since"));
  EXPECT_LT(LargestError(dir_.File("out.so"), "mm_relu"), 1e-3);
  // If the server does not answer, tunec must not build something slower.
  server_->Kill(SIGKILL);
  server_->Wait();
  const CommandResult away = tunec({});
  EXPECT_EQ(away.exit_code, 1);
  EXPECT_THAT(away.errors, HasSubstr(address_));
}

TEST_F(TuneTest, JobWithoutADeviceWaitsAndCanBeCancelled) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const std::string id = Submit(8);
  EXPECT_TRUE(WaitForState(id, "running"));
  EXPECT_EQ(Tune({"cancel", id}).exit_code, 0);
  EXPECT_TRUE(WaitForState(id, "cancelled"));
  const CommandResult watch = Tune({"watch", id});
  EXPECT_EQ(watch.exit_code, 1);
  EXPECT_THAT(watch.output, HasSubstr("cancelled"));
}

TEST_F(TuneTest, JobsAreFoundByTheStartOfTheirIds) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  EXPECT_EQ(Tune({"watch"}).exit_code, 3);
  const std::string first = Submit(8), second = Submit(8);
  const CommandResult table = Tune({"jobs"});
  EXPECT_THAT(table.output, HasSubstr("SUBMITTED"));
  const Json all = TuneJson({"jobs"});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1]["id"], second);
  EXPECT_EQ(all[0]["created"].get<std::string>().size(), 20u) << all;
  EXPECT_EQ(all[0]["ended"], "");
  EXPECT_EQ(TuneJson({"jobs", "--limit", "1"})[0]["id"], second);
  EXPECT_EQ(TuneJson({"jobs", "--mine"}).size(), 2u);
  EXPECT_EQ(TuneJson({"jobs", "--user", "nobody-else"}).size(), 0u);
  EXPECT_EQ(Tune({"jobs", "--state", "asleep"}).exit_code, 2);
  const CommandResult both = Tune({"cancel", "job-"});
  EXPECT_EQ(both.exit_code, 1);
  EXPECT_THAT(both.errors, HasSubstr("2 jobs start with job-: " + first));
  // Eight characters of a random id.
  const CommandResult cancelled = Tune({"cancel", first.substr(0, 12)});
  EXPECT_EQ(cancelled.exit_code, 0) << cancelled.errors;
  EXPECT_THAT(cancelled.output, HasSubstr(first));
  EXPECT_TRUE(WaitForState(first, "cancelled"));
  EXPECT_EQ(TuneJson({"jobs", "--state", "cancelled"})[0]["id"], first);
  EXPECT_NE(TuneJson({"jobs", "--state", "cancelled"})[0]["ended"], "");
  EXPECT_EQ(Tune({"cancel", second.substr(4)}).exit_code, 0);
  EXPECT_TRUE(WaitForState(second, "cancelled"));
  // The latest one.
  const CommandResult watch = Tune({"watch"});
  EXPECT_EQ(watch.exit_code, 1);
  EXPECT_THAT(watch.errors, HasSubstr(second));
}

TEST_F(TuneTest, CtrlCLeavesTheJobRunningAndSaysHowToComeBack) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  auto run =
      Process::Spawn({Bin("tune"), "run", program_, "--target", "host,cores=1",
                      "--trials", "8", "--server", address_});
  ASSERT_TRUE(Until(
      [&] { return run->errors().find("running") != std::string::npos; }));
  run->Kill(SIGINT);
  EXPECT_EQ(run->Wait(), 130);
  EXPECT_THAT(run->errors(), HasSubstr("tune watch job-"));
  EXPECT_EQ(TuneJson({"jobs"})[0]["state"], "running");
}

TEST_F(TuneTest, BadInputHasItsExitCodes) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const std::string bad = dir_.Write("bad.py", "def x(:\n");
  const CommandResult run = Tune({"run", bad});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.errors, HasSubstr("bad.py:1:"));
  EXPECT_EQ(Tune({"run", dir_.File("none.py")}).exit_code, 1);
  EXPECT_EQ(Tune({"run", program_, "--target", "toaster"}).exit_code, 1);
  EXPECT_EQ(Tune({"run", program_, "--trials", "none"}).exit_code, 2);
  EXPECT_EQ(Tune({"run", program_, "--time", "soon"}).exit_code, 2);
  EXPECT_EQ(Tune({"run", program_, "--model", "oracle"}).exit_code, 2);
  EXPECT_EQ(Tune({"run"}).exit_code, 2);
  EXPECT_EQ(Tune({}).exit_code, 2);
  EXPECT_EQ(Tune({"fly"}).exit_code, 2);
  EXPECT_THAT(Tune({"rnu", program_}).errors,
              HasSubstr("there is no command 'rnu'; the nearest is 'run'"));
  EXPECT_THAT(Tune({"run", program_, "--trails", "4"}).errors,
              HasSubstr("there is no option '--trails'; the nearest is "
                        "'--trials'"));
  EXPECT_EQ(Tune({"watch", "job-none"}).exit_code, 3);
  EXPECT_EQ(Tune({"cancel", "job-none"}).exit_code, 1);
  EXPECT_EQ(Tune({"best", program_, "--target", "host"}).exit_code, 3);
  EXPECT_EQ(Tune({"db", "stats", "--db", dir_.File("none.db")}).exit_code, 1);
  EXPECT_EQ(Tune({"jobs", "--json"}).output, "[]\n");
  EXPECT_EQ(Tune({"devices", "--json"}).output, "[]\n");
  EXPECT_EQ(Tune({"--help"}).exit_code, 0);
  EXPECT_THAT(Tune({"--version"}).output, HasSubstr("fingerprint llvm-"));
  server_->Kill(SIGKILL);
  server_->Wait();
  const CommandResult away = Tune({"jobs"});
  EXPECT_EQ(away.exit_code, 1);
  EXPECT_THAT(away.errors, HasSubstr(address_));
}

TEST_F(TuneTest, ServerKnowsItsLimits) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  // Beyond loopback, a database in use, a port in use.
  const CommandResult open = RunCommand(
      {Bin("tune-server"), "--db", dir_.File("x.db"), "--listen", "0.0.0.0:0"});
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_THAT(open.errors, HasSubstr("loopback"));
  EXPECT_EQ(
      RunCommand({Bin("tune-server"), "--db", db(), "--listen", "127.0.0.1:0"})
          .exit_code,
      1);
  const CommandResult taken = RunCommand(
      {Bin("tune-server"), "--db", dir_.File("y.db"), "--listen", address_});
  EXPECT_EQ(taken.exit_code, 1);
  EXPECT_EQ(taken.errors, "tune-server: cannot listen on " + address_ +
                              ": the address is in use\n");
  EXPECT_FALSE(std::filesystem::exists(dir_.File("y.db")));
  EXPECT_FALSE(std::filesystem::exists(dir_.File("y.db.lock")));
  // TEST-NET-1: nobody's.
  EXPECT_THAT(RunCommand({Bin("tune-server"), "--db", dir_.File("y.db"),
                          "--insecure", "--listen", "192.0.2.1:7070"})
                  .errors,
              HasSubstr("cannot listen on 192.0.2.1:7070: it is no address of "
                        "this machine\n"));
  EXPECT_EQ(RunCommand({Bin("tune-server")}).exit_code, 2);
  EXPECT_THAT(RunCommand({Bin("tune-server"), "--version"}).output,
              HasSubstr("schema "));
  server_->Kill(SIGTERM);
  EXPECT_EQ(server_->Wait(absl::Seconds(10)), 0);
}

// One job without and one with --allow-library, on the same program.
TEST_F(TuneTest, ALibrarysKernelIsACandidateWherePermitted) {
  const std::string matmul = dir_.Write("matmul.py", kMmRelu);
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto worker = StartWorker("w0");
  ASSERT_TRUE(Until([&] { return TuneJson({"devices"}).size() == 1; }));
  const Json libraries = TuneJson({"devices"})[0]["libraries"];

  const std::vector<std::string> job = {"run",          matmul,     "--target",
                                        "host,cores=1", "--trials", "6"};
  const CommandResult without = Tune(job);
  ASSERT_EQ(without.exit_code, 0) << without.errors;
  for (const Json& record : Export()) EXPECT_FALSE(record.contains("library"));

  std::vector<std::string> permitted = job;
  permitted.push_back("--allow-library");
  const CommandResult with = Tune(permitted);
  ASSERT_EQ(with.exit_code, 0) << with.errors;
  std::map<std::string, Json> called;
  for (const Json& record : Export()) {
    if (record.contains("library")) called[record["library"]] = record;
  }
  // Each library of the device was tried, and no other one.
  EXPECT_EQ(called.size(), libraries.size());
  for (const auto& [kernel, record] : called) {
    EXPECT_TRUE(libraries.contains(kernel.substr(0, kernel.find('.'))));
    EXPECT_EQ(record["status"], "ok") << record["error"];
    EXPECT_EQ(record["verified"], true);
    EXPECT_THAT(std::string(record["trace"]), HasSubstr("sch.call_library("));
  }
  const std::string trace = dir_.Write(
      "library.trace", called.empty() ? "" : called.begin()->second["trace"]);
  const auto build = [&](std::vector<std::string> more) {
    std::vector<std::string> command = {
        Bin("tunec"),       matmul,  "--target", "host,cores=1", "-o",
        dir_.File("mm.so"), "--json"};
    command.insert(command.end(), more.begin(), more.end());
    return RunCommand(std::move(command), {});
  };
  // Without the permission, the best schedule without a library.
  const CommandResult ours = build({"--db", db(), "--require-tuned"});
  ASSERT_EQ(ours.exit_code, 0) << ours.errors;
  EXPECT_FALSE(Json::parse(ours.output)["functions"][0].contains("libraries"));
  EXPECT_LT(LargestError(dir_.File("mm.so"), "mm_relu"), 1e-3);
  if (called.empty()) GTEST_SKIP() << "this machine has no library";

  // A library record that would have won is reported as left out.
  for (const auto& [kernel, record] : called) {
    if (!record["stopped_early"]) {
      EXPECT_THAT(ours.errors, HasSubstr("--allow-library"));
    }
  }
  const CommandResult refused = build({"--trace", trace});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.errors, HasSubstr(called.begin()->first));
  EXPECT_THAT(refused.errors, HasSubstr("--allow-library"));
  const CommandResult library = build({"--trace", trace, "--allow-library"});
  ASSERT_EQ(library.exit_code, 0) << library.errors;
  EXPECT_EQ(Json::parse(library.output)["functions"][0]["libraries"][0],
            called.begin()->first);
  EXPECT_LT(LargestError(dir_.File("mm.so"), "mm_relu"), 1e-3);
  // With the permission, the best known record of any kind.
  EXPECT_EQ(
      Tune({"best", matmul, "--target", "host,cores=1", "--allow-library"})
          .exit_code,
      0);
}

}  // namespace
}  // namespace tilefarm::testing
