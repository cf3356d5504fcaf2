// A runner with slow kernels: passes everything to and from a tune-runner, and
// multiplies the times by the number in a file (if absent, 1).
//   slow-runner FILE RUNNER [ARGUMENT...]
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fstream>

#include "worker/runner_protocol.h"

namespace tilefarm::worker {
namespace {

double Factor(const char* path) {
  std::ifstream file(path);
  double factor = 1;
  return file >> factor ? factor : 1;
}

int PassOn(int from, const char* path) {
  Frame frame;
  while (ReadFrame(from, -1, &frame) == FrameStatus::kOk) {
    RunReply reply;
    if (frame.type == static_cast<uint32_t>(RunnerFrame::kRunReply) &&
        Decode(frame.payload, &reply)) {
      const double factor = Factor(path);
      for (double& seconds : reply.seconds) seconds *= factor;
      reply.median_seconds *= factor;
      reply.ci_low_seconds *= factor;
      reply.ci_high_seconds *= factor;
      frame.payload = Encode(reply);
    }
    if (WriteFrame(STDOUT_FILENO, -1, frame.type, frame.payload) !=
        FrameStatus::kOk) {
      return 1;
    }
  }
  return 0;
}

int Main(int argc, char** argv) {
  int out[2];
  if (argc < 3 || pipe(out) != 0) return 2;
  signal(SIGPIPE, SIG_IGN);
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) {
    // The child reads this process's input and ends with it.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out[1], STDOUT_FILENO);
    close(out[0]);
    close(out[1]);
    execv(argv[2], argv + 2);
    _exit(127);
  }
  close(out[1]);
  close(STDIN_FILENO);
  return PassOn(out[0], argv[1]);
}

}  // namespace
}  // namespace tilefarm::worker

int main(int argc, char** argv) { return tilefarm::worker::Main(argc, argv); }
