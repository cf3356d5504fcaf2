// kill_run --kills N --seed S: a server and workers tune small kernels while
// random ones of them get SIGKILL at random moments and are started again.
//
// After each end of the server, its files are copied, the copy is recovered by
// SQLite, and these conditions are checked:
//   - PRAGMA integrity_check says ok;
//   - every record seen before is there, unchanged, and none twice;
//   - every candidate whose acknowledgement a worker has seen has its record;
//   - every job that was acknowledged to its client is there.
// At the end every job is done with exactly its trials, as the server says and
// as exported. ctest runs a short one; the full one is `--kills 1000`.
#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "tests/support/process.h"

namespace tilefarm::testing {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr int kUnfinishedJobs = 3;
constexpr int kTrials = 24;
constexpr absl::Duration kEnd = absl::Minutes(4);

struct Flags {
  int kills = 20;
  uint64_t seed = 0;  // 0: from the clock
  int workers = 4;
  std::string directory;
};

std::string Bin(const std::string& program) {
  return std::string(TILEFARM_BIN_DIR) + "/" + program;
}

// Different numbers give different workloads.
std::string Program(int number) {
  const std::string n = std::to_string(32 + 16 * number);
  std::string text = R"(from tvm.script import tir as T


@T.prim_func
def mm(A: T.Buffer((64, 48), "float32"), B: T.Buffer((48, N), "float32"),
       C: T.Buffer((64, N), "float32")):
    for i, j, k in T.grid(64, N, 48):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";
  for (size_t at; (at = text.find('N')) != std::string::npos;) {
    text.replace(at, 1, n);
  }
  return text;
}

// The rows of a query, each as a list of columns.
class Database {
 public:
  using Row = std::vector<std::string>;

  Database(const std::string& path, int flags) {
    if (sqlite3_open_v2(path.c_str(), &db_, flags, nullptr) != SQLITE_OK) {
      error_ = sqlite3_errmsg(db_);
    }
    sqlite3_busy_timeout(db_, 5000);
  }
  ~Database() { sqlite3_close(db_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  std::vector<Row> Query(const std::string& sql) {
    std::vector<Row> rows;
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) !=
        SQLITE_OK) {
      error_ = sqlite3_errmsg(db_);
      return rows;
    }
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
      Row& row = rows.emplace_back();
      for (int i = 0; i < sqlite3_column_count(statement); ++i) {
        const auto* text = sqlite3_column_text(statement, i);
        row.push_back(text == nullptr ? "NULL"
                                      : reinterpret_cast<const char*>(text));
      }
    }
    if (code != SQLITE_DONE) error_ = sqlite3_errmsg(db_);
    sqlite3_finalize(statement);
    return rows;
  }
  const std::string& error() const { return error_; }

 private:
  sqlite3* db_ = nullptr;
  std::string error_;
};

class KillRun {
 public:
  explicit KillRun(const Flags& flags) : flags_(flags), rng_(flags.seed) {
    if (!flags_.directory.empty()) fs::create_directories(flags_.directory);
  }

  bool Run();

 private:
  struct Worker {
    std::string name;
    std::unique_ptr<Process> process;
    size_t read = 0;  // size of its log that was read for acknowledgements
  };
  struct Submission {
    std::unique_ptr<Process> process;
    std::string id;  // set once its client knows it
  };

  std::string File(const std::string& name) const {
    return flags_.directory.empty() ? temporary_.File(name)
                                    : flags_.directory + "/" + name;
  }
  std::string db() const { return File("tune.db"); }

  void Fail(const std::string& what) {
    ++failures_;
    std::printf("FAILED after %d kills: %s\n", kills_, what.c_str());
    std::fflush(stdout);
  }
  bool StartServer();
  void StartWorker(Worker& worker);
  void KillServer();
  void KillWorker(Worker& worker);
  void Submit();
  // Collects ids of clients that have ended.
  void CollectSubmissions();
  void TakeAcks(Worker& worker);
  // The number of jobs that have not ended; the server must run.
  int UnfinishedJobs();
  // The server must not run.
  void CheckDatabase();
  void CheckEnd();
  Json TuneJson(const std::string& command);

