#include "database/sqlite.h"

#include <sqlite3.h>

#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "database/sqlite_status.h"

namespace tilefarm::database {
namespace {

// Readers and the writer do not block each other in WAL mode; this only covers
// the moments when a file is opened, recovered or closed.
constexpr int kBusyTimeoutMs = 5000;

// Memory that a connection keeps for short-lived allocations. With SQLite's
// default, texts of a few KB went through malloc, several in each lookup.
constexpr int kLookasideBytes = 4096;
constexpr int kLookasideSlots = 64;

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : connection_(other.connection_),
      home_(other.home_),
      handle_(std::exchange(other.handle_, nullptr)),
      bound_(other.bound_),
      bind_error_(other.bind_error_) {}

Statement::~Statement() {
  if (handle_ == nullptr) return;
  // Reset repeats the error of the last step, which was reported then.
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
  home_->push_back(handle_);
}

void Statement::NoteBind(int code) {
  if (code != SQLITE_OK && bind_error_ == 0) bind_error_ = code;
}

Statement& Statement::Bind(int64_t value) {
  NoteBind(sqlite3_bind_int64(handle_, ++bound_, value));
  return *this;
}

Statement& Statement::Bind(double value) {
  NoteBind(sqlite3_bind_double(handle_, ++bound_, value));
  return *this;
}

Statement& Statement::Bind(std::string_view text) {
  // A null pointer would bind NULL.
  NoteBind(sqlite3_bind_text64(handle_, ++bound_,
                               text.data() == nullptr ? "" : text.data(),
                               text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::Bind(const std::optional<std::string>& text) {
  return text ? Bind(std::string_view(*text)) : BindNull();
}

Statement& Statement::BindBlob(std::string_view bytes) {
  NoteBind(sqlite3_bind_blob64(handle_, ++bound_,
                               bytes.data() == nullptr ? "" : bytes.data(),
                               bytes.size(), SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::BindNull() {
  NoteBind(sqlite3_bind_null(handle_, ++bound_));
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  const int code = bind_error_ != 0 ? bind_error_ : sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return SqliteStatus(connection_->db_, code,
                      absl::StrCat("access ", connection_->path_).c_str());
}

absl::Status Statement::Run() {
  while (true) {
    TF_ASSIGN_OR_RETURN(const bool row, Step());
    if (!row) return absl::OkStatus();
  }
}

int64_t Statement::Int(int column) const {
  return sqlite3_column_int64(handle_, column);
}

double Statement::Double(int column) const {
  // SQLite stores NaN as NULL.
  if (IsNull(column)) return std::numeric_limits<double>::quiet_NaN();
  return sqlite3_column_double(handle_, column);
}

std::string Statement::Text(int column) const {
  // As bytes: text may hold NULs, and blobs are read the same way.
  const void* bytes = sqlite3_column_blob(handle_, column);
  const int size = sqlite3_column_bytes(handle_, column);
  if (bytes == nullptr) return "";
  return std::string(static_cast<const char*>(bytes),
                     static_cast<size_t>(size));
}

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(handle_, column) == SQLITE_NULL;
}

bool Statement::IsBlob(int column) const {
  return sqlite3_column_type(handle_, column) == SQLITE_BLOB;
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(
    const std::string& path, Access access) {
  sqlite3* db = nullptr;
  const int flags = access == Access::kReadOnly
                        ? SQLITE_OPEN_READONLY
                        : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(
      path.c_str(), &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  // A handle comes back even on failure.
  std::unique_ptr<Connection> connection(new Connection(db, path));
  TF_RETURN_IF_ERROR(
      SqliteStatus(db, code, absl::StrCat("open ", path).c_str()));
  sqlite3_busy_timeout(db, kBusyTimeoutMs);
  sqlite3_db_config(db, SQLITE_DBCONFIG_LOOKASIDE, nullptr, kLookasideBytes,
                    kLookasideSlots);
  TF_RETURN_IF_ERROR(connection->Execute("PRAGMA foreign_keys = ON"));
  return connection;
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::FromBytes(
    std::string_view bytes, const std::string& name) {
  TF_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection,
                      Open(":memory:", Access::kReadWriteCreate));
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(bytes.size()));
  if (copy == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a copy of ", name));
  }
  std::memcpy(copy, bytes.data(), bytes.size());
  // SQLite owns the copy from here, also on failure.
  const int code = sqlite3_deserialize(
      connection->db_, "main", copy, static_cast<sqlite3_int64>(bytes.size()),
      static_cast<sqlite3_int64>(bytes.size()),
      SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
  TF_RETURN_IF_ERROR(
      SqliteStatus(connection->db_, code, absl::StrCat("read ", name).c_str()));
  return connection;
}

Connection::~Connection() {
  for (const auto& [sql, handles] : idle_) {
    for (sqlite3_stmt* handle : handles) sqlite3_finalize(handle);
  }
  sqlite3_close(db_);
}

absl::Status Connection::Execute(const std::string& sql) {
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return absl::OkStatus();
  return SqliteStatus(db_, code, absl::StrCat("access ", path_).c_str());
}

absl::StatusOr<Statement> Connection::Prepare(std::string_view sql) {
  auto home = idle_.find(sql);
  if (home == idle_.end()) home = idle_.try_emplace(std::string(sql)).first;
  IdleStatements& idle = home->second;
  sqlite3_stmt* handle = nullptr;
  if (!idle.empty()) {
    handle = idle.back();
    idle.pop_back();
    return Statement(this, &idle, handle);
  }
  const int code = sqlite3_prepare_v3(
      db_, home->first.c_str(), static_cast<int>(sql.size()) + 1,
      SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
  if (code != SQLITE_OK) {
    return SqliteStatus(db_, code, absl::StrCat("access ", path_).c_str());
  }
  return Statement(this, &idle, handle);
}

absl::StatusOr<int64_t> Connection::QueryInt(std::string_view sql) {
  TF_ASSIGN_OR_RETURN(Statement query, Prepare(sql));
  TF_ASSIGN_OR_RETURN(const bool row, query.Step());
  return row ? query.Int(0) : 0;
}

absl::Status Connection::DefinePacking(
    const char* name, std::optional<std::string> (*pack)(std::string_view)) {
  const auto call = [](sqlite3_context* context, int /*count*/,
                       sqlite3_value** values) {
    const auto convert =
        reinterpret_cast<std::optional<std::string> (*)(std::string_view)>(
            sqlite3_user_data(context));
    const auto* text =
        reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
    const int size = sqlite3_value_bytes(values[0]);
    const std::optional<std::string> packed =
        text == nullptr ? std::nullopt
                        : convert({text, static_cast<size_t>(size)});
    if (!packed) {
      sqlite3_result_value(context, values[0]);
      return;
    }
    sqlite3_result_blob64(context, packed->data(), packed->size(),
                          SQLITE_TRANSIENT);
  };
  const int code = sqlite3_create_function_v2(
      db_, name, 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
      reinterpret_cast<void*>(pack), call, nullptr, nullptr, nullptr);
  return SqliteStatus(db_, code, absl::StrCat("define ", name).c_str());
}

absl::Status Connection::RunPrepared(std::string_view sql) {
  TF_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  return statement.Run();
}

absl::Status Connection::Snapshot(const std::function<absl::Status()>& body) {
  TF_RETURN_IF_ERROR(RunPrepared("BEGIN"));
  const absl::Status status = body();
  const absl::Status ended = RunPrepared("COMMIT");
  // Nothing was written, so that a failure to end it loses nothing.
  if (!ended.ok() && sqlite3_get_autocommit(db_) == 0) {
    TF_RETURN_IF_ERROR(RunPrepared("ROLLBACK"));
  }
  return status.ok() ? ended : status;
}

absl::Status Connection::Transaction(
    const std::function<absl::Status()>& body) {
  TF_RETURN_IF_ERROR(Execute("BEGIN IMMEDIATE"));
  absl::Status status = body();
  if (status.ok()) status = Execute("COMMIT");
  // A full disk ends some transactions by itself, others not.
  if (!status.ok() && sqlite3_get_autocommit(db_) == 0) {
    const absl::Status rolled_back = Execute("ROLLBACK");
    if (!rolled_back.ok()) {
      return absl::Status(
          status.code(),
          absl::StrCat(status.message(), "; then ", rolled_back.message()));
    }
  }
  return status;
}

int64_t Connection::last_insert_id() const {
  return sqlite3_last_insert_rowid(db_);
}

int Connection::changes() const { return sqlite3_changes(db_); }

}  // namespace tilefarm::database
