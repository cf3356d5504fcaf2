// Reads the arrays of NumPy's .npz files: zip archives (entries stored or
// deflated) of .npy files (format 1 to 3, little-endian, C order).
#ifndef TILEFARM_TESTS_SUPPORT_NPZ_H_
#define TILEFARM_TESTS_SUPPORT_NPZ_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tilefarm::testing {

struct NpyArray {
  std::string dtype;  // "float32", "int64", "bool", ... as DataType spells it
  std::vector<int64_t> shape;
  std::vector<std::byte> data;  // dense, row-major

  int64_t num_elements() const;
  // The elements of any numeric dtype (float16 included) as doubles.
  std::vector<double> AsDoubles() const;
};

absl::StatusOr<NpyArray> ParseNpy(std::string_view bytes);

// Arrays by name without ".npy": "arr_0", ... DataLoss for a damaged archive,
// NotFound if there is no file.
absl::StatusOr<std::map<std::string, NpyArray>> ReadNpz(
    const std::string& path);

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_SUPPORT_NPZ_H_
