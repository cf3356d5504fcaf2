#include <utility>

#include "compiler/ir/annotations.h"
#include "compiler/ir/padding.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

class PaddingSkipper : public ir::Mutator {
 public:
  using Mutator::Mutate;
  ir::Expr Mutate(const ir::Expr& expr) override { return expr; }

 protected:
  ir::Stmt MutateBlock(const ir::BlockNode& s, const ir::Stmt& self) override {
    const bool outer = skips_;
    skips_ = s.annotations.contains(ir::kSkipPadding);
    ir::Stmt out = Mutator::MutateBlock(s, self);
    skips_ = outer;
    return out;
  }

  ir::Stmt MutateStore(const ir::StoreNode& s, const ir::Stmt& self) override {
    if (!skips_) return self;
    std::optional<ir::PaddedTerm> term = ir::MatchPaddedTerm(s);
    if (!term) return self;
    return ir::MakeIf(
        std::move(term->inside),
        ir::MakeStore(s.buffer, s.indices, std::move(term->value)));
  }

 private:
  bool skips_ = false;
};

}  // namespace

ir::Stmt SkipPadding(const ir::Stmt& root) {
  return PaddingSkipper().Mutate(root);
}

}  // namespace tilefarm::lower
