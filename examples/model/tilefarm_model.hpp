// A model compiled by tunec, for C++20 programs. Header-only; it needs nothing
// but the model's library.
//
//   #include "model.h"  // by tunec; link with model.so
//   #include "tilefarm_model.hpp"
//
//   tilefarm::Model model(TILEFARM_MODEL(model));
//   std::vector<float> image(4), scores(3);
//   model.SetInput<float>("image", image);
//   model.SetOutput<float>("scores", scores);
//   model.Run();
//
// Or, with a library that is opened at run time:
//
//   void* library = dlopen("./model.so", RTLD_NOW | RTLD_LOCAL);
//   tilefarm::Model model(tilefarm::FindModel(library, "model"));
//
// A model with open dimensions (tunec --dim N=1,8) is
// TILEFARM_OPEN_MODEL(model) in the first form, and takes the shapes of its
// inputs:
//
//   model.SetInput<float>("image", image, {8, 4});
//   model.ResultShape("scores");  // {8, 3}
//
// Errors are tilefarm::ModelError. A Model is one instance: it may move between
// threads, but runs in one at a time. Several Models of one library may run at
// once. The library must stay loaded as long as its Models exist.
#ifndef TILEFARM_MODEL_HPP_
#define TILEFARM_MODEL_HPP_

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// As in every generated header.
#ifndef TILEFARM_MODEL_TYPES
#define TILEFARM_MODEL_TYPES
extern "C" {
typedef struct tf_tensor_info {
  const char* name;
  int32_t dtype; /* ONNX's TensorProto.DataType */
  int32_t rank;
  const int64_t* shape; /* null if the rank is 0 */
} tf_tensor_info;

typedef struct tf_model_options {
  size_t size;         /* sizeof(tf_model_options) */
  const char* weights; /* file; null: inside the library or beside it */
  int32_t threads;     /* at most; 0: as many as there are cores */
  int32_t spin_us;     /* of idle threads before they sleep; 0: the default */
} tf_model_options;
}
#endif

namespace tilefarm {

class ModelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The functions of one model.
struct ModelFunctions {
  int (*inputs)();
  int (*outputs)();
  const tf_tensor_info* (*input)(int number);
  const tf_tensor_info* (*output)(int number);
  int (*create)(const tf_model_options* options, void** model);
  int (*run)(void* model, const void* const* inputs, void* const* outputs);
  void (*destroy)(void* model);
  const char* (*error)();
  // Null if no dimension is open.
  int (*run_shaped)(void* model, const void* const* inputs,
                    const int64_t* const* input_shapes, void* const* outputs,
                    int64_t* const* output_shapes) = nullptr;
};

// The functions that the model's header declares for the symbol NAME.
#define TILEFARM_MODEL(NAME)                                               \
  ::tilefarm::ModelFunctions {                                             \
    NAME##_inputs, NAME##_outputs, NAME##_input, NAME##_output,            \
        [](const tf_model_options* options, void** model) {                \
          NAME##_model* made = nullptr;                                    \
          const int status = NAME##_create(options, &made);                \
          *model = made;                                                   \
          return status;                                                   \
        },                                                                 \
        [](void* model, const void* const* inputs, void* const* outputs) { \
          return NAME##_run(static_cast<NAME##_model*>(model), inputs,     \
                            outputs);                                      \
        },                                                                 \
        [](void* model) {                                                  \
          NAME##_destroy(static_cast<NAME##_model*>(model));               \
        },                                                                 \
        NAME##_error                                                       \
  }

// The same for a model with open dimensions.
#define TILEFARM_OPEN_MODEL(NAME)                                         \
  [] {                                                                    \
    ::tilefarm::ModelFunctions functions = TILEFARM_MODEL(NAME);          \
    functions.run_shaped = [](void* model, const void* const* inputs,     \
                              const int64_t* const* input_shapes,         \
                              void* const* outputs,                       \
                              int64_t* const* output_shapes) {            \
      return NAME##_run_shaped(static_cast<NAME##_model*>(model), inputs, \
                               input_shapes, outputs, output_shapes);     \
    };                                                                    \
    return functions;                                                     \
  }()

