#include "compiler/driver/loaded_model.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/codegen/model_object.h"

namespace tilefarm::driver {
namespace {

// tf_model_options (docs/formats.md, "Model artifacts").
struct Options {
  size_t size;
  const char* weights;
  int32_t threads;
  int32_t spin_us;
};

}  // namespace

absl::StatusOr<LoadedModel> LoadedModel::Load(std::string_view shared_object,
                                              const std::string& symbol,
                                              const std::string& weights) {
  LoadedModel model;
  model.symbol_ = symbol;
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
  find("_run_shaped", model.run_shaped_);
  void* instance = nullptr;
  const Options options = {sizeof(Options),
                           weights.empty() ? nullptr : weights.c_str(), 0, 0};
  if (create(&options, &instance) != 0) {
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

absl::Status LoadedModel::RunShaped(
    std::span<const void* const> inputs,
    std::span<const int64_t* const> input_shapes,
    std::span<void* const> outputs) const {
  if (run_shaped_ == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the model '", symbol_, "' has no open dimensions"));
  }
  if (run_shaped_(instance_.get(), inputs.data(), input_shapes.data(),
                  outputs.data(), nullptr) != 0) {
    return absl::InternalError(error_());
  }
  return absl::OkStatus();
}

absl::Status LoadedModel::SetProfileHook(void (*hook)(void*),
                                         void* context) const {
  struct Hook {
    void (*function)(void*);
    void* context;
  };
  auto* variable =
      static_cast<Hook*>(library_.Find(codegen::ProfileHookSymbol(symbol_)));
  if (variable == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the library of '", symbol_, "' has no profiling hook"));
  }
  *variable = {hook, context};
  return absl::OkStatus();
}

}  // namespace tilefarm::driver
