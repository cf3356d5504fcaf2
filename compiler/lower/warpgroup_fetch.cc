#include "compiler/lower/warpgroup_fetch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/tensor_box.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::ForNode;
using ir::Stmt;

class FetchMatcher {
 public:
  FetchMatcher(const StoreNest& nest, arith::CopiedTile tile, IndexMath& math)
      : nest_(nest), tile_(std::move(tile)), math_(math) {}

  absl::StatusOr<WarpgroupOperand> Match() {
    const ir::StoreNode& store = *nest_.store;
    const std::optional<ir::CopiedLoad> copied = ir::AsCopiedLoad(store.value);
    if (!copied || copied->load->buffer->dtype != store.buffer->dtype ||
        ir::ScopeOf(*copied->load->buffer) != ir::MemoryScope::kGlobal) {
      return Refuse(
          "its value is no element of a tensor in global memory, or 0 outside");
    }
    out_.tensor = copied->load->buffer;
    out_.tile = store.buffer;
    TF_RETURN_IF_ERROR(ReadTile());
    tile_.element = *copied;
    const std::optional<arith::BoxCopy> copy = arith::FindBoxCopy(math_, tile_);
    if (!copy) {
      return Refuse(
          "the tile is no box of the tensor whose rows are along the last "
          "dimension, and no windows; or its value has conditions other than "
          "the bounds of the tensor");
    }
    out_.copy = *copy;
    return std::move(out_);
  }

 private:
  absl::Status Refuse(const std::string& why) const {
    return absl::InvalidArgumentError(
        absl::StrCat("the copy to ", nest_.store->buffer->name, ": ", why));
  }

  absl::Status ReadTile() {
    const auto wide = WideIndices(*out_.tile, nest_.store->indices);
    std::vector<int64_t> extents;
    for (const int64_t extent : out_.tile->shape) {
      if (extent > 1) extents.push_back(extent);
    }
    if (!wide || wide->size() != 2 || nest_.loops.size() != 2) {
      return Refuse("the tile has not two dimensions, each with one loop");
    }
    out_.rows = extents[0];
    out_.columns = extents[1];
    for (size_t d = 0; d < 2; ++d) {
      const auto loop = std::ranges::find_if(
          nest_.loops,
          [&](const ForNode* l) { return l->var.get() == (*wide)[d].get(); });
      if (loop == nest_.loops.end() ||
          !ir::IsConstInt((*loop)->extent, extents[d])) {
        return Refuse("its loops are not those over the tile's elements");
      }
      BindLoop(math_, **loop);
      (d == 0 ? tile_.row : tile_.column) = (*loop)->var;
    }
    tile_.rows = out_.rows;
    return absl::OkStatus();
  }

  const StoreNest& nest_;
  arith::CopiedTile tile_;
  IndexMath& math_;
  WarpgroupOperand out_;
};

}  // namespace

std::string WhyNoTile(const WarpgroupOperand& operand) {
  constexpr int64_t kSwizzledRows = 8;
  const ir::BufferNode& tensor = *operand.tensor;
  const int64_t bytes = tensor.dtype.bytes();
  const int64_t row_bytes = operand.columns * bytes;
  if (row_bytes % ir::kBoxRowBytes != 0) {
    return absl::StrCat("its rows have ", row_bytes, " bytes, no multiple of ",
                        ir::kBoxRowBytes);
  }
  if (operand.rows > ir::kMaxBoxExtent || operand.rows % kSwizzledRows != 0) {
    return absl::StrCat("it has ", operand.rows, " rows; a multiple of ",
                        kSwizzledRows, " up to ", ir::kMaxBoxExtent,
                        " is possible");
  }
  if (!tensor.is_dense() || !tensor.dim_align.empty() ||
      tensor.shape.size() < 2) {
    return absl::StrCat("the tensor ", tensor.name,
                        " has strides, or one dimension");
  }
  if (tensor.shape.back() * bytes % ir::kTensorRowBytes != 0) {
    return absl::StrCat("rows of ", tensor.name, " are ",
                        tensor.shape.back() * bytes,
                        " bytes apart; the copy engine needs a multiple of ",
                        ir::kTensorRowBytes);
  }
  return "";
}

absl::StatusOr<WarpgroupOperand> MatchFetch(
    const StoreNest& nest, const ForNode& loop,
    std::optional<std::vector<arith::CopiedTile::Used>> used_windows,
    IndexMath& math) {
  arith::CopiedTile tile;
  if (used_windows) {
    tile.used_windows = *std::move(used_windows);
    tile.is_place = [&](const Expr& atom) {
      return ir::UsesVar(atom, loop.var.get());
    };
  }
  const size_t mark = math.Mark();
  BindLoop(math, loop);
  // What is not stored may be anything.
  for (const Expr& condition : nest.conditions) math.Assume(condition);
  absl::StatusOr<WarpgroupOperand> out =
      FetchMatcher(nest, std::move(tile), math).Match();
  math.Restore(mark);
  return out;
}

}  // namespace tilefarm::lower
