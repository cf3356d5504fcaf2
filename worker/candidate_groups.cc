#include "worker/candidate_groups.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "worker/control_group.h"

namespace tilefarm::worker {
namespace {

constexpr char kOwnSubgroup[] = "worker";
constexpr int64_t kLeftoversMs = 5000;

std::string ReadFile(const std::string& path) {
  std::string text;
  return ReadGroupFile(path, &text) ? text : "";
}

// Returns errno, or 0.
int WriteFile(const std::string& path, const std::string& text) {
  return WriteGroupFile(path, text) ? 0 : errno;
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool HasAttribute(const std::string& directory, const char* name) {
  char value[8] = {};
  const ssize_t n = getxattr(directory.c_str(), name, value, sizeof value - 1);
  return n > 0 && value[0] == '1';
}

// Finds "0::PATH" in /proc/self/cgroup: the group of cgroup v2, as named in the
// namespace of this process.
std::optional<std::string> OwnPath(const std::string& groups) {
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    if (absl::StartsWith(line, "0::/")) return std::string(line.substr(3));
  }
  return std::nullopt;
}

// The directory of that group, according to the mounts (proc(5), mountinfo).
std::optional<std::string> DirectoryOf(const std::string& path,
                                       const std::string& mounts) {
  for (const absl::string_view line : absl::StrSplit(mounts, '\n')) {
    const std::vector<std::string> halves =
        absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    if (halves.size() != 2 || !absl::StartsWith(halves[1], "cgroup2 ")) {
      continue;
    }
    const std::vector<std::string> fields = absl::StrSplit(halves[0], ' ');
    if (fields.size() < 5) continue;
    // Which part of the hierarchy is mounted, and where.
    absl::string_view below = path;
    const std::string& root = fields[3];
    if (root != "/") {
      if (!absl::ConsumePrefix(&below, root) ||
          (!below.empty() && below[0] != '/')) {
        continue;
      }
    }
    if (below == "/") below = "";
    return absl::StrCat(fields[4], below);
  }
  return std::nullopt;
}

// "12 (bash), 15 (sshd)"
std::string ProcessesIn(const std::string& directory) {
  std::vector<std::string> found;
  for (const absl::string_view pid : absl::StrSplit(
           ReadFile(directory + "/cgroup.procs"), '\n', absl::SkipEmpty())) {
    if (found.size() == 4) {
      found.push_back("...");
      break;
    }
    const std::string name = ReadFile(absl::StrCat("/proc/", pid, "/comm"));
    found.push_back(
        absl::StrCat(pid, " (", absl::StripSuffix(name, "\n"), ")"));
  }
  return absl::StrJoin(found, ", ");
}

// Enables the controllers for the groups in `directory`. Returns which limits
// are not possible, and why; empty: all are.
std::string Enable(const std::string& directory) {
  const std::vector<std::string> there = absl::StrSplit(
      absl::StripSuffix(ReadFile(directory + "/cgroup.controllers"), "\n"),
      ' ');
  std::vector<std::string> lacking;
  for (const std::string controller : {"memory", "pids"}) {
    if (std::find(there.begin(), there.end(), controller) == there.end()) {
      lacking.push_back(absl::StrCat(controller, ": not among ", directory,
                                     "/cgroup.controllers"));
      continue;
    }
    const int error =
        WriteFile(directory + "/cgroup.subtree_control", "+" + controller);
    if (error == 0) continue;
    // EBUSY: the group has processes itself.
    const std::string others = error == EBUSY ? ProcessesIn(directory) : "";
    lacking.push_back(
        absl::StrCat(controller, ": ",
                     others.empty() ? std::strerror(error)
                                    : absl::StrCat("other processes are in ",
                                                   directory, ": ", others)));
  }
  if (lacking.empty()) return "";
  return absl::StrCat("candidates' groups do not limit ",
                      absl::StrJoin(lacking, "; "));
}

// Checks an option that is a path.
std::string PathOf(const std::string& option) {
  return std::string(absl::StripSuffix(option, "/"));
}

}  // namespace

CandidateGroups::System CandidateGroups::RealSystem() {
  System system;
  system.is_delegated = [](const std::string& directory) {
    // The second name is that of systemd before 251, for root only.
    return HasAttribute(directory, "user.delegate") ||
           HasAttribute(directory, "trusted.delegate");
  };
  system.is_group = [](const std::string& directory) {
    struct statfs info;
    return statfs(directory.c_str(), &info) == 0 &&
           static_cast<uint64_t>(info.f_type) == CGROUP2_SUPER_MAGIC;
  };
  return system;
}

absl::Status CandidateGroups::Check(const std::string& option,
                                    const System& system) {
  if (option == "auto" || option == "off") return absl::OkStatus();
  if (!absl::StartsWith(option, "/")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--cgroup ", option, " is neither auto, off nor an absolute path"));
  }
  const std::string directory = PathOf(option);
  // The group may be made in its parent.
  const std::string parent = directory.substr(0, directory.rfind('/'));
  if (system.is_group(Exists(directory) ? directory : parent)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--cgroup ", option, " is in no cgroup v2 hierarchy (mount -t cgroup2)"));
}

CandidateGroups& CandidateGroups::operator=(CandidateGroups&& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(shortfall_, other.shortfall_);
  std::swap(lock_fd_, other.lock_fd_);
  return *this;
}

CandidateGroups::~CandidateGroups() {
  if (lock_fd_ < 0) return;
  std::string error;
  if (!RemoveLeftovers(directory_, kLeftoversMs, &error)) {
    Log(LogLevel::kWarning, "worker",
        absl::StrCat("left behind by a candidate: ", error));
  }
  close(lock_fd_);
}

absl::Status CandidateGroups::Take(const std::string& directory,
                                   const std::string& own) {
  lock_fd_ = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_fd_ < 0) return absl::ErrnoToStatus(errno, directory);
  // The system releases the lock when this process ends in any way.
  if (flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(std::exchange(lock_fd_, -1));
    if (error != EWOULDBLOCK) return absl::ErrnoToStatus(error, directory);
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " is used by another rpc-worker"));
  }
  directory_ = directory;
  if (own == directory) {
    const std::string subgroup = absl::StrCat(directory, "/", kOwnSubgroup);
    if (mkdir(subgroup.c_str(), 0755) != 0 && errno != EEXIST) {
      return absl::ErrnoToStatus(errno, subgroup);
    }
    const int error = WriteFile(subgroup + "/cgroup.procs", "0");
    if (error != 0) {
      return absl::ErrnoToStatus(error, subgroup + "/cgroup.procs");
    }
  }
  shortfall_ = Enable(directory);
  return absl::OkStatus();
}

