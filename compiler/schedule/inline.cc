// compute_inline and reverse_compute_inline: an elementwise block is inlined
// into the blocks that read it, or into the block whose result it reads.
//
//   compute_inline(B)                       reverse_compute_inline(C)
//
//   for i: B[i] = f(A[i])                   for i: B[i] = f(A[i])
//   for j: C[j] = g(B[j + 1])               for i: C[i] = g(B[i])
//   ->                                      ->
//   for j: C[j] = g(f(A[j + 1]))            for i: C[i] = g(f(A[i]))
//
// Steps of compute_inline:
//   1. Check that the block is complete, is no output, and consists of one
//      store to one buffer, whose indices determine all block variables.
//   2. Check that its inputs have the same values at each place where they will
//      be read.
//   3. Remove it, replace each load of its buffer by its value at the indices
//      of the load, and drop the buffer.
//
// Steps of reverse_compute_inline:
//   1. Check that the block is complete, consists of one store, and reads one
//      buffer, which one complete block writes and no other block reads, at
//      indices that determine all its variables.
//   2. Replace the producer's store by the block's, at the instance that reads
//      the stored element. If the block does not read all elements, add a
//      predicate that selects the ones it reads.
//
// Two casts replace a store's rounding to a 16-bit float, the second of which
// rounds, so results stay equal.
#include <functional>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "compiler/arith/iter_map.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/float16.h"
#include "compiler/ir/padding.h"
#include "compiler/ir/regions.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/loop_primitives.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/scope_edit.h"

namespace tilefarm::schedule {
namespace {

// The values of block variables as a function of the indices of an access.
using IndexInverse =
    std::function<ir::VarMap(const std::vector<ir::Expr>& indices)>;

// nullopt if the indices do not determine the variables.
std::optional<IndexInverse> InvertIndices(
    const ir::BlockNode& block, const std::vector<ir::Expr>& indices) {
  // The common case: each index is a variable of its own or a constant.
  std::vector<std::pair<const ir::VarNode*, size_t>> direct;
  std::unordered_set<const ir::VarNode*> seen;
  bool plain = true;
  for (size_t i = 0; i < indices.size() && plain; ++i) {
    if (ir::AsInt(indices[i]).has_value()) continue;
    const auto* var = ir::As<ir::VarNode>(indices[i]);
    plain = var != nullptr && seen.insert(var).second;
    if (plain) direct.emplace_back(var, i);
  }
  ir::VarMap units;
  bool all = true;
  for (const ir::IterVar& iter : block.iters) {
    if (seen.contains(iter.var.get())) continue;
    all = all && ir::IsConstInt(iter.dom.extent, 1);
    units[iter.var.get()] = iter.dom.min;
  }
  if (plain && all) {
    return [direct, units](const std::vector<ir::Expr>& at) {
      ir::VarMap map = units;
      for (const auto& [var, dim] : direct) map[var] = at[dim];
      return map;
    };
  }
  arith::Analyzer analyzer;
  auto map = arith::DetectIterMap(indices, DomainOf(block), nullptr,
                                  arith::IterMapLevel::kBijective, analyzer,
                                  /*simplify_trivial=*/false);
  if (!map.ok()) return std::nullopt;
  return [map = *std::move(map), units](const std::vector<ir::Expr>& at) {
    arith::Analyzer simplifier;
    ir::VarMap values = units;
    for (const auto& [var, value] : arith::InverseIterMap(map, at)) {
      values[var] = simplifier.Simplify(value);
    }
    return values;
  };
}

// Replaces the variable of every let in a copied expression by a new one.
class LetRefresher : public ir::Mutator {
 public:
  using Mutator::Mutate;

