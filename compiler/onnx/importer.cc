#include "compiler/onnx/importer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/ir/limits.h"
#include "compiler/onnx/schema.h"
#include "compiler/onnx/scope.h"
#include "compiler/onnx/small_types.h"
#include "google/protobuf/io/coded_stream.h"

namespace tilefarm::onnx {
namespace {

// Operators changed their rules of broadcasting in operator set 7.
constexpr int64_t kOldestOpset = 7;

// Exporters declare a name for each intermediate dimension; inputs come first.
constexpr size_t kShownSymbols = 20;

absl::StatusOr<std::map<std::string, int64_t>> Opsets(
    const pb::ModelProto& model) {
  std::map<std::string, int64_t> opsets;
  for (const auto& import : model.opset_import()) {
    opsets[import.domain() == "ai.onnx" ? "" : import.domain()] =
        import.version();
  }
  if (opsets.contains("") && opsets[""] < kOldestOpset) {
    return absl::UnimplementedError(absl::StrCat(
        "the model uses operator set ", opsets[""], "; ", kOldestOpset,
        " or newer is supported: convert it with onnx.version_converter"));
  }
  return opsets;
}

// The name of an open dimension of an input.
std::string InputSymbol(const pb::ValueInfoProto& input, int dimension) {
  const auto& dim = input.type().tensor_type().shape().dim(dimension);
  return dim.dim_param().empty()
             ? absl::StrCat(input.name(), "[", dimension, "]")
             : dim.dim_param();
}

// Names in the order in which they were found, each once.
struct Symbols {
  std::vector<std::string> names;
  std::set<std::string> seen;

  void Add(const std::string& name) {
    if (!name.empty() && seen.insert(name).second) names.push_back(name);
  }
};

// Names in declared types of the graph and its subgraphs.
void AddDeclared(const pb::GraphProto& graph, Symbols& symbols) {
  for (const auto* infos : {&graph.output(), &graph.value_info()}) {
    for (const pb::ValueInfoProto& info : *infos) {
      for (const auto& dim : info.type().tensor_type().shape().dim()) {
        symbols.Add(dim.dim_param());
      }
    }
  }
  for (const pb::NodeProto& node : graph.node()) {
    for (const pb::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) AddDeclared(attribute.g(), symbols);
      for (const pb::GraphProto& subgraph : attribute.graphs()) {
        AddDeclared(subgraph, symbols);
      }
    }
  }
}

// Inputs come first.
Symbols SymbolsOf(const pb::GraphProto& graph,
                  const std::set<std::string>& initialized) {
  Symbols symbols;
  for (const pb::ValueInfoProto& input : graph.input()) {
    if (initialized.contains(input.name())) continue;
    const auto& shape = input.type().tensor_type().shape();
    for (int i = 0; i < shape.dim_size(); ++i) {
      if (!shape.dim(i).has_dim_value()) symbols.Add(InputSymbol(input, i));
    }
  }
  AddDeclared(graph, symbols);
  return symbols;
}

// An error that lists the model's symbolic dimensions if the options have
// another one.
absl::Status CheckDims(const pb::GraphProto& graph,
                       const std::set<std::string>& initialized,
                       const ImportOptions& options) {
  if (options.dims.empty()) return absl::OkStatus();
  const Symbols symbols = SymbolsOf(graph, initialized);
  for (const auto& [name, size] : options.dims) {
    if (symbols.seen.contains(name)) continue;
    std::string known = "it has none";
    if (!symbols.names.empty()) {
      const size_t shown = std::min(symbols.names.size(), kShownSymbols);
      known = absl::StrCat(
          "it has ",
          absl::StrJoin(std::span(symbols.names).first(shown), ", "));
      if (shown < symbols.names.size()) {
        absl::StrAppend(&known, " and ", symbols.names.size() - shown, " more");
      }
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "--dim ", name, "=", size, ": the model has no symbolic dimension '",
        name, "'; ", known));
  }
  return absl::OkStatus();
}

// Replaces symbolic dimensions; the error says how to give the missing ones.
absl::StatusOr<TensorType> InputType(const pb::ValueInfoProto& info,
                                     const ImportOptions& options) {
  const auto fail = [&](auto... parts) {
    return absl::InvalidArgumentError(
        absl::StrCat("input '", info.name(), "': ", parts...));
  };
  if (!info.type().has_tensor_type()) {
    return absl::UnimplementedError(
        absl::StrCat("input '", info.name(),
                     "' is no tensor (a sequence, map or optional)"));
  }
  const auto& tensor = info.type().tensor_type();
  if (!StorageDtypeOf(tensor.elem_type()).has_value()) {
    return absl::UnimplementedError(
        absl::StrCat("input '", info.name(), "': element type ",
                     OnnxTypeName(tensor.elem_type())));
  }
  if (!tensor.has_shape()) return fail("its rank is not known");
  TensorType type{*StorageDtypeOf(tensor.elem_type()), {}};
  const ir::Limits limits;
  int64_t bytes = type.dtype.bytes();
  for (int i = 0; i < tensor.shape().dim_size(); ++i) {
    const auto& dim = tensor.shape().dim(i);
    int64_t extent = dim.dim_value();
    if (!dim.has_dim_value()) {
      const std::string symbol = InputSymbol(info, i);
      const auto given = options.dims.find(symbol);
      if (given == options.dims.end()) {
        return fail("dimension ", i, " is open; give it a size: --dim ", symbol,
                    "=1");
      }
      extent = given->second;
    }
    if (extent < 0) return fail("dimension ", i, " is ", extent);
    if (extent > 0 && bytes > limits.max_buffer_bytes / extent) {
      return fail("has more than ", limits.max_buffer_bytes, " bytes");
    }
    bytes *= extent;
    type.shape.push_back(extent);
  }
  if (type.ndim() > limits.max_dims) {
    return fail(type.ndim(), " dimensions; at most ", limits.max_dims,
                " are supported");
  }
  return type;
}

