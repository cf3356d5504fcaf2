#include "tests/property/compiled_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tilefarm::property {
namespace {

constexpr size_t kMostParameters = 16;

template <size_t... kIndex>
int CallWith(void* symbol, void* const* p, std::index_sequence<kIndex...>) {
  using Pointer = void*;
  return reinterpret_cast<int (*)(decltype((void)kIndex, Pointer{})...)>(
      symbol)(p[kIndex]...);
}

template <size_t kCount = 1>
int Call(void* symbol, const std::vector<void*>& p) {
  if constexpr (kCount > kMostParameters) {
    return -1;
  } else if (p.size() == kCount) {
    return CallWith(symbol, p.data(), std::make_index_sequence<kCount>());
  } else {
    return Call<kCount + 1>(symbol, p);
  }
}

}  // namespace

CompiledLibrary::~CompiledLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

absl::Status CompiledLibrary::Load(const std::string& shared_object) {
  char path[] = "/tmp/tilefarm-differential-XXXXXX";
  const int fd = mkstemp(path);
  if (fd < 0) return absl::InternalError("no temporary file");
  const bool written = write(fd, shared_object.data(), shared_object.size()) ==
                       static_cast<ssize_t>(shared_object.size());
  close(fd);
  if (written) handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  unlink(path);
  if (handle_ == nullptr) {
    return absl::InternalError(
        absl::StrCat("the library does not load: ", written ? dlerror() : ""));
  }
  return absl::OkStatus();
}

void* CompiledLibrary::Find(const std::string& symbol) const {
  return dlsym(handle_, symbol.c_str());
}

int CallFunction(void* symbol, const std::vector<void*>& parameters) {
  return Call(symbol, parameters);
}

}  // namespace tilefarm::property
