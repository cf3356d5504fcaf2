#include "compiler/graph/access_pattern.h"

#include <algorithm>

#include "compiler/ir/visitor.h"

namespace tilefarm::graph {
namespace {

// The loads of one parameter, compared with the store's indices.
class LoadsAt : public ir::Visitor {
 public:
  LoadsAt(const ir::BufferNode* buffer, const std::vector<ir::Expr>& indices)
      : buffer_(buffer), indices_(indices) {}

  bool all_equal() const { return all_equal_; }
  bool unit_stride() const { return unit_stride_; }

 protected:
  void VisitLoad(const ir::LoadNode& load) override {
    if (load.buffer.get() == buffer_) {
      for (size_t d = 0; d < load.indices.size(); ++d) {
        all_equal_ &= IsEqual(load, d);
      }
      unit_stride_ &= HasUnitStride(load);
    }
    ir::Visitor::VisitLoad(load);
  }

 private:
  bool IsEqual(const ir::LoadNode& load, size_t d) const {
    if (load.indices.size() != indices_.size()) return false;
    // Broadcasting operators read dimensions of extent one at 0.
    return load.indices[d] == indices_[d] ||
           (load.buffer->shape[d] == 1 && ir::IsConstInt(load.indices[d], 0));
  }

  bool HasUnitStride(const ir::LoadNode& load) const {
    if (indices_.empty()) return true;
    const ir::Expr& last = indices_.back();
    const auto* var = ir::As<ir::VarNode>(last);
    for (size_t d = 0; d < load.indices.size(); ++d) {
      if (!ir::UsesVar(load.indices[d], var)) continue;
      if (d + 1 < load.indices.size() || !StepsWith(load.indices[d], last)) {
        return false;
      }
    }
    return true;
  }

  const ir::BufferNode* buffer_;
  const std::vector<ir::Expr>& indices_;
  bool all_equal_ = true;
  bool unit_stride_ = true;
};

// The only block below the loops of `stmt`; null if there is another statement.
const ir::BlockNode* OnlyBlock(const ir::StmtNode* stmt) {
  while (const auto* loop = ir::As<ir::ForNode>(stmt)) stmt = loop->body.get();
  return ir::As<ir::BlockNode>(stmt);
}

}  // namespace

bool StepsWith(const ir::Expr& index, const ir::Expr& var) {
  if (index == var) return true;
  const auto* node = ir::As<ir::VarNode>(var);
  const auto* sum = ir::As<ir::BinaryNode>(index);
  if (sum == nullptr) return false;
  const bool in_a = ir::UsesVar(sum->a, node);
  const bool in_b = ir::UsesVar(sum->b, node);
  if (sum->op == ir::BinaryOp::kSub) return !in_b && StepsWith(sum->a, var);
  if (sum->op != ir::BinaryOp::kAdd || in_a == in_b) return false;
  return StepsWith(in_a ? sum->a : sum->b, var);
}

AccessPattern PatternOf(const ir::PrimFunc& function) {
  AccessPattern pattern;
  pattern.elementwise.resize(function.params.size());
  pattern.unit_stride.resize(function.params.size());
  const ir::BlockNode* root = function.root();
  if (root == nullptr || !root->allocs.empty()) return pattern;
  const ir::BlockNode* block = OnlyBlock(root->body.get());
  if (block == nullptr || block->init != nullptr) return pattern;
  const auto* store = ir::As<ir::StoreNode>(block->body);
  if (store == nullptr || store->buffer != function.params.back()) {
    return pattern;
  }
  // The block's variables are the indices, each with its whole extent.
  const ir::BufferNode& result = *store->buffer;
  if (block->iters.size() != result.shape.size()) return pattern;
  for (size_t i = 0; i < block->iters.size(); ++i) {
    const ir::IterVar& iter = block->iters[i];
    if (iter.type != ir::IterType::kSpatial || iter.var != store->indices[i] ||
        !ir::IsConstInt(iter.dom.min, 0) ||
        !ir::IsConstInt(iter.dom.extent, result.shape[i])) {
      return pattern;
    }
  }
  pattern.injective = true;
  for (size_t i = 0; i + 1 < function.params.size(); ++i) {
    const ir::BufferNode& param = *function.params[i];
    LoadsAt loads(&param, store->indices);
    loads.Visit(store->value);
    pattern.elementwise[i] = param.shape == result.shape && loads.all_equal();
    pattern.unit_stride[i] = loads.unit_stride();
  }
  return pattern;
}

ir::Expr StoredBy(const ir::PrimFunc& function) {
  if (!PatternOf(function).injective) return nullptr;
  const ir::BlockNode* block = OnlyBlock(function.root()->body.get());
  return ir::As<ir::StoreNode>(block->body)->value;
}

}  // namespace tilefarm::graph
