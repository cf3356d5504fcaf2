#include "compiler/schedule/softmax_match.h"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/arith/analyzer.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/own_loops.h"

namespace tilefarm::schedule {
namespace {

absl::StatusOr<RowReduction> CheckReductionOver(const ScheduleState& state,
                                                const ir::BlockPtr& block,
                                                ir::BinaryOp op,
                                                std::string_view is_not) {
  const auto refuse = [&](std::string_view reason) {
    return state.Illegal(block.get(), reason);
  };
  RowReduction result;
  result.block = block;
  TF_ASSIGN_OR_RETURN(result.loops, CheckOwnLoops(state, block));
  const std::optional<Reducer> reducer = MatchReducer(*block);
  if (!reducer || reducer->op != op) return refuse(is_not);
  result.reducer = *reducer;
  const ir::DataType dtype = result.buffer()->dtype;
  if (!(dtype == ir::DataType::Float(32)) &&
      !(dtype == ir::DataType::Float(64))) {
    return refuse(absl::StrCat("it is of ", dtype.ToString(),
                               ", and the rounding is known for float32 and "
                               "float64"));
  }
  TF_RETURN_IF_ERROR(CheckNoAnnotations(state, block));
  for (const ir::IterVar& iter : block->iters) {
    if (!ir::IsConstInt(iter.dom.min, 0) || !ir::AsInt(iter.dom.extent)) {
      return refuse(absl::StrCat(iter.var->name,
                                 " does not start at 0, or has no constant "
                                 "extent"));
    }
    if (iter.type != ir::IterType::kReduce) continue;
    if (result.reduce != nullptr) {
      return refuse("it reduces over more than one variable");
    }
    result.reduce = &iter;
  }
  if (result.reduce == nullptr) return refuse("it reduces over no variable");
  return result;
}

// Maps variables of `total` to those of `largest` by the indices at which
// `total` reads; an error if they do not correspond.
absl::Status MatchVariables(const ScheduleState& state, Softmax& softmax) {
  const auto refuse = [&](std::string_view reason) {
    return state.Illegal(softmax.total.block.get(), reason);
  };
  const auto* load = ir::As<ir::LoadNode>(softmax.relative);
  const std::vector<ir::Expr>& written = softmax.largest.store().indices;
  for (const ir::IterVar& iter : softmax.total.block->iters) {
    if (&iter == softmax.total.reduce) continue;
    bool found = false;
    for (size_t d = 0; d < written.size(); ++d) {
      if (load->indices[d].get() != iter.var.get()) continue;
      for (const ir::IterVar& other : softmax.largest.block->iters) {
        if (other.var.get() != written[d].get() ||
            !arith::ExprEqual(other.dom.extent, iter.dom.extent)) {
          continue;
        }
        softmax.to_largest[iter.var.get()] = other.var;
        found = true;
      }
    }
    if (!found && !ir::IsConstInt(iter.dom.extent, 1)) {
      return refuse(absl::StrCat(iter.var->name, " tells apart no ",
                                 softmax.largest.block->name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

ir::Expr Softmax::Exp(const ir::Expr& x, const ir::Expr& m) const {
  const ir::Expr difference = x - m;
  return ir::MakeCall(ir::Intrinsic::kExp,
                      {scale == nullptr ? difference : difference * scale});
}

absl::StatusOr<Softmax> MatchSoftmax(const ScheduleState& state,
                                     const ir::BlockPtr& block) {
  const auto refuse = [&](std::string_view reason) {
    return state.Illegal(block.get(), reason);
  };
  constexpr char kNoSum[] =
      "it is no sum of exp(x - largest), as written or after the block that "
      "makes the exponentials was inlined";
  Softmax softmax;
  TF_ASSIGN_OR_RETURN(
      softmax.total,
      CheckReductionOver(state, block, ir::BinaryOp::kAdd, kNoSum));
  const auto* exp = ir::As<ir::CallNode>(softmax.total.reducer.value);
  if (exp == nullptr || exp->op != ir::Intrinsic::kExp) return refuse(kNoSum);
  const auto* difference = ir::As<ir::BinaryNode>(exp->args[0]);
  if (difference != nullptr && difference->op == ir::BinaryOp::kMul) {
    const auto* scale = ir::As<ir::FloatConstNode>(difference->b);
    if (scale == nullptr || !(scale->value > 0) ||
        !std::isfinite(scale->value)) {
      return refuse(kNoSum);
    }
    softmax.scale = difference->b;
    difference = ir::As<ir::BinaryNode>(difference->a);
  }
  if (difference == nullptr || difference->op != ir::BinaryOp::kSub) {
    return refuse(kNoSum);
  }
  const auto* load = ir::As<ir::LoadNode>(difference->b);
  if (load == nullptr) return refuse(kNoSum);
  softmax.exponent = difference->a;
  softmax.relative = difference->b;

  const ir::BlockPtr scope = state.Scope(block.get());
  TF_RETURN_IF_ERROR(CheckStagePipeline(state, scope.get()));
  const std::vector<ir::BlockPtr> writers =
      BlockScope(state, scope.get()).Writers(load->buffer.get());
  if (writers.size() != 1) {
    return refuse(absl::StrCat("no one block makes ", load->buffer->name));
  }
  const std::string no_maximum =
      absl::StrCat("it is no maximum of the exponents of ", block->name);
  TF_ASSIGN_OR_RETURN(
      softmax.largest,
      CheckReductionOver(state, writers[0], ir::BinaryOp::kMax, no_maximum));
  const RowReduction& largest = softmax.largest;
  // Both are computed in one pass, so nothing may overwrite the input of the
  // maximum, neither before the sum reads it nor later.
  const BlockScope deps(state, scope.get());
  for (const Dependency& dep : deps.dependencies()) {
    if (dep.src != largest.block || dep.kind != DepKind::kWar) continue;
    return refuse(absl::StrCat("block ", dep.dst->name, " overwrites what ",
                               largest.block->name, " reads"));
  }
  softmax.lowest = ir::As<ir::StoreNode>(largest.block->init)->value;
  const auto* lowest = ir::As<ir::FloatConstNode>(softmax.lowest);
  if (lowest == nullptr || !std::isfinite(lowest->value)) {
    return state.Illegal(largest.block.get(),
                         "it starts from no finite number: where a chunk is "
                         "-inf throughout, exponents relative to its own "
                         "largest are no numbers");
  }
  if (!(largest.buffer()->dtype == softmax.total.buffer()->dtype)) {
    return refuse(
        absl::StrCat("it is not of the type of ", largest.buffer()->name));
  }
  TF_RETURN_IF_ERROR(MatchVariables(state, softmax));
  softmax.extent = *ir::AsInt(softmax.total.reduce->dom.extent);
  // A variable of extent 1 may appear as itself or as 0.
  ir::VarMap vars = softmax.to_largest, zeros;
  vars[softmax.total.reduce->var.get()] = largest.reduce->var;
  for (const ir::BlockPtr& each : {block, largest.block}) {
    for (const ir::IterVar& iter : each->iters) {
      if (ir::IsConstInt(iter.dom.extent, 1)) {
        zeros[iter.var.get()] = ir::IntConst(0);
      }
    }
  }
  arith::Analyzer analyzer;
  const auto normal = [&](const ir::Expr& expr) {
    return analyzer.Simplify(ir::Substitute(expr, zeros));
  };
  if (!ir::IsConstInt(largest.reduce->dom.extent, softmax.extent) ||
      !arith::ExprEqual(normal(ir::Substitute(softmax.exponent, vars)),
                        normal(largest.reducer.value))) {
    return state.Illegal(largest.block.get(), no_maximum);
  }
  return softmax;
}

}  // namespace tilefarm::schedule
