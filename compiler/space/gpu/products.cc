#include "compiler/space/gpu/products.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/block_analysis.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

using schedule::BlockRv;
using schedule::Schedule;

const ir::LoadNode* Operand(const ir::Expr& e) {
  const auto* cast = ir::As<ir::CastNode>(e);
  return ir::As<ir::LoadNode>(cast != nullptr ? cast->value : e);
}

bool Uses(const std::vector<ir::Expr>& indices, const ir::IterVar& iter) {
  return absl::c_any_of(indices, [&](const ir::Expr& index) {
    return ir::UsesVar(index, iter.var.get());
  });
}

// What a variable of the block is to the product.
enum class Role : uint8_t { kEach, kRow, kColumn, kTerm };

// nullopt: the block is no product of matrices.
std::optional<std::vector<Role>> RolesOf(const ir::BlockNode& block,
                                         const ProductFactors& factors) {
  std::vector<Role> roles;
  for (const ir::IterVar& iter : block.iters) {
    const bool a = Uses(factors.a->indices, iter);
    const bool b = Uses(factors.b->indices, iter);
    if (!a && !b) {
      // The only one of a batch.
      if (iter.type == ir::IterType::kReduce || IterExtent(iter) > 1) {
        return std::nullopt;
      }
      roles.push_back(Role::kEach);
      continue;
    }
    if (iter.type == ir::IterType::kReduce) {
      if (!a || !b) return std::nullopt;
      roles.push_back(Role::kTerm);
    } else {
      roles.push_back(a && b ? Role::kEach : a ? Role::kRow : Role::kColumn);
    }
  }
  for (const Role role : {Role::kRow, Role::kColumn, Role::kTerm}) {
    if (!absl::c_linear_search(roles, role)) return std::nullopt;
  }
  return roles;
}

// The term that is the last index of an operand; nullopt: of neither, or
// another one of each.
std::optional<size_t> TermAlongRows(const ir::BlockNode& block,
                                    const ProductFactors& factors) {
  std::optional<size_t> term;
  for (const ir::LoadNode* load : {factors.a, factors.b}) {
    const auto last = VariableOf(block, load->indices.back());
    if (!last || block.iters[*last].type != ir::IterType::kReduce) continue;
    if (term && term != last) return std::nullopt;
    term = last;
  }
  return term;
}

// "lambda i0, i1, ..: (.., i0 * 4 + i1)": the variables of role kEach, then for
// each of `order` those of that role as one, of which `fastest` is the last.
// `taken`: the variables that the map takes, in the block's order.
std::string MapOf(const ir::BlockNode& block, const std::vector<Role>& roles,
                  const std::vector<bool>& taken,
                  const std::vector<Role>& order,
                  std::optional<size_t> fastest) {
  std::vector<std::string> inputs, outputs;
  for (size_t i = 0; i < roles.size(); ++i) {
    if (!taken[i]) continue;
    inputs.push_back(absl::StrCat("i", i));
    if (roles[i] == Role::kEach) outputs.push_back(inputs.back());
  }
  for (const Role role : order) {
    std::vector<size_t> variables;
    for (size_t i = 0; i < roles.size(); ++i) {
      if (taken[i] && roles[i] == role && i != fastest) variables.push_back(i);
    }
    if (fastest && taken[*fastest] && roles[*fastest] == role) {
      variables.push_back(*fastest);
    }
    std::vector<std::string> terms;
    int64_t stride = 1;
    for (size_t v = variables.size(); v-- > 0;) {
      const size_t i = variables[v];
      terms.insert(terms.begin(), absl::StrCat("i", i, " * ", stride));
      stride *= IterExtent(block.iters[i]);
    }
    outputs.push_back(terms.empty() ? "0" : absl::StrJoin(terms, " + "));
  }
  return absl::StrCat("lambda ", absl::StrJoin(inputs, ", "), ": (",
                      absl::StrJoin(outputs, ", "), ")");
}

std::vector<bool> TakenBy(const ir::BlockNode& block, const auto& uses) {
  std::vector<bool> taken;
  for (const ir::IterVar& iter : block.iters) taken.push_back(uses(iter));
  return taken;
}

