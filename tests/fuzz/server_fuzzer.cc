// The libFuzzer entry point; built if the compiler is Clang (preset fuzz). The
// first byte chooses the target.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/http_target.h"
#include "tests/fuzz/server_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tilefarm::fuzz::ByteSource;
  static auto* const server = new tilefarm::fuzz::ServerTarget;
  ByteSource source(
      std::string_view(reinterpret_cast<const char*>(data), size));
  std::string violation;
  switch (source.Below(5)) {
    case 0:
      violation = server->WorkerStream(source);
      break;
    case 1:
      violation = server->ClientCalls(source);
      break;
    case 2:
      violation = tilefarm::fuzz::TraceText(source);
      break;
    case 3:
      violation = tilefarm::fuzz::ImportLines(source);
      break;
    default:
      violation = tilefarm::fuzz::HttpHead(source);
  }
  if (!violation.empty()) {
    std::fprintf(stderr, "%s\n", violation.c_str());
    std::abort();
  }
  return 0;
}
