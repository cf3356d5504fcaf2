#include "compiler/space/block_analysis.h"

#include <algorithm>
#include <set>

#include "compiler/ir/layout_free.h"
#include "compiler/ir/visitor.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {

using ir::As;

namespace {

// Maximum number of summed terms per streamed element.
constexpr int64_t kMostStreamedTerms = 32;

}  // namespace

bool HasTrivialBindings(const ir::BlockNode& block) {
  std::set<const ir::ExprNode*> seen;
  for (const ir::IterVar& iter : block.iters) {
    if (As<ir::VarNode>(iter.binding) == nullptr ||
        !seen.insert(iter.binding.get()).second) {
      return false;
    }
  }
  return true;
}

bool IsReduction(const ir::BlockNode& block) {
  return block.init != nullptr &&
         std::ranges::any_of(block.iters, [](const ir::IterVar& iter) {
           return iter.type == ir::IterType::kReduce;
         });
}

namespace {

// The variables that an index combines, each once: a, or a * 8 + b with
// 0 <= b < 8. False: it is of another form.
bool TakeDigits(const ir::BlockNode& block, const ir::Expr& index,
                std::vector<const ir::VarNode*>* vars) {
  if (const auto* var = As<ir::VarNode>(index)) {
    vars->push_back(var);
    return true;
  }
  const auto* sum = As<ir::BinaryNode>(index);
  if (sum == nullptr || sum->op != ir::BinaryOp::kAdd) return false;
  const auto* product = As<ir::BinaryNode>(sum->a);
  const std::optional<size_t> low = VariableOf(block, sum->b);
  if (product == nullptr || product->op != ir::BinaryOp::kMul || !low ||
      !VariableOf(block, product->a) ||
      !ir::IsConstInt(product->b, IterExtent(block.iters[*low]))) {
    return false;
  }
  vars->push_back(As<ir::VarNode>(product->a));
  vars->push_back(As<ir::VarNode>(sum->b));
  return true;
}

bool WritesEveryElementOnce(const ir::BlockNode& block, bool digits) {
  const auto* store = As<ir::StoreNode>(block.body);
  if (store == nullptr || block.init != nullptr) return false;
  std::set<const ir::VarNode*> vars;
  for (const ir::IterVar& iter : block.iters) {
    if (iter.type != ir::IterType::kSpatial) return false;
    vars.insert(iter.var.get());
  }
  for (const ir::Expr& index : store->indices) {
    if (ir::IsConstInt(index, 0)) continue;
    std::vector<const ir::VarNode*> used;
    if (!TakeDigits(block, index, &used) || (used.size() > 1 && !digits)) {
      return false;
    }
    for (const ir::VarNode* var : used) {
      if (vars.erase(var) == 0) return false;
    }
  }
  return std::ranges::all_of(block.iters, [&](const ir::IterVar& iter) {
    return vars.count(iter.var.get()) == 0 || IterExtent(iter) == 1;
  });
}

}  // namespace

bool IsElementwise(const ir::BlockNode& block) {
  return WritesEveryElementOnce(block, /*digits=*/false);
}

bool IsElementwiseByDigits(const ir::BlockNode& block) {
  return WritesEveryElementOnce(block, /*digits=*/true);
}

bool WritesAtVariables(const ir::BlockNode& block) {
  const auto* store = As<ir::StoreNode>(block.body);
  return store != nullptr &&
         std::ranges::all_of(store->indices, [](const ir::Expr& index) {
           return As<ir::VarNode>(index) != nullptr || ir::IsConstInt(index, 0);
         });
}

namespace {

bool AnyCall(const ir::BlockNode& block, bool (*wanted)(ir::Intrinsic)) {
  bool found = false;
  ir::PostOrderExprs(block.body, [&](const ir::Expr& expr) {
    if (const auto* call = As<ir::CallNode>(expr)) found |= wanted(call->op);
  });
  return found;
}

}  // namespace

bool UsesIfThenElse(const ir::BlockNode& block) {
  return AnyCall(
      block, [](ir::Intrinsic op) { return op == ir::Intrinsic::kIfThenElse; });
}

