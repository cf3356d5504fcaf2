#include "compiler/arith/box_copy.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/arith/conjuncts.h"
#include "compiler/arith/window_rows.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::arith {
namespace {

using ir::Expr;

class BoxCopyFinder {
 public:
  BoxCopyFinder(IndexMath& math, const CopiedTile& tile)
      : math_(math),
        tile_(tile),
        load_(*tile.element.load),
        row_(tile.row),
        column_(tile.column) {
    if (tile.element.condition != nullptr) {
      conditions_ = Conjuncts(tile.element.condition);
    }
    out_.map.buffer = load_.buffer;
    out_.origin.fill(zero_);
    out_.offsets.fill(zero_);
  }

  std::optional<BoxCopy> Find() {
    if (load_.indices.size() < 2) return std::nullopt;
    // The last index is the column and what is the same in all rows.
    const size_t last = load_.indices.size() - 1;
    for (size_t d = 0; d <= last; ++d) {
      const Expr& index = load_.indices[d];
      const int64_t step = d == last ? 1 : 0;
      const Expr first = At(index, {{column_.get(), zero_}});
      if (math_.Difference(index, first + Expr(column_) * step) != 0 ||
          (d == last && ir::UsesVar(first, row_.get()))) {
        return std::nullopt;
      }
    }
    // Rows of windows are not those of the tensor, even where these are a box.
    const bool is_box = MatchBoxes();
    if (!tile_.is_place) return is_box ? std::optional(out_) : std::nullopt;
    if (is_box && !UsesPlace(out_.first_row) &&
        math_.Bounds(out_.first_row).lo >= 0) {
      return std::move(out_);
    }
    const BoxCopy box = out_;
    const std::optional<int64_t> by_condition = RowsByCondition();
    if (!by_condition) {
      for (const CopiedTile::Used& used : tile_.used_windows) {
        if (MatchWindows(used.count, used.first)) return std::move(out_);
      }
    }
    if (MatchWindows(by_condition, nullptr)) return std::move(out_);
    return is_box ? std::optional(box) : std::nullopt;
  }

 private:
  Expr At(const Expr& e, const ir::VarMap& values) {
    return math_.Simplify(ir::Substitute(e, values));
  }

  // Each condition is a bound of one of the indices, with its extent.
  bool AreBounds(const TensorView& view) {
    return std::ranges::all_of(conditions_, [&](const Expr& condition) {
      return IsBoundIn(view, condition);
    });
  }
  bool IsBoundIn(const TensorView& view, const Expr& condition) {
    for (size_t d = 0; d < view.indices.size(); ++d) {
      if (IsBoundOf(math_, condition, view.indices[d], view.shape[d])) {
        return true;
      }
    }
    return false;
  }
  TensorView Tensor() const { return {load_.indices, load_.buffer->shape}; }

  Expr FirstColumn() {
    return At(load_.indices.back(),
              {{row_.get(), zero_}, {column_.get(), zero_}});
  }

  // Of the tensor, or of one with its last dimensions as one.
  bool MatchBoxes() {
    for (size_t first = load_.indices.size() - 1; first-- > 0;) {
      if (first + 2 <= ir::kMaxBoxDims &&
          MatchBox(
              MergeRows(math_, load_.indices, load_.buffer->shape, first))) {
        return true;
      }
    }
    return false;
  }

  bool MatchBox(const TensorView& view) {
    std::optional<size_t> row_dim;
    std::vector<Expr> origin;
    for (size_t d = 0; d + 1 < view.shape.size(); ++d) {
      const Expr& index = view.indices[d];
      const int64_t step = math_.Decompose(index).CoefficientOf(row_.get());
      origin.push_back(At(index, {{row_.get(), zero_}}));
      if (step < 0 || step > 1 || (step == 1 && row_dim) ||
          math_.Difference(index, origin.back() + Expr(row_) * step) != 0) {
        return false;
      }
      if (step == 1) row_dim = d;
    }
    if (!row_dim || !AreBounds(view)) return false;
    origin.push_back(FirstColumn());
    const size_t missing = ir::kMaxBoxDims - view.shape.size();
    out_.map = ir::MakeTensorMap(load_.buffer, view.shape, {});
    out_.row_dim = *row_dim + missing;
    out_.origin.fill(zero_);
    std::ranges::copy(origin, out_.origin.begin() + static_cast<int>(missing));
    out_.first_row = origin[*row_dim];
    out_.tensor_rows = view.shape[*row_dim];
    return true;
  }

