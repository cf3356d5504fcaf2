// Operators on boxes in images: the best of those that overlap, the contents of
// regions.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/onnx/node.h"
#include "compiler/onnx/program_text.h"
#include "compiler/onnx/shapes.h"

namespace tilefarm::onnx {
namespace {

using ir::DataType;

// Lines that define the corners of box `index`: y0, x0, y1, x1 with a suffix.
void DefineCorners(ProgramText& program, int depth, bool center,
                   const std::string& index, const std::string& suffix) {
  const auto number = [&](int k) {
    return absl::StrCat("boxes[v0, ", index, ", ", k, "]");
  };
  for (const int k : {0, 1}) {
    // Corners come as y, x; centres as x, y, width, height.
    const std::string axis = (k == 0) == center ? "x" : "y";
    if (center) {
      const std::string half = absl::StrCat(number(k + 2), " / T.float32(2)");
      program.Line(depth, axis, "0", suffix, " = ", number(k), " - ", half);
      program.Line(depth, axis, "1", suffix, " = ", number(k), " + ", half);
    } else {
      program.Line(depth, axis, "0", suffix, " = T.min(", number(k), ", ",
                   number(k + 2), ")");
      program.Line(depth, axis, "1", suffix, " = T.max(", number(k), ", ",
                   number(k + 2), ")");
    }
  }
}

// The element of a tensor of one element, of rank 0 or more.
std::string Only(const std::string& buffer, int rank) {
  return Element(buffer,
                 std::vector<std::string>(static_cast<size_t>(rank), "0"));
}

struct Suppression {
  TensorType boxes;   // [batches, boxes, 4]
  TensorType scores;  // [batches, classes, boxes]
  int64_t steps = 0;  // at most so many boxes are chosen per class
  int64_t rows = 0;   // of the result
};

// Chooses the best box that is left again and again and removes those that
// overlap it too much.
std::string SuppressionText(Node& node, const Suppression& sizes) {
  const int64_t count = sizes.boxes.shape[1];
  const bool center = node.Int("center_point_box", 0) != 0;
  ProgramText program("non_max_suppression");
  program.Parameter("boxes", sizes.boxes);
  program.Parameter("scores", sizes.scores);
  program.Parameter("limit", node.Type(2));
  std::string overlap = "T.float32(0)";
  std::string threshold;
  if (node.HasInput(3)) {
    program.Parameter("max_overlap", node.Type(3));
    overlap = Only("max_overlap", node.Rank(3));
  }
  if (node.HasInput(4)) {
    program.Parameter("min_score", node.Type(4));
    threshold = Only("min_score", node.Rank(4));
  }
  program.Parameter("result", {DataType::Int(64), {sizes.rows, 3}});
  program.Parameter("total", {DataType::Int(64), {1}});
  program.Workspace("left", {DataType::Int(32), {count}});
  program.Workspace("best", {DataType::Int(64), {1}});
  program.Workspace("chosen", {DataType::Int(64), {1}});
  program.Fill("result", {sizes.rows, 3}, "0");
  program.Fill("total", {1}, "0");
  program.Block("choose", {sizes.scores.shape[0], sizes.scores.shape[1]}, "OO");
  program.Line(0, "chosen[0] = 0");
  program.Line(0, "for j in range(", count, "):");
  if (threshold.empty()) {
    program.Line(1, "left[j] = 1");
  } else {
    program.Line(1, "left[j] = T.Select(scores[v0, v1, j] > ", threshold,
                 ", T.int32(1), T.int32(0))");
  }
  const std::string best = IndexText("best[0]", count, false);
  program.Line(0, "for step in range(", sizes.steps, "):");
  program.Line(1, "best[0] = -1");
  program.Line(1, "for j in range(", count, "):");
  program.Line(2,
               "if left[j] != 0 and (best[0] < 0 or scores[v0, v1, j] > "
               "scores[v0, v1, ",
               best, "]):");
  program.Line(3, "best[0] = j");
  program.Line(1, "if best[0] >= 0 and chosen[0] < ",
               Only("limit", node.Rank(2)), ":");
  program.Line(2, "if total[0] < ", sizes.rows, ":");
  const std::string row = IndexText("total[0]", sizes.rows, false);
  program.Line(3, "result[", row, ", 0] = v0");
  program.Line(3, "result[", row, ", 1] = v1");
  program.Line(3, "result[", row, ", 2] = best[0]");
  program.Line(2, "total[0] = total[0] + 1");
  program.Line(2, "chosen[0] = chosen[0] + 1");
  program.Line(2, "left[", best, "] = 0");
  DefineCorners(program, 2, center, best, "a");
  program.Line(2, "area = (x1a - x0a) * (y1a - y0a)");
  program.Line(2, "for j in range(", count, "):");
  DefineCorners(program, 3, center, "j", "b");
  program.Line(3, "width = T.min(x1a, x1b) - T.max(x0a, x0b)");
  program.Line(3, "height = T.min(y1a, y1b) - T.max(y0a, y0b)");
  program.Line(3, "both = width * height");
  program.Line(3, "other = (x1b - x0b) * (y1b - y0b)");
  program.Line(3, "union = area + other - both");
  program.Line(3, "if width > 0 and height > 0 and both > 0 and area > 0 and ",
               "other > 0 and union > 0 and both / union > ", overlap, ":");
  program.Line(4, "left[j] = 0");
  return program.Text();
}

Outputs ConvertNonMaxSuppression(Node& node) {
  Suppression sizes{node.Type(0), node.Type(1)};
  const std::vector<int64_t>& boxes = sizes.boxes.shape;
  const std::vector<int64_t>& scores = sizes.scores.shape;
  const DataType f32 = DataType::Float(32);
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 ||
      boxes[0] != scores[0] || boxes[1] != scores[2] ||
      sizes.boxes.dtype != f32 || sizes.scores.dtype != f32) {
    return node.Invalid("boxes ", sizes.boxes.ToString(), " and scores ",
                        sizes.scores.ToString());
  }
  const TensorType nothing{DataType::Int(64), {0, 3}};
  const auto none = [&]() -> Outputs {
    return std::vector<Imported>{node.builder().Constant(
        "non_max_suppression", nothing, graph::TensorData())};
  };
  // Without a limit no box is chosen.
  if (!node.HasInput(2) || sizes.scores.num_elements() == 0) return none();
  std::vector<ValueId> inputs;
  for (int i = 0; i < 5; ++i) {
    if (!node.HasInput(i)) continue;
    inputs.push_back(node.Input(i));
    if (i >= 2 && (node.Type(i).num_elements() != 1 ||
                   node.Dtype(i) != (i == 2 ? DataType::Int(64) : f32))) {
      return node.Invalid("input ", i, " is ", node.Type(i).ToString());
    }
  }
  bool constant = true;
  for (const ValueId input : inputs) {
    constant &= node.builder().IsConstant(input);
  }
  sizes.steps = boxes[1];
  if (node.IsConstant(2)) {
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> limit, node.ConstInts(2));
    sizes.steps = std::clamp<int64_t>(limit[0], 0, sizes.steps);
  }
  if (sizes.steps == 0) return none();
  if (constant) {
    if (__builtin_mul_overflow(scores[0] * scores[1], sizes.steps,
                               &sizes.rows)) {
      return node.Invalid("too many boxes");
    }
  } else {
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> shape,
                        DeclaredShape(node, DataType::Int(64), 2,
                                      "the number of chosen boxes"));
    if (shape[1] != 3) return node.Invalid("the output is misdeclared");
    sizes.rows = shape[0];
    sizes.steps = std::min(sizes.steps, sizes.rows);
  }
  if (sizes.rows == 0) return none();
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> values,
      node.builder().CallText("vision.non_max_suppression", {}, inputs,
                              SuppressionText(node, sizes)));
  if (!constant) return std::vector<Imported>{values[0]};
  TF_ASSIGN_OR_RETURN(const std::vector<int64_t> total,
                      node.builder().EvaluateInts(values[1]));
  TF_ASSIGN_OR_RETURN(std::vector<int64_t> rows,
                      node.builder().EvaluateInts(values[0]));
  rows.resize(static_cast<size_t>(3 * total[0]));
  return std::vector<Imported>{node.builder().Constant(
      "non_max_suppression", {DataType::Int(64), {total[0], 3}}, rows)};
}

