// The nest of a thread becomes straight code of its warp:
//
//   for .., k, i, j:                       a0, b0 = load_matrix(..)   step 0
//     C[i, j] = C[i, j] + A[..] * B[..] -> a1, b1 = load_matrix(..)   step 1
//                                          C[..] = warp_product(a0, b0, C[..])
//                                          a0, b0 = load_matrix(..)   step 2
//                                          C[..] = warp_product(a1, b1, C[..])
//                                          ...
//
// The fragments of a step are loaded while the step before is multiplied. Or,
// by the unit of the warpgroup, as warpgroup_code.h says.
#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/let_scope.h"
#include "compiler/lower/warp_matrix_nest.h"
#include "compiler/lower/warpgroup_code.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::ForNode;
using ir::MachineOp;
using ir::Stmt;

// Straight code has at most so many products: a nest of more is a loop around
// them. Enough for the largest warp tile that registers hold, 64 x 128 or 128 x
// 64, and 8 steps.
constexpr int64_t kMostProducts = 512;
constexpr int64_t kChunkBytes = 16;  // of a row of a loaded matrix

Expr Op(MachineOp op, std::vector<Expr> args) {
  return ir::MakeMachineOp(op, std::move(args));
}

Expr Slice(const Expr& value, int first, int lanes) {
  if (first == 0 && lanes == value->dtype.lanes) return value;
  return Op(MachineOp::kSlice,
            {value, ir::IntConst(first), ir::IntConst(lanes)});
}

class WarpCode {
 public:
  WarpCode(IndexMath& math, const WarpMatrixNest& nest, const ir::Var& lane)
      : math_(math),
        nest_(nest),
        lane_(lane),
        unit_(ir::kWarpProducts[static_cast<size_t>(nest.unit)]) {}

  absl::StatusOr<Stmt> Make() {
    for (const bool is_a : {true, false}) {
      TF_RETURN_IF_ERROR(ChooseLoads(is_a));
    }
    std::vector<LetScope> scopes(nest_.steps.size());
    std::vector<Fragments> fragments;
    for (size_t s = 0; s < nest_.steps.size(); ++s) {
      fragments.push_back(Load(nest_.steps[s], scopes[s]));
    }
    Stmt code;
    for (size_t s = nest_.steps.size(); s-- > 0;) {
      Stmt products = Products(fragments[s]);
      code =
          code == nullptr
              ? products
              : scopes[s + 1].Around(ir::MakeSeq({std::move(products), code}));
    }
    return scopes[0].Around(std::move(code));
  }

  // The same by the unit of the warpgroup.
  absl::StatusOr<Stmt> MakeForWarpgroup(const WarpgroupWay& way) {
    if (!way.first_in_tile) TF_RETURN_IF_ERROR(ChooseLoads(/*is_a=*/true));
    return MakeWarpgroupCode(
        math_, nest_, way,
        [&](const WarpMatrixNest::Rows& rows,
            const WarpMatrixNest::Step& step) { return LoadA(rows, step.a); });
  }

 private:
  enum class Loads { kRows, kTransposed, kElements, kRegisters };
  // The registers of tiles; of split operands also of the low parts.
  struct Fragments {
    std::vector<Expr> a, b, a_low, b_low;
  };

  int64_t bytes(bool is_a) const {
    return (is_a ? nest_.a : nest_.b).buffer->dtype.bytes();
  }
  int64_t chunk(bool is_a) const { return kChunkBytes / bytes(is_a); }

