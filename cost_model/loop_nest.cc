#include "cost_model/loop_nest.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "compiler/ir/annotations.h"
#include "compiler/ir/padding.h"
#include "compiler/ir/visitor.h"
#include "cost_model/affine.h"

namespace tilefarm::cost_model {
namespace {

using ir::As;
using ir::BinaryOp;

bool IsFloatMul(const ir::Expr& e) {
  const auto* node = As<ir::BinaryNode>(e);
  return node != nullptr && node->op == BinaryOp::kMul &&
         node->dtype.is_float();
}

void CountBinary(const ir::BinaryNode& node, OpCounts& ops) {
  // The operands' type: a comparison's own is bool.
  const bool is_float = node.a->dtype.is_float();
  switch (node.op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
      if (!is_float) {
        ops.int_add += 1;
      } else if (IsFloatMul(node.a) || IsFloatMul(node.b)) {
        // The multiplication was counted with the operand.
        ops.float_mul -= 1;
        ops.float_fma += 1;
      } else {
        ops.float_add += 1;
      }
      return;
    case BinaryOp::kMul:
      (is_float ? ops.float_mul : ops.int_mul) += 1;
      return;
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
      (is_float ? ops.float_div : ops.int_div) += 1;
      return;
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kEQ:
    case BinaryOp::kNE:
    case BinaryOp::kLT:
    case BinaryOp::kLE:
    case BinaryOp::kGT:
    case BinaryOp::kGE:
      (is_float ? ops.float_compare : ops.int_compare) += 1;
      return;
    case BinaryOp::kAnd:
    case BinaryOp::kOr:
      ops.logical += 1;
      return;
    case BinaryOp::kBitAnd:
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight:
      ops.int_other += 1;
      return;
  }
}

// Counts operations and notes the loads on the way.
class ValueVisitor : public ir::Visitor {
 public:
  OpCounts ops;
  std::vector<const ir::LoadNode*> loads;

 protected:
  void VisitBinary(const ir::BinaryNode& node) override {
    ir::Visitor::VisitBinary(node);
    CountBinary(node, ops);
  }
  void VisitNot(const ir::NotNode& node) override {
    ir::Visitor::VisitNot(node);
    ops.logical += 1;
  }
  void VisitCast(const ir::CastNode& node) override {
    ir::Visitor::VisitCast(node);
    ops.casts += 1;
  }
  void VisitSelect(const ir::SelectNode& node) override {
    VisitCondition(node.condition);
    Visit(node.true_value);
    Visit(node.false_value);
    ops.selects += 1;
  }
  void VisitCall(const ir::CallNode& node) override {
    if (node.op == ir::Intrinsic::kIfThenElse) {
      VisitCondition(node.args[0]);
      Visit(node.args[1]);
      Visit(node.args[2]);
      ops.selects += 1;
      return;
    }
    ir::Visitor::VisitCall(node);
    if (node.op == ir::Intrinsic::kFma) {
      ops.float_fma += 1;
    } else {
      (node.dtype.is_float() ? ops.float_math : ops.int_other) += 1;
    }
  }
  // Conditions on loop variables alone compute with them as indices do: mostly
  // before the inner loop. Only their comparisons count.
  void VisitCondition(const ir::Expr& condition) {
    const OpCounts before = ops;
    const size_t loads_before = loads.size();
    Visit(condition);
    if (loads.size() > loads_before) return;
    ops.int_add = before.int_add;
    ops.int_mul = before.int_mul;
    ops.int_div = before.int_div;
  }
  void VisitLoad(const ir::LoadNode& node) override {
    // Its indices are address computations and do not count, but the loads of a
    // gather's indices do.
    loads.push_back(&node);
    for (const ir::Expr& index : node.indices) {
      ir::PostOrderExprs(index, [&](const ir::Expr& e) {
        if (const auto* load = As<ir::LoadNode>(e)) loads.push_back(load);
      });
    }
  }
};

class Builder {
  // The annotations in force.
  struct Unroll {
    int64_t max_step = 0;
    bool is_explicit = false;
  };