// Makes rows and columns of what the block stores, and of the block; the copy
// to where it stored. `fuse`: an elementwise consumer becomes part of that.
absl::StatusOr<BlockRv> FlattenResults(Schedule& schedule, BlockRv block,
                                       const std::vector<Role>& roles,
                                       std::optional<size_t> fastest,
                                       bool fuse) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(const BlockRv copy,
                      schedule.Reindex(block, /*read=*/false, 0));
  const std::string results =
      MapOf(*node, roles,
            TakenBy(*node,
                    [](const ir::IterVar& iter) {
                      return iter.type == ir::IterType::kSpatial;
                    }),
            {Role::kRow, Role::kColumn}, fastest);
  TF_RETURN_IF_ERROR(
      schedule.TransformLayout(block, /*read=*/false, 0, results));
  TF_RETURN_IF_ERROR(schedule.TransformBlockLayout(
      block, MapOf(*node, roles, std::vector<bool>(roles.size(), true),
                   {Role::kRow, Role::kColumn, Role::kTerm}, fastest)));
  if (fuse) {
    TF_ASSIGN_OR_RETURN(const std::optional<BlockRv> consumer,
                        FusibleConsumer(schedule, copy));
    if (!consumer) return absl::FailedPreconditionError("no consumer to fuse");
    TF_RETURN_IF_ERROR(schedule.ReverseComputeInline(*consumer));
  }
  TF_RETURN_IF_ERROR(schedule.TransformBlockLayout(copy, results));
  return copy;
}

// Which variables of the block index the buffer, each as a dimension of its
// own. nullopt: other indices.
std::optional<std::vector<bool>> PlainIndices(
    const ir::BlockNode& block, const std::vector<ir::Expr>& indices) {
  std::vector<bool> uses(block.iters.size());
  for (const ir::Expr& index : indices) {
    if (ir::IsConstInt(index, 0)) continue;
    bool found = false;
    for (size_t i = 0; i < block.iters.size(); ++i) {
      if (index.get() != block.iters[i].var.get() || uses[i]) continue;
      uses[i] = found = true;
    }
    if (!found) return std::nullopt;
  }
  return uses;
}

}  // namespace

std::optional<ProductFactors> FactorsOf(const ir::BlockNode& block) {
  const auto* store = ir::As<ir::StoreNode>(block.body);
  const auto* sum =
      store == nullptr ? nullptr : ir::As<ir::BinaryNode>(store->value);
  if (sum == nullptr || sum->op != ir::BinaryOp::kAdd || !IsReduction(block)) {
    return std::nullopt;
  }
  for (const auto& [old, term] :
       {std::pair{sum->a, sum->b}, std::pair{sum->b, sum->a}}) {
    const auto* load = ir::As<ir::LoadNode>(old);
    const auto* product = ir::As<ir::BinaryNode>(term);
    if (load == nullptr || load->buffer != store->buffer ||
        product == nullptr || product->op != ir::BinaryOp::kMul) {
      continue;
    }
    const ProductFactors factors{store, Operand(product->a),
                                 Operand(product->b)};
    if (factors.a != nullptr && factors.b != nullptr &&
        factors.a->buffer != factors.b->buffer &&
        factors.a->buffer != store->buffer &&
        factors.b->buffer != store->buffer) {
      return factors;
    }
  }
  return std::nullopt;
}

std::optional<size_t> NeighboursOf(const ir::BlockNode& block,
                                   const ir::LoadNode& load) {
  const std::vector<int64_t>& shape = load.buffer->shape;
  for (size_t d = load.indices.size(); d-- > 0;) {
    if (shape[d] > 1) return VariableOf(block, load.indices[d]);
  }
  return std::nullopt;
}

std::optional<MatrixProduct> FindMatrixProduct(const ir::BlockNode& block) {
  std::optional<ProductFactors> factors = FactorsOf(block);
  if (!factors || factors->store->indices.empty()) return std::nullopt;
  const auto sums = PlainIndices(block, factors->store->indices);
  auto a = PlainIndices(block, factors->a->indices);
  auto b = PlainIndices(block, factors->b->indices);
  if (!sums || !a || !b) return std::nullopt;
  // The columns are those of which sums lie side by side.
  const auto columns = VariableOf(block, factors->store->indices.back());
  if (!columns) return std::nullopt;
  MatrixProduct out;
  out.columns = *columns;
  if ((*a)[out.columns]) {
    std::swap(a, b);
    std::swap(factors->a, factors->b);
  }
  int terms = 0;
  out.rows = block.iters.size();
  // The rows are those that lie side by side, or the most there are.
  const auto beside = NeighboursOf(block, *factors->a);
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const bool in_a = (*a)[i], in_b = (*b)[i];
    if (block.iters[i].type == ir::IterType::kReduce) {
      if (!in_a || !in_b) return std::nullopt;
      out.terms = i;
      ++terms;
    } else if (i != out.columns && in_a && !in_b &&
               (out.rows == block.iters.size() || i == beside ||
                (out.rows != beside &&
                 IterExtent(block.iters[i]) >
                     IterExtent(block.iters[out.rows])))) {
      out.rows = i;
    }
  }
  if (terms != 1 || out.rows == block.iters.size() || (*a)[out.columns] ||
      !(*b)[out.columns]) {
    return std::nullopt;
  }
  out.factors = *factors;
  out.a = ReadOf(block, *factors->a);
  out.b = ReadOf(block, *factors->b);
  return out.a < 0 || out.b < 0 ? std::nullopt : std::optional(out);
}

