// NumPy's .npy files (format 1.0 to 3.0, little-endian, C order).
#ifndef TILEFARM_COMPILER_DRIVER_NPY_H_
#define TILEFARM_COMPILER_DRIVER_NPY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace tilefarm::driver {

struct NpyArray {
  graph::TensorType type;
  graph::TensorData data;
};

// InvalidArgument: not a .npy file, or one of another order or element type.
// bfloat16 has no code in .npy.
absl::StatusOr<NpyArray> ParseNpy(const std::string& bytes);

// bfloat16 is written as uint16.
std::string PrintNpy(const graph::TensorType& type,
                     const graph::TensorData& data);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_NPY_H_
