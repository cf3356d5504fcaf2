// The constants of a model in the artifact.
#ifndef TILEFARM_COMPILER_DRIVER_MODEL_WEIGHTS_H_
#define TILEFARM_COMPILER_DRIVER_MODEL_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/model_object.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::driver {

// Assigns offsets to the constants that kernels read. Each is stored once, in
// each layout that a kernel wants.
class ModelWeights {
 public:
  // `graph` must outlive this.
  explicit ModelWeights(const graph::Graph& graph) : graph_(graph) {}

  // The offset of the constant as the graph has it.
  int64_t OffsetOf(graph::ValueId id);
  // The offset of what `pack` (parameters: source, packed) makes of it. Errors
  // of RunOnHost.
  absl::StatusOr<int64_t> OffsetOfPacked(graph::ValueId id,
                                         const ir::PrimFuncPtr& pack);

  const std::vector<codegen::ModelWeights>& pieces() const { return pieces_; }
  int64_t bytes() const { return end_; }

 private:
  // The constant's bytes, which equal constants share, and the program of its
  // layout; empty for the graph's own.
  using Key = std::pair<std::pair<const std::byte*, size_t>, std::string>;

  int64_t Append(std::span<const std::byte> bytes);

  const graph::Graph& graph_;
  std::map<Key, int64_t> offsets_;
  std::vector<codegen::ModelWeights> pieces_;
  std::vector<graph::TensorData> packed_;  // keeps the bytes of pieces
  int64_t end_ = 0;
};

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_MODEL_WEIGHTS_H_
