// Stores that bypass the caches (ir::kStreamingStores).
//
//   if (every output is aligned) { loop with streaming stores; fence }
//   else { loop }
//
// or, if the loop does much besides these stores, the same choice at each
// group of them (streaming_choice.h). The alignment of buffers depends on the
// caller, so it is tested once per call; the alignment of indices must follow
// from their form.
#include <set>

#include "compiler/codegen/emitter.h"
#include "compiler/codegen/streaming_choice.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Metadata.h"

namespace tilefarm::codegen {
namespace {

struct LoadedBuffers : ir::Visitor {
  std::set<const ir::BufferNode*> loaded;

 protected:
  void VisitLoad(const ir::LoadNode& load) override {
    loaded.insert(load.buffer.get());
    Visitor::VisitLoad(load);
  }
};

struct Stores : ir::Visitor {
  std::vector<const ir::StoreNode*> stores;

 protected:
  void VisitStore(const ir::StoreNode& store) override {
    stores.push_back(&store);
    Visitor::VisitStore(store);
  }
};

}  // namespace

void Emitter::FindStreamable(const ir::PrimFunc& function) {
  streamable_.clear();
  if (!Has(target::Capability::kStreamingStores)) return;
  LoadedBuffers reads;
  reads.Visit(function.body);
  for (const ir::Buffer& param : function.params) {
    if (!reads.loaded.contains(param.get())) streamable_.insert(param.get());
  }
}

bool Emitter::CanStream(const ir::StoreNode& store) const {
  if (!streamable_.contains(store.buffer.get()) ||
      (store.predicate != nullptr && ir::AsInt(store.predicate) != 1)) {
    return false;
  }
  const std::optional<RampForm> ramp = AsRamp(store.indices[0]);
  const int64_t bytes = store.buffer->dtype.element().bytes();
  const int64_t vector = options_.target.vector_bits / 8;
  return ramp && ir::IsConstInt(ramp->stride, 1) &&
         store.indices[0]->dtype.lanes * bytes % vector == 0 &&
         DivisorOf(ramp->base) * bytes % vector == 0;
}

bool Emitter::EmitStreamingLoop(const ir::ForNode& loop) {
  if (streaming_ != Streaming::kUndecided ||
      !loop.annotations.contains(ir::kStreamingStores)) {
    return false;
  }
  Stores found;
  found.Visit(loop.body);
  std::set<const ir::BufferNode*> seen;
  llvm::Value* address = nullptr;
  for (const ir::StoreNode* store : found.stores) {
    if (!CanStream(*store) || !seen.insert(store->buffer.get()).second) {
      continue;
    }
    llvm::Value* one = builder_.CreatePtrToInt(
        frame_->buffers.at(store->buffer.get()), builder_.getInt64Ty());
    address = address == nullptr ? one : builder_.CreateOr(address, one);
  }
  if (address == nullptr) return false;
  llvm::Value* aligned = builder_.CreateICmpEQ(
      builder_.CreateAnd(address, options_.target.vector_bits / 8 - 1),
      builder_.getInt64(0));
  // Each thread of a parallel loop executes a fence after its stores.
  const bool fenced = loop.for_kind == ir::ForKind::kParallel &&
                      !frame_->in_parallel && options_.target.cores > 1;
  const ir::Var is_aligned = ir::MakeVar("aligned", ir::DataType::Bool());
  const ir::Stmt body = ChooseAtStores(
      loop.body, is_aligned, [&](const ir::StoreNode& store) -> int64_t {
        if (!CanStream(store)) return 0;
        return store.indices[0]->dtype.lanes *
               store.buffer->dtype.element().bytes() * 8 /
               options_.target.vector_bits;
      });
  if (body != nullptr) {
    aligned_ = is_aligned.get();
    frame_->vars[aligned_] = aligned;
    streaming_ = Streaming::kByChoice;
    EmitFor(ir::ForNode(loop.var, loop.min, loop.extent, loop.for_kind, body,
                        loop.annotations, loop.thread_tag));
    streaming_ = Streaming::kUndecided;
    frame_->vars.erase(aligned_);
    aligned_ = nullptr;
    if (!fenced) EmitStoreFence();
    return true;
  }
  llvm::BasicBlock* streamed = NewBlock("streamed");
  llvm::BasicBlock* plain = NewBlock("plain");
  llvm::BasicBlock* after = NewBlock("written");
  builder_.CreateCondBr(aligned, streamed, plain);
  builder_.SetInsertPoint(streamed);
  streaming_ = Streaming::kStreamed;
  EmitFor(loop);
  if (!fenced) EmitStoreFence();
  builder_.CreateBr(after);
  plain->moveAfter(builder_.GetInsertBlock());
  builder_.SetInsertPoint(plain);
  streaming_ = Streaming::kPlain;
  EmitFor(loop);
  streaming_ = Streaming::kUndecided;
  builder_.CreateBr(after);
  after->moveAfter(builder_.GetInsertBlock());
  builder_.SetInsertPoint(after);
  return true;
}

void Emitter::EmitStoreFence() {
  builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
}

void Emitter::EmitStreamingStore(llvm::Value* value, llvm::Value* address) {
  llvm::StoreInst* store = builder_.CreateAlignedStore(
      value, address,
      llvm::Align(static_cast<uint64_t>(options_.target.vector_bits / 8)));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                     llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(
                                                     builder_.getInt32(1))));
}

}  // namespace tilefarm::codegen
