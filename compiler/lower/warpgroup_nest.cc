#include "compiler/lower/warpgroup_nest.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/arith/conjuncts.h"
#include "compiler/arith/evaluate.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/tensor_box.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {
namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::ForNode;
using ir::Stmt;

// Iterations of a thread over its sums: a thread has 255 registers.
constexpr int64_t kMostRegisters = 255;
constexpr int64_t kWarpRows = 16;

class Matcher {
 public:
  Matcher(const ForNode& loop, const std::vector<const ForNode*>& around,
          const ir::Var& thread, int64_t threads)
      : loop_(loop), thread_(thread), threads_(threads) {
    for (const ForNode* outer : around) BindLoop(math_, *outer);
  }

  absl::StatusOr<WarpgroupNest> Match() {
    Stmt body = loop_.body;
    while (const auto* alloc = ir::As<ir::AllocNode>(body)) body = alloc->body;
    const auto* seq = ir::As<ir::SeqNode>(body);
    if (seq == nullptr || seq->stmts.size() != 3) {
      return Refuse("its body is not two copies and a product");
    }
    std::vector<StoreNest> copies;
    std::optional<StoreNest> product;
    for (const Stmt& stmt : seq->stmts) {
      StoreNest nest = NestOf(stmt);
      if (nest.store == nullptr) {
        return Refuse(
            "its body has more than copies and a product in loops of constant "
            "extents");
      }
      if (ir::ScopeOf(*nest.store->buffer) == ir::MemoryScope::kShared) {
        copies.push_back(std::move(nest));
      } else {
        product = std::move(nest);
      }
    }
    if (copies.size() != 2 || !product) {
      return Refuse("its body is not two copies and a product");
    }
    std::vector<WarpgroupOperand> operands;
    for (const StoreNest& copy : copies) {
      TF_ASSIGN_OR_RETURN(operands.emplace_back(), MatchCopy(copy, *product));
    }
    TF_RETURN_IF_ERROR(MatchProduct(*product, operands));
    TF_RETURN_IF_ERROR(CheckTile(out_.a));
    TF_RETURN_IF_ERROR(CheckTile(out_.b));
    return std::move(out_);
  }

 private:
  // The factors of a product, as found.
  struct Factor {
    const WarpgroupOperand* operand = nullptr;
    Expr row, column;  // in the tile
    bool rows_across = false;
    // Not along depth.
    const Expr& place() const { return rows_across ? column : row; }
    const Expr& along() const { return rows_across ? row : column; }
    int64_t places() const {
      return rows_across ? operand->columns : operand->rows;
    }
    // Of the tensor, of which the tile begins at element `first`.
    int64_t extent(bool rows) const {
      return rows ? operand->copy.tensor_rows : operand->copy.map.sizes.back();
    }
    const Expr& first(bool rows) const {
      return rows ? operand->copy.first_row : operand->copy.origin.back();
    }
  };

  absl::Status Refuse(const std::string& why) const {
    return absl::InvalidArgumentError(
        absl::StrCat("loop ", loop_.var->name, ": warpgroup products: ", why));
  }

  // Whether it is the loop of the common dimension, which no sum has.
  static bool IsAlongDepth(const Expr& index, const StoreNest& product) {
    const auto* var = ir::As<ir::VarNode>(index);
    return var != nullptr &&
           std::ranges::none_of(product.store->indices, [&](const Expr& sum) {
             return ir::UsesVar(sum, var);
           });
  }

