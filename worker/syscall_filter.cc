#include "worker/syscall_filter.h"

#if TILEFARM_SECCOMP
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <iterator>
#include <memory>
#endif

namespace tilefarm::worker {

#if TILEFARM_SECCOMP

namespace {

// Placeholder in a program for the id of the process that installs it. It is
// not the id of any process, because ids have 22 bits.
constexpr uint32_t kOwnId = 0x5e1f1d00;

constexpr int kRequestTilePermission = 0x1023;   // ARCH_REQ_XCOMP_PERM
constexpr int kSetThreadPointer = 0x1002;        // ARCH_SET_FS
constexpr uint64_t kNewNamespaces = 0x7e020080;  // CLONE_NEWTIME and others
constexpr int kFromFilter = 1;                   // SYS_SECCOMP
constexpr int kNameMapping = 0x53564d41;         // PR_SET_VMA
// Signals that the C library uses itself.
constexpr int kFirstLibrarySignal = 32, kLastLibrarySignal = 33;

// Allowed with any arguments. The lists name the calls of all architectures;
// libseccomp ignores those that this one lacks.
constexpr const char* kAlways[] = {
    // Memory
    "brk", "madvise", "mremap", "munmap",
    // Threads
    "exit", "exit_group", "futex", "futex_time64", "get_robust_list", "getcpu",
    "getpid", "gettid", "membarrier", "restart_syscall", "rseq",
    "rt_sigprocmask", "sched_getaffinity", "sched_yield", "set_robust_list",
    // Time
    "clock_getres", "clock_getres_time64", "clock_gettime", "clock_gettime64",
    "clock_nanosleep", "clock_nanosleep_time64", "getrusage", "gettimeofday",
    "nanosleep", "time",
    // The C library's message when it aborts; only /dev/null is open
    "write", "writev"};

// For loading shared objects, and for libraries of kernels that query the
// system.
constexpr const char* kLoading[] = {
    "_llseek",       "access",     "close",
    "faccessat",     "faccessat2", "fstat",
    "fstat64",       "fstatat64",  "getcwd",
    "getegid",       "geteuid",    "getgid",
    "getrandom",     "getuid",     "lseek",
    "newfstatat",    "pread64",    "read",
    "readlink",      "readlinkat", "riscv_flush_icache",
    "riscv_hwprobe", "seccomp",    "stat",
    "stat64",        "statx",      "sysinfo",
    "uname"};

// For compiling and linking: LLVM and LLD make, map, rename and remove files,
// and catch signals.
constexpr const char* kBuilding[] = {
    "_llseek",      "access",      "close",      "faccessat",
    "faccessat2",   "fstat",       "fstat64",    "fstatat64",
    "fstatfs",      "fstatfs64",   "ftruncate",  "ftruncate64",
    "fallocate",    "getcwd",      "getdents64", "getegid",
    "geteuid",      "getgid",      "getppid",    "getrandom",
    "getrlimit",    "getuid",      "lseek",      "lstat",
    "lstat64",      "mkdir",       "mkdirat",    "newfstatat",
    "open",         "openat",      "poll",       "ppoll",
    "ppoll_time64", "pread64",     "pwrite64",   "read",
    "readlink",     "readlinkat",  "readv",      "rename",
    "renameat",     "renameat2",   "rmdir",      "rt_sigaction",
    "rt_sigreturn", "sigaltstack", "sigreturn",  "stat",
    "stat64",       "statx",       "sysinfo",    "ugetrlimit",
    "umask",        "uname",       "unlink",     "unlinkat"};

// What a driver of a device takes, in addition to kLoading.
constexpr const char* kDriver[] = {"dup",
                                   "epoll_create1",
                                   "epoll_ctl",
                                   "epoll_pwait",
                                   "epoll_wait",
                                   "eventfd2",
                                   "fcntl",
                                   "fcntl64",
                                   "getdents64",
                                   "getppid",
                                   "get_mempolicy",
                                   "getrlimit",
                                   "ioctl",
                                   "lstat",
                                   "lstat64",
                                   "mbind",
                                   "mincore",
                                   "mlock",
                                   "munlock",
                                   "pipe2",
                                   "poll",
                                   "ppoll",
                                   "ppoll_time64",
                                   "pwrite64",
                                   "readv",
                                   "recvfrom",
                                   "recvmsg",
                                   "rt_sigaction",
                                   "rt_sigreturn",
                                   "sched_get_priority_max",
                                   "sched_getparam",
                                   "sched_get_priority_min",
                                   "sched_getscheduler",
                                   "sendmsg",
                                   "sendto",
                                   "set_mempolicy",
                                   "sigaltstack",
                                   "sigreturn",
                                   "statfs",
                                   "fstatfs",
                                   "timerfd_create",
                                   "timerfd_settime",
                                   "ugetrlimit"};

// What a driver and its linker take, in addition to kDriver.
constexpr const char* kLinking[] = {
    "chmod",        "dup2",      "dup3",      "execve",      "fadvise64",
    "fadvise64_64", "fallocate", "fchmod",    "fchmodat",    "fdatasync",
    "flock",        "fsync",     "ftruncate", "ftruncate64", "mkdir",
    "mkdirat",      "open",      "openat",    "pipe",        "pwritev",
    "rename",       "renameat",  "renameat2", "rmdir",       "set_tid_address",
    "umask",        "unlink",    "unlinkat",  "utimensat",   "wait4",
    "waitid"};

// Calls that fail instead of ending the process, and their errors.
struct Failing {
  const char* name;
  int error;
};
constexpr Failing kFailing[] = {{"clone3", ENOSYS}};
// The C library continues without these: printf asks what kind of file it
// writes to.
constexpr Failing kFailingRunning[] = {
    {"fstat", EACCES},      {"fstat64", EACCES}, {"fstatat64", EACCES},
    {"newfstatat", EACCES}, {"statx", EACCES},   {"ioctl", ENOTTY}};
// A library continues without placing memory on other nodes.
constexpr Failing kFailingLoading[] = {{"get_mempolicy", ENOSYS},
                                       {"ioctl", ENOTTY},
                                       {"mbind", ENOSYS},
                                       {"set_mempolicy", ENOSYS}};

using Context = std::unique_ptr<void, decltype(&seccomp_release)>;

// Collects rules, and remembers the first one that libseccomp refuses.
class Rules {
 public:
  explicit Rules(scmp_filter_ctx context) : context_(context) {}

