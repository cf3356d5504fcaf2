// The memory that the threads of a block share belongs to the kernel: a buffer
// that is allocated inside of a loop is one piece of memory in all iterations,
// also where the loop is unrolled later. Barriers already keep the iterations
// apart.
#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/gpu_passes.h"

namespace tilefarm::lower {
namespace {

using ir::ForNode;
using ir::Stmt;

// Takes the allocations out of a kernel's body.
class SharedTaker : public ir::Mutator {
 public:
  using Mutator::Mutate;
  ir::Expr Mutate(const ir::Expr& expr) override { return expr; }
  std::vector<ir::Buffer> taken;

 protected:
  Stmt MutateAlloc(const ir::AllocNode& s, const Stmt& self) override {
    if (!ir::IsInShared(*s.buffer)) {
      return Mutator::MutateAlloc(s, self);
    }
    // Copies of a statement allocate the same.
    if (std::ranges::find(taken, s.buffer) == taken.end()) {
      taken.push_back(s.buffer);
    }
    return Mutate(s.body);
  }
};

class SharedHoister : public ir::Mutator {
 public:
  using Mutator::Mutate;
  ir::Expr Mutate(const ir::Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    const auto* inner = ir::As<ForNode>(s.body);
    if (s.for_kind != ir::ForKind::kThreadBinding ||
        (inner != nullptr && inner->for_kind == ir::ForKind::kThreadBinding)) {
      return Mutator::MutateFor(s, self);
    }
    SharedTaker taker;
    Stmt body = taker.Mutate(s.body);
    for (auto buffer = taker.taken.rbegin(); buffer != taker.taken.rend();
         ++buffer) {
      body = ir::MakeAlloc(*buffer, std::move(body));
    }
    return std::make_shared<const ForNode>(s.var, s.min, s.extent, s.for_kind,
                                           std::move(body), s.annotations,
                                           s.thread_tag);
  }
};

}  // namespace

Stmt HoistShared(const Stmt& stmt) { return SharedHoister().Mutate(stmt); }

}  // namespace tilefarm::lower
