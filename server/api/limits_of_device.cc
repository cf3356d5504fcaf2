#include "server/api/limits_of_device.h"

#include <algorithm>

#include "cost_model/features.h"
#include "cost_model/machine_rates.h"

namespace tilefarm::api {
namespace {

// A multiply and an add.
constexpr double kFlopsOfMultiplyAdd = 2;

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
                                   core.vector_ops * target.vector_bits / bits;
  roofline.bandwidths = {{"L2", cycles * core.bytes_from_l2},
                         {"L3", cycles * core.bytes_from_l3},
                         {"memory", cycles * core.bytes_from_memory}};
  return roofline;
}

}  // namespace tilefarm::api
