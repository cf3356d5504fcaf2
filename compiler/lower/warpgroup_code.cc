#include "compiler/lower/warpgroup_code.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/ir/tensor_box.h"
#include "compiler/ir/visitor.h"
#include "compiler/ir/warpgroup_product.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/let_scope.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::MachineOp;
using ir::Stmt;

constexpr int64_t kUnitColumns = ir::kWarpProductColumns;
constexpr int64_t kSwizzledRows = 8;  // after which the swizzle repeats
constexpr int64_t kGroupWarps = ir::kWarpgroup / ir::kWarpLanes;

class WarpgroupCode {
 public:
  WarpgroupCode(IndexMath& math, const WarpMatrixNest& nest)
      : math_(math),
        nest_(nest),
        unit_(ir::kWarpProducts[static_cast<size_t>(nest.unit)]),
        row_(ir::kBoxRowBytes / nest.b.buffer->dtype.bytes()) {}

  absl::StatusOr<Stmt> Make(const WarpgroupWay& way,
                            const LoadFragment& load) const {
    if (!way.tile.empty() && nest_.b.buffer->name != way.tile) {
      return Refuse(
          absl::StrCat("the columns are not those of the tile ", way.tile));
    }
    TF_ASSIGN_OR_RETURN(ir::WarpgroupProduct product, CommonParts());
    LetScope scope;
    Expr a_base;
    if (way.first_in_tile) {
      TF_ASSIGN_OR_RETURN(a_base, FirstRowOfGroup(way.warp));
      // One number for all threads.
      a_base = scope.Define("first", Op(MachineOp::kUniform, {a_base}));
    }
    const WarpMatrixNest::Columns& column = nest_.columns.front();
    std::vector<Stmt> products;
    product.adds = !way.starts;
    for (const WarpMatrixNest::Step& step : nest_.steps) {
      product.b = At(nest_.b.buffer, nest_.b.base + (step.b + column.operand));
      for (const WarpMatrixNest::Rows& rows : nest_.rows) {
        if (way.first_in_tile) {
          product.a =
              ir::Load(nest_.a.buffer, {a_base + (rows.operand + step.a)});
        } else {
          product.a =
              scope.Define("a", Op(MachineOp::kFragment, {load(rows, step)}));
        }
        product.sums =
            At(nest_.sums, nest_.sums_base + (rows.sums + column.sums));
        product.row_step = rows.lower_sums - rows.sums;
        products.push_back(Effect(ir::MakeWarpgroupProduct(product)));
      }
      product.adds = true;
    }
    const Expr all = ir::Load(nest_.sums, {ir::IntConst(0)});
    const Expr count = ir::IntConst(nest_.sums->num_elements());
    products.insert(products.begin(),
                    Effect(MachineOp::kProductFence, {all, count}));
    products.push_back(Effect(MachineOp::kProductCommit, {}));
    products.push_back(
        Effect(MachineOp::kProductWait, {ir::IntConst(0), all, count}));
    return scope.Around(ir::MakeSeq(std::move(products)));
  }

