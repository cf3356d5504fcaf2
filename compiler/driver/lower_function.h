// Lowers one scheduled function for code generation.
#ifndef TILEFARM_COMPILER_DRIVER_LOWER_FUNCTION_H_
#define TILEFARM_COMPILER_DRIVER_LOWER_FUNCTION_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/codegen/codegen.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::driver {

// Splits off what may run ahead of time (lower/split_prepack.h) and lowers the
// parts. InvalidArgument as for both steps.
absl::StatusOr<codegen::LoweredFunction> LowerFunction(
    const ir::PrimFunc& function, const std::string& symbol,
    const target::Target& target);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_LOWER_FUNCTION_H_
