#include <memory>
#include <vector>

#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/gpu_passes.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ForKind;
using ir::ForNode;
using ir::Stmt;

// The variables in indices of local buffers: their loops become copies, so that
// the elements become registers.
class RegisterLoops : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    Stmt out = Mutator::MutateFor(s, self);
    const auto* loop = ir::As<ForNode>(out);
    if (loop->for_kind != ForKind::kSerial || !ir::AsInt(loop->extent) ||
        !IndexesLocal(*loop)) {
      return out;
    }
    return std::make_shared<const ForNode>(loop->var, loop->min, loop->extent,
                                           ForKind::kUnrolled, loop->body,
                                           loop->annotations);
  }

 private:
  static bool IndexesLocal(const ForNode& loop) {
    bool indexes = false;
    const auto look = [&](const Buffer& buffer,
                          const std::vector<Expr>& indices) {
      if (ir::ScopeOf(*buffer) != ir::MemoryScope::kLocal) return;
      for (const Expr& index : indices) {
        indexes |= ir::UsesVar(index, loop.var.get());
      }
    };
    ir::PreOrder(loop.body, [&](const Stmt& s) {
      if (const auto* store = ir::As<ir::StoreNode>(s)) {
        look(store->buffer, store->indices);
      }
      return !indexes;
    });
    ir::PostOrderExprs(loop.body, [&](const Expr& e) {
      if (const auto* load = ir::As<ir::LoadNode>(e)) {
        look(load->buffer, load->indices);
      }
    });
    return indexes;
  }
};

}  // namespace

Stmt UnrollRegisters(const Stmt& stmt) { return RegisterLoops().Mutate(stmt); }

}  // namespace tilefarm::lower
