#include "database/backup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "database/sqlite.h"
#include "database/sqlite_open.h"

namespace tilefarm::database {
namespace {

absl::Status Failed(const std::string& path) {
  const int error = errno;
  const std::string text = absl::StrCat(path, ": ", std::strerror(error));
  if (error == EEXIST) return absl::AlreadyExistsError(text);
  return error == ENOENT ? absl::NotFoundError(text)
                         : absl::UnavailableError(text);
}

absl::Status Sync(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Failed(path);
  const bool synced = fsync(fd) == 0;
  const absl::Status status = synced ? absl::OkStatus() : Failed(path);
  close(fd);
  return status;
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// The copy has a temporary name until it is complete; the destructor removes
// it.
class PartialFile {
 public:
  explicit PartialFile(const std::string& to)
      : path_(absl::StrCat(to, ".partial-", getpid())) {}
  ~PartialFile() {
    if (made_) unlink(path_.c_str());
  }
  absl::Status Make() {
    const int fd =
        open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return Failed(path_);
    close(fd);
    made_ = true;
    return absl::OkStatus();
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  bool made_ = false;
};

absl::Status Copy(const std::string& from, const std::string& to) {
  TF_ASSIGN_OR_RETURN(const OpenFiles source, OpenForReading(from));
  TF_ASSIGN_OR_RETURN(Statement vacuum,
                      source.reader->Prepare("VACUUM INTO ?"));
  return vacuum.Bind(to).Run();
}

absl::StatusOr<BackupFacts> Check(const std::string& path) {
  BackupFacts facts;
  TF_ASSIGN_OR_RETURN(const auto copy,
                      Connection::Open(path, Connection::Access::kReadOnly));
  {
    TF_ASSIGN_OR_RETURN(Statement check,
                        copy->Prepare("PRAGMA integrity_check"));
    TF_ASSIGN_OR_RETURN(const bool row, check.Step());
    if (!row || check.Text(0) != "ok") {
      return absl::DataLossError(absl::StrCat(
          "the copy is not sound: ", row ? check.Text(0) : "no answer"));
    }
  }
  TF_ASSIGN_OR_RETURN(facts.records,
                      copy->QueryInt("SELECT COUNT(*) FROM records"));
  TF_ASSIGN_OR_RETURN(facts.jobs, copy->QueryInt("SELECT COUNT(*) FROM jobs"));
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return Failed(path);
  facts.bytes = static_cast<int64_t>(info.st_size);
  return facts;
}

}  // namespace

absl::StatusOr<BackupFacts> Backup(const std::string& from,
                                   const std::string& to) {
  // Checked early, so that a long copy is not made in vain.
  if (access(to.c_str(), F_OK) == 0) {
    return absl::AlreadyExistsError(
        absl::StrCat(to, " exists; a backup never overwrites"));
  }
  PartialFile partial(to);
  TF_RETURN_IF_ERROR(partial.Make());
  TF_RETURN_IF_ERROR(Copy(from, partial.path()));
  TF_ASSIGN_OR_RETURN(const BackupFacts facts, Check(partial.path()));
  TF_RETURN_IF_ERROR(Sync(partial.path()));
  // Unlike rename, link fails if the name has been taken meanwhile.
  if (link(partial.path().c_str(), to.c_str()) != 0) return Failed(to);
  TF_RETURN_IF_ERROR(Sync(FolderOf(to)));
  return facts;
}

}  // namespace tilefarm::database
