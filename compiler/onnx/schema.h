// ONNX's protobuf classes. Only this folder's sources and private headers
// include it.
#ifndef TILEFARM_COMPILER_ONNX_SCHEMA_H_
#define TILEFARM_COMPILER_ONNX_SCHEMA_H_

#include "onnx/onnx_pb.h"

namespace tilefarm::onnx {

namespace pb = ::onnx;

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_SCHEMA_H_
