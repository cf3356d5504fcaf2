// What callers of a function need to know of it: read off the program, not off
// its schedule, except for the threads.
#ifndef TILEFARM_COMPILER_CODEGEN_SIGNATURE_H_
#define TILEFARM_COMPILER_CODEGEN_SIGNATURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/ir/dtype.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::codegen {

// A parameter as its caller sees it.
struct ParameterSignature {
  std::string name;
  ir::DataType dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements, also of dense buffers
  int64_t offset = 0;            // elements before the first one
  int64_t bytes = 0;             // from the pointer to the last element's end
  bool is_dense = true;          // row-major, without gaps and offset
  bool is_written = false;
  int64_t packed_bytes = 0;  // of its packed form; 0: it is never packed
  bool packs_by_copy = false;
};

struct Signature {
  std::string symbol;
  std::vector<ParameterSignature> parameters;
  int threads = 1;    // the most that a call uses, with the caller
  int alignment = 0;  // of buffers, in bytes; 0: that of their elements
};

// `function` is the program before lowering, which has the shapes; `lowered`
// has the packed parameters.
Signature SignatureOf(const LoweredFunction& function,
                      const LoweredFunction& lowered,
                      const target::Target& target);

// ONNX's number of the dtype (TensorProto.DataType), as in tf_tensor_info.
int32_t OnnxNumber(ir::DataType dtype);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_SIGNATURE_H_
