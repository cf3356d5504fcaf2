#include "compiler/driver/reference.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "compiler/ir/library_call.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::driver {
namespace {

using ir::As;
using ir::DataType;
using ir::Expr;
using ir::Stmt;

const DataType kAccumulator = DataType::Float(64);

bool HasReduceAxis(const ir::BlockNode& block) {
  return std::any_of(
      block.iters.begin(), block.iters.end(),
      [](const ir::IterVar& it) { return it.type == ir::IterType::kReduce; });
}

bool Reads(const Expr& expr, const ir::BufferNode* buffer) {
  bool found = false;
  ir::PostOrderExprs(expr, [&](const Expr& e) {
    const auto* load = As<ir::LoadNode>(e);
    found |= load != nullptr && load->buffer.get() == buffer;
  });
  return found;
}

// Buffers that some reduction accumulates into, in program order.
class FindAccumulators : public ir::Visitor {
 public:
  std::vector<ir::Buffer> buffers;

 protected:
  void VisitBlock(const ir::BlockNode& block) override {
    const bool outer = in_reduction_;
    in_reduction_ = outer || HasReduceAxis(block);
    Visitor::VisitBlock(block);
    in_reduction_ = outer;
  }
  void VisitStore(const ir::StoreNode& store) override {
    const DataType dtype = store.buffer->dtype;
    if (in_reduction_ && dtype.is_float() && dtype.bits < 64 &&
        Reads(store.value, store.buffer.get()) &&
        seen_.insert(store.buffer.get()).second) {
      buffers.push_back(store.buffer);
    }
  }

 private:
  bool in_reduction_ = false;
  std::unordered_set<const ir::BufferNode*> seen_;
};

// Moves accesses to the float64 shadows.
class UseShadows : public ir::Mutator {
 public:
  explicit UseShadows(const ir::BufferMap& shadows) : shadows_(shadows) {}

 protected:
  ir::Buffer MutateBuffer(const ir::Buffer& buffer) override {
    const auto it = shadows_.find(buffer.get());
    return it == shadows_.end() ? buffer : it->second;
  }
  Expr MutateLoad(const ir::LoadNode& load, const Expr& self) override {
    const auto it = shadows_.find(load.buffer.get());
    if (it == shadows_.end()) return Mutator::MutateLoad(load, self);
    return ir::MakeCast(load.buffer->dtype,
                        ir::Load(it->second, MutateAll(load.indices)));
  }
  Stmt MutateStore(const ir::StoreNode& store, const Stmt& self) override {
    const auto it = shadows_.find(store.buffer.get());
    if (it == shadows_.end()) return Mutator::MutateStore(store, self);
    target_ = store.buffer.get();
    Expr value = Promote(store.value);
    target_ = nullptr;
    return ir::MakeStore(it->second, MutateAll(store.indices),
                         std::move(value));
  }

 private:
  // The expression with its arithmetic in float64; its leaves are exact.
  Expr Promote(const Expr& expr) {
    if (const auto* load = As<ir::LoadNode>(expr);
        load != nullptr && load->buffer.get() == target_) {
      return ir::Load(shadows_.at(target_), MutateAll(load->indices));
    }
    if (const auto* e = As<ir::BinaryNode>(expr);
        e != nullptr && e->a->dtype.is_float()) {
      return ir::MakeBinary(e->op, Promote(e->a), Promote(e->b));
    }
    if (const auto* e = As<ir::SelectNode>(expr)) {
      return ir::MakeSelect(Mutate(e->condition), Promote(e->true_value),
                            Promote(e->false_value));
    }
    if (const auto* e = As<ir::CallNode>(expr)) {
      if (e->op == ir::Intrinsic::kIfThenElse) {
        return ir::IfThenElseExpr(Mutate(e->args[0]), Promote(e->args[1]),
                                  Promote(e->args[2]));
      }
      if (e->args[0]->dtype.is_float()) {
        std::vector<Expr> args;
        for (const Expr& arg : e->args) args.push_back(Promote(arg));
        return ir::MakeCall(e->op, std::move(args));
      }
    }
    if (const auto* e = As<ir::CastNode>(expr);
        e != nullptr && e->value->dtype.is_float() &&
        e->value->dtype.bits < e->dtype.bits) {
      return Promote(e->value);
    }
    return ir::MakeCast(kAccumulator, Mutate(expr));
  }

