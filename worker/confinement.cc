#include "worker/confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#endif

namespace tilefarm::worker {
namespace {

// Closes descriptors from `first` to `last`, both included.
void CloseAll(unsigned first, unsigned last) {
  if (first > last) return;
#if defined(SYS_close_range)
  if (syscall(SYS_close_range, first, last, 0) == 0) return;
#endif
  const auto end = static_cast<unsigned>(sysconf(_SC_OPEN_MAX));
  for (unsigned fd = first; fd <= last && fd < end; ++fd) {
    close(static_cast<int>(fd));
  }
}

bool WriteFile(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const auto size = static_cast<ssize_t>(strlen(text));
  const bool ok = write(fd, text, strlen(text)) == size;
  close(fd);
  return ok;
}

// Mounts are private to this namespace from here on.
bool MakeMountsPrivate() {
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

struct Capabilities {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
};

bool HasCapabilities() {
  Capabilities now;
  if (syscall(SYS_capget, &now.header, now.data) != 0) return true;
  return (now.data[0].permitted | now.data[1].permitted) != 0;
}

}  // namespace

void LowerLimit(decltype(RLIMIT_AS) resource, rlim_t value) {
  rlimit limit;
  if (getrlimit(resource, &limit) == 0) {
    limit.rlim_cur = std::min(value, limit.rlim_max);
    limit.rlim_max = limit.rlim_cur;
    setrlimit(resource, &limit);
  }
}

uint64_t MappedBytes() {
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[64] = {};
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return 0;
  return strtoull(text, nullptr, 10) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

bool CloseAllBut(std::vector<int> kept) {
  const int null_fd = open("/dev/null", O_RDWR);
  if (null_fd < 0) return false;
  for (int fd = 0; fd < 3; ++fd) dup2(null_fd, fd);
  std::sort(kept.begin(), kept.end());
  unsigned next = 3;
  for (const int fd : kept) {
    if (fd < 3) continue;
    CloseAll(next, static_cast<unsigned>(fd) - 1);
    next = static_cast<unsigned>(fd) + 1;
  }
  CloseAll(next, ~0u);
  return true;
}

bool EnterNamespaces(int flags) {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(flags) == 0) return true;
  if (HasCapabilities()) return false;
  if (unshare(CLONE_NEWUSER | flags) != 0) return false;
  // Maps our ids into the new namespace, which matters only for names.
  char map[64];
  snprintf(map, sizeof map, "%u %u 1", user, user);
  WriteFile("/proc/self/uid_map", map);
  WriteFile("/proc/self/setgroups", "deny");
  snprintf(map, sizeof map, "%u %u 1", group, group);
  WriteFile("/proc/self/gid_map", map);
  return true;
}

bool MountInMemory(const std::string& folder, uint64_t bytes, uint64_t files) {
  if (!MakeMountsPrivate()) return false;
  char options[96];
  snprintf(options, sizeof options, "size=%llu,nr_inodes=%llu,mode=0700",
           static_cast<unsigned long long>(bytes),
           static_cast<unsigned long long>(files));
  return mount("tmpfs", folder.c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
               options) == 0;
}

bool EnterEmptyFileSystem(uint64_t bytes) {
  if (!MakeMountsPrivate()) return false;
  char options[64];
  snprintf(options, sizeof options, "size=%llu,mode=0755",
           static_cast<unsigned long long>(bytes));
  if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
            options) != 0) {
    return false;
  }
  // Nothing outside is open, and the privilege to leave is dropped with the
  // others.
  if (chdir("/tmp") != 0 || chroot(".") != 0) return false;
  return mkdir("/tmp", 0700) == 0 && chmod("/tmp", 01777) == 0;
}

#if defined(LANDLOCK_CREATE_RULESET_VERSION) && \
    defined(SYS_landlock_create_ruleset)
