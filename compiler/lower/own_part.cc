#include "compiler/lower/own_part.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/iter_map.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ThreadVars = std::array<ir::Var, ir::kThreadAxes>;

bool IsThread(size_t axis) {
  return ir::IsThreadIdx(static_cast<ir::ThreadAxis>(axis));
}

// An index as what the place of the thread says and what loops inside add.
struct Index {
  Linear place;
  Interval inside;
};

// The indices of all loads and stores of a buffer, where each loop of threads
// is its axis.
class IndexCollector : public ir::Visitor {
 public:
  IndexCollector(const ir::BufferNode* buffer, const ThreadVars& vars,
                 IndexMath& math)
      : buffer_(buffer), vars_(vars), math_(math) {}
  using Visitor::Visit;
  std::vector<std::vector<Index>> accesses;
  bool by_machine_ops = false;

 protected:
  void VisitFor(const ir::ForNode& s) override {
    const auto axis = s.for_kind == ir::ForKind::kThreadBinding
                          ? ir::ParseThreadAxis(s.thread_tag)
                          : std::nullopt;
    if (axis) {
      axes_[s.var.get()] = vars_[static_cast<size_t>(*axis)];
    } else {
      BindLoop(math_, s);
      inside_.insert(s.var.get());
    }
    Visitor::VisitFor(s);
  }
  void VisitLetStmt(const ir::LetStmtNode& s) override {
    inside_.insert(s.var.get());
    Visitor::VisitLetStmt(s);
  }
  void VisitLet(const ir::LetNode& e) override {
    inside_.insert(e.var.get());
    Visitor::VisitLet(e);
  }
  void VisitLoad(const ir::LoadNode& e) override {
    Visitor::VisitLoad(e);
    if (e.buffer.get() == buffer_) Add(e.indices);
  }
  void VisitStore(const ir::StoreNode& s) override {
    Visitor::VisitStore(s);
    if (s.buffer.get() == buffer_) Add(s.indices);
  }
  // They access more than the element of their operand.
  void VisitMachineOp(const ir::MachineOpNode& e) override {
    const size_t before = accesses.size();
    Visitor::VisitMachineOp(e);
    by_machine_ops |= accesses.size() > before;
  }

 private:
  void Add(const std::vector<Expr>& indices) {
    std::vector<Index>& access = accesses.emplace_back();
    for (const Expr& index : indices) {
      const Linear all = math_.Decompose(ir::Substitute(index, axes_));
      Index& parts = access.emplace_back();
      Linear inside;
      inside.constant = all.constant;
      for (const auto& [atom, scale] : all.terms) {
        bool varies = false;
        ir::PostOrderExprs(atom, [&](const Expr& e) {
          varies |= e->kind == ir::ExprKind::kLoad;
          const auto* var = ir::As<ir::VarNode>(e);
          varies |= var != nullptr && inside_.contains(var);
        });
        (varies ? inside : parts.place).terms.emplace_back(atom, scale);
      }
      parts.inside = math_.Bounds(inside);
    }
  }
  const ir::BufferNode* buffer_;
  const ThreadVars& vars_;
  IndexMath& math_;
  ir::VarMap axes_;
  std::set<const ir::VarNode*> inside_;
};

// Replaces the buffer by one in which indices start from the thread's place.
class PartOf : public ir::Mutator {
 public:
  PartOf(const ir::BufferNode* from, ir::Buffer to, std::vector<Expr> places,
         const ThreadVars& vars, IndexMath& math)
      : from_(from),
        to_(std::move(to)),
        places_(std::move(places)),
        vars_(vars),
        math_(math) {}
  using Mutator::Mutate;

 protected:
  ir::Stmt MutateFor(const ir::ForNode& s, const ir::Stmt& self) override {
    const auto axis = s.for_kind == ir::ForKind::kThreadBinding
                          ? ir::ParseThreadAxis(s.thread_tag)
                          : std::nullopt;
    if (axis) axes_[s.var.get()] = vars_[static_cast<size_t>(*axis)];
    return Mutator::MutateFor(s, self);
  }
  Expr MutateLoad(const ir::LoadNode& e, const Expr& self) override {
    if (e.buffer.get() != from_) return Mutator::MutateLoad(e, self);
    return ir::Load(to_, Indices(e.indices));
  }
  ir::Stmt MutateStore(const ir::StoreNode& s, const ir::Stmt& self) override {
    if (s.buffer.get() != from_) return Mutator::MutateStore(s, self);
    return ir::MakeStore(to_, Indices(s.indices), Mutate(s.value), s.predicate);
  }

