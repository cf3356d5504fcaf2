#include "compiler/codegen/emitter.h"

#include <functional>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::codegen {
namespace {

// Small buffers are on the stack, where LLVM's SROA turns those that are
// accessed only at constant indices into registers. Threads of the pool have 1
// MiB of stack.
constexpr int64_t kStackBytesLocal = 16 << 10;  // scope "local"
constexpr int64_t kStackBytesOther = 4 << 10;
constexpr int64_t kStackBytesInAll = 128 << 10;

// Variables and buffers that a statement uses, in order of first use.
class FreeUses : public ir::Visitor {
 public:
  std::vector<const ir::VarNode*> vars;
  std::vector<ir::Buffer> buffers;

 protected:
  void VisitVar(const ir::VarNode& var) override {
    if (seen_.insert(&var).second) vars.push_back(&var);
  }
  void VisitLoad(const ir::LoadNode& load) override {
    Use(load.buffer);
    Visitor::VisitLoad(load);
  }
  void VisitStore(const ir::StoreNode& store) override {
    Use(store.buffer);
    Visitor::VisitStore(store);
  }

 private:
  void Use(const ir::Buffer& buffer) {
    if (seen_.insert(buffer.get()).second) buffers.push_back(buffer);
  }
  std::unordered_set<const void*> seen_;
};

// The allocations of a frame, without those of nested parallel loops.
void CollectAllocs(const ir::Stmt& stmt, bool outline_parallel,
                   std::vector<ir::Buffer>& allocs) {
  ir::PreOrder(stmt, [&](const ir::Stmt& s) {
    if (const auto* loop = ir::As<ir::ForNode>(s)) {
      return !(outline_parallel && loop->for_kind == ir::ForKind::kParallel);
    }
    if (const auto* alloc = ir::As<ir::AllocNode>(s)) {
      allocs.push_back(alloc->buffer);
    }
    return true;
  });
}

bool UsesTiles(const ir::Stmt& stmt) {
  bool uses = false;
  ir::PostOrderExprs(stmt, [&](const ir::Expr& e) {
    const auto* op = ir::As<ir::MachineOpNode>(e);
    uses |= op != nullptr && op->op == ir::MachineOp::kTileProduct;
  });
  return uses;
}

int64_t Bytes(const ir::BufferNode& buffer) {
  return buffer.num_elements() * buffer.dtype.bytes();
}

}  // namespace

Emitter::Emitter(llvm::Module& module, const Options& options)
    : module_(module),
      context_(module.getContext()),
      options_(options),
      builder_(module.getContext()),
      math_(module, options.target.capabilities) {
  llvm::FastMathFlags flags;
  flags.setAllowContract(true);
  builder_.setFastMathFlags(flags);
}

absl::Status Emitter::EmitFunction(const ir::PrimFunc& function,
                                   const std::string& name) {
  status_ = absl::OkStatus();
  function_name_ = name;
  parallel_loops_ = 0;
  FindStreamable(function);
  llvm::Type* pointer = builder_.getPtrTy();
  Frame frame;
  frame.function = llvm::Function::Create(
      llvm::FunctionType::get(
          builder_.getInt32Ty(),
          std::vector<llvm::Type*>(function.params.size(), pointer), false),
      llvm::GlobalValue::ExternalLinkage, name, module_);
  for (size_t i = 0; i < function.params.size(); ++i) {
    llvm::Argument* arg = frame.function->getArg(i);
    arg->setName(function.params[i]->name);
    arg->addAttr(llvm::Attribute::NoAlias);
    arg->addAttr(llvm::Attribute::NoUndef);
    frame.buffers[function.params[i].get()] = arg;
  }
  BeginFrame(frame, function.body);
  EmitStmt(function.body);
  EndFrame(frame);
  return status_;
}

