#include "cost_model/skeleton/former_variables.h"

#include <algorithm>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::skeleton {
namespace {

// The variable as the program has it.
ir::Expr ValueOfVariable(const NestedBlock& nested, const ir::BlockNode& block,
                         size_t variable) {
  if (variable < block.iters.size()) return block.iters[variable].var;
  ir::Expr value = ir::IntConst(0);
  for (const LoopPart& part :
       nested.written_out[variable - block.iters.size()]) {
    ir::Expr whole =
        ValueOfVariable(nested, block, static_cast<size_t>(part.loop));
    if (part.upper != 0) whole = ir::FloorMod(whole, ir::IntConst(part.upper));
    if (part.lower != 1) whole = ir::FloorDiv(whole, ir::IntConst(part.lower));
    value = value + whole * part.coefficient;
  }
  return value;
}

}  // namespace

// An index is factor * former + other variables + constant.
absl::Status FindFormerVariables(const NestedBlock& nested,
                                 const ir::BlockNode& block,
                                 std::vector<IndexExpr>& indices) {
  arith::Analyzer analyzer;
  VarNumbers parts, others;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const ir::IterVar& iter = block.iters[i];
    analyzer.Bind(iter.var, iter.dom);
    bool is_part = false;
    for (const std::vector<LoopPart>& former : nested.written_out) {
      for (const LoopPart& part : former) {
        is_part |= part.loop == static_cast<int>(i);
      }
    }
    (is_part ? parts : others).emplace(iter.var.get(), static_cast<int>(i));
  }
  for (IndexExpr& index : indices) {
    // By itself the factored loop's variable is the place of a partial result.
    const bool is_place =
        index.linear && index.terms.size() == 1 && index.terms[0].first == 0;
    const bool uses_parts = std::ranges::any_of(parts, [&](const auto& part) {
      return ir::UsesVar(index.expr, part.first);
    });
    if (is_place || !uses_parts) continue;
    bool found = false;
    // Strides and dilations are small.
    for (int64_t factor = 1; factor <= 8 && !found; ++factor) {
      for (size_t g = 0; g < nested.written_out.size() && !found; ++g) {
        const size_t former = block.iters.size() + g;
        const ir::Expr value = ValueOfVariable(nested, block, former) * factor;
        IndexExpr rest =
            ReadIndex(analyzer.Simplify(index.expr - value), others);
        if (!(found = rest.linear)) continue;
        rest.expr = index.expr;
        rest.terms.emplace(rest.terms.begin(), former, factor);
        index = std::move(rest);
      }
    }
    if (!found) {
      return absl::UnimplementedError(
          "no skeleton: an index that divides a factored variable");
    }
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::skeleton