 private:
  static absl::Status Refuse(const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrCat(ir::kByWarpgroups, ": ", why));
  }
  static Expr Op(MachineOp op, std::vector<Expr> args) {
    return ir::MakeMachineOp(op, std::move(args));
  }
  Expr At(const ir::Buffer& buffer, const Expr& index) const {
    return ir::Load(buffer, {math_.Simplify(index)});
  }

  // Whether it is where the swizzle begins anew.
  bool Begins(int64_t element) const {
    return element % (kSwizzledRows * row_) == 0;
  }
  bool Begins(const Expr& base, int64_t offset) const {
    const Linear sum = math_.Decompose(base);
    bool begins = Begins(sum.constant + offset);
    for (const auto& [atom, scale] : sum.terms) begins &= Begins(scale);
    return begins;
  }

  // Of the first operand in a tile: the warps of a group have 16 rows each.
  absl::StatusOr<Expr> FirstRowOfGroup(const ir::Var& warp) const {
    const WarpMatrixNest::Operand& a = nest_.a;
    bool fits = !a.in_registers && warp != nullptr && a.term == 1 &&
                a.apart == row_ && nest_.rows.size() == 1 &&
                nest_.rows[0].lower_operand - nest_.rows[0].operand ==
                    kSwizzledRows * row_ &&
                math_.Decompose(a.base).CoefficientOf(warp.get()) ==
                    ir::kWarpProductRows * row_ &&
                Begins(a.base, nest_.rows[0].operand);
    for (const WarpMatrixNest::Step& step : nest_.steps) {
      fits &= Begins(step.a - step.a % row_);
    }
    if (!fits) {
      return Refuse(absl::StrCat("a warp has not 16 rows of ", a.buffer->name,
                                 " beside those of the next one"));
    }
    const Expr first =
        ir::FloorDiv(warp, ir::IntConst(kGroupWarps)) * kGroupWarps;
    return ir::Substitute(a.base, {{warp.get(), first}});
  }

  absl::StatusOr<ir::WarpgroupProduct> CommonParts() const {
    const WarpMatrixNest::Operand& b = nest_.b;
    if (ir::FindWarpgroupUnit(unit_.b, unit_.sum) == nullptr ||
        unit_.a != unit_.b || unit_.a.bytes() != 2) {
      return Refuse(
          absl::StrCat("no products of ", unit_.a.ToString(), " in registers"));
    }
    ir::WarpgroupProduct product;
    product.columns = static_cast<int64_t>(nest_.columns.size()) * kUnitColumns;
    if (!ir::IsWarpgroupColumns(product.columns)) {
      return Refuse(
          absl::StrCat("no products of ", product.columns, " columns"));
    }
    product.pair_step = 1;
    if (nest_.columns.size() > 1) {
      product.column_step = nest_.columns[1].sums - nest_.columns[0].sums;
    }
    // Rows of the tile are along depth, or across it.
    const bool across = b.apart == 1 && b.term == row_;
    if (!across && !(b.term == 1 && b.apart == row_)) {
      return Refuse(absl::StrCat(b.buffer->name, " is no tile"));
    }
    TF_ASSIGN_OR_RETURN(const int64_t panel, PanelOf(across, product));
    if (across) product.b_tile_bytes = panel * b.buffer->dtype.bytes();
    bool begins = Begins(b.base, nest_.columns[0].operand);
    for (const WarpMatrixNest::Step& step : nest_.steps) {
      begins &= Begins(across ? step.b : step.b - step.b % row_);
    }
    if (!begins) {
      return Refuse(
          absl::StrCat("it begins inside of a tile of ", b.buffer->name));
    }
    return product;
  }

  // How far apart the columns of a row of one tile and of the next are. The
  // columns have to be side by side.
  absl::StatusOr<int64_t> PanelOf(bool across,
                                  const ir::WarpgroupProduct& product) const {
    const std::vector<WarpMatrixNest::Columns>& columns = nest_.columns;
    const auto groups = static_cast<size_t>(row_ / kUnitColumns);
    const int64_t swizzled = kSwizzledRows * row_;
    const int64_t panel = across && columns.size() > groups
                              ? columns[groups].operand - columns[0].operand
                              : swizzled;
    bool fits = Begins(panel);
    for (size_t j = 0; j < columns.size(); ++j) {
      const auto number = static_cast<int64_t>(j);
      const int64_t at =
          across ? static_cast<int64_t>(j / groups) * panel +
                       static_cast<int64_t>(j % groups) * kUnitColumns
                 : number * swizzled;
      fits &= columns[j].operand - columns[0].operand == at &&
              columns[j].sums - columns[0].sums == number * product.column_step;
    }
    if (!fits) return Refuse("its columns are not side by side");
    return panel;
  }

  IndexMath& math_;
  const WarpMatrixNest& nest_;
  const ir::WarpProduct& unit_;
  const int64_t row_;  // elements of a row of a tile
};

}  // namespace

absl::StatusOr<Stmt> MakeWarpgroupCode(IndexMath& math,
                                       const WarpMatrixNest& nest,
                                       const WarpgroupWay& way,
                                       const LoadFragment& load) {
  return WarpgroupCode(math, nest).Make(way, load);
}

}  // namespace tilefarm::lower
