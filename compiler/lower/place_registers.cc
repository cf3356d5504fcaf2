#include <algorithm>
#include <map>
#include <utility>

#include "compiler/ir/machine_op.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::Stmt;

// Whether all accesses to a buffer are at constant indices, always in the same
// pieces, and by the thread that owns it.
class PieceChecker : public ir::Visitor {
 public:
  explicit PieceChecker(const ir::BufferNode* buffer) : buffer_(buffer) {}
  using Visitor::Visit;

  bool ok() const { return ok_; }

 protected:
  void VisitFor(const ir::ForNode& s) override {
    const bool outer = in_parallel_;
    in_parallel_ |= s.for_kind == ir::ForKind::kParallel;
    Visitor::VisitFor(s);
    in_parallel_ = outer;
  }
  void VisitLoad(const ir::LoadNode& e) override {
    Visitor::VisitLoad(e);
    if (e.buffer.get() == buffer_) Check(e.indices[0]);
  }
  void VisitStore(const ir::StoreNode& s) override {
    Visitor::VisitStore(s);
    if (s.buffer.get() == buffer_) Check(s.indices[0]);
  }

 private:
  void Check(const Expr& index) {
    const auto* ramp = ir::As<ir::RampNode>(index);
    const auto first = ir::AsInt(ramp != nullptr ? ramp->base : index);
    if (in_parallel_ || !first ||
        (ramp != nullptr && !ir::IsConstInt(ramp->stride, 1)) ||
        (ramp == nullptr && index->dtype.is_vector())) {
      ok_ = false;
      return;
    }
    const int64_t lanes = index->dtype.lanes;
    const auto [known, added] = pieces_.emplace(*first, lanes);
    if (!added) {
      ok_ &= known->second == lanes;
      return;
    }
    if (known != pieces_.begin()) {
      const auto before = std::prev(known);
      ok_ &= before->first + before->second <= *first;
    }
    const auto after = std::next(known);
    if (after != pieces_.end()) ok_ &= *first + lanes <= after->first;
  }

  const ir::BufferNode* buffer_;
  std::map<int64_t, int64_t> pieces_;  // first index -> lanes
  bool ok_ = true;
  bool in_parallel_ = false;
};

// Whether a warpgroup's products have their sums in the buffer: its elements
// are registers by themselves.
bool IsProductSums(const ir::BufferNode& buffer, const Stmt& body) {
  bool is = false;
  ir::PostOrderExprs(body, [&](const Expr& e) {
    const auto* op = ir::As<ir::MachineOpNode>(e);
    is |= op != nullptr && op->op == ir::MachineOp::kWarpgroupProduct &&
          ir::As<ir::LoadNode>(op->args[0])->buffer.get() == &buffer;
  });
  return is;
}

class RegisterPlacer : public ir::Mutator {
 public:
  explicit RegisterPlacer(const target::Target& target) : target_(target) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateAlloc(const ir::AllocNode& s, const Stmt&) override {
    Stmt body = Mutate(s.body);
    if (target_.is_gpu() &&
        (ir::IsInShared(*s.buffer) || IsBetweenKernels(body))) {
      return ir::MakeAlloc(s.buffer, std::move(body));
    }
    if (IsProductSums(*s.buffer, body)) {
      return ir::MakeAlloc(s.buffer, std::move(body));
    }
    const int64_t bits = s.buffer->num_elements() * s.buffer->dtype.bytes() * 8;
    bool local =
        bits <= int64_t{2} * target_.vector_registers * target_.vector_bits;
    if (local) {
      PieceChecker checker(s.buffer.get());
      checker.Visit(body);
      local = checker.ok();
    }
    const char* scope = local ? "local" : "global";
    if (s.buffer->scope == scope) {
      return ir::MakeAlloc(s.buffer, std::move(body));
    }
    ir::Buffer placed =
        ir::MakeBuffer(s.buffer->name, s.buffer->dtype, s.buffer->shape, scope);
    body = ir::ReplaceBuffers(body, {{s.buffer.get(), placed}});
    return ir::MakeAlloc(std::move(placed), std::move(body));
  }

 private:
  // Whether the body of an allocation has kernels.
  static bool IsBetweenKernels(const Stmt& body) {
    bool has = false;
    ir::PreOrder(body, [&](const Stmt& s) {
      const auto* loop = ir::As<ir::ForNode>(s);
      has |= loop != nullptr && loop->for_kind == ir::ForKind::kThreadBinding;
      return !has;
    });
    return has;
  }

  const target::Target& target_;
};

}  // namespace

Stmt PlaceRegisters(const Stmt& stmt, const target::Target& target) {
  return RegisterPlacer(target).Mutate(stmt);
}

}  // namespace tilefarm::lower
