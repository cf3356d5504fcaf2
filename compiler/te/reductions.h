// Reductions of expressions, and programs that broadcast their inputs: what
// operators with any rank and any set of axes are made of.
#ifndef TILEFARM_COMPILER_TE_REDUCTIONS_H_
#define TILEFARM_COMPILER_TE_REDUCTIONS_H_

#include <functional>
#include <string>
#include <vector>

#include "compiler/te/tensor.h"

namespace tilefarm::te {

using Element = std::function<ir::Expr(const Indices&)>;

// An element of `a` at indices of a shape that `a` broadcasts to: leading
// dimensions that `a` lacks are left out, those of extent one read index 0. If
// `shape`, which the indices belong to, is given, a dimension of extent one in
// both keeps its index: an equal shape then reads the same indices, which
// fusion and inlining recognise.
ir::Expr BroadcastLoad(const Tensor& a, const Indices& indices,
                       const std::vector<int64_t>& shape = {});

// Reduces element(i) over the dimensions of `shape` that `reduced` marks;
// `keep_dims` keeps them with extent one. `element` is called with one index
// for each dimension. An empty set gives the value that the reduction starts
// from: `init`, or ReducerIdentity where it is null. Without reduced
// dimensions the result is element(i).
Tensor ReduceElements(std::string name, const std::vector<int64_t>& shape,
                      const std::vector<bool>& reduced, bool keep_dims,
                      Reducer reducer, const Element& element,
                      ir::Expr init = nullptr);

// Mean and variance (of the whole population) of float elements over the
// dimensions that `reduced` marks. In two passes, since the mean of the squares
// minus the square of the mean cancels.
struct Moments {
  Tensor mean;
  Tensor variance;
};
Moments MomentsOf(const std::vector<int64_t>& shape,
                  const std::vector<bool>& reduced, bool keep_dims,
                  const Element& element);

}  // namespace tilefarm::te

#endif  // TILEFARM_COMPILER_TE_REDUCTIONS_H_
