// Pooling: one value for each window, channel or region.
#include "compiler/te/pooling.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/window.h"
#include "compiler/te/accumulate.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;

// "nn.max_pool2d" and the layout of its data.
std::string NameAndLayout(const std::string& prefix, size_t rank,
                          ir::AttrMap* attrs) {
  if (rank > 3) return prefix;
  static constexpr const char* kLayouts[] = {"", "NCW", "NCHW", "NCDHW"};
  (*attrs)["layout"] = kLayouts[rank];
  return absl::StrCat(prefix, rank, "d");
}

struct Pool {
  Window window;
  ir::AttrMap attrs;
  std::string name;
};
absl::StatusOr<Pool> ReadPool(Node& node, const std::string& prefix) {
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> in, SpatialExtents(node, 0));
  for (const int64_t extent : in) {
    if (extent == 0) {
      return node.Invalid("a window over a dimension without elements");
    }
  }
  Pool pool;
  TF_ASSIGN_OR_RETURN(pool.window, ReadWindow(node, in, {}));
  pool.attrs = pool.window.Attrs();
  pool.attrs["pool_size"] = AttrOf(pool.window.sliding.kernel);
  pool.name = NameAndLayout(prefix, in.size(), &pool.attrs);
  return pool;
}

absl::Status CheckFloat(Node& node) {
  const DataType dtype = node.Dtype(0);
  TF_RETURN_IF_ERROR(node.status());
  if (dtype.is_float()) return absl::OkStatus();
  return node.Invalid("input 0 is ", dtype.ToString(), ", not a float");
}

// Without batch or channels there is nothing to compute, and the builder must
// only know the shape.
bool IsEmpty(const te::Tensor& tensor) {
  return std::count(tensor.shape().begin(), tensor.shape().end(), 0) > 0;
}
te::Tensor EmptyResult(const te::Tensor& data, const Window& window,
                       DataType dtype) {
  std::vector<int64_t> shape{data.dim(0), data.dim(1)};
  shape.insert(shape.end(), window.out.begin(), window.out.end());
  return te::Zeros(std::move(shape), dtype);
}

Outputs ConvertMaxPool(Node& node) {
  TF_ASSIGN_OR_RETURN(Pool pool, ReadPool(node, "nn.max_pool"));
  const int64_t storage_order = node.Int("storage_order", 0);
  if (storage_order != 0 && storage_order != 1) {
    return node.Invalid("attribute storage_order=", storage_order);
  }
  const DataType dtype = node.Dtype(0);
  TF_RETURN_IF_ERROR(node.status());
  if (dtype.is_bool()) return node.Invalid("input 0 is bool");
  const bool wants_indices = node.WantsOutput(1);
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> results,
      node.builder().ComputeAll(
          std::move(pool.name), std::move(pool.attrs), {node.Input(0)},
          [&](const graph::Tensors& x) {
            if (IsEmpty(x[0])) {
              return graph::Tensors{
                  EmptyResult(x[0], pool.window, dtype),
                  EmptyResult(x[0], pool.window, DataType::Int(64))};
            }
            graph::Tensors y{te::MaxPool(x[0], pool.window.sliding)};
            if (wants_indices) {
              y.push_back(te::MaxPoolIndices(x[0], y[0], pool.window.sliding,
                                             storage_order == 1));
            }
            return y;
          }));
  return std::vector<Imported>(results.begin(), results.end());
}

Outputs ConvertAveragePool(Node& node) {
  TF_ASSIGN_OR_RETURN(Pool pool, ReadPool(node, "nn.avg_pool"));
  TF_RETURN_IF_ERROR(CheckFloat(node));
  const bool count_include_pad = node.Int("count_include_pad", 0) != 0;
  pool.attrs["count_include_pad"] = count_include_pad;
  const Window& window = pool.window;
  const std::vector<int64_t> none(window.out.size(), 0);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          std::move(pool.name), std::move(pool.attrs), {node.Input(0)},
          [&](const graph::Tensors& x) {
            if (IsEmpty(x[0])) return EmptyResult(x[0], window, x[0].dtype());
            return te::AveragePool(
                x[0], window.sliding,
                count_include_pad ? window.sliding.before : none,
                count_include_pad ? window.pads_after : none);
          }));
  return std::vector<Imported>{y};
}

absl::StatusOr<int64_t> ReadNorm(Node& node) {
  const int64_t p = node.Int("p", 2);
  TF_RETURN_IF_ERROR(node.status());
  if (p < 1) return node.Invalid("attribute p=", p);
  return p;
}

