#include "compiler/lower/warp_matrix_nest.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;

absl::Status Refuse(const std::string& why) {
  return absl::InvalidArgumentError(why);
}

const ir::LoadNode* PlainLoad(const Expr& e) {
  const auto* load = ir::As<ir::LoadNode>(e);
  return load != nullptr && load->predicate == nullptr ? load : nullptr;
}

// The update C[i] = C[i] + a * b.
struct ProductUpdate {
  const ir::LoadNode* a = nullptr;
  const ir::LoadNode* b = nullptr;
};

std::optional<ProductUpdate> AsProductUpdate(const ir::StoreNode& store) {
  const auto* sum = ir::As<ir::BinaryNode>(store.value);
  if (store.predicate != nullptr || sum == nullptr ||
      sum->op != ir::BinaryOp::kAdd) {
    return std::nullopt;
  }
  const bool first = IsElementOf(sum->a, store);
  if (!first && !IsElementOf(sum->b, store)) return std::nullopt;
  const auto* product = ir::As<ir::BinaryNode>(first ? sum->b : sum->a);
  if (product == nullptr || product->op != ir::BinaryOp::kMul) {
    return std::nullopt;
  }
  const auto operand = [](const Expr& e) {
    const auto* cast = ir::As<ir::CastNode>(e);
    return PlainLoad(cast != nullptr ? cast->value : e);
  };
  const ProductUpdate update{operand(product->a), operand(product->b)};
  if (update.a == nullptr || update.b == nullptr) return std::nullopt;
  return update;
}

// An index as base + sum of coefficient * loop + lane's offset.
struct LaneIndex {
  Expr base;
  std::vector<int64_t> loops;
  std::array<int64_t, ir::kWarpLanes> lanes{};
};

std::optional<LaneIndex> LaneIndexOf(IndexMath& math, const LoopNest& nest,
                                     const ir::Var& lane, const Expr& index) {
  LaneIndex form;
  Linear rest = math.Decompose(index);
  for (const ir::ForNode* loop : nest.loops) {
    const int64_t coefficient = rest.CoefficientOf(loop->var.get());
    form.loops.push_back(coefficient);
    if (coefficient != 0) rest.AddTerm(loop->var, -coefficient);
  }
  const Expr fixed = rest.ToExpr();
  for (const ir::ForNode* loop : nest.loops) {
    if (ir::UsesVar(fixed, loop->var.get())) return std::nullopt;
  }
  bool loads = false;
  ir::PostOrderExprs(
      fixed, [&](const Expr& e) { loads |= e->kind == ir::ExprKind::kLoad; });
  if (loads) return std::nullopt;
  const auto at = [&](int l) {
    return math.Simplify(
        ir::Substitute(fixed, {{lane.get(), ir::IntConst(l)}}));
  };
  form.base = at(0);
  for (int l = 1; l < ir::kWarpLanes; ++l) {
    const auto offset = math.Difference(at(l), form.base);
    if (!offset) return std::nullopt;
    form.lanes[static_cast<size_t>(l)] = *offset;
  }
  return form;
}

bool IsSameForLanes(const LaneIndex& form) {
  return std::ranges::all_of(form.lanes, [](int64_t x) { return x == 0; });
}

// Lane l has row l / 4: the distance of rows. 0: it has not.
int64_t RowsApart(const LaneIndex& form) {
  const int64_t apart = form.lanes[4];
  for (int l = 0; l < ir::kWarpLanes; ++l) {
    if (form.lanes[static_cast<size_t>(l)] != l / 4 * apart) return 0;
  }
  return apart;
}

// Lane l has column l % 4 * 2: the distance of columns. 0: it has not.
int64_t ColumnsApart(const LaneIndex& form) {
  const int64_t apart = form.lanes[1] / 2;
  for (int l = 0; l < ir::kWarpLanes; ++l) {
    if (form.lanes[static_cast<size_t>(l)] != l % 4 * 2 * apart) return 0;
  }
  return apart;
}

