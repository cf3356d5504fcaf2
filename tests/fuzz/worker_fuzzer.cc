// The libFuzzer entry point; built if the compiler is Clang (preset fuzz). The
// first byte chooses the target.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/worker_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tilefarm::fuzz::ByteSource;
  static auto* const worker = new tilefarm::fuzz::WorkerTarget;
  ByteSource source(
      std::string_view(reinterpret_cast<const char*>(data), size));
  std::string violation;
  switch (source.Below(3)) {
    case 0:
      violation = worker->ServerStream(source);
      break;
    case 1:
      violation = tilefarm::fuzz::FramePayloads(source);
      break;
    default:
      violation = tilefarm::fuzz::SpoolFiles(source);
  }
  if (!violation.empty()) {
    std::fprintf(stderr, "%s\n", violation.c_str());
    std::abort();
  }
  return 0;
}
