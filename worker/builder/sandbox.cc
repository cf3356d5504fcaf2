#include "worker/builder/sandbox.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "worker/confinement.h"
#include "worker/syscall_filter.h"

namespace tilefarm::worker {
namespace {

// Limit on the files of the linker; artifacts have kilobytes.
constexpr uint64_t kFileBytes = uint64_t{1} << 30;
constexpr uint64_t kOpenFiles = 64;

void Note(BuilderConfinement& confinement, const char* part, bool has,
          const std::string& why_not) {
  std::string& text = has ? confinement.parts : confinement.shortfall;
  if (has) {
    absl::StrAppend(&text, text.empty() ? "" : "+", part);
  } else {
    absl::StrAppend(&text, text.empty() ? "" : "; ", why_not);
  }
}

// A new directory that only this user can enter.
absl::StatusOr<std::string> MakeDirectory() {
  char path[] = "/tmp/tilefarm-builder-XXXXXX";
  if (mkdtemp(path) == nullptr) {
    return absl::ErrnoToStatus(errno, "no directory in /tmp");
  }
  setenv("TMPDIR", path, 1);
  return path;
}

}  // namespace

absl::StatusOr<BuilderConfinement> EnterBuilderSandbox(
    const std::vector<int>& kept, pid_t parent) {
  BuilderConfinement confinement;
  if (!CloseAllBut(kept)) {
    return absl::ErrnoToStatus(errno, "no /dev/null");
  }
  const bool netns = EnterNamespaces(CLONE_NEWNET | CLONE_NEWNS);
  const bool mntns = netns && EnterEmptyFileSystem(kFileBytes);
  LowerLimit(RLIMIT_CORE, 0);
  LowerLimit(RLIMIT_FSIZE, kFileBytes);
  LowerLimit(RLIMIT_NOFILE, kOpenFiles);
  if (!GiveUpPrivileges()) {
    return absl::InternalError("root's privileges cannot be given up");
  }
  if (!mntns) {
    TF_ASSIGN_OR_RETURN(confinement.directory, MakeDirectory());
  }
  // Set after the change of user, which resets it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (parent != 0 && getppid() != parent) {
    return absl::UnavailableError("the process that started it has ended");
  }
  const std::string no_landlock =
      ForbidFilesOutside(mntns ? "/" : confinement.directory);
  SyscallFilter filter;
  std::string no_filter = filter.Build(SyscallFilter::Kind::kBuilding);
  if (no_filter.empty() && !filter.Install()) {
    no_filter = "it cannot be installed";
  }
  Note(confinement, "seccomp", no_filter.empty(),
       absl::StrCat("no system call filter: ", no_filter));
  Note(confinement, "netns", netns, "no network namespace may be made");
  Note(confinement, "mntns", mntns, "no file system of its own may be made");
  Note(confinement, "landlock", no_landlock.empty(), no_landlock);
  return confinement;
}

}  // namespace tilefarm::worker
