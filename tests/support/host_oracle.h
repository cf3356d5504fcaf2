// The oracle of a program, run in this process.
#ifndef TILEFARM_TESTS_SUPPORT_HOST_ORACLE_H_
#define TILEFARM_TESTS_SUPPORT_HOST_ORACLE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::testing {

// The values and bounds of a correct implementation.
struct OracleResult {
  std::vector<std::vector<std::byte>> buffers;  // of every parameter
  // For every element of each parameter; empty if the parameter is exact.
  std::vector<std::vector<double>> bounds;
};

class HostOracle {
 public:
  static absl::StatusOr<HostOracle> Compile(const ir::PrimFuncPtr& function);

  // `inputs` are the initial contents of every parameter.
  absl::StatusOr<OracleResult> Run(
      std::span<const std::vector<std::byte>> inputs) const;

 private:
  ir::PrimFuncPtr function_;
  std::vector<bool> bounded_;
  std::shared_ptr<void> library_;
  void* oracle_ = nullptr;
};

// Empty if `got`, the contents of every parameter after a run, agree with the
// oracle by the rule of verification; otherwise describes the first element
// that does not. `spread` as in worker::RunRequest. `largest` (may be null) is
// raised to the largest |difference| / bound.
std::string DifferenceFromOracle(const ir::PrimFunc& function,
                                 const OracleResult& oracle,
                                 std::span<const std::vector<std::byte>> got,
                                 double spread = 0, double* largest = nullptr);

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_SUPPORT_HOST_ORACLE_H_
