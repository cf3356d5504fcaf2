// Statements: control flow, stores, loops and blocks.
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/ir/structural.h"
#include "compiler/oracle/translator_internal.h"

namespace tilefarm::oracle {

using ir::As;
using ir::Expr;
using ir::Stmt;

bool ReadsElementOf(const ir::LoadNode& load, const ir::StoreNode& store) {
  return load.buffer == store.buffer &&
         std::equal(load.indices.begin(), load.indices.end(),
                    store.indices.begin(), store.indices.end(),
                    [](const Expr& a, const Expr& b) {
                      return ir::StructuralEqual(a, b);
                    });
}

bool Updates(const ir::StoreNode& store) {
  const auto own_loads = [&](const Expr& value) {
    int count = 0;
    ir::PostOrderExprs(value, [&](const Expr& e) {
      const auto* load = As<ir::LoadNode>(e);
      count += load != nullptr && ReadsElementOf(*load, store) ? 1 : 0;
    });
    return count;
  };
  bool in_call = false;
  ir::PostOrderExprs(store.value, [&](const Expr& e) {
    in_call |= e->kind == ir::ExprKind::kCall && own_loads(e) > 0;
  });
  return own_loads(store.value) == 1 && !in_call;
}

// Whether the value, however it is rounded, is a quotient of floats.
bool IsQuotient(const Expr& value) {
  if (const auto* cast = As<ir::CastNode>(value)) {
    return cast->value->dtype.is_float() && IsQuotient(cast->value);
  }
  const auto* ratio = As<ir::BinaryNode>(value);
  return ratio != nullptr && ratio->op == ir::BinaryOp::kDiv;
}

bool Reduces(const ir::BlockNode& block) {
  return std::any_of(
      block.iters.begin(), block.iters.end(),
      [](const ir::IterVar& it) { return it.type == ir::IterType::kReduce; });
}

void Translator::Loop(llvm::Value* min, llvm::Value* extent,
                      const std::function<void(llvm::Value*)>& body) {
  llvm::Value* end = b_.CreateNSWAdd(min, extent);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* head = NewBlock();
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* i = b_.CreatePHI(min->getType(), 2);
  i->addIncoming(min, before);
  llvm::BasicBlock* inside = NewBlock();
  llvm::BasicBlock* after = NewBlock();
  b_.CreateCondBr(b_.CreateICmpSLT(i, end), inside, after);
  b_.SetInsertPoint(inside);
  body(i);
  i->addIncoming(b_.CreateNSWAdd(i, llvm::ConstantInt::get(min->getType(), 1)),
                 b_.GetInsertBlock());
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
}

void Translator::Guard(llvm::Value* condition, const Body& body) {
  llvm::BasicBlock* inside = NewBlock();
  llvm::BasicBlock* after = NewBlock();
  b_.CreateCondBr(condition, inside, after);
  b_.SetInsertPoint(inside);
  body();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

// Exactly zero if the condition is false.
Value Translator::Guarded(llvm::Value* condition, ir::DataType dtype,
                          const std::function<Value()>& body) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  Value inner;
  llvm::BasicBlock* inside = nullptr;
  Guard(condition, [&] {
    inner = body();
    inside = b_.GetInsertBlock();
  });
  const auto join = [&](llvm::Value* value) -> llvm::Value* {
    llvm::PHINode* phi = b_.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, inside);
    phi->addIncoming(llvm::Constant::getNullValue(value->getType()), before);
    return phi;
  };
  TF_CHECK(inner.value->getType() == math_.RegisterType(dtype));
  Value result = inner;
  result.value = join(inner.value);
  if (inner.error != nullptr) result.error = join(inner.error);
  return result;
}

void Translator::Emit(const Stmt& stmt) {
  if (!status_.ok()) return;
  switch (stmt->kind) {
    case ir::StmtKind::kStore:
      return EmitStore(*As<ir::StoreNode>(stmt));
    case ir::StmtKind::kFor:
      return EmitFor(*As<ir::ForNode>(stmt));
    case ir::StmtKind::kBlock:
      return EmitBlock(*As<ir::BlockNode>(stmt));
    case ir::StmtKind::kSeq:
      for (const Stmt& child : As<ir::SeqNode>(stmt)->stmts) Emit(child);
      return;
    case ir::StmtKind::kIf: {
      const auto& node = *As<ir::IfNode>(stmt);
      return EmitConditional(
          Emit(node.condition), [&] { Emit(node.then_case); },
          [&] {
            if (node.else_case != nullptr) Emit(node.else_case);
          });
    }
    case ir::StmtKind::kLetStmt: {
      const auto& node = *As<ir::LetStmtNode>(stmt);
      vars_[node.var.get()] = Emit(node.value);
      return Emit(node.body);
    }
    case ir::StmtKind::kEvaluate:
      // The expression has no side effects.
      Emit(As<ir::EvaluateNode>(stmt)->value);
      return;
    case ir::StmtKind::kAlloc:
      break;
  }
  Fail(std::string("an allocation is not part of a program as written"), 0);
}