 protected:
  ir::Expr MutateLet(const ir::LetNode& let, const ir::Expr&) override {
    const ir::Var var = ir::MakeLetVar(let.var->name, let.var->dtype);
    const ir::Expr body =
        ir::Substitute(let.body, ir::VarMap{{let.var.get(), var}});
    return ir::MakeLet(var, Mutate(let.value), Mutate(body));
  }
};

ir::Expr ValueAt(const ir::Expr& value, const ir::VarMap& vars) {
  return LetRefresher().Mutate(ir::Substitute(value, vars));
}

// Whether a 16-bit float is what is stored, without being computed.
bool IsExact(const ir::BufferNode& buffer, const ir::Expr& value) {
  if (const auto* number = ir::As<ir::FloatConstNode>(value)) {
    const auto single = static_cast<float>(number->value);
    return ir::RoundTo(buffer.dtype, single) == single;
  }
  const auto* choice = ir::As<ir::CallNode>(value);
  if (choice != nullptr && choice->op == ir::Intrinsic::kIfThenElse) {
    return IsExact(buffer, choice->args[1]) && IsExact(buffer, choice->args[2]);
  }
  return ir::As<ir::LoadNode>(value) != nullptr ||
         ir::As<ir::CastNode>(value) != nullptr;
}

// The value that a load returns after `value` was stored to the buffer.
ir::Expr Rounded(const ir::BufferNode& buffer, const ir::Expr& value) {
  if (!buffer.dtype.is_float() || buffer.dtype.bits != 16 ||
      IsExact(buffer, value)) {
    return value;
  }
  return ir::MakeCast(buffer.dtype,
                      ir::MakeCast(ir::DataType::Float(32), value));
}

// The only statement of the block, if it is a store; else null.
const ir::StoreNode* OnlyStore(const ir::BlockNode& block) {
  if (block.init != nullptr || !block.allocs.empty()) return nullptr;
  return ir::As<ir::StoreNode>(block.body);
}

// Whether only block variables and let variables occur.
bool UsesOnlyBlockVars(const ir::BlockNode& block) {
  std::unordered_set<const ir::VarNode*> known;
  for (const ir::IterVar& iter : block.iters) known.insert(iter.var.get());
  ir::PostOrderExprs(block.body, [&](const ir::Expr& expr) {
    if (const auto* let = ir::As<ir::LetNode>(expr))
      known.insert(let->var.get());
  });
  bool only = true;
  ir::PostOrderExprs(block.body, [&](const ir::Expr& expr) {
    const auto* var = ir::As<ir::VarNode>(expr);
    only = only && (var == nullptr || known.contains(var));
  });
  return only;
}

// Collects the indices of the loads of the buffer; false if they differ.
bool AllLoadsEqual(const ir::BlockNode& block, const ir::BufferNode* buffer,
                   std::vector<ir::Expr>* indices) {
  bool equal = true;
  bool first = true;
  ir::PostOrderExprs(block.body, [&](const ir::Expr& expr) {
    const auto* load = ir::As<ir::LoadNode>(expr);
    if (load == nullptr || load->buffer.get() != buffer) return;
    if (first) {
      *indices = load->indices;
      first = false;
      return;
    }
    for (size_t i = 0; i < indices->size(); ++i) {
      equal = equal && arith::ExprEqual((*indices)[i], load->indices[i]);
    }
  });
  return equal && !first;
}

absl::Status CheckElementwise(const ScheduleState& state,
                              const ir::BlockPtr& block,
                              const ir::BlockPtr& scope,
                              const BlockScope& deps) {
  TF_RETURN_IF_ERROR(CheckComplete(state, deps, block.get()));
  TF_RETURN_IF_ERROR(CheckOnlyLoopsAbove(state, block.get()));
  TF_RETURN_IF_ERROR(CheckStagePipeline(state, scope.get()));
  if (OnlyStore(*block) == nullptr) {
    return state.Illegal(block.get(), "its body is not one store");
  }
  if (!UsesOnlyBlockVars(*block)) {
    return state.Illegal(block.get(), "its body uses loop variables directly");
  }
  return absl::OkStatus();
}

// Step 2 of compute_inline for one consumer.
absl::Status CheckInputsAt(const ScheduleState& state,
                           const ir::BlockPtr& block, const BlockScope& deps,
                           const ir::BlockPtr& consumer) {
  for (const ir::BlockPtr& producer : deps.Producers(block.get())) {
    const size_t kept =
        SharedLoops(state, producer.get(), consumer.get()).size();
    std::vector<ir::ForPtr> left =
        SharedLoops(state, producer.get(), block.get());
    if (left.size() <= kept) continue;
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(kept));
    for (const ir::BufferRegion& read : block->reads) {
      TF_RETURN_IF_ERROR(
          CheckFinalIn(state, *producer, read.buffer.get(), left));
    }
  }
  return absl::OkStatus();
}

absl::Status InlineBlock(ScheduleState& state, const ir::BlockPtr& block) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr scope, ScopeOf(state, block));
  const BlockScope deps(state, scope.get());
  TF_RETURN_IF_ERROR(CheckElementwise(state, block, scope, deps));
  if (IsOutput(state, block.get())) {
    return state.Illegal(block.get(),
                         "the block writes an output of its scope");
  }
  const ir::StoreNode& store = *OnlyStore(*block);
  const std::optional<IndexInverse> inverse =
      InvertIndices(*block, store.indices);
  if (!inverse.has_value()) {
    return state.Illegal(block.get(), "the indices it stores to in buffer ",
                         store.buffer->name,
                         " do not determine its block variables");
  }
  for (const Dependency& dep : deps.dependencies()) {
    if (dep.kind == DepKind::kWar && dep.src == block) {
      return state.Illegal(block.get(), "block ", dep.dst->name,
                           " overwrites what it reads");
    }
  }
  for (const ir::BlockPtr& consumer : deps.Consumers(block.get())) {
    TF_RETURN_IF_ERROR(CheckInputsAt(state, block, deps, consumer));
  }
  ScopeEditor edit;
  edit.Replace(block.get(), ir::NoOp());
  edit.RemoveAlloc(store.buffer.get());
  AccessRewrite rewrite;
  rewrite.buffer = store.buffer.get();
  rewrite.on_load = [&](const std::vector<ir::Expr>& indices) {
    return Rounded(*store.buffer, ValueAt(store.value, (*inverse)(indices)));
  };
  for (const ir::BlockPtr& reader : deps.Readers(store.buffer.get())) {
    const ir::Stmt made = RewriteAccesses(reader, rewrite);
    if (reader->annotations.contains(ir::kSkipPadding) &&
        ir::SkipsExactly(*reader) &&
        !ir::SkipsExactly(*ir::As<ir::BlockNode>(made))) {
      TF_RETURN_IF_ERROR(state.CheckMayDiffer(reader.get(), state.kLeavesOut));
    }
    edit.Replace(reader.get(), made);
  }
  state.Replace(scope.get(), edit.Apply(*scope));
  return absl::OkStatus();
}

