#include "tests/perf/suite/dot_peaks.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace tilefarm::perf {
namespace {

constexpr int kSteps = 200000;
constexpr auto kDotChains = std::make_integer_sequence<int, 16>();

// The best of several runs of independent chains in registers.
template <typename Sum, typename Step, int... I>
double Peak(Sum zero, double operations, Step step,
            std::integer_sequence<int, I...>) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    Sum sums[] = {((void)I, zero)...};
    const auto start = Clock::now();
    for (int i = 0; i < kSteps; ++i) {
      ((sums[I] = step(sums[I])), ...);
      ([&] { asm volatile("" : "+v"(sums[I])); }(), ...);
    }
    const double seconds =
        std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, operations * sizeof...(I) * kSteps / seconds);
  }
  return best;
}

}  // namespace

std::map<std::string, double> DotPeaks() {
  std::map<std::string, double> peaks;
#ifdef __AVX512VNNI__
  const __m512i bytes = _mm512_set1_epi8(3);
  peaks["uint8"] = Peak(
      _mm512_setzero_si512(), 128,
      [=](__m512i sum) { return _mm512_dpbusd_epi32(sum, bytes, bytes); },
      kDotChains);
#endif
#ifdef __AVX512BF16__
  const __m512bh ones = (__m512bh)_mm512_set1_epi16(0x3f80);
  peaks["bfloat16"] = Peak(
      _mm512_setzero_ps(), 64,
      [=](__m512 sum) { return _mm512_dpbf16_ps(sum, ones, ones); },
      kDotChains);
#endif
  return peaks;
}

}  // namespace tilefarm::perf
