// A thin, typed layer over SQLite's C interface. Private to database/.
//
//   TF_ASSIGN_OR_RETURN(Statement query, connection.Prepare(
//       "SELECT id FROM jobs WHERE state = ?"));
//   query.Bind(state);
//   while (true) {
//     TF_ASSIGN_OR_RETURN(bool row, query.Step());
//     if (!row) break;
//     use(query.Int(0));
//   }
#ifndef TILEFARM_DATABASE_SQLITE_H_
#define TILEFARM_DATABASE_SQLITE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tilefarm::database {

class Connection;

// The idle prepared statements of one SQL text.
using IdleStatements = std::vector<sqlite3_stmt*>;

// A prepared statement that its connection's cache lends. The destructor resets
// and returns it. Must not outlive the connection.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // Binds the next parameter, left to right, and copies its value. Step reports
  // a failure.
  Statement& Bind(int64_t value);
  Statement& Bind(int value) { return Bind(static_cast<int64_t>(value)); }
  Statement& Bind(bool value) { return Bind(static_cast<int64_t>(value)); }
  Statement& Bind(double value);
  Statement& Bind(std::string_view text);
  Statement& Bind(const std::string& text) {
    return Bind(std::string_view(text));
  }
  Statement& Bind(const char* text) { return Bind(std::string_view(text)); }
  Statement& Bind(const std::optional<std::string>& text);
  Statement& BindBlob(std::string_view bytes);
  Statement& BindNull();

  // True: there is a row to read. False: done.
  absl::StatusOr<bool> Step();
  // Steps to the end, dropping rows.
  absl::Status Run();

  // Columns of the current row, from 0. A NULL is 0, NaN or "".
  int64_t Int(int column) const;
  bool Bool(int column) const { return Int(column) != 0; }
  double Double(int column) const;
  std::string Text(int column) const;
  bool IsNull(int column) const;
  bool IsBlob(int column) const;

 private:
  friend class Connection;
  Statement(Connection* connection, IdleStatements* home, sqlite3_stmt* handle)
      : connection_(connection), home_(home), handle_(handle) {}
  void NoteBind(int code);

  Connection* connection_;
  IdleStatements* home_;  // in the connection's cache
  sqlite3_stmt* handle_;
  int bound_ = 0;
  int bind_error_ = 0;
};

// One connection. Not thread-safe; the owner synchronizes access.
class Connection {
 public:
  enum class Access { kReadOnly, kReadWriteCreate };
  static absl::StatusOr<std::unique_ptr<Connection>> Open(
      const std::string& path, Access access);
  // A database held in memory, with these bytes as its content: read-only.
  static absl::StatusOr<std::unique_ptr<Connection>> FromBytes(
      std::string_view bytes, const std::string& name);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs statements without parameters or results.
  absl::Status Execute(const std::string& sql);
  absl::StatusOr<Statement> Prepare(std::string_view sql);
  // The first column of the first row of `sql`; 0 without rows.
  absl::StatusOr<int64_t> QueryInt(std::string_view sql);
  // Defines the SQL function NAME(text): a blob of what `pack` gives, or, where
  // it gives nothing, the text itself.
  absl::Status DefinePacking(
      const char* name, std::optional<std::string> (*pack)(std::string_view));
  // Runs `body`, whose queries all see one state of the file.
  absl::Status Snapshot(const std::function<absl::Status()>& body);
  // Runs `body` between BEGIN IMMEDIATE and COMMIT. After any failure nothing
  // of it is stored and the connection is usable.
  absl::Status Transaction(const std::function<absl::Status()>& body);
  int64_t last_insert_id() const;
  int changes() const;

 private:
  friend class Statement;
  Connection(sqlite3* db, std::string path) : db_(db), path_(path) {}
  absl::Status RunPrepared(std::string_view sql);

  sqlite3* db_;
  const std::string path_;
  // By their text. A lookup runs a dozen statements: finding and returning one
  // allocates nothing. The lists stay where they are.
  std::map<std::string, IdleStatements, std::less<>> idle_;
};

}  // namespace tilefarm::database

#endif  // TILEFARM_DATABASE_SQLITE_H_
