// Kernels that want to do harm, for the runner's tests: `out` becomes twice
// `in`, for kElements floats, after what the name says. What an act returns is
// what the kernel returns, so that one which succeeds is seen to.
//
// `hostile_constructor` names an act that is done while the artifact is loaded;
// the tests put it there (16 bytes, zeros after the name).
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kElements = 1000, kHarmDone = 66 };

static int Double(void* in, void* out) {
  for (int i = 0; i < kElements; ++i) ((float*)out)[i] = 2 * ((float*)in)[i];
  return 0;
}

int good(void* in, void* out) { return Double(in, out); }

// compiler/oracle/oracle.h: each element within a millionth of itself.
int oracle_good(void* const* buffers, void* const* bounds) {
  const float* out = buffers[1];
  Double(buffers[0], buffers[1]);
  for (int i = 0; i < kElements; ++i) {
    ((float*)bounds[1])[i] = 1e-6f * (out[i] < 0 ? -out[i] : out[i]);
  }
  return 0;
}

static void Forever(void) {
  for (;;) {
  }
}

// Processes

static int forks_once(void) {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) usleep(1000000);
  }
  return child < 0 ? errno : kHarmDone;
}

static int fork_bombs(void) {
  for (int i = 0; i < 64; ++i) {
    if (fork() < 0) return errno;
  }
  Forever();
  return 0;
}

// fork by the call that filters cannot look into.
static int forks_by_clone3(void) {
  uint64_t arguments[11] = {0};
  arguments[4] = SIGCHLD;
  const long child = syscall(SYS_clone3, arguments, sizeof arguments);
  if (child == 0) Forever();
  return child < 0 ? errno : kHarmDone;
}

