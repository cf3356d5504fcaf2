#include "tests/perf/regression_gate/cluster_process.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace tilefarm::regression {
namespace {

using Kernel = float (*)(const float*, const float*, float*, int64_t);

Kernel Load(const char* path, int64_t work) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return nullptr;
  }
  auto* const inserted =
      static_cast<int64_t*>(dlsym(library, "regression_gate_work"));
  void* const kernel = dlsym(library, "regression_gate_kernel");
  if (inserted == nullptr || kernel == nullptr) return nullptr;
  *inserted = work;
  return reinterpret_cast<Kernel>(kernel);
}

bool ReadAll(int fd, void* bytes, size_t size) {
  auto* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t got = read(fd, at, size);
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

bool PinToCore(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(core), &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

absl::StatusOr<std::vector<Pair>> RunCluster(const ClusterRequest& request) {
  const std::vector<std::string> arguments = {
      "/proc/self/exe",
      kClusterArgument,
      request.baseline,
      request.candidate,
      absl::StrCat(request.baseline_work),
      absl::StrCat(request.candidate_work),
      absl::StrCat(request.n),
      request.candidate_first ? "1" : "0",
      absl::StrCat(request.rounds),
      absl::StrCat(request.calls_per_sample),
      absl::StrCat(request.core)};
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  int fds[2];
  if (pipe(fds) != 0) return absl::UnavailableError("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    dup2(fds[1], STDOUT_FILENO);
    close(fds[0]);
    close(fds[1]);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(fds[1]);
  std::vector<Pair> pairs(2 * static_cast<size_t>(request.rounds));
  const bool complete =
      child > 0 && ReadAll(fds[0], pairs.data(), pairs.size() * sizeof(Pair));
  close(fds[0]);
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  if (!complete || status != 0) {
    return absl::UnavailableError("a cluster's process failed");
  }
  return pairs;
}

int ClusterMain(int argc, char** argv) {
  if (argc != 11) return 2;
  const int64_t n = std::atoll(argv[6]);
  const bool candidate_first = argv[7][0] == '1';
  const int rounds = std::atoi(argv[8]);
  const int calls = std::atoi(argv[9]);
  if (!PinToCore(std::atoi(argv[10]))) return 3;

  // What comes first is loaded first, too.
  Kernel kernels[2] = {};  // baseline, candidate
  for (const bool candidate : {candidate_first, !candidate_first}) {
    const int side = candidate ? 1 : 0;
    kernels[side] = Load(argv[2 + side], std::atoll(argv[4 + side]));
    if (kernels[side] == nullptr) return 4;
  }
  // Both run on the same buffers: where pages lie is no difference then.
  const auto size = static_cast<size_t>(n * n);
  std::vector<float> a(size), b(size), c(size);
  for (size_t i = 0; i < size; ++i) {
    a[i] = static_cast<float>(i % 7) * 0.01f;
    b[i] = static_cast<float>(i % 5) * 0.01f;
  }
  volatile float sink = 0;
  const auto run = [&](bool candidate) {
    sink = kernels[candidate ? 1 : 0](a.data(), b.data(), c.data(), n);
  };
  // One library under two names would be compared with itself.
  if (kernels[0] == kernels[1]) return 4;
  for (const bool candidate : {candidate_first, !candidate_first}) {
    for (int warm = 0; warm < 2; ++warm) run(candidate);
  }
  using Clock = std::chrono::steady_clock;
  const std::vector<bool> order = SampleOrder(candidate_first, rounds);
  std::vector<Pair> pairs(order.size() / 2);
  for (size_t i = 0; i < order.size(); ++i) {
    const auto start = Clock::now();
    for (int call = 0; call < calls; ++call) run(order[i]);
    const double seconds =
        std::chrono::duration<double>(Clock::now() - start).count() / calls;
    Pair& pair = pairs[i / 2];
    (order[i] ? pair.candidate_seconds : pair.baseline_seconds) = seconds;
  }
  const size_t bytes = pairs.size() * sizeof(Pair);
  return write(STDOUT_FILENO, pairs.data(), bytes) ==
                 static_cast<ssize_t>(bytes)
             ? 0
             : 5;
}

}  // namespace tilefarm::regression