bool UsesCostlyIntrinsic(const ir::BlockNode& block) {
  return AnyCall(block, [](ir::Intrinsic op) {
    switch (op) {
      case ir::Intrinsic::kIfThenElse:
      case ir::Intrinsic::kAbs:
      case ir::Intrinsic::kSqrt:
      case ir::Intrinsic::kRsqrt:
      case ir::Intrinsic::kFloor:
      case ir::Intrinsic::kCeil:
      case ir::Intrinsic::kRound:
      case ir::Intrinsic::kNearbyint:
      case ir::Intrinsic::kTrunc:
      case ir::Intrinsic::kFma:
      case ir::Intrinsic::kCopySign:
      case ir::Intrinsic::kIsNan:
      case ir::Intrinsic::kIsInf:
      case ir::Intrinsic::kReinterpret:
        return false;
      default:
        return true;
    }
  });
}

bool IsTiled(const ir::BlockNode& block) {
  return block.annotations.contains(kTilingStructure) ||
         block.annotations.contains(kPack);
}

bool InTiledNest(const ir::PrimFunc& function, const ir::BlockNode& block) {
  bool found = false;
  ir::PreOrder(function.body, [&](const ir::Stmt& stmt) {
    if (stmt->kind != ir::StmtKind::kFor) return true;
    bool here = false, tiled = false;
    ir::PreOrder(stmt, [&](const ir::Stmt& below) {
      const auto* other = ir::As<ir::BlockNode>(below);
      here |= other == &block;
      tiled |= other != nullptr && other != &block && IsTiled(*other);
      return true;
    });
    found |= here && tiled;
    return false;
  });
  return found;
}

std::optional<size_t> VariableOf(const ir::BlockNode& block,
                                 const ir::Expr& expr) {
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (expr.get() == block.iters[i].var.get()) return i;
  }
  return std::nullopt;
}

int ReadOf(const ir::BlockNode& block, const ir::LoadNode& load) {
  for (size_t r = 0; r < block.reads.size(); ++r) {
    if (block.reads[r].buffer == load.buffer) return static_cast<int>(r);
  }
  return -1;
}

bool RegionUses(const ir::BufferRegion& region, const ir::VarNode* var) {
  for (const ir::Range& range : region.region) {
    if (ir::UsesVar(range.min, var) || ir::UsesVar(range.extent, var)) {
      return true;
    }
  }
  return false;
}

bool HasDataReuse(const ir::BlockNode& block) {
  if (!IsReduction(block) || !HasTrivialBindings(block)) return false;
  for (const ir::BufferRegion& read : block.reads) {
    for (const ir::IterVar& iter : block.iters) {
      if (iter.type == ir::IterType::kSpatial && IterExtent(iter) > 1 &&
          !RegionUses(read, iter.var.get())) {
        return true;
      }
    }
  }
  return false;
}

int64_t IterExtent(const ir::IterVar& iter) {
  return ir::AsInt(iter.dom.extent).value_or(0);
}

int64_t ProductOf(const ir::BlockNode& block, ir::IterType type) {
  int64_t product = 1;
  for (const ir::IterVar& iter : block.iters) {
    if (iter.type == type) product *= IterExtent(iter);
  }
  return product;
}

int OperandToPack(const ir::BlockNode& block) {
  const ir::VarNode* last_spatial = nullptr;
  for (const ir::IterVar& iter : block.iters) {
    if (iter.type == ir::IterType::kSpatial) last_spatial = iter.var.get();
  }
  if (last_spatial == nullptr) return -1;
  for (size_t i = 0; i < block.reads.size(); ++i) {
    const ir::BufferRegion& read = block.reads[i];
    if (!RegionUses(read, last_spatial)) continue;
    bool reduces = false;
    bool reused = false;
    for (const ir::IterVar& iter : block.iters) {
      const bool used = RegionUses(read, iter.var.get());
      if (iter.type == ir::IterType::kReduce) reduces |= used;
      if (iter.type == ir::IterType::kSpatial && IterExtent(iter) > 1) {
        reused |= !used;
      }
    }
    if (reduces && reused) return static_cast<int>(i);
  }
  return -1;
}

