// Kernels as functions of the host: void NAME(thread, buffers), where `thread`
// is a tf_sim_thread (runtime/gpu.h).
#include <array>

#include "compiler/codegen/device_ops.h"

namespace tilefarm::codegen {
namespace {

class Simulated : public DeviceOps {
 public:
  explicit Simulated(llvm::Module& module) : module_(module) {}

  Function Begin(const lower::Kernel& kernel, const std::string& name,
                 llvm::IRBuilder<>& builder) override {
    llvm::LLVMContext& context = module_.getContext();
    Function out;
    out.function = llvm::Function::Create(
        llvm::FunctionType::get(builder.getVoidTy(),
                                {builder.getPtrTy(), builder.getPtrTy()},
                                false),
        llvm::GlobalValue::ExternalLinkage, name, module_);
    out.function->setDoesNotThrow();
    thread_ = out.function->getArg(0);
    builder.SetInsertPoint(
        llvm::BasicBlock::Create(context, "entry", out.function));
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      out.buffers.push_back(builder.CreateLoad(
          builder.getPtrTy(),
          builder.CreateConstGEP1_32(builder.getPtrTy(),
                                     out.function->getArg(1),
                                     static_cast<unsigned>(i)),
          kernel.buffers[i]->name));
    }
    for (size_t i = 0; i < kernel.maps.size(); ++i) {
      out.maps.push_back(builder.CreateLoad(
          builder.getPtrTy(),
          builder.CreateConstGEP1_32(
              builder.getPtrTy(), out.function->getArg(1),
              static_cast<unsigned>(kernel.buffers.size() + i))));
    }
    if (kernel.shared_bytes > 0) {
      out.shared = builder.CreateLoad(builder.getPtrTy(), Field(2, 0, builder),
                                      "shared");
    }
    threads_ = {1, 1, 1};
    for (const lower::KernelAxis& axis : kernel.axes) {
      if (!ir::IsThreadIdx(axis.axis)) continue;
      threads_[Position(axis.axis)] = axis.extent;
    }
    return out;
  }

  llvm::Value* Index(const lower::KernelAxis& axis,
                     llvm::IRBuilder<>& builder) override {
    return Index(ir::IsThreadIdx(axis.axis) ? 0 : 1, Position(axis.axis),
                 builder);
  }

  void Barrier(llvm::IRBuilder<>& builder) override {
    builder.CreateCall(Runtime("tf_rt_sim_barrier", builder.getVoidTy(),
                               {builder.getPtrTy(), builder.getInt32Ty()}),
                       {thread_, builder.getInt32(sites_++)});
  }

  bool CopyAsync(llvm::Value* to, llvm::Value* from, int bytes,
                 llvm::IRBuilder<>& builder) override {
    llvm::Value* size = builder.getInt32(static_cast<uint32_t>(bytes));
    builder.CreateCall(
        Runtime("tf_rt_sim_copy_async", builder.getVoidTy(),
                {builder.getPtrTy(), builder.getPtrTy(), builder.getPtrTy(),
                 builder.getInt32Ty(), builder.getInt32Ty()}),
        {thread_, to, from, size, size});
    return true;
  }

  void NoteAccess(llvm::Value* address, int bytes, bool write,
                  llvm::IRBuilder<>& builder) override {
    builder.CreateCall(
        Runtime("tf_rt_sim_access", builder.getVoidTy(),
                {builder.getPtrTy(), builder.getPtrTy(), builder.getInt32Ty(),
                 builder.getInt32Ty()}),
        {thread_, address, builder.getInt32(static_cast<uint32_t>(bytes)),
         builder.getInt32(write ? 1 : 0)});
  }

  void Commit(llvm::IRBuilder<>& builder) override {
    builder.CreateCall(
        Runtime("tf_rt_sim_commit", builder.getVoidTy(), {builder.getPtrTy()}),
        {thread_});
  }

  void Wait(int groups, llvm::IRBuilder<>& builder) override {
    builder.CreateCall(
        Runtime("tf_rt_sim_wait", builder.getVoidTy(),
                {builder.getPtrTy(), builder.getInt32Ty()}),
        {thread_, builder.getInt32(static_cast<uint32_t>(groups))});
  }

  llvm::Value* ShuffleXor(llvm::Value* value, int mask, int width,
                          llvm::IRBuilder<>& builder) override {
    (void)width;  // a mask below it stays in the group
    const auto extent = [&](size_t i) {
      return builder.getInt32(static_cast<uint32_t>(threads_[i]));
    };
    llvm::Value* row =
        builder.CreateAdd(Index(0, 1, builder),
                          builder.CreateMul(Index(0, 2, builder), extent(1)));
    llvm::Value* number = builder.CreateAdd(Index(0, 0, builder),
                                            builder.CreateMul(row, extent(0)));
    llvm::Value* lane =
        builder.CreateXor(builder.CreateAnd(number, builder.getInt32(31)),
                          builder.getInt32(static_cast<uint32_t>(mask)));
    llvm::Type* word = builder.getInt32Ty();
    return builder.CreateCall(
        Runtime("tf_rt_sim_shuffle", word,
                {builder.getPtrTy(), word, word, word}),
        {thread_, value, lane, builder.getInt32(sites_++)});
  }

  llvm::Value* RoundTo16Bits(llvm::Value*, bool, llvm::IRBuilder<>&) override {
    return nullptr;
  }

  WarpgroupOps& warpgroups() override { return *warpgroups_; }

 private:
  // x, y, z.
  static size_t Position(ir::ThreadAxis axis) {
    return 2 - static_cast<size_t>(axis) % 3;
  }

  // tf_sim_thread: uint32_t thread[3], block[3]; void* shared.
  llvm::Value* Field(unsigned field, size_t element,
                     llvm::IRBuilder<>& builder) {
    llvm::Type* index = llvm::ArrayType::get(builder.getInt32Ty(), 3);
    llvm::StructType* type =
        llvm::StructType::get(index, index, builder.getPtrTy());
    llvm::Value* address = builder.CreateStructGEP(type, thread_, field);
    if (field == 2) return address;
    return builder.CreateConstGEP1_32(builder.getInt32Ty(), address,
                                      static_cast<unsigned>(element));
  }

  llvm::Value* Index(unsigned field, size_t element,
                     llvm::IRBuilder<>& builder) {
    return builder.CreateLoad(builder.getInt32Ty(),
                              Field(field, element, builder));
  }

  llvm::FunctionCallee Runtime(const char* name, llvm::Type* result,
                               std::vector<llvm::Type*> parameters) {
    return module_.getOrInsertFunction(
        name, llvm::FunctionType::get(result, parameters, false));
  }

  llvm::Module& module_;
  llvm::Value* thread_ = nullptr;
  std::array<int64_t, 3> threads_{};
  uint32_t sites_ = 0;
  const std::unique_ptr<WarpgroupOps> warpgroups_ =
      SimulatedWarpgroupOps(module_);
};

}  // namespace

std::unique_ptr<DeviceOps> SimulatedOps(llvm::Module& module) {
  return std::make_unique<Simulated>(module);
}

}  // namespace tilefarm::codegen
