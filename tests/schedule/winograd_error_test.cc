// The error of Winograd's algorithm: in the interpreter's float32 against
// sums in float64, within the bound of winograd_transforms.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <limits>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/rng.h"
#include "compiler/ir/interpreter.h"
#include "compiler/schedule/winograd_transforms.h"
#include "tests/schedule/block_test_support.h"

namespace tilefarm::testing {
namespace {

constexpr int64_t kSize = 8, kOutputs = 8;
constexpr uint64_t kErrorSeed = 20261122;

std::string ConvProgram(int64_t channels) {
  return absl::StrReplaceAll(
      Program("A: T.Buffer((10, 10, KK), \"float32\"), "
              "W: T.Buffer((3, 3, KK, 8), \"float32\"), "
              "C: T.Buffer((8, 8, 8), \"float32\")",
              R"(for h, w, c, r, s, k in T.grid(8, 8, 8, 3, 3, KK):
    with T.block("C"):
        vh, vw, vc, vr, vs, vk = T.axis.remap("SSSRRR", [h, w, c, r, s, k])
        with T.init():
            C[vh, vw, vc] = T.float32(0)
        C[vh, vw, vc] = C[vh, vw, vc] + A[vh + vr, vw + vs, vk] * W[vr, vs, vk, vc])"),
      {{"KK", absl::StrCat(channels)}});
}

std::vector<double> Reference(const std::vector<float>& data,
                              const std::vector<float>& kernel,
                              int64_t channels) {
  std::vector<double> sums;
  for (int64_t h = 0; h < kSize; ++h) {
    for (int64_t w = 0; w < kSize; ++w) {
      for (int64_t c = 0; c < kOutputs; ++c) {
        double sum = 0;
        for (int64_t r = 0; r < 3; ++r) {
          for (int64_t s = 0; s < 3; ++s) {
            for (int64_t k = 0; k < channels; ++k) {
              const int64_t a = ((h + r) * (kSize + 2) + w + s) * channels + k;
              const int64_t b = ((r * 3 + s) * channels + k) * kOutputs + c;
              sum += static_cast<double>(data[a]) * kernel[b];
            }
          }
        }
        sums.push_back(sum);
      }
    }
  }
  return sums;
}

// The largest error in units of eps (4 + sqrt(K)) (|ref| + rms(ref)).
double LargestError(int64_t channels, int tile, uint64_t seed) {
  Rng rng(seed);
  const ir::IRModule module = ParseProgram(ConvProgram(channels));
  const auto schedule = Apply(
      module, tile == 0
                  ? "b0 = sch.get_block(\"C\")\n"
                  : absl::StrCat("b0 = sch.get_block(\"C\")\nb1, b2, b3, b4, "
                                 "b5, b6 = sch.winograd(b0, tile=",
                                 tile, ")\n"));
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  std::vector<std::vector<float>> buffers;
  for (const ir::Buffer& param : module.functions[0]->params) {
    std::vector<float>& values = buffers.emplace_back(param->num_elements());
    for (float& v : values) v = static_cast<float>(rng.Uniform() * 2 - 1);
  }
  std::vector<std::span<std::byte>> spans;
  for (std::vector<float>& values : buffers) {
    spans.push_back(std::as_writable_bytes(std::span(values)));
  }
  const absl::Status run =
      ir::Interpret(*schedule->module().functions[0], spans);
  EXPECT_TRUE(run.ok()) << run;
  const std::vector<double> reference =
      Reference(buffers[0], buffers[1], channels);
  double squares = 0;
  for (const double y : reference) squares += y * y;
  const double rms = std::sqrt(squares / static_cast<double>(reference.size()));
  const double unit = std::numeric_limits<float>::epsilon() *
                      (4 + std::sqrt(static_cast<double>(9 * channels)));
  double largest = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double error = std::fabs(buffers[2][i] - reference[i]);
    largest =
        std::max(largest, error / (unit * (std::fabs(reference[i]) + rms)));
  }
  return largest;
}

TEST(WinogradError, IsWithinTheStatedBound) {
  for (const int tile : {2, 4}) {
    for (const int64_t channels : {1, 4, 16, 64, 160}) {
      if (9 * channels < schedule::WinogradMinTerms(tile)) continue;
      double largest = 0;
      for (uint64_t seed = kErrorSeed; seed < kErrorSeed + 3; ++seed) {
        largest = std::max(largest, LargestError(channels, tile, seed));
      }
      std::cout << "F(" << tile << ", 3), K = " << 9 * channels << ": "
                << largest << " of " << schedule::WinogradError(tile) << "\n";
      EXPECT_LE(largest, schedule::WinogradError(tile))
          << "seed " << kErrorSeed;
      EXPECT_GT(largest, 0);
    }
  }
}

TEST(WinogradError, DirectSumsAreCloser) {
  const double direct = LargestError(64, 0, kErrorSeed);
  std::cout << "direct, K = 576: " << direct << "\n";
  EXPECT_LT(direct, LargestError(64, 4, kErrorSeed));
}

}  // namespace
}  // namespace tilefarm::testing
