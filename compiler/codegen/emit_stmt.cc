// Statements: loops, conditions, allocations.
#include "absl/strings/str_cat.h"
#include "compiler/codegen/emitter.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/library_call.h"
#include "llvm/IR/MDBuilder.h"

namespace tilefarm::codegen {

void Emitter::EmitStmt(const ir::Stmt& stmt) {
  if (!status_.ok()) return;
  switch (stmt->kind) {
    case ir::StmtKind::kStore:
      return EmitStore(*ir::As<ir::StoreNode>(stmt));
    case ir::StmtKind::kFor:
      return EmitFor(*ir::As<ir::ForNode>(stmt));
    case ir::StmtKind::kSeq:
      for (const ir::Stmt& child : ir::As<ir::SeqNode>(stmt)->stmts) {
        EmitStmt(child);
      }
      return;
    case ir::StmtKind::kIf:
      return EmitIf(*ir::As<ir::IfNode>(stmt));
    case ir::StmtKind::kLetStmt: {
      const auto* let = ir::As<ir::LetStmtNode>(stmt);
      frame_->vars[let->var.get()] = Emit(let->value);
      return EmitStmt(let->body);
    }
    case ir::StmtKind::kAlloc:
      return EmitAlloc(*ir::As<ir::AllocNode>(stmt));
    case ir::StmtKind::kEvaluate:
      // Expressions of the language have no side effects and need no code here.
      if (const auto* call = ir::AsGemmCall(stmt)) EmitGemmCall(*call);
      return EmitEffect(ir::As<ir::EvaluateNode>(stmt)->value);
    case ir::StmtKind::kBlock:
      return Fail(absl::InternalError("a block was left by lowering"));
  }
}

void Emitter::EmitEffect(const ir::Expr& value) {
  const auto* op = ir::As<ir::MachineOpNode>(value);
  if (op != nullptr && op->op == ir::MachineOp::kBarrier) {
    frame_->tile = {};
    return device_->Barrier(builder_);
  }
  if (op != nullptr && op->op == ir::MachineOp::kClusterBarrier) {
    frame_->tile = {};
    return device_->ClusterBarrier(builder_);
  }
  if (op != nullptr && op->op == ir::MachineOp::kCommit) {
    return device_->Commit(builder_);
  }
  if (op != nullptr && op->op == ir::MachineOp::kWait) {
    return device_->Wait(static_cast<int>(*ir::AsInt(op->args[0])), builder_);
  }
  if (op != nullptr && EmitWarpgroupEffect(*op)) return;
  EmitPrefetchOp(value);
}

void Emitter::EmitFor(const ir::ForNode& loop) {
  if (EmitStreamingLoop(loop)) return;
  switch (loop.for_kind) {
    case ir::ForKind::kParallel:
      if (options_.target.cores > 1 && !frame_->in_parallel) {
        return EmitParallel(loop);
      }
      break;
    case ir::ForKind::kThreadBinding:
      return Fail(absl::InvalidArgumentError(
          absl::StrCat("loop ", loop.var->name, " is bound to ",
                       loop.thread_tag, ", which a CPU target does not have")));
    case ir::ForKind::kVectorized:
      return Fail(absl::InternalError(absl::StrCat(
          "vectorized loop ", loop.var->name, " was left by lowering")));
    case ir::ForKind::kSerial:
    case ir::ForKind::kUnrolled:
      break;
  }
  const std::optional<int64_t> count = ir::AsInt(loop.extent);
  if (count && *count <= 0) return;
  llvm::Value* min = Emit(loop.min);
  if (count && *count == 1) {
    frame_->vars[loop.var.get()] = min;
    EmitStmt(loop.body);
    frame_->vars.erase(loop.var.get());
    return;
  }
  llvm::Type* type = RegisterType(loop.var->dtype);
  llvm::Value* extent = Emit(loop.extent);
  llvm::Value* end = nullptr;
  // With 32-bit addresses the counter has 32 bits, too: LLVM narrows values
  // that are computed from a counter, but not the counter. In kernels it has
  // where it can.
  const std::optional<IndexRange> range = CounterRange(min, extent);
  if (range) {
    type = builder_.getInt32Ty();
    end = builder_.CreateNSWAdd(Narrowed(min), Narrowed(extent));
    min = Narrowed(min);
  } else {
    end = builder_.CreateAdd(min, extent);
  }
  llvm::BasicBlock* body = NewBlock(loop.var->name.c_str());
  llvm::BasicBlock* after = NewBlock("done");
  if (count) {
    builder_.CreateBr(body);
  } else {
    builder_.CreateCondBr(builder_.CreateICmpSLT(min, end), body, after);
  }
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  builder_.SetInsertPoint(body);
  llvm::PHINode* var = builder_.CreatePHI(type, 2, loop.var->name);
  var->addIncoming(min, before);
  frame_->vars[loop.var.get()] = range ? Extended(var, *range) : var;
  const auto ahead = loop.annotations.find(ir::kPrefetchBytes);
  const int64_t bytes =
      ahead == loop.annotations.end() ? 0 : ahead->second.AsInt().value_or(0);
  if (bytes > 0) frame_->prefetches.push_back({loop.var.get(), bytes, {}});
  {
    const Nested nested(*frame_);
    EmitPrefetchLines(loop);
    EmitStmt(loop.body);
  }
  if (bytes > 0) frame_->prefetches.pop_back();
  // Copies of a loop share its variable: a parallel loop further on must not
  // capture the value it had here.
  frame_->vars.erase(loop.var.get());
  const bool from_zero = ir::IsConstInt(loop.min, 0);
  llvm::Value* next =
      builder_.CreateAdd(var, llvm::ConstantInt::get(type, 1), "",
                         /*HasNUW=*/from_zero, /*HasNSW=*/true);
  var->addIncoming(next, builder_.GetInsertBlock());
  // There is at least one iteration, so test at the end only.
  builder_.CreateCondBr(builder_.CreateICmpNE(next, end), body, after);
  after->moveAfter(builder_.GetInsertBlock());
  builder_.SetInsertPoint(after);
}

void Emitter::EmitIf(const ir::IfNode& branch) {
  if (branch.condition->dtype.is_vector()) {
    return Fail(absl::InternalError("a vector condition was left by lowering"));
  }
  llvm::Value* condition = EmitCondition(branch.condition);
  const bool chooses = branch.condition.get() == aligned_;
  const Streaming streaming = streaming_;
  llvm::BasicBlock* then_block = NewBlock("then");
  llvm::BasicBlock* after = NewBlock("endif");
  llvm::BasicBlock* else_block =
      branch.else_case == nullptr ? after : NewBlock("else");
  // Large buffers are usually aligned, so weight the branch.
  llvm::MDNode* weights =
      chooses ? llvm::MDBuilder(context_).createLikelyBranchWeights() : nullptr;
  builder_.CreateCondBr(condition, then_block, else_block, weights);
  builder_.SetInsertPoint(then_block);
  {
    const Nested nested(*frame_);
    if (chooses) streaming_ = Streaming::kStreamed;
    EmitStmt(branch.then_case);
  }
  builder_.CreateBr(after);
  if (branch.else_case != nullptr) {
    builder_.SetInsertPoint(else_block);
    const Nested nested(*frame_);
    if (chooses) streaming_ = Streaming::kPlain;
    EmitStmt(branch.else_case);
    builder_.CreateBr(after);
  }
  streaming_ = streaming;
  after->moveAfter(builder_.GetInsertBlock());
  builder_.SetInsertPoint(after);
}

void Emitter::EmitAlloc(const ir::AllocNode& alloc) {
  auto* space =
      llvm::dyn_cast<llvm::AllocaInst>(frame_->buffers.at(alloc.buffer.get()));
  if (space == nullptr) return EmitStmt(alloc.body);
  // The lifetime ends with the scope, so no value is carried across iterations
  // of outer loops.
  const llvm::DataLayout& layout = module_.getDataLayout();
  llvm::ConstantInt* bytes = builder_.getInt64(
      layout.getTypeAllocSize(space->getAllocatedType()).getFixedValue());
  builder_.CreateLifetimeStart(space, bytes);
  EmitStmt(alloc.body);
  builder_.CreateLifetimeEnd(space, bytes);
}

}  // namespace tilefarm::codegen
