#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/ir/verifier.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

class LoweredChecker : public ir::Visitor {
 public:
  using Visitor::Visit;
  absl::Status status;

 protected:
  void VisitBlock(const ir::BlockNode& s) override {
    Fail(absl::StrCat("block \"", s.name, "\" is left"));
  }
  void VisitFor(const ir::ForNode& s) override {
    if (s.for_kind != ir::ForKind::kSerial &&
        s.for_kind != ir::ForKind::kParallel &&
        s.for_kind != ir::ForKind::kThreadBinding) {
      Fail(absl::StrCat("loop ", s.var->name,
                        " is neither serial nor concurrent"));
    }
    if (!defined_.insert(s.var.get()).second) {
      Fail(absl::StrCat("loop variable ", s.var->name, " is defined twice"));
    }
    if (!ir::IsConstInt(s.min, 0)) {
      Fail(absl::StrCat("loop ", s.var->name, " does not start at 0"));
    }
    Visitor::VisitFor(s);
  }
  void VisitAlloc(const ir::AllocNode& s) override {
    CheckBuffer(*s.buffer);
    if (!defined_.insert(s.buffer.get()).second) {
      Fail(absl::StrCat("buffer ", s.buffer->name, " is allocated twice"));
    }
    Visitor::VisitAlloc(s);
  }
  void VisitLoad(const ir::LoadNode& e) override {
    CheckAccess(*e.buffer, e.indices, e.predicate, e.dtype);
    Visitor::VisitLoad(e);
  }
  void VisitStore(const ir::StoreNode& s) override {
    CheckAccess(*s.buffer, s.indices, s.predicate, s.value->dtype);
    Visitor::VisitStore(s);
  }

 private:
  std::set<const void*> defined_;

  void Fail(const std::string& what) {
    if (status.ok()) {
      status = absl::InternalError(absl::StrCat("lowering: ", what));
    }
  }
  void CheckBuffer(const ir::BufferNode& buffer) {
    if (buffer.ndim() != 1) {
      Fail(absl::StrCat("buffer ", buffer.name, " is not flat"));
    }
  }
  void CheckAccess(const ir::BufferNode& buffer,
                   const std::vector<ir::Expr>& indices,
                   const ir::Expr& predicate, ir::DataType value) {
    CheckBuffer(buffer);
    if (indices.size() != 1 || !indices[0]->dtype.element().is_index()) {
      return Fail(
          absl::StrCat("access to ", buffer.name, " has not one int64 index"));
    }
    if (indices[0]->dtype.lanes != value.lanes ||
        (predicate != nullptr && predicate->dtype.lanes != value.lanes)) {
      Fail(absl::StrCat("access to ", buffer.name, " mixes vector lengths"));
    }
  }
};

}  // namespace

absl::Status VerifyLowered(const ir::PrimFunc& function) {
  LoweredChecker checker;
  checker.Visit(function.body);
  if (!checker.status.ok()) return checker.status;
  const absl::Status scopes = ir::VerifyScopes(function);
  if (scopes.ok()) return scopes;
  return absl::InternalError(absl::StrCat("lowering: ", scopes.message()));
}

}  // namespace tilefarm::lower
