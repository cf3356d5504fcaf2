// Runs a fuzz target on random bytes, for a time or a number of runs.
#ifndef TILEFARM_TESTS_FUZZ_SEEDED_H_
#define TILEFARM_TESTS_FUZZ_SEEDED_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

#include "base/clock.h"
#include "base/rng.h"
#include "tests/fuzz/byte_source.h"

namespace tilefarm::fuzz {

// TILEFARM_FUZZ_SEED and TILEFARM_FUZZ_SECONDS override.
inline void RunSeeded(double seconds,
                      const std::function<std::string(ByteSource&)>& target) {
  const char* seed_text = std::getenv("TILEFARM_FUZZ_SEED");
  const char* seconds_text = std::getenv("TILEFARM_FUZZ_SECONDS");
  const uint64_t seed =
      seed_text == nullptr ? 20240229 : std::strtoull(seed_text, nullptr, 10);
  if (seconds_text != nullptr) seconds = std::atof(seconds_text);
  std::cout << "seed " << seed << "\n";
  const absl::Duration end = Clock::Real().Monotonic() + absl::Seconds(seconds);
  int64_t runs = 0;
  // At least the first ones.
  for (; runs < 20 || Clock::Real().Monotonic() < end; ++runs) {
    // Each run has a seed of its own, so that one can be repeated by itself.
    Rng rng(seed + static_cast<uint64_t>(runs));
    std::string bytes(rng.Below(2000) + 20, '\0');
    for (char& byte : bytes) byte = static_cast<char>(rng.Below(256));
    ByteSource source(bytes);
    ASSERT_EQ(target(source), "")
        << "TILEFARM_FUZZ_SEED=" << seed + static_cast<uint64_t>(runs);
  }
  std::cout << runs << " runs\n";
}

}  // namespace tilefarm::fuzz

#endif  // TILEFARM_TESTS_FUZZ_SEEDED_H_
