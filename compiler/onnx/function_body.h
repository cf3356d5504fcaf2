// Operators that are functions: their bodies as nodes. Private to this folder.
#ifndef TILEFARM_COMPILER_ONNX_FUNCTION_BODY_H_
#define TILEFARM_COMPILER_ONNX_FUNCTION_BODY_H_

#include <optional>
#include <vector>

#include "compiler/onnx/node.h"

namespace tilefarm::onnx {

// The body that ONNX's schema has for the node's operator in the node's
// operator set; it may depend on the types of the inputs. nullopt if there is
// none.
std::optional<pb::FunctionProto> StandardFunctionBody(
    const Node& node, const std::vector<Imported>& inputs);

// The nodes of the body, where each attribute that refers to an attribute of
// the function has the value that `node` gives it, or is left out.
google::protobuf::RepeatedPtrField<pb::NodeProto> BindAttributes(
    const pb::FunctionProto& body, const pb::NodeProto& node);

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_FUNCTION_BODY_H_
