// pad_einsum: a reduction runs over whole tiles, on copies padded with zeros.
//
//   pad_einsum(C, padding=[1, 16, 4])
//
//   for i, j, k in (5, 20, 6):             for ax0, ax1: A_pad[...] = A or 0
//     C[i, j] += A[i, k] * B[k, j]   ->    for ax0, ax1: B_pad[...] = B or 0
//                                          for i, j, k in (5, 32, 8):
//                                            C_pad[i, j] += A_pad[i, k] *
//                                                           B_pad[k, j]
//                                          for ax0, ax1 in (5, 20): C = C_pad
//
// `padding` has one number for each variable of the block; the extent is
// rounded up to a multiple of it. Buffers that no enlarged variable indexes are
// not copied.
//
// Steps:
//   1. Check that the block is a sum, that each of its variables is bound to
//      one plain loop, and that these loops are a nest of their own right below
//      the scope.
//   2. Check that each enlarged variable is an index by itself, in dimensions
//      of its extent; that enlarged spatial variables index the output; and
//      that for each enlarged reduce variable, a factor of the term reads
//      padding, which is zero. An output that is copied back must be written
//      wholly.
//   3. Make the copies and the nest over them.
#include "compiler/schedule/pad_einsum.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/cache_block.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/loop_rewrite.h"
#include "compiler/schedule/own_loops.h"
#include "compiler/schedule/reducer.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/scope_edit.h"

