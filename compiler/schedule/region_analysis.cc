#include "compiler/schedule/region_analysis.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/arith/conjuncts.h"
#include "compiler/arith/iter_map.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/even_domain.h"
#include "compiler/schedule/scope_edit.h"
#include "compiler/schedule/thread_binding.h"

namespace tilefarm::schedule {
namespace {

bool IsOne(const ir::Expr& extent) { return ir::IsConstInt(extent, 1); }

// Whether iterations of the loop share the buffer: the loop is bound to threads
// of a GPU block ("warp": to the lanes of a warp; "shared.cluster": or to
// blocks of a cluster), and the buffer is in their shared memory. Each thread
// has its own "local" buffers. Each iteration also computes its own part of a
// "global" buffer (as in TVM).
bool SharedAcross(const ir::BufferNode& buffer, const ir::ForNode& loop) {
  if (loop.for_kind != ir::ForKind::kThreadBinding) return false;
  if (buffer.scope == "warp") return loop.thread_tag == "threadIdx.x";
  if (IsClusterAxis(loop.thread_tag)) return buffer.scope == "shared.cluster";
  return buffer.scope.starts_with("shared") && !IsBlockAxis(loop.thread_tag);
}

// Whether the statement stores the element that is the region.
bool IsStoreTo(const ir::BufferRegion& region, const ir::Stmt& stmt) {
  const auto* store = ir::As<ir::StoreNode>(stmt);
  return store != nullptr && store->buffer == region.buffer &&
         std::ranges::equal(region.region, store->indices,
                            [](const ir::Range& range, const ir::Expr& index) {
                              return IsOne(range.extent) &&
                                     ir::StructuralEqual(range.min, index);
                            });
}

// The statements of a body, and those of the lets among them: what runs if the
// body does.
void AddStatementsInLets(const ir::Stmt& body, std::vector<ir::Stmt>& out) {
  for (const ir::Stmt& stmt : Statements(body)) {
    if (const auto* let = ir::As<ir::LetStmtNode>(stmt)) {
      AddStatementsInLets(let->body, out);
    } else {
      out.push_back(stmt);
    }
  }
}
std::vector<ir::Stmt> StatementsInLets(const ir::Stmt& body) {
  std::vector<ir::Stmt> out;
  AddStatementsInLets(body, out);
  return out;
}

// base + [0, extent) for an iter sum with one contiguous split.
std::optional<ir::Range> ContiguousRange(const arith::IterSum& sum,
                                         int64_t width) {
  if (sum.splits.empty()) return ir::Range{sum.base, ir::IntConst(width)};
  if (sum.splits.size() != 1) return std::nullopt;
  const arith::IterSplit& split = sum.splits[0];
  if (split.scale < 1 || split.scale > width) return std::nullopt;
  return ir::Range{sum.base,
                   ir::IntConst((split.extent - 1) * split.scale + width)};
}

}  // namespace

void BindLoops(arith::Analyzer& analyzer,
               const std::vector<ir::ForPtr>& loops) {
  for (const ir::ForPtr& loop : loops) {
    if (IsOne(loop->extent)) {
      analyzer.BindValue(loop->var, loop->min);
    } else {
      analyzer.Bind(loop->var, ir::Range{loop->min, loop->extent});
    }
  }
}

std::vector<ir::Expr> BindingList(const ir::BlockNode& block) {
  std::vector<ir::Expr> bindings;
  for (const ir::IterVar& iter : block.iters) bindings.push_back(iter.binding);
  return bindings;
}

ir::VarMap BindingsOf(const ir::BlockNode& block) {
  ir::VarMap map;
  for (const ir::IterVar& iter : block.iters) {
    map[iter.var.get()] = iter.binding;
  }
  return map;
}

arith::VarRanges DomainOf(const ir::BlockNode& block, bool spatial_only) {
  arith::VarRanges ranges;
  for (const ir::IterVar& iter : block.iters) {
    if (spatial_only && iter.type != ir::IterType::kSpatial) continue;
    ranges.emplace_back(iter.var, iter.dom);
  }
  return ranges;
}

LoopCut CutLoops(const ScheduleState& state, const ir::StmtNode* stmt,
                 const ir::ForNode* loop) {
  LoopCut cut;
  std::vector<ir::ForPtr> loops = state.LoopsAbove(stmt);
  bool below = loop == nullptr;
  for (ir::ForPtr& candidate : loops) {
    const bool at = candidate.get() == loop;
    (below ? cut.inner : cut.outer).push_back(std::move(candidate));
    below = below || at;
  }
  return cut;
}

std::vector<ir::ForPtr> SharedLoops(const ScheduleState& state,
                                    const ir::StmtNode* a,
                                    const ir::StmtNode* b) {
  std::vector<ir::ForPtr> loops_a = state.LoopsAbove(a);
  const std::vector<ir::ForPtr> loops_b = state.LoopsAbove(b);
  size_t n = 0;
  while (n < loops_a.size() && n < loops_b.size() && loops_a[n] == loops_b[n]) {
    ++n;
  }
  loops_a.resize(n);
  return loops_a;
}

ir::BufferRegion SubstituteRegion(const ir::BufferRegion& region,
                                  const ir::VarMap& vars) {
  ir::BufferRegion result{region.buffer, {}};
  for (const ir::Range& range : region.region) {
    result.region.push_back(
        {ir::Substitute(range.min, vars), ir::Substitute(range.extent, vars)});
  }
  return result;
}

arith::Region HullOf(arith::Analyzer& analyzer, const ir::BlockNode& block,
                     const ir::BufferRegion& region,
                     const std::vector<ir::ForPtr>& inner,
                     const std::vector<ir::ForPtr>& outer) {
  arith::VarRanges relaxed;
  for (const ir::ForPtr& loop : outer) {
    if (SharedAcross(*region.buffer, *loop)) {
      relaxed.emplace_back(loop->var, ir::Range{loop->min, loop->extent});
    }
  }
  for (auto& range : RangesOf(inner)) relaxed.push_back(std::move(range));
  return arith::RelaxRegion(
      analyzer, SubstituteRegion(region, BindingsOf(block)), relaxed);
}

std::optional<arith::Region> DenseRegion(const ir::BufferRegion& region,
                                         const ir::VarMap& vars,
                                         const arith::VarRanges& iters,
                                         arith::Analyzer& analyzer,
                                         const ir::Expr& where) {
  std::vector<ir::Expr> mins;
  std::vector<int64_t> widths;
  for (const ir::Range& range : region.region) {
    mins.push_back(ir::Substitute(range.min, vars));
    const std::optional<int64_t> width = ir::AsInt(range.extent);
    if (!width.has_value()) return std::nullopt;
    widths.push_back(*width);
  }
  // Iterations of a loop that no index uses reach the same elements: the first
  // one will do.
  ir::Expr condition = where;
  if (condition != nullptr && !ir::IsConstInt(condition, 1)) {
    ir::VarMap first;
    for (const auto& [var, range] : iters) {
      if (std::ranges::none_of(mins, [&](const ir::Expr& min) {
            return ir::UsesVar(min, var.get());
          })) {
        first[var.get()] = range.min;
      }
    }
    condition = analyzer.Simplify(ir::Substitute(condition, first));
    if (ir::IsConstInt(condition, 0)) return std::nullopt;
  }
  // Independent maps: dimensions that share an iterator form no box.
  auto map = arith::DetectIterMap(mins, iters, condition,
                                  arith::IterMapLevel::kSurjective, analyzer);
  if (!map.ok()) return std::nullopt;
  arith::Region result;
  for (size_t i = 0; i < mins.size(); ++i) {
    std::optional<ir::Range> range = ContiguousRange((*map)[i], widths[i]);
    if (!range.has_value()) return std::nullopt;
    range->min = analyzer.Simplify(range->min);
    result.push_back(*std::move(range));
  }
  return result;
}

ir::Expr ConditionsBeyondDomain(const ScheduleState& state,
                                const ir::BlockNode& block) {
  if (ir::IsConstInt(block.predicate, 1)) return block.predicate;
  arith::Analyzer analyzer;
  BindLoops(analyzer, state.LoopsAbove(&block));
  for (const ir::IterVar& iter : block.iters) {
    analyzer.Assume(ir::GE(iter.binding, iter.dom.min));
    analyzer.Assume(ir::LT(iter.binding, iter.dom.min + iter.dom.extent));
  }
  ir::Expr beyond = ir::BoolConst(true);
  for (const ir::Expr& condition : arith::Conjuncts(block.predicate)) {
    if (!analyzer.CanProve(condition)) beyond = ir::And(beyond, condition);
  }
  return beyond;
}

bool PredicateOnlyGuardsDomain(const ScheduleState& state,
                               const ir::BlockNode& block) {
  return ir::IsConstInt(ConditionsBeyondDomain(state, block), 1);
}

bool RegionInImage(const ir::BlockNode& block, const ir::BufferRegion& write,
                   const arith::Region& region, arith::Analyzer& analyzer) {
  const auto image =
      DenseRegion(write, {}, DomainOf(block, /*spatial_only=*/true), analyzer);
  return image.has_value() && arith::RegionCovers(analyzer, *image, region);
}

bool WritesAll(const ScheduleState& state, const ir::BlockNode& block,
               const ir::BufferRegion& write) {
  if (IsStoreTo(write, block.body)) return true;
  arith::Analyzer analyzer;
  for (const ir::IterVar& iter : block.iters) analyzer.Bind(iter.var, iter.dom);
  const auto& shape = write.buffer->shape;
  const arith::Region wanted = arith::ClipRegion(analyzer, write.region, shape);
  const auto covers = [&](const ir::BufferRegion& part, const ir::VarMap& vars,
                          const std::vector<ir::ForPtr>& loops) {
    const auto dense = DenseRegion(part, vars, RangesOf(loops), analyzer);
    return dense.has_value() &&
           (arith::RegionCovers(analyzer, *dense, write.region) ||
            arith::RegionCovers(
                analyzer, arith::ClipRegion(analyzer, *dense, shape), wanted));
  };
  for (const ir::Stmt& stmt : StatementsInLets(block.body)) {
    std::vector<ir::ForPtr> loops;
    ir::Stmt inner = stmt;
    while (const auto* loop = ir::As<ir::ForNode>(inner)) {
      loops.push_back(std::static_pointer_cast<const ir::ForNode>(inner));
      inner = ir::Stmt(loop->body);
    }
    for (const ir::Stmt& leaf : StatementsInLets(inner)) {
      if (const auto* store = ir::As<ir::StoreNode>(leaf)) {
        if (store->buffer != write.buffer) continue;
        ir::BufferRegion point{write.buffer, {}};
        for (const ir::Expr& index : store->indices) {
          point.region.push_back({index, ir::IntConst(1)});
        }
        if (covers(point, {}, loops)) return true;
      } else if (const auto* child = ir::As<ir::BlockNode>(leaf)) {
        const ir::BufferRegion* part =
            FindRegion(child->writes, write.buffer.get());
        if (part != nullptr && PredicateOnlyGuardsDomain(state, *child) &&
            WritesAll(state, *child, *part) &&
            covers(*part, BindingsOf(*child), loops) &&
            RegionInImage(*child, *part, wanted, analyzer)) {
          return true;
        }
      }
    }
  }
  return false;
}

bool SurelyWrites(const ScheduleState& state, const ir::BlockNode& block,
                  const ir::BufferRegion& write,
                  const std::vector<ir::ForPtr>& inner,
                  const arith::Region& needed, arith::Analyzer& analyzer) {
  auto dense = DenseRegion(write, BindingsOf(block), RangesOf(inner), analyzer,
                           ConditionsBeyondDomain(state, block));
  // Indices that are divided, such as v // 7 where v < 49, need all conditions.
  if (!dense.has_value()) {
    dense = DenseRegion(write, BindingsOf(block), RangesOf(inner), analyzer,
                        block.predicate);
  }
  if (!dense.has_value() || !WritesAll(state, block, write) ||
      !CheckOnlyLoopsAbove(state, &block).ok()) {
    return false;
  }
  // Tails may reach beyond the buffer in both regions, so clip both.
  const auto& shape = write.buffer->shape;
  const arith::Region clipped = arith::ClipRegion(analyzer, needed, shape);
  return RegionInImage(block, write, clipped, analyzer) &&
         (arith::RegionCovers(analyzer, *dense, needed) ||
          arith::RegionCovers(analyzer, *dense, clipped) ||
          arith::RegionCovers(
              analyzer, arith::ClipRegion(analyzer, *dense, shape), clipped));
}

bool CoversDomain(const ScheduleState& state, const ir::BlockNode& block,
                  bool exactly_once) {
  const std::vector<ir::ForPtr> loops = state.LoopsAbove(&block);
  arith::Analyzer analyzer;
  BindLoops(analyzer, loops);
  auto map =
      arith::DetectIterMap(BindingList(block), RangesOf(loops), block.predicate,
                           exactly_once ? arith::IterMapLevel::kBijective
                                        : arith::IterMapLevel::kSurjective,
                           analyzer);
  if (!map.ok()) return false;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const ir::Range& dom = block.iters[i].dom;
    const std::optional<int64_t> extent = ir::AsInt(dom.extent);
    if (!extent.has_value()) return false;
    const std::optional<ir::Range> range = ContiguousRange((*map)[i], 1);
    if (!range.has_value() || !analyzer.ProveEqual(range->min, dom.min)) {
      return false;
    }
    const std::optional<int64_t> reached = ir::AsInt(range->extent);
    if (!reached.has_value() || *reached < *extent) return false;
  }
  return true;
}

