// A compiled model, loaded into this process.
#ifndef TILEFARM_COMPILER_DRIVER_LOADED_MODEL_H_
#define TILEFARM_COMPILER_DRIVER_LOADED_MODEL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/driver/loaded_library.h"

namespace tilefarm::driver {

// One instance. Not thread-safe.
class LoadedModel {
 public:
  // Loads the library and creates an instance. `weights` is the file of weights
  // outside of the library; empty if they are inside. Unavailable: the loader
  // rejects the library, there is no memory, or the weights are not the
  // library's. InvalidArgument: no model of this name.
  static absl::StatusOr<LoadedModel> Load(std::string_view shared_object,
                                          const std::string& symbol,
                                          const std::string& weights = "");

  // Buffers as SYMBOL_run takes them. Internal: the model's error.
  absl::Status Run(std::span<const void* const> inputs,
                   std::span<void* const> outputs) const;

  // The same for a model with open dimensions; `input_shapes` has the shape of
  // each input. FailedPrecondition: the model has none.
  absl::Status RunShaped(std::span<const void* const> inputs,
                         std::span<const int64_t* const> input_shapes,
                         std::span<void* const> outputs) const;

  // For a library with ModelOptions::profile: `hook` is called with `context`
  // before each step of a run and after the last. FailedPrecondition: the
  // library was compiled without it.
  absl::Status SetProfileHook(void (*hook)(void*), void* context) const;

 private:
  LoadedLibrary library_;
  std::string symbol_;
  std::shared_ptr<void> instance_;  // destroyed before the library
  int (*run_)(void*, const void* const*, void* const*) = nullptr;
  // Null if no dimension is open.
  int (*run_shaped_)(void*, const void* const*, const int64_t* const*,
                     void* const*, int64_t* const*) = nullptr;
  const char* (*error_)() = nullptr;
};

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_LOADED_MODEL_H_
