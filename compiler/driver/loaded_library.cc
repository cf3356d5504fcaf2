#include "compiler/driver/loaded_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tilefarm::driver {

absl::StatusOr<LoadedLibrary> LoadedLibrary::Load(
    std::string_view shared_object) {
  // A unique name, since the loader returns the loaded library for a known one.
  std::string path = "/tmp/tilefarm-library-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) {
    return absl::UnavailableError("cannot make a temporary file in /tmp");
  }
  size_t written = 0;
  while (written < shared_object.size()) {
    const ssize_t count = write(file, shared_object.data() + written,
                                shared_object.size() - written);
    if (count <= 0) break;
    written += static_cast<size_t>(count);
  }
  close(file);
  const bool complete = written == shared_object.size();
  void* handle =
      complete ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path.c_str());
  if (handle == nullptr) {
    return absl::UnavailableError(
        complete ? absl::StrCat("the library cannot be loaded: ", dlerror())
                 : std::string("no space for a temporary file in /tmp"));
  }
  LoadedLibrary library;
  library.handle_ =
      std::shared_ptr<void>(handle, [](void* open) { dlclose(open); });
  return library;
}

void* LoadedLibrary::Find(const std::string& symbol) const {
  return dlsym(handle_.get(), symbol.c_str());
}

}  // namespace tilefarm::driver
