#include "worker/runner/model_abi.h"

#include <utility>

namespace tilefarm::worker {
namespace {

// By the numbers of ONNX's TensorProto.DataType.
constexpr std::pair<int32_t, ElementType> kTypes[] = {
    {1, ElementType::kFloat32},  {2, ElementType::kUInt8},
    {3, ElementType::kInt8},     {4, ElementType::kUInt16},
    {5, ElementType::kInt16},    {6, ElementType::kInt32},
    {7, ElementType::kInt64},    {9, ElementType::kBool},
    {10, ElementType::kFloat16}, {11, ElementType::kFloat64},
    {12, ElementType::kUInt32},  {13, ElementType::kUInt64},
    {16, ElementType::kBFloat16}};

constexpr int32_t kMostRank = 64;

}  // namespace

std::string ModelFunctions::Load(const std::string& symbol, const Find& find) {
  std::string missing;
  const auto load = [&]<typename T>(const char* suffix, T& function) {
    function = reinterpret_cast<T>(find(symbol + suffix));
    if (function == nullptr && missing.empty()) missing = symbol + suffix;
  };
  load("_inputs", count_inputs_);
  load("_outputs", count_outputs_);
  load("_input", input_);
  load("_output", output_);
  load("_create", create_);
  load("_run", run_);
  load("_error", error_);
  return missing;
}

std::string ModelFunctions::Check(const Tensor* tensor,
                                  const BufferSpec& spec) {
  if (tensor == nullptr) return "is not described";
  bool same_type = false;
  for (const auto& [number, type] : kTypes) {
    same_type |= number == tensor->dtype && type == spec.type;
  }
  if (!same_type) return "has another type than was announced";
  if (tensor->rank < 0 || tensor->rank > kMostRank) return "has an odd rank";
  uint64_t elements = 1;
  for (int32_t i = 0; i < tensor->rank; ++i) {
    if (tensor->shape[i] < 0) return "has an open dimension";
    elements *= static_cast<uint64_t>(tensor->shape[i]);
  }
  if (elements != spec.elements) return "has another size than was announced";
  return "";
}

std::string ModelFunctions::Create(const ProgramSpec& program) {
  const std::vector<BufferSpec>& specs = program.buffers;
  const int inputs = count_inputs_(), outputs = count_outputs_();
  if (inputs < 0 || outputs < 0 ||
      static_cast<size_t>(inputs) + static_cast<size_t>(outputs) !=
          specs.size()) {
    return "the model has another number of inputs and outputs than was "
           "announced";
  }
  inputs_ = static_cast<size_t>(inputs);
  for (size_t i = 0; i < specs.size(); ++i) {
    const bool is_input = i < inputs_;
    if (is_input == specs[i].written) {
      return "the model has another number of inputs than was announced";
    }
    const int number = static_cast<int>(is_input ? i : i - inputs_);
    const std::string problem =
        Check(is_input ? input_(number) : output_(number), specs[i]);
    if (problem.empty()) continue;
    return std::string("the model's ") + (is_input ? "input " : "output ") +
           std::to_string(number) + " " + problem;
  }
  const Options options = {sizeof(Options), nullptr, 0, 0};
  if (create_(&options, &instance_) == 0 && instance_ != nullptr) return "";
  const char* why = error_();
  return std::string("no instance of the model can be made: ") +
         (why == nullptr ? "?" : why);
}

}  // namespace tilefarm::worker