// The producer's predicate, restricted to the elements that the consumer reads.
// The consumer reads at the indices `read`, the producer stores to `stored`.
ir::Expr ConsumerPredicate(const ScheduleState& state,
                           const ir::BlockNode& producer,
                           const ir::BlockNode& consumer,
                           const ir::VarMap& consumer_vars,
                           const std::vector<ir::Expr>& read,
                           const std::vector<ir::Expr>& stored) {
  arith::Analyzer analyzer;
  BindLoops(analyzer, state.LoopsAbove(&producer));
  const ir::VarMap bindings = BindingsOf(producer);
  ir::Expr predicate = producer.predicate;
  analyzer.Assume(predicate);
  for (const ir::IterVar& iter : producer.iters) {
    analyzer.Assume(ir::GE(iter.binding, iter.dom.min));
    analyzer.Assume(ir::LT(iter.binding, iter.dom.min + iter.dom.extent));
  }
  // A strided access reads only some of the elements.
  for (size_t d = 0; d < read.size(); ++d) {
    const ir::Expr element = ir::Substitute(stored[d], bindings);
    const ir::Expr reached =
        ir::Substitute(ir::Substitute(read[d], consumer_vars), bindings);
    if (!analyzer.ProveEqual(element, reached)) {
      predicate = ir::And(predicate, ir::EQ(analyzer.Simplify(element),
                                            analyzer.Simplify(reached)));
    }
  }
  for (const ir::IterVar& iter : consumer.iters) {
    const auto it = consumer_vars.find(iter.var.get());
    if (it == consumer_vars.end()) continue;
    const ir::Expr value =
        analyzer.Simplify(ir::Substitute(it->second, bindings));
    for (const ir::Expr& in_domain :
         {ir::GE(value, iter.dom.min),
          ir::LT(value, iter.dom.min + iter.dom.extent)}) {
      if (!analyzer.CanProve(in_domain)) {
        predicate = ir::And(predicate, in_domain);
      }
    }
  }
  return predicate;
}