void Translator::EmitStore(const ir::StoreNode& store) {
  const ir::BufferNode* buffer = store.buffer.get();
  if (store.predicate != nullptr || !places_.contains(buffer)) {
    Fail(absl::StrCat("a store to '", buffer->name,
                      "' that is not part of a program as written"),
         0);
    return;
  }
  const Place& place = places_.at(buffer);
  const auto set_error = [&](llvm::Value* error, llvm::Value* offset) {
    if (place.errors != nullptr) {
      b_.CreateStore(error, At(b_.getDoubleTy(), place.errors, offset));
    } else {
      grown_ |= inexact_.insert(buffer).second;
    }
  };
  llvm::Value* doubt = nullptr;
  if (marking_) {
    llvm::Value* offset = Offset(*buffer, store.indices, &doubt);
    return set_error(math_.Double(INFINITY), offset);
  }
  const bool accumulates =
      in_reduction_ && IsAccumulator(buffer) && Updates(store);
  if (accumulates) accumulating_ = &store;
  math_.set_unrounded(accumulates);
  Value value = Emit(store.value);
  accumulating_ = nullptr;
  llvm::Value* offset = Offset(*buffer, store.indices, &doubt);
  if (!status_.ok()) return;
  if (value.summed) {
    double terms = terms_;
    for (const auto& [var, extent] : inner_loops_) {
      const auto uses = [var = var](const Expr& index) {
        return ir::UsesVar(index, var);
      };
      if (std::none_of(store.indices.begin(), store.indices.end(), uses)) {
        terms *= extent;
      }
    }
    const Value before = ReadPlace(*buffer, offset, /*raw=*/true);
    value.error = math_.BoundOfSum(buffer->dtype, value, before.value, terms);
  }
  math_.set_unrounded(false);
  if (!accumulates && buffer->dtype.is_float() && buffer->dtype.bits == 16) {
    value = math_.Round(buffer->dtype, value);
    // What it is divided by may as well divide what is made from it.
    if (value.error != nullptr && !IsParameter(buffer) &&
        IsQuotient(store.value)) {
      value = math_.AtAnyScale(buffer->dtype, value);
    }
  }
  llvm::Value* stored = place.own_format
                            ? math_.ToMemory(buffer->dtype, value.value)
                            : b_.CreateFPCast(value.value, place.type);
  b_.CreateStore(stored, At(place.type, place.values, offset));
  llvm::Value* error = value.error;
  if (error != nullptr && buffer->dtype.is_bool()) {
    error = b_.CreateSelect(error, math_.Double(1), math_.Double(0));
  }
  if (doubt != nullptr) {
    error = b_.CreateSelect(doubt, math_.Double(INFINITY),
                            error == nullptr ? math_.Double(0) : error);
  }
  if (error != nullptr) {
    set_error(error, offset);
  } else if (place.errors != nullptr) {
    set_error(math_.Double(0), offset);
  }
}

void Translator::EmitFor(const ir::ForNode& loop) {
  if (!marking_ && !in_reduction_) {
    if (const auto nest = FindReductionNest(loop)) return EmitNest(*nest);
  }
  const Value min = Emit(loop.min);
  const Value extent = Emit(loop.extent);
  if (!status_.ok()) return;
  if (min.error != nullptr || extent.error != nullptr) {
    Fail(absl::StrCat("the bounds of loop '", loop.var->name,
                      "' depend on rounded numbers"),
         0);
    return;
  }
  const auto count = ir::AsInt(loop.extent);
  inner_loops_.emplace_back(loop.var.get(),
                            static_cast<double>(count.value_or(1)));
  Loop(min.value, extent.value, [&](llvm::Value* i) {
    vars_[loop.var.get()] = {i};
    Emit(loop.body);
  });
  inner_loops_.pop_back();
}