// The functions of the model in a library that dlopen returned.
inline ModelFunctions FindModel(void* library, const std::string& name) {
  const auto find = [&]<typename Function>(const char* suffix,
                                           Function& function) {
    const std::string symbol = name + suffix;
    function = reinterpret_cast<Function>(dlsym(library, symbol.c_str()));
    if (function == nullptr) {
      throw ModelError("the library has no function " + symbol +
                       "; --symbol of tunec sets the name of a model");
    }
  };
  ModelFunctions functions{};
  find("_inputs", functions.inputs);
  find("_outputs", functions.outputs);
  find("_input", functions.input);
  find("_output", functions.output);
  find("_create", functions.create);
  find("_run", functions.run);
  find("_destroy", functions.destroy);
  find("_error", functions.error);
  functions.run_shaped = reinterpret_cast<decltype(functions.run_shaped)>(
      dlsym(library, (name + "_run_shaped").c_str()));
  return functions;
}

struct Tensor {
  std::string name;
  int32_t dtype = 0;           // number of ONNX's TensorProto.DataType
  std::vector<int64_t> shape;  // -1: the dimension is open

  bool open() const { return std::count(shape.begin(), shape.end(), -1) > 0; }
  size_t elements() const { return Elements(shape); }

  static size_t Elements(const std::vector<int64_t>& shape) {
    size_t count = 1;
    for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
    return count;
  }
};

struct ModelOptions {
  std::string weights = {};  // file; empty: inside the library or beside it
  int32_t threads = 0;       // at most; 0: as many as there are cores
  int32_t spin_us = 0;       // 0: the default
};