  Flags flags_;
  Rng rng_;
  TempDir temporary_;
  std::string address_;
  std::unique_ptr<Process> server_;
  std::vector<Worker> workers_;
  std::vector<Submission> submissions_;

  // Candidates whose results the server acknowledged as not superseded.
  std::set<std::string> acknowledged_;
  std::set<std::string> proposed_;
  int64_t log_read_ = 0;
  std::map<std::string, Database::Row> records_;  // by candidate id
  int kills_ = 0, server_kills_ = 0, worker_kills_ = 0, failures_ = 0;
  size_t checked_acks_ = 0;
};

bool KillRun::StartServer() {
  const std::string listen = address_.empty() ? "127.0.0.1:0" : address_;
  for (int attempt = 0; attempt < 100; ++attempt) {
    server_ = Process::Spawn({Bin("tune-server"), "--db", db(), "--listen",
                              listen, "--timeout", "state_interval=500ms",
                              "--timeout", "lease_duration=3s", "--timeout",
                              "former_hold=500ms", "--timeout",
                              "former_hold_max=5s", "--timeout", "tick=100ms"});
    const auto address = server_->WaitForOutput("listening on ");
    if (address.has_value()) {
      address_ = *address;
      return true;
    }
    // Its port may be busy for a moment; any other failure is an error.
    server_->Wait();
    if (server_->errors().find("cannot listen") == std::string::npos) break;
    usleep(20'000);
  }
  Fail("the server does not start: " + server_->errors());
  return false;
}

void KillRun::StartWorker(Worker& worker) {
  worker.read = 0;
  worker.process = Process::Spawn(
      {Bin("rpc-worker"), "--server", address_, "--name", worker.name,
       "--state-dir", File("state-" + worker.name), "--lock-dir", File("locks"),
       "--builders", "1", "--timeout", "reconnect_first=20ms", "--timeout",
       "reconnect_last=200ms"},
      {"TILEFARM_LOG=debug"});
}

void KillRun::TakeAcks(Worker& worker) {
  static constexpr std::string_view kMark = "worker: acknowledged ";
  const std::string log = worker.process->errors();
  for (size_t end; (end = log.find('\n', worker.read)) != std::string::npos;
       worker.read = end + 1) {
    const std::string line = log.substr(worker.read, end - worker.read);
    const size_t at = line.find(kMark);
    if (at != std::string::npos) {
      acknowledged_.insert(line.substr(at + kMark.size()));
    }
  }
}

void KillRun::KillWorker(Worker& worker) {
  worker.process->Kill(SIGKILL);
  worker.process->Wait();
  // Reads all of its output, until its helpers have ended.
  worker.process->WaitForOutput(std::string(1, '\0'), absl::Seconds(5));
  TakeAcks(worker);
  StartWorker(worker);
}

void KillRun::KillServer() {
  server_->Kill(SIGKILL);
  if (server_->Wait() != -SIGKILL) {
    Fail("the server had ended by itself: " + server_->errors());
  }
  CheckDatabase();
  StartServer();
}

void KillRun::CheckDatabase() {
  const std::string copy = File("copy.db");
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(copy + suffix);
  fs::copy_file(db(), copy);
  if (fs::exists(db() + "-wal")) fs::copy_file(db() + "-wal", copy + "-wal");
  // After the copy: later acknowledgements need not be in it.
  for (Worker& worker : workers_) TakeAcks(worker);
  CollectSubmissions();

  Database database(copy, SQLITE_OPEN_READWRITE);
  const auto check = database.Query("PRAGMA integrity_check");
  if (check != std::vector<Database::Row>{{"ok"}}) {
    Fail("integrity_check: " +
         (check.empty() ? database.error() : check[0][0]));
  }
  for (const auto& row : database.Query(
           "SELECT job_log.n, json_extract(value, '$.id') FROM job_log, "
           "json_each(line, '$.candidates') WHERE json_extract(line, "
           "'$.event') = 'propose' AND job_log.n > " +
           std::to_string(log_read_))) {
    log_read_ = std::max<int64_t>(log_read_, std::stoll(row[0]));
    proposed_.insert(row[1]);
  }
  std::map<std::string, Database::Row> records;
  for (auto& row :
       database.Query("SELECT candidate_id, * FROM records ORDER BY id")) {
    const std::string id = row[0];
    if (!records.emplace(id, std::move(row)).second) Fail("twice: " + id);
  }
  for (const auto& [id, row] : records_) {
    const auto now = records.find(id);
    if (now == records.end()) {
      Fail("lost: record of " + id);
    } else if (now->second != row) {
      Fail("changed: record of " + id);
    }
  }
  for (const std::string& id : acknowledged_) {
    // Finalists and the unscheduled program are not records.
    if (!proposed_.contains(id)) continue;
    ++checked_acks_;
    if (!records.contains(id)) Fail("acknowledged and lost: " + id);
  }
  std::set<std::string> jobs;
  for (const auto& row : database.Query("SELECT id FROM jobs")) {
    jobs.insert(row[0]);
  }
  for (const Submission& submission : submissions_) {
    if (!submission.id.empty() && !jobs.contains(submission.id)) {
      Fail("lost: " + submission.id);
    }
  }
  if (!database.error().empty()) Fail("SQLite: " + database.error());
  records_ = std::move(records);
}

void KillRun::Submit() {
  const int number = static_cast<int>(submissions_.size());
  // Every fifth job continues tuning the workload of an earlier one.
  const int workload = number % 5 == 4 ? number - 2 : number;
  const std::string path = File("mm" + std::to_string(number) + ".py");
  if (std::FILE* file = std::fopen(path.c_str(), "w")) {
    std::fputs(Program(workload).c_str(), file);
    std::fclose(file);
  }
  // Do not wait for it: the server may be killed during it.
  submissions_.push_back({Process::Spawn(
      {Bin("tune"), "submit", path, "--target", "host,cores=1", "--trials",
       std::to_string(kTrials), "--model",
       number % 2 == 0 ? "random" : "xgboost", "--seed",
       std::to_string(number + 1), "--json", "--server", address_})});
}

void KillRun::CollectSubmissions() {
  for (Submission& submission : submissions_) {
    if (!submission.id.empty()) continue;
    const auto code = submission.process->Wait(absl::ZeroDuration());
    if (!code.has_value()) continue;
    submission.process->WaitForOutput(std::string(1, '\0'), absl::Seconds(2));
    const Json answer =
        Json::parse(submission.process->output(), nullptr, false);
    if (*code != 0 || !answer.is_object()) {
      Fail("submit: " + submission.process->errors());
      submission.id = "none";
      continue;
    }
    submission.id = answer["id"];
  }
}

int KillRun::UnfinishedJobs() {
  Database database(db(), SQLITE_OPEN_READONLY);
  const auto rows = database.Query(
      "SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')");
  int pending = 0;
  for (const Submission& one : submissions_) pending += one.id.empty();
  return pending + (rows.empty() ? 0 : std::stoi(rows[0][0]));
}

Json KillRun::TuneJson(const std::string& command) {
  const CommandResult result =
      RunCommand({Bin("tune"), command, "--json", "--server", address_});
  if (result.exit_code != 0) Fail(command + ": " + result.errors);
  return Json::parse(result.output, nullptr, false);
}

void KillRun::CheckEnd() {
  std::map<std::string, Json> jobs;
  for (const Json& job : TuneJson("jobs")) jobs[job["id"]] = job;
  if (jobs.size() != submissions_.size()) {
    Fail(std::to_string(submissions_.size()) + " submissions made " +
         std::to_string(jobs.size()) + " jobs");
  }
  for (const auto& [id, job] : jobs) {
    if (job["state"] != "done" || job["trials_done"] != kTrials) {
      Fail("not done with its trials: " + job.dump());
    }
  }
  const CommandResult exported =
      RunCommand({Bin("tune"), "db", "export", "--server", address_});
  std::istringstream lines(exported.output);
  std::set<std::string> ids;
  for (std::string line; std::getline(lines, line);) {
    const Json record = Json::parse(line, nullptr, false);
    if (!ids.insert(record["candidate_id"]).second) {
      Fail("exported twice: " + line);
    }
  }
  if (ids.size() != jobs.size() * kTrials) {
    Fail(std::to_string(ids.size()) + " records of " +
         std::to_string(jobs.size()) + " jobs");
  }
  server_->Kill(SIGTERM);
  if (server_->Wait(absl::Seconds(20)) != 0) {
    Fail("the server does not end in order: " + server_->errors());
  }
  CheckDatabase();
  if (ids.size() != records_.size()) Fail("export and database differ");
}

bool KillRun::Run() {
  std::printf("seed %llu, files in %s\n",
              static_cast<unsigned long long>(flags_.seed), File("").c_str());
  std::fflush(stdout);
  Clock& clock = Clock::Real();
  const absl::Duration start = clock.Monotonic();
  if (!StartServer()) return false;
  workers_.resize(static_cast<size_t>(flags_.workers));
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].name = "w" + std::to_string(i);
    StartWorker(workers_[i]);
  }
  while (kills_ < flags_.kills && failures_ == 0) {
    CollectSubmissions();
    while (UnfinishedJobs() < kUnfinishedJobs) Submit();
    usleep(static_cast<useconds_t>(rng_.Between(20, 400)) * 1000);
    ++kills_;
    if (rng_.Chance(0.4)) {
      ++server_kills_;
      KillServer();
    } else {
      ++worker_kills_;
      KillWorker(workers_[rng_.Below(workers_.size())]);
    }
  }
  const absl::Duration killing = clock.Monotonic() - start;
  const absl::Duration deadline = clock.Monotonic() + kEnd;
  while (failures_ == 0) {
    CollectSubmissions();
    if (UnfinishedJobs() == 0) break;
    if (clock.Monotonic() > deadline) Fail("jobs do not end");
    usleep(50'000);
  }
  if (failures_ == 0) CheckEnd();
  if (failures_ != 0) {
    for (Worker& worker : workers_) {
      std::printf("--- %s\n%s", worker.name.c_str(),
                  worker.process->errors().c_str());
    }
    std::printf("--- server\n%s", server_->errors().c_str());
  }
  int lost = 0;
  for (const auto& [id, row] : records_) {
    lost += std::find(row.begin(), row.end(), "device_lost") != row.end();
  }
  std::printf(
      "%s: %d kills (%d of the server, %d of workers) in %.0f s, %zu jobs, "
      "%zu records (%d device_lost), %zu acknowledgements held to %d "
      "copies of the database (%zu looks); %.0f s in all\n",
      failures_ == 0 ? "passed" : "FAILED", kills_, server_kills_,
      worker_kills_, absl::ToDoubleSeconds(killing), submissions_.size(),
      records_.size(), lost, acknowledged_.size(), server_kills_ + 1,
      checked_acks_, absl::ToDoubleSeconds(clock.Monotonic() - start));
  return failures_ == 0;
}

}  // namespace
}  // namespace tilefarm::testing

int main(int argc, char** argv) {
  tilefarm::testing::Flags flags;
  CLI::App app("Kills servers and workers at random moments", "kill_run");
  app.add_option("--kills", flags.kills, "How many")->capture_default_str();
  app.add_option("--seed", flags.seed, "0: a new one, which is printed");
  app.add_option("--workers", flags.workers, "How many")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--directory", flags.directory,
                 "Work here and leave everything there");
  CLI11_PARSE(app, argc, argv);
  if (flags.seed == 0) {
    flags.seed = static_cast<uint64_t>(
        absl::ToInt64Nanoseconds(tilefarm::Clock::Real().Monotonic()));
  }
  return tilefarm::testing::KillRun(flags).Run() ? 0 : 1;
}
