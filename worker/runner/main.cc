// tune-runner: loads, checks and times candidates for rpc-worker, over frames
// on standard input and output. End of input ends it.
#include <stdio.h>
#include <string.h>

#include "worker/isolation.h"
#include "worker/runner/child.h"
#include "worker/runner/libraries.h"
#include "worker/runner/runner.h"
#include "worker/runner/sandbox.h"

namespace tilefarm::worker {
namespace {

constexpr char kUsage[] =
    "usage: tune-runner [--at-most ISOLATION] [--version | --libraries | "
    "--isolation]\n"
    "Speaks binary frames on standard input and output; rpc-worker starts it.\n"
    "  --isolation  prints how candidates are confined here, such as "
    "seccomp+netns\n"
    "  --at-most    confines them no more than so: "
    "none|rlimits|seccomp-libraries|seccomp,\n"
    "               with +netns or without (default: seccomp+netns)\n";

int Main(int argc, char** argv) {
  Isolation most = {IsolationLevel::kSeccomp, true};
  int at = 1;
  if (argc > 2 && strcmp(argv[1], "--at-most") == 0) {
    if (!ParseIsolation(argv[2], &most)) {
      fprintf(stderr, "tune-runner: --at-most %s is no isolation\n%s", argv[2],
              kUsage);
      return 2;
    }
    at = 3;
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
  const Sandbox sandbox(most);
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
