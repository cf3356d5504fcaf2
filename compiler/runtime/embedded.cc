#include "compiler/runtime/embedded.h"

#include "compiler/runtime/embedded_list.h"

namespace tilefarm::runtime {

namespace {

std::vector<std::string_view> Find(std::string_view triple,
                                   std::string_view part) {
  std::vector<std::string_view> modules;
  for (const EmbeddedModule& module : kEmbeddedModules) {
    if (module.triple == triple && module.part == part) {
      modules.emplace_back(reinterpret_cast<const char*>(module.bytes),
                           module.size);
    }
  }
  return modules;
}

}  // namespace

std::vector<std::string_view> Bitcode(std::string_view triple) {
  return Find(triple, "kernels");
}

std::vector<std::string_view> GpuBitcode(std::string_view triple) {
  return Find(triple, "gpu");
}

std::string_view GpuMathBitcode() { return Find("nvptx64", "math").front(); }

}  // namespace tilefarm::runtime