  // How to load the operand.
  absl::Status ChooseLoads(bool is_a) {
    const WarpMatrixNest::Operand& operand = is_a ? nest_.a : nest_.b;
    Loads& loads = is_a ? a_loads_ : b_loads_;
    if (operand.in_registers) {
      loads = Loads::kRegisters;
      return absl::OkStatus();
    }
    const int64_t rows = chunk(is_a);
    const auto aligned = [&](int64_t apart) {
      if (apart % rows != 0) return false;
      Linear base = math_.Decompose(operand.base);
      bool ok = base.constant % rows == 0;
      for (const auto& [atom, scale] : base.terms) ok &= scale % rows == 0;
      const auto is_start = [&](int64_t offset) { return offset % rows == 0; };
      for (const auto& step : nest_.steps)
        ok &= is_start(is_a ? step.a : step.b);
      if (is_a) {
        for (const auto& tile : nest_.rows) ok &= is_start(tile.operand);
      } else {
        for (const auto& tile : nest_.columns) ok &= is_start(tile.operand);
      }
      return ok;
    };
    if (operand.term == 1 && aligned(operand.apart)) {
      loads = Loads::kRows;
    } else if (operand.apart == 1 && bytes(is_a) == 2 &&
               aligned(operand.term)) {
      loads = Loads::kTransposed;
    } else if (bytes(is_a) != 2) {
      loads = Loads::kElements;
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "rows of ", operand.buffer->name,
          " are not contiguous or not aligned to 16 bytes; storage_align pads "
          "them"));
    }
    return absl::OkStatus();
  }

  Expr LaneMod(int64_t n) const { return ir::FloorMod(lane_, ir::IntConst(n)); }
  Expr LaneDiv(int64_t n) const { return ir::FloorDiv(lane_, ir::IntConst(n)); }

  static Expr LoadMatrix(const WarpMatrixNest::Operand& operand,
                         const Expr& index, int matrices, bool transposed) {
    return Op(MachineOp::kLoadMatrix,
              {ir::Load(operand.buffer, {index}), ir::IntConst(matrices),
               ir::IntConst(transposed ? 1 : 0)});
  }

  // A register of the lane's part of a chunk; `first` is the chunk's first
  // term.
  static Expr Word(const WarpMatrixNest::Operand& operand, const Expr& first) {
    const int elements = 4 / operand.buffer->dtype.bytes();
    if (elements == 1) return ir::Load(operand.buffer, {first});
    return Op(MachineOp::kWords,
              {ir::Load(operand.buffer,
                        {ir::MakeRamp(first, ir::IntConst(operand.term),
                                      elements)})});
  }

  // The registers of one tile of a.
  Expr LoadA(const WarpMatrixNest::Rows& rows, int64_t step) const {
    const WarpMatrixNest::Operand& a = nest_.a;
    const Expr base = a.base + (rows.operand + step);
    const int64_t chunk_terms = chunk(true) * a.term;
    switch (a_loads_) {
      case Loads::kRows:
        return LoadMatrix(
            a, base + LaneMod(16) * a.apart + LaneDiv(16) * chunk_terms, 4,
            false);
      case Loads::kTransposed:
        return LoadMatrix(
            a,
            base + LaneMod(8) * a.term + LaneDiv(16) * chunk_terms +
                ir::FloorMod(LaneDiv(8), ir::IntConst(2)) * (8 * a.apart),
            4, true);
      case Loads::kElements:
      case Loads::kRegisters:
        break;
    }
    const bool mine_only = a_loads_ == Loads::kRegisters;
    const Expr mine = mine_only ? base
                                : base + LaneDiv(4) * a.apart +
                                      LaneMod(4) * (4 / bytes(true) * a.term);
    const int64_t next = mine_only ? 4 / bytes(true) : chunk_terms;
    Expr out;
    for (int i = 0; i < 4; ++i) {
      const int64_t below = i % 2 * (rows.lower_operand - rows.operand);
      const Expr word = Word(a, math_.Simplify(mine + (below + i / 2 * next)));
      out = out == nullptr ? word : Op(MachineOp::kConcat, {out, word});
    }
    return out;
  }

  // Those of one tile of b, or of two.
  Expr LoadB(int64_t offset, std::optional<int64_t> second) const {
    const WarpMatrixNest::Operand& b = nest_.b;
    Expr base = b.base + offset;
    const int64_t chunk_terms = chunk(false) * b.term;
    if (b_loads_ != Loads::kElements) {
      const bool transposed = b_loads_ == Loads::kTransposed;
      Expr index = transposed ? base + LaneMod(16) * b.term
                              : base + LaneMod(8) * b.apart +
                                    ir::FloorMod(LaneDiv(8), ir::IntConst(2)) *
                                        chunk_terms;
      if (second) index = index + LaneDiv(16) * (*second - offset);
      return LoadMatrix(b, index, second ? 4 : 2, transposed);
    }
    // Beside 32-bit registers every second term of 8 (warp_matrix_nest.h).
    const bool pairs = a_loads_ == Loads::kRegisters && bytes(false) == 4;
    const int64_t apart = pairs ? 2 * b.term : 4 / bytes(false) * b.term;
    const Expr mine = base + LaneDiv(4) * b.apart + LaneMod(4) * apart;
    return Op(MachineOp::kConcat,
              {Word(b, mine), Word(b, mine + (pairs ? b.term : chunk_terms))});
  }

  Fragments Load(const WarpMatrixNest::Step& step, LetScope& scope) {
    Fragments out;
    const auto add = [&](const char* name, const Expr& loaded, int tiles,
                         std::vector<Expr>& tile, std::vector<Expr>& low) {
      Expr value = scope.Define(name, loaded);
      Expr rest;
      if (unit_.split) {
        const Expr whole = value;
        value = scope.Define("high", Op(MachineOp::kRoundTf32, {whole}));
        rest = scope.Define("low", Op(MachineOp::kRoundTf32, {whole - value}));
      }
      const int lanes = value->dtype.lanes / tiles;
      for (int t = 0; t < tiles; ++t) {
        tile.push_back(Slice(value, t * lanes, lanes));
        if (unit_.split) low.push_back(Slice(rest, t * lanes, lanes));
      }
    };
    for (const WarpMatrixNest::Rows& rows : nest_.rows) {
      add("a", LoadA(rows, step.a), 1, out.a, out.a_low);
    }
    const size_t columns = nest_.columns.size();
    for (size_t j = 0; j < columns;) {
      const int64_t offset = nest_.columns[j].operand + step.b;
      std::optional<int64_t> second;
      if (b_loads_ != Loads::kElements && j + 1 < columns) {
        second = nest_.columns[j + 1].operand + step.b;
      }
      add("b", LoadB(offset, second), second ? 2 : 1, out.b, out.b_low);
      j += second ? 2 : 1;
    }
    return out;
  }

  Stmt Product(const Expr& a, const Expr& b, const WarpMatrixNest::Rows& rows,
               const WarpMatrixNest::Columns& columns) const {
    const auto pair = [&](int64_t row) {
      return ir::MakeRamp(
          math_.Simplify(nest_.sums_base + (row + columns.sums)),
          ir::IntConst(1), 2);
    };
    const Expr upper = pair(rows.sums), lower = pair(rows.lower_sums);
    LetScope scope;
    const Expr sums = scope.Define(
        "sums", Op(MachineOp::kWarpProduct,
                   {ir::IntConst(nest_.unit), a, b,
                    Op(MachineOp::kConcat, {ir::Load(nest_.sums, {upper}),
                                            ir::Load(nest_.sums, {lower})})}));
    return scope.Around(
        ir::MakeSeq({ir::MakeStore(nest_.sums, {upper}, Slice(sums, 0, 2)),
                     ir::MakeStore(nest_.sums, {lower}, Slice(sums, 2, 2))}));
  }

  // Independent products follow each other: small ones first.
  Stmt Products(const Fragments& fragments) const {
    std::vector<Stmt> stmts;
    const auto add = [&](const std::vector<Expr>& a,
                         const std::vector<Expr>& b) {
      for (size_t i = 0; i < nest_.rows.size(); ++i) {
        for (size_t j = 0; j < nest_.columns.size(); ++j) {
          stmts.push_back(Product(a[i], b[j], nest_.rows[i], nest_.columns[j]));
        }
      }
    };
    if (unit_.split) {
      add(fragments.a_low, fragments.b);
      add(fragments.a, fragments.b_low);
    }
    add(fragments.a, fragments.b);
    return ir::MakeSeq(std::move(stmts));
  }

  IndexMath& math_;
  const WarpMatrixNest& nest_;
  const ir::Var& lane_;
  const ir::WarpProduct& unit_;
  Loads a_loads_ = Loads::kRows, b_loads_ = Loads::kRows;
};

