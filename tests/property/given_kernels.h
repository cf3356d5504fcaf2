// Kernels of GPUs that are scheduled already, for single steps of lowering.
#ifndef TILEFARM_TESTS_PROPERTY_GIVEN_KERNELS_H_
#define TILEFARM_TESTS_PROPERTY_GIVEN_KERNELS_H_

#include <string>
#include <vector>

namespace tilefarm::property {

struct GivenKernel {
  const char* name;
  std::string program;
  // Needs a GPU that has them, and so asynchronous copies.
  bool tensor_cores = false;
  bool clusters = false;
};
std::vector<GivenKernel> GivenKernels();
// Of these, the ones whose threads reduce together, or have parts of one
// buffer.
std::vector<GivenKernel> GivenReductionKernels();
// Those whose blocks are in clusters.
std::vector<GivenKernel> GivenClusterKernels();

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_PROPERTY_GIVEN_KERNELS_H_