 public:
  Builder(const ir::PrimFunc& function, NestNames* names) : names_(names) {
    for (const ir::Buffer& param : function.params) BufferId(param, false, 0);
    // A buffer that is packed ahead of time counts as a parameter.
    ir::PreOrder(function.body, [&](const ir::Stmt& stmt) {
      const auto* block = As<ir::BlockNode>(stmt);
      if (block != nullptr && block->annotations.contains(ir::kPrepack)) {
        for (const ir::BufferRegion& region : block->writes) {
          BufferId(region.buffer, false, 0);
        }
      }
      return true;
    });
    Visit(function.body);
  }
  LoopNest Take() { return std::move(nest_); }

 private:
  int BufferId(const ir::Buffer& buffer, bool intermediate, int64_t depth) {
    const auto [it, added] =
        ids_.try_emplace(buffer.get(), static_cast<int>(nest_.buffers.size()));
    if (added) {
      nest_.buffers.push_back(
          {buffer->dtype.bytes(), buffer->shape, intermediate});
      alloc_depths_.push_back(depth);
      if (names_ != nullptr) names_->buffers.push_back(buffer->name);
    }
    return it->second;
  }

  void Visit(const ir::Stmt& stmt) {
    if (stmt == nullptr) return;
    switch (stmt->kind) {
      case ir::StmtKind::kStore:
        return VisitStore(*As<ir::StoreNode>(stmt));
      case ir::StmtKind::kFor:
        return VisitFor(*As<ir::ForNode>(stmt));
      case ir::StmtKind::kBlock:
        return VisitBlock(*As<ir::BlockNode>(stmt));
      case ir::StmtKind::kSeq:
        for (const ir::Stmt& s : As<ir::SeqNode>(stmt)->stmts) Visit(s);
        return;
      case ir::StmtKind::kIf: {
        const auto* node = As<ir::IfNode>(stmt);
        ++guards_;
        Visit(node->then_case);
        Visit(node->else_case);
        --guards_;
        return;
      }
      case ir::StmtKind::kLetStmt: {
        const auto* node = As<ir::LetStmtNode>(stmt);
        forms_[node->var.get()] = FormOf(node->value, forms_);
        return Visit(node->body);
      }
      case ir::StmtKind::kEvaluate:
        return;
      case ir::StmtKind::kAlloc: {
        const auto* node = As<ir::AllocNode>(stmt);
        BufferId(node->buffer, true, static_cast<int64_t>(loops_.size()));
        return Visit(node->body);
      }
    }
  }

  void VisitFor(const ir::ForNode& node) {
    const int64_t extent =
        std::max<int64_t>(ir::AsInt(node.extent).value_or(1), 1);
    IndexForm form;
    form.terms.push_back({static_cast<int>(loops_.size()), 1.0,
                          static_cast<double>(extent - 1), 1.0});
    form.constant = static_cast<double>(ir::AsInt(node.min).value_or(0));
    forms_[node.var.get()] = std::move(form);
    const Unroll unroll = unroll_;
    ReadUnroll(node.annotations);
    loops_.push_back({extent, node.for_kind});
    if (names_ != nullptr) inner_.loops.push_back(node.var->name);
    const bool outer_dot = in_dot_;
    in_dot_ = node.annotations.contains(ir::kDotProduct);
    Visit(node.body);
    in_dot_ = outer_dot;
    loops_.pop_back();
    if (names_ != nullptr) inner_.loops.pop_back();
    unroll_ = unroll;
  }

