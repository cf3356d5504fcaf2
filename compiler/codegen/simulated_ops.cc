// Kernels as functions of the host: void NAME(thread, buffers), where `thread`
// is a tf_sim_thread (runtime/gpu.h).
#include <array>

#include "compiler/codegen/device_ops.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/runtime/gpu.h"

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
      threads_[ir::DimensionOf(axis.axis)] = axis.extent;
    }
    return out;
  }

  llvm::Value* Index(const lower::KernelAxis& axis,
                     llvm::IRBuilder<>& builder) override {
    if (axis.axis == ir::ThreadAxis::kCluster) {
      return builder.CreateLoad(builder.getInt32Ty(), Field(3, 0, builder));
    }
    return Index(ir::IsThreadIdx(axis.axis) ? 0 : 1, ir::DimensionOf(axis.axis),
                 builder);
  }

  void Barrier(llvm::IRBuilder<>& builder) override {
    builder.CreateCall(Runtime("tf_rt_sim_barrier", builder.getVoidTy(),
                               {builder.getPtrTy(), builder.getInt32Ty()}),
                       {thread_, builder.getInt32(sites_++)});
  }

  void ClusterBarrier(llvm::IRBuilder<>& builder) override {
    builder.CreateCall(Runtime("tf_rt_sim_cluster_barrier", builder.getVoidTy(),
                               {builder.getPtrTy(), builder.getInt32Ty()}),
                       {thread_, builder.getInt32(sites_++)});
  }

  llvm::Value* ClusterAddress(llvm::Value* shared, llvm::Value* rank,
                              llvm::IRBuilder<>& builder) override {
    return builder.CreateCall(
        Runtime("tf_rt_sim_cluster_address", builder.getPtrTy(),
                {builder.getPtrTy(), builder.getPtrTy(), builder.getInt32Ty()}),
        {thread_, shared, rank});
  }

  void NoteClusterRead(llvm::Value* address, int bytes,
                       llvm::IRBuilder<>& builder) override {
    builder.CreateCall(
        Runtime("tf_rt_sim_cluster_read", builder.getVoidTy(),
                {builder.getPtrTy(), builder.getPtrTy(), builder.getInt32Ty()}),
        {thread_, address, builder.getInt32(static_cast<uint32_t>(bytes))});
  }

  bool CopyAsync(llvm::Value* to, llvm::Value* from, int bytes,
                 llvm::Value* condition, llvm::IRBuilder<>& builder) override {
    llvm::Value* size = builder.getInt32(static_cast<uint32_t>(bytes));
    llvm::Value* valid =
        condition == nullptr
            ? size
            : builder.CreateSelect(condition, size, builder.getInt32(0));
    builder.CreateCall(
        Runtime("tf_rt_sim_copy_async", builder.getVoidTy(),
                {builder.getPtrTy(), builder.getPtrTy(), builder.getPtrTy(),
                 builder.getInt32Ty(), builder.getInt32Ty()}),
        {thread_, to, from, size, valid});
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
                {builder.getPtrTy(), word, word, word, word}),
        {thread_, value, lane, builder.getInt32(static_cast<uint32_t>(width)),
         builder.getInt32(sites_++)});
  }

  llvm::Value* LoadMatrix(llvm::Value* row, int matrices, bool transposed,
                          llvm::IRBuilder<>& builder) override {
    llvm::Type* word = builder.getInt32Ty();
    llvm::Type* type = Words(matrices, builder);
    llvm::Value* results = Space(type, builder);
    builder.CreateCall(
        Runtime("tf_rt_sim_load_matrix", builder.getVoidTy(),
                {builder.getPtrTy(), builder.getPtrTy(), builder.getPtrTy(),
                 word, word, word}),
        {thread_, results, row,
         builder.getInt32(static_cast<uint32_t>(matrices)),
         builder.getInt32(transposed ? 1 : 0), builder.getInt32(sites_++)});
    return builder.CreateLoad(type, results);
  }

  llvm::Value* WarpProduct(int unit, llvm::Value* a, llvm::Value* b,
                           llvm::Value* sums,
                           llvm::IRBuilder<>& builder) override {
    const ir::WarpProduct& product =
        ir::kWarpProducts[static_cast<size_t>(unit)];
    llvm::Value* operands[3] = {a, b, sums};
    for (llvm::Value*& operand : operands) {
      llvm::Value* space = Space(operand->getType(), builder);
      builder.CreateStore(operand, space);
      operand = space;
    }
    llvm::Type* word = builder.getInt32Ty();
    builder.CreateCall(
        Runtime("tf_rt_sim_warp_product", builder.getVoidTy(),
                {builder.getPtrTy(), word, word, builder.getPtrTy(),
                 builder.getPtrTy(), builder.getPtrTy(), word}),
        {thread_, builder.getInt32(ElementOf(product.a)),
         builder.getInt32(ElementOf(product.b)), operands[0], operands[1],
         operands[2], builder.getInt32(sites_++)});
    return builder.CreateLoad(sums->getType(), operands[2]);
  }

  // tf32 has the upper 19 bits.
  llvm::Value* RoundTf32(llvm::Value* value,
                         llvm::IRBuilder<>& builder) override {
    llvm::Value* bits = builder.CreateBitCast(value, builder.getInt32Ty());
    llvm::Value* rounded = builder.CreateAnd(
        builder.CreateAdd(bits, builder.getInt32(0x1000)), 0xffffe000u);
    llvm::Value* finite = builder.CreateICmpULT(
        builder.CreateAnd(bits, 0x7fffffffu), builder.getInt32(0x7f800000u));
    return builder.CreateBitCast(builder.CreateSelect(finite, rounded, bits),
                                 builder.getFloatTy());
  }

  llvm::Value* RoundTo16Bits(llvm::Value*, bool, llvm::IRBuilder<>&) override {
    return nullptr;
  }

  WarpgroupOps& warpgroups() override { return *warpgroups_; }

 private:
  // tf_sim_element (runtime/gpu.h).
  static uint32_t ElementOf(ir::DataType dtype) {
    if (dtype == ir::DataType::BFloat16()) return TF_SIM_BF16;
    if (dtype.is_float()) return dtype.bits == 16 ? TF_SIM_F16 : TF_SIM_TF32;
    return dtype.is_int() ? TF_SIM_S8 : TF_SIM_U8;
  }

  static llvm::Type* Words(int count, llvm::IRBuilder<>& builder) {
    llvm::Type* word = builder.getInt32Ty();
    if (count == 1) return word;
    return llvm::FixedVectorType::get(word, static_cast<unsigned>(count));
  }

  // Memory of the thread, in the entry block.
  static llvm::Value* Space(llvm::Type* type, llvm::IRBuilder<>& builder) {
    llvm::BasicBlock& entry =
        builder.GetInsertBlock()->getParent()->getEntryBlock();
    llvm::IRBuilder<> at(&entry, entry.begin());
    return at.CreateAlloca(type);
  }

  // tf_sim_thread: uint32_t thread[3], block[3]; void* shared; uint32_t rank.
  llvm::Value* Field(unsigned field, size_t element,
                     llvm::IRBuilder<>& builder) {
    llvm::Type* index = llvm::ArrayType::get(builder.getInt32Ty(), 3);
    llvm::StructType* type = llvm::StructType::get(
        index, index, builder.getPtrTy(), builder.getInt32Ty());
    llvm::Value* address = builder.CreateStructGEP(type, thread_, field);
    if (field >= 2) return address;
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
