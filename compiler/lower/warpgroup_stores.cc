#include "compiler/lower/warpgroup_stores.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/arith/window_rows.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/tensor_box.h"
#include "compiler/ir/visitor.h"
#include "compiler/ir/warpgroup_product.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/simplify.h"

namespace tilefarm::lower {
namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::ForNode;
using ir::MachineOp;
using ir::Stmt;

constexpr int64_t kSwizzleBytes = 16;  // of the swizzle

// Product, row step, column step, pair.
using SumPlace = std::tuple<int64_t, int64_t, int64_t, int64_t>;

class BoxStorer {
 public:
  BoxStorer(const WarpgroupNest& nest, const ir::Var& thread,
            const ir::Var& warpgroup)
      : nest_(nest), thread_(thread), warpgroup_(warpgroup) {
    math_.Bind(thread_.get(), 0, nest.warpgroups * ir::kWarpgroup - 1);
  }

  absl::StatusOr<WarpgroupStores> Run(const Stmt& stmt) {
    TF_RETURN_IF_ERROR(ReadNest(stmt));
    TF_RETURN_IF_ERROR(CheckTensor());
    TF_RETURN_IF_ERROR(FindPlaces());
    TF_RETURN_IF_ERROR(FindView());
    WarpgroupStores out;
    out.tiles = tiles_ = ir::MakeBuffer(
        absl::StrCat(store_->buffer->name, "_tiles"), store_->buffer->dtype,
        {nest_.warpgroups, ir::kStoreTiles, ir::kWarpgroupRows, row_elements_},
        "shared");
    std::vector<Stmt> body;
    const int64_t chunks = nest_.columns / row_elements_;
    for (int64_t product = 0; product < nest_.products; ++product) {
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        StoreChunk(product, chunk, product * chunks + chunk, body);
      }
    }
    // The first tile may be that of the chunk before.
    if (nest_.products * chunks % ir::kStoreTiles != 0) {
      body.insert(body.begin(), ByFirst({Wait(0)}));
    }
    out.body = ir::MakeSeq(std::move(body));
    for (const Expr& condition : nest_.conditions) {
      out.body = ir::MakeIf(condition, out.body);
    }
    out.end = ByFirst({Wait(0)});
    return out;
  }

 private:
  absl::Status Refuse(const std::string& why) const {
    return absl::InvalidArgumentError(
        absl::StrCat("stores of warpgroup products by boxes: ", why));
  }

  absl::Status ReadNest(Stmt stmt) {
    for (;;) {
      if (const auto* loop = ir::As<ForNode>(stmt)) {
        if (!ir::AsInt(loop->extent)) break;
        loops_.push_back(loop);
        stmt = loop->body;
      } else if (const auto* branch = ir::As<ir::IfNode>(stmt);
                 branch != nullptr && branch->else_case == nullptr) {
        Expr rest = branch->condition;
        const auto* both = ir::As<ir::BinaryNode>(rest);
        while (both != nullptr && both->op == BinaryOp::kAnd) {
          conditions_.push_back(both->b);
          rest = both->a;
          both = ir::As<ir::BinaryNode>(rest);
        }
        conditions_.push_back(rest);
        stmt = branch->then_case;
      } else {
        store_ = ir::As<ir::StoreNode>(stmt);
        break;
      }
    }
    if (store_ == nullptr ||
        ir::ScopeOf(*store_->buffer) != ir::MemoryScope::kGlobal) {
      return Refuse("the sums are not used by one store to a tensor");
    }
    return absl::OkStatus();
  }

  absl::Status CheckTensor() {
    const ir::BufferNode& tensor = *store_->buffer;
    const int64_t bytes = tensor.dtype.bytes();
    row_elements_ = ir::kBoxRowBytes / bytes;
    if (bytes < 2) {
      return Refuse(absl::StrCat("pairs of ", tensor.dtype.ToString(),
                                 " are too narrow for a store"));
    }
    if (!tensor.is_dense() || !tensor.dim_align.empty() ||
        tensor.shape.size() < 2 ||
        tensor.shape.back() * bytes % ir::kTensorRowBytes != 0) {
      return Refuse(absl::StrCat("the rows of ", tensor.name,
                                 " are no multiple of ", ir::kTensorRowBytes,
                                 " bytes, or it has too few dimensions"));
    }
    if (nest_.columns % row_elements_ != 0) {
      return Refuse(absl::StrCat("a tile has ", nest_.columns,
                                 " columns, no multiple of ", row_elements_));
    }
    return absl::OkStatus();
  }

