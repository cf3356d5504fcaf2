// Cuts what may run ahead of time out of a function with layout-free
// parameters (ir/layout_free.h). The pass before lowering: block form.
//
//   def f(A, B, C):  # layout_free_buffers: [1]   def pack(B, B_global):
//     alloc B_global                                B_global[...] = B[...]
//     block "B_global" (tilefarm.prepack):    ->
//       B_global[...] = B[...]                    def packed(A, B_global, C):
//     block "C": C[...] += A * B_global[...]        C[...] += A * B_global[...]
//
// Where the block says so (kPrepackFloat32), B_global is float32 in both.
//
// f(A, B, C) computes what pack(B, P) and packed(A, P, C) do, for the nest
// reads nothing but B and writes nothing but B_global, and no other statement
// accesses B or writes B_global.
#ifndef TILEFARM_COMPILER_LOWER_SPLIT_PREPACK_H_
#define TILEFARM_COMPILER_LOWER_SPLIT_PREPACK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::lower {

struct PackedParam {
  int param = 0;
  // Of the packed buffer, a multiple of 64.
  int64_t bytes = 0;
  // (source, packed); null where the schedule leaves the parameter as it is:
  // its packed form is a copy.
  ir::PrimFuncPtr pack;
};

struct PrepackSplit {
  // With packed buffers in place of the parameters; the function itself where
  // nothing is packed.
  ir::PrimFuncPtr packed;
  std::vector<PackedParam> params;  // every layout-free one, ascending
};

// InvalidArgument naming the block and the reason: an annotated block that is
// not a nest of its own at the root, reads another buffer than one layout-free
// parameter, writes anything but one buffer of the function's own, whose
// parameter or buffer something else uses, or which is to be float32 and is not
// of 16-bit floats or read as anything else.
absl::StatusOr<PrepackSplit> SplitPrepack(const ir::PrimFunc& function);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_SPLIT_PREPACK_H_
