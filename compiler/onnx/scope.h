// Names of an ONNX graph, and the import of nodes. Private to this folder.
#ifndef TILEFARM_COMPILER_ONNX_SCOPE_H_
#define TILEFARM_COMPILER_ONNX_SCOPE_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/importer.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/tensor_proto.h"

namespace tilefarm::onnx {

// What all graphs of a model share.
struct ModelContext {
  const pb::ModelProto& model;
  const ImportOptions& options;
  GraphBuilder& builder;
  ExternalData& external;
  // Nodes that are not supported; values that depend on them are skipped.
  std::vector<std::string> unsupported;
  int64_t imported_nodes = 0;
  int depth = 0;  // of functions and subgraphs
};

// The names that the nodes of one graph, subgraph or function body can see.
class Scope {
 public:
  // `outer` (may be null) is the graph around a subgraph; function bodies see
  // no names of their caller.
  Scope(ModelContext& context, const Scope* outer,
        std::map<std::string, int64_t> opsets)
      : context_(context), outer_(outer), opsets_(std::move(opsets)) {}

  ModelContext& context() const { return context_; }
  const std::map<std::string, int64_t>& opsets() const { return opsets_; }

  // Null if the name is unknown here and outside.
  const Imported* Find(const std::string& name) const;
  void Define(const std::string& name, Imported value);
  // Marks a value that an unsupported node would have computed.
  void DefineUnsupported(const std::string& name) { poisoned_.insert(name); }
  bool IsUnsupported(const std::string& name) const;

  // Initialisers and declared types, then the nodes in order.
  absl::Status ImportGraph(const pb::GraphProto& graph);
  absl::Status ImportNodes(
      const google::protobuf::RepeatedPtrField<pb::NodeProto>& nodes);
  // A subgraph of a node of this scope, with values for its inputs; returns its
  // outputs.
  absl::StatusOr<std::vector<Imported>> ImportSubgraph(
      const pb::GraphProto& graph, const std::vector<Imported>& inputs) const;

  std::optional<TensorType> Declared(const std::string& name) const;
  void Declare(const pb::ValueInfoProto& info);

 private:
  absl::Status ImportNode(const pb::NodeProto& node);
  absl::StatusOr<std::vector<Imported>> Convert(const pb::NodeProto& proto,
                                                std::vector<Imported> inputs);
  // The outputs of a node whose operator is a function with a body.
  absl::StatusOr<std::vector<Imported>> CallBody(
      const pb::FunctionProto& body, const pb::NodeProto& node,
      const std::vector<Imported>& inputs);

  ModelContext& context_;
  const Scope* outer_;
  std::map<std::string, int64_t> opsets_;  // by domain
  std::map<std::string, Imported> values_;
  std::map<std::string, TensorType> declared_;
  std::set<std::string> poisoned_;
};

// The element type and shape of a ValueInfoProto, with symbolic dimensions
// replaced. Unset dimensions give nullopt.
std::optional<TensorType> CompleteType(
    const pb::TypeProto& type, const std::map<std::string, int64_t>& dims);

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_SCOPE_H_