absl::Status ReverseInlineBlock(ScheduleState& state,
                                const ir::BlockPtr& block) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr scope, ScopeOf(state, block));
  const BlockScope deps(state, scope.get());
  TF_RETURN_IF_ERROR(CheckElementwise(state, block, scope, deps));
  const std::vector<ir::BlockPtr> producers = deps.Producers(block.get());
  if (producers.size() != 1) {
    return state.Illegal(block.get(), "it must have one producer and has ",
                         producers.size());
  }
  const ir::BlockPtr& producer = producers[0];
  TF_RETURN_IF_ERROR(CheckComplete(state, deps, producer.get()));
  const ir::StoreNode* store = OnlyStore(*producer);
  if (store == nullptr || IsOutput(state, producer.get())) {
    return state.Illegal(block.get(), "its producer ", producer->name,
                         " is not one store to an intermediate "
                         "buffer");
  }
  if (deps.Consumers(producer.get()).size() != 1 ||
      deps.Readers(store->buffer.get()).size() != 1) {
    return state.Illegal(block.get(), "its producer ", producer->name,
                         " has other consumers");
  }
  std::vector<ir::Expr> indices;
  const bool one_access = AllLoadsEqual(*block, store->buffer.get(), &indices);
  const std::optional<IndexInverse> inverse =
      one_access ? InvertIndices(*block, indices) : std::nullopt;
  // The block will run inside the producer, so each of its elements must be
  // written by one instance.
  if (!inverse.has_value() || !WritesAreDistinct(*producer) ||
      !WritesAreDistinct(*block)) {
    return state.Illegal(block.get(), "the elements of buffer ",
                         store->buffer->name,
                         " and the instances that read them do not correspond "
                         "one to one");
  }
  // With a constant index, it reads only a slice of the producer's buffer.
  for (size_t i = 0; i < indices.size(); ++i) {
    if (ir::AsInt(indices[i]).has_value() && store->buffer->shape[i] != 1) {
      return state.Illegal(block.get(),
                           "it reads a slice of its producer's buffer");
    }
  }
  if (!PredicateOnlyGuardsDomain(state, *block) ||
      !CoversDomain(state, *producer, /*exactly_once=*/false)) {
    return state.Illegal(block.get(), "its producer ", producer->name,
                         " or its predicate leaves out part of "
                         "the domain");
  }
  // An instance of the producer must write each element that the block reads.
  arith::Analyzer analyzer;
  const auto written =
      DenseRegion(producer->writes[0], {}, DomainOf(*producer), analyzer);
  const auto* read = FindRegion(block->reads, store->buffer.get());
  if (!written.has_value() || read == nullptr ||
      !arith::RegionCovers(
          analyzer, *written,
          arith::RelaxRegion(analyzer, *read, DomainOf(*block)))) {
    return state.Illegal(block.get(), "its producer ", producer->name,
                         " does not write all that it reads");
  }
  for (const Dependency& dep : deps.dependencies()) {
    if (dep.kind == DepKind::kWar && dep.dst == block) {
      return state.Illegal(block.get(), "it overwrites what block ",
                           dep.src->name, " reads before it");
    }
  }

  const ir::StoreNode& target = *OnlyStore(*block);
  AccessRewrite read_stored;
  read_stored.buffer = store->buffer.get();
  const ir::VarMap consumer_vars = (*inverse)(store->indices);
  const ir::Expr stored = Rounded(*store->buffer, store->value);
  read_stored.on_load = [&](const std::vector<ir::Expr>&) { return stored; };
  // Substitute the variables first: the stored value has none of them.
  const ir::Stmt moved = ir::Substitute(
      ir::Stmt(ir::MakeStore(target.buffer, target.indices, target.value)),
      consumer_vars);
  ir::BlockNode fused = *producer;
  fused.predicate = ConsumerPredicate(state, *producer, *block, consumer_vars,
                                      indices, store->indices);
  fused.body = RewriteAccesses(moved, read_stored);
  for (const auto& [key, value] : block->annotations) {
    fused.annotations.insert({key, value});
  }
  const ir::Accesses accesses = ir::DetectAccesses(fused);
  fused.reads = accesses.reads;
  fused.writes = accesses.writes;

  const ir::BlockPtr result = ir::BlockOf(std::move(fused));
  ScopeEditor edit;
  edit.Replace(block.get(), ir::NoOp());
  edit.Replace(producer.get(), result);
  edit.RemoveAlloc(store->buffer.get());
  state.Replace(scope.get(), edit.Apply(*scope),
                {{producer.get(), result.get()}});
  return absl::OkStatus();
}

}  // namespace

absl::Status ComputeInline(ScheduleState& state, BlockRv block_rv) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr block, state.Get(block_rv));
  return InlineBlock(state, block);
}

absl::Status ReverseComputeInline(ScheduleState& state, BlockRv block_rv) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr block, state.Get(block_rv));
  return ReverseInlineBlock(state, block);
}

bool CanComputeInline(const ScheduleState& state, const ir::BlockPtr& block) {
  return state.Would(
      [&](ScheduleState& trial) { return InlineBlock(trial, block); });
}

}  // namespace tilefarm::schedule
