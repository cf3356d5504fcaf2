#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/ir/regions.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/iteration_analysis.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::BlockNode;
using ir::Expr;
using ir::ForNode;
using ir::IterType;
using ir::Stmt;

// Finds accesses in all evaluated parts: stores, values, indices, conditions,
// lets, bounds of loops and bindings of blocks. Declared regions are not
// accesses.
class AccessFinder : public ir::Visitor {
 public:
  bool reads = false, writes = false;

  // Ignores `except` and the statements below it.
  AccessFinder(const ir::BufferNode* buffer, const BlockNode* except)
      : buffer_(buffer), except_(except) {}
  using Visitor::Visit;

 protected:
  void VisitLoad(const ir::LoadNode& load) override {
    reads |= load.buffer.get() == buffer_;
    Visitor::VisitLoad(load);
  }
  void VisitStore(const ir::StoreNode& store) override {
    writes |= store.buffer.get() == buffer_;
    Visitor::VisitStore(store);
  }
  void VisitBlock(const BlockNode& block) override {
    if (&block != except_) Visitor::VisitBlock(block);
  }

 private:
  const ir::BufferNode* buffer_;
  const BlockNode* except_;
};

bool Touches(const Stmt& stmt, const ir::BufferNode* buffer,
             const BlockNode* except) {
  AccessFinder finder(buffer, except);
  finder.Visit(stmt);
  return finder.reads || finder.writes;
}

bool Writes(const Stmt& stmt, const ir::BufferNode* buffer) {
  AccessFinder finder(buffer, nullptr);
  finder.Visit(stmt);
  return finder.writes;
}

// Whether all accesses to the buffer of `init` in the body are to its element.
bool AccessesOnly(const Stmt& body, const ir::StoreNode& init) {
  bool only = true;
  const auto look = [&](const ir::Buffer& buffer,
                        const std::vector<Expr>& indices) {
    if (buffer != init.buffer) return;
    for (size_t d = 0; d < indices.size(); ++d) {
      only = only && SameExpr(indices[d], init.indices[d]);
    }
  };
  ir::PreOrder(body, [&](const Stmt& s) {
    if (const auto* store = ir::As<ir::StoreNode>(s)) {
      look(store->buffer, store->indices);
    }
    return true;
  });
  ir::PostOrderExprs(body, [&](const Expr& e) {
    if (const auto* load = ir::As<ir::LoadNode>(e)) {
      look(load->buffer, load->indices);
    }
  });
  return only;
}

// Whether `init` reads a buffer that is written somewhere below `loop_body`.
bool ReadsWhatIsWritten(const Stmt& init, const Stmt& loop_body) {
  bool found = false;
  ir::PostOrderExprs(init, [&](const Expr& e) {
    const auto* load = ir::As<ir::LoadNode>(e);
    found = found || (load != nullptr && Writes(loop_body, load->buffer.get()));
  });
  return found;
}

// Whether the statement consists of stores, which are added.
bool AddStores(const Stmt& stmt, std::vector<const ir::StoreNode*>& stores) {
  if (const auto* store = ir::As<ir::StoreNode>(stmt)) {
    stores.push_back(store);
    return true;
  }
  const auto* seq = ir::As<ir::SeqNode>(stmt);
  return seq != nullptr && std::ranges::all_of(seq->stmts, [&](const Stmt& s) {
           return AddStores(s, stores);
         });
}