absl::StatusOr<CandidateGroups> CandidateGroups::Prepare(
    const std::string& option, const System& system) {
  CandidateGroups groups;
  TF_RETURN_IF_ERROR(Check(option, system));
  if (option == "off") return groups;
  const std::optional<std::string> path = OwnPath(ReadFile(system.own_groups));
  std::optional<std::string> own;
  if (path.has_value()) own = DirectoryOf(*path, ReadFile(system.mounts));

  if (option == "auto") {
    const auto none = [&](auto... why) {
      CandidateGroups nothing;
      nothing.shortfall_ =
          absl::StrCat("candidates have no control groups: ", why...);
      return nothing;
    };
    if (!own.has_value()) {
      return none("no cgroup v2 hierarchy that has this process is mounted");
    }
    // The root of the machine's own hierarchy lacks that file.
    const bool is_namespace = *path == "/" && Exists(*own + "/cgroup.type");
    if (!is_namespace && !system.is_delegated(*own)) {
      return none(*own,
                  " is not delegated to this worker (systemd: Delegate=)");
    }
    if (access(own->c_str(), W_OK) != 0) {
      return none(*own, ": ", std::strerror(errno));
    }
    if (const absl::Status status = groups.Take(*own, *own); !status.ok()) {
      return none(std::string(status.message()));
    }
    return groups;
  }

  const std::string directory = PathOf(option);
  const auto refused = [&](const absl::Status& status) {
    return absl::Status(
        status.code(),
        absl::StrCat("--cgroup ", option, ": ", std::string(status.message())));
  };
  if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
    return refused(absl::ErrnoToStatus(errno, "mkdir"));
  }
  if (!Exists(directory + "/cgroup.type")) {
    return refused(absl::FailedPreconditionError(
        "is the root of a hierarchy: name a group in it"));
  }
  TF_RETURN_IF_ERROR(refused(groups.Take(directory, own.value_or(""))));
  if (const std::string others = ProcessesIn(directory); !others.empty()) {
    return refused(absl::FailedPreconditionError(
        absl::StrCat("other processes are in it: ", others)));
  }
  return groups;
}

}  // namespace tilefarm::worker
