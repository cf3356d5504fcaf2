// tune-runner: loads, checks and times candidates for rpc-worker, over frames
// on standard input and output. End of input ends it.
#include <stdio.h>
#include <string.h>

#include "worker/runner/child.h"
#include "worker/runner/libraries.h"
#include "worker/runner/runner.h"

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    printf("tune-runner %s, frames %d\n", TILEFARM_VERSION,
           tilefarm::worker::kFrameVersion);
    return 0;
  }
  if (argc == 2 && strcmp(argv[1], "--libraries") == 0) {
    for (const auto& [name, version] : tilefarm::worker::FindLibraries()) {
      printf("%s %s\n", name.c_str(), version.c_str());
    }
    return 0;
  }
  if (argc != 1) {
    fprintf(stderr,
            "usage: tune-runner [--version | --libraries]\n"
            "Speaks binary frames on standard input and output; rpc-worker "
            "starts it.\n");
    return 2;
  }
  tilefarm::worker::PrepareForChildren();
  return tilefarm::worker::Runner({}).Serve();
}
