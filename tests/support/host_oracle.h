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

// What a correct implementation computes.
struct OracleResult {
  std::vector<std::vector<std::byte>> buffers;  // of every parameter
  // Of every element of each parameter; empty where it is exact.
  std::vector<std::vector<double>> bounds;
};

class HostOracle {
 public:
  static absl::StatusOr<HostOracle> Compile(const ir::PrimFuncPtr& function);

  // `inputs` are the first contents of every parameter.
  absl::StatusOr<OracleResult> Run(
      std::span<const std::vector<std::byte>> inputs) const;

 private:
  ir::PrimFuncPtr function_;
  std::vector<bool> bounded_;
  std::shared_ptr<void> library_;
  void* oracle_ = nullptr;
};

// Empty where `got`, the contents of every parameter after a run, are what the
// oracle says, by the rule of verification; otherwise the first element that is
// not. `spread` as in worker::RunRequest. `largest` (may be null) becomes the
// largest |difference| / bound if that is more.
std::string DifferenceFromOracle(const ir::PrimFunc& function,
                                 const OracleResult& oracle,
                                 std::span<const std::vector<std::byte>> got,
                                 double spread = 0, double* largest = nullptr);

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_SUPPORT_HOST_ORACLE_H_