  void VisitBlock(const ir::BlockNode& node) {
    // It runs ahead of time and is not timed.
    if (node.annotations.contains(ir::kPrepack)) return;
    std::unordered_set<int> reduce_loops;
    double domain = 1;
    for (const ir::IterVar& iter : node.iters) {
      IndexForm form = FormOf(iter.binding, forms_);
      if (iter.type == ir::IterType::kReduce) {
        for (const LoopTerm& term : form.terms) reduce_loops.insert(term.loop);
      }
      forms_[iter.var.get()] = std::move(form);
      domain *= static_cast<double>(
          std::max<int64_t>(ir::AsInt(iter.dom.extent).value_or(1), 1));
    }
    for (const ir::Buffer& buffer : node.allocs) {
      BufferId(buffer, true, static_cast<int64_t>(loops_.size()));
    }
    const Unroll unroll = unroll_;
    ReadUnroll(node.annotations);
    const std::string outer_block = inner_.block;
    if (names_ != nullptr) inner_.block = node.name;
    const double outer_domain = domain_;
    // The root block has no variables and gives no domain to its stores.
    if (!node.iters.empty()) domain_ = domain;
    const bool guarded = !ir::IsConstInt(node.predicate, 1);
    if (guarded) ++guards_;
    if (node.init != nullptr) {
      // Runs where the reduction starts, so its loops count once.
      std::vector<NestLoop> all = loops_;
      for (const int loop : reduce_loops) loops_[loop].extent = 1;
      in_init_ = true;
      Visit(node.init);
      in_init_ = false;
      loops_ = std::move(all);
    }
    const bool outer_skips = skips_padding_;
    skips_padding_ = node.annotations.contains(ir::kSkipPadding);
    Visit(node.body);
    skips_padding_ = outer_skips;
    if (guarded) --guards_;
    domain_ = outer_domain;
    unroll_ = unroll;
    if (names_ != nullptr) inner_.block = outer_block;
  }

  // Reads annotations as lowering does: inner ones override outer ones, and a
  // limit counts only with the flag for explicit unrolling.
  void ReadUnroll(const ir::AttrMap& annotations) {
    for (const auto& [key, value] : annotations) {
      const int64_t number = value.AsInt().value_or(0);
      if (key == ir::kUnrollMaxStep) {
        unroll_.max_step = number;
      } else if (key == ir::kUnrollExplicit) {
        unroll_.is_explicit = number != 0;
      } else if (key == "meta_schedule.unroll_explicit") {
        unroll_ = {number, true};
      }
    }
  }

  void VisitStore(const ir::StoreNode& node) {
    NestStore store;
    store.loops = loops_;
    store.is_init = in_init_;
    store.integral = node.buffer->dtype.is_integral();
    store.guards = guards_;
    store.domain_size = domain_;
    store.unroll_max_step = unroll_.is_explicit ? unroll_.max_step : 0;
    AddAccess(store, node.buffer, node.indices, /*writes=*/true);
    const ValueSummary value =
        skips_padding_ ? SummarizeUnpadded(node) : SummarizeValue(node.value);
    for (const ir::LoadNode* load : value.loads) {
      AddAccess(store, load->buffer, load->indices, /*writes=*/false);
    }
    store.ops = value.ops;
    if (in_dot_) {
      const ir::DataType sum = node.buffer->dtype;
      CountAsDotProduct(nest_.buffers, sum.bytes(), sum.is_float(), store);
    }
    store.alloc_depth = alloc_depths_[store.accesses[0].buffer];
    nest_.stores.push_back(std::move(store));
    if (names_ != nullptr) names_->stores.push_back(inner_);
  }

  void AddAccess(NestStore& store, const ir::Buffer& buffer,
                 const std::vector<ir::Expr>& indices, bool writes) {
    const int id = BufferId(buffer, true, static_cast<int64_t>(loops_.size()));
    const size_t loops = loops_.size();
    const size_t dims = indices.size();
    NestAccess access;
    access.buffer = id;
    access.reads = !writes;
    access.writes = writes;
    access.loads = writes ? 0 : 1;
    access.strides.assign(dims * loops, 0);
    access.spans.assign(dims * loops, 0);
    access.offset_spans.assign(dims, 0);
    std::vector<double> offsets(dims);
    for (size_t d = 0; d < dims; ++d) {
      const IndexForm form = FormOf(indices[d], forms_);
      access.irregular |= form.irregular;
      offsets[d] = form.constant;
      for (const LoopTerm& term : form.terms) {
        // A loop that is left out for an init does not change the index.
        if (loops_[term.loop].extent == 1) continue;
        access.strides[d * loops + term.loop] = term.stride;
        access.spans[d * loops + term.loop] = term.span;
      }
    }
    for (NestAccess& known : store.accesses) {
      if (known.buffer == id && known.spans.size() == access.spans.size()) {
        return Merge(known, access, offsets, first_offsets_[id]);
      }
    }
    first_offsets_[id] = {offsets, offsets};
    store.accesses.push_back(std::move(access));
  }

