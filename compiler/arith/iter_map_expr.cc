// Converts iteration maps back to expressions, and inverts them.
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "compiler/arith/iter_map.h"

namespace tilefarm::arith {

using ir::Expr;

Expr ToExpr(const IterSplit& split) {
  const IterMark& mark = *split.mark;
  Expr source = mark.var != nullptr ? Expr(mark.var) : ToExpr(mark.sum);
  if (mark.var_min != nullptr) source = source - mark.var_min;
  const int64_t end = split.lower_factor * split.extent;
  if (end != mark.extent) {
    source = ir::FloorMod(std::move(source), ir::IntConst(end));
  }
  source = ir::FloorDiv(std::move(source), ir::IntConst(split.lower_factor));
  return std::move(source) * split.scale;
}

Expr ToExpr(const IterSum& sum) {
  Expr out;
  for (const IterSplit& split : sum.splits) {
    Expr part = ToExpr(split);
    out = out == nullptr ? part : std::move(out) + std::move(part);
  }
  return out == nullptr ? sum.base : std::move(out) + sum.base;
}

ir::VarMap InverseIterMap(const std::vector<IterSum>& map,
                          const std::vector<Expr>& outputs) {
  // Order the marks such that each comes before its parts.
  std::vector<const IterMark*> order;
  std::unordered_set<const IterMark*> seen;
  const auto visit = [&](const auto& self, const IterMark* mark) -> void {
    if (!seen.insert(mark).second) return;
    for (const IterSplit& split : mark->sum.splits) {
      self(self, split.mark.get());
    }
    order.push_back(mark);
  };
  std::unordered_map<const IterMark*, Expr> values;
  const auto add = [&](const IterSplit& split, const Expr& value) {
    Expr part = value * split.lower_factor;
    Expr& slot = values[split.mark.get()];
    slot = slot == nullptr ? part : slot + part;
  };
  for (size_t i = 0; i < map.size(); ++i) {
    for (const IterSplit& split : map[i].splits) {
      visit(visit, split.mark.get());
      // Each binding consists of one fused split.
      add(split,
          ir::FloorDiv(outputs[i] - map[i].base, ir::IntConst(split.scale)));
    }
  }
  ir::VarMap out;
  Analyzer analyzer;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const IterMark* mark = *it;
    const Expr value = values[mark];
    if (value == nullptr) continue;
    if (mark->var != nullptr) {
      out[mark->var.get()] = analyzer.Simplify(
          mark->var_min == nullptr ? value : value + mark->var_min);
      continue;
    }
    bool outermost = true;
    for (const IterSplit& split : mark->sum.splits) {
      if (split.extent == 1) {
        add(split, ir::IntConst(0));
        continue;
      }
      Expr part = ir::FloorDiv(value, ir::IntConst(split.scale));
      if (!outermost) {
        part = ir::FloorMod(std::move(part), ir::IntConst(split.extent));
      }
      outermost = false;
      add(split, part);
    }
  }
  return out;
}

}  // namespace tilefarm::arith