Outputs ConvertLpPool(Node& node) {
  TF_ASSIGN_OR_RETURN(Pool pool, ReadPool(node, "nn.lp_pool"));
  TF_RETURN_IF_ERROR(CheckFloat(node));
  TF_ASSIGN_OR_RETURN(const int64_t p, ReadNorm(node));
  pool.attrs["p"] = p;
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(std::move(pool.name), std::move(pool.attrs),
                             {node.Input(0)}, [&](const graph::Tensors& x) {
                               if (IsEmpty(x[0])) {
                                 return EmptyResult(x[0], pool.window,
                                                    x[0].dtype());
                               }
                               return te::LpPool(x[0], pool.window.sliding, p);
                             }));
  return std::vector<Imported>{y};
}

// A pool whose only window is all of the spatial dimensions. `define` gets the
// data and this window.
Outputs ConvertGlobal(
    Node& node, const std::string& prefix, ir::AttrMap attrs,
    const std::function<te::Tensor(const te::Tensor&,
                                   const te::SlidingWindow&)>& define) {
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> in, SpatialExtents(node, 0));
  TF_RETURN_IF_ERROR(CheckFloat(node));
  for (const int64_t extent : in) {
    if (extent == 0) {
      return node.Invalid("a window over a dimension without elements");
    }
  }
  Window window;
  const std::vector<int64_t> zeros(in.size(), 0), ones(in.size(), 1);
  window.sliding = {in, ones, ones, zeros, zeros};
  window.out = ones;
  std::string name = NameAndLayout(prefix, in.size(), &attrs);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(std::move(name), std::move(attrs), {node.Input(0)},
                             [&](const graph::Tensors& x) {
                               if (IsEmpty(x[0]))
                                 return EmptyResult(x[0], window, x[0].dtype());
                               return define(x[0], window.sliding);
                             }));
  return std::vector<Imported>{y};
}

Outputs ConvertGlobalAveragePool(Node& node) {
  // A mean over the last axes is what schedules know best: it has no window.
  return ConvertGlobal(
      node, "nn.global_avg_pool", {},
      [](const te::Tensor& x, const te::SlidingWindow& window) {
        std::vector<int> axes;
        for (int d = 0; d < window.ndim(); ++d) axes.push_back(d + 2);
        const te::Tensor wide = te::Rounded(x, te::AccumulatorOf(x.dtype()));
        return te::Rounded(te::Mean(wide, axes, /*keep_dims=*/true), x.dtype());
      });
}

Outputs ConvertGlobalMaxPool(Node& node) {
  return ConvertGlobal(
      node, "nn.global_max_pool", {},
      [](const te::Tensor& x, const te::SlidingWindow& window) {
        return te::MaxPool(x, window);
      });
}

Outputs ConvertGlobalLpPool(Node& node) {
  TF_ASSIGN_OR_RETURN(const int64_t p, ReadNorm(node));
  return ConvertGlobal(
      node, "nn.global_lp_pool", {{"p", p}},
      [&](const te::Tensor& x, const te::SlidingWindow& window) {
        return te::LpPool(x, window, p);
      });
}

Outputs ConvertMaxRoiPool(Node& node) {
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> in, SpatialExtents(node, 0));
  TF_RETURN_IF_ERROR(CheckFloat(node));
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> pooled,
                      ReadExtents(node, "pooled_shape", 2, 0, 1));
  const double scale = node.Float("spatial_scale", 1.0);
  const std::vector<int64_t> regions = node.Shape(1);
  const DataType dtype = node.Dtype(1);
  TF_RETURN_IF_ERROR(node.status());
  if (!node.HasAttr("pooled_shape")) {
    return node.Invalid("has no attribute pooled_shape");
  }
  if (in.size() != 2 || regions.size() != 2 || regions[1] != 5 ||
      dtype != node.Dtype(0)) {
    return node.Invalid("data ", node.Type(0).ToString(), " and regions ",
                        node.Type(1).ToString());
  }
  const std::vector<int64_t> shape{regions[0], node.Shape(0)[1], pooled[0],
                                   pooled[1]};
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "nn.max_roi_pool",
          {{"pooled_size", AttrOf(pooled)}, {"spatial_scale", scale}},
          {node.Input(0), node.Input(1)}, [&](const graph::Tensors& x) {
            if (IsEmpty(x[0]) || IsEmpty(x[1])) {
              return te::Zeros(shape, x[0].dtype());
            }
            return te::MaxRoiPool(x[0], x[1], pooled[0], pooled[1], scale);
          }));
  return std::vector<Imported>{y};
}

}  // namespace

std::vector<Converter> PoolingConverters() {
  return {
      {"AveragePool", ConvertAveragePool},
      {"GlobalAveragePool", ConvertGlobalAveragePool},
      {"GlobalLpPool", ConvertGlobalLpPool},
      {"GlobalMaxPool", ConvertGlobalMaxPool},
      {"LpPool", ConvertLpPool},
      {"MaxPool", ConvertMaxPool},
      {"MaxRoiPool", ConvertMaxRoiPool},
  };
}

}  // namespace tilefarm::onnx
