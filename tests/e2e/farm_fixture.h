// A farm of real processes for tests: a server and workers on port 0, in a
// temporary folder.
#ifndef TILEFARM_TESTS_E2E_FARM_FIXTURE_H_
#define TILEFARM_TESTS_E2E_FARM_FIXTURE_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/until.h"

namespace tilefarm::testing {

inline std::string Bin(const std::string& program) {
  return std::string(TILEFARM_BIN_DIR) + "/" + program;
}

inline constexpr char kMmRelu[] = R"(from tvm.script import tir as T


@T.prim_func
def mm_relu(A: T.Buffer((128, 128), "float32"),
            B: T.Buffer((128, 128), "float32"),
            C: T.Buffer((128, 128), "float32")):
    Y = T.alloc_buffer((128, 128), dtype="float32")
    for i, j, k in T.grid(128, 128, 128):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(128, 128):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
)";

class FarmFixture : public ::testing::Test {
 protected:
  using Json = nlohmann::json;

  FarmFixture() : program_(dir_.Write("mm_relu.py", kMmRelu)) {}

  std::string db() const { return database_; }

  std::string state(const std::string& worker) const {
    return dir_.File("state-" + worker);
  }

  // Uses the port of the previous server, if there was one.
  void StartServer() {
    const std::string listen = address_.empty() ? "127.0.0.1:0" : address_;
    for (int attempt = 0; attempt < 50; ++attempt) {
      std::vector<std::string> command = {Bin("tune-server"), "--db", db(),
                                          "--listen", listen};
      command.insert(command.end(), server_options_.begin(),
                     server_options_.end());
      server_ = Process::Spawn(std::move(command), server_environment_);
      ASSERT_NE(server_, nullptr);
      const auto address = server_->WaitForOutput("listening on ");
      if (address.has_value()) {
        address_ = *address;
        return;
      }
      // The port of a killed server may be busy for a moment.
      usleep(100'000);
    }
    FAIL() << "the server does not start: " << server_->errors();
  }
  // Connects to `server`; empty: the server's own address.
  std::unique_ptr<Process> StartWorker(const std::string& name,
                                       const std::string& server = "") {
    std::vector<std::string> command = {
        Bin("rpc-worker"), "--server",   server.empty() ? address_ : server,
        "--name",          name,         "--state-dir",
        state(name),       "--lock-dir", dir_.File("locks")};
    command.insert(command.end(), worker_options_.begin(),
                   worker_options_.end());
    auto worker = Process::Spawn(std::move(command), worker_environment_);
    EXPECT_NE(worker, nullptr);
    return worker;
  }

  CommandResult Tune(std::vector<std::string> args) {
    args.insert(args.begin(), Bin("tune"));
    return RunCommand(std::move(args), {"TUNE_SERVER=" + address_});
  }
  // Runs a command with --json; fails the test unless it exits with 0.
  Json TuneJson(std::vector<std::string> args) {
    args.push_back("--json");
    const CommandResult result = Tune(std::move(args));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return Json::parse(result.output, nullptr, /*allow_exceptions=*/false);
  }
  std::string Submit(int trials) {
    return TuneJson({"submit", program_, "--target", "host,cores=1", "--trials",
                     std::to_string(trials)})["id"];
  }
  Json Job(const std::string& id) {
    for (const Json& job : TuneJson({"jobs"})) {
      if (job["id"] == id) return job;
    }
    return Json();
  }
  std::vector<Json> Export() {
    std::vector<Json> records;
    std::istringstream lines(Tune({"db", "export"}).output);
    for (std::string line; std::getline(lines, line);) {
      records.push_back(Json::parse(line, nullptr, false));
    }
    return records;
  }
  // Spooled results of a worker.
  std::vector<std::filesystem::path> Spooled(const std::string& worker) const {
    std::vector<std::filesystem::path> files;
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator
             it(state(worker) + "/spool", error),
         end;
         it != end; it.increment(error)) {
      if (it->path().extension() == ".result") files.push_back(it->path());
    }
    return files;
  }
  // Polls; false after a timeout.
  static bool Until(const std::function<bool()>& condition, int seconds = 240) {
    return tilefarm::Until(condition, absl::Seconds(seconds),
                           absl::Milliseconds(100));
  }
  bool WaitForTrials(const std::string& id, int trials) {
    return Until([&] { return Job(id)["trials_done"] >= trials; });
  }
  bool WaitForState(const std::string& id, const std::string& state) {
    return Until([&] { return Job(id)["state"] == state; });
  }

  TempDir dir_;
  const std::string program_;
  // For all servers and workers that are started from then on.
  std::vector<std::string> server_options_, server_environment_;
  std::vector<std::string> worker_options_, worker_environment_;
  std::string database_ = dir_.File("tune.db");
  std::string address_;
  std::unique_ptr<Process> server_;
};

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_E2E_FARM_FIXTURE_H_
