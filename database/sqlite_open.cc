#include "database/sqlite_open.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "database/migrations.h"

namespace tilefarm::database {
namespace {

constexpr char kMemory[] = ":memory:";

// Offsets in the header of the two bytes that say "this file uses a WAL", and
// the value that says it does not.
constexpr size_t kWriteVersionOffset = 18;
constexpr size_t kReadVersionOffset = 19;
constexpr char kRollbackJournal = 1;

// Most that SQLite keeps of the file in memory, in KiB; it takes what it needs.
// With its default of 2 MB, reading pages took most of the time of a lookup
// (database_rate with 200,000 records). Imports change random pages of the
// index of candidates, which has 40 MB in a database of a million records. The
// file is not mapped: a failed read would end the process.
constexpr char kReaderCache[] = "PRAGMA cache_size = -131072";
constexpr char kWriterCache[] = "PRAGMA cache_size = -65536";

absl::Status CheckPath(const std::string& path) {
  if (path.empty()) {
    return absl::InvalidArgumentError("the path of the database is empty");
  }
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("the path holds a NUL byte");
  }
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is a directory, not a database"));
  }
  return absl::OkStatus();
}

absl::Status UseWal(Connection& connection) {
  TF_ASSIGN_OR_RETURN(Statement pragma,
                      connection.Prepare("PRAGMA journal_mode = WAL"));
  TF_ASSIGN_OR_RETURN(const bool row, pragma.Step());
  if (!row || pragma.Text(0) != "wal") {
    return absl::FailedPreconditionError(
        "the file system does not support SQLite's write-ahead log (a network "
        "file system?)");
  }
  return absl::OkStatus();
}

// A reader without write permission cannot make the -shm file that a WAL
// database needs. Without a writer and with an empty log, the file alone has
// the whole content.
absl::StatusOr<std::unique_ptr<Connection>> ReadCopy(const std::string& path) {
  // A writer that starts now must wait until the copy is made.
  const absl::StatusOr<FileLock> lock =
      FileLock::Acquire(path + ".lock", FileLock::Kind::kShared);
  if (!lock.ok() && !absl::IsNotFound(lock.status())) {
    return absl::PermissionDeniedError(
        absl::StrCat("no permission to read ", path,
                     " beside its writer: ", lock.status().message()));
  }
  if (FileSize(path + "-wal") > 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        path,
        " has changes in its write-ahead log that only a user with "
        "permission to write the folder can read"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int error = errno;
    return absl::PermissionDeniedError(
        absl::StrCat("cannot read ", path, ": ", strerror(error)));
  }
  std::string bytes{std::istreambuf_iterator<char>(file),
                    std::istreambuf_iterator<char>()};
  if (file.bad()) {
    return absl::UnavailableError(absl::StrCat("cannot read ", path));
  }
  if (bytes.size() > kReadVersionOffset) {
    bytes[kWriteVersionOffset] = kRollbackJournal;
    bytes[kReadVersionOffset] = kRollbackJournal;
  }
  return Connection::FromBytes(bytes, path);
}

}  // namespace

absl::Status Named(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

int64_t FileSize(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? static_cast<int64_t>(info.st_size)
                                        : 0;
}

absl::StatusOr<OpenFiles> OpenForWriting(const std::string& path) {
  TF_RETURN_IF_ERROR(CheckPath(path));
  OpenFiles files;
  std::string real = path;
  if (path != kMemory) {
    // The lock belongs to the file itself, also if a link led to it.
    std::error_code error;
    real = std::filesystem::weakly_canonical(path, error).string();
    if (error) real = path;
    const std::filesystem::path folder =
        std::filesystem::absolute(real, error).parent_path();
    if (!std::filesystem::is_directory(folder, error)) {
      return absl::NotFoundError(absl::StrCat(
          "the folder of the database does not exist: ", folder.string()));
    }
    TF_ASSIGN_OR_RETURN(
        files.lock,
        FileLock::Acquire(real + ".lock", FileLock::Kind::kExclusive));
  }
  TF_ASSIGN_OR_RETURN(
      files.writer,
      Connection::Open(real, Connection::Access::kReadWriteCreate));
  TF_RETURN_IF_ERROR(files.writer->Execute("PRAGMA synchronous = FULL"));
  TF_RETURN_IF_ERROR(files.writer->Execute(kWriterCache));
  // Before the journal mode: a foreign database is left as it is.
  TF_RETURN_IF_ERROR(Named(path, Migrate(*files.writer, Migrations())));
  if (path != kMemory) {
    TF_RETURN_IF_ERROR(Named(path, UseWal(*files.writer)));
    TF_ASSIGN_OR_RETURN(files.reader,
                        Connection::Open(real, Connection::Access::kReadOnly));
    TF_RETURN_IF_ERROR(files.reader->Execute(kReaderCache));
  }
  return files;
}

absl::StatusOr<OpenFiles> OpenForReading(const std::string& path) {
  TF_RETURN_IF_ERROR(CheckPath(path));
  if (path == kMemory) {
    return absl::InvalidArgumentError(
        "a database in memory cannot be opened read-only");
  }
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    const int error = errno;
    const std::string message =
        absl::StrCat("cannot open database ", path, ": ", strerror(error));
    return error == EACCES ? absl::PermissionDeniedError(message)
                           : absl::NotFoundError(message);
  }
  OpenFiles files;
  const auto open = [&]() -> absl::Status {
    TF_ASSIGN_OR_RETURN(files.reader,
                        Connection::Open(path, Connection::Access::kReadOnly));
    TF_RETURN_IF_ERROR(files.reader->Execute(kReaderCache));
    return CheckReadable(*files.reader);
  };
  absl::Status status = open();
  if (absl::IsPermissionDenied(status)) {
    TF_ASSIGN_OR_RETURN(files.reader, ReadCopy(path));
    status = CheckReadable(*files.reader);
  }
  TF_RETURN_IF_ERROR(Named(path, status));
  return files;
}

}  // namespace tilefarm::database
