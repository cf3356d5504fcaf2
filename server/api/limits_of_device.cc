#include "server/api/limits_of_device.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"
#include "cost_model/features.h"
#include "cost_model/machine_rates.h"

namespace tilefarm::api {
namespace {

// A multiply and an add.
constexpr double kFlopsOfMultiplyAdd = 2;

// By LLVM's names: cores whose units are half as wide as their vectors, or that
// have one unit of full width (AMD's optimization guides of families 17h and
// 19h; Intel's client cores with AVX-512).
struct NarrowCore {
  absl::string_view cpu;
  int vector_bits;
};
constexpr NarrowCore kNarrowCores[] = {
    {"cannonlake", 512}, {"icelake-client", 512}, {"rocketlake", 512},
    {"tigerlake", 512},  {"znver1", 256},         {"znver4", 512}};

double MultiplyAddsPerCycle(const target::Target& target,
                            const cost_model::CoreModel& core) {
  const bool narrow = absl::c_any_of(kNarrowCores, [&](const NarrowCore& one) {
    return one.cpu == target.cpu && one.vector_bits == target.vector_bits;
  });
  return narrow ? 1 : core.vector_ops;
}

}  // namespace

Roofline RooflineOf(const ir::PrimFunc& program, const target::Target& target,
                    double clock_hertz) {
  Roofline roofline;
  roofline.flops = cost_model::CountFlops(program);
  int bits = 64;
  for (const ir::Buffer& buffer : program.params) {
    roofline.bytes += static_cast<double>(buffer->num_elements()) *
                      static_cast<double>(buffer->dtype.bytes());
    bits = std::min(bits, std::max<int>(buffer->dtype.bits, 8));
  }
  if (clock_hertz <= 0 || target.is_gpu()) return roofline;
  roofline.clock_hertz = clock_hertz;
  roofline.cores = std::max(target.cores, 1);
  const cost_model::CoreModel core;
  const double cycles = clock_hertz * roofline.cores;
  roofline.peak_flops_per_second = cycles * kFlopsOfMultiplyAdd *
                                   MultiplyAddsPerCycle(target, core) *
                                   target.vector_bits / bits;
  roofline.bandwidths = {{"L2", cycles * core.bytes_from_l2},
                         {"L3", cycles * core.bytes_from_l3},
                         {"memory", cycles * core.bytes_from_memory}};
  return roofline;
}

}  // namespace tilefarm::api