  void Allow(const char* name) { Add(SCMP_ACT_ALLOW, name, 0, {}); }
  void Allow(const char* name, scmp_arg_cmp condition) {
    Add(SCMP_ACT_ALLOW, name, 1, condition);
  }
  void Fail(const char* name, int error) {
    Add(SCMP_ACT_ERRNO(static_cast<uint32_t>(error)), name, 0, {});
  }
  void Fail(const char* name, int error, scmp_arg_cmp condition) {
    Add(SCMP_ACT_ERRNO(static_cast<uint32_t>(error)), name, 1, condition);
  }
  const std::string& error() const { return error_; }

 private:
  void Add(uint32_t action, const char* name, unsigned count,
           scmp_arg_cmp condition) {
    const int number = seccomp_syscall_resolve_name(name);
    // A call of another architecture.
    if (number == __NR_SCMP_ERROR || number < 0) return;
    const int result =
        seccomp_rule_add_array(context_, action, number, count, &condition);
    if (result == 0 || !error_.empty()) return;
    error_ = std::string("no rule for ") + name + ": " + strerror(-result);
  }

  scmp_filter_ctx context_;
  std::string error_;
};

// Rules for every process.
void AddCommonRules(Rules& rules) {
  for (const char* name : kAlways) rules.Allow(name);
  for (const Failing& failing : kFailing) {
    rules.Fail(failing.name, failing.error);
  }
  // Permits new threads of this process, in its present namespaces.
  rules.Allow("clone", SCMP_A0(SCMP_CMP_MASKED_EQ,
                               CLONE_THREAD | CLONE_VFORK | CLONE_PTRACE |
                                   kNewNamespaces,
                               CLONE_THREAD));
  for (const char* name : {"kill", "tgkill"}) {
    rules.Allow(name, SCMP_A0(SCMP_CMP_EQ, kOwnId));
  }
}

// Changes to memory. `executable`: machine code may be made.
void AddMemoryRules(bool executable, Rules& rules) {
  for (const char* name : {"mmap", "mmap2", "mprotect"}) {
    if (executable) {
      rules.Allow(name);
    } else {
      rules.Allow(name, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    }
  }
}

void AddBuildingRules(Rules& rules) {
  AddCommonRules(rules);
  AddMemoryRules(/*executable=*/false, rules);
  for (const char* name : kBuilding) rules.Allow(name);
  // Permits naming threads.
  rules.Allow("prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
  for (const int command : {F_GETFD, F_SETFD, F_GETFL}) {
    for (const char* name : {"fcntl", "fcntl64"}) {
      rules.Allow(name,
                  SCMP_A1(SCMP_CMP_EQ, static_cast<scmp_datum_t>(command)));
    }
  }
  // Permits changing its own limits, which it cannot raise.
  rules.Allow("prlimit64", SCMP_A0(SCMP_CMP_EQ, 0));
  rules.Allow("setrlimit");
}

void AddCandidateRules(bool loading, Rules& rules) {
  AddCommonRules(rules);
  AddMemoryRules(/*executable=*/loading, rules);
  rules.Allow("sched_setaffinity");  // kOwnThreadsAlone restricts it
  for (int s = kFirstLibrarySignal; s <= kLastLibrarySignal; ++s) {
    rules.Allow("rt_sigaction",
                SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(s)));
  }
  // Permits reading a limit, not setting it.
  rules.Allow("prlimit64", SCMP_A2(SCMP_CMP_EQ, 0));
  rules.Fail("prctl", EINVAL, SCMP_A0(SCMP_CMP_EQ, kNameMapping));
#if defined(__x86_64__)
  rules.Allow("arch_prctl", SCMP_A0(SCMP_CMP_EQ, kRequestTilePermission));
#endif
  if (!loading) {
    for (const Failing& failing : kFailingRunning) {
      rules.Fail(failing.name, failing.error);
    }
    return;
  }
  for (const char* name : kLoading) rules.Allow(name);
  for (const Failing& failing : kFailingLoading) {
    rules.Fail(failing.name, failing.error);
  }
  // Permits opening for reading, without flags that make, empty or lock a file.
  constexpr uint64_t kUnnamed = O_TMPFILE & ~O_DIRECTORY;
  constexpr uint64_t kReading = O_ACCMODE | O_CREAT | O_TRUNC | kUnnamed;
  rules.Allow("open", SCMP_A1(SCMP_CMP_MASKED_EQ, kReading, O_RDONLY));
  rules.Allow("openat", SCMP_A2(SCMP_CMP_MASKED_EQ, kReading, O_RDONLY));
}

// `links`: for kLinker.
void AddDeviceRules(bool links, Rules& rules) {
  AddCommonRules(rules);
  AddMemoryRules(/*executable=*/true, rules);
  for (const char* name : kLoading) rules.Allow(name);
  for (const char* name : kDriver) rules.Allow(name);
  rules.Allow("sched_setaffinity");  // kOwnThreadsAlone restricts it
  rules.Allow("prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
  rules.Allow("prctl", SCMP_A0(SCMP_CMP_EQ, PR_GET_NAME));
  // Permits reading a limit, not setting it.
  rules.Allow("prlimit64", SCMP_A2(SCMP_CMP_EQ, 0));
#if defined(__x86_64__)
  rules.Allow("arch_prctl", SCMP_A0(SCMP_CMP_EQ, kRequestTilePermission));
#endif
  if (links) {
    for (const char* name : kLinking) rules.Allow(name);
    // Permits new processes as posix_spawn makes them: their parent waits until
    // they run a program.
    rules.Allow("clone",
                SCMP_A0(SCMP_CMP_MASKED_EQ,
                        CLONE_THREAD | CLONE_VM | CLONE_VFORK | CLONE_PARENT |
                            CLONE_PTRACE | kNewNamespaces,
                        CLONE_VM | CLONE_VFORK));
#if defined(__x86_64__)
    rules.Allow("arch_prctl", SCMP_A0(SCMP_CMP_EQ, kSetThreadPointer));
#endif
    return;
  }
  // Permits opening without flags that make or empty a file.
  constexpr uint64_t kMaking = O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
  rules.Allow("open", SCMP_A1(SCMP_CMP_MASKED_EQ, kMaking, 0));
  rules.Allow("openat", SCMP_A2(SCMP_CMP_MASKED_EQ, kMaking, 0));
}

// Runs before the rules. A process may set the cores of its own threads, whose
// ids are larger than its own until ids wrap around; a thread pool continues
// after a failure. Rules cannot say "fails unless one of two conditions holds".
// Little-endian, like all our triples.
constexpr uint32_t kArgument = offsetof(seccomp_data, args);
constexpr sock_filter kOwnThreadsAlone[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 4),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kArgument),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kOwnId, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
};

volatile int32_t* refused_where = nullptr;

// Makes the refused call again: because SIGSYS is blocked here, that ends the
// process by SIGSYS.
void OnRefused(int, siginfo_t* info, void*) {
  if (info->si_code == kFromFilter) *refused_where = info->si_syscall + 1;
  for (;;) syscall(SYS_ptrace, 0, 0, 0, 0);
}

}  // namespace

std::string SyscallFilter::Build(Kind kind) {
  const bool refuses = kind != Kind::kLoading && kind != Kind::kRunning;
  Context context(seccomp_init(refuses ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_TRAP),
                  seccomp_release);
  if (context == nullptr) return "out of memory";
  // Calls with the numbers of another architecture.
  seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH,
                   SCMP_ACT_KILL_PROCESS);
  seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  Rules rules(context.get());
  switch (kind) {
    case Kind::kBuilding:
      AddBuildingRules(rules);
      break;
    case Kind::kDevice:
      AddDeviceRules(/*links=*/false, rules);
      break;
    case Kind::kLinker:
      AddDeviceRules(/*links=*/true, rules);
      break;
    case Kind::kLoading:
    case Kind::kRunning:
      AddCandidateRules(kind == Kind::kLoading, rules);
      break;
  }
  if (!rules.error().empty()) return rules.error();