namespace {

// A folder, and what remains possible beneath it.
struct Permission {
  std::string folder;
  uint64_t accesses;
};

// Of `accesses`, only what `permissions` has remains possible.
std::string RestrictFiles(uint64_t accesses,
                          const std::vector<Permission>& permissions) {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0,
                               LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return std::string("Landlock: ") + strerror(errno);
  landlock_ruleset_attr rules = {};
  rules.handled_access_fs = accesses;
  uint64_t added = 0;  // by later versions
#if defined(LANDLOCK_ACCESS_FS_TRUNCATE)
  if (version >= 3) added |= LANDLOCK_ACCESS_FS_TRUNCATE;
#endif
  rules.handled_access_fs |= added;
#if defined(LANDLOCK_ACCESS_FS_REFER)
  // Moving files between folders, which is forbidden without a rule.
  if (version >= 2) rules.handled_access_fs |= LANDLOCK_ACCESS_FS_REFER;
#endif
  const int ruleset = static_cast<int>(
      syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0));
  if (ruleset < 0) return std::string("Landlock: ") + strerror(errno);
  bool ok = true;
  for (const Permission& permission : permissions) {
    landlock_path_beneath_attr rule = {};
    rule.allowed_access =
        (permission.accesses | added) & rules.handled_access_fs;
    rule.parent_fd = open(permission.folder.c_str(), O_PATH | O_CLOEXEC);
    ok = ok && rule.parent_fd >= 0 &&
         syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH,
                 &rule, 0) == 0;
    if (rule.parent_fd >= 0) close(rule.parent_fd);
  }
  ok = ok && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
  const std::string error =
      ok ? "" : std::string("Landlock: ") + strerror(errno);
  close(ruleset);
  return error;
}

// Everything that the first version of Landlock can forbid.
constexpr uint64_t kAllAccesses = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
constexpr uint64_t kReadingFiles =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWritingFiles = LANDLOCK_ACCESS_FS_WRITE_FILE |
                                   LANDLOCK_ACCESS_FS_REMOVE_FILE |
                                   LANDLOCK_ACCESS_FS_MAKE_REG;
constexpr uint64_t kChangingFolders =
    LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_MAKE_DIR;
#if defined(LANDLOCK_ACCESS_FS_REFER)
constexpr uint64_t kMovingFiles = LANDLOCK_ACCESS_FS_REFER;
#else
constexpr uint64_t kMovingFiles = 0;
#endif

}  // namespace

std::string ForbidFilesOutside(const std::string& directory) {
  return RestrictFiles(
      kAllAccesses,
      {{directory, kReadingFiles | kWritingFiles | kChangingFolders}});
}

std::string ForbidWritingBut(const std::vector<std::string>& folders,
                             const std::string& own_folder) {
  std::vector<Permission> permissions;
  for (const std::string& folder : folders) {
    permissions.push_back({folder, kWritingFiles});
  }
  if (!own_folder.empty()) {
    permissions.push_back(
        {own_folder, kWritingFiles | kChangingFolders | kMovingFiles});
  }
  return RestrictFiles(
      kAllAccesses & ~(kReadingFiles | LANDLOCK_ACCESS_FS_EXECUTE),
      permissions);
}
#else
std::string ForbidFilesOutside(const std::string&) {
  return "built without Landlock";
}
std::string ForbidWritingBut(const std::vector<std::string>&,
                             const std::string&) {
  return "built without Landlock";
}
#endif

bool GiveUpPrivileges() {
  if (geteuid() == 0 && setgroups(0, nullptr) == 0) {
    if (setresgid(kNobody, kNobody, kNobody) != 0 ||
        setresuid(kNobody, kNobody, kNobody) != 0) {
      return false;
    }
  }
  Capabilities none;
  if (syscall(SYS_capset, &none.header, none.data) != 0 && errno != ENOSYS) {
    return false;
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  prctl(PR_SET_DUMPABLE, 0);
  return true;
}

}  // namespace tilefarm::worker