// Where the iterations of some loops access two buffers: the second offsets by
// the first. Empty if two iterations have the same first offset.
std::map<int64_t, int64_t> Offsets(const LoopNest& nest,
                                   const std::vector<size_t>& loops,
                                   const LaneIndex& first,
                                   const LaneIndex& second) {
  std::map<int64_t, int64_t> offsets = {{0, 0}};
  for (const size_t i : loops) {
    std::map<int64_t, int64_t> more;
    const int64_t extent = *ir::AsInt(nest.loops[i]->extent);
    for (const auto& [x, y] : offsets) {
      for (int64_t v = 0; v < extent; ++v) {
        if (!more.emplace(x + v * first.loops[i], y + v * second.loops[i])
                 .second) {
          return {};
        }
      }
    }
    offsets = std::move(more);
  }
  return offsets;
}

class NestAnalyzer {
 public:
  NestAnalyzer(IndexMath& math, const LoopNest& nest, const ir::Var& lane)
      : math_(math), nest_(nest), lane_(lane) {}

  absl::StatusOr<WarpMatrixNest> Analyze(std::string_view value,
                                         int architecture) {
    const ir::StoreNode& store = *nest_.store;
    std::optional<ProductUpdate> update = AsProductUpdate(store);
    if (!update) return Refuse("its body is no C[..] = C[..] + A[..] * B[..]");
    if (ir::ScopeOf(*store.buffer) != ir::MemoryScope::kLocal) {
      return Refuse(
          absl::StrCat("the sums ", store.buffer->name,
                       " are not in a buffer of the scope \"local\""));
    }
    if (IsInRegisters(*update->b)) std::swap(update->a, update->b);
    out_.a.in_registers = IsInRegisters(*update->a);
    for (const ir::LoadNode* load : {update->a, update->b}) {
      if (ir::ScopeOf(*load->buffer) != ir::MemoryScope::kShared &&
          !(load == update->a && out_.a.in_registers)) {
        return Refuse(absl::StrCat("the operand ", load->buffer->name,
                                   " is not in a buffer of the scope "
                                   "\"shared\""));
      }
    }
    std::optional<LaneIndex> sums =
        LaneIndexOf(math_, nest_, lane_, store.indices[0]);
    std::optional<LaneIndex> a =
        LaneIndexOf(math_, nest_, lane_, update->a->indices[0]);
    std::optional<LaneIndex> b =
        LaneIndexOf(math_, nest_, lane_, update->b->indices[0]);
    if (!sums || !a || !b) {
      return Refuse("an index is not affine in the loops and the lane");
    }
    if (!out_.a.in_registers && RowsApart(*a) == 0) {
      std::swap(a, b);
      std::swap(update->a, update->b);
    }
    out_.a.apart = out_.a.in_registers ? 0 : RowsApart(*a);
    out_.b.apart = ColumnsApart(*b);
    if (!IsSameForLanes(*sums) || out_.b.apart == 0 ||
        (out_.a.in_registers ? !IsSameForLanes(*a) : out_.a.apart == 0)) {
      return Refuse(
          "thread l of a warp does not have the rows l / 4 of one operand and "
          "the columns l % 4 * 2 of the other");
    }
    TF_RETURN_IF_ERROR(ChooseUnit(*update, value, architecture));
    TF_RETURN_IF_ERROR(SortLoops(*sums, *a, *b));
    TF_RETURN_IF_ERROR(FindRows(*sums, *a));
    TF_RETURN_IF_ERROR(FindColumns(*sums, *b));
    TF_RETURN_IF_ERROR(out_.a.in_registers ? FindRegisterSteps(*a, *b)
                                           : FindSteps(*a, *b));
    out_.a.buffer = update->a->buffer;
    out_.a.base = a->base;
    out_.b.buffer = update->b->buffer;
    out_.b.base = b->base;
    out_.sums = store.buffer;
    out_.sums_base = sums->base;
    return std::move(out_);
  }

