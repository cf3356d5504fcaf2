// One ONNX node, as the converters of operators see it. Private to this folder.
#ifndef TILEFARM_COMPILER_ONNX_NODE_H_
#define TILEFARM_COMPILER_ONNX_NODE_H_

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compiler/graph/builder.h"
#include "compiler/onnx/schema.h"

namespace tilefarm::onnx {

using graph::GraphBuilder;
using graph::TensorType;
using graph::ValueId;

// What a name of an ONNX graph stands for: a tensor, a sequence whose length is
// known, or nothing (an empty optional).
struct Imported {
  Imported() = default;
  Imported(ValueId value) : tensor(value) {}
  Imported(ValueId value, int small) : tensor(value), small_type(small) {}
  explicit Imported(std::vector<Imported> elements)
      : sequence(std::make_shared<const std::vector<Imported>>(
            std::move(elements))) {}

  ValueId tensor = -1;
  // TensorProto's number of an element type that our language does not have
  // (small_types.h); 0: the type is that of the tensor's dtype.
  int small_type = 0;
  std::shared_ptr<const std::vector<Imported>> sequence;

  bool is_tensor() const { return tensor >= 0; }
  bool is_none() const { return tensor < 0 && sequence == nullptr; }
};

class Scope;

// Gives access to a node's inputs and attributes and to the graph under
// construction. An attribute of the wrong type or a missing input makes
// status() an error, and the accessor returns a default; the importer checks
// it after the conversion.
class Node {
 public:
  Node(const pb::NodeProto& proto, int64_t opset, Scope& scope,
       std::vector<Imported> inputs, GraphBuilder& builder)
      : proto_(proto),
        opset_(opset),
        scope_(scope),
        inputs_(std::move(inputs)),
        builder_(builder) {}

  const pb::NodeProto& proto() const { return proto_; }
  const std::string& op() const { return proto_.op_type(); }
  // The version of the node's operator set that the model imports.
  int64_t opset() const { return opset_; }
  GraphBuilder& builder() const { return builder_; }
  Scope& scope() const { return scope_; }

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  // Whether the input is given: optional ones may be left out.
  bool HasInput(int i) const;
  // The tensor that is input `i`; required.
  ValueId Input(int i);
  std::vector<ValueId> Inputs();  // all, each required
  // The input as it is: also a sequence or nothing.
  const Imported& RawInput(int i);
  const TensorType& Type(int i) { return builder_.type(Input(i)); }
  const std::vector<int64_t>& Shape(int i) { return Type(i).shape; }
  ir::DataType Dtype(int i) { return Type(i).dtype; }
  int Rank(int i) { return Type(i).ndim(); }
  // TensorProto's number of the input's element type, also of a small type
  // (small_types.h), for which Dtype() is that of its storage.
  int OnnxType(int i);

  int num_outputs() const { return proto_.output_size(); }
  // Whether anything can use the output.
  bool WantsOutput(int i) const {
    return i < num_outputs() && !proto_.output(i).empty();
  }
  // The type that the model declares for output `i`, if it declares all of it:
  // the only source of a shape that depends on values known at run time.
  std::optional<TensorType> DeclaredOutput(int i) const;

  bool HasAttr(std::string_view name) const { return Find(name) != nullptr; }
  int64_t Int(std::string_view name, int64_t default_value);
  double Float(std::string_view name, double default_value);
  std::string String(std::string_view name, std::string default_value);
  // Empty if absent.
  std::vector<int64_t> Ints(std::string_view name);
  std::vector<double> Floats(std::string_view name);
  std::vector<std::string> Strings(std::string_view name);
  const pb::TensorProto* Tensor(std::string_view name);
  const pb::GraphProto* Graph(std::string_view name);
  // The attribute changes no result where it is not read.
  void Ignore(std::string_view name) const { Find(name); }

