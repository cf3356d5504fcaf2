// Artifacts of GPUs in the test process.
#ifndef TILEFARM_TESTS_GPU_ARTIFACT_H_
#define TILEFARM_TESTS_GPU_ARTIFACT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "compiler/codegen/host_stub.h"
#include "compiler/codegen/link.h"
#include "compiler/target/target.h"
#include "tests/codegen/kernel.h"

namespace tilefarm::codegen {

// The stub of these functions, linked with the object of their kernels if they
// are simulated ones, and loaded.
inline absl::StatusOr<Kernel> LoadArtifact(
    const std::vector<DeviceFunction>& functions, const std::string& image,
    const target::Target& target, const std::string& kernels = "") {
  TF_ASSIGN_OR_RETURN(const std::string stub,
                      EmitHostStub(functions, image, {target}));
  std::vector<std::string> objects = {stub};
  if (!kernels.empty()) objects.push_back(kernels);
  TF_ASSIGN_OR_RETURN(const std::string bytes,
                      LinkSharedObject(objects, target.HostPart()));
  return Kernel::Load(bytes);
}

// SYMBOL_error().
inline std::string ErrorOf(const Kernel& artifact, const std::string& symbol) {
  auto* function = reinterpret_cast<const char* (*)()>(
      dlsym(artifact.handle(), (symbol + "_error").c_str()));
  return function == nullptr ? "there is no " + symbol + "_error" : function();
}

}  // namespace tilefarm::codegen

#endif  // TILEFARM_TESTS_GPU_ARTIFACT_H_
