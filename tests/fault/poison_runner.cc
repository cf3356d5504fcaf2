// poison_runner RUNNER FILE: a tune-runner in whose hands one candidate takes
// the whole worker down, every time. Frames go to and come from the real
// RUNNER; the fifth artifact that is to run is the poison, remembered in FILE.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "worker/frames.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {
namespace {

constexpr int kPoison = 5;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file),
          std::istreambuf_iterator<char>()};
}

void Copy(int from, int to) {
  char bytes[1 << 16];
  for (ssize_t n; (n = read(from, bytes, sizeof bytes)) > 0;) {
    for (ssize_t done = 0; done < n;) {
      const ssize_t m = write(to, bytes + done, static_cast<size_t>(n - done));
      if (m <= 0) return;
      done += m;
    }
  }
}

int Serve(const char* runner, const std::string& poison_path) {
  int in[2], out[2];
  if (pipe(in) != 0 || pipe(out) != 0) return 1;
  const pid_t worker = getppid();
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(in[0], 0);
    dup2(out[1], 1);
    close(in[1]);
    close(out[0]);
    execl(runner, runner, nullptr);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  std::thread answers([&] { Copy(out[0], 1); });
  int runs = 0;
  for (Frame frame; ReadFrame(0, -1, &frame) == FrameStatus::kOk;) {
    RunRequest run;
    if (frame.type == static_cast<uint32_t>(RunnerFrame::kRun) &&
        Decode(frame.payload, &run)) {
      std::string poison = ReadAll(poison_path);
      if (poison.empty() && ++runs == kPoison) {
        std::ofstream(poison_path, std::ios::binary) << run.artifact;
        poison = run.artifact;
      }
      if (run.artifact == poison) {
        // It did run for a moment.
        usleep(50'000);
        kill(worker, SIGKILL);
      }
    }
    WriteFrame(in[1], -1, frame.type, frame.payload);
  }
  close(in[1]);
  answers.join();
  return 0;
}

}  // namespace
}  // namespace tilefarm::worker

int main(int argc, char** argv) {
  // Asked for libraries at the worker's start.
  if (argc > 3) execl(argv[1], argv[1], argv[3], nullptr);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return tilefarm::worker::Serve(argv[1], argv[2]);
}
