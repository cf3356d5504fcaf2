// Calls model artifacts (docs/formats.md, "Model artifacts").
#ifndef TILEFARM_WORKER_RUNNER_MODEL_ABI_H_
#define TILEFARM_WORKER_RUNNER_MODEL_ABI_H_

#include <functional>
#include <string>

#include "worker/runner_protocol.h"

namespace tilefarm::worker {

// The functions of one artifact. The program's buffers are the inputs of the
// model, then its outputs.
class ModelFunctions {
 public:
  using Find = std::function<void*(const std::string& symbol)>;

  // Looks up SYMBOL_run and the others. The name of the first that is missing;
  // empty: none is.
  std::string Load(const std::string& symbol, const Find& find);
  // Compares the artifact's description of its tensors with the program's
  // buffers, and makes an instance. What is wrong; empty: nothing.
  std::string Create(const ProgramSpec& program);
  // 0: success. `args`: the inputs, then the outputs.
  int Run(void* const* args) const {
    return run_(instance_, args, args + inputs_);
  }

 private:
  // tf_tensor_info and tf_model_options.
  struct Tensor {
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

  static std::string Check(const Tensor* tensor, const BufferSpec& spec);

  int (*count_inputs_)() = nullptr;
  int (*count_outputs_)() = nullptr;
  const Tensor* (*input_)(int) = nullptr;
  const Tensor* (*output_)(int) = nullptr;
  int (*create_)(const Options*, void**) = nullptr;
  int (*run_)(void*, const void* const*, void* const*) = nullptr;
  const char* (*error_)() = nullptr;
  void* instance_ = nullptr;  // until the child ends
  size_t inputs_ = 0;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_MODEL_ABI_H_
