// tune-builder: compiles candidates for rpc-worker, over frames on standard
// input and output. End of input ends it, and so does its parent's end.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "compiler/driver/compile.h"
#include "worker/builder/build.h"

namespace tilefarm::worker {
namespace {

constexpr uint64_t kDefaultMemoryBytes = uint64_t{4} << 30;

// Bytes of address space that the program itself takes.
uint64_t MappedBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long pages = 0;
  if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
  std::fclose(file);
  return uint64_t{pages} * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Only the soft limit: the next request may have another one.
void LimitMemory(uint64_t bytes) {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(bytes, limit.rlim_max);
  setrlimit(RLIMIT_AS, &limit);
}

[[noreturn]] void OnOutOfMemory() { _exit(kBuilderOutOfMemory); }

int Serve(int input_fd, int output_fd) {
  const uint64_t own_bytes = MappedBytes();
  for (;;) {
    Frame frame;
    const FrameStatus status = ReadFrame(input_fd, -1, &frame);
    if (status == FrameStatus::kEnd) return 0;
    if (status != FrameStatus::kOk) return 2;
    BuilderFrame type;
    std::string payload;
    switch (static_cast<BuilderFrame>(frame.type)) {
      case BuilderFrame::kHello:
        type = BuilderFrame::kHelloReply;
        payload =
            Encode(BuilderHelloReply{TILEFARM_VERSION, driver::Fingerprint()});
        break;
      case BuilderFrame::kBuild: {
        BuildRequest request;
        if (!Decode(frame.payload, &request)) return 2;
        type = BuilderFrame::kBuildReply;
        LimitMemory(own_bytes + (request.memory_bytes == 0
                                     ? kDefaultMemoryBytes
                                     : request.memory_bytes));
        payload = Encode(Build(request));
        break;
      }
      default:
        return 2;
    }
    if (WriteFrame(output_fd, -1, static_cast<uint32_t>(type), payload) !=
        FrameStatus::kOk) {
      return 2;
    }
  }
}

}  // namespace
}  // namespace tilefarm::worker

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("tune-builder %s, frames %d, fingerprint %s\n",
                TILEFARM_VERSION, tilefarm::worker::kFrameVersion,
                tilefarm::driver::Fingerprint().c_str());
    return 0;
  }
  if (argc == 3 && std::strcmp(argv[1], "--parent") == 0) {
    // Dies with its parent, also when stopped or in the middle of a
    // compilation.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != std::atoi(argv[2])) return 1;
  } else if (argc != 1) {
    std::fprintf(stderr,
                 "usage: tune-builder [--parent PID]\n"
                 "Speaks binary frames on standard input and output; "
                 "rpc-worker starts it.\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  std::set_new_handler(tilefarm::worker::OnOutOfMemory);
  // Whatever a library prints must not end up between frames.
  const int output_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  return tilefarm::worker::Serve(STDIN_FILENO, output_fd);
}
