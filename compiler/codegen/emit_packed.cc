// The entry points of a function with layout-free parameters. Its code exists
// once, as SYMBOL_packed; SYMBOL packs into workspace and calls it:
//
//   int SYMBOL(A, B, C) {
//     P = workspace;  SYMBOL.pack1(B, P);  return SYMBOL_packed(A, P, C);
//   }
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/emitter.h"

namespace tilefarm::codegen {
namespace {

// The result of SYMBOL_pack for a parameter that is not layout-free.
constexpr int kNoSuchParameter = -1;

ir::Buffer Workspace(const PackedParameter& param) {
  auto buffer = std::make_shared<ir::BufferNode>();
  buffer->name = absl::StrCat("packed", param.parameter);
  buffer->dtype = ir::DataType::Int(8);
  buffer->shape = {param.bytes};
  return buffer;
}

}  // namespace

absl::Status Emitter::EmitPacked(const LoweredFunction& kernel,
                                 const std::string& name) {
  const std::string packed_name = name + "_packed";
  absl::Status status = EmitFunction(*kernel.function, packed_name);
  if (!status.ok()) return status;
  llvm::Function* packed = module_.getFunction(packed_name);
  std::vector<llvm::Function*> packs;
  for (const PackedParameter& param : kernel.packed) {
    if (param.pack == nullptr) {
      packs.push_back(nullptr);
      continue;
    }
    const std::string pack_name = absl::StrCat(name, ".pack", param.parameter);
    status = EmitFunction(*param.pack, pack_name);
    if (!status.ok()) return status;
    packs.push_back(module_.getFunction(pack_name));
  }
  status_ = absl::OkStatus();
  function_name_ = name;
  EmitWhole(kernel, name, packs, packed);
  EmitPackEntry(kernel, name + "_pack", packs);
  EmitPackedBytes(kernel, name + "_packed_bytes");
  return status_;
}

void Emitter::EmitWhole(const LoweredFunction& kernel, const std::string& name,
                        const std::vector<llvm::Function*>& packs,
                        llvm::Function* packed) {
  Frame frame;
  frame.function =
      llvm::Function::Create(packed->getFunctionType(),
                             llvm::GlobalValue::ExternalLinkage, name, module_);
  // Allocated like the kernel's buffers, so that one rule places all workspace.
  ir::Stmt allocations = ir::NoOp();
  std::vector<ir::Buffer> spaces;
  for (const PackedParameter& param : kernel.packed) {
    spaces.push_back(param.pack == nullptr ? nullptr : Workspace(param));
    if (param.pack != nullptr) {
      allocations = ir::MakeAlloc(spaces.back(), allocations);
    }
  }
  std::vector<llvm::Value*> args;
  for (llvm::Argument& arg : frame.function->args()) {
    arg.setName(packed->getArg(arg.getArgNo())->getName());
    args.push_back(&arg);
  }
  BeginFrame(frame, allocations);
  const auto call = [&](llvm::Function* function,
                        const std::vector<llvm::Value*>& arguments) {
    llvm::CallInst* status = builder_.CreateCall(function, arguments);
    status->addFnAttr(llvm::Attribute::NoInline);
    builder_.CreateStore(status, frame.status);
    return status;
  };
  for (size_t i = 0; i < packs.size(); ++i) {
    if (packs[i] == nullptr) continue;
    const auto at = static_cast<size_t>(kernel.packed[i].parameter);
    llvm::Value* space = frame.buffers.at(spaces[i].get());
    llvm::Value* status = call(packs[i], {args[at], space});
    args[at] = space;
    llvm::BasicBlock* next = NewBlock("packed");
    builder_.CreateCondBr(builder_.CreateIsNull(status), next, frame.exit);
    builder_.SetInsertPoint(next);
  }
  call(packed, args);
  EndFrame(frame);
}

void Emitter::EmitPackEntry(const LoweredFunction& kernel,
                            const std::string& name,
                            const std::vector<llvm::Function*>& packs) {
  llvm::Type* pointer = builder_.getPtrTy();
  llvm::Function* function = llvm::Function::Create(
      llvm::FunctionType::get(builder_.getInt32Ty(),
                              {builder_.getInt32Ty(), pointer, pointer}, false),
      llvm::GlobalValue::ExternalLinkage, name, module_);
  function->setDoesNotThrow();
  const auto block = [&](const char* title) {
    return llvm::BasicBlock::Create(context_, title, function);
  };
  llvm::BasicBlock* entry = block("entry");
  llvm::BasicBlock* other = block("other");
  builder_.SetInsertPoint(other);
  builder_.CreateRet(
      builder_.getInt32(static_cast<uint32_t>(kNoSuchParameter)));
  builder_.SetInsertPoint(entry);
  llvm::SwitchInst* choose = builder_.CreateSwitch(function->getArg(0), other);
  llvm::Value* source = function->getArg(1);
  llvm::Value* packed = function->getArg(2);
  for (size_t i = 0; i < packs.size(); ++i) {
    const PackedParameter& param = kernel.packed[i];
    llvm::BasicBlock* chosen = block("pack");
    choose->addCase(builder_.getInt32(static_cast<uint32_t>(param.parameter)),
                    chosen);
    builder_.SetInsertPoint(chosen);
    if (packs[i] != nullptr) {
      llvm::CallInst* status = builder_.CreateCall(packs[i], {source, packed});
      status->addFnAttr(llvm::Attribute::NoInline);
      builder_.CreateRet(status);
      continue;
    }
    builder_.CreateMemCpy(packed, llvm::Align(1), source, llvm::Align(1),
                          static_cast<uint64_t>(param.source_bytes));
    builder_.CreateRet(builder_.getInt32(0));
  }
}

void Emitter::EmitPackedBytes(const LoweredFunction& kernel,
                              const std::string& name) {
  llvm::IntegerType* size = builder_.getIntPtrTy(module_.getDataLayout());
  llvm::Function* function = llvm::Function::Create(
      llvm::FunctionType::get(size, {builder_.getInt32Ty()}, false),
      llvm::GlobalValue::ExternalLinkage, name, module_);
  function->setDoesNotThrow();
  builder_.SetInsertPoint(
      llvm::BasicBlock::Create(context_, "entry", function));
  llvm::Value* bytes = llvm::ConstantInt::get(size, 0);
  for (const PackedParameter& param : kernel.packed) {
    bytes = builder_.CreateSelect(
        builder_.CreateICmpEQ(
            function->getArg(0),
            builder_.getInt32(static_cast<uint32_t>(param.parameter))),
        llvm::ConstantInt::get(size, static_cast<uint64_t>(param.bytes)),
        bytes);
  }
  builder_.CreateRet(bytes);
}

}  // namespace tilefarm::codegen
