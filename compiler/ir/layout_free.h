// Parameters that are constant across calls and may be packed ahead of time:
//
//   T.func_attr({"layout_free_buffers": [1, 2]})   parameters 1 and 2
#ifndef TILEFARM_COMPILER_IR_LAYOUT_FREE_H_
#define TILEFARM_COMPILER_IR_LAYOUT_FREE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

inline constexpr char kLayoutFreeBuffers[] = "layout_free_buffers";

// The declared parameters, ascending; empty if there are none. InvalidArgument:
// the attribute is not a list of indices of different parameters.
absl::StatusOr<std::vector<int>> LayoutFreeParams(const PrimFunc& function);

// Whether `buffer` is a declared parameter; false if the attribute is
// malformed.
bool IsLayoutFree(const PrimFunc& function, const BufferNode* buffer);

// InvalidArgument: as above, or the function writes a declared parameter.
absl::Status CheckLayoutFree(const PrimFunc& function);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_LAYOUT_FREE_H_
