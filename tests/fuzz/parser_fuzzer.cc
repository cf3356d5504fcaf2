// The libFuzzer entry point; built if the compiler is Clang (preset fuzz).
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/check_program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tilefarm::fuzz::Outcome outcome = tilefarm::fuzz::CheckProgram(
      std::string_view(reinterpret_cast<const char*>(data), size));
  if (!outcome.violation.empty()) {
    std::fprintf(stderr, "%s\n", outcome.violation.c_str());
    std::abort();
  }
  return 0;
}
