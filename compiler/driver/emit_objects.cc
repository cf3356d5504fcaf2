#include "compiler/driver/emit_objects.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "compiler/codegen/device_module.h"
#include "compiler/codegen/host_stub.h"
#include "compiler/codegen/ptx_assembler.h"

namespace tilefarm::driver {
namespace {

// ptxas warns (C75..) where it cannot keep the registers of asynchronous matrix
// products apart from other code. Some of these kernels are slow; of others the
// results were wrong on an H100 (C7519). A wait before a trap (C7517) is
// harmless: it is on the path of a barrier that never completes.
absl::Status CheckMatrixUnits(const std::string& log) {
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(log, '\n'))) {
    if (absl::StrContains(line, "(C75") &&
        !absl::StrContains(line, "(C7517)")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the matrix products of the kernel do not fit its registers: ",
          line));
    }
  }
  return absl::OkStatus();
}

// Machine code where an assembler is at hand; otherwise the driver assembles
// the text when the artifact is loaded.
absl::StatusOr<std::string> DeviceImage(std::string ptx,
                                        const target::Target& target) {
  absl::StatusOr<codegen::Assembled> assembled =
      codegen::AssemblePtx(ptx, target.cpu);
  if (absl::IsNotFound(assembled.status())) return ptx;
  TF_RETURN_IF_ERROR(assembled.status());
  TF_RETURN_IF_ERROR(CheckMatrixUnits(assembled->log));
  return std::move(assembled->cubin);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> EmitObjects(
    std::span<const codegen::LoweredFunction> functions,
    const codegen::Options& options) {
  const target::Target& target = options.target;
  std::vector<std::string> objects;
  if (!target.is_gpu()) {
    TF_ASSIGN_OR_RETURN(objects.emplace_back(),
                        codegen::EmitObject(functions, options));
    return objects;
  }
  TF_ASSIGN_OR_RETURN(codegen::DeviceModule device,
                      codegen::EmitDeviceModule(functions, target));
  std::string image;
  if (target.is_simulated()) {
    objects.push_back(std::move(device.code));
  } else if (target.is_opencl()) {
    image = std::move(device.code);
  } else {
    TF_ASSIGN_OR_RETURN(image, DeviceImage(std::move(device.code), target));
  }
  TF_ASSIGN_OR_RETURN(objects.emplace_back(),
                      codegen::EmitHostStub(device.functions, image, options));
  return objects;
}

}  // namespace tilefarm::driver
