// Compiles a program and calls it in this process.
#ifndef TILEFARM_TESTS_LOWER_COMPILED_PROGRAM_H_
#define TILEFARM_TESTS_LOWER_COMPILED_PROGRAM_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::testing {

class CompiledProgram {
 public:
  // Compiles the module's only function, as scheduled, for the target text. The
  // target must run on this machine.
  static absl::StatusOr<CompiledProgram> Compile(const ir::IRModule& module,
                                                 std::string_view target);

  // `buffers` in parameter order; at most eight.
  absl::Status Run(std::span<const std::span<std::byte>> buffers) const;

 private:
  std::shared_ptr<void> library_;
  void* function_ = nullptr;
};

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_LOWER_COMPILED_PROGRAM_H_