  // libseccomp 2.5 can write programs only to files.
  const int fd = memfd_create("filter", MFD_CLOEXEC);
  if (fd < 0) return std::string("no memory file: ") + strerror(errno);
  struct stat status = {};
  bool ok = seccomp_export_bpf(context.get(), fd) == 0 &&
            fstat(fd, &status) == 0 && status.st_size > 0 &&
            static_cast<size_t>(status.st_size) % sizeof(sock_filter) == 0;
  if (ok) {
    const auto bytes = static_cast<size_t>(status.st_size);
    program_.assign(std::begin(kOwnThreadsAlone), std::end(kOwnThreadsAlone));
    program_.resize(program_.size() + bytes / sizeof(sock_filter));
    ok = pread(fd, &program_[std::size(kOwnThreadsAlone)], bytes, 0) ==
         status.st_size;
  }
  close(fd);
  return ok ? "" : "cannot make the program";
}

bool SyscallFilter::Install() const {
  std::vector<sock_filter> program = program_;
  const auto self = static_cast<uint32_t>(getpid());
  for (sock_filter& instruction : program) {
    if (BPF_CLASS(instruction.code) == BPF_JMP && instruction.k == kOwnId) {
      instruction.k = self;
    }
  }
  const sock_fprog filter = {static_cast<unsigned short>(program.size()),
                             program.data()};
  // Without SPEC_ALLOW, older systems disable speculation past stores for every
  // filtered process, so that measured kernels would be slower than real ones.
  for (const unsigned speculation : {SECCOMP_FILTER_FLAG_SPEC_ALLOW, 0ul}) {
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                SECCOMP_FILTER_FLAG_TSYNC | speculation, &filter) == 0) {
      return true;
    }
    if (errno != EINVAL) return false;
  }
  return false;
}

void NoteRefusedCalls(volatile int32_t* where) {
  refused_where = where;
  struct sigaction action = {};
  action.sa_sigaction = OnRefused;
  action.sa_flags = SA_SIGINFO;
  sigfillset(&action.sa_mask);
  sigaction(SIGSYS, &action, nullptr);
}

std::string SyscallName(int number) {
  char* name = number < 0 ? nullptr
                          : seccomp_syscall_resolve_num_arch(
                                seccomp_arch_native(), number);
  if (name == nullptr) return "";
  const std::string text = name;
  free(name);
  return text;
}

#else

std::string SyscallFilter::Build(Kind) { return "built without seccomp"; }
bool SyscallFilter::Install() const { return false; }
void NoteRefusedCalls(volatile int32_t*) {}
std::string SyscallName(int) { return ""; }

#endif  // TILEFARM_SECCOMP

}  // namespace tilefarm::worker