  Expr At(const Expr& e, const ir::VarMap& values) {
    return math_.Simplify(ir::Substitute(e, values));
  }

  // For each of a thread's sums, the iteration that stores it.
  absl::Status FindPlaces() {
    std::map<int64_t, SumPlace> places;
    for (int64_t i = 0; i < nest_.products; ++i) {
      for (int64_t h = 0; h < 2; ++h) {
        for (int64_t c = 0; c < nest_.columns / kSumsPeriod; ++c) {
          for (int64_t q = 0; q < kSumsPair; ++q) {
            places[i * nest_.sums_step + h * nest_.row_step +
                   c * nest_.column_step + q * nest_.pair_step] = {i, h, c, q};
          }
        }
      }
    }
    std::vector<Expr> offsets;
    ir::PostOrderExprs(store_->value, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      if (load == nullptr || load->buffer != nest_.sums) return;
      Expr offset = ir::IntConst(0);
      for (size_t d = 0; d < load->indices.size(); ++d) {
        offset = offset * nest_.sums->shape[d] + load->indices[d];
      }
      offsets.push_back(std::move(offset));
    });
    int64_t count = 1;
    for (const ForNode* loop : loops_) count *= *ir::AsInt(loop->extent);
    if (offsets.empty() || count != static_cast<int64_t>(places.size())) {
      return Refuse("a store does not use each sum once");
    }
    for (int64_t i = 0; i < count; ++i) {
      ir::VarMap values;
      int64_t rest = i;
      for (const ForNode* loop : loops_) {
        const int64_t extent = *ir::AsInt(loop->extent);
        values[loop->var.get()] = ir::IntConst(rest % extent);
        rest /= extent;
      }
      for (const Expr& offset : offsets) {
        const auto place = ir::AsInt(At(offset, values));
        if (!place || !places.contains(*place)) {
          return Refuse("a store uses sums of other threads");
        }
        const auto added = iterations_.emplace(places[*place], values);
        if (!added.second && &offset == &offsets.front()) {
          return Refuse("a store uses a sum twice");
        }
        if (ir::AsInt(At(offsets.front(), values)) != place) {
          return Refuse("a store uses several sums");
        }
      }
    }
    // The loop over the pair, whose second iteration has its second element.
    for (const ForNode* loop : loops_) {
      const auto& first = iterations_.at({0, 0, 0, 0});
      const auto& second = iterations_.at({0, 0, 0, 1});
      if (!SameExpr(first.at(loop->var.get()), second.at(loop->var.get()))) {
        if (pair_ != nullptr ||
            !ir::IsConstInt(second.at(loop->var.get()), 1)) {
          return Refuse("no loop is that over a pair");
        }
        pair_ = loop;
      }
    }
    if (pair_ == nullptr || !ir::IsConstInt(pair_->extent, kSumsPair)) {
      return Refuse("no loop is that over a pair");
    }
    return absl::OkStatus();
  }

  // The place of a sum in the tile of its block.
  Expr Row(int64_t product, int64_t h) const {
    const Expr warp = ir::FloorDiv(
        ir::FloorMod(thread_, ir::IntConst(ir::kWarpgroup)), ir::IntConst(32));
    const Expr group = nest_.warpgroups > 1
                           ? ir::FloorDiv(thread_, ir::IntConst(ir::kWarpgroup))
                           : ir::IntConst(0);
    return group * nest_.warpgroup_step + warp * 16 + Lane() +
           (product * nest_.product_step + h * kSumsPeriod);
  }
  Expr Lane() const {
    return ir::FloorDiv(ir::FloorMod(thread_, ir::IntConst(32)),
                        ir::IntConst(4));
  }
  Expr Column(int64_t c, int64_t q) const {
    return ir::FloorMod(thread_, ir::IntConst(4)) * kSumsPair +
           (c * kSumsPeriod + q);
  }

  // The tensor, or one with its last dimensions as one, of which the elements
  // are a tile and the conditions bounds.
  absl::Status FindView() {
    const ir::Buffer& tensor = store_->buffer;
    absl::Status status;
    for (size_t first = store_->indices.size() - 1; first-- > 0;) {
      if (first + 2 > ir::kMaxBoxDims) continue;
      view_ = arith::MergeRows(math_, store_->indices, tensor->shape, first);
      status = FindOrigin();
      for (const Expr& condition : conditions_) {
        if (status.ok() && !IsBound(condition)) {
          status =
              Refuse(absl::StrCat("the condition ", ir::ToString(condition),
                                  " is no bound of the tensor"));
        }
      }
      if (status.ok()) break;
    }
    map_ = ir::MakeTensorMap(tensor, view_.shape, {});
    return status;
  }

  // The tile's first element in the tensor; checks all others.
  absl::Status FindOrigin() {
    row_dim_.reset();
    origin_.clear();
    ir::VarMap first = iterations_.at({0, 0, 0, 0});
    first[thread_.get()] = ir::IntConst(0);
    for (const Expr& index : view_.indices) origin_.push_back(At(index, first));
    const size_t last = origin_.size() - 1;
    for (const auto& [place, values] : iterations_) {
      const auto [product, h, c, q] = place;
      for (size_t d = 0; d < origin_.size(); ++d) {
        const Expr index = At(view_.indices[d], values);
        const auto is = [&](const Expr& more) {
          return math_.Difference(index, origin_[d] + more) == 0;
        };
        if (d == last ? is(Column(c, q))
                      : row_dim_ == d || (!row_dim_ && is(Row(product, h)) &&
                                          !is(ir::IntConst(0)))) {
          if (d != last && !is(Row(product, h))) return NoTile();
          if (d != last) row_dim_ = d;
          continue;
        }
        if (d == last || !is(ir::IntConst(0))) return NoTile();
      }
    }
    if (!row_dim_) return NoTile();
    return absl::OkStatus();
  }
  absl::Status NoTile() const {
    return Refuse("the stored elements are no tile of the tensor");
  }

  // The engine writes nothing outside of the tensor.
  bool IsBound(const Expr& condition) {
    for (const Expr& outer : nest_.conditions) {
      if (SameExpr(condition, outer)) return true;
    }
    const auto* less = ir::As<ir::BinaryNode>(condition);
    if (less == nullptr || less->op != BinaryOp::kLT) return false;
    for (size_t d = 0; d < view_.indices.size(); ++d) {
      if (ir::IsConstInt(less->b, view_.shape[d]) &&
          math_.Difference(less->a, view_.indices[d]) == 0) {
        return true;
      }
    }
    return false;
  }

  // Where what is stored may read other tensors; null: anywhere.
  Expr Inside() const {
    bool reads = false;
    ir::PostOrderExprs(store_->value, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      reads |= load != nullptr && load->buffer != nest_.sums;
    });
    if (!reads || conditions_.empty()) return nullptr;
    Expr inside = conditions_.front();
    for (size_t i = 1; i < conditions_.size(); ++i) {
      inside = ir::And(inside, conditions_[i]);
    }
    return inside;
  }
  // What is stored, where it may be computed, and else 0.
  Expr Guarded(const Expr& inside) const {
    // What is stored in 16 bits is computed in 32.
    const auto* narrowed = ir::As<ir::CastNode>(store_->value);
    const Expr& value = narrowed == nullptr ? store_->value : narrowed->value;
    const Expr guarded = ir::IfThenElseExpr(
        inside, value, ir::MakeCast(value->dtype, ir::IntConst(0)));
    return narrowed == nullptr ? guarded
                               : ir::MakeCast(store_->value->dtype, guarded);
  }

  Stmt ByFirst(std::vector<Stmt> stmts) const {
    return ir::MakeIf(
        ir::EQ(ir::FloorMod(thread_, ir::IntConst(ir::kWarpgroup)),
               ir::IntConst(0)),
        ir::MakeSeq(std::move(stmts)));
  }
  static Stmt Wait(int64_t groups) {
    return Effect(MachineOp::kBoxStoreWait, {ir::IntConst(groups)});
  }

  // One of the two rows of a lane. All of it has one condition where that is of
  // the row: the engine does not read what is not stored then.
  void StoreRows(int64_t product, int64_t chunk, const Expr& tile, int64_t h,
                 std::vector<Stmt>& out) const {
    const int64_t chunk_elements =
        kSwizzleBytes / store_->buffer->dtype.bytes();
    const Expr inside = Inside();
    const Expr row =
        ir::FloorDiv(ir::FloorMod(thread_, ir::IntConst(ir::kWarpgroup)),
                     ir::IntConst(32)) *
            16 +
        Lane() + h * kSumsPeriod;
    // Of the row: 16 bytes are at another place in each of 8 rows.
    const Expr column = ir::FloorMod(thread_, ir::IntConst(4)) * kSumsPair;
    Expr common;
    std::vector<Stmt> stores;
    for (int64_t step = 0; step < row_elements_ / kSumsPeriod; ++step) {
      const int64_t c = chunk * (row_elements_ / kSumsPeriod) + step;
      ir::VarMap values = iterations_.at({product, h, c, 0});
      const ir::Var pair = ir::MakeVar("pair");
      values[pair_->var.get()] = values.at(pair_->var.get()) + Expr(pair);
      Expr value = store_->value;
      if (inside != nullptr) {
        const Expr own = ir::Substitute(inside, values);
        if (step == 0 && !ir::UsesVar(own, pair.get())) common = own;
        if (common == nullptr || !ir::StructuralEqual(own, common)) {
          value = Guarded(inside);
        }
      }
      const Expr place =
          ir::MakeBinary(BinaryOp::kBitXor,
                         ir::IntConst(step * kSumsPeriod / chunk_elements) +
                             ir::FloorDiv(column, ir::IntConst(chunk_elements)),
                         Lane()) *
              chunk_elements +
          ir::FloorMod(column, ir::IntConst(chunk_elements)) + Expr(pair);
      stores.push_back(
          ir::MakeFor(pair, ir::IntConst(kSumsPair),
                      ir::MakeStore(tiles_, {warpgroup_, tile, row, place},
                                    ir::Substitute(value, values)),
                      ir::ForKind::kVectorized));
    }
    if (common == nullptr) {
      std::ranges::move(stores, std::back_inserter(out));
    } else {
      out.push_back(ir::MakeIf(common, ir::MakeSeq(std::move(stores))));
    }
  }

  void StoreChunk(int64_t product, int64_t chunk, int64_t number,
                  std::vector<Stmt>& out) const {
    const Expr tile = ir::IntConst(number % ir::kStoreTiles);
    const Stmt meet = Effect(MachineOp::kWarpgroupBarrier, {warpgroup_});
    out.push_back(ByFirst({Wait(ir::kStoreTiles - 1)}));
    out.push_back(meet);
    for (int64_t h = 0; h < 2; ++h) StoreRows(product, chunk, tile, h, out);
    out.push_back(Effect(MachineOp::kBoxFence, {}));
    out.push_back(meet);
    ir::TensorMap map = map_;
    map.box[*row_dim_ + ir::kMaxBoxDims - origin_.size()] = ir::kWarpgroupRows;
    map.box.back() = row_elements_;
    std::vector<Expr> origin = origin_;
    origin[*row_dim_] = origin[*row_dim_] +
                        Expr(warpgroup_) * nest_.warpgroup_step +
                        product * nest_.product_step;
    origin.back() = origin.back() + chunk * row_elements_;
    const Expr zero = ir::IntConst(0);
    out.push_back(ByFirst(
        {std::make_shared<const ir::EvaluateNode>(ir::StoreBox(
             map, origin, ir::Load(tiles_, {warpgroup_, tile, zero, zero}))),
         Effect(MachineOp::kBoxStoreCommit, {})}));
  }

  const WarpgroupNest& nest_;
  const ir::Var thread_, warpgroup_;
  IndexMath math_;
  std::vector<const ForNode*> loops_;
  std::vector<Expr> conditions_;
  const ir::StoreNode* store_ = nullptr;
  int64_t row_elements_ = 0;
  std::map<SumPlace, ir::VarMap> iterations_;
  const ForNode* pair_ = nullptr;
  // The tensor as the engine sees it.
  arith::TensorView view_;
  ir::TensorMap map_;
  std::vector<Expr> origin_;
  std::optional<size_t> row_dim_;
  ir::Buffer tiles_;
};

}  // namespace

absl::StatusOr<WarpgroupStores> StoreByBoxes(const Stmt& stmt,
                                             const WarpgroupNest& nest,
                                             const ir::Var& thread,
                                             const ir::Var& warpgroup) {
  return BoxStorer(nest, thread, warpgroup).Run(stmt);
}

}  // namespace tilefarm::lower
