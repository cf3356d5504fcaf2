// meddling_runner poison RUNNER FILE | hostile RUNNER OBJECT | daemons RUNNER
// OBJECT: a tune-runner that replaces the worker's requests. It passes frames
// to and from the real RUNNER, and does not change the canary, which comes
// first.
//
// poison: FILE remembers the fifth artifact that runs, and each later run of it
// kills the whole worker. hostile: every third run is of a hostile kernel of
// OBJECT (hostile_kernels.c), until each of kActs has run. daemons: every run
// leaves processes and hangs. RUNNER must be limited to resource limits and
// control groups for that.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/fault/hostile_acts.h"
#include "worker/frames.h"
#include "worker/runner_protocol.h"

namespace tilefarm::worker {
namespace {

using Meddle = std::function<void(RunRequest& run)>;

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

Meddle Poison(std::string path) {
  return [path = std::move(path), worker = getppid(),
          runs = 0](RunRequest& run) mutable {
    std::string poison = ReadAll(path);
    if (poison.empty() && ++runs == 5) {
      std::ofstream(path, std::ios::binary) << run.artifact;
      poison = run.artifact;
    }
    if (run.artifact != poison) return;
    // It ran for a moment.
    usleep(50'000);
    kill(worker, SIGKILL);
  };
}

Meddle Hostile(const std::string& object) {
  return [object = ReadAll(object), canary = std::string(), runs = 0,
          act = size_t{0}](RunRequest& run) mutable {
    if (canary.empty()) canary = run.key;
    if (run.key == canary || ++runs % 3 != 0) return;
    if (act == std::size(testing::kActs)) return;
    run.artifact = object;
    run.symbol = std::string("kernel_") + testing::kActs[act++].name;
  };
}

Meddle Daemons(const std::string& object) {
  return [object = ReadAll(object),
          canary = std::string()](RunRequest& run) mutable {
    if (canary.empty()) canary = run.key;
    if (run.key == canary) return;
    run.artifact = object;
    run.symbol = "kernel_leaves_daemons_and_hangs";
  };
}

// The program and its options; the last one is null.
using Command = std::vector<const char*>;

[[noreturn]] void Execute(const Command& command) {
  execv(command[0], const_cast<char**>(command.data()));
  _exit(127);
}

int Serve(const Command& runner, const Meddle& meddle) {
  int in[2], out[2];
  if (pipe(in) != 0 || pipe(out) != 0) return 1;
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(in[0], 0);
    dup2(out[1], 1);
    close(in[1]);
    close(out[0]);
    Execute(runner);
  }
  close(in[0]);
  close(out[1]);
  std::thread answers([&] { Copy(out[0], 1); });
  for (Frame frame; ReadFrame(0, -1, &frame) == FrameStatus::kOk;) {
    RunRequest run;
    if (frame.type == static_cast<uint32_t>(RunnerFrame::kRun) &&
        Decode(frame.payload, &run)) {
      meddle(run);
      frame.payload = Encode(run);
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
  using namespace tilefarm::worker;
  if (argc < 4) return 2;
  const std::string mode = argv[1];
  Command runner = {argv[2]};
  if (mode == "daemons") {
    runner.insert(runner.end(), {"--at-most", "rlimits+cgroup+memory+pids"});
  }
  // The libraries and the isolation, set when the worker starts.
  if (argc > 4) runner.push_back(argv[4]);
  runner.push_back(nullptr);
  if (argc > 4) Execute(runner);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return Serve(runner, mode == "poison"    ? Poison(argv[3])
                       : mode == "daemons" ? Daemons(argv[3])
                                           : Hostile(argv[3]));
}