void Translator::EmitNest(const ReductionNest& nest) {
  const auto bind = [&](const ir::ForNode& loop, llvm::Value* i) {
    vars_[loop.var.get()] = {i};
    for (const ir::IterVar& iter : nest.block->iters) {
      if (iter.binding.get() == loop.var.get()) vars_[iter.var.get()] = {i};
    }
  };
  // Runs `body` in each iteration, for `together` iterations of the innermost
  // spatial loop at a time.
  const auto nested = [&](const std::vector<const ir::ForNode*>& loops,
                          int64_t together, const Body& body) {
    llvm::Value* first = nullptr;
    const std::function<void(size_t)> emit = [&](size_t depth) {
      if (depth == loops.size()) {
        for (int64_t n = 0; n < together; ++n) {
          if (first != nullptr) {
            bind(*nest.spatial.back(), b_.CreateAdd(first, Number(n)));
          }
          body();
        }
        return;
      }
      const ir::ForNode& loop = *loops[depth];
      const int64_t min = *ir::AsInt(loop.min);
      const int64_t extent = *ir::AsInt(loop.extent);
      if (together > 1 && &loop == nest.spatial.back()) {
        Loop(Number(0), Number(extent / together), [&](llvm::Value* i) {
          first = b_.CreateAdd(b_.CreateMul(i, Number(together)), Number(min));
          emit(depth + 1);
        });
        return;
      }
      Loop(Number(min), Number(extent), [&](llvm::Value* i) {
        bind(loop, i);
        emit(depth + 1);
      });
    };
    emit(0);
  };
  double terms = 1;
  for (const ir::IterVar& iter : nest.block->iters) {
    if (iter.type != ir::IterType::kReduce) continue;
    terms *= static_cast<double>(*ir::AsInt(iter.dom.extent));
  }
  in_reduction_ = true;
  const double outer = std::exchange(terms_, terms);
  auto outer_loops = std::exchange(inner_loops_, {});
  nested(nest.spatial, 1, [&] { Emit(nest.block->init); });
  nested(nest.order, nest.together, [&] { Emit(nest.block->body); });
  inner_loops_ = std::move(outer_loops);
  terms_ = outer;
  in_reduction_ = false;
}

void Translator::EmitConditional(const Value& condition, const Body& then_case,
                                 const Body& else_case) {
  if (!status_.ok()) return;
  llvm::Value* taken = condition.value;
  llvm::Value* other = b_.CreateNot(taken);
  if (condition.error == nullptr) {
    Guard(taken, then_case);
    Guard(other, else_case);
    return;
  }
  if (!marking_) {
    Guard(taken, then_case);
    Guard(other, else_case);
    marking_ = true;
    Guard(condition.error, [&] {
      then_case();
      else_case();
    });
    marking_ = false;
    return;
  }
  Guard(b_.CreateOr(taken, condition.error), then_case);
  Guard(b_.CreateOr(other, condition.error), else_case);
}

double Translator::RepeatsOf(const ir::BlockNode& block) const {
  double repeats = 1;
  for (const auto& [var, extent] : inner_loops_) {
    const auto uses = [var = var](const ir::IterVar& iter) {
      return ir::UsesVar(iter.binding, var);
    };
    const bool moves =
        std::any_of(block.iters.begin(), block.iters.end(), uses);
    const bool reduces = std::any_of(
        block.iters.begin(), block.iters.end(), [&](const ir::IterVar& iter) {
          return iter.type == ir::IterType::kReduce && uses(iter);
        });
    if (reduces || !moves) repeats *= extent;
  }
  for (const ir::IterVar& iter : block.iters) {
    if (iter.type != ir::IterType::kReduce) continue;
    repeats /= static_cast<double>(ir::AsInt(iter.dom.extent).value_or(1));
  }
  return std::max(repeats, 1.0);
}

void Translator::EmitBlock(const ir::BlockNode& block) {
  const auto run = [&] {
    Value first = {b_.getTrue()};
    // The rounding of a term is the same each time that it is added.
    double terms = std::pow(RepeatsOf(block), 2);
    for (const ir::IterVar& iter : block.iters) {
      const Value value = Emit(iter.binding);
      vars_[iter.var.get()] = value;
      if (iter.type != ir::IterType::kReduce) continue;
      first = math_.Binary(ir::BinaryOp::kAnd, ir::DataType::Bool(), first,
                           math_.Binary(ir::BinaryOp::kEQ, iter.var->dtype,
                                        value, Emit(iter.dom.min)));
      terms *= static_cast<double>(ir::AsInt(iter.dom.extent).value_or(1));
    }
    if (!marking_) {
      for (const ir::Buffer& buffer : block.allocs) {
        // Fill it, so that a read before the first write is visible.
        const Place& place = places_.at(buffer.get());
        const auto bytes =
            static_cast<int64_t>(place.type->getPrimitiveSizeInBits()) / 8;
        b_.CreateMemSet(place.values,
                        b_.getInt8(buffer->dtype.is_float() ? 0xFF : 0x7F),
                        Span(*buffer) * bytes, llvm::MaybeAlign(bytes));
        if (place.errors != nullptr) {
          b_.CreateMemSet(place.errors, b_.getInt8(0), Span(*buffer) * 8,
                          llvm::MaybeAlign(8));
        }
      }
    }
    const bool reduces = Reduces(block);
    const bool outer_reduction =
        std::exchange(in_reduction_, in_reduction_ || reduces);
    const double outer_terms = std::exchange(terms_, terms_ * terms);
    auto outer_loops = std::exchange(inner_loops_, {});
    if (block.init != nullptr) {
      EmitConditional(
          first, [&] { Emit(block.init); }, [] {});
    }
    Emit(block.body);
    inner_loops_ = std::move(outer_loops);
    terms_ = outer_terms;
    in_reduction_ = outer_reduction;
  };
  if (ir::IsConstInt(block.predicate, 1)) return run();
  EmitConditional(Emit(block.predicate), run, [] {});
}

}  // namespace tilefarm::oracle
