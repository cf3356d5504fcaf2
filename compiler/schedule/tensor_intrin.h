// Micro-kernels that tensorize puts in place of a matching computation: a
// description (what is matched) and an implementation (what replaces it), both
// programs in our own language with the same parameters, so that lowering
// needs to know nothing about them.
#ifndef TILEFARM_COMPILER_SCHEDULE_TENSOR_INTRIN_H_
#define TILEFARM_COMPILER_SCHEDULE_TENSOR_INTRIN_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/trace.h"
#include "compiler/target/capability.h"

namespace tilefarm::schedule {

struct TensorIntrin {
  std::string name;
  // One nest with one block; its body is what tensorize compares.
  ir::PrimFuncPtr description;
  // Any statements on the same parameters that compute the same.
  ir::PrimFuncPtr implementation;
  // What a target must have for the intrinsic to be worth its name; nullopt:
  // nothing. The implementation is right everywhere; a trace that names the
  // intrinsic belongs to targets that have the instruction.
  std::optional<target::Capability> capability;
  // Registers of the unit that computes it; 0: the target's vector registers.
  int registers = 0;
};

// What an intrinsic multiplies that sums products: a dot product,
// C[lane] += A[k] * B[lane, k], or, with rows, a tile of a matrix unit,
// C[row, lane] += A[row, k] * B[k // group, lane, k % group].
struct ProductShape {
  int64_t rows = 0, lanes = 0, products = 0, group = 0;
  ir::DataType a, b, sum;

  bool is_tile() const { return rows > 0; }
  // Its own loops: rows, lanes, products.
  size_t loops() const { return is_tile() ? 3 : 2; }
};
// nullopt where it is another computation.
std::optional<ProductShape> ShapeOf(const TensorIntrin& intrin);

// NotFound, with the names that exist. The result lives for ever.
absl::StatusOr<const TensorIntrin*> FindTensorIntrin(std::string_view name);

// InvalidArgument where the trace tensorizes by an intrinsic that needs what a
// target with these capabilities lacks.
absl::Status CheckCapabilities(const Trace& trace,
                               const target::Capabilities& capabilities);

// All of them, in the order of the list.
const std::vector<TensorIntrin>& TensorIntrins();

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_TENSOR_INTRIN_H_
