// Moves computations that may run ahead of time out of a function with
// layout-free parameters (ir/layout_free.h). Runs before lowering, on block
// form.
//
//   def f(A, B, C):  # layout_free_buffers: [1]   def pack(B, B_global):
//     alloc B_global                                B_global[...] = B[...]
//     block "B_global" (tilefarm.prepack):    ->
//       B_global[...] = B[...]                    def packed(A, B_global, C):
//     block "C": C[...] += A * B_global[...]        C[...] += A * B_global[...]
//
// With the annotation kPrepackFloat32, B_global is float32 in both.
//
// f(A, B, C) computes the same as pack(B, P) and packed(A, P, C): the nest
// reads only B and writes only B_global, and no other statement accesses B or
// writes B_global.
#ifndef TILEFARM_COMPILER_LOWER_SPLIT_PREPACK_H_
#define TILEFARM_COMPILER_LOWER_SPLIT_PREPACK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::lower {

struct PackedParam {
  int param = 0;
  // The size of the packed buffer, rounded up to a multiple of 64.
  int64_t bytes = 0;
  // Parameters (source, packed); null if the schedule does not pack the
  // parameter: its packed form is then a copy.
  ir::PrimFuncPtr pack;
};

struct PrepackSplit {
  // The function with packed buffers as parameters; the original function if
  // nothing is packed.
  ir::PrimFuncPtr packed;
  std::vector<PackedParam> params;  // all layout-free ones, ascending
};

// InvalidArgument, naming the block and the reason, if an annotated block is
// not a nest of its own at the root, reads any buffer but one layout-free
// parameter, writes any but one buffer of the function itself, if another
// statement uses that parameter or writes that buffer, or if the block should
// be float32 but is not of 16-bit floats or is read in another type.
absl::StatusOr<PrepackSplit> SplitPrepack(const ir::PrimFunc& function);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_SPLIT_PREPACK_H_
