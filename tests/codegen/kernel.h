// Loads generated code into the test process.
#ifndef TILEFARM_TESTS_CODEGEN_KERNEL_H_
#define TILEFARM_TESTS_CODEGEN_KERNEL_H_

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/link.h"
#include "compiler/target/target.h"
#include "gtest/gtest.h"

namespace tilefarm::codegen {

// A shared object; unloaded by the destructor.
class Kernel {
 public:
  static absl::StatusOr<Kernel> Load(const std::string& bytes) {
    // A unique file, since dlopen returns the loaded library for a known path.
    std::string path = testing::TempDir() + "/kernel-XXXXXX";
    const int fd = mkstemp(path.data());
    if (fd < 0 || write(fd, bytes.data(), bytes.size()) !=
                      static_cast<ssize_t>(bytes.size())) {
      return absl::UnavailableError("no temporary file");
    }
    close(fd);
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    unlink(path.c_str());
    if (handle == nullptr) return absl::InternalError(dlerror());
    return Kernel(handle);
  }
  // Emits and links one function for this machine.
  static absl::StatusOr<Kernel> Build(ir::PrimFuncPtr function,
                                      const Options& options) {
    const std::vector<LoweredFunction> functions = {{function, "kernel"}};
    TF_ASSIGN_OR_RETURN(const std::string object,
                        EmitObject(functions, options));
    TF_ASSIGN_OR_RETURN(const std::string bytes,
                        LinkSharedObject({&object, 1}, options.target));
    return Load(bytes);
  }

  template <typename... Buffers>
  int Call(const std::string& symbol, Buffers*... buffers) const {
    using Function = int (*)(std::conditional_t<true, void*, Buffers>...);
    auto* function =
        reinterpret_cast<Function>(dlsym(handle_.get(), symbol.c_str()));
    if (function == nullptr) return -1;
    return function(const_cast<void*>(static_cast<const void*>(buffers))...);
  }
  void* handle() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(void* handle) const { dlclose(handle); }
  };
  explicit Kernel(void* handle) : handle_(handle) {}
  std::unique_ptr<void, Close> handle_;
};

}  // namespace tilefarm::codegen

#endif  // TILEFARM_TESTS_CODEGEN_KERNEL_H_