// A place along one dimension of the image: lines that define, for the
// dimension named by `s`, whether `p` lies inside, both neighbours and their
// weights.
void DefineNeighbours(ProgramText& program, int depth, const std::string& s,
                      int64_t extent) {
  program.Line(depth, "low", s, " = T.min(T.max(p", s,
               ", T.float32(0)), T.float32(", extent - 1, "))");
  program.Line(depth, "a", s, " = T.max(T.min(T.Cast(\"int64\", T.floor(low", s,
               ")), ", extent - 1, "), 0)");
  program.Line(depth, "b", s, " = T.min(a", s, " + 1, ", extent - 1, ")");
  program.Line(depth, "f", s, " = low", s, " - T.Cast(\"float32\", a", s, ")");
}

struct RoiSizes {
  TensorType x, rois, batches;
  int64_t height = 1, width = 1, samples = 0;
  double scale = 1;
  bool half_pixel = false, average = true;
};

// Every result is the mean (or maximum) of samples on a regular grid. If their
// number depends on the region, the loops cover all samples that can lie in the
// image, at most `bound`, from the first one that does.
std::string RoiText(const RoiSizes& sizes, const TensorType& result) {
  ProgramText program("roi_align");
  program.Parameter("x", sizes.x);
  program.Parameter("rois", sizes.rois);
  program.Parameter("batches", sizes.batches);
  program.Parameter("result", result);
  program.Block("sample", result.shape, "SSSS");
  // Workspace of one block, so that results are independent.
  program.Line(0, "sum = T.alloc_buffer((1,), \"float32\")");
  program.Line(0, "found = T.alloc_buffer((1,), \"int32\")");
  const auto number = [](double value) {
    // The shortest text that reads back as the same number.
    char text[64];
    const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
    return absl::StrCat("T.float32(", std::string(text, end), ")");
  };
  program.Line(0,
               "batch = ", IndexText("batches[v0]", sizes.x.shape[0], false));
  int64_t bounds[2];
  for (const int k : {0, 1}) {
    const std::string s = k == 0 ? "y" : "x";
    const int64_t pooled = k == 0 ? sizes.height : sizes.width;
    const int64_t extent = sizes.x.shape[static_cast<size_t>(k) + 2];
    const auto corner = [&](int column) {
      return absl::StrCat("T.Cast(\"float32\", rois[v0, ", column, "]) * ",
                          number(sizes.scale), " - ",
                          number(sizes.half_pixel ? 0.5 : 0));
    };
    program.Line(0, "start", s, " = ", corner(1 - k));
    const std::string length = absl::StrCat("(", corner(3 - k), ") - start", s);
    program.Line(0, "length", s, " = ",
                 sizes.half_pixel
                     ? length
                     : absl::StrCat("T.max(", length, ", T.float32(1))"));
    program.Line(0, "bin", s, " = length", s, " / ",
                 number(static_cast<double>(pooled)));
    program.Line(0, "origin", s, " = start", s, " + T.Cast(\"float32\", v",
                 k + 2, ") * bin", s);
    if (sizes.samples > 0) {
      bounds[k] = sizes.samples;
      program.Line(0, "count", s, " = T.int64(", sizes.samples, ")");
      program.Line(0, "first", s, " = T.int64(0)");
    } else {
      // Samples are more than half an element apart where there are several.
      bounds[k] = 2 * extent + 6;
      program.Line(0, "count", s, " = T.max(T.Cast(\"int64\", T.ceil(bin", s,
                   ")), 0)");
    }
    program.Line(0, "step", s, " = bin", s,
                 " / T.Cast(\"float32\", T.max(count", s, ", 1))");
    if (sizes.samples == 0) {
      program.Line(0, "first", s, " = T.Select(step", s,
                   " > T.float32(0.25), T.max(T.Cast(\"int64\", ",
                   "(T.float32(-1) - origin", s, ") / T.max(step", s,
                   ", T.float32(0.25))) - 2, 0), T.int64(0))");
    }
  }
  program.Line(0, "sum[0] = T.float32(0)");
  program.Line(0, "found[0] = 0");
  int depth = 0;
  for (const int k : {0, 1}) {
    const std::string s = k == 0 ? "y" : "x";
    const auto extent =
        static_cast<double>(sizes.x.shape[static_cast<size_t>(k) + 2]);
    program.Line(depth, "for i", s, " in range(", bounds[k], "):");
    ++depth;
    program.Line(depth, "p", s, " = origin", s, " + (T.Cast(\"float32\", i", s,
                 " + first", s, ") + T.float32(0.5)) * step", s);
    program.Line(depth, "if i", s, " + first", s, " < count", s, " and p", s,
                 " >= T.float32(-1) and p", s, " <= ", number(extent), ":");
    ++depth;
    DefineNeighbours(program, depth, s, static_cast<int64_t>(extent));
  }
  const auto value = [](const char* row, const char* column) {
    return absl::StrCat("T.Cast(\"float32\", x[batch, v1, ", row, ", ", column,
                        "])");
  };
  const std::string terms[4] = {
      absl::StrCat("(T.float32(1) - fy) * (T.float32(1) - fx) * ",
                   value("ay", "ax")),
      absl::StrCat("(T.float32(1) - fy) * fx * ", value("ay", "bx")),
      absl::StrCat("fy * (T.float32(1) - fx) * ", value("by", "ax")),
      absl::StrCat("fy * fx * ", value("by", "bx"))};
  const std::string dtype = result.dtype.ToString();
  if (sizes.average) {
    program.Line(depth, "sum[0] = sum[0] + (", terms[0], " + ", terms[1], " + ",
                 terms[2], " + ", terms[3], ")");
    program.Line(
        0, "result[v0, v1, v2, v3] = T.Cast(\"", dtype,
        "\", sum[0] / T.Cast(\"float32\", T.max(county * countx, 1)))");
  } else {
    program.Line(depth, "top = T.max(T.max(", terms[0], ", ", terms[1],
                 "), T.max(", terms[2], ", ", terms[3], "))");
    program.Line(depth, "sum[0] = T.Select(found[0] == 0, top, T.max(sum[0], ",
                 "top))");
    program.Line(depth, "found[0] = found[0] + 1");
    // Samples outside of the image count as 0.
    program.Line(0, "most = T.Select(T.Cast(\"int64\", found[0]) < county * ",
                 "countx, T.max(sum[0], T.float32(0)), sum[0])");
    program.Line(0, "result[v0, v1, v2, v3] = T.Cast(\"", dtype, "\", most)");
  }
  return program.Text();
}

