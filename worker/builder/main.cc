// tune-builder: compiles candidates for rpc-worker, over frames on standard
// input and output. It ends at the end of input, and with its parent. It
// confines itself (sandbox.h) before it reads the first frame.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "compiler/codegen/ptx_assembler.h"
#include "compiler/driver/compile.h"
#include "worker/builder/build.h"
#include "worker/builder/sandbox.h"
#include "worker/confinement.h"

namespace tilefarm::worker {
namespace {

constexpr uint64_t kDefaultMemoryBytes = uint64_t{4} << 30;

// Only the soft limit: the next request may have another one.
void LimitMemory(uint64_t bytes) {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(bytes, limit.rlim_max);
  setrlimit(RLIMIT_AS, &limit);
}

[[noreturn]] void OnOutOfMemory() { _exit(kBuilderOutOfMemory); }

// The address space that every process of this program uses.
uint64_t own_bytes = 0;

int Serve(int input_fd, int output_fd, const BuilderConfinement& confinement) {
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
        payload = Encode(BuilderHelloReply{
            TILEFARM_VERSION, driver::Fingerprint(), confinement.parts,
            confinement.shortfall, confinement.directory});
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
  pid_t parent = 0;
  if (argc == 3 && std::strcmp(argv[1], "--parent") == 0) {
    parent = std::atoi(argv[2]);
  } else if (argc != 1) {
    std::fprintf(stderr,
                 "usage: tune-builder [--parent PID]\n"
                 "Speaks binary frames on standard input and output; "
                 "rpc-worker starts it.\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  std::set_new_handler(tilefarm::worker::OnOutOfMemory);
  // Libraries must not read or write between frames.
  const int input_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  const int output_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  const int errors_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  // Before the sandbox hides libraries, too: a device whose builders cannot
  // assemble leaves that to its driver, one candidate at a time.
  tilefarm::codegen::KeepPtxAssembler();
  // Read before the sandbox hides /proc.
  tilefarm::worker::own_bytes = tilefarm::worker::MappedBytes();
  const auto confinement = tilefarm::worker::EnterBuilderSandbox(
      {input_fd, output_fd, errors_fd}, parent);
  if (!confinement.ok()) {
    dprintf(errors_fd, "tune-builder: not confined: %s\n",
            std::string(confinement.status().message()).c_str());
    return 1;
  }
  close(errors_fd);
  return tilefarm::worker::Serve(input_fd, output_fd, *confinement);
}
