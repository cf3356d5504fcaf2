#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/iteration_analysis.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::ForKind;
using ir::Stmt;

enum class Verdict { kIndependent, kUnknown, kConflict };

struct LoopAccess {
  AccessDims dims;   // terms that vary in the loop, and the constant
  AccessDims fixed;  // the other terms
};

struct BufferAccesses {
  const ir::BufferNode* buffer = nullptr;
  std::vector<LoopAccess> accesses;
  bool stored = false;
  // Some store runs in every iteration and writes the same element in each.
  bool same_place = false;
};

// The accesses below one loop to buffers that outlive an iteration.
class LoopAccessCollector : public ir::Visitor {
 public:
  explicit LoopAccessCollector(const ir::ForNode& loop) {
    variant_.insert(loop.var.get());
    Bind(loop);
    Visit(loop.body);
  }
  using Visitor::Visit;

  IndexMath& math() { return math_; }
  // In order of first access.
  const std::vector<BufferAccesses>& buffers() const { return buffers_; }

 protected:
  void VisitFor(const ir::ForNode& s) override {
    variant_.insert(s.var.get());
    Bind(s);
    Visitor::VisitFor(s);
  }
  void VisitLetStmt(const ir::LetStmtNode& s) override {
    variant_.insert(s.var.get());
    Visitor::VisitLetStmt(s);
  }
  void VisitLet(const ir::LetNode& e) override {
    variant_.insert(e.var.get());
    Visitor::VisitLet(e);
  }
  void VisitIf(const ir::IfNode& s) override {
    ++conditions_;
    Visitor::VisitIf(s);
    --conditions_;
  }
  void VisitAlloc(const ir::AllocNode& s) override {
    inner_.insert(s.buffer.get());
    Visitor::VisitAlloc(s);
  }
  void VisitLoad(const ir::LoadNode& e) override {
    Visitor::VisitLoad(e);
    Add(e.buffer.get(), e.indices, false);
  }
  void VisitStore(const ir::StoreNode& s) override {
    Visitor::VisitStore(s);
    Add(s.buffer.get(), s.indices, true);
  }

 private:
  void Bind(const ir::ForNode& loop) {
    const Interval first = math_.Bounds(loop.min);
    const Interval count = math_.Bounds(loop.extent);
    if (first.bounded() && count.bounded()) {
      math_.Bind(loop.var.get(), first.lo, first.hi + count.hi - 1);
    }
  }

  void Add(const ir::BufferNode* buffer, const std::vector<Expr>& indices,
           bool store) {
    if (inner_.count(buffer)) return;
    const auto [at, added] = numbers_.emplace(buffer, buffers_.size());
    if (added) buffers_.push_back({buffer});
    BufferAccesses& known = buffers_[at->second];
    LoopAccess access;
    bool varies = false;
    // The offset distinguishes elements that x // 40 or x % 40 alone does not.
    Expr offset = ir::IntConst(0);
    for (size_t d = 0; d < indices.size(); ++d) {
      offset = offset * buffer->shape[d] + indices[d];
      varies |= AddDimension(indices[d], access);
    }
    if (indices.size() > 1) AddDimension(offset, access);
    known.stored |= store;
    known.same_place |= store && !varies && conditions_ == 0;
    known.accesses.push_back(std::move(access));
  }

  // Whether the index varies inside the loop.
  bool AddDimension(const Expr& index, LoopAccess& access) {
    const Linear linear = math_.Decompose(index);
    Linear variant, fixed;
    variant.constant = linear.constant;
    for (const auto& [atom, scale] : linear.terms) {
      bool inside = false;
      ir::PostOrderExprs(atom, [&](const Expr& e) {
        inside |= e->kind == ir::ExprKind::kLoad ||
                  (e->kind == ir::ExprKind::kVar &&
                   variant_.count(static_cast<const ir::VarNode*>(e.get())));
      });
      (inside ? variant : fixed).terms.emplace_back(atom, scale);
    }
    const bool varies = !variant.terms.empty();
    access.dims.push_back(std::move(variant));
    access.fixed.push_back(std::move(fixed));
    return varies;
  }

  IndexMath math_;
  std::vector<BufferAccesses> buffers_;
  std::map<const ir::BufferNode*, size_t> numbers_;
  std::set<const ir::VarNode*> variant_;
  std::set<const ir::BufferNode*> inner_;
  int conditions_ = 0;
};

bool SameLinear(const Linear& a, const Linear& b) {
  Linear difference = a;
  difference.Add(b, -1);
  return difference.is_constant() && difference.constant == 0;
}

// `where` gets the name of a buffer that makes the loop dependent.
Verdict Judge(const ir::ForNode& loop, std::string& where) {
  const auto extent = ir::AsInt(loop.extent);
  if (extent && *extent <= 1) return Verdict::kIndependent;
  LoopAccessCollector collector(loop);
  Verdict verdict = Verdict::kIndependent;
  for (const BufferAccesses& known : collector.buffers()) {
    if (!known.stored) continue;
    // Dimensions are comparable if their fixed terms are equal.
    std::vector<AccessDims> accesses(known.accesses.size());
    for (size_t d = 0; d < known.accesses[0].dims.size(); ++d) {
      bool comparable = true;
      for (const LoopAccess& access : known.accesses) {
        comparable &= SameLinear(access.fixed[d], known.accesses[0].fixed[d]);
      }
      if (!comparable) continue;
      for (size_t i = 0; i < accesses.size(); ++i) {
        accesses[i].push_back(known.accesses[i].dims[d]);
      }
    }
    const Interval count = collector.math().Bounds(loop.extent);
    if (count.has_hi() &&
        Determines(collector.math(), accesses, loop.var.get(), count.hi)) {
      continue;
    }
    if (known.same_place) {
      where = known.buffer->name;
      return Verdict::kConflict;
    }
    verdict = Verdict::kUnknown;
  }
  return verdict;
}

class IterationChecker : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }
  absl::Status status;

 protected:
  Stmt MutateFor(const ir::ForNode& s, const Stmt& self) override {
    Stmt out = Mutator::MutateFor(s, self);
    if (s.for_kind != ForKind::kParallel &&
        s.for_kind != ForKind::kVectorized) {
      return out;
    }
    std::string where;
    const Verdict verdict = Judge(s, where);
    if (verdict == Verdict::kIndependent) return out;
    if (verdict == Verdict::kConflict && s.for_kind == ForKind::kParallel &&
        status.ok()) {
      status = absl::InvalidArgumentError(
          absl::StrCat("parallel loop ", s.var->name,
                       ": its iterations write the same elements of ", where,
                       "; a reduction cannot run in parallel as it stands"));
    }
    const auto& loop = *ir::As<ir::ForNode>(out);
    return std::make_shared<const ir::ForNode>(loop.var, loop.min, loop.extent,
                                               ForKind::kSerial, loop.body,
                                               loop.annotations);
  }
};

}  // namespace

absl::StatusOr<Stmt> CheckIterations(const Stmt& stmt) {
  IterationChecker checker;
  Stmt out = checker.Mutate(stmt);
  if (!checker.status.ok()) return checker.status;
  return out;
}

}  // namespace tilefarm::lower