  absl::StatusOr<WarpgroupOperand> MatchCopy(const StoreNest& copy,
                                             const StoreNest& product) {
    std::optional<std::vector<Expr>> factor;
    ir::PostOrderExprs(product.store->value, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      if (load != nullptr && load->buffer == copy.store->buffer) {
        factor = WideIndices(*load->buffer, load->indices);
      }
    });
    std::optional<std::vector<arith::CopiedTile::Used>> windows;
    if (factor && !factor->empty() && !IsAlongDepth(factor->front(), product)) {
      windows.emplace();
      for (const Expr& condition : product.conditions) {
        const auto* less = ir::As<ir::BinaryNode>(condition);
        const auto count = less != nullptr && less->op == BinaryOp::kLT
                               ? ir::AsInt(less->b)
                               : std::nullopt;
        if (!count) continue;
        windows->push_back({math_.Simplify(less->a - factor->front()), *count});
      }
    }
    absl::StatusOr<WarpgroupOperand> out =
        MatchFetch(copy, loop_, std::move(windows), math_);
    if (!out.ok()) return Refuse(std::string(out.status().message()));
    return out;
  }

  absl::Status MatchProduct(const StoreNest& nest,
                            const std::vector<WarpgroupOperand>& operands) {
    const ir::StoreNode& store = *nest.store;
    out_.sums = store.buffer;
    if (ir::ScopeOf(*store.buffer) != ir::MemoryScope::kLocal) {
      return Refuse(absl::StrCat("the sums ", store.buffer->name,
                                 " are not local to threads"));
    }
    // sums = sums + cast(x) * cast(y)
    const auto* sum = ir::As<ir::BinaryNode>(store.value);
    const auto is_old = [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      if (load == nullptr || load->buffer != store.buffer) return false;
      for (size_t d = 0; d < load->indices.size(); ++d) {
        if (!SameExpr(load->indices[d], store.indices[d])) return false;
      }
      return true;
    };
    const ir::BinaryNode* product = nullptr;
    if (sum != nullptr && sum->op == BinaryOp::kAdd) {
      product = ir::As<ir::BinaryNode>(is_old(sum->a)   ? sum->b
                                       : is_old(sum->b) ? sum->a
                                                        : nullptr);
    }
    if (product == nullptr || product->op != BinaryOp::kMul) {
      return Refuse(
          absl::StrCat("it does not add products to ", store.buffer->name));
    }
    std::array<Factor, 2> factors;
    for (size_t i = 0; i < 2; ++i) {
      const auto* cast = ir::As<ir::CastNode>(i == 0 ? product->a : product->b);
      const auto* load =
          cast == nullptr ? nullptr : ir::As<ir::LoadNode>(cast->value);
      for (const WarpgroupOperand& operand : operands) {
        if (load == nullptr || load->buffer != operand.tile) continue;
        const auto wide = WideIndices(*load->buffer, load->indices);
        if (wide) factors[i] = {&operand, (*wide)[0], (*wide)[1]};
      }
    }
    if (factors[0].operand == nullptr || factors[1].operand == nullptr ||
        factors[0].operand == factors[1].operand) {
      return Refuse("the factors are not elements of the two tiles");
    }
    const ir::DataType dtype = factors[0].operand->tile->dtype;
    out_.unit = ir::FindWarpgroupUnit(dtype, store.buffer->dtype);
    if (out_.unit == nullptr || factors[1].operand->tile->dtype != dtype) {
      return Refuse(
          absl::StrCat("the matrix unit has no products of ", dtype.ToString(),
                       " and ", factors[1].operand->tile->dtype.ToString(),
                       " with sums of ", store.buffer->dtype.ToString()));
    }
    const ForNode* depth = FindDepth(nest, factors);
    if (depth == nullptr) {
      return Refuse("no loop is the common dimension of the tiles");
    }
    out_.depth = *ir::AsInt(depth->extent);
    for (const Factor& factor : factors) {
      const int64_t extent =
          factor.rows_across ? factor.operand->rows : factor.operand->columns;
      if (extent != out_.depth) {
        return Refuse("its common dimension is not that of the tiles");
      }
    }
    const std::string why = Distribute(nest, *depth, factors[0], factors[1]);
    if (!why.empty()) {
      if (!Distribute(nest, *depth, factors[1], factors[0]).empty()) {
        return Refuse(why);
      }
      std::swap(factors[0], factors[1]);
    }
    out_.a = *factors[0].operand;
    out_.a.rows_across = factors[0].rows_across;
    out_.b = *factors[1].operand;
    out_.b.rows_across = factors[1].rows_across;
    Widen(out_.a, RowsOfBlock());
    Widen(out_.b, out_.columns);
    return CheckConditions(nest, factors);
  }

  int64_t RowsOfBlock() const {
    return out_.warpgroups * out_.products * ir::kWarpgroupRows;
  }

  // A tile that is as long as a smaller tensor is fetched with zeros beyond.
  static bool Covers(const Factor& factor, int64_t places) {
    return factor.places() == places ||
           (factor.places() < places &&
            factor.places() == factor.extent(!factor.rows_across));
  }
  static void Widen(WarpgroupOperand& operand, int64_t places) {
    (operand.rows_across ? operand.columns : operand.rows) = places;
  }

  // The loop that is an index of both tiles; sets where the others are.
  static const ForNode* FindDepth(const StoreNest& nest,
                                  std::array<Factor, 2>& factors) {
    for (const ForNode* loop : nest.loops) {
      bool fits = true;
      for (Factor& factor : factors) {
        const bool is_row = factor.row.get() == loop->var.get();
        const bool is_column = factor.column.get() == loop->var.get();
        factor.rows_across = is_row;
        fits &= is_row != is_column;
      }
      for (const Expr& index : nest.store->indices) {
        fits &= !ir::UsesVar(index, loop->var.get());
      }
      if (fits) return loop;
    }
    return nullptr;
  }

  // Finds which sum is in which register, with `a` as the rows. Returns why the
  // threads have other sums than those that the matrix unit gives them.
  std::string Distribute(const StoreNest& nest, const ForNode& depth,
                         const Factor& a, const Factor& b) {
    if (threads_ % ir::kWarpgroup != 0) {
      return absl::StrCat("a block has ", threads_,
                          " threads, which are no whole warpgroups");
    }
    std::vector<const ForNode*> loops;
    int64_t count = 1;
    for (const ForNode* loop : nest.loops) {
      if (loop == &depth) continue;
      loops.push_back(loop);
      count *= *ir::AsInt(loop->extent);
      if (count > kMostRegisters) {
        return absl::StrCat("a thread has more than ", kMostRegisters, " sums");
      }
    }
    if (count != out_.sums->num_elements()) {
      return "a thread computes other elements than its sums";
    }
    Expr offset = ir::IntConst(0);
    for (size_t d = 0; d < nest.store->indices.size(); ++d) {
      offset = offset * out_.sums->shape[d] + nest.store->indices[d];
    }
    const int64_t warpgroups = threads_ / ir::kWarpgroup;
    int64_t warpgroup_step = 0;
    // First row of a product, row step, column step, pair -> register.
    std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, int64_t> sums;
    arith::VarValues values;
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i;
      for (const ForNode* loop : loops) {
        const int64_t extent = *ir::AsInt(loop->extent);
        values[loop->var.get()] = rest % extent;
        rest /= extent;
      }
      const auto at = [&](const Expr& e, int64_t thread) {
        values[thread_.get()] = thread;
        return arith::Evaluate(e, values);
      };
      const auto row = at(a.place(), 0), column = at(b.place(), 0);
      const auto sum = at(offset, 0);
      if (!row || !column || !sum || ir::UsesVar(offset, thread_.get())) {
        return "the indices of tiles and sums are not those of threads and "
               "loops alone";
      }
      if (i == 0 && warpgroups > 1) {
        warpgroup_step = at(a.place(), ir::kWarpgroup).value_or(*row) - *row;
      }
      const int64_t row_step = *row % ir::kWarpgroupRows / kSumsPeriod;
      const int64_t pair = *column % kSumsPeriod;
      bool fits = *row % kSumsPeriod == 0 && row_step < 2 && pair < kSumsPair;
      for (int64_t thread = 0; thread < threads_ && fits; ++thread) {
        const int64_t lane = thread % ir::kWarpLanes;
        const int64_t warp = thread % ir::kWarpgroup / ir::kWarpLanes;
        const int64_t group = thread / ir::kWarpgroup;
        fits = at(a.place(), thread) == *row + group * warpgroup_step +
                                            warp * kWarpRows + lane / 4 &&
               at(b.place(), thread) == *column + lane % 4 * kSumsPair;
      }
      if (!fits) {
        return "the threads have other sums than the matrix unit gives them "
               "(compiler/ir/warpgroup_product.h)";
      }
      sums[{*row - row_step * kSumsPeriod, row_step, *column / kSumsPeriod,
            pair}] = *sum;
    }
    return FindSteps(sums, count, warpgroups, warpgroup_step, a, b);
  }

  std::string FindSteps(
      const std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, int64_t>&
          sums,
      int64_t count, int64_t warpgroups, int64_t warpgroup_step,
      const Factor& a, const Factor& b) {
    std::vector<int64_t> rows;
    std::set<int64_t> all_rows;
    int64_t columns = 0;
    for (const auto& [place, sum] : sums) {
      const int64_t row = std::get<0>(place);
      if (rows.empty() || rows.back() != row) rows.push_back(row);
      columns = std::max(columns, (std::get<2>(place) + 1) * kSumsPeriod);
    }
    for (int64_t group = 0; group < warpgroups; ++group) {
      for (const int64_t row : rows) {
        all_rows.insert(row + group * warpgroup_step);
      }
    }
    const auto products = static_cast<int64_t>(rows.size());
    if (static_cast<int64_t>(sums.size()) != count ||
        count != products * 2 * columns / kSumsPeriod * kSumsPair ||
        !Covers(b, columns) ||
        static_cast<int64_t>(all_rows.size()) != products * warpgroups ||
        !Covers(a, products * warpgroups * ir::kWarpgroupRows) ||
        *all_rows.begin() != 0 || warpgroup_step % ir::kWarpgroupRows != 0 ||
        *all_rows.rbegin() !=
            (products * warpgroups - 1) * ir::kWarpgroupRows) {
      return "the sums of the threads are not the whole product of the tiles";
    }
    if (!ir::IsWarpgroupColumns(columns)) {
      return absl::StrCat("the matrix unit has no products of ", columns,
                          " columns");
    }
    out_.warpgroups = warpgroups;
    out_.products = products;
    out_.columns = columns;
    out_.warpgroup_step = warpgroup_step;
    out_.product_step = products > 1 ? rows[1] - rows[0] : 0;
    const auto step = [&](int64_t row, int64_t h, int64_t c, int64_t q) {
      const auto found = sums.find({row, h, c, q});
      return found == sums.end() ? 0 : found->second;
    };
    out_.sums_step = products > 1 ? step(rows[1], 0, 0, 0) : 0;
    out_.row_step = step(rows[0], 1, 0, 0);
    out_.column_step = columns > kSumsPeriod ? step(rows[0], 0, 1, 0) : 0;
    out_.pair_step = step(rows[0], 0, 0, 1);
    for (const auto& [place, sum] : sums) {
      const auto [row, h, c, q] = place;
      const int64_t product =
          products > 1 ? (row - rows[0]) / out_.product_step : 0;
      if (row != rows[0] + product * out_.product_step ||
          sum != product * out_.sums_step + h * out_.row_step +
                     c * out_.column_step + q * out_.pair_step) {
        return "the registers of the sums have no constant distances";
      }
    }
    return "";
  }

  // Each condition is on the loop as a whole, or that an element which a factor
  // is fetched from is in bounds; outside the fetched factors are 0.
  absl::Status CheckConditions(const StoreNest& nest,
                               const std::array<Factor, 2>& factors) {
    std::array<bool, 2> has_bound = {false, false};
    for (const Expr& condition : nest.conditions) {
      bool inside = ir::UsesVar(condition, thread_.get());
      for (const ForNode* loop : nest.loops) {
        inside |= ir::UsesVar(condition, loop->var.get());
      }
      if (!inside && !ir::UsesVar(condition, loop_.var.get())) {
        out_.conditions.push_back(condition);
        continue;
      }
      const auto* less = ir::As<ir::BinaryNode>(condition);
      const auto is_bound = [&](const Factor& factor, const Expr& index,
                                bool rows) {
        if (less == nullptr || less->op != BinaryOp::kLT) return false;
        // Of a slice up to the tensor's end, the element is some further.
        const auto limit = ir::AsInt(less->b);
        return limit && math_.Difference(factor.first(rows) + index, less->a) ==
                            factor.extent(rows) - *limit;
      };
      bool allowed = true;
      for (const Factor& factor : factors) {
        allowed &= is_bound(factor, factor.along(), factor.rows_across);
      }
      for (size_t i = 0; i < factors.size(); ++i) {
        const Factor& factor = factors[i];
        if (!is_bound(factor, factor.place(), !factor.rows_across)) continue;
        allowed = has_bound[i] = true;
      }
      if (!allowed) {
        return Refuse(absl::StrCat("the condition ", ir::ToString(condition),
                                   " is no bound of a tensor"));
      }
    }
    for (size_t i = 0; i < factors.size(); ++i) {
      const WarpgroupOperand& operand = *factors[i].operand;
      if (operand.copy.differs_beyond && !has_bound[i]) {
        return Refuse(absl::StrCat("it uses rows of ", operand.tile->name,
                                   " beyond those of windows"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckTile(const WarpgroupOperand& operand) const {
    const ir::BufferNode& tensor = *operand.tensor;
    const auto refuse = [&](const std::string& why) {
      return Refuse(absl::StrCat("the tile ", operand.tile->name, ": ", why));
    };
    if (operand.rows_across && !out_.unit->rows_across) {
      return refuse(absl::StrCat("rows of ", tensor.dtype.ToString(),
                                 " must be along the common dimension"));
    }
    const std::string why = WhyNoTile(operand);
    if (!why.empty()) return refuse(why);
    if (out_.depth % out_.unit->depth != 0) {
      return refuse(absl::StrCat("the common dimension ", out_.depth,
                                 " is no multiple of ", out_.unit->depth));
    }
    return absl::OkStatus();
  }

  const ForNode& loop_;
  const ir::Var& thread_;
  const int64_t threads_;
  IndexMath math_;
  WarpgroupNest out_;
};

}  // namespace

absl::StatusOr<WarpgroupNest> MatchWarpgroupNest(
    const ForNode& loop, const std::vector<const ForNode*>& around,
    const ir::Var& thread, int64_t threads) {
  return Matcher(loop, around, thread, threads).Match();
}

}  // namespace tilefarm::lower
