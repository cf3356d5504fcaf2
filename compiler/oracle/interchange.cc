#include "compiler/oracle/interchange.h"

#include <algorithm>

#include "compiler/ir/visitor.h"

namespace tilefarm::oracle {
namespace {

using ir::As;

// Whether a step of `var` moves every access by one element or not at all.
bool IsContiguous(const ir::StoreNode& store, const ir::VarNode* var) {
  bool contiguous = true;
  const auto check = [&](const std::vector<ir::Expr>& indices) {
    for (size_t d = 0; d < indices.size(); ++d) {
      if (!ir::UsesVar(indices[d], var)) continue;
      const auto* sum = As<ir::BinaryNode>(indices[d]);
      const bool unit = indices[d].get() == var ||
                        (sum != nullptr && sum->op == ir::BinaryOp::kAdd &&
                         (sum->a.get() == var || sum->b.get() == var));
      contiguous &= unit && d + 1 == indices.size();
    }
  };
  ir::PostOrderExprs(store.value, [&](const ir::Expr& e) {
    if (const auto* load = As<ir::LoadNode>(e)) check(load->indices);
  });
  check(store.indices);
  return contiguous;
}

const ir::IterVar* BoundTo(const ir::BlockNode& block,
                           const ir::VarNode* loop_var) {
  const ir::IterVar* found = nullptr;
  for (const ir::IterVar& iter : block.iters) {
    if (!ir::UsesVar(iter.binding, loop_var)) continue;
    if (found != nullptr || iter.binding.get() != loop_var) return nullptr;
    found = &iter;
  }
  return found;
}

// Whether the loop takes every value of the variable exactly once.
bool CoversDomain(const ir::ForNode& loop, const ir::IterVar& iter) {
  const auto min = ir::AsInt(loop.min), extent = ir::AsInt(loop.extent);
  return min.has_value() && extent.has_value() && *extent > 0 &&
         min == ir::AsInt(iter.dom.min) && extent == ir::AsInt(iter.dom.extent);
}

bool SameVars(const std::vector<ir::Expr>& a, const std::vector<ir::Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) {
                      return x.get() == y.get() && As<ir::VarNode>(x);
                    });
}

bool ReadsOnly(const ir::Expr& value, const ir::StoreNode& store, bool own) {
  bool only = true;
  ir::PostOrderExprs(value, [&](const ir::Expr& e) {
    const auto* load = As<ir::LoadNode>(e);
    if (load == nullptr || load->buffer != store.buffer) return;
    only &= own && SameVars(load->indices, store.indices);
  });
  return only;
}

// Whether init and body are one store each, to one element for each spatial
// instance.
bool IsPlain(const ir::BlockNode& block) {
  const auto* init = As<ir::StoreNode>(block.init);
  const auto* update = As<ir::StoreNode>(block.body);
  if (init == nullptr || update == nullptr || !block.allocs.empty() ||
      !ir::IsConstInt(block.predicate, 1) || init->buffer != update->buffer ||
      !SameVars(init->indices, update->indices) ||
      !ReadsOnly(init->value, *init, /*own=*/false) ||
      !ReadsOnly(update->value, *update, /*own=*/true)) {
    return false;
  }
  return std::all_of(
      block.iters.begin(), block.iters.end(), [&](const ir::IterVar& iter) {
        const auto uses =
            std::count_if(update->indices.begin(), update->indices.end(),
                          [&](const ir::Expr& index) {
                            return index.get() == iter.var.get();
                          });
        return iter.type == ir::IterType::kSpatial
                   ? uses == 1
                   : iter.type == ir::IterType::kReduce && uses == 0 &&
                         !ir::UsesVar(init->value, iter.var.get());
      });
}

}  // namespace

std::optional<ReductionNest> FindReductionNest(const ir::ForNode& outermost) {
  std::vector<const ir::ForNode*> loops = {&outermost};
  while (const auto* inner = As<ir::ForNode>(loops.back()->body)) {
    loops.push_back(inner);
  }
  const auto* block = As<ir::BlockNode>(loops.back()->body);
  if (block == nullptr || loops.size() != block->iters.size() ||
      !IsPlain(*block)) {
    return std::nullopt;
  }
  ReductionNest nest = {block, {}, {}, 1};
  std::vector<const ir::ForNode*> reduce;
  const ir::VarNode* inner = nullptr;
  for (const ir::ForNode* loop : loops) {
    const ir::IterVar* iter = BoundTo(*block, loop->var.get());
    if (iter == nullptr || !CoversDomain(*loop, *iter)) return std::nullopt;
    if (iter->type == ir::IterType::kReduce) {
      reduce.push_back(loop);
    } else {
      nest.spatial.push_back(loop);
      inner = iter->var.get();
    }
  }
  nest.order = nest.spatial;
  const bool last =
      inner != nullptr && IsContiguous(*As<ir::StoreNode>(block->body), inner);
  nest.order.insert(last ? nest.order.end() - 1 : nest.order.end(),
                    reduce.begin(), reduce.end());
  if (inner != nullptr && !last) {
    const int64_t extent = *ir::AsInt(nest.spatial.back()->extent);
    while (nest.together < 8 && extent % (2 * nest.together) == 0) {
      nest.together *= 2;
    }
  }
  return nest;
}

}  // namespace tilefarm::oracle
