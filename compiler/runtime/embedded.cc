#include "compiler/runtime/embedded.h"

#include "compiler/runtime/embedded_list.h"

namespace tilefarm::runtime {

std::vector<std::string_view> Bitcode(std::string_view triple) {
  std::vector<std::string_view> modules;
  for (const EmbeddedModule& module : kEmbeddedModules) {
    if (module.triple == triple) {
      modules.emplace_back(reinterpret_cast<const char*>(module.bytes),
                           module.size);
    }
  }
  return modules;
}

}  // namespace tilefarm::runtime