namespace tilefarm::schedule {
namespace {

// The new extents of the enlarged variables.
using Grown = std::map<const ir::VarNode*, int64_t>;

// Step 1: check the loops above the block, one for each variable.
absl::StatusOr<std::vector<ir::ForPtr>> CheckNest(const ScheduleState& state,
                                                  const ir::BlockPtr& block,
                                                  const ir::BlockPtr& scope) {
  TF_ASSIGN_OR_RETURN(std::vector<ir::ForPtr> loops,
                      CheckOwnLoops(state, block));
  if (state.Parent(loops[0].get()) != scope) {
    return state.Illegal(block.get(),
                         "its loops are not its own, one for each variable");
  }
  return loops;
}

absl::StatusOr<Grown> GrowVariables(const ScheduleState& state,
                                    const ir::BlockPtr& block,
                                    const std::vector<int64_t>& padding) {
  if (padding.size() != block->iters.size()) {
    return state.Invalid(block.get(), "padding has ", padding.size(),
                         " numbers for ", block->iters.size(), " variables");
  }
  Grown grown;
  for (size_t i = 0; i < padding.size(); ++i) {
    const ir::IterVar& iter = block->iters[i];
    const std::optional<int64_t> extent = ir::AsInt(iter.dom.extent);
    if (padding[i] < 1 || padding[i] > INT32_MAX) {
      return state.Invalid(block.get(), "padding ", padding[i],
                           " is out of range");
    }
    if (!extent || !ir::IsConstInt(iter.dom.min, 0)) {
      return state.Illegal(block.get(), "variable ", iter.var->name,
                           " has no constant extent");
    }
    const int64_t whole = (*extent + padding[i] - 1) / padding[i] * padding[i];
    if (whole != *extent) grown[iter.var.get()] = whole;
  }
  return grown;
}

// The factors of a term, without casts around them.
void Factors(const ir::Expr& term, std::vector<ir::Expr>* out) {
  if (const auto* cast = ir::As<ir::CastNode>(term)) {
    return Factors(cast->value, out);
  }
  const auto* product = ir::As<ir::BinaryNode>(term);
  if (product != nullptr && product->op == ir::BinaryOp::kMul) {
    Factors(product->a, out);
    Factors(product->b, out);
  } else {
    out->push_back(term);
  }
}

// Step 2 for the accesses to one buffer: the shape of its copy; nullopt if it
// needs none.
absl::StatusOr<std::optional<std::vector<int64_t>>> PaddedShape(
    const ScheduleState& state, const ir::BlockPtr& block,
    const ir::BufferNode& buffer, const Grown& grown) {
  std::vector<int64_t> shape = buffer.shape;
  bool legal = true;
  const auto check = [&](const std::vector<ir::Expr>& indices) {
    for (size_t d = 0; d < indices.size(); ++d) {
      for (const ir::IterVar& iter : block->iters) {
        const auto found = grown.find(iter.var.get());
        if (found == grown.end() || !ir::UsesVar(indices[d], iter.var.get())) {
          continue;
        }
        legal &= indices[d] == iter.var &&
                 ir::AsInt(iter.dom.extent) == buffer.shape[d];
        shape[d] = found->second;
      }
    }
  };
  const auto check_all = [&](const ir::Stmt& stmt) {
    if (const auto* store = ir::As<ir::StoreNode>(stmt);
        store->buffer.get() == &buffer) {
      check(store->indices);
    }
    ir::PostOrderExprs(stmt, [&](const ir::Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      if (load != nullptr && load->buffer.get() == &buffer) {
        check(load->indices);
      }
    });
  };
  // Both are stores, since MatchReducer accepted the block.
  check_all(block->body);
  check_all(block->init);
  if (!legal) {
    return state.Illegal(block.get(),
                         "a variable that grows is not a whole dimension of ",
                         buffer.name);
  }
  if (shape == buffer.shape) return std::optional<std::vector<int64_t>>();
  return std::optional(std::move(shape));
}

std::string PadName(const ScheduleState& state, const ir::BlockPtr& block,
                    const std::string& of) {
  return FreshBufferName(*state.FunctionOf(block.get()),
                         absl::StrCat(of, "_pad"));
}

}  // namespace

absl::StatusOr<PaddedEinsum> PadEinsumIn(const ScheduleState& state,
                                         const ir::BlockPtr& block,
                                         const std::vector<int64_t>& padding,
                                         const ir::BufferNode* made_padded,
                                         ScopeEditor& edit) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr scope, ScopeOf(state, block));
  TF_ASSIGN_OR_RETURN(const std::vector<ir::ForPtr> loops,
                      CheckNest(state, block, scope));
  const std::optional<Reducer> reducer = MatchReducer(*block);
  if (!reducer || reducer->op != ir::BinaryOp::kAdd) {
    return state.Illegal(block.get(), "it is no sum");
  }
  TF_ASSIGN_OR_RETURN(const Grown grown, GrowVariables(state, block, padding));
  // Results for the added values of a spatial variable must be cut off again.
  const auto* store = ir::As<ir::StoreNode>(block->body);
  for (const ir::IterVar& iter : block->iters) {
    if (iter.type != ir::IterType::kSpatial ||
        !grown.contains(iter.var.get())) {
      continue;
    }
    const bool told_apart = std::ranges::any_of(
        store->indices,
        [&](const ir::Expr& index) { return index == iter.var; });
    if (!told_apart) {
      return state.Illegal(block.get(), "variable ", iter.var->name,
                           " grows, and is no index "
                           "of what is written");
    }
  }
  std::vector<ir::Expr> factors;
  Factors(reducer->value, &factors);
  for (const ir::IterVar& iter : block->iters) {
    if (iter.type == ir::IterType::kSpatial ||
        !grown.contains(iter.var.get())) {
      continue;
    }
    for (const ir::Expr& factor : factors) {
      if (factor->kind == ir::ExprKind::kLoad &&
          ir::UsesVar(factor, iter.var.get())) {
        continue;
      }
      return state.Illegal(block.get(), "factor ", ir::ToString(factor),
                           " is not zero where variable ", iter.var->name,
                           " grows");
    }
  }

  // Step 3: make the copies and the nest.
  const ir::Buffer out = block->writes[0].buffer;
  std::vector<ir::Buffer> buffers;
  for (const ir::BufferRegion& read : block->reads) {
    if (read.buffer != out && !absl::c_linear_search(buffers, read.buffer)) {
      buffers.push_back(read.buffer);
    }
  }
  buffers.push_back(out);
  PaddedEinsum result;
  std::set<std::string> names;
  ir::Stmt padded = block;
  const int position = PositionOf(scope->body, loops[0].get());
  for (const ir::Buffer& buffer : buffers) {
    TF_ASSIGN_OR_RETURN(const std::optional<std::vector<int64_t>> shape,
                        PaddedShape(state, block, *buffer, grown));
    if (!shape) continue;
    arith::Analyzer analyzer;
    if (buffer == out && !SurelyWrites(state, *block, block->writes[0], loops,
                                       arith::FullRegion(out), analyzer)) {
      return state.Illegal(block.get(),
                           "it does not surely write every element of ",
                           out->name, ", which would be copied back");
    }
    std::string name = PadName(state, block, buffer->name);
    // Several buffers may have one name.
    for (int number = 1; !names.insert(name).second; ++number) {
      name = PadName(state, block, absl::StrCat(buffer->name, "_", number));
    }
    const ir::Buffer pad = ir::MakeBuffer(name, buffer->dtype, *shape);
    const std::string block_name =
        FreshBlockName(state.FunctionOf(block.get())->body, name);
    padded = ir::ReplaceBuffers(padded, {{buffer.get(), pad}});
    edit.AddAlloc(pad);
    result.pads.emplace_back(buffer.get(), pad);
    if (buffer.get() == made_padded) continue;
    const ir::Buffer& from = buffer == out ? pad : buffer;
    const ir::Buffer& to = buffer == out ? out : pad;
    edit.Insert(scope.get(), buffer == out ? position + 1 : position,
                MakeCopy(block_name, from, to, arith::FullRegion(to),
                         arith::FullRegion(to), analyzer)
                    .nest);
  }
  ir::BlockNode made = *ir::As<ir::BlockNode>(padded);
  for (ir::IterVar& iter : made.iters) {
    const auto found = grown.find(iter.var.get());
    if (found != grown.end()) iter.dom.extent = ir::IntConst(found->second);
  }
  result.block = ir::BlockOf(std::move(made));
  edit.Replace(loops[0].get(), NestOfDomain(loops, result.block));
  return result;
}

ir::Stmt NestOfDomain(const std::vector<ir::ForPtr>& loops,
                      const ir::BlockPtr& block) {
  ir::Stmt nest = block;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    auto longer = std::make_shared<ir::ForNode>(**loop);
    for (const ir::IterVar& iter : block->iters) {
      if (iter.binding == (*loop)->var) longer->extent = iter.dom.extent;
    }
    longer->body = nest;
    nest = std::move(longer);
  }
  return nest;
}

absl::StatusOr<PaddedEinsum> PadEinsum(ScheduleState& state,
                                       const ir::BlockPtr& block,
                                       const std::vector<int64_t>& padding) {
  ScopeEditor edit;
  TF_ASSIGN_OR_RETURN(
      PaddedEinsum padded,
      PadEinsumIn(state, block, padding, /*made_padded=*/nullptr, edit));
  const ir::BlockPtr scope = state.Scope(block.get());
  state.Replace(scope.get(), edit.Apply(*scope),
                {{block.get(), padded.block.get()}});
  return padded;
}

absl::Status PadEinsum(ScheduleState& state, BlockRv block_rv,
                       const std::vector<int64_t>& padding) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr block, state.Get(block_rv));
  return PadEinsum(state, block, padding).status();
}

}  // namespace tilefarm::schedule
