#include "tests/lower/compiled_program.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"
#include "compiler/target/target.h"

namespace tilefarm::testing {

absl::StatusOr<CompiledProgram> CompiledProgram::Compile(
    const ir::IRModule& module, std::string_view target) {
  driver::CompileOptions options;
  TF_ASSIGN_OR_RETURN(options.target, target::Parse(target));
  TF_ASSIGN_OR_RETURN(const driver::Artifact artifact,
                      driver::Compile(module, options));
  const int file = memfd_create("program", MFD_CLOEXEC);
  if (file < 0) return absl::InternalError("memfd_create failed");
  const std::string& bytes = artifact.shared_object;
  const bool written = write(file, bytes.data(), bytes.size()) ==
                       static_cast<ssize_t>(bytes.size());
  const std::string path = absl::StrCat("/proc/self/fd/", file);
  void* handle =
      written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  close(file);
  if (handle == nullptr) return absl::InternalError(dlerror());
  CompiledProgram out;
  out.library_ = std::shared_ptr<void>(handle, [](void* h) { dlclose(h); });
  out.function_ = dlsym(handle, artifact.symbols.at(0).c_str());
  if (out.function_ == nullptr) return absl::InternalError(dlerror());
  return out;
}

absl::Status CompiledProgram::Run(
    std::span<const std::span<std::byte>> buffers) const {
  if (buffers.size() > 8) {
    return absl::InvalidArgumentError("more than eight buffers");
  }
  // Arguments that a C function does not take are ignored on our platforms.
  using Function =
      int (*)(void*, void*, void*, void*, void*, void*, void*, void*);
  void* b[8] = {};
  for (size_t i = 0; i < buffers.size(); ++i) b[i] = buffers[i].data();
  const int code = reinterpret_cast<Function>(function_)(
      b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]);
  if (code == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the program returned ", code));
}

}  // namespace tilefarm::testing