void Emitter::BeginFrame(Frame& frame, const ir::Stmt& body) {
  frame_ = &frame;
  frame.function->setDoesNotThrow();
  frame.entry = NewBlock("entry");
  frame.exit = NewBlock("exit");
  llvm::BasicBlock* start = NewBlock("body");
  builder_.SetInsertPoint(frame.entry);
  frame.status = EntryAlloca(frame, builder_.getInt32Ty());
  builder_.CreateStore(builder_.getInt32(0), frame.status);
  std::vector<ir::Buffer> allocs;
  CollectAllocs(body, !frame.in_parallel && options_.target.cores > 1, allocs);
  int64_t stack_bytes = 0;
  llvm::Value* failed = nullptr;
  if (!frame.in_parallel && UsesTiles(body)) {
    failed = builder_.CreateIsNotNull(builder_.CreateCall(
        Runtime("tf_rt_enable_tiles", builder_.getInt32Ty(), {})));
  }
  for (const ir::Buffer& buffer : allocs) {
    const int64_t bytes = Bytes(*buffer);
    const bool local = buffer->scope.rfind("local", 0) == 0;
    const int64_t limit = local ? kStackBytesLocal : kStackBytesOther;
    if (bytes <= limit && stack_bytes + bytes <= kStackBytesInAll) {
      stack_bytes += bytes;
      llvm::AllocaInst* space =
          EntryAlloca(frame, llvm::ArrayType::get(MemoryType(buffer->dtype),
                                                  buffer->num_elements()));
      space->setAlignment(llvm::Align(64));
      space->setName(buffer->name);
      frame.buffers[buffer.get()] = space;
      continue;
    }
    llvm::CallInst* space = builder_.CreateCall(
        Runtime("tf_rt_workspace_acquire", builder_.getPtrTy(),
                {builder_.getInt64Ty()}),
        {builder_.getInt64(bytes)}, buffer->name);
    space->addRetAttr(llvm::Attribute::NoAlias);
    frame.workspace.push_back(space);
    frame.buffers[buffer.get()] = space;
    llvm::Value* none = builder_.CreateIsNull(space);
    failed = failed == nullptr ? none : builder_.CreateOr(failed, none);
  }
  if (failed == nullptr) {
    builder_.CreateBr(start);
  } else {
    builder_.CreateStore(builder_.CreateZExt(failed, builder_.getInt32Ty()),
                         frame.status);
    builder_.CreateCondBr(failed, frame.exit, start);
  }
  builder_.SetInsertPoint(start);
}

void Emitter::EndFrame(Frame& frame) {
  if (frame.in_parallel && (streaming_ == Streaming::kStreamed ||
                            streaming_ == Streaming::kByChoice)) {
    EmitStoreFence();
  }
  builder_.CreateBr(frame.exit);
  frame.exit->moveAfter(builder_.GetInsertBlock());
  builder_.SetInsertPoint(frame.exit);
  for (llvm::Value* space : frame.workspace) {
    builder_.CreateCall(Runtime("tf_rt_workspace_release", builder_.getVoidTy(),
                                {builder_.getPtrTy()}),
                        {space});
  }
  builder_.CreateRet(builder_.CreateLoad(builder_.getInt32Ty(), frame.status));
}

