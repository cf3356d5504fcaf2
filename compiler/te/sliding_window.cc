#include "compiler/te/sliding_window.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/te/operators.h"

namespace tilefarm::te {

Tensor PadForWindow(const Tensor& data, const SlidingWindow& window,
                    const ir::Expr& value) {
  TF_CHECK(data.ndim() == window.ndim() + 2);
  const auto is_zero = [](int64_t padding) { return padding == 0; };
  if (std::all_of(window.before.begin(), window.before.end(), is_zero) &&
      std::all_of(window.after.begin(), window.after.end(), is_zero)) {
    return data;
  }
  std::vector<int64_t> before{0, 0}, after{0, 0};
  before.insert(before.end(), window.before.begin(), window.before.end());
  after.insert(after.end(), window.after.begin(), window.after.end());
  return Pad(data, std::move(before), std::move(after), value, "pad_temp");
}

std::vector<int64_t> WindowedShape(const Tensor& data,
                                   const SlidingWindow& window) {
  std::vector<int64_t> shape = data.shape();
  for (int d = 0; d < window.ndim(); ++d) {
    shape[d + 2] = window.out(d, data.dim(d + 2));
  }
  return shape;
}

std::vector<ReduceAxis> TapAxes(const SlidingWindow& window) {
  std::vector<ReduceAxis> taps;
  for (int d = 0; d < window.ndim(); ++d) {
    taps.emplace_back(absl::StrCat("r", d), window.kernel[d]);
  }
  return taps;
}

Indices TapIndices(const Indices& i, const std::vector<ReduceAxis>& taps,
                   const SlidingWindow& window) {
  Indices at{i[0], i[1]};
  for (int d = 0; d < window.ndim(); ++d) {
    at.push_back(i[d + 2] * window.strides[d] +
                 ir::Expr(taps[d]) * window.dilations[d]);
  }
  return at;
}

}  // namespace tilefarm::te
