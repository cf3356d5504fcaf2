#include "compiler/ir/tensor_box.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tilefarm::ir {
namespace {

// The arguments: tensor, shared memory, barrier, then origin, sizes and box; of
// windows also the number of spatial dimensions, and offsets, lower and upper
// ends and steps of each.
constexpr size_t kFirst = 3, kWindows = kFirst + 3 * size_t{kMaxBoxDims};

template <typename Values>
void AppendInts(const Values& values, std::vector<Expr>& args) {
  for (const int64_t value : values) args.push_back(IntConst(value));
}

std::array<int64_t, kMaxBoxDims> Filled(const std::vector<int64_t>& extents) {
  TF_CHECK(extents.size() <= kMaxBoxDims);
  std::array<int64_t, kMaxBoxDims> out;
  out.fill(1);
  std::copy(extents.begin(), extents.end(), out.end() - extents.size());
  return out;
}

std::vector<Expr> Arguments(const TensorMap& map,
                            const std::vector<Expr>& origin, Expr shared,
                            Expr barrier) {
  std::vector<Expr> first(map.buffer->shape.size(), IntConst(0));
  std::vector<Expr> args = {Load(map.buffer, std::move(first)),
                            std::move(shared), std::move(barrier)};
  for (size_t i = origin.size(); i < kMaxBoxDims; ++i) {
    args.push_back(IntConst(0));
  }
  args.insert(args.end(), origin.begin(), origin.end());
  AppendInts(map.sizes, args);
  AppendInts(map.box, args);
  return args;
}

}  // namespace

TensorMap MakeTensorMap(const Buffer& buffer, const std::vector<int64_t>& shape,
                        const std::vector<int64_t>& box) {
  return {buffer, Filled(shape), Filled(box)};
}

// CUDA driver API, cuTensorMapEncodeIm2col.
std::optional<TensorMap> MakeWindowMap(const Buffer& buffer, int64_t images,
                                       const std::vector<int64_t>& lower,
                                       const std::vector<int64_t>& counts,
                                       const std::vector<int64_t>& steps,
                                       int64_t pixels, int64_t channels) {
  constexpr int64_t kMostSteps = 8, kMostPixels = 1024;
  // By the number of spatial dimensions: ends of windows are signed numbers of
  // so many bits.
  constexpr std::array<int, kMaxSpatial> kEndBits = {16, 8, 5};
  const size_t spatial = counts.size();
  if (spatial < 1 || spatial > kMaxSpatial || pixels > kMostPixels ||
      buffer->shape.size() < spatial + 1) {
    return std::nullopt;
  }
  TensorMap out{buffer, Filled({}), Filled({})};
  out.spatial = static_cast<int>(spatial);
  out.sizes.front() = images;
  out.sizes.back() = buffer->shape.back();
  out.box.front() = pixels;
  out.box.back() = channels;
  const int64_t end = int64_t{1} << (kEndBits[spatial - 1] - 1);
  for (size_t i = 0; i < spatial; ++i) {
    const size_t at = kMaxSpatial - spatial + i;
    const int64_t size = buffer->shape[buffer->shape.size() - 1 - spatial + i];
    out.sizes[at + 1] = size;
    out.lower[at] = lower[i];
    out.steps[at] = steps[i];
    out.upper[at] = lower[i] + (counts[i] - 1) * steps[i] + 1 - size;
    if (steps[i] < 1 || steps[i] > kMostSteps ||
        std::min(out.lower[at], out.upper[at]) < -end ||
        std::max(out.lower[at], out.upper[at]) >= end) {
      return std::nullopt;
    }
  }
  return out;
}

// PTX ISA 8.5, "Im2col mode": the bits of its offsets.
int64_t MaxWindowOffset(int spatial) {
  constexpr std::array<int, kMaxSpatial> kOffsetBits = {16, 8, 5};
  return (int64_t{1} << kOffsetBits[static_cast<size_t>(spatial) - 1]) - 1;
}

int MapDims(const TensorMap& map) {
  if (map.spatial > 0) return map.spatial + 2;
  int dims = kMaxBoxDims;
  for (size_t i = 0; i + 2 < kMaxBoxDims && map.sizes[i] == 1; ++i) --dims;
  return dims;
}

Expr CopyBox(const TensorMap& map, const std::vector<Expr>& origin, Expr to,
             Expr barrier) {
  return MakeMachineOp(
      MachineOp::kCopyBox,
      Arguments(map, origin, std::move(to), std::move(barrier)));
}

Expr CopyWindows(const TensorMap& map,
                 const std::array<Expr, kMaxBoxDims>& origin,
                 const std::array<Expr, kMaxSpatial>& offsets, Expr to,
                 Expr barrier) {
  std::vector<Expr> args = Arguments(map, {origin.begin(), origin.end()},
                                     std::move(to), std::move(barrier));
  args.push_back(IntConst(map.spatial));
  args.insert(args.end(), offsets.begin(), offsets.end());
  AppendInts(map.lower, args);
  AppendInts(map.upper, args);
  AppendInts(map.steps, args);
  return MakeMachineOp(MachineOp::kCopyWindows, std::move(args));
}

Expr StoreBox(const TensorMap& map, const std::vector<Expr>& origin,
              Expr from) {
  return MakeMachineOp(MachineOp::kStoreBox,
                       Arguments(map, origin, std::move(from), IntConst(0)));
}

BoxCopy AsBoxCopy(const MachineOpNode& op) {
  BoxCopy copy;
  copy.map.buffer = As<LoadNode>(op.args[0])->buffer;
  copy.shared = op.args[1];
  copy.barrier = op.args[2];
  for (size_t i = 0; i < kMaxBoxDims; ++i) {
    copy.origin[i] = op.args[kFirst + i];
    copy.map.sizes[i] = *AsInt(op.args[kFirst + kMaxBoxDims + i]);
    copy.map.box[i] = *AsInt(op.args[kFirst + 2 * kMaxBoxDims + i]);
  }
  if (op.op != MachineOp::kCopyWindows) return copy;
  copy.map.spatial = static_cast<int>(*AsInt(op.args[kWindows]));
  for (size_t i = 0; i < kMaxSpatial; ++i) {
    const size_t at = kWindows + 1 + i;
    copy.offsets[i] = op.args[at];
    copy.map.lower[i] = *AsInt(op.args[at + kMaxSpatial]);
    copy.map.upper[i] = *AsInt(op.args[at + 2 * size_t{kMaxSpatial}]);
    copy.map.steps[i] = *AsInt(op.args[at + 3 * size_t{kMaxSpatial}]);
  }
  return copy;
}

}  // namespace tilefarm::ir