bool IsAnnotated(const ForNode& loop) {
  return loop.annotations.contains(ir::kWarpMatrix);
}

class MatrixLowerer : public ir::Mutator {
 public:
  explicit MatrixLowerer(const target::GpuLimits& limits) : limits_(limits) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }
  absl::Status status;

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    if (s.for_kind == ir::ForKind::kThreadBinding) {
      if (IsThreadLoop(s)) threads_of_block_.push_back(s.var);
      if (s.thread_tag == ir::ThreadTag(ir::ThreadAxis::kThreadY)) {
        warp_ = s.var;
      }
      const std::optional<ir::Var> outer = lane_;
      if (s.thread_tag == ir::ThreadTag(ir::ThreadAxis::kThreadX)) {
        lane_ = s.var;
        threads_ = *ir::AsInt(s.extent);
      }
      Stmt out = Descend(s, self);
      lane_ = outer;
      return out;
    }
    const LoopNest nest = PerfectNest(s);
    const ForNode* annotated = nullptr;
    int64_t iterations = 1;
    for (const ForNode* loop : nest.loops) {
      iterations *= *ir::AsInt(loop->extent);
      if (IsAnnotated(*loop)) annotated = loop;
    }
    if (IsAnnotated(s) && nest.store == nullptr) {
      Fail(
          s,
          "loops without conditions and other statements have to be around one "
          "store");
      return self;
    }
    if (annotated == nullptr || nest.store == nullptr) return Descend(s, self);
    absl::StatusOr<Stmt> out = Lower(nest, *annotated);
    if (out.ok()) return *std::move(out);
    // Perhaps the loops inside of this one.
    if (&s == annotated) {
      Fail(s, reason_.empty() ? Reason(out.status()) : reason_);
      return self;
    }
    // Of the whole nest, unless it is only too large.
    if (reason_.empty() && !absl::IsOutOfRange(out.status())) {
      reason_ = Reason(out.status());
    }
    Stmt inner = Descend(s, self);
    reason_.clear();
    return inner;
  }

  Stmt MutateIf(const ir::IfNode& s, const Stmt& self) override {
    conditions_.push_back(s.condition);
    Stmt out = Mutator::MutateIf(s, self);
    conditions_.pop_back();
    return out;
  }

  Stmt MutateLetStmt(const ir::LetStmtNode& s, const Stmt& self) override {
    if (Diverges(s.value)) lets_.insert(s.var.get());
    return Mutator::MutateLetStmt(s, self);
  }

 private:
  Stmt Descend(const ForNode& s, const Stmt& self) {
    const size_t mark = math_.Mark();
    BindLoop(math_, s);
    conditions_.push_back(s.extent);
    Stmt out = Mutator::MutateFor(s, self);
    conditions_.pop_back();
    math_.Restore(mark);
    return out;
  }

  static std::string Reason(const absl::Status& status) {
    return std::string(status.message());
  }

  void Fail(const ForNode& loop, std::string_view why) {
    if (!status.ok()) return;
    status = absl::InvalidArgumentError(absl::StrCat("loop ", loop.var->name,
                                                     ": ", ir::kWarpMatrix,
                                                     ": ", std::string(why)));
  }

  absl::StatusOr<Stmt> Lower(const LoopNest& nest, const ForNode& annotated) {
    const std::string* value =
        annotated.annotations.find(ir::kWarpMatrix)->second.AsString();
    if (value == nullptr)
      return absl::InvalidArgumentError("the value is no string");
    if (!lane_ || threads_ != ir::kWarpLanes) {
      return absl::InvalidArgumentError(
          "threadIdx.x has to have 32 iterations, the lanes of a warp");
    }
    for (const Expr& condition : conditions_) {
      if (!Diverges(condition)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("not all threads of a warp reach it (",
                       ir::ToString(condition), ")"));
    }
    const bool by_warpgroups = *value == ir::kByWarpgroups;
    TF_ASSIGN_OR_RETURN(const WarpMatrixNest found,
                        AnalyzeWarpMatrix(math_, nest, *lane_,
                                          by_warpgroups ? ir::kByWarps : *value,
                                          limits_.architecture));
    const int64_t products = static_cast<int64_t>(
        found.rows.size() * found.columns.size() * found.steps.size());
    if (products > kMostProducts) {
      return absl::OutOfRangeError(
          absl::StrCat("it has ", products, " products of tiles; at most ",
                       kMostProducts, " can be in a nest"));
    }
    WarpCode code(math_, found, *lane_);
    if (!by_warpgroups) return code.Make();
    for (const ir::Var& thread : threads_of_block_) {
      if (ir::UsesVar(found.b.base, thread.get())) {
        return absl::InvalidArgumentError(absl::StrCat(
            ir::kByWarpgroups, ": warps use different elements of ",
            found.b.buffer->name));
      }
    }
    const auto tile = annotated.annotations.find(ir::kTile);
    return code.MakeForWarpgroup(
        {.starts = annotated.annotations.contains(ir::kStartsSums),
         .first_in_tile = annotated.annotations.contains(ir::kFirstInTile),
         .tile = tile == annotated.annotations.end() ? ""
                                                     : *tile->second.AsString(),
         .warp = warp_});
  }

  // Whether threads of a warp may find different values.
  bool Diverges(const Expr& e) const {
    bool diverges = false;
    ir::PostOrderExprs(e, [&](const Expr& x) {
      diverges |= x->kind == ir::ExprKind::kLoad || x.get() == lane_->get();
      const auto* var = ir::As<ir::VarNode>(x);
      diverges |= var != nullptr && lets_.contains(var);
    });
    return diverges;
  }

  const target::GpuLimits& limits_;
  IndexMath math_;
  std::optional<ir::Var> lane_;
  std::vector<ir::Var> threads_of_block_;
  ir::Var warp_;  // of threadIdx.y; null: there is none
  int64_t threads_ = 0;
  std::vector<Expr> conditions_;  // also extents of loops
  std::set<const ir::VarNode*> lets_;
  std::string reason_;  // why the nest around this loop was refused
};

}  // namespace

absl::StatusOr<Stmt> LowerWarpMatrices(const Stmt& stmt,
                                       const target::GpuLimits& limits) {
  MatrixLowerer lowerer(limits);
  Stmt out = lowerer.Mutate(stmt);
  if (!lowerer.status.ok()) return lowerer.status;
  return out;
}

}  // namespace tilefarm::lower
