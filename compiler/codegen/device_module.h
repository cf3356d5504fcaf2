// The kernels of a GPU's functions as code of the device.
#ifndef TILEFARM_COMPILER_CODEGEN_DEVICE_MODULE_H_
#define TILEFARM_COMPILER_CODEGEN_DEVICE_MODULE_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/host_stub.h"
#include "compiler/target/target.h"

namespace tilefarm::codegen {

enum class DeviceCode {
  kFinal,  // PTX; OpenCL C; for "sim" an ELF object of the host
  kAssembly,
  kLlvmIr,
  kOptimizedLlvmIr,
};

struct DeviceModule {
  std::string code;
  std::vector<DeviceFunction> functions;  // how the host launches them
};

// Of functions in lowered form for a GPU. Kernels are named SYMBOL_kernelN.
// InvalidArgument: a kernel exceeds the target's limits, or calls a function
// that the device does not have; OpenCL C is not made by LLVM, which has no
// form of it. Internal: LLVM rejected the code.
absl::StatusOr<DeviceModule> EmitDeviceModule(
    std::span<const LoweredFunction> functions, const target::Target& target,
    DeviceCode kind = DeviceCode::kFinal);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_DEVICE_MODULE_H_