  const ir::BufferMap& shadows_;
  const ir::BufferNode* target_ = nullptr;
};

// for i0, i1, ...: block NAME { to[i0, i1] = dtype(from[i0, i1]) }
Stmt CopyNest(const ir::Buffer& from, const ir::Buffer& to,
              const std::string& name) {
  ir::BlockNode block;
  block.name = name;
  block.predicate = ir::BoolConst(true);
  std::vector<ir::Var> loops;
  std::vector<Expr> indices;
  std::vector<ir::Range> region;
  for (size_t d = 0; d < from->shape.size(); ++d) {
    const std::string axis = std::to_string(d);
    loops.push_back(ir::MakeVar("i" + axis));
    const ir::Var var = ir::MakeVar("v" + axis);
    block.iters.push_back({var,
                           {ir::IntConst(0), ir::IntConst(from->shape[d])},
                           ir::IterType::kSpatial,
                           loops.back()});
    indices.push_back(var);
    region.push_back({var, ir::IntConst(1)});
  }
  block.reads = {{from, region}};
  block.writes = {{to, region}};
  block.body = ir::MakeStore(to, indices,
                             ir::MakeCast(to->dtype, ir::Load(from, indices)));
  Stmt nest = ir::BlockOf(std::move(block));
  for (size_t d = loops.size(); d-- > 0;) {
    nest = ir::MakeFor(loops[d], ir::IntConst(from->shape[d]), nest);
  }
  return nest;
}

// Whether `var` moves every access by one element or not at all.
bool Contiguous(const Stmt& body, const ir::VarNode* var) {
  bool contiguous = true;
  const auto check = [&](const std::vector<Expr>& indices) {
    for (size_t d = 0; d < indices.size(); ++d) {
      if (!ir::UsesVar(indices[d], var)) continue;
      const auto* sum = As<ir::BinaryNode>(indices[d]);
      const bool unit = indices[d].get() == var ||
                        (sum != nullptr && sum->op == ir::BinaryOp::kAdd &&
                         (sum->a.get() == var || sum->b.get() == var));
      contiguous &= unit && d + 1 == indices.size();
    }
  };
  ir::PostOrderExprs(body, [&](const Expr& e) {
    if (const auto* load = As<ir::LoadNode>(e)) check(load->indices);
  });
  if (const auto* store = As<ir::StoreNode>(body)) check(store->indices);
  return contiguous;
}

// A plain reduction nest, its innermost spatial loop moved innermost:
//
//   for i, j, k: block {init; update}
//   ->  for i, j: block {init}   for i, k, j: block {update}
class MoveSpatialInside : public ir::Mutator {
 protected:
  Stmt MutateFor(const ir::ForNode& outermost, const Stmt& self) override {
    std::vector<const ir::ForNode*> loops = {&outermost};
    while (const auto* inner = As<ir::ForNode>(loops.back()->body)) {
      loops.push_back(inner);
    }
    const auto* block = As<ir::BlockNode>(loops.back()->body);
    if (block == nullptr || !Plain(loops, *block)) {
      return Mutator::MutateFor(outermost, self);
    }
    std::vector<const ir::ForNode*> spatial, reduce;
    const ir::VarNode* inner_var = nullptr;
    for (const ir::ForNode* loop : loops) {
      const ir::IterVar& iter = *Bound(*block, loop->var.get());
      if (iter.type == ir::IterType::kReduce) {
        reduce.push_back(loop);
      } else {
        spatial.push_back(loop);
        inner_var = iter.var.get();
      }
    }
    if (spatial.empty() || reduce.empty() ||
        !Contiguous(block->body, inner_var)) {
      return self;
    }
    ir::BlockNode init = *block;
    init.name += "_init";
    init.init = nullptr;
    init.body = block->init;
    init.reads.clear();
    std::erase_if(init.iters, [](const ir::IterVar& it) {
      return it.type == ir::IterType::kReduce;
    });
    ir::BlockNode update = *block;
    update.name += "_update";
    update.init = nullptr;
    Stmt init_nest =
        Nest(spatial, ir::BlockOf(std::move(init)), /*fresh=*/true);
    std::vector<const ir::ForNode*> order(spatial.begin(), spatial.end() - 1);
    order.insert(order.end(), reduce.begin(), reduce.end());
    order.push_back(spatial.back());
    return ir::MakeSeq(
        {init_nest, Nest(order, ir::BlockOf(std::move(update)), false)});
  }