int64_t UsesOfRead(const ir::BlockNode& block, int read) {
  int64_t uses = 1;
  for (const ir::IterVar& iter : block.iters) {
    if (!RegionUses(block.reads[static_cast<size_t>(read)], iter.var.get())) {
      uses *= IterExtent(iter);
    }
  }
  return uses;
}

std::vector<int> OperandsToPrepack(const ir::PrimFunc& function,
                                   const ir::BlockNode& block) {
  std::vector<int> operands;
  for (size_t i = 0; i < block.reads.size(); ++i) {
    const ir::BufferRegion& read = block.reads[i];
    const bool reduces =
        std::ranges::any_of(block.iters, [&](const ir::IterVar& iter) {
          return iter.type == ir::IterType::kReduce &&
                 RegionUses(read, iter.var.get());
        });
    if (reduces && ir::IsLayoutFree(function, read.buffer.get())) {
      operands.push_back(static_cast<int>(i));
    }
  }
  return operands;
}

std::vector<std::string> TopBlockNames(const ir::PrimFunc& function) {
  std::vector<std::string> names;
  ir::PreOrder(function.body, [&](const ir::Stmt& stmt) {
    if (stmt.get() == function.body.get()) return true;
    if (const auto* block = As<ir::BlockNode>(stmt)) {
      names.push_back(block->name);
      return false;
    }
    return true;
  });
  std::ranges::reverse(names);
  return names;
}

std::vector<std::string> AllBlockNames(const ir::PrimFunc& function) {
  std::vector<std::string> names;
  for (const ir::BlockPtr& block : AllBlocks(function)) {
    names.insert(names.begin(), block->name);
  }
  return names;
}

std::vector<ir::BlockPtr> AllBlocks(const ir::PrimFunc& function) {
  std::vector<ir::BlockPtr> blocks;
  ir::PreOrder(function.body, [&](const ir::Stmt& stmt) {
    if (stmt->kind == ir::StmtKind::kBlock &&
        stmt.get() != function.body.get()) {
      blocks.push_back(std::static_pointer_cast<const ir::BlockNode>(stmt));
    }
    return true;
  });
  return blocks;
}

bool IsOutput(const ir::PrimFunc& function, const ir::BufferNode* buffer) {
  return std::ranges::any_of(
      function.params, [&](const ir::Buffer& p) { return p.get() == buffer; });
}

std::vector<std::string> StreamedBlocks(const ir::PrimFunc& function,
                                        int64_t bytes) {
  std::set<const ir::BufferNode*> read;
  ir::PostOrderExprs(function.body, [&](const ir::Expr& expr) {
    const auto* load = ir::As<ir::LoadNode>(expr);
    if (load != nullptr) read.insert(load->buffer.get());
  });
  std::vector<std::string> names;
  int64_t elements = 0, most_terms = 0;
  for (const ir::BlockPtr& block : AllBlocks(function)) {
    if (IsReduction(*block)) {
      most_terms =
          std::max(most_terms, ProductOf(*block, ir::IterType::kSpatial) *
                                   ProductOf(*block, ir::IterType::kReduce));
    }
    const auto tiling = block->annotations.find(kTilingStructure);
    if (tiling != block->annotations.end() &&
        tiling->second == ir::Attr(kTransposedTiles)) {
      continue;  // written element by element
    }
    for (const ir::BufferRegion& region : block->writes) {
      const ir::BufferNode& buffer = *region.buffer;
      if (!IsOutput(function, &buffer) || read.contains(&buffer) ||
          buffer.num_elements() * buffer.dtype.bytes() <= bytes ||
          ProductOf(*block, ir::IterType::kReduce) != 1) {
        continue;
      }
      elements = std::max(elements, buffer.num_elements());
      names.push_back(block->name);
    }
  }
  // In a matrix product, stores take a negligible part of the time.
  if (most_terms > kMostStreamedTerms * elements) return {};
  return names;
}

}  // namespace tilefarm::space
