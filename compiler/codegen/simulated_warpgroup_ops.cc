#include "compiler/codegen/warpgroup_ops.h"
#include "compiler/ir/tensor_box.h"

namespace tilefarm::codegen {
namespace {

class SimulatedWarpgroup : public WarpgroupOps {
 public:
  explicit SimulatedWarpgroup(llvm::Module& module) : module_(module) {}

  Value Uniform(Value value, llvm::IRBuilder<>&) override { return value; }

  void BarrierInit(Value barrier, uint32_t arrivals,
                   llvm::IRBuilder<>& builder) override {
    Call("tf_rt_sim_barrier_init", {barrier, builder.getInt32(arrivals)},
         builder);
  }
  void BarrierExpect(Value barrier, uint32_t bytes,
                     llvm::IRBuilder<>& builder) override {
    Call("tf_rt_sim_barrier_expect", {barrier, builder.getInt32(bytes)},
         builder);
  }
  void BarrierArrive(Value barrier, Value condition,
                     llvm::IRBuilder<>& builder) override {
    Call("tf_rt_sim_barrier_arrive",
         {barrier, builder.CreateZExt(condition, builder.getInt32Ty())},
         builder);
  }
  void BarrierWait(Value barrier, Value parity,
                   llvm::IRBuilder<>& builder) override {
    Call("tf_rt_sim_barrier_wait", {barrier, parity}, builder);
  }

  void CopyBox(Value to, Value map, const std::vector<Value>& origin,
               Value barrier, llvm::IRBuilder<>& builder) override {
    std::vector<Value> args = {to, map, barrier};
    Append(origin, ir::kMaxBoxDims, builder.getInt32(0), args);
    Call("tf_rt_sim_copy_box", args, builder);
  }
  void CopyWindows(Value to, Value map, const std::vector<Value>& origin,
                   const std::vector<Value>& offsets, Value barrier,
                   llvm::IRBuilder<>& builder) override {
    std::vector<Value> args = {to, map, barrier};
    Append(origin, ir::kMaxBoxDims, builder.getInt32(0), args);
    Append(offsets, ir::kMaxSpatial, builder.getInt16(0), args);
    Call("tf_rt_sim_copy_windows", args, builder);
  }

  void BoxFence(llvm::IRBuilder<>&) override {}

  void StoreBox(Value from, Value map, const std::vector<Value>& origin,
                llvm::IRBuilder<>& builder) override {
    std::vector<Value> args = {from, map};
    Append(origin, ir::kMaxBoxDims, builder.getInt32(0), args);
    Call("tf_rt_sim_store_box", args, builder);
  }
  void BoxStoreCommit(llvm::IRBuilder<>& builder) override {
    Call("tf_rt_sim_box_store_commit", {}, builder);
  }
  void BoxStoreWait(int groups, llvm::IRBuilder<>& builder) override {
    Call("tf_rt_sim_box_store_wait",
         {builder.getInt32(static_cast<uint32_t>(groups))}, builder);
  }
  void WarpgroupBarrier(Value number, llvm::IRBuilder<>& builder) override {
    Call("tf_rt_sim_warpgroup_barrier", {number}, builder);
  }

  void Fragment(Registers&, llvm::IRBuilder<>&) override {}
  void ProductFence(Registers&, llvm::IRBuilder<>&) override {}

  void Product(const Shape& shape, const Registers& a, Value b, Registers& sums,
               llvm::IRBuilder<>& builder) override {
    llvm::Type* type = sums[0]->getType();
    if (!shape.adds) {
      for (Value& sum : sums) sum = llvm::Constant::getNullValue(type);
    }
    Value memory = InMemory(sums, builder);
    const ir::DataType operand = shape.unit->operand;
    const auto word = [&](int64_t value) {
      return builder.getInt32(static_cast<uint32_t>(value));
    };
    // tf_sim_operand.
    const int kind = operand == ir::DataType::BFloat16() ? 0
                     : operand.is_float()                ? 1
                     : operand.is_uint()                 ? 3
                                                         : 2;
    if (a.size() > 1) {
      Call("tf_rt_sim_product_of_registers",
           {word(kind), word(shape.columns), InMemory(a, builder), b,
            word(shape.b_tile_bytes), memory},
           builder);
    } else {
      Call("tf_rt_sim_product",
           {word(kind), word(shape.columns), a[0], word(shape.a_tile_bytes), b,
            word(shape.b_tile_bytes), memory},
           builder);
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i] = builder.CreateLoad(type, Element(type, memory, i, builder));
    }
  }

  void ProductCommit(llvm::IRBuilder<>& builder) override {
    Call("tf_rt_sim_product_commit", {}, builder);
  }
  void ProductWait(int groups, Registers&,
                   llvm::IRBuilder<>& builder) override {
    Call("tf_rt_sim_product_wait",
         {builder.getInt32(static_cast<uint32_t>(groups))}, builder);
  }

 private:
  // Adds so many arguments; those that are missing are `other`.
  static void Append(const std::vector<Value>& values, int count, Value other,
                     std::vector<Value>& args) {
    args.insert(args.end(), values.begin(), values.end());
    for (auto i = static_cast<int>(values.size()); i < count; ++i) {
      args.push_back(other);
    }
  }

  // The address of the registers' values.
  static Value InMemory(const Registers& registers,
                        llvm::IRBuilder<>& builder) {
    llvm::Type* type = registers[0]->getType();
    llvm::Function* function = builder.GetInsertBlock()->getParent();
    llvm::IRBuilder<> entry(&function->getEntryBlock(),
                            function->getEntryBlock().begin());
    Value memory =
        entry.CreateAlloca(llvm::ArrayType::get(type, registers.size()));
    for (size_t i = 0; i < registers.size(); ++i) {
      builder.CreateStore(registers[i], Element(type, memory, i, builder));
    }
    return memory;
  }

  static Value Element(llvm::Type* type, Value memory, size_t i,
                       llvm::IRBuilder<>& builder) {
    return builder.CreateConstGEP1_32(type, memory, static_cast<unsigned>(i));
  }

  // The thread is the first parameter of a kernel, and of these functions.
  void Call(const char* name, std::vector<Value> args,
            llvm::IRBuilder<>& builder) {
    args.insert(args.begin(), builder.GetInsertBlock()->getParent()->getArg(0));
    std::vector<llvm::Type*> types;
    for (const Value arg : args) types.push_back(arg->getType());
    builder.CreateCall(
        module_.getOrInsertFunction(
            name, llvm::FunctionType::get(builder.getVoidTy(), types, false)),
        args);
  }

  llvm::Module& module_;
};

}  // namespace

std::unique_ptr<WarpgroupOps> SimulatedWarpgroupOps(llvm::Module& module) {
  return std::make_unique<SimulatedWarpgroup>(module);
}

}  // namespace tilefarm::codegen