class Model {
 public:
  explicit Model(const ModelFunctions& functions,
                 const ModelOptions& options = {})
      : functions_(functions),
        instance_(nullptr, functions.destroy),
        inputs_(List(functions.inputs(), functions.input)),
        outputs_(List(functions.outputs(), functions.output)),
        input_data_(inputs_.size()),
        output_data_(outputs_.size()),
        output_sizes_(outputs_.size()),
        input_shapes_(Shapes(inputs_)),
        output_shapes_(Shapes(outputs_)) {
    const tf_model_options plain = {
        sizeof(tf_model_options),
        options.weights.empty() ? nullptr : options.weights.c_str(),
        options.threads, options.spin_us};
    void* made = nullptr;
    if (functions_.create(&plain, &made) != 0) {
      throw ModelError(functions_.error());
    }
    instance_.reset(made);
  }

  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }

  // Where Run reads or writes a tensor: dense, row-major memory of the caller
  // that must be there at each Run. The element type and the number of elements
  // must be the tensor's. float16 and bfloat16 are given as uint16_t.
  template <typename T>
  void SetInput(const std::string& name, std::span<const T> data) {
    const size_t i = Find<T>(inputs_, "input", name);
    if (inputs_[i].open()) {
      throw ModelError("the input '" + name +
                       "' has open dimensions: give its shape");
    }
    SetInput(name, data, inputs_[i].shape);
  }
  template <typename T>
  void SetInput(const std::string& name, std::span<const T> data,
                const std::vector<int64_t>& shape) {
    const size_t i = Find<T>(inputs_, "input", name);
    if (shape.size() != inputs_[i].shape.size()) {
      throw ModelError("the input '" + name + "' has " +
                       std::to_string(inputs_[i].shape.size()) +
                       " dimensions, and " + std::to_string(shape.size()) +
                       " are given");
    }
    CheckElements("input", inputs_[i], shape, data.size());
    input_data_[i] = data.data();
    input_shapes_[i] = shape;
  }
  template <typename T>
  void SetOutput(const std::string& name, std::span<T> data) {
    const size_t i = Find<T>(outputs_, "output", name);
    if (!outputs_[i].open()) {
      CheckElements("output", outputs_[i], outputs_[i].shape, data.size());
    }
    output_data_[i] = data.data();
    output_sizes_[i] = data.size();
  }

  // The shape of an output for the inputs' shapes that are set.
  std::vector<int64_t> ResultShape(const std::string& name) {
    const size_t i = FindName(outputs_, "output", name);
    if (functions_.run_shaped != nullptr) RunShaped(nullptr);
    return output_shapes_[i];
  }

  void Run() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (input_data_[i] == nullptr &&
          (inputs_[i].open() || inputs_[i].elements() > 0)) {
        throw ModelError("the input '" + inputs_[i].name + "' is not set");
      }
    }
    if (functions_.run_shaped != nullptr) RunShaped(nullptr);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const size_t elements = Tensor::Elements(output_shapes_[i]);
      if (output_data_[i] == nullptr && elements > 0) {
        throw ModelError("the output '" + outputs_[i].name + "' is not set");
      }
      CheckElements("output", outputs_[i], output_shapes_[i], output_sizes_[i]);
    }
    if (functions_.run_shaped != nullptr) {
      RunShaped(output_data_.data());
    } else if (functions_.run(instance_.get(), input_data_.data(),
                              output_data_.data()) != 0) {
      throw ModelError(functions_.error());
    }
  }

 private:
  static std::vector<std::vector<int64_t>> Shapes(
      const std::vector<Tensor>& tensors) {
    std::vector<std::vector<int64_t>> shapes;
    for (const Tensor& tensor : tensors) shapes.push_back(tensor.shape);
    return shapes;
  }

  // Without outputs, it only asks for their shapes.
  void RunShaped(void* const* outputs) {
    std::vector<const int64_t*> inputs;
    for (const auto& shape : input_shapes_) inputs.push_back(shape.data());
    std::vector<int64_t*> results;
    for (auto& shape : output_shapes_) results.push_back(shape.data());
    if (functions_.run_shaped(instance_.get(), input_data_.data(),
                              inputs.data(), outputs, results.data()) != 0) {
      throw ModelError(functions_.error());
    }
  }

  static void CheckElements(const char* kind, const Tensor& tensor,
                            const std::vector<int64_t>& shape, size_t given) {
    const size_t elements = Tensor::Elements(shape);
    if (given == elements) return;
    throw ModelError(std::string("the ") + kind + " '" + tensor.name +
                     "' has " + std::to_string(elements) + " elements, and " +
                     std::to_string(given) + " are given");
  }

  static std::vector<Tensor> List(int count,
                                  const tf_tensor_info* (*get)(int number)) {
    std::vector<Tensor> tensors;
    for (int i = 0; i < count; ++i) {
      const tf_tensor_info& info = *get(i);
      tensors.push_back(
          {info.name, info.dtype, {info.shape, info.shape + info.rank}});
    }
    return tensors;
  }

  template <typename T>
  static bool Fits(int32_t dtype) {
    if constexpr (std::is_same_v<T, float>) return dtype == 1;
    if constexpr (std::is_same_v<T, double>) return dtype == 11;
    if constexpr (std::is_same_v<T, bool>) return dtype == 9;
    if constexpr (std::is_same_v<T, uint8_t>) return dtype == 2;
    if constexpr (std::is_same_v<T, int8_t>) return dtype == 3;
    if constexpr (std::is_same_v<T, uint16_t>) {
      return dtype == 4 || dtype == 10 || dtype == 16;
    }
    if constexpr (std::is_same_v<T, int16_t>) return dtype == 5;
    if constexpr (std::is_same_v<T, int32_t>) return dtype == 6;
    if constexpr (std::is_same_v<T, int64_t>) return dtype == 7;
    if constexpr (std::is_same_v<T, uint32_t>) return dtype == 12;
    if constexpr (std::is_same_v<T, uint64_t>) return dtype == 13;
    return false;
  }

  template <typename T>
  static size_t Find(const std::vector<Tensor>& tensors, const char* kind,
                     const std::string& name) {
    const size_t i = FindName(tensors, kind, name);
    if (!Fits<T>(tensors[i].dtype)) {
      throw ModelError(std::string("the ") + kind + " '" + name +
                       "' has another element type: number " +
                       std::to_string(tensors[i].dtype) +
                       " of ONNX's TensorProto.DataType");
    }
    return i;
  }

  static size_t FindName(const std::vector<Tensor>& tensors, const char* kind,
                         const std::string& name) {
    std::string known;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].name == name) return i;
      known += (known.empty() ? "" : ", ") + tensors[i].name;
    }
    throw ModelError("the model has no " + std::string(kind) + " '" + name +
                     "'; it has " + known);
  }

  ModelFunctions functions_;
  std::unique_ptr<void, void (*)(void*)> instance_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<const void*> input_data_;
  std::vector<void*> output_data_;
  std::vector<size_t> output_sizes_;  // elements
  std::vector<std::vector<int64_t>> input_shapes_, output_shapes_;
};

}  // namespace tilefarm

#endif  // TILEFARM_MODEL_HPP_
