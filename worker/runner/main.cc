// tune-runner: loads, checks and times candidates for rpc-worker, over frames
// on standard input and output. It ends at the end of input.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/isolation.h"
#include "worker/control_group.h"
#include "worker/runner/child.h"
#include "worker/runner/libraries.h"
#include "worker/runner/runner.h"
#include "worker/runner/sandbox.h"

namespace tilefarm::worker {
namespace {

constexpr char kUsage[] =
    "usage: tune-runner [--at-most ISOLATION] [--cgroup DIR]\n"
    "                   [--version | --libraries | --isolation]\n"
    "Speaks binary frames on standard input and output; rpc-worker starts it.\n"
    "  --isolation  prints how candidates are confined here, such as "
    "seccomp+netns\n"
    "  --at-most    confines them no more than so: "
    "none|rlimits|seccomp-libraries|seccomp,\n"
    "               and any of +netns+cgroup+memory+pids, in this order "
    "(default: all)\n"
    "  --cgroup     an empty control group (v2) of this runner's own, for "
    "those of\n"
    "               candidates (default: TUNE_RUNNER_CGROUP; none without)\n";

int Main(int argc, char** argv) {
  Isolation most = {IsolationLevel::kSeccomp, true, true, true, true};
  const char* groups = getenv(kCandidateGroupsVariable);
  if (groups == nullptr) groups = "";
  int at = 1;
  for (; at + 1 < argc; at += 2) {
    const char* value = argv[at + 1];
    if (strcmp(argv[at], "--at-most") == 0) {
      if (ParseIsolation(value, &most)) continue;
      fprintf(stderr, "tune-runner: --at-most %s is no isolation\n%s", value,
              kUsage);
      return 2;
    }
    if (strcmp(argv[at], "--cgroup") != 0) break;
    groups = value;
  }
  // The sandbox changes the current directory.
  if (groups[0] != '\0' && groups[0] != '/') {
    fprintf(stderr, "tune-runner: --cgroup %s is no absolute path\n", groups);
    return 2;
  }
  if (argc > at + 1) return fputs(kUsage, stderr), 2;
  const char* query = argc == at + 1 ? argv[at] : "";
  if (strcmp(query, "--version") == 0) {
    printf("tune-runner %s, frames %d\n", TILEFARM_VERSION, kFrameVersion);
    return 0;
  }
  if (strcmp(query, "--libraries") == 0) {
    for (const auto& [name, version] : FindLibraries()) {
      printf("%s %s\n", name.c_str(), version.c_str());
    }
    return 0;
  }
  if (query[0] != '\0' && strcmp(query, "--isolation") != 0) {
    return fputs(kUsage, stderr), 2;
  }
  PrepareForChildren();
  const Sandbox sandbox(most, groups);
  if (query[0] != '\0') {
    printf("%s\n", sandbox.isolation().Text().c_str());
    return 0;
  }
  if (!sandbox.shortfall().empty()) {
    fprintf(stderr, "tune-runner: candidates are confined by %s: %s\n",
            sandbox.isolation().Text().c_str(), sandbox.shortfall().c_str());
  }
  return Runner({}, sandbox).Serve();
}

}  // namespace
}  // namespace tilefarm::worker

int main(int argc, char** argv) { return tilefarm::worker::Main(argc, argv); }