  // Lowest and highest constant offset of each dimension.
  using Bounds = std::pair<std::vector<double>, std::vector<double>>;

  static void Merge(NestAccess& into, const NestAccess& other,
                    const std::vector<double>& offsets, Bounds& bounds) {
    into.reads |= other.reads;
    into.writes |= other.writes;
    into.irregular |= other.irregular;
    into.loads += other.loads;
    for (size_t i = 0; i < into.spans.size(); ++i) {
      if (other.spans[i] > into.spans[i]) {
        into.spans[i] = other.spans[i];
        into.strides[i] = other.strides[i];
      }
    }
    for (size_t d = 0; d < offsets.size(); ++d) {
      bounds.first[d] = std::min(bounds.first[d], offsets[d]);
      bounds.second[d] = std::max(bounds.second[d], offsets[d]);
      into.offset_spans[d] = bounds.second[d] - bounds.first[d];
    }
  }

  NestNames* const names_;
  NestNames::Store inner_;  // names around the current statement
  LoopNest nest_;
  std::unordered_map<const ir::BufferNode*, int> ids_;
  std::vector<int64_t> alloc_depths_;
  std::unordered_map<int, Bounds> first_offsets_;  // of the current store
  FormMap forms_;
  std::vector<NestLoop> loops_;
  double domain_ = 0;
  Unroll unroll_;
  int guards_ = 0;
  bool in_init_ = false;
  bool skips_padding_ = false;
  bool in_dot_ = false;
};

}  // namespace

double NestBuffer::bytes() const {
  double bytes = element_bytes;
  for (const int64_t extent : shape) bytes *= static_cast<double>(extent);
  return bytes;
}

double BytesOf(const LoopNest& nest) {
  std::vector<char> accessed(nest.buffers.size());
  for (const NestStore& store : nest.stores) {
    for (const NestAccess& access : store.accesses) {
      accessed[static_cast<size_t>(access.buffer)] = 1;
    }
  }
  double bytes = 0;
  for (size_t i = 0; i < nest.buffers.size(); ++i) {
    if (accessed[i] != 0) bytes += nest.buffers[i].bytes();
  }
  return bytes;
}

LoopNest BuildLoopNest(const ir::PrimFunc& function, NestNames* names) {
  return Builder(function, names).Take();
}

ValueSummary SummarizeValue(const ir::Expr& value) {
  ValueVisitor visitor;
  visitor.Visit(value);
  return {visitor.ops, std::move(visitor.loads)};
}

ValueSummary SummarizeUnpadded(const ir::StoreNode& store) {
  const std::optional<ir::PaddedTerm> term = ir::MatchPaddedTerm(store);
  if (!term) return SummarizeValue(store.value);
  ValueVisitor visitor;
  visitor.Visit(term->value);
  // The match is a new expression, so pointers to its loads would dangle.
  ValueVisitor original;
  original.Visit(store.value);
  return {visitor.ops, std::move(original.loads)};
}

void CountAsDotProduct(const std::vector<NestBuffer>& buffers, int sum_bytes,
                       bool is_float, NestStore& store) {
  store.ops = OpCounts();
  (is_float ? store.ops.float_fma : store.ops.int_mul) = 1;
  const size_t loops = store.loops.size();
  for (NestAccess& access : store.accesses) {
    const int width = buffers[static_cast<size_t>(access.buffer)].element_bytes;
    if (access.writes || width >= sum_bytes) continue;
    access.loads = 1;
    access.group = sum_bytes / width;
    for (size_t at = loops - 1; at < access.strides.size(); at += loops) {
      access.strides[at] *= static_cast<double>(width) / sum_bytes;
    }
  }
}

}  // namespace tilefarm::cost_model