void Emitter::EmitParallel(const ir::ForNode& loop) {
  FreeUses uses;
  uses.Visit(loop.body);
  // The body function's parameters: begin, end, buffers, values.
  Frame& outer = *frame_;
  std::vector<ir::Buffer> buffers;
  std::vector<const ir::VarNode*> vars;
  std::vector<llvm::Value*> captured;
  for (const ir::Buffer& buffer : uses.buffers) {
    if (const auto it = outer.buffers.find(buffer.get());
        it != outer.buffers.end()) {
      buffers.push_back(buffer);
      captured.push_back(it->second);
    }
  }
  for (const ir::VarNode* var : uses.vars) {
    if (const auto it = outer.vars.find(var); it != outer.vars.end()) {
      vars.push_back(var);
      captured.push_back(it->second);
    }
  }
  llvm::Value* min = Emit(loop.min);
  llvm::Value* extent = Emit(loop.extent);
  captured.push_back(min);
  std::vector<llvm::Type*> fields;
  for (llvm::Value* value : captured) fields.push_back(value->getType());
  std::vector<llvm::Type*> parameters = {builder_.getInt64Ty(),
                                         builder_.getInt64Ty()};
  parameters.insert(parameters.end(), fields.begin(), fields.end());

  Frame inner;
  inner.in_parallel = true;
  inner.function = llvm::Function::Create(
      llvm::FunctionType::get(builder_.getInt32Ty(), parameters, false),
      llvm::GlobalValue::InternalLinkage,
      absl::StrCat(function_name_, ".parallel", parallel_loops_++), module_);
  inner.function->addFnAttr(llvm::Attribute::NoInline);
  size_t position = 2;
  for (const ir::Buffer& buffer : buffers) {
    llvm::Argument* arg = inner.function->getArg(position++);
    arg->addAttr(llvm::Attribute::NoAlias);
    arg->setName(buffer->name);
    inner.buffers[buffer.get()] = arg;
  }
  for (const ir::VarNode* var : vars) {
    inner.vars[var] = inner.function->getArg(position++);
  }
  llvm::Value* inner_min = inner.function->getArg(position);

  const llvm::IRBuilderBase::InsertPoint saved = builder_.saveIP();
  BeginFrame(inner, loop.body);
  {
    // for (i = begin; i < end; ++i); there is at least one.
    llvm::BasicBlock* before = builder_.GetInsertBlock();
    llvm::BasicBlock* body = NewBlock("iteration");
    llvm::BasicBlock* after = NewBlock("done");
    builder_.CreateBr(body);
    builder_.SetInsertPoint(body);
    llvm::PHINode* i = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    i->addIncoming(inner.function->getArg(0), before);
    llvm::Value* value = builder_.CreateAdd(inner_min, i);
    inner.vars[loop.var.get()] =
        builder_.CreateTrunc(value, RegisterType(loop.var->dtype));
    EmitStmt(loop.body);
    llvm::Value* next = builder_.CreateAdd(i, builder_.getInt64(1), "",
                                           /*HasNUW=*/true, /*HasNSW=*/true);
    i->addIncoming(next, builder_.GetInsertBlock());
    builder_.CreateCondBr(
        builder_.CreateICmpNE(next, inner.function->getArg(1)), body, after);
    builder_.SetInsertPoint(after);
  }
  EndFrame(inner);
  llvm::StructType* context_type = llvm::StructType::get(context_, fields);
  llvm::Function* task = EmitParallelTask(inner.function, context_type);
  frame_ = &outer;
  builder_.restoreIP(saved);

  llvm::AllocaInst* context = EntryAlloca(outer, context_type);
  for (size_t i = 0; i < captured.size(); ++i) {
    builder_.CreateStore(captured[i],
                         builder_.CreateStructGEP(context_type, context, i));
  }
  llvm::Value* status = builder_.CreateCall(
      Runtime("tf_rt_parallel_for", builder_.getInt32Ty(),
              {builder_.getPtrTy(), builder_.getPtrTy(), builder_.getInt64Ty(),
               builder_.getInt32Ty()}),
      {task, context, builder_.CreateSExt(extent, builder_.getInt64Ty()),
       builder_.getInt32(options_.target.cores)});
  builder_.CreateStore(status, outer.status);
  llvm::BasicBlock* next = NewBlock("joined");
  builder_.CreateCondBr(builder_.CreateIsNull(status), next, outer.exit);
  builder_.SetInsertPoint(next);
}

llvm::Function* Emitter::EmitParallelTask(llvm::Function* body,
                                          llvm::StructType* context) {
  llvm::Type* index = builder_.getInt64Ty();
  llvm::Function* task = llvm::Function::Create(
      llvm::FunctionType::get(builder_.getInt32Ty(),
                              {index, index, builder_.getPtrTy()}, false),
      llvm::GlobalValue::InternalLinkage, body->getName() + ".task", module_);
  task->setDoesNotThrow();
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", task));
  std::vector<llvm::Value*> args = {task->getArg(0), task->getArg(1)};
  for (unsigned i = 0; i < context->getNumElements(); ++i) {
    args.push_back(builder_.CreateLoad(
        context->getElementType(i),
        builder_.CreateStructGEP(context, task->getArg(2), i)));
  }
  builder_.CreateRet(builder_.CreateCall(body, args));
  return task;
}

llvm::FunctionCallee Emitter::Runtime(const char* name, llvm::Type* result,
                                      std::vector<llvm::Type*> parameters) {
  return module_.getOrInsertFunction(
      name, llvm::FunctionType::get(result, parameters, false));
}

llvm::AllocaInst* Emitter::EntryAlloca(Frame& frame, llvm::Type* type) {
  llvm::IRBuilder<> entry(frame.entry, frame.entry->begin());
  return entry.CreateAlloca(type);
}

llvm::BasicBlock* Emitter::NewBlock(const char* name) {
  return llvm::BasicBlock::Create(context_, name, frame_->function);
}

void Emitter::Fail(absl::Status status) {
  if (status_.ok()) {
    status_ = absl::Status(
        status.code(), absl::StrCat("code generation of ", function_name_, ": ",
                                    status.message()));
  }
}

llvm::Value* Emitter::Fail(absl::Status status, llvm::Type* type) {
  Fail(std::move(status));
  return llvm::PoisonValue::get(type);
}

}  // namespace tilefarm::codegen
