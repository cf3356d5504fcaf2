// Gives the accesses to a buffer more indices, for passes that copy a buffer
// for each of several threads or iterations.
#ifndef TILEFARM_COMPILER_LOWER_INDEX_PREFIXER_H_
#define TILEFARM_COMPILER_LOWER_INDEX_PREFIXER_H_

#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"

namespace tilefarm::lower {

// Replaces a buffer by one of more dimensions, whose first indices are given.
class IndexPrefixer : public ir::Mutator {
 public:
  IndexPrefixer(ir::Buffer from, ir::Buffer to, std::vector<ir::Expr> prefix)
      : from_(std::move(from)),
        to_(std::move(to)),
        prefix_(std::move(prefix)) {}
  using Mutator::Mutate;

 protected:
  ir::Expr MutateLoad(const ir::LoadNode& e, const ir::Expr& self) override {
    if (e.buffer != from_) return Mutator::MutateLoad(e, self);
    return ir::Load(to_, Indices(e.indices));
  }
  ir::Stmt MutateStore(const ir::StoreNode& s, const ir::Stmt& self) override {
    if (s.buffer != from_) return Mutator::MutateStore(s, self);
    return ir::MakeStore(to_, Indices(s.indices), Mutate(s.value), s.predicate);
  }

 private:
  std::vector<ir::Expr> Indices(const std::vector<ir::Expr>& indices) {
    std::vector<ir::Expr> out = prefix_;
    for (const ir::Expr& index : indices) out.push_back(Mutate(index));
    return out;
  }
  const ir::Buffer from_, to_;
  const std::vector<ir::Expr> prefix_;
};

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_INDEX_PREFIXER_H_
