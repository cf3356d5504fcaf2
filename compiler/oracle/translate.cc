// The function around a program: its buffers, their copies, and the module.
#include <algorithm>
#include <utility>

#include "compiler/oracle/oracle.h"
#include "compiler/oracle/translate_internal.h"
#include "compiler/oracle/translator_internal.h"

namespace tilefarm::oracle {
// tilefarm_oracle(buffers, bounds) { return body(buffers[0]..., bounds[0]...)
// }, so that LLVM knows that the arguments do not overlap.
absl::StatusOr<bool> Translator::Run() {
  const size_t count = function_.params.size();
  const std::vector<llvm::Type*> pointers(2 * count, b_.getPtrTy());
  llvm::Function* body = llvm::Function::Create(
      llvm::FunctionType::get(b_.getInt32Ty(), pointers, false),
      llvm::GlobalValue::InternalLinkage, "body", module_);
  body->addFnAttr(llvm::Attribute::NoInline);
  body->setDoesNotThrow();
  for (llvm::Argument& argument : body->args()) {
    argument.addAttr(llvm::Attribute::NoAlias);
    argument.addAttr(llvm::Attribute::NoCapture);
  }
  MakeEntry(body);
  b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "", body));
  PlaceBuffers(body);
  for (size_t i = 0; i < count; ++i) {
    CopyIn(*function_.params[i], places_.at(function_.params[i].get()),
           body->getArg(i));
  }
  Emit(function_.body);
  for (size_t i = 0; i < count; ++i) {
    CopyOut(*function_.params[i], places_.at(function_.params[i].get()),
            body->getArg(i), body->getArg(count + i));
  }
  llvm::FunctionCallee release =
      module_.getOrInsertFunction("free", b_.getVoidTy(), b_.getPtrTy());
  for (llvm::Value* allocation : allocations_) {
    b_.CreateCall(release, {allocation});
  }
  b_.CreateRet(b_.getInt32(0));
  if (!status_.ok()) return status_;
  return grown_;
}

void Translator::MakeEntry(llvm::Function* body) {
  const size_t count = function_.params.size();
  llvm::Type* pointer = b_.getPtrTy();
  llvm::Function* entry = llvm::Function::Create(
      llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer}, false),
      llvm::GlobalValue::ExternalLinkage, kSymbol, module_);
  b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "", entry));
  std::vector<llvm::Value*> arguments;
  for (const unsigned list : {0u, 1u}) {
    for (size_t i = 0; i < count; ++i) {
      arguments.push_back(b_.CreateLoad(
          pointer,
          At(pointer, entry->getArg(list), Number(static_cast<int64_t>(i)))));
    }
  }
  b_.CreateRet(b_.CreateCall(body, arguments));
}

llvm::Value* Translator::Allocate(int64_t bytes) {
  constexpr int64_t kAlign = 64;
  bytes = (std::max<int64_t>(bytes, 1) + kAlign - 1) / kAlign * kAlign;
  workspace_bytes_ += bytes;
  llvm::FunctionCallee allocate = module_.getOrInsertFunction(
      "aligned_alloc", b_.getPtrTy(), b_.getInt64Ty(), b_.getInt64Ty());
  llvm::CallInst* made =
      b_.CreateCall(allocate, {Number(kAlign), Number(bytes)});
  made->addRetAttr(llvm::Attribute::NoAlias);
  allocations_.push_back(made);
  return made;
}

