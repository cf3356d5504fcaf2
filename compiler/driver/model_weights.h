// The constants of a model in the artifact.
#ifndef TILEFARM_COMPILER_DRIVER_MODEL_WEIGHTS_H_
#define TILEFARM_COMPILER_DRIVER_MODEL_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/model_object.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::driver {

// Assigns offsets to the constants that kernels read. Equal ones are stored
// once, in each layout that a kernel wants. The constants must outlive this.
class ModelWeights {
 public:
  // Offsets are multiples of `alignment`.
  explicit ModelWeights(int64_t alignment) : alignment_(alignment) {}

  // The offset of the constant as the graph has it.
  int64_t OffsetOf(const graph::TensorData& constant);
  // The offset of what `pack` (parameters: source, packed) makes of it. Errors
  // of RunOnHost.
  absl::StatusOr<int64_t> OffsetOfPacked(const graph::TensorData& constant,
                                         const ir::PrimFuncPtr& pack);

  const std::vector<codegen::ModelWeights>& pieces() const { return pieces_; }
  int64_t bytes() const { return end_; }

 private:
  struct Constant {
    std::span<const std::byte> bytes;
    // By the program of the layout; empty for the graph's own.
    std::map<std::string, int64_t> offsets;
  };

  // The one with these bytes.
  Constant& Find(std::span<const std::byte> bytes);
  int64_t Append(std::span<const std::byte> bytes);

  const int64_t alignment_;
  std::map<size_t, std::vector<Constant>> constants_;  // by size
  std::vector<codegen::ModelWeights> pieces_;
  std::vector<graph::TensorData> packed_;  // keeps the bytes of pieces
  int64_t end_ = 0;
};

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_MODEL_WEIGHTS_H_
