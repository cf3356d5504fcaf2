#include "tests/onnx/backend_cases.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "compiler/graph/run_graph.h"
#include "compiler/ir/float16.h"
#include "compiler/ir/interpreter.h"
#include "compiler/onnx/importer.h"
#include "compiler/onnx/schema.h"
#include "compiler/onnx/small_types.h"
#include "compiler/onnx/tensor_proto.h"
#include "tests/onnx/compiled_graph.h"
#include "tests/support/close_to.h"

namespace tilefarm::testing {
namespace {

namespace fs = std::filesystem;
namespace pb = ::onnx;

absl::Status Interpret(const ir::PrimFunc& function,
                       std::span<const std::span<std::byte>> buffers) {
  return ir::Interpret(function, buffers);
}

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

absl::StatusOr<onnx::TensorContents> ReadTensorFile(const fs::path& path) {
  pb::TensorProto proto;
  if (!proto.ParseFromString(ReadAll(path))) {
    // Files of sequences and optionals are other messages.
    return absl::UnimplementedError(
        absl::StrCat(path.filename().string(), " is no tensor"));
  }
  onnx::ExternalData none("");
  return onnx::ReadTensor(proto, none, onnx::SmallTypes::kUnpack);
}

double ElementAt(const graph::TensorType& type, const onnx::SmallType* small,
                 const graph::TensorData& data, int64_t i) {
  if (small != nullptr) return onnx::SmallToDouble(*small, data.bytes()[i]);
  const std::byte* at = data.bytes().data() + i * type.dtype.bytes();
  const auto read = [&](auto value) {
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  if (type.dtype == ir::DataType::BFloat16()) {
    return ir::BFloatToFloat(read(uint16_t{}));
  }
  if (type.dtype.is_float()) {
    switch (type.dtype.bits) {
      case 16:
        return ir::HalfToFloat(read(uint16_t{}));
      case 32:
        return read(float{});
      default:
        return read(double{});
    }
  }
  switch (type.dtype.bytes()) {
    case 1:
      return type.dtype.is_int() ? read(int8_t{}) : read(uint8_t{});
    case 2:
      return type.dtype.is_int() ? read(int16_t{}) : read(uint16_t{});
    case 4:
      return type.dtype.is_int() ? read(int32_t{}) : read(uint32_t{});
    default:
      return type.dtype.is_int() ? static_cast<double>(read(int64_t{}))
                                 : static_cast<double>(read(uint64_t{}));
  }
}

// Why the output is not the expected one; empty if it is.
std::string Difference(const onnx::TensorContents& expected,
                       const graph::Value& value,
                       const graph::TensorData& actual) {
  const graph::TensorType& type = value.type;
  const onnx::SmallType* small = onnx::FindSmallType(value.element_type);
  if (onnx::FindSmallType(expected.small_type) != small) {
    return absl::StrCat("has elements of type '", value.element_type,
                        "', expected type ", expected.small_type);
  }
  if (expected.type != type) {
    return absl::StrCat("is ", type.ToString(), ", expected ",
                        expected.type.ToString());
  }
  for (int64_t i = 0; i < type.num_elements(); ++i) {
    const double want = ElementAt(type, small, expected.data, i);
    const double is = ElementAt(type, small, actual, i);
    const bool rounds = type.dtype.is_float();
    if (!CloseTo(is, want, rounds ? 1e-7 : 0, rounds ? 1e-3 : 0)) {
      return absl::StrCat("element ", i, " is ", is, ", expected ", want);
    }
  }
  return "";
}

void CollectOperators(const pb::GraphProto& graph, std::set<std::string>& all) {
  for (const auto& node : graph.node()) {
    all.insert(node.domain().empty()
                   ? node.op_type()
                   : absl::StrCat(node.domain(), ".", node.op_type()));
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) CollectOperators(attribute.g(), all);
    }
  }
}

// The name of a file of a data set.
std::string FileName(const std::string& kind, size_t index) {
  return absl::StrCat(kind, "_", index, ".pb");
}

// Sizes for the open dimensions of the model's inputs: those of the data.
absl::StatusOr<onnx::ImportOptions> OpenDims(const pb::GraphProto& graph,
                                             const fs::path& directory) {
  onnx::ImportOptions options;
  std::set<std::string> initialized;
  for (const auto& tensor : graph.initializer()) {
    initialized.insert(tensor.name());
  }
  size_t index = 0;
  for (const auto& input : graph.input()) {
    if (initialized.contains(input.name())) continue;
    const std::string file = FileName("input", index++);
    const auto& dims = input.type().tensor_type().shape().dim();
    for (int i = 0; i < dims.size(); ++i) {
      if (dims[i].has_dim_value()) continue;
      TF_ASSIGN_OR_RETURN(const onnx::TensorContents data,
                          ReadTensorFile(directory / file));
      if (i >= data.type.ndim()) continue;
      const std::string symbol = dims[i].dim_param().empty()
                                     ? absl::StrCat(input.name(), "[", i, "]")
                                     : dims[i].dim_param();
      options.dims.emplace(symbol, data.type.shape[i]);
    }
  }
  return options;
}

// onnx before 1.15 wrote bfloat16 data as uint16.
void ReadAsBFloat(const graph::TensorType& wanted, graph::TensorType& type) {
  if (wanted.dtype == ir::DataType::BFloat16() &&
      type.dtype == ir::DataType::UInt(16)) {
    type.dtype = wanted.dtype;
  }
}

using Execute = std::function<absl::StatusOr<std::vector<graph::TensorData>>(
    std::span<const graph::TensorData>)>;

absl::Status RunDataSet(const fs::path& directory, const graph::Graph& graph,
                        const Execute& execute) {
  std::vector<graph::TensorData> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const fs::path file = directory / FileName("input", i);
    TF_ASSIGN_OR_RETURN(onnx::TensorContents input, ReadTensorFile(file));
    const graph::Value& value = graph.values[graph.inputs[i]];
    ReadAsBFloat(value.type, input.type);
    if (input.type != value.type ||
        onnx::FindSmallType(input.small_type) !=
            onnx::FindSmallType(value.element_type)) {
      return absl::UnimplementedError(
          absl::StrCat("input ", i, " is ", input.type.ToString(),
                       ", the model says ", value.type.ToString()));
    }
    inputs.push_back(input.data);
  }
  TF_ASSIGN_OR_RETURN(const std::vector<graph::TensorData> outputs,
                      execute(inputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const fs::path file = directory / FileName("output", i);
    TF_ASSIGN_OR_RETURN(onnx::TensorContents expected, ReadTensorFile(file));
    const graph::Value& value = graph.values[graph.outputs[i]];
    ReadAsBFloat(value.type, expected.type);
    const std::string difference = Difference(expected, value, outputs[i]);
    if (!difference.empty()) {
      return absl::InternalError(
          absl::StrCat("output ", graph.output_names[i], " ", difference));
    }
  }
  return absl::OkStatus();
}

absl::Status RunCase(const fs::path& root, const pb::GraphProto& proto,
                     CaseMode mode) {
  TF_ASSIGN_OR_RETURN(const onnx::ImportOptions options,
                      OpenDims(proto, root / "test_data_set_0"));
  TF_ASSIGN_OR_RETURN(
      const graph::Graph graph,
      onnx::ImportFile((root / "model.onnx").string(), options, Interpret));
  Execute execute = [&](std::span<const graph::TensorData> inputs) {
    return graph::RunGraph(graph, inputs, Interpret);
  };
  std::optional<CompiledGraph> compiled;
  if (mode == CaseMode::kCompiled) {
    TF_ASSIGN_OR_RETURN(compiled, CompiledGraph::Compile(graph));
    execute = [&](std::span<const graph::TensorData> inputs) {
      return compiled->Run(inputs);
    };
  }
  for (const auto& entry : fs::directory_iterator(root)) {
    if (absl::StartsWith(entry.path().filename().string(), "test_data_set_")) {
      TF_RETURN_IF_ERROR(RunDataSet(entry.path(), graph, execute));
    }
  }
  return absl::OkStatus();
}

}  // namespace

CaseOutcome RunBackendCase(const std::string& directory, CaseMode mode) {
  CaseOutcome outcome;
  const fs::path root(directory);
  pb::ModelProto model;
  if (!model.ParseFromString(ReadAll(root / "model.onnx"))) {
    outcome.reason = "model.onnx cannot be read";
    return outcome;
  }
  std::set<std::string> operators;
  CollectOperators(model.graph(), operators);
  outcome.operators.assign(operators.begin(), operators.end());
  const absl::Status status = RunCase(root, model.graph(), mode);
  if (status.ok()) {
    outcome.result = CaseResult::kPassed;
  } else {
    outcome.result = absl::IsUnimplemented(status) ? CaseResult::kUnsupported
                                                   : CaseResult::kFailed;
    // Without the path of the model, which differs between machines.
    outcome.reason = absl::StrReplaceAll(
        status.message(),
        {{absl::StrCat((root / "model.onnx").string(), ": "), ""}});
  }
  return outcome;
}

std::vector<std::string> CaseNames(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (fs::exists(entry.path() / "model.onnx")) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tilefarm::testing