Outputs ConvertRoiAlign(Node& node) {
  RoiSizes sizes{node.Type(0), node.Type(1), node.Type(2)};
  if (sizes.x.ndim() != 4 || sizes.rois.ndim() != 2 ||
      sizes.batches.ndim() != 1 || sizes.rois.shape[1] != 4 ||
      sizes.rois.shape[0] != sizes.batches.shape[0] ||
      !sizes.x.dtype.is_float() || sizes.rois.dtype != sizes.x.dtype ||
      sizes.batches.dtype != DataType::Int(64)) {
    return node.Invalid("image ", sizes.x.ToString(), ", regions ",
                        sizes.rois.ToString(), ", batches ",
                        sizes.batches.ToString());
  }
  sizes.height = node.Int("output_height", 1);
  sizes.width = node.Int("output_width", 1);
  sizes.samples = node.Int("sampling_ratio", 0);
  sizes.scale = node.Float("spatial_scale", 1);
  const std::string mode = node.String("mode", "avg");
  if (mode != "avg" && mode != "max") {
    return node.Unsupported("attribute mode=", mode);
  }
  sizes.average = mode == "avg";
  const std::string transform =
      node.String("coordinate_transformation_mode",
                  node.opset() < 16 ? "output_half_pixel" : "half_pixel");
  if (transform != "half_pixel" && transform != "output_half_pixel") {
    return node.Unsupported("attribute coordinate_transformation_mode=",
                            transform);
  }
  sizes.half_pixel = transform == "half_pixel";
  if (sizes.height < 1 || sizes.width < 1 || sizes.samples < 0 ||
      sizes.samples > (1 << 20) || !std::isfinite(sizes.scale)) {
    return node.Invalid("the output is ", sizes.height, " x ", sizes.width,
                        " of ", sizes.samples, " samples, at scale ",
                        sizes.scale);
  }
  const TensorType result{
      sizes.x.dtype,
      {sizes.rois.shape[0], sizes.x.shape[1], sizes.height, sizes.width}};
  TF_RETURN_IF_ERROR(CheckShape(node, result.shape));
  if (result.num_elements() == 0) {
    return OneOutput(
        node.builder().Constant("roi_align", result, graph::TensorData()));
  }
  if (sizes.x.num_elements() == 0) return node.Invalid("the image is empty");
  TF_ASSIGN_OR_RETURN(
      const std::vector<ValueId> values,
      node.builder().CallText("vision.roi_align", {{"mode", mode}},
                              {node.Input(0), node.Input(1), node.Input(2)},
                              RoiText(sizes, result)));
  return std::vector<Imported>{values[0]};
}

}  // namespace

std::vector<Converter> BoxConverters() {
  return {
      {"NonMaxSuppression", ConvertNonMaxSuppression},
      {"RoiAlign", ConvertRoiAlign},
  };
}

}  // namespace tilefarm::onnx