// Processes of sessions of their own whose parents have gone.
static void Daemon(void (*body)(void)) {
  if (fork() != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  body();
}

static void Sleeps(void) {
  signal(SIGTERM, SIG_IGN);
  for (;;) usleep(1000000);
}

static int leaves_daemons_and_hangs(void) {
  for (int i = 0; i < 4; ++i) Daemon(Sleeps);
  Sleeps();
  return 0;
}

// Each is gone before anybody has looked at it, but for the next one: for half
// a minute, should nobody end them.
static void Flees(void) {
  for (int i = 0; i < 60000; ++i) {
    usleep(500);
    setsid();
    if (fork() > 0) _exit(0);
  }
}

static int leaves_fleeing_daemons(void) {
  for (int i = 0; i < 8; ++i) Daemon(Flees);
  return kHarmDone;
}

static int executes(void) {
  char* const arguments[] = {"true", NULL};
  execv("/bin/true", arguments);
  return errno;
}

static int traces(void) {
  return ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 ? kHarmDone : errno;
}

// Signals: 0 would only tell whether the process is there.
static int signals_others(void) { return kill(1, 0) == 0 ? kHarmDone : errno; }
static int signals_group(void) { return kill(0, 0) == 0 ? kHarmDone : errno; }
static int signals_thread(void) {
  return syscall(SYS_tgkill, 1, 1, 0) == 0 ? kHarmDone : errno;
}

// Memory

static int allocates_100_gib(void) {
  char* block = mmap(NULL, (size_t)100 << 30, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return block == MAP_FAILED ? errno : kHarmDone;
}

static int allocates_without_end(void) {
  for (;;) {
    char* block = malloc(1 << 20);
    if (block == NULL) return ENOMEM;
    memset(block, 1, 1 << 20);
  }
}

// More than one process may, by several that may each.
static int allocates_in_children(void) {
  enum { kBytes = 150 << 20 };
  for (int i = 0; i < 4; ++i) {
    if (fork() != 0) continue;
    char* block = malloc(kBytes);
    if (block == NULL) _exit(1);
    memset(block, 1, kBytes);
    Sleeps();
  }
  Sleeps();
  return 0;
}

static int maps_executable(void) {
  void* page = mmap(NULL, 4096, PROT_READ | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? errno : kHarmDone;
}

static int makes_executable(void) {
  void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0 ? kHarmDone : errno;
}

// Files and the network

static int reads_file(void) {
  return open("/etc/hostname", O_RDONLY) < 0 ? errno : kHarmDone;
}

static int creates_file(void) {
  return open("/tmp/tilefarm-hostile-file", O_WRONLY | O_CREAT, 0600) < 0
             ? errno
             : kHarmDone;
}

// Where it was started.
static int creates_file_here(void) {
  return open("tilefarm-hostile-file", O_WRONLY | O_CREAT, 0600) < 0
             ? errno
             : kHarmDone;
}

static int opens_socket(void) {
  return socket(AF_INET, SOCK_STREAM, 0) < 0 ? errno : kHarmDone;
}

static int connects(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(22)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return errno;
  return connect(fd, (struct sockaddr*)&address, sizeof address) == 0
             ? kHarmDone
             : errno;
}

static int uses_up_descriptors(void) {
  while (dup(0) >= 0) {
  }
  return errno;
}

// Whatever is open beyond /dev/null is not the kernel's.
static int finds_descriptors(void) {
  for (int fd = 3; fd < 1024; ++fd) {
    if (write(fd, "x", 1) >= 0 || errno != EBADF) return kHarmDone;
  }
  return 0;
}

// What the worker was told and its candidates are not.
static int finds_secrets(void) {
  for (char** variable = environ; *variable != NULL; ++variable) {
    if (strstr(*variable, "tilefarm_secret") != NULL) return kHarmDone;
  }
  return getenv("PATH") == NULL ? ENOENT : 0;
}

static int prints_a_lot(void) {
  char line[4096];
  memset(line, 'x', sizeof line);
  for (int i = 0; i < 10000; ++i) write(i % 2 + 1, line, sizeof line);
  return 0;
}

// The machine

static int changes_priority(void) {
  return setpriority(PRIO_PROCESS, 1, 5) == 0 ? kHarmDone : errno;
}

// The parent's; no thread of this process has so small an id.
static int moves_others(void) {
  unsigned long mask[128] = {1};
  return syscall(SYS_sched_setaffinity, 1, sizeof mask, mask) == 0 ? kHarmDone
                                                                   : errno;
}

static int leaves_handler(void) {
  struct sigaction action = {.sa_handler = SIG_IGN};
  return sigaction(SIGSYS, &action, NULL) == 0 ? kHarmDone : errno;
}

static int blocks_and_opens_socket(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  return opens_socket();
}

// Ends

static int hangs_without_signals(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  Forever();
  return 0;
}

static int stops_itself(void) {
  kill(getpid(), SIGSTOP);
  return kHarmDone;
}

static int sleeps_long(void) {
  for (;;) usleep(100000);
}

static int aborts_itself(void) { abort(); }
static int exits_itself(void) { _exit(0); }
// As the runner's own code ends.
static int exits_as_if_done(void) { _exit(93); }
static int raises_sigbus(void) { return raise(SIGBUS); }
static int raises_sigfpe(void) { return raise(SIGFPE); }
static int traps(void) { __builtin_trap(); }
static int writes_to_nowhere(void) {
  *(volatile int*)8 = 1;
  return 0;
}
static int overflows_stack(void) {
  volatile char room[4096];
  memset((char*)room, 1, sizeof room);
  return overflows_stack() + room[17];
}

// clang-format off
#define ACTS(DO)               \
  DO(forks_once)               \
  DO(fork_bombs)               \
  DO(forks_by_clone3)          \
  DO(leaves_daemons_and_hangs) \
  DO(leaves_fleeing_daemons)   \
  DO(executes)                 \
  DO(traces)                   \
  DO(signals_others)           \
  DO(signals_group)            \
  DO(signals_thread)           \
  DO(allocates_100_gib)        \
  DO(allocates_without_end)    \
  DO(allocates_in_children)    \
  DO(maps_executable)          \
  DO(makes_executable)         \
  DO(reads_file)               \
  DO(creates_file)             \
  DO(creates_file_here)        \
  DO(opens_socket)             \
  DO(connects)                 \
  DO(uses_up_descriptors)      \
  DO(finds_descriptors)        \
  DO(finds_secrets)            \
  DO(prints_a_lot)             \
  DO(changes_priority)         \
  DO(moves_others)             \
  DO(leaves_handler)           \
  DO(blocks_and_opens_socket)  \
  DO(hangs_without_signals)    \
  DO(stops_itself)             \
  DO(sleeps_long)
// clang-format on

// clang-format off
#define ENDS(DO)        \
  DO(aborts_itself)     \
  DO(exits_itself)      \
  DO(exits_as_if_done)  \
  DO(raises_sigbus)     \
  DO(raises_sigfpe)     \
  DO(traps)             \
  DO(writes_to_nowhere) \
  DO(overflows_stack)
// clang-format on

#define KERNEL(act)                       \
  int kernel_##act(void* in, void* out) { \
    const int code = act();               \
    const int doubled = Double(in, out);  \
    return code != 0 ? code : doubled;    \
  }
ACTS(KERNEL)
ENDS(KERNEL)

// The memory that a child shares with its runner: found while the artifact is
// loaded, when files can still be read.
static struct {
  char* start;
  size_t bytes;
} shared[16];
static int shared_count;

static int finds_shared(void) {
  FILE* maps = fopen("/proc/self/maps", "r");
  if (maps == NULL) return errno;
  char line[512], rights[8];
  unsigned long start, end;
  while (fgets(line, sizeof line, maps) != NULL && shared_count < 16) {
    if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 &&
        strcmp(rights, "rw-s") == 0) {
      shared[shared_count].start = (char*)start;
      shared[shared_count++].bytes = end - start;
    }
  }
  fclose(maps);
  return 0;
}

// Every byte of it, then the stage at the front; and ends as the runner's own
// code does.
static int Spoil(uint32_t stage, int byte) {
  if (shared_count == 0) return kHarmDone + 1;
  for (int i = 0; i < shared_count; ++i) {
    memset(shared[i].start, byte, shared[i].bytes);
    memcpy(shared[i].start, &stage, sizeof stage);
  }
  _exit(93);
}

int spoils_report_done(void* in, void* out) { return Spoil(5, 0xff); }
int spoils_report_failed(void* in, void* out) { return Spoil(6, 0xff); }
int spoils_report_nowhere(void* in, void* out) { return Spoil(77, 0x7f); }
int spoils_report_done_with_text(void* in, void* out) { return Spoil(5, 0x41); }
int spoils_and_opens_socket(void* in, void* out) {
  for (int i = 0; i < shared_count; ++i) {
    memset(shared[i].start, 0xff, shared[i].bytes);
  }
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  return opens_socket();
}

__attribute__((used)) volatile char hostile_constructor[32] = "hostile act:";

__attribute__((constructor)) static void ActWhileLoading(void) {
  char act[17] = {0};
  for (int i = 0; i < 16; ++i) act[i] = hostile_constructor[12 + i];
  if (act[0] == 0) return;
  if (strcmp(act, "finds_shared") == 0) finds_shared();
#define DO_ACT(name) \
  if (strncmp(act, #name, 16) == 0) name();
  ACTS(DO_ACT)
}

#ifdef TILEFARM_TEST_NAMES_LIBRARY
// As an artifact that calls a library of kernels does.
__attribute__((used)) const char named_library[] = "libopenblas.so.0";
#endif
