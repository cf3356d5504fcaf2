#include "compiler/ir/visitor.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

class BlockConverter : public ir::Mutator {
 public:
  using Mutator::Mutate;

 protected:
  ir::Stmt MutateBlock(const ir::BlockNode& s, const ir::Stmt&) override {
    ir::VarMap bindings;
    for (const ir::IterVar& iter : s.iters) {
      bindings[iter.var.get()] = iter.binding;
    }
    ir::Stmt body = ir::Substitute(Mutate(s.body), bindings);
    for (size_t i = s.allocs.size(); i-- > 0;) {
      body = ir::MakeAlloc(s.allocs[i], std::move(body));
    }
    return ir::IsConstInt(s.predicate, 1)
               ? body
               : ir::MakeIf(s.predicate, std::move(body));
  }
};

}  // namespace

ir::Stmt ConvertBlocks(const ir::Stmt& root) {
  return BlockConverter().Mutate(root);
}

}  // namespace tilefarm::lower
