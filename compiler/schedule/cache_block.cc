#include "compiler/schedule/cache_block.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/scope_edit.h"

namespace tilefarm::schedule {

BlockNest MakeCopy(const std::string& name, const ir::Buffer& from,
                   const ir::Buffer& to, const arith::Region& region,
                   const arith::Region& whole, arith::Analyzer analyzer) {
  ir::BlockNode block;
  block.name = name;
  std::vector<std::pair<ir::Var, ir::Expr>> loops;
  std::vector<ir::Expr> indices;
  std::vector<ir::Range> point;
  ir::Expr predicate = ir::BoolConst(true);
  ir::Expr inside = ir::BoolConst(true);
  for (size_t i = 0; i < region.size(); ++i) {
    const ir::Var loop = ir::MakeVar(absl::StrCat("ax", i));
    const ir::Var var = ir::MakeVar(absl::StrCat("v", i));
    loops.emplace_back(loop, region[i].extent);
    analyzer.Bind(loop, ir::Range{ir::IntConst(0), region[i].extent});
    const ir::Expr binding = region[i].min + loop;
    block.iters.push_back(
        {var, ir::Range{ir::IntConst(0), ir::IntConst(to->shape[i])},
         ir::IterType::kSpatial, binding});
    indices.push_back(var);
    point.push_back({var, ir::IntConst(1)});
    const ir::Expr above = ir::LE(whole[i].min, binding);
    if (!analyzer.CanProve(above)) predicate = ir::And(predicate, above);
    const ir::Expr below = ir::LT(binding, whole[i].min + whole[i].extent);
    if (!analyzer.CanProve(below)) predicate = ir::And(predicate, below);
    if (to->shape[i] > from->shape[i]) {
      inside = ir::And(inside, ir::LT(var, ir::IntConst(from->shape[i])));
    }
  }
  block.predicate = analyzer.Simplify(predicate);
  block.reads.push_back({from, point});
  block.writes.push_back({to, point});
  ir::Expr value = ir::Load(from, indices);
  if (!ir::IsConstInt(inside, 1)) {
    const ir::Expr zero = to->dtype.is_float() ? ir::FloatConst(0, to->dtype)
                                               : ir::IntConst(0, to->dtype);
    value = ir::IfThenElseExpr(std::move(inside), std::move(value), zero);
  }
  block.body = ir::MakeStore(to, indices, std::move(value));
  BlockNest result;
  result.block = ir::BlockOf(std::move(block));
  result.nest = result.block;
  for (auto it = loops.rbegin(); it != loops.rend(); ++it) {
    result.nest = ir::MakeFor(it->first, it->second, result.nest);
  }
  return result;
}

std::vector<ir::BlockPtr> ReadersOfResult(const ScheduleState& state,
                                          const BlockScope& deps,
                                          const ir::BlockPtr& writer,
                                          const ir::BufferNode* buffer) {
  std::vector<ir::BlockPtr> readers;
  bool behind = false;
  for (const ir::BlockPtr& block : deps.children()) {
    if (block == writer) {
      behind = true;
      continue;
    }
    if (FindRegion(block->reads, buffer) == nullptr) continue;
    if (behind || !SharedLoops(state, block.get(), writer.get()).empty()) {
      readers.push_back(block);
    }
  }
  return readers;
}

CopyPlace PlaceAfter(const ScheduleState& state, const ir::BlockPtr& scope,
                     const ir::BlockPtr& writer,
                     const std::vector<ir::BlockPtr>& readers) {
  CopyPlace place;
  if (readers.empty()) {
    place.parent = scope;
    place.position = static_cast<int>(Statements(scope->body).size());
  } else {
    // Walk up from the writer to the first body that also contains a reader.
    for (ir::Stmt parent = state.Parent(writer.get()); parent != nullptr;
         parent = state.Parent(parent.get())) {
      bool has_reader = parent == scope;
      for (const ir::BlockPtr& reader : readers) {
        has_reader = has_reader || state.IsBelow(reader.get(), parent.get());
      }
      if (!has_reader) continue;
      place.parent = parent;
      place.position = PositionOf(BodyOf(parent.get()), writer.get()) + 1;
      break;
    }
  }
  TF_CHECK(place.parent != nullptr);
  LoopCut cut =
      CutLoops(state, writer.get(), ir::As<ir::ForNode>(place.parent));
  place.outer = std::move(cut.outer);
  place.inner = std::move(cut.inner);
  return place;
}

}  // namespace tilefarm::schedule
