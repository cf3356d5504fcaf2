// What a kernel does, counted while it is executed: how often each instruction
// of a warp runs, and how well its lanes share accesses to memory. These are
// numbers of the code, not of a GPU: nothing here has a time.
#ifndef TILEFARM_TESTS_GPU_PTX_PTX_COUNTERS_H_
#define TILEFARM_TESTS_GPU_PTX_PTX_COUNTERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu/ptx/ptx_module.h"
#include "tests/gpu/ptx/ptx_warp.h"

namespace tilefarm::ptx {

// Of one instruction.
struct Counts {
  int64_t warps = 0, lanes = 0;
  // Shared memory has 32 banks of 4 bytes. One wavefront takes any number of
  // lanes, of which no two need different words of a bank. The least: as many
  // as the different bytes need.
  int64_t wavefronts = 0, least_wavefronts = 0;
  // Global memory is read and written by sectors of 32 bytes.
  int64_t sectors = 0, least_sectors = 0;
};

class Counters {
 public:
  explicit Counters(const Kernel& kernel)
      : kernel_(kernel), counts_(kernel.code.size()) {}

  // The lanes in `mask` are about to execute it.
  void Count(Warp& warp, const Instruction& instruction, uint32_t mask);

  const Kernel& kernel() const { return kernel_; }
  // JSON: [{"text": "ld.shared.v4.f32 ...", "warps": 8, ...}, ...] of the
  // instructions that were executed, in the order of the text.
  std::string Json() const;

 private:
  const Kernel& kernel_;
  std::vector<Counts> counts_;
};

}  // namespace tilefarm::ptx

#endif  // TILEFARM_TESTS_GPU_PTX_PTX_COUNTERS_H_