absl::StatusOr<BlockRv> FlattenProduct(Schedule& schedule, BlockRv block,
                                       bool fuse, std::optional<BlockRv> sums) {
  // The block as it was, whose variables the maps are about.
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  const std::optional<ProductFactors> factors = FactorsOf(*node);
  if (!factors) return absl::FailedPreconditionError("no sum of products");
  std::optional<std::vector<Role>> roles = RolesOf(*node, *factors);
  if (!roles) return absl::FailedPreconditionError("no matrix product");
  const std::optional<size_t> fastest = TermAlongRows(*node, *factors);
  // The columns are those of which sums lie side by side.
  const ir::Expr& last = factors->store->indices.back();
  bool swaps = false;
  for (size_t i = 0; i < roles->size(); ++i) {
    swaps |= (*roles)[i] == Role::kRow &&
             ir::UsesVar(last, node->iters[i].var.get());
  }
  if (swaps) {
    for (Role& role : *roles) {
      role = role == Role::kRow      ? Role::kColumn
             : role == Role::kColumn ? Role::kRow
                                     : role;
    }
  }
  for (const ir::LoadNode* load : {factors->a, factors->b}) {
    const int read = ReadOf(*node, *load);
    if (read < 0)
      return absl::FailedPreconditionError("an operand is not read");
    // Elements that lie side by side in memory still do, where an instance for
    // each row or column reads them.
    const Role own = (load == factors->a) != swaps ? Role::kRow : Role::kColumn;
    bool across = false;
    for (size_t i = 0; i < roles->size(); ++i) {
      across |= (*roles)[i] == own &&
                ir::UsesVar(load->indices.back(), node->iters[i].var.get());
    }
    const std::vector<Role> order =
        across ? std::vector{Role::kTerm, own} : std::vector{own, Role::kTerm};
    const std::vector<bool> taken = TakenBy(
        *node,
        [&](const ir::IterVar& iter) { return Uses(load->indices, iter); });
    const std::string map = MapOf(*node, *roles, taken, order, fastest);
    TF_ASSIGN_OR_RETURN(const BlockRv copy,
                        schedule.Reindex(block, /*read=*/true, read));
    TF_RETURN_IF_ERROR(
        schedule.TransformLayout(block, /*read=*/true, read, map));
    TF_RETURN_IF_ERROR(schedule.TransformBlockLayout(copy, map));
  }
  TF_ASSIGN_OR_RETURN(
      const BlockRv copy,
      FlattenResults(schedule, block, *roles, fastest, fuse && !sums));
  if (!sums) return copy;
  TF_RETURN_IF_ERROR(schedule.ComputeInline(copy));
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr sum, schedule.Get(*sums));
  std::vector<Role> own(sum->iters.size(), Role::kTerm);  // of the parts
  size_t next = 1;
  for (size_t i = 0; i < own.size(); ++i) {
    if (sum->iters[i].type == ir::IterType::kReduce) continue;
    while (next < roles->size() && (*roles)[next] == Role::kTerm) ++next;
    if (next == roles->size()) {
      return absl::FailedPreconditionError("not the sums of the parts");
    }
    own[i] = (*roles)[next++];
  }
  return FlattenResults(schedule, *sums, own, std::nullopt, fuse);
}

absl::StatusOr<std::vector<int64_t>> PeriodsOf(Schedule& schedule,
                                               BlockRv block, size_t variable) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
  TF_ASSIGN_OR_RETURN(const std::vector<BlockRv> producers,
                      schedule.GetProducers(block));
  std::set<int64_t> periods;
  for (const BlockRv rv : producers) {
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr producer, schedule.Get(rv));
    const auto* store = ir::As<ir::StoreNode>(producer->body);
    if (store == nullptr) continue;
    // The producer's variable that is this one.
    const ir::VarNode* same = nullptr;
    for (const ir::BufferRegion& read : node->reads) {
      if (read.buffer != store->buffer) continue;
      for (size_t d = 0; d < read.region.size(); ++d) {
        if (read.region[d].min.get() == node->iters[variable].var.get()) {
          same = ir::As<ir::VarNode>(store->indices[d]);
        }
      }
    }
    if (same == nullptr) continue;
    ir::PostOrderExprs(store->value, [&](const ir::Expr& e) {
      const auto* op = ir::As<ir::BinaryNode>(e);
      if (op == nullptr || (op->op != ir::BinaryOp::kFloorDiv &&
                            op->op != ir::BinaryOp::kFloorMod)) {
        return;
      }
      const int64_t by = ir::AsInt(op->b).value_or(0);
      if (by > 1 && ir::UsesVar(op->a, same)) periods.insert(by);
    });
  }
  return std::vector<int64_t>(periods.begin(), periods.end());
}

bool IsWhole(int64_t part, const std::vector<int64_t>& periods) {
  return absl::c_all_of(periods, [&](int64_t period) {
    return part % period == 0 || period % part == 0;
  });
}

}  // namespace tilefarm::space
