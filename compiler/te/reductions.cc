#include "compiler/te/reductions.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace tilefarm::te {

using ir::Expr;
using ir::IntConst;

Expr BroadcastLoad(const Tensor& a, const Indices& indices,
                   const std::vector<int64_t>& shape) {
  TF_CHECK(static_cast<int>(indices.size()) >= a.ndim());
  TF_CHECK(shape.empty() || shape.size() == indices.size());
  Indices own;
  const size_t skip = indices.size() - static_cast<size_t>(a.ndim());
  for (int d = 0; d < a.ndim(); ++d) {
    const size_t at = skip + static_cast<size_t>(d);
    const bool broadcast = a.dim(d) == 1 && (shape.empty() || shape[at] != 1);
    own.push_back(broadcast ? IntConst(0) : indices[at]);
  }
  return a(std::move(own));
}

Tensor ReduceElements(std::string name, const std::vector<int64_t>& shape,
                      const std::vector<bool>& reduced, bool keep_dims,
                      Reducer reducer, const Element& element, Expr init) {
  TF_CHECK(reduced.size() == shape.size());
  std::vector<ReduceAxis> axes;
  std::vector<int64_t> out_shape;
  // For each dimension of `shape` that stays: its place in the result.
  std::vector<size_t> place(shape.size());
  bool empty = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    place[d] = out_shape.size();
    if (reduced[d]) {
      empty |= shape[d] == 0;
      axes.emplace_back(absl::StrCat("k", axes.size()), shape[d]);
      if (keep_dims) out_shape.push_back(1);
    } else {
      out_shape.push_back(shape[d]);
    }
  }
  return Compute(std::move(name), out_shape, [&](const Indices& i) -> Body {
    if (empty) {
      if (init != nullptr) return Body(init);
      // Only the dtype of the element is of interest: nothing is read.
      const Tensor unread =
          Compute("unread", shape,
                  [&](const Indices& at) -> Body { return Body(element(at)); });
      return Body(ReducerIdentity(reducer, unread.dtype()));
    }
    Indices at;
    size_t next = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      at.push_back(reduced[d] ? Expr(axes[next++]) : i[place[d]]);
    }
    if (axes.empty()) return Body(element(at));
    Body body(element(at), reducer, axes);
    body.init = init;
    return body;
  });
}

Moments MomentsOf(const std::vector<int64_t>& shape,
                  const std::vector<bool>& reduced, bool keep_dims,
                  const Element& element) {
  double count = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (reduced[d]) count *= static_cast<double>(shape[d]);
  }
  const auto divide = [&](const Tensor& sum, std::string name) {
    return Compute(std::move(name), sum.shape(), [&](const Indices& i) {
      const Expr x = sum(i);
      return Body(ir::MakeBinary(ir::BinaryOp::kDiv, x,
                                 ir::FloatConst(count, x->dtype)));
    });
  };
  const Tensor mean = divide(ReduceElements("T_sum", shape, reduced, keep_dims,
                                            Reducer::kSum, element),
                             "T_mean");
  const auto centred_square = [&](const Indices& i) {
    Indices at;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!reduced[d]) {
        at.push_back(i[d]);
      } else if (keep_dims) {
        at.push_back(IntConst(0));
      }
    }
    const Expr centred = element(i) - mean(at);
    return centred * centred;
  };
  const Tensor variance =
      divide(ReduceElements("T_square_sum", shape, reduced, keep_dims,
                            Reducer::kSum, centred_square),
             "T_variance");
  return {mean, variance};
}

}  // namespace tilefarm::te