  // `axis` counted from the end if negative. Sets status() if it is outside
  // [-rank, rank) and returns 0.
  int64_t NormalizeAxis(int64_t axis, int64_t rank);

  // Whether input `i` depends on constants only.
  bool IsConstant(int i) { return builder_.IsConstant(Input(i)); }
  // The integers of input `i`. Unimplemented: it is known at run time only.
  absl::StatusOr<std::vector<int64_t>> ConstInts(int i);
  absl::StatusOr<std::vector<double>> ConstDoubles(int i);

  // Unimplemented, with the node's operator and name.
  template <typename... Parts>
  absl::Status Unsupported(const Parts&... parts) const {
    return absl::UnimplementedError(absl::StrCat(Describe(), ": ", parts...));
  }
  // InvalidArgument, with the node's operator and name.
  template <typename... Parts>
  absl::Status Invalid(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(Describe(), ": ", parts...));
  }
  // `Conv (node /conv1/Conv)`.
  std::string Describe() const;

  const absl::Status& status() const { return status_; }
  // Unimplemented if the node has an attribute that neither its conversion
  // asked for nor Debian's schema of the operator has: a newer one, which may
  // change what the operator does. For operators of ONNX itself.
  absl::Status CheckAttributes() const;

 private:
  const pb::AttributeProto* Find(std::string_view name) const;
  const pb::AttributeProto* FindTyped(std::string_view name,
                                      pb::AttributeProto::AttributeType type);

  const pb::NodeProto& proto_;
  int64_t opset_;
  Scope& scope_;
  std::vector<Imported> inputs_;
  GraphBuilder& builder_;
  absl::Status status_;
  mutable std::set<std::string, std::less<>> asked_for_;  // attributes
};

using Outputs = absl::StatusOr<std::vector<Imported>>;

// Appends the calls for one node and returns its outputs, as many as the node
// can use (further optional outputs may be left out).
using Convert = Outputs (*)(Node& node);

struct Converter {
  std::string_view op;
  Convert convert;
  std::string_view domain = "";  // "": the standard operators
};

// One table per file; converters.cc puts them together.
std::vector<Converter> ElementwiseConverters();
std::vector<Converter> ActivationConverters();
std::vector<Converter> PowerConverters();
std::vector<Converter> CastConverters();
std::vector<Converter> SoftmaxConverters();
std::vector<Converter> CumulativeConverters();
std::vector<Converter> ReductionConverters();
std::vector<Converter> NormalizationConverters();
std::vector<Converter> RandomConverters();
std::vector<Converter> LossConverters();
std::vector<Converter> TrainingConverters();
std::vector<Converter> MovementConverters();
std::vector<Converter> ConstantConverters();
std::vector<Converter> SlicingConverters();
std::vector<Converter> PaddingConverters();
std::vector<Converter> IndexingConverters();
std::vector<Converter> ScatterConverters();
std::vector<Converter> SelectionConverters();
std::vector<Converter> BoxConverters();
std::vector<Converter> ResamplingConverters();
std::vector<Converter> SamplingConverters();
std::vector<Converter> LabelConverters();
std::vector<Converter> ConvolutionConverters();
std::vector<Converter> PoolingConverters();
std::vector<Converter> ProductConverters();
std::vector<Converter> EinsumConverters();
std::vector<Converter> RecurrentConverters();
std::vector<Converter> QuantizationConverters();
std::vector<Converter> QuantizedProductConverters();
std::vector<Converter> QuantizedWindowConverters();
std::vector<Converter> QuantizedContribConverters();
std::vector<Converter> FusedContribConverters();
std::vector<Converter> AttentionConverters();
std::vector<Converter> LinearAttentionConverters();
std::vector<Converter> SignalConverters();
std::vector<Converter> ControlFlowConverters();
std::vector<Converter> SequenceConverters();

// Null if there is none.
Convert FindConverter(std::string_view domain, std::string_view op);

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_NODE_H_