 private:
  std::vector<Expr> Indices(const std::vector<Expr>& indices) {
    std::vector<Expr> out;
    for (size_t d = 0; d < indices.size(); ++d) {
      const Expr index = Mutate(indices[d]);
      out.push_back(
          places_[d] == nullptr
              ? index
              : math_.Simplify(ir::Substitute(index, axes_) - places_[d]));
    }
    return out;
  }
  const ir::BufferNode* from_;
  const ir::Buffer to_;
  const std::vector<Expr> places_;  // null: all indices stay
  const ThreadVars& vars_;
  IndexMath& math_;
  ir::VarMap axes_;
};

// The axes of threads that the place tells apart.
std::set<size_t> AxesOf(const Linear& place, const ThreadVars& vars) {
  std::set<size_t> axes;
  for (const auto& [atom, scale] : place.terms) {
    ir::PostOrderExprs(atom, [&](const Expr& e) {
      const auto axis = std::ranges::find(vars, e);
      if (axis == vars.end()) return;
      const auto number = static_cast<size_t>(axis - vars.begin());
      if (IsThread(number)) axes.insert(number);
    });
  }
  return axes;
}

}  // namespace

std::optional<OwnPart> FindOwnPart(
    const ir::AllocNode& alloc, const ThreadVars& vars,
    const std::array<int64_t, ir::kThreadAxes>& extents) {
  IndexMath math;
  for (size_t axis = 0; axis < vars.size(); ++axis) {
    if (extents[axis] > 0) math.Bind(vars[axis].get(), 0, extents[axis] - 1);
  }
  IndexCollector collector(alloc.buffer.get(), vars, math);
  collector.Visit(alloc.body);
  const auto& accesses = collector.accesses;
  if (accesses.empty() || collector.by_machine_ops) return std::nullopt;

  std::vector<Expr> places(alloc.buffer->shape.size());
  std::vector<Expr> elements;  // of a thread, by what is inside of its part
  arith::VarRanges ranges;
  std::set<size_t> used;
  ir::BufferNode part(*alloc.buffer);
  for (size_t d = 0; d < places.size(); ++d) {
    const Linear& place = accesses[0][d].place;
    Interval inside = accesses[0][d].inside;
    bool same = true;
    for (const std::vector<Index>& access : accesses) {
      Linear distance = access[d].place;
      distance.Add(place, -1);
      same &= distance.is_constant() && distance.constant == 0 &&
              access[d].inside.bounded();
      inside.lo = std::min(inside.lo, access[d].inside.lo);
      inside.hi = std::max(inside.hi, access[d].inside.hi);
    }
    const std::set<size_t> axes = AxesOf(place, vars);
    if (!same || axes.empty()) continue;
    used.insert(axes.begin(), axes.end());
    part.shape[d] = inside.hi - inside.lo + 1;
    places[d] = place.ToExpr() + inside.lo;
    const ir::Var element = ir::MakeVar("inside");
    ranges.emplace_back(
        element, ir::Range{ir::IntConst(0), ir::IntConst(part.shape[d])});
    elements.push_back(place.ToExpr() + element);
  }
  if (elements.empty()) return std::nullopt;

  // No two threads have an element in common.
  for (const size_t axis : used) {
    ranges.emplace_back(
        vars[axis], ir::Range{ir::IntConst(0), ir::IntConst(extents[axis])});
  }
  arith::Analyzer analyzer;
  if (!arith::DetectIterMap(elements, ranges, nullptr,
                            arith::IterMapLevel::kBijective, analyzer)
           .ok()) {
    return std::nullopt;
  }
  const ir::Buffer buffer =
      std::make_shared<const ir::BufferNode>(std::move(part));
  return OwnPart{ir::MakeAlloc(buffer, PartOf(alloc.buffer.get(), buffer,
                                              places, vars, math)
                                           .Mutate(alloc.body)),
                 {used.begin(), used.end()}};
}

}  // namespace tilefarm::lower
