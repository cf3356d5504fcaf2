// Tensors of ONNX files. Private to this folder.
#ifndef TILEFARM_COMPILER_ONNX_TENSOR_PROTO_H_
#define TILEFARM_COMPILER_ONNX_TENSOR_PROTO_H_

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/onnx/schema.h"

namespace tilefarm::onnx {

// nullopt: no dtype of our language (strings, complex numbers, 4 and 8 bit
// floats, 4-bit integers).
std::optional<ir::DataType> DtypeOf(int onnx_type);
// The dtype in which the graph stores the type: also the small types of
// small_types.h, one element per byte.
std::optional<ir::DataType> StorageDtypeOf(int onnx_type);
// TensorProto's number of the dtype.
int OnnxTypeOf(ir::DataType dtype);
// "FLOAT8E4M3FN", also for numbers newer than Debian's schema.
std::string OnnxTypeName(int onnx_type);

struct TensorContents {
  graph::TensorType type;
  graph::TensorData data;
  int small_type = 0;  // as in Imported
};

// Maps each file of external data once.
class ExternalData {
 public:
  // Files must lie in `directory`; if it is empty there are none.
  explicit ExternalData(std::string directory)
      : directory_(std::move(directory)) {}

  // Bytes [offset, offset + length) of the file at `location`, which must be a
  // relative path that does not leave the directory, symbolic links included.
  absl::StatusOr<graph::TensorData> Read(const std::string& location,
                                         int64_t offset, int64_t length);

 private:
  struct File;
  std::string directory_;
  std::map<std::string, std::shared_ptr<const File>> files_;
};

// InvalidArgument: the data does not fit the shape, or the shape is absurd.
// Unimplemented: a type that DtypeOf does not have. With kUnpack the small
// types are read, too: the caller must keep `small_type`.
enum class SmallTypes { kReject, kUnpack };
absl::StatusOr<TensorContents> ReadTensor(
    const pb::TensorProto& proto, ExternalData& external,
    SmallTypes small_types = SmallTypes::kReject);

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_TENSOR_PROTO_H_