 private:
  // Whether the nest reads the operand of all threads of a quad (ir::kOfQuad).
  // Without such a loop it means what it says: the operand of this thread.
  bool IsInRegisters(const ir::LoadNode& operand) const {
    return ir::ScopeOf(*operand.buffer) == ir::MemoryScope::kLocal &&
           std::ranges::any_of(nest_.loops, [](const ir::ForNode* loop) {
             return loop->annotations.contains(ir::kOfQuad);
           });
  }

  absl::Status ChooseUnit(const ProductUpdate& update, std::string_view value,
                          int architecture) {
    const ir::DataType a = update.a->dtype, b = update.b->dtype,
                       sum = nest_.store->value->dtype;
    bool known = false;
    for (size_t i = 0; i < ir::kWarpProducts.size(); ++i) {
      const ir::WarpProduct& unit = ir::kWarpProducts[i];
      known |= unit.annotation == value;
      if (unit.annotation != value || unit.a != a || unit.b != b ||
          unit.sum != sum) {
        continue;
      }
      if (unit.architecture > architecture) {
        return Refuse(absl::StrCat(
            "the target has no products ", std::string(unit.shape), ".",
            std::string(unit.types), "; sm_", unit.architecture, " has"));
      }
      out_.unit = static_cast<int>(i);
      return absl::OkStatus();
    }
    if (!known) {
      return Refuse(absl::StrCat("there is no kind \"", std::string(value),
                                 "\" of units"));
    }
    return Refuse(absl::StrCat("no unit of the kind \"", std::string(value),
                               "\" multiplies ", a.ToString(), " by ",
                               b.ToString(), " into ", sum.ToString()));
  }

