#include "compiler/runtime/embedded.h"

#include "compiler/runtime/embedded_list.h"

namespace tilefarm::runtime {

namespace {

std::string_view Find(std::string_view triple, std::string_view part) {
  for (const EmbeddedFile& file : kEmbeddedFiles) {
    if (file.triple == triple && file.part == part) {
      return {reinterpret_cast<const char*>(file.bytes), file.size};
    }
  }
  return {};
}

}  // namespace

std::string_view Archive(std::string_view triple) {
  return Find(triple, "kernels");
}

std::string_view GpuArchive(std::string_view triple) {
  return Find(triple, "gpu");
}

std::string_view GpuMathBitcode() { return Find("nvptx64", "math"); }

}  // namespace tilefarm::runtime
