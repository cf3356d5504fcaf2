// The dtypes in which sums are computed.
#ifndef TILEFARM_COMPILER_TE_ACCUMULATE_H_
#define TILEFARM_COMPILER_TE_ACCUMULATE_H_

#include <string>
#include <utility>

#include "compiler/te/operators.h"

namespace tilefarm::te {

// The dtype in which sums of `dtype` are computed: float32 for the 16-bit
// floats, which would lose most of a long sum, otherwise `dtype` itself.
inline ir::DataType AccumulatorOf(ir::DataType dtype) {
  return dtype.is_float() && dtype.bits == 16 ? ir::DataType::Float(32) : dtype;
}

// `a` as `dtype`: a further stage only where the dtypes differ.
inline Tensor Rounded(const Tensor& a, ir::DataType dtype,
                      std::string name = "T_cast") {
  return a.dtype() == dtype ? a : CastTo(a, dtype, std::move(name));
}

// Zero everywhere.
inline Tensor Zeros(std::vector<int64_t> shape, ir::DataType dtype,
                    std::string name = "T_zeros") {
  return Compute(std::move(name), std::move(shape),
                 [&](const Indices&) { return Body(ir::ConstOf(dtype, 0)); });
}

}  // namespace tilefarm::te

#endif  // TILEFARM_COMPILER_TE_ACCUMULATE_H_