void Translator::PlaceBuffers(llvm::Function* body) {
  const auto place = [&](const ir::BufferNode* buffer, llvm::Value* memory) {
    Place made;
    made.type = math_.MemoryType(buffer->dtype);
    if (memory == nullptr || found_.written.contains(buffer)) {
      if (IsAccumulator(buffer)) {
        made.own_format = buffer->dtype.bits == 64;
        made.type = b_.getDoubleTy();
      } else if (buffer->dtype.is_float() && buffer->dtype.bits == 16) {
        made.own_format = false;
        made.type = b_.getFloatTy();
      }
      if (inexact_.contains(buffer)) {
        made.errors = Allocate(Span(*buffer) * 8);
      }
    }
    const auto bytes =
        static_cast<int64_t>(made.type->getPrimitiveSizeInBits()) / 8;
    made.values = memory != nullptr && made.own_format
                      ? memory
                      : Allocate(Span(*buffer) * bytes);
    places_[buffer] = made;
  };
  for (size_t i = 0; i < function_.params.size(); ++i) {
    place(function_.params[i].get(), body->getArg(i));
  }
  for (const ir::Buffer& buffer : found_.allocated) {
    place(buffer.get(), nullptr);
  }
  // If an allocation fails, release the others and return.
  llvm::Value* failed = b_.getFalse();
  for (llvm::Value* allocation : allocations_) {
    failed = b_.CreateOr(failed, b_.CreateIsNull(allocation));
  }
  Guard(failed, [&] {
    llvm::FunctionCallee release =
        module_.getOrInsertFunction("free", b_.getVoidTy(), b_.getPtrTy());
    for (llvm::Value* allocation : allocations_) {
      b_.CreateCall(release, {allocation});
    }
    b_.CreateRet(b_.getInt32(1));
    b_.SetInsertPoint(NewBlock());  // unreachable
  });
}

void Translator::CopyIn(const ir::BufferNode& param, const Place& place,
                        llvm::Value* from) {
  llvm::Value* elements = Number(Span(param));
  if (!place.own_format) {
    llvm::Type* type = math_.MemoryType(param.dtype);
    Loop(Number(0), elements, [&](llvm::Value* i) {
      llvm::Value* value =
          math_.FromMemory(param.dtype, b_.CreateLoad(type, At(type, from, i)));
      b_.CreateStore(b_.CreateFPCast(value, place.type),
                     At(place.type, place.values, i));
    });
  }
  if (place.errors != nullptr) {
    b_.CreateMemSet(place.errors, b_.getInt8(0), Span(param) * 8,
                    llvm::MaybeAlign(8));
  }
}

void Translator::CopyOut(const ir::BufferNode& param, const Place& place,
                         llvm::Value* to, llvm::Value* bounds) {
  if (place.own_format && place.errors == nullptr) return;
  llvm::Type* bound_type = param.dtype.is_float() && param.dtype.bits == 64
                               ? b_.getDoubleTy()
                               : b_.getFloatTy();
  Loop(Number(0), Number(Span(param)), [&](llvm::Value* i) {
    const Value element = ReadPlace(param, i, /*raw=*/false);
    if (!place.own_format) {
      llvm::Type* type = math_.MemoryType(param.dtype);
      b_.CreateStore(math_.ToMemory(param.dtype, element.value),
                     At(type, to, i));
    }
    if (place.errors == nullptr) return;
    // Rounding must not reduce the bound.
    llvm::Value* bound =
        param.dtype.is_bool()
            ? b_.CreateSelect(element.error, math_.Double(1), math_.Double(0))
            : b_.CreateFMul(element.error, math_.Double(1 + 0x1p-20));
    b_.CreateStore(b_.CreateFPCast(bound, bound_type),
                   At(bound_type, bounds, i));
  });
}

absl::StatusOr<Translation> Translate(const ir::PrimFunc& function,
                                      llvm::LLVMContext& context) {
  FindBuffers found;
  found.Visit(function.body);
  // Which buffers rounding affects is known only after translation, so the
  // translation is repeated until no more buffers are found.
  Buffers inexact;
  for (;;) {
    Translation result;
    result.module = std::make_unique<llvm::Module>("oracle", context);
    Translator translator(function, found, inexact, *result.module);
    absl::StatusOr<bool> grown = translator.Run();
    if (!grown.ok()) return grown.status();
    if (*grown) continue;
    for (const ir::Buffer& param : function.params) {
      result.bounded.push_back(translator.Bounded(param.get()));
    }
    result.workspace_bytes = translator.workspace_bytes();
    return result;
  }
}

}  // namespace tilefarm::oracle
