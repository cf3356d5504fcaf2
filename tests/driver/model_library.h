// The library of a model with the symbol "net", called as C programs call it.
#ifndef TILEFARM_TESTS_DRIVER_MODEL_LIBRARY_H_
#define TILEFARM_TESTS_DRIVER_MODEL_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "compiler/driver/loaded_library.h"
#include "gtest/gtest.h"

namespace tilefarm::driver {

// The declarations of the generated header.
struct TensorInfo {
  const char* name;
  int32_t dtype;
  int32_t rank;
  const int64_t* shape;
};
struct Options {
  size_t size;
  const char* weights;
  int32_t threads;
  int32_t spin_us;
};

// `Library` has `void* Find(const std::string& symbol) const`.
template <typename Library>
struct NetOf {
  explicit NetOf(Library loaded) : library(std::move(loaded)) {
    Find("net_inputs", inputs);
    Find("net_outputs", outputs);
    Find("net_input", input);
    Find("net_output", output);
    Find("net_create", create);
    Find("net_run", run);
    Find("net_destroy", destroy);
    Find("net_error", error);
  }
  template <typename T>
  void Find(const char* name, T& function) {
    function = reinterpret_cast<T>(library.Find(name));
    EXPECT_NE(function, nullptr) << name;
  }

  Library library;
  int (*inputs)() = nullptr;
  int (*outputs)() = nullptr;
  const TensorInfo* (*input)(int) = nullptr;
  const TensorInfo* (*output)(int) = nullptr;
  int (*create)(const Options*, void**) = nullptr;
  int (*run)(void*, const void* const*, void* const*) = nullptr;
  void (*destroy)(void*) = nullptr;
  const char* (*error)() = nullptr;
};

// Loaded from memory.
struct Net : NetOf<LoadedLibrary> {
  explicit Net(std::string_view shared_object)
      : NetOf(*LoadedLibrary::Load(shared_object)) {}
};

}  // namespace tilefarm::driver

#endif  // TILEFARM_TESTS_DRIVER_MODEL_LIBRARY_H_