// Makes the initialisation of one block a nest of its own and determines the
// loop to put it before.
class InitNest {
 public:
  // `loops` surround the block, outermost first, with only sequences between
  // them. False if the nest cannot be split off.
  bool Build(const std::vector<const ForNode*>& loops, const BlockNode& block) {
    const Stmt at_start = ir::InitAtStart(block);
    std::vector<const ir::StoreNode*> stores;
    if (!AddStores(at_start, stores)) return false;
    size_t first = loops.size();
    for (size_t i = 0; i < loops.size() && first == loops.size(); ++i) {
      if (UsedBy(block, loops[i], IterType::kReduce)) first = i;
    }
    if (first == loops.size()) return false;
    // No other statement may see the initialised elements early.
    // And no other iteration of the block itself.
    for (const ir::StoreNode* store : stores) {
      if (Touches(loops[first]->body, store->buffer.get(), &block) ||
          !AccessesOnly(block.body, *store)) {
        return false;
      }
    }
    // The inputs of the initialisation must be available before the loop
    // starts.
    if (ReadsWhatIsWritten(block.init, loops[first]->body)) return false;
    ir::VarMap binding, zero;
    AccessDims reduce_dims;
    IndexMath math;
    for (size_t i = 0; i < loops.size(); ++i) {
      const ForNode* loop = loops[i];
      const Interval count = math.Bounds(loop->extent);
      if (!ir::IsConstInt(loop->min, 0) || !count.has_hi() ||
          (i >= first && !ir::AsInt(loop->extent))) {
        return false;
      }
      math.Bind(loop->var.get(), 0, count.hi - 1);
    }
    // The offset of all distinguishes what x // 40 or x % 40 alone does not.
    Expr reduce_offset = ir::IntConst(0);
    for (const ir::IterVar& iter : block.iters) {
      if (iter.type == IterType::kOpaque) return false;
      binding[iter.var.get()] = iter.binding;
      if (iter.type == IterType::kReduce) {
        reduce_dims.push_back(math.Decompose(iter.binding));
        reduce_offset = reduce_offset * iter.dom.extent + iter.binding;
      }
    }
    reduce_dims.push_back(math.Decompose(reduce_offset));
    std::vector<AccessDims> store_dims;
    for (const ir::StoreNode* store : stores) {
      AccessDims& dims = store_dims.emplace_back();
      std::vector<Expr> indices = store->indices;
      indices.push_back(ir::IntConst(0));
      for (size_t d = 0; d < store->indices.size(); ++d) {
        indices.back() =
            indices.back() * store->buffer->shape[d] + store->indices[d];
      }
      for (const Expr& index : indices) {
        Linear dim = math.Decompose(ir::Substitute(index, binding));
        Linear inner;
        for (const auto& [atom, scale] : dim.terms) {
          if (Varies(atom, loops, first)) inner.terms.emplace_back(atom, scale);
        }
        dims.push_back(std::move(inner));
      }
    }
    std::vector<const ForNode*> spatial;
    for (size_t i = first; i < loops.size(); ++i) {
      const ForNode* loop = loops[i];
      const bool reduce = UsedBy(block, loop, IterType::kReduce);
      if (reduce && UsedBy(block, loop, IterType::kSpatial)) return false;
      // A loop that the block does not use would repeat its initialisation.
      const int64_t extent = *ir::AsInt(loop->extent);
      const auto determines = [&](const AccessDims& dims) {
        return Determines(math, {dims}, loop->var.get(), extent);
      };
      if (reduce ? !determines(reduce_dims)
                 : !std::ranges::all_of(store_dims, determines)) {
        return false;
      }
      if (reduce) {
        zero[loop->var.get()] = ir::IntConst(0);
      } else {
        spatial.push_back(loop);
      }
    }
    for (const ir::IterVar& iter : block.iters) {
      if (iter.type != IterType::kReduce) continue;
      const auto start =
          math.Difference(ir::Substitute(iter.binding, zero), iter.dom.min);
      if (start != 0) return false;
    }
    before_ = loops[first];
    nest_ = Nest(block, spatial, zero);
    return true;
  }

  const ForNode* before() const { return before_; }
  const Stmt& nest() const { return nest_; }

 private:
  static bool UsedBy(const BlockNode& block, const ForNode* loop,
                     IterType type) {
    return std::any_of(block.iters.begin(), block.iters.end(),
                       [&](const ir::IterVar& iter) {
                         return iter.type == type &&
                                ir::UsesVar(iter.binding, loop->var.get());
                       });
  }
  static bool Varies(const Expr& atom, const std::vector<const ForNode*>& loops,
                     size_t first) {
    for (size_t i = first; i < loops.size(); ++i) {
      if (ir::UsesVar(atom, loops[i]->var.get())) return true;
    }
    return false;
  }