 private:
  static const ir::IterVar* Bound(const ir::BlockNode& block,
                                  const ir::VarNode* loop_var) {
    for (const ir::IterVar& iter : block.iters) {
      if (iter.binding.get() == loop_var) return &iter;
    }
    return nullptr;
  }
  // One serial loop a block variable, nothing else in between.
  static bool Plain(const std::vector<const ir::ForNode*>& loops,
                    const ir::BlockNode& block) {
    if (block.init == nullptr || As<ir::StoreNode>(block.body) == nullptr ||
        As<ir::StoreNode>(block.init) == nullptr ||
        !ir::IsConstInt(block.predicate, 1) || !block.allocs.empty() ||
        loops.size() != block.iters.size()) {
      return false;
    }
    for (const ir::IterVar& iter : block.iters) {
      if (iter.type == ir::IterType::kOpaque) return false;
    }
    return std::all_of(loops.begin(), loops.end(), [&](const auto* loop) {
      return loop->for_kind == ir::ForKind::kSerial &&
             ir::IsConstInt(loop->min, 0) &&
             Bound(block, loop->var.get()) != nullptr;
    });
  }
  // `fresh`: with variables of its own, since the other nest keeps the old.
  static Stmt Nest(const std::vector<const ir::ForNode*>& loops,
                   ir::BlockPtr block, bool fresh) {
    ir::VarMap renamed;
    std::vector<ir::Var> vars;
    for (const ir::ForNode* loop : loops) {
      vars.push_back(fresh ? ir::MakeVar(loop->var->name, loop->var->dtype)
                           : loop->var);
      if (fresh) renamed[loop->var.get()] = vars.back();
    }
    Stmt nest = block;
    if (fresh) {
      ir::BlockNode copy = *block;
      for (ir::IterVar& iter : copy.iters) {
        const ir::Var var = ir::MakeVar(iter.var->name, iter.var->dtype);
        renamed[iter.var.get()] = var;
        iter.var = var;
      }
      nest = ir::Substitute(ir::BlockOf(std::move(copy)), renamed);
    }
    for (size_t i = loops.size(); i-- > 0;) {
      nest = ir::MakeFor(vars[i], loops[i]->extent, nest);
    }
    return nest;
  }
};

}  // namespace

ir::PrimFuncPtr MakeReference(const ir::PrimFunc& function) {
  const ir::BlockNode* root = function.root();
  TF_CHECK(root != nullptr);
  // The reference is nobody else's work.
  const Stmt body = ir::WithoutLibraryCalls(function.body);
  FindAccumulators accumulators;
  accumulators.Visit(body);
  ir::BufferMap shadows;
  for (const ir::Buffer& buffer : accumulators.buffers) {
    auto shadow = std::make_shared<ir::BufferNode>(*buffer);
    shadow->dtype = kAccumulator;
    shadow->name += "_f64";
    shadow->scope = "global";
    shadow->strides.clear();
    shadow->elem_offset = 0;
    shadows[buffer.get()] = std::move(shadow);
  }
  // Mutating the root block also moves its allocations to the shadows.
  const Stmt mutated =
      MoveSpatialInside().Mutate(UseShadows(shadows).Mutate(body));
  ir::BlockNode block = *As<ir::BlockNode>(mutated);
  std::vector<Stmt> stmts, copies_out;
  for (const ir::Buffer& param : function.params) {
    const auto it = shadows.find(param.get());
    if (it == shadows.end()) continue;
    block.allocs.push_back(it->second);
    stmts.push_back(CopyNest(param, it->second, param->name + "_in"));
    copies_out.push_back(CopyNest(it->second, param, param->name + "_out"));
  }
  stmts.push_back(block.body);
  stmts.insert(stmts.end(), copies_out.begin(), copies_out.end());
  block.body = ir::MakeSeq(std::move(stmts));
  auto result = std::make_shared<ir::PrimFunc>(function);
  result->body = ir::BlockOf(std::move(block));
  return result;
}

}  // namespace tilefarm::driver
