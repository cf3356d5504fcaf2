#include "compiler/ir/tensor_box.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tilefarm::ir {
namespace {

// The arguments: tensor, shared memory, barrier, then origin, sizes and box.
constexpr size_t kFirst = 3;

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
  for (const int64_t size : map.sizes) args.push_back(IntConst(size));
  for (const int64_t extent : map.box) args.push_back(IntConst(extent));
  return args;
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
  return MakeMachineOp(
      MachineOp::kCopyBox,
      Arguments(map, origin, std::move(to), std::move(barrier)));
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
  return copy;
}

}  // namespace tilefarm::ir