  // Copies the spatial loops with fresh variables.
  static Stmt Nest(const BlockNode& block,
                   const std::vector<const ForNode*>& spatial,
                   const ir::VarMap& zero) {
    ir::VarMap fresh = zero;
    std::vector<ir::Var> vars;
    for (const ForNode* loop : spatial) {
      vars.push_back(ir::MakeVar(loop->var->name + "_init"));
      fresh[loop->var.get()] = vars.back();
    }
    BlockNode init;
    init.name = block.name + "_init";
    init.predicate = ir::Substitute(block.predicate, fresh);
    ir::VarMap iters;
    for (const ir::IterVar& iter : block.iters) {
      if (iter.type != IterType::kSpatial) continue;
      ir::IterVar copy = iter;
      copy.var = ir::MakeVar(iter.var->name, iter.var->dtype);
      iters[iter.var.get()] = copy.var;
      copy.binding = ir::Substitute(iter.binding, fresh);
      init.iters.push_back(std::move(copy));
    }
    init.body = ir::Substitute(ir::InitAtStart(block), iters);
    Stmt nest = ir::BlockOf(std::move(init));
    for (size_t i = spatial.size(); i-- > 0;) {
      const ForNode* loop = spatial[i];
      const ir::ForKind kind = loop->for_kind == ir::ForKind::kParallel
                                   ? ir::ForKind::kSerial
                                   : loop->for_kind;
      nest = std::make_shared<const ForNode>(
          vars[i], ir::IntConst(0), loop->extent, kind, std::move(nest),
          loop->annotations, loop->thread_tag);
    }
    return nest;
  }

  const ForNode* before_ = nullptr;
  Stmt nest_;
};

class InitLowerer : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    loops_.push_back(&s);
    Stmt out = Mutator::MutateFor(s, self);
    loops_.pop_back();
    std::vector<Stmt> before;
    for (auto& [loop, nest] : nests_) {
      if (loop == &s) before.push_back(std::move(nest));
    }
    if (before.empty()) return out;
    std::erase_if(nests_, [&](const auto& entry) { return entry.first == &s; });
    before.push_back(std::move(out));
    return ir::MakeSeq(std::move(before));
  }

  // No nest moves out of a condition or an inner scope.
  Stmt MutateIf(const ir::IfNode& s, const Stmt& self) override {
    const auto outer = std::exchange(loops_, {});
    Stmt out = Mutator::MutateIf(s, self);
    loops_ = outer;
    return out;
  }
  Stmt MutateLetStmt(const ir::LetStmtNode& s, const Stmt& self) override {
    const auto outer = std::exchange(loops_, {});
    Stmt out = Mutator::MutateLetStmt(s, self);
    loops_ = outer;
    return out;
  }

  Stmt MutateBlock(const BlockNode& s, const Stmt&) override {
    BlockNode block(s);
    if (s.init != nullptr) {
      InitNest nest;
      block.init = nullptr;
      if (nest.Build(loops_, s)) {
        nests_.emplace_back(nest.before(), nest.nest());
      } else {
        Expr first = ir::BoolConst(true);
        for (const ir::IterVar& iter : s.iters) {
          if (iter.type != IterType::kReduce) continue;
          first = ir::And(first, ir::EQ(iter.var, iter.dom.min));
        }
        block.body = ir::MakeSeq(
            {ir::IsConstInt(first, 1) ? s.init : ir::MakeIf(first, s.init),
             s.body});
      }
    }
    const auto outer = std::exchange(loops_, {});
    block.body = Mutate(block.body);
    loops_ = outer;
    return ir::BlockOf(std::move(block));
  }

 private:
  std::vector<const ForNode*> loops_;
  std::vector<std::pair<const ForNode*, Stmt>> nests_;
};

}  // namespace

Stmt LowerInit(const Stmt& root) { return InitLowerer().Mutate(root); }

}  // namespace tilefarm::lower
