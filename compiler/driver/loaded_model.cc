#include "compiler/driver/loaded_model.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace tilefarm::driver {

absl::StatusOr<LoadedModel> LoadedModel::Load(std::string_view shared_object,
                                              const std::string& symbol) {
  LoadedModel model;
  TF_ASSIGN_OR_RETURN(model.library_, LoadedLibrary::Load(shared_object));
  const auto find = [&]<typename T>(const char* suffix, T& function) {
    function = reinterpret_cast<T>(model.library_.Find(symbol + suffix));
    return function != nullptr;
  };
  int (*create)(const void*, void**) = nullptr;
  void (*destroy)(void*) = nullptr;
  if (!find("_create", create) || !find("_destroy", destroy) ||
      !find("_run", model.run_) || !find("_error", model.error_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the library has no model '", symbol, "'"));
  }
  void* instance = nullptr;
  if (create(nullptr, &instance) != 0) {
    return absl::UnavailableError(model.error_());
  }
  model.instance_ = std::shared_ptr<void>(instance, destroy);
  return model;
}

absl::Status LoadedModel::Run(std::span<const void* const> inputs,
                              std::span<void* const> outputs) const {
  if (run_(instance_.get(), inputs.data(), outputs.data()) != 0) {
    return absl::InternalError(error_());
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::driver