bool RunsAtMostOnce(const ScheduleState& state, const ir::BlockNode& block,
                    const std::vector<ir::ForPtr>& loops) {
  arith::Analyzer analyzer;
  BindLoops(analyzer, state.LoopsAbove(&block));
  return arith::DetectIterMap(BindingList(block), RangesOf(loops), nullptr,
                              arith::IterMapLevel::kBijective, analyzer)
      .ok();
}

bool WritesAreDistinct(const ir::BlockNode& block) {
  for (const ir::BufferRegion& write : block.writes) {
    std::unordered_set<const ir::VarNode*> told_apart;
    std::vector<ir::Expr> mins;
    for (const ir::Range& range : write.region) {
      mins.push_back(range.min);
      ir::Expr index = range.min;  // without a constant offset
      const auto* sum = ir::As<ir::BinaryNode>(index);
      if (sum != nullptr && sum->op == ir::BinaryOp::kAdd &&
          ir::AsInt(sum->b).has_value()) {
        index = sum->a;
      }
      if (const auto* var = ir::As<ir::VarNode>(index)) {
        if (IsOne(range.extent)) told_apart.insert(var);
        continue;
      }
      // A tile `v * e` that is at most e wide.
      const auto* mul = ir::As<ir::BinaryNode>(index);
      if (mul == nullptr || mul->op != ir::BinaryOp::kMul) continue;
      const auto* var = ir::As<ir::VarNode>(mul->a);
      if (var != nullptr && ir::AsInt(mul->b).value_or(0) >=
                                ir::AsInt(range.extent).value_or(INT64_MAX)) {
        told_apart.insert(var);
      }
    }
    bool all = true;
    for (const ir::IterVar& iter : block.iters) {
      if (iter.type == ir::IterType::kReduce || IsOne(iter.dom.extent)) {
        continue;
      }
      all = all && told_apart.contains(iter.var.get());
    }
    if (all) continue;
    arith::Analyzer analyzer;
    const arith::VarRanges spatial = DomainOf(block, /*spatial_only=*/true);
    const auto distinct = [&](const arith::VarRanges& domain) {
      return arith::DetectIterMap(mins, domain, nullptr,
                                  arith::IterMapLevel::kBijective, analyzer)
          .ok();
    };
    if (distinct(spatial)) continue;
    const auto even = EvenDomain(mins, spatial);
    if (!even || !distinct(*even)) return false;
  }
  return true;
}