  bool UsesPlace(const Expr& index) {
    const Linear sum = math_.Decompose(index);
    return std::ranges::any_of(sum.terms, [&](const auto& term) {
      return tile_.is_place(term.first);
    });
  }

  // The number of rows, by a condition that no index has.
  std::optional<int64_t> RowsByCondition() {
    for (const Expr& condition : conditions_) {
      const auto* less = ir::As<ir::BinaryNode>(condition);
      if (less != nullptr && less->op == ir::BinaryOp::kLT &&
          !IsBoundIn(Tensor(), condition)) {
        return ir::AsInt(less->b);
      }
    }
    return std::nullopt;
  }

  // Of the parts of indices that are the same in all rows, and that is_place
  // says nothing of, any may belong to the place: if blocks divide the window.
  // `first`: null if it may be any.
  bool MatchWindows(std::optional<int64_t> row_count, const Expr& first) {
    std::vector<Expr> parts;
    for (size_t d = 0; d + 1 < load_.indices.size(); ++d) {
      for (const auto& [atom, step] : math_.Decompose(load_.indices[d]).terms) {
        if (!ir::UsesVar(atom, row_.get()) && !tile_.is_place(atom) &&
            PositionOf(parts, atom) == parts.size()) {
          parts.push_back(atom);
        }
      }
    }
    constexpr size_t kMostParts = 4;
    const unsigned ways = 1U << std::min(parts.size(), kMostParts);
    for (unsigned of_place = 0; of_place < ways; ++of_place) {
      const auto is_place = [&](const Expr& atom) {
        const size_t part = PositionOf(parts, atom);
        return tile_.is_place(atom) ||
               (part < kMostParts && (of_place >> part & 1) != 0);
      };
      const std::optional<WindowRows> windows = FindWindowRows(
          math_, load_.indices, load_.buffer->shape, row_, is_place, row_count);
      const bool fits =
          windows &&
          (first == nullptr || math_.Difference(windows->first, first) == 0);
      if (fits && TakeWindows(*windows)) return true;
    }
    return false;
  }

  static size_t PositionOf(const std::vector<Expr>& parts, const Expr& atom) {
    const auto found = std::ranges::find_if(
        parts, [&](const Expr& part) { return ExprEqual(part, atom); });
    return static_cast<size_t>(found - parts.begin());
  }

  bool TakeWindows(const WindowRows& windows) {
    TensorView bounds = Tensor();
    bounds.indices.push_back(windows.first + Expr(row_));
    bounds.shape.push_back(windows.rows());
    if (!AreBounds(bounds)) return false;
    const std::optional<ir::TensorMap> map =
        ir::MakeWindowMap(load_.buffer, windows.images, windows.lower,
                          windows.counts, windows.steps, tile_.rows,
                          ir::kBoxRowBytes / load_.buffer->dtype.bytes());
    if (!map) return false;
    out_.origin.fill(zero_);
    out_.offsets.fill(zero_);
    const size_t spatial = windows.counts.size();
    const int64_t most = ir::MaxWindowOffset(static_cast<int>(spatial));
    for (size_t i = 0; i < spatial; ++i) {
      if (!math_.Bounds(windows.offsets[i]).Within(0, most)) return false;
      const size_t at = ir::kMaxSpatial - spatial + i;
      out_.offsets[at] = windows.offsets[i];
      out_.origin[at + 1] = windows.origin[i + 1];
    }
    out_.map = *map;
    out_.row_dim = 0;
    out_.origin.front() = windows.origin.front();
    out_.origin.back() = FirstColumn();
    out_.first_row = windows.first;
    out_.tensor_rows = windows.rows();
    out_.differs_beyond =
        !RowsByCondition() &&
        math_.Bounds(windows.first + Expr(row_)).hi >= out_.tensor_rows;
    return true;
  }

  IndexMath& math_;
  const CopiedTile& tile_;
  const ir::LoadNode& load_;
  const ir::Var row_, column_;
  const Expr zero_ = ir::IntConst(0);
  std::vector<Expr> conditions_;
  BoxCopy out_;
};

}  // namespace

std::optional<BoxCopy> FindBoxCopy(IndexMath& math, const CopiedTile& tile) {
  return BoxCopyFinder(math, tile).Find();
}

}  // namespace tilefarm::arith