absl::StatusOr<graph::Graph> Import(const pb::ModelProto& model,
                                    const std::string& directory,
                                    const ImportOptions& options,
                                    graph::RunFunction run) {
  if (!model.has_graph()) {
    return absl::InvalidArgumentError("not an ONNX model: it has no graph");
  }
  const pb::GraphProto& proto = model.graph();
  GraphBuilder builder(std::move(run));
  ExternalData external(directory);
  ModelContext context{model, options, builder, external};
  TF_ASSIGN_OR_RETURN(auto opsets, Opsets(model));
  Scope scope(context, nullptr, std::move(opsets));
  std::set<std::string> initialized;
  for (const auto& tensor : proto.initializer()) {
    initialized.insert(tensor.name());
  }
  TF_RETURN_IF_ERROR(CheckDims(proto, initialized, options));
  for (const pb::ValueInfoProto& input : proto.input()) {
    // An input with an initialiser has a default, which is what is compiled.
    if (initialized.contains(input.name())) continue;
    const absl::StatusOr<TensorType> type = InputType(input, options);
    if (absl::IsUnimplemented(type.status())) {
      context.unsupported.push_back(std::string(type.status().message()));
      scope.DefineUnsupported(input.name());
      continue;
    }
    TF_RETURN_IF_ERROR(type.status());
    Imported value = builder.Input(input.name(), *type);
    const int onnx_type = input.type().tensor_type().elem_type();
    if (FindSmallType(onnx_type) != nullptr) {
      value.small_type = onnx_type;
      builder.SetElementType(value.tensor, OnnxTypeName(onnx_type));
    }
    scope.Define(input.name(), std::move(value));
  }
  TF_RETURN_IF_ERROR(scope.ImportGraph(proto));
  if (!context.unsupported.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("the model needs what is not supported:\n  ",
                     absl::StrJoin(context.unsupported, "\n  ")));
  }
  std::vector<ValueId> outputs;
  std::vector<std::string> names;
  for (const pb::ValueInfoProto& output : proto.output()) {
    const Imported* value = scope.Find(output.name());
    if (value == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "output '", output.name(), "' is not computed by any node"));
    }
    if (!value->is_tensor()) {
      return absl::UnimplementedError(
          absl::StrCat("output '", output.name(), "' is no tensor"));
    }
    if (value->small_type != 0) {
      builder.SetElementType(value->tensor, OnnxTypeName(value->small_type));
    }
    outputs.push_back(value->tensor);
    names.push_back(output.name());
  }
  return builder.Finish(std::move(outputs), std::move(names));
}

}  // namespace

absl::StatusOr<graph::Graph> ImportBytes(std::string_view bytes,
                                         const std::string& directory,
                                         const ImportOptions& options,
                                         graph::RunFunction run) {
  pb::ModelProto model;
  google::protobuf::io::CodedInputStream stream(
      reinterpret_cast<const uint8_t*>(bytes.data()),
      static_cast<int>(bytes.size()));
  // Subgraphs nest messages; this also bounds the recursion of the parser.
  stream.SetRecursionLimit(200);
  if (!model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    return absl::InvalidArgumentError(
        "not an ONNX model: the file is damaged or truncated");
  }
  return Import(model, directory, options, std::move(run));
}

absl::StatusOr<graph::Graph> ImportFile(const std::string& path,
                                        const ImportOptions& options,
                                        graph::RunFunction run) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  const std::string bytes = std::move(text).str();
  if (bytes.size() > INT32_MAX) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": protobuf messages have at most 2 GiB; store large weights as "
        "external data"));
  }
  const std::filesystem::path parent =
      std::filesystem::path(path).parent_path();
  absl::StatusOr<graph::Graph> graph = ImportBytes(
      bytes, parent.empty() ? "." : parent.string(), options, std::move(run));
  if (!graph.ok()) {
    return absl::Status(graph.status().code(),
                        absl::StrCat(path, ": ", graph.status().message()));
  }
  return graph;
}

}  // namespace tilefarm::onnx
