#include "compiler/ir/tensor_box.h"

#include <utility>

#include "base/check.h"

namespace tilefarm::ir {
namespace {

// The arguments: tensor, to, barrier, then origin, sizes and box.
constexpr size_t kFirst = 3;

std::array<int64_t, kMaxBoxDims> Filled(const std::vector<int64_t>& extents) {
  TF_CHECK(extents.size() <= kMaxBoxDims);
  std::array<int64_t, kMaxBoxDims> out;
  out.fill(1);
  std::copy(extents.begin(), extents.end(), out.end() - extents.size());
  return out;
}

}  // namespace

TensorMap MakeTensorMap(const Buffer& buffer, const std::vector<int64_t>& box) {
  return {buffer, Filled(buffer->shape), Filled(box)};
}

int MapDims(const TensorMap& map) {
  int dims = kMaxBoxDims;
  for (size_t i = 0; i + 2 < kMaxBoxDims && map.sizes[i] == 1; ++i) --dims;
  return dims;
}

Expr CopyBox(const TensorMap& map, const std::vector<Expr>& origin, Expr to,
             Expr barrier) {
  std::vector<Expr> first(map.buffer->shape.size(), IntConst(0));
  std::vector<Expr> args = {Load(map.buffer, std::move(first)), std::move(to),
                            std::move(barrier)};
  for (size_t i = origin.size(); i < kMaxBoxDims; ++i) {
    args.push_back(IntConst(0));
  }
  args.insert(args.end(), origin.begin(), origin.end());
  for (const int64_t size : map.sizes) args.push_back(IntConst(size));
  for (const int64_t extent : map.box) args.push_back(IntConst(extent));
  return MakeMachineOp(MachineOp::kCopyBox, std::move(args));
}

BoxCopy AsBoxCopy(const MachineOpNode& op) {
  BoxCopy copy;
  copy.map.buffer = As<LoadNode>(op.args[0])->buffer;
  copy.to = op.args[1];
  copy.barrier = op.args[2];
  for (size_t i = 0; i < kMaxBoxDims; ++i) {
    copy.origin[i] = op.args[kFirst + i];
    copy.map.sizes[i] = *AsInt(op.args[kFirst + kMaxBoxDims + i]);
    copy.map.box[i] = *AsInt(op.args[kFirst + 2 * kMaxBoxDims + i]);
  }
  return copy;
}

}  // namespace tilefarm::ir
