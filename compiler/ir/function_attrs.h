// Attributes of functions, besides those of TVM and `layout_free_buffers`
// (layout_free.h).
#ifndef TILEFARM_COMPILER_IR_FUNCTION_ATTRS_H_
#define TILEFARM_COMPILER_IR_FUNCTION_ATTRS_H_

namespace tilefarm::ir {

// Another function reads the results soon after the call, as in a model: they
// should stay in the caches if these can hold them. Part of the workload, since
// a measurement of the function alone does not see this.
inline constexpr char kResultsAreRead[] = "tilefarm.results_are_read";

// The constants (layout_free.h) are in no cache when the function is called, as
// in a model whose other kernels read so many of their own in between that no
// cache keeps them. Part of the workload, like the above.
inline constexpr char kColdConstants[] = "tilefarm.cold_constants";

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_FUNCTION_ATTRS_H_
