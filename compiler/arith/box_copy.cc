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
  BoxCopyFinder(IndexMath& math, const ir::CopiedLoad& copied,
                const ir::Var& row, int64_t rows, const ir::Var& column,
                const std::function<bool(const Expr&)>& is_place,
                const std::vector<int64_t>& row_counts)
      : math_(math),
        load_(*copied.load),
        row_(row),
        column_(column),
        rows_(rows),
        is_place_(is_place),
        row_counts_(row_counts) {
    if (copied.condition != nullptr) {
      conditions_ = Conjuncts(copied.condition);
    }
    out_.map.buffer = load_.buffer;
    out_.origin.fill(zero_);
    out_.offsets.fill(zero_);
  }

  std::optional<BoxCopy> Find() {
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
    if (MatchBox() || MatchMatrix()) return std::move(out_);
    const std::optional<int64_t> by_condition = RowsByCondition();
    if (!by_condition) {
      for (const int64_t count : row_counts_) {
        if (MatchWindows(count)) return std::move(out_);
      }
    }
    if (MatchWindows(by_condition)) return std::move(out_);
    return std::nullopt;
  }

 private:
  Expr At(const Expr& e, const ir::VarMap& values) {
    return math_.Simplify(ir::Substitute(e, values));
  }

  // Each condition is a bound of one of the indices, with its extent.
  bool AreBounds(const std::vector<std::pair<Expr, int64_t>>& bounds) {
    return std::ranges::all_of(conditions_, [&](const Expr& condition) {
      return std::ranges::any_of(bounds, [&](const auto& bound) {
        return IsBoundOf(math_, condition, bound.first, bound.second);
      });
    });
  }
  std::vector<std::pair<Expr, int64_t>> BoundsOfIndices() const {
    std::vector<std::pair<Expr, int64_t>> out;
    for (size_t d = 0; d < load_.indices.size(); ++d) {
      out.emplace_back(load_.indices[d], load_.buffer->shape[d]);
    }
    return out;
  }

  Expr FirstColumn() {
    return At(load_.indices.back(),
              {{row_.get(), zero_}, {column_.get(), zero_}});
  }

  bool MatchBox() {
    const std::vector<int64_t>& shape = load_.buffer->shape;
    if (shape.size() > ir::kMaxBoxDims) return false;
    std::optional<size_t> row_dim;
    std::vector<Expr> origin;
    for (size_t d = 0; d + 1 < shape.size(); ++d) {
      const Expr& index = load_.indices[d];
      const int64_t step = math_.Decompose(index).CoefficientOf(row_.get());
      origin.push_back(At(index, {{row_.get(), zero_}}));
      if (step < 0 || step > 1 || (step == 1 && row_dim) ||
          math_.Difference(index, origin.back() + Expr(row_) * step) != 0) {
        return false;
      }
      if (step == 1) row_dim = d;
    }
    if (!row_dim || !AreBounds(BoundsOfIndices())) return false;
    origin.push_back(FirstColumn());
    const size_t missing = ir::kMaxBoxDims - shape.size();
    out_.map = ir::MakeTensorMap(load_.buffer, {});
    out_.row_dim = *row_dim + missing;
    std::ranges::copy(origin, out_.origin.begin() + static_cast<int>(missing));
    out_.first_row = origin[*row_dim];
    out_.tensor_rows = shape[*row_dim];
    return true;
  }

  bool MatchMatrix() {
    const Expr number = MatrixRow(math_, load_.indices, load_.buffer->shape);
    const Expr first = At(number, {{row_.get(), zero_}});
    if (math_.Difference(number, first + Expr(row_)) != 0) return false;
    const ir::TensorMap map = ir::MakeMatrixMap(load_.buffer, 1, 1);
    const int64_t rows = map.sizes[ir::kMaxBoxDims - 2];
    if (!AreBounds({{number, rows},
                    {load_.indices.back(), load_.buffer->shape.back()}})) {
      return false;
    }
    out_.map = map;
    out_.row_dim = ir::kMaxBoxDims - 2;
    out_.origin[out_.row_dim] = out_.first_row = first;
    out_.origin.back() = FirstColumn();
    out_.tensor_rows = rows;
    return true;
  }

  // The number of rows, by a condition that no index has.
  std::optional<int64_t> RowsByCondition() {
    for (const Expr& condition : conditions_) {
      bool is_bound = false;
      for (const auto& [index, extent] : BoundsOfIndices()) {
        is_bound |= IsBoundOf(math_, condition, index, extent);
      }
      const auto* less = ir::As<ir::BinaryNode>(condition);
      if (!is_bound && less != nullptr && less->op == ir::BinaryOp::kLT) {
        return ir::AsInt(less->b);
      }
    }
    return std::nullopt;
  }

  bool MatchWindows(std::optional<int64_t> row_count) {
    const std::optional<WindowRows> windows = FindWindowRows(
        math_, load_.indices, load_.buffer->shape, row_, is_place_, row_count);
    if (!windows) return false;
    std::vector<std::pair<Expr, int64_t>> bounds = BoundsOfIndices();
    bounds.emplace_back(windows->first + Expr(row_), windows->rows());
    if (!AreBounds(bounds)) return false;
    const std::optional<ir::TensorMap> map = ir::MakeWindowMap(
        load_.buffer, windows->images, windows->lower, windows->counts,
        windows->steps, rows_, ir::kBoxRowBytes / load_.buffer->dtype.bytes());
    if (!map) return false;
    const size_t spatial = windows->counts.size();
    const int64_t most = ir::MaxWindowOffset(static_cast<int>(spatial));
    for (size_t i = 0; i < spatial; ++i) {
      if (!math_.Bounds(windows->offsets[i]).Within(0, most)) return false;
      const size_t at = ir::kMaxSpatial - spatial + i;
      out_.offsets[at] = windows->offsets[i];
      out_.origin[at + 1] = windows->origin[i + 1];
    }
    out_.map = *map;
    out_.row_dim = 0;
    out_.origin.front() = windows->origin.front();
    out_.origin.back() = FirstColumn();
    out_.first_row = windows->first;
    out_.tensor_rows = windows->rows();
    out_.differs_beyond =
        !RowsByCondition() &&
        math_.Bounds(windows->first + Expr(row_)).hi >= out_.tensor_rows;
    return true;
  }

  IndexMath& math_;
  const ir::LoadNode& load_;
  const ir::Var row_, column_;
  const int64_t rows_;
  const std::function<bool(const Expr&)>& is_place_;
  const std::vector<int64_t>& row_counts_;
  const Expr zero_ = ir::IntConst(0);
  std::vector<Expr> conditions_;
  BoxCopy out_;
};

}  // namespace

std::optional<BoxCopy> FindBoxCopy(
    IndexMath& math, const ir::CopiedLoad& copied, const ir::Var& row,
    int64_t rows, const ir::Var& column,
    const std::function<bool(const Expr&)>& is_place,
    const std::vector<int64_t>& row_counts) {
  return BoxCopyFinder(math, copied, row, rows, column, is_place, row_counts)
      .Find();
}

}  // namespace tilefarm::arith
