// What a Resize or Upsample node asks for: its attributes and the sizes and
// scales of the axes. Private to this folder.
#ifndef TILEFARM_COMPILER_ONNX_RESIZE_PLAN_H_
#define TILEFARM_COMPILER_ONNX_RESIZE_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/node.h"

namespace tilefarm::onnx {

enum class ResizeMode { kNearest, kLinear, kCubic };

struct ResizeOptions {
  ResizeMode mode = ResizeMode::kNearest;
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";
  std::string policy = "stretch";
  bool antialias = false;
  bool exclude_outside = false;
  double cubic = -0.75;
  double extrapolation = 0;

  bool crops() const { return coordinates == "tf_crop_and_resize"; }
};

// What is known of the resizing: the result's shape, and per axis of `axes` a
// scale, or the inputs that have it.
struct ResizePlan {
  std::vector<int64_t> axes;
  std::vector<int64_t> shape;
  std::vector<double> scales;  // by position in axes; empty: loaded
  // Inputs of the node; -1: not needed.
  int scale_input = -1;
  int size_input = -1;
  int roi_input = -1;
};

absl::StatusOr<ResizeOptions> ResizeOptionsOf(Node& node);
absl::StatusOr<ResizePlan> ResizePlanOf(Node& node,
                                        const ResizeOptions& options);

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_RESIZE_PLAN_H_