  // Which loops are over rows, columns and terms.
  absl::Status SortLoops(const LaneIndex& sums, const LaneIndex& a,
                         const LaneIndex& b) {
    for (size_t i = 0; i < nest_.loops.size(); ++i) {
      const bool in_sums = sums.loops[i] != 0, in_a = a.loops[i] != 0,
                 in_b = b.loops[i] != 0;
      if (in_sums && in_a && !in_b) {
        row_loops_.push_back(i);
      } else if (in_sums && in_b && !in_a) {
        column_loops_.push_back(i);
      } else if (!in_sums && in_a && in_b) {
        term_loops_.push_back(i);
      } else if (out_.a.in_registers && !in_sums && in_b && !quad_loop_ &&
                 nest_.loops[i]->annotations.contains(ir::kOfQuad)) {
        quad_loop_ = i;
      } else {
        return Refuse(absl::StrCat("loop ", nest_.loops[i]->var->name,
                                   " is over neither rows, columns nor terms"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status FindRows(const LaneIndex& sums, const LaneIndex& a) {
    auto left = Offsets(nest_, row_loops_, a, sums);
    const int64_t below = 8 * out_.a.apart;
    while (!left.empty()) {
      const auto upper = *left.begin();
      left.erase(left.begin());
      // An instruction multiplies each row on its own: those of registers can
      // be any pair, as long as operand and sums have the same one.
      const auto lower =
          out_.a.in_registers ? left.begin() : left.find(upper.first + below);
      if (lower == left.end()) break;
      out_.rows.push_back(
          {upper.second, lower->second, upper.first, lower->first});
      left.erase(lower);
      if (left.empty()) return absl::OkStatus();
    }
    return Refuse("a thread's rows are not pairs, 8 rows apart");
  }

  absl::Status FindColumns(const LaneIndex& sums, const LaneIndex& b) {
    auto left = Offsets(nest_, column_loops_, b, sums);
    while (!left.empty()) {
      const auto first = *left.begin();
      left.erase(left.begin());
      const auto second = left.find(first.first + out_.b.apart);
      if (second == left.end() || second->second != first.second + 1) break;
      out_.columns.push_back({first.second, first.first});
      left.erase(second);
      if (left.empty()) return absl::OkStatus();
    }
    return Refuse(
        "a thread's columns are not pairs of neighbours, in the sums as well");
  }

  absl::Status FindSteps(const LaneIndex& a, const LaneIndex& b) {
    auto left = Offsets(nest_, term_loops_, a, b);
    const int64_t terms =
        ir::kWarpProducts[static_cast<size_t>(out_.unit)].terms;
    if (left.size() > 1) {
      const auto second = std::next(left.begin());
      out_.a.term = second->first - left.begin()->first;
      out_.b.term = second->second - left.begin()->second;
    }
    while (!left.empty()) {
      const auto [x, y] = *left.begin();
      for (int64_t t = 0; t < terms; ++t) {
        const auto found = left.find(x + t * out_.a.term);
        if (found == left.end() || found->second != y + t * out_.b.term) {
          return Refuse(
              absl::StrCat("the terms of both operands are not in "
                           "groups of ",
                           terms, ", equally far apart"));
        }
        left.erase(found);
      }
      out_.steps.push_back({x, y});
    }
    if (out_.steps.empty()) return Refuse("it has no loop over terms");
    return absl::OkStatus();
  }

  // Term 8 * c + 2 * q + p of an instruction is element 2 * c + p of the q-th
  // thread of a quad.
  absl::Status FindRegisterSteps(const LaneIndex& a, const LaneIndex& b) {
    const ir::WarpProduct& unit =
        ir::kWarpProducts[static_cast<size_t>(out_.unit)];
    if (unit.a.bytes() < 2) {
      return Refuse(
          absl::StrCat("an operand in registers has numbers of 16 or 32 bits, "
                       "not ",
                       unit.a.ToString()));
    }
    const int64_t own = unit.terms / ir::kQuadLanes;
    auto left = Offsets(nest_, term_loops_, a, b);
    const auto refuse = [] {
      return Refuse(
          "a thread does not have 2 of every 8 terms of the operand in "
          "registers, side by side with those of the next 8");
    };
    if (static_cast<int64_t>(left.size()) < own || !quad_loop_ ||
        !ir::IsConstInt(nest_.loops[*quad_loop_]->extent, ir::kQuadLanes)) {
      return refuse();
    }
    out_.a.term = 1;
    out_.b.term = std::next(left.begin())->second - left.begin()->second;
    if (b.loops[*quad_loop_] != 2 * out_.b.term) return refuse();
    while (!left.empty()) {
      const auto [x, y] = *left.begin();
      for (int64_t i = 0; i < own; ++i) {
        const auto found = left.find(x + i);
        if (found == left.end() ||
            found->second != y + (i / 2 * 8 + i % 2) * out_.b.term) {
          return refuse();
        }
        left.erase(found);
      }
      out_.steps.push_back({x, y});
    }
    return absl::OkStatus();
  }

  IndexMath& math_;
  const LoopNest& nest_;
  const ir::Var& lane_;
  WarpMatrixNest out_;
  std::vector<size_t> row_loops_, column_loops_, term_loops_;
  std::optional<size_t> quad_loop_;
};

}  // namespace

LoopNest PerfectNest(const ir::ForNode& outermost) {
  LoopNest nest;
  for (const ir::ForNode* at = &outermost; at != nullptr;
       at = ir::As<ir::ForNode>(at->body)) {
    if (!ir::IsConstInt(at->min, 0) || !ir::AsInt(at->extent) ||
        (at->for_kind != ir::ForKind::kSerial &&
         at->for_kind != ir::ForKind::kUnrolled)) {
      return nest;
    }
    nest.loops.push_back(at);
    nest.store = ir::As<ir::StoreNode>(at->body);
  }
  return nest;
}

absl::StatusOr<WarpMatrixNest> AnalyzeWarpMatrix(IndexMath& math,
                                                 const LoopNest& nest,
                                                 const ir::Var& lane,
                                                 std::string_view value,
                                                 int architecture) {
  const size_t mark = math.Mark();
  for (const ir::ForNode* loop : nest.loops) BindLoop(math, *loop);
  auto out = NestAnalyzer(math, nest, lane).Analyze(value, architecture);
  math.Restore(mark);
  return out;
}

}  // namespace tilefarm::lower
