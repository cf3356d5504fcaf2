#include "tests/perf/farm_load/observe.h"

#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace tilefarm::load {
namespace {

absl::Status Failed(sqlite3* db, const std::string& what) {
  return absl::InternalError(
      absl::StrCat(what, ": ", db == nullptr ? "" : sqlite3_errmsg(db)));
}

// A connection that the destructor closes.
class Database {
 public:
  ~Database() { sqlite3_close(db_); }
  absl::Status Open(const std::string& path) {
    if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) {
      return Failed(db_, path);
    }
    return absl::OkStatus();
  }
  absl::Status Run(const char* sql) {
    if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
      return Failed(db_, sql);
    }
    return absl::OkStatus();
  }
  sqlite3* get() { return db_; }

 private:
  sqlite3* db_ = nullptr;
};

}  // namespace

ProcessView Look(pid_t pid) {
  ProcessView view;
  const std::string folder = absl::StrCat("/proc/", pid);
  {
    std::ifstream file(folder + "/stat");
    std::string text;
    std::getline(file, text);
    // The second field, the name, may contain blanks.
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    std::vector<std::string> field;
    for (std::string one; fields >> one;) field.push_back(one);
    if (field.size() > 12) {
      view.cpu_seconds = (std::stod(field[11]) + std::stod(field[12])) /
                         static_cast<double>(sysconf(_SC_CLK_TCK));
    }
  }
  std::ifstream status(folder + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0)
      view.resident_kib = std::stod(line.substr(6));
    if (line.rfind("Threads:", 0) == 0)
      view.threads = std::stoi(line.substr(8));
  }
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder + "/fd", ignored)) {
    const auto link = std::filesystem::read_symlink(entry.path(), ignored);
    if (link.string().rfind("socket:", 0) == 0) ++view.sockets;
  }
  return view;
}

double FileBytes(const std::string& path) {
  std::error_code ignored;
  return static_cast<double>(std::filesystem::file_size(path, ignored));
}

absl::StatusOr<DatabaseView> LookAtDatabase(const std::string& path) {
  Database database;
  absl::Status opened = database.Open(path);
  if (!opened.ok()) return opened;
  DatabaseView view;
  const auto each = [&](const char* sql, auto take) -> absl::Status {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database.get(), sql, -1, &statement, nullptr) !=
        SQLITE_OK) {
      return Failed(database.get(), sql);
    }
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
      take(reinterpret_cast<const char*>(sqlite3_column_text(statement, 0)));
    }
    sqlite3_finalize(statement);
    return code == SQLITE_DONE ? absl::OkStatus() : Failed(database.get(), sql);
  };
  absl::Status read =
      each("SELECT candidate_id FROM records", [&](const char* id) {
        ++view.records;
        view.candidates.insert(id);
      });
  if (!read.ok()) return read;
  read = each("PRAGMA integrity_check", [&](const char* answer) {
    view.intact = std::string(answer) == "ok";
  });
  if (!read.ok()) return read;
  return view;
}

absl::StatusOr<double> DurableRowsPerSecond(const std::string& folder,
                                            int group, int bytes,
                                            double seconds) {
  const std::string path = folder + "/limit.db";
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::filesystem::remove(path + suffix);
  }
  Database database;
  absl::Status made = database.Open(path);
  for (const char* sql :
       {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL",
        "CREATE TABLE rows(id INTEGER PRIMARY KEY, body BLOB)"}) {
    if (made.ok()) made = database.Run(sql);
  }
  if (!made.ok()) return made;
  sqlite3_stmt* insert = nullptr;
  if (sqlite3_prepare_v2(database.get(), "INSERT INTO rows(body) VALUES (?)",
                         -1, &insert, nullptr) != SQLITE_OK) {
    return Failed(database.get(), "INSERT");
  }
  const std::string body(static_cast<size_t>(bytes), 'x');
  Clock& clock = Clock::Real();
  const absl::Duration start = clock.Monotonic();
  const absl::Duration end = start + absl::Seconds(seconds);
  int64_t rows = 0;
  absl::Status status;
  while (status.ok() && clock.Monotonic() < end) {
    status = database.Run("BEGIN IMMEDIATE");
    for (int i = 0; status.ok() && i < group; ++i) {
      sqlite3_bind_blob(insert, 1, body.data(), bytes, SQLITE_STATIC);
      if (sqlite3_step(insert) != SQLITE_DONE) {
        status = Failed(database.get(), "INSERT");
      }
      sqlite3_reset(insert);
    }
    if (status.ok()) status = database.Run("COMMIT");
    rows += group;
  }
  const double took = absl::ToDoubleSeconds(clock.Monotonic() - start);
  sqlite3_finalize(insert);
  if (!status.ok()) return status;
  return static_cast<double>(rows) / took;
}

}  // namespace tilefarm::load
