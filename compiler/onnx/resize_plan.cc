#include "compiler/onnx/resize_plan.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/status_macros.h"
#include "compiler/onnx/shapes.h"

namespace tilefarm::onnx {

absl::StatusOr<ResizeOptions> ResizeOptionsOf(Node& node) {
  ResizeOptions out;
  const std::string mode = node.String("mode", "nearest");
  if (mode == "nearest") {
    out.mode = ResizeMode::kNearest;
  } else if (mode == "linear" || mode == "bilinear") {
    out.mode = ResizeMode::kLinear;
  } else if (mode == "cubic") {
    out.mode = ResizeMode::kCubic;
  } else {
    return node.Unsupported("attribute mode=", mode);
  }
  if (node.op() == "Upsample" || node.opset() < 11) {
    // These have no attributes for coordinates.
    out.coordinates = "asymmetric";
    out.nearest = node.op() == "Upsample" ? "floor" : "simple";
    return out;
  }
  out.coordinates = node.String("coordinate_transformation_mode", "half_pixel");
  out.nearest = node.String("nearest_mode", "round_prefer_floor");
  out.policy = node.String("keep_aspect_ratio_policy", "stretch");
  out.antialias = node.Int("antialias", 0) != 0;
  out.exclude_outside = node.Int("exclude_outside", 0) != 0;
  out.cubic = node.Float("cubic_coeff_a", -0.75);
  out.extrapolation = node.Float("extrapolation_value", 0);
  const auto known = [](const std::string& name,
                        std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!known(out.coordinates,
             {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
              "align_corners", "asymmetric", "tf_half_pixel_for_nn",
              "tf_crop_and_resize"})) {
    return node.Unsupported("attribute coordinate_transformation_mode=",
                            out.coordinates);
  }
  if (!known(out.nearest,
             {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})) {
    return node.Unsupported("attribute nearest_mode=", out.nearest);
  }
  if (!known(out.policy, {"stretch", "not_larger", "not_smaller"})) {
    return node.Unsupported("attribute keep_aspect_ratio_policy=", out.policy);
  }
  if (out.antialias && out.mode == ResizeMode::kNearest) {
    return node.Invalid("attribute antialias with mode=nearest");
  }
  return out;
}

namespace {

bool Has(Node& node, int input) {
  // Operator set 11 marks an unused input by an empty tensor.
  return node.HasInput(input) && node.Type(input).num_elements() > 0;
}

absl::Status PlanFromScales(Node& node, int input, ResizePlan& plan) {
  const std::vector<int64_t> from = node.Shape(0);
  std::vector<double> scales;
  if (input < 0) {
    scales = node.Floats("scales");
  } else if (node.IsConstant(input)) {
    TF_ASSIGN_OR_RETURN(scales, node.ConstDoubles(input));
  } else {
    if (node.Type(input).num_elements() !=
            static_cast<int64_t>(plan.axes.size()) ||
        node.Rank(input) != 1 || !node.Dtype(input).is_float()) {
      return node.Invalid("scales are ", node.Type(input).ToString());
    }
    plan.scale_input = input;
    TF_ASSIGN_OR_RETURN(
        plan.shape, DeclaredShape(node, node.Dtype(0), node.Rank(0), "scales"));
    return absl::OkStatus();
  }
  if (scales.size() != plan.axes.size()) {
    return node.Invalid(scales.size(), " scales for ", plan.axes.size(),
                        " axes");
  }
  for (size_t k = 0; k < scales.size(); ++k) {
    const auto d = static_cast<size_t>(plan.axes[k]);
    // The models' scales have single precision.
    const double extent = std::floor(static_cast<double>(from[d]) * scales[k]);
    if (!(scales[k] > 0 && extent < 1e15)) {
      return node.Invalid("scale ", scales[k]);
    }
    plan.shape[d] = static_cast<int64_t>(extent);
  }
  plan.scales = scales;
  return CheckShape(node, plan.shape);
}

absl::Status PlanFromSizes(Node& node, int input, const ResizeOptions& options,
                           ResizePlan& plan) {
  const std::vector<int64_t> from = node.Shape(0);
  const bool stretch = options.policy == "stretch";
  if (node.Rank(input) != 1 ||
      node.Shape(input)[0] != static_cast<int64_t>(plan.axes.size())) {
    return node.Invalid("sizes are ", node.Type(input).ToString());
  }
  std::vector<int64_t> sizes;
  if (node.IsConstant(input)) {
    TF_ASSIGN_OR_RETURN(sizes, node.ConstInts(input));
    std::optional<double> common;
    for (size_t k = 0; k < sizes.size(); ++k) {
      const int64_t extent = from[static_cast<size_t>(plan.axes[k])];
      if (extent == 0 || sizes[k] < 0) {
        return node.Invalid("size ", sizes[k], " for ", extent, " elements");
      }
      const double scale =
          static_cast<double>(sizes[k]) / static_cast<double>(extent);
      plan.scales.push_back(scale);
      const double other = common.value_or(scale);
      common = options.policy == "not_larger" ? std::min(other, scale)
                                              : std::max(other, scale);
    }
    for (size_t k = 0; k < sizes.size(); ++k) {
      const auto d = static_cast<size_t>(plan.axes[k]);
      plan.shape[d] = sizes[k];
      if (stretch) continue;
      plan.scales[k] = *common;
      const double size = *common * static_cast<double>(from[d]) + 0.5;
      if (!(size < 1e15)) return node.Invalid("the result is too large");
      plan.shape[d] = static_cast<int64_t>(size);
    }
    return CheckShape(node, plan.shape);
  }
  TF_ASSIGN_OR_RETURN(
      plan.shape, DeclaredShape(node, node.Dtype(0), node.Rank(0), "sizes"));
  if (!stretch) {
    plan.size_input = input;
    return absl::OkStatus();
  }
  for (const int64_t axis : plan.axes) {
    const auto d = static_cast<size_t>(axis);
    plan.scales.push_back(static_cast<double>(plan.shape[d]) /
                          static_cast<double>(std::max<int64_t>(from[d], 1)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ResizePlan> ResizePlanOf(Node& node,
                                        const ResizeOptions& options) {
  ResizePlan plan;
  plan.shape = node.Shape(0);
  plan.axes = node.Ints("axes");
  if (!node.HasAttr("axes")) {
    for (int d = 0; d < node.Rank(0); ++d) plan.axes.push_back(d);
  }
  TF_ASSIGN_OR_RETURN(plan.axes, NormalizeAxes(node, plan.axes, node.Rank(0)));
  if (node.op() == "Upsample") {
    TF_RETURN_IF_ERROR(PlanFromScales(node, node.opset() < 9 ? -1 : 1, plan));
  } else if (node.opset() < 11) {
    TF_RETURN_IF_ERROR(PlanFromScales(node, 1, plan));
  } else if (Has(node, 3)) {
    TF_RETURN_IF_ERROR(PlanFromSizes(node, 3, options, plan));
  } else if (Has(node, 2)) {
    TF_RETURN_IF_ERROR(PlanFromScales(node, 2, plan));
  } else {
    return node.Invalid("has neither scales nor sizes");
  }
  if (options.crops()) {
    if (!Has(node, 1) ||
        node.Type(1).num_elements() !=
            2 * static_cast<int64_t>(plan.axes.size()) ||
        node.Rank(1) != 1 || !node.Dtype(1).is_float()) {
      return node.Invalid("roi is missing or of the wrong length");
    }
    plan.roi_input = 1;
  }
  for (int d = 0; d < node.Rank(0); ++d) {
    const bool resized =
        std::find(plan.axes.begin(), plan.axes.end(), d) != plan.axes.end();
    const auto k = static_cast<size_t>(d);
    if (!resized && plan.shape[k] != node.Shape(0)[k]) {
      return node.Invalid("the declared output does not fit");
    }
    if (node.Shape(0)[k] == 0 && plan.shape[k] != 0) {
      return node.Invalid("dimension ", d, " has no elements");
    }
  }
  return plan;
}

}  // namespace tilefarm::onnx
