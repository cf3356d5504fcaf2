#include "tests/lower/compiled_program.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
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
  // A unique name: dlopen returns the loaded library for a known name, and the
  // name of a descriptor is reused once it is closed.
  std::string path =
      (std::filesystem::temp_directory_path() / "tilefarm-program-XXXXXX")
          .string();
  const int file = mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return absl::ErrnoToStatus(errno, path);
  const std::string& bytes = artifact.shared_object;
  const bool written = write(file, bytes.data(), bytes.size()) ==
                       static_cast<ssize_t>(bytes.size());
  close(file);
  void* handle =
      written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path.c_str());
  if (!written) return absl::InternalError(absl::StrCat("cannot write ", path));
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
  // On the supported platforms, a C function ignores additional arguments.
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