absl::Status CheckFinalIn(const ScheduleState& state,
                          const ir::BlockNode& producer,
                          const ir::BufferNode* buffer,
                          const std::vector<ir::ForPtr>& loops) {
  const ir::BufferRegion* write = FindRegion(producer.writes, buffer);
  if (write == nullptr) return absl::OkStatus();
  const bool distinct = WritesAreDistinct(producer);
  for (const ir::ForPtr& loop : loops) {
    if (IsOne(loop->extent)) continue;
    for (const ir::IterVar& iter : producer.iters) {
      if (!ir::UsesVar(iter.binding, loop->var.get())) continue;
      if (iter.type != ir::IterType::kSpatial) {
        return state.Illegal(loop.get(),
                             "the loop runs over the reduction of block ",
                             producer.name,
                             ", whose result is not complete in "
                             "one iteration of it");
      }
      const bool in_index =
          std::ranges::any_of(write->region, [&](const ir::Range& range) {
            return ir::UsesVar(range.min, iter.var.get());
          });
      if (!distinct && !in_index) {
        return state.Illegal(loop.get(), "block ", producer.name,
                             " overwrites elements of buffer ", buffer->name,
                             " in different iterations of the loop");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOnlyLoopsAbove(const ScheduleState& state,
                                 const ir::StmtNode* stmt) {
  const ir::StmtNode* child = stmt;
  for (ir::Stmt parent = state.Parent(stmt); parent != nullptr;
       parent = state.Parent(parent.get())) {
    const std::vector<ir::Stmt> stmts = Statements(BodyOf(parent.get()));
    if (std::ranges::none_of(
            stmts, [&](const ir::Stmt& s) { return s.get() == child; })) {
      return state.Illegal(stmt,
                           "a condition or a let statement stands between it "
                           "and the block around it");
    }
    if (ir::As<ir::BlockNode>(parent) != nullptr) break;
    child = parent.get();
  }
  return absl::OkStatus();
}

const ir::BufferRegion* FindRegion(const std::vector<ir::BufferRegion>& regions,
                                   const ir::BufferNode* buffer) {
  for (const ir::BufferRegion& region : regions) {
    if (region.buffer.get() == buffer) return &region;
  }
  return nullptr;
}

std::string FreshBufferName(const ir::PrimFunc& function,
                            std::string_view base) {
  std::unordered_set<std::string> taken;
  for (const ir::Buffer& param : function.params) taken.insert(param->name);
  ir::PreOrder(function.body, [&](const ir::Stmt& stmt) {
    if (const auto* block = ir::As<ir::BlockNode>(stmt)) {
      for (const ir::Buffer& buffer : block->allocs) taken.insert(buffer->name);
    }
    return true;
  });
  std::string name(base);
  for (int i = 1; taken.contains(name); ++i) {
    name = absl::StrCat(std::string(base), "_", i);
  }
  return name;
}

}  // namespace tilefarm::schedule
