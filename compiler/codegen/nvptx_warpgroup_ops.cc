#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/warpgroup_ops.h"
#include "compiler/ir/tensor_box.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tilefarm::codegen {
namespace {

// Nobody waits so long but in a kernel that would wait forever: an error
// instead of a device that hangs. Longer than what a shared device may pause a
// kernel.
constexpr char kLongestWaitNanoseconds[] = "20000000000";

class NvptxWarpgroup : public WarpgroupOps {
 public:
  // Lets ptxas know that branches on the value do not diverge.
  Value Uniform(Value value, llvm::IRBuilder<>& builder) override {
    llvm::Type* word = builder.getInt32Ty();
    llvm::Value* first = builder.CreateIntrinsic(
        llvm::Intrinsic::nvvm_shfl_sync_idx_i32, {},
        {builder.getInt32(0xffffffff), builder.CreateTrunc(value, word),
         builder.getInt32(0), builder.getInt32(31)});
    return builder.CreateZExt(first, value->getType(), "", /*IsNonNeg=*/true);
  }

  void BarrierInit(Value barrier, uint32_t arrivals,
                   llvm::IRBuilder<>& builder) override {
    Effect(
        "mbarrier.init.shared::cta.b64 [$0], $1; "
        "fence.mbarrier_init.release.cluster; "
        "fence.proxy.async.shared::cta;",
        "r,r", {Word(barrier, builder), builder.getInt32(arrivals)}, builder);
  }

  void BarrierExpect(Value barrier, uint32_t bytes,
                     llvm::IRBuilder<>& builder) override {
    Effect("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r",
           {Word(barrier, builder), builder.getInt32(bytes)}, builder);
  }

  void BarrierArrive(Value barrier, Value condition,
                     llvm::IRBuilder<>& builder) override {
    Effect(
        "{ .reg .pred p; setp.ne.u32 p, $1, 0; "
        "@p mbarrier.arrive.shared::cta.b64 _, [$0]; }",
        "r,r",
        {Word(barrier, builder),
         builder.CreateZExt(condition, builder.getInt32Ty())},
        builder);
  }

  void BarrierWait(Value barrier, Value parity,
                   llvm::IRBuilder<>& builder) override {
    static constexpr char kTry[] =
        "mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; ";
    Effect(absl::StrCat("{ .reg .pred p; .reg .b64 s, t; ", kTry,
                        "@p bra DONE; mov.u64 s, %globaltimer; TRY: ", kTry,
                        "@p bra DONE; mov.u64 t, %globaltimer; "
                        "sub.u64 t, t, s; setp.gt.u64 p, t, ",
                        kLongestWaitNanoseconds, "; @p trap; bra TRY; DONE: }"),
           "r,r", {Word(barrier, builder), parity}, builder);
  }

  void CopyBox(Value to, Value map, const std::vector<Value>& origin,
               Value barrier, llvm::IRBuilder<>& builder) override {
    Copy(to, map, origin, {}, barrier, builder);
  }
  void CopyWindows(Value to, Value map, const std::vector<Value>& origin,
                   const std::vector<Value>& offsets, Value barrier,
                   llvm::IRBuilder<>& builder) override {
    Copy(to, map, origin, offsets, barrier, builder);
  }

  void BoxFence(llvm::IRBuilder<>& builder) override {
    Effect("fence.proxy.async.shared::cta;", "", {}, builder);
  }

  void StoreBox(Value from, Value map, const std::vector<Value>& origin,
                llvm::IRBuilder<>& builder) override {
    std::string constraints = "l";
    std::vector<Value> args = {map};
    const std::string place = Append(origin, ",r", args, constraints);
    const std::string text =
        absl::StrCat("cp.async.bulk.tensor.", origin.size(),
                     "d.global.shared::cta.bulk_group [$0, {", place, "}], [$",
                     args.size(), "];");
    args.push_back(Word(from, builder));
    Effect(text, constraints + ",r", args, builder);
  }

  void BoxStoreCommit(llvm::IRBuilder<>& builder) override {
    Effect("cp.async.bulk.commit_group;", "", {}, builder);
  }

  void BoxStoreWait(int groups, llvm::IRBuilder<>& builder) override {
    Effect(absl::StrCat("cp.async.bulk.wait_group", groups > 0 ? ".read " : " ",
                        groups, ";"),
           "", {}, builder);
  }

  // Barrier 0 is that of the block.
  void WarpgroupBarrier(Value number, llvm::IRBuilder<>& builder) override {
    Effect("bar.sync $0, $1;", "r,r",
           {builder.CreateAdd(number, builder.getInt32(1)),
            builder.getInt32(ir::kWarpgroup)},
           builder);
  }

  // Without an instruction: what computes them is not moved across the fence.
  void Fragment(Registers& registers, llvm::IRBuilder<>& builder) override {
    Tied("", "", {}, registers, builder);
  }

  void ProductFence(Registers& sums, llvm::IRBuilder<>& builder) override {
    Tied("wgmma.fence.sync.aligned;", "", {}, sums, builder);
  }

  void Product(const Shape& shape, const Registers& a, Value b, Registers& sums,
               llvm::IRBuilder<>& builder) override {
    const ir::DataType operand = shape.unit->operand;
    const bool is_float = operand.is_float();
    const std::string type = operand == ir::DataType::BFloat16() ? "bf16"
                             : is_float                          ? "f16"
                             : operand.is_uint()                 ? "u8"
                                                                 : "s8";
    std::string registers;
    for (size_t i = 0; i < sums.size(); ++i) {
      absl::StrAppend(&registers, i == 0 ? "$" : ",$", i);
    }
    const bool in_registers = a.size() > 1;
    // Adds to the sums; neither operand is negated; which rows run across.
    std::string flags = shape.adds ? "1" : "0";
    if (is_float) {
      flags += ", 1, 1";
      if (!in_registers) {
        absl::StrAppend(&flags, ", ", shape.a_tile_bytes > 0 ? 1 : 0);
      }
      absl::StrAppend(&flags, ", ", shape.b_tile_bytes > 0 ? 1 : 0);
    }
    // Operands come after the sums and the registers that are tied to them.
    const size_t first = 2 * sums.size();
    std::string first_operand = absl::StrCat("$", first), constraints = "l,l,";
    Registers operands = {Descriptor(b, shape.b_tile_bytes, builder)};
    if (in_registers) {
      first_operand = absl::StrCat("{$", first, ", $", first + 1, ", $",
                                   first + 2, ", $", first + 3, "}");
      constraints = "r,r,r,r,l,";
      operands.insert(operands.begin(), a.begin(), a.end());
    } else {
      operands.insert(operands.begin(),
                      Descriptor(a[0], shape.a_tile_bytes, builder));
    }
    Tied(absl::StrCat("wgmma.mma_async.sync.aligned.m64n", shape.columns, "k",
                      shape.unit->depth, is_float ? ".f32." : ".s32.", type,
                      ".", type, " {", registers, "}, ", first_operand, ", $",
                      first + operands.size() - 1, ", ", flags, ";"),
         constraints, operands, sums, builder);
  }

  void ProductCommit(llvm::IRBuilder<>& builder) override {
    Effect("wgmma.commit_group.sync.aligned;", "", {}, builder);
  }

  void ProductWait(int groups, Registers& sums,
                   llvm::IRBuilder<>& builder) override {
    Tied(absl::StrCat("wgmma.wait_group.sync.aligned ", groups, ";"), "", {},
         sums, builder);
  }

 private:
  // The arguments' names; they become arguments.
  static std::string Append(const std::vector<Value>& values,
                            const char* constraint, std::vector<Value>& args,
                            std::string& constraints) {
    std::string names;
    for (const Value value : values) {
      absl::StrAppend(&names, names.empty() ? "$" : ", $", args.size());
      constraints += constraint;
      args.push_back(value);
    }
    return names;
  }

  // Of a box, or of windows if there are offsets.
  void Copy(Value to, Value map, const std::vector<Value>& origin,
            const std::vector<Value>& offsets, Value barrier,
            llvm::IRBuilder<>& builder) {
    std::string constraints = "r,l";
    std::vector<Value> args = {Word(to, builder), map};
    const std::string place = Append(origin, ",r", args, constraints);
    const size_t barrier_number = args.size();
    constraints += ",r";
    args.push_back(Word(barrier, builder));
    const std::string shift = Append(offsets, ",h", args, constraints);
    Effect(absl::StrCat(
               "cp.async.bulk.tensor.", origin.size(),
               "d.shared::cluster.global", offsets.empty() ? "" : ".im2col",
               ".mbarrier::complete_tx::bytes [$0], [$1, {", place, "}], [$",
               barrier_number, "]",
               offsets.empty() ? "" : absl::StrCat(", {", shift, "}"), ";"),
           constraints, args, builder);
  }

  // Shared memory has 32-bit addresses.
  static Value Word(Value address, llvm::IRBuilder<>& builder) {
    return builder.CreatePtrToInt(address, builder.getInt32Ty());
  }

  // The matrix descriptor (PTX ISA 8.5, "Matrix-Descriptor Format"), with all
  // numbers in units of 16 bytes: address, from bit 16 the distance of tiles
  // (unused if rows run along depth), from bit 32 that of groups of 8 rows, and
  // in bit 62 the swizzle of 128 bytes.
  static Value Descriptor(Value address, int64_t tile_bytes,
                          llvm::IRBuilder<>& builder) {
    constexpr int64_t kUnit = 16, kRows = 8;
    const uint64_t distance = tile_bytes > 0 ? tile_bytes / kUnit : 1;
    const uint64_t base = uint64_t{1} << 62 |
                          uint64_t{kRows * ir::kBoxRowBytes / kUnit} << 32 |
                          distance << 16;
    // What the address has beyond a variable one is added at the end: products
    // of several steps then share the rest.
    const llvm::DataLayout& layout =
        builder.GetInsertBlock()->getModule()->getDataLayout();
    llvm::APInt offset(layout.getIndexTypeSizeInBits(address->getType()), 0);
    Value first = address->stripAndAccumulateConstantOffsets(
        layout, offset, /*AllowNonInbounds=*/true);
    if (offset.isNegative() || offset.getZExtValue() % kUnit != 0) {
      first = address;
      offset = 0;
    }
    Value low = builder.CreateLShr(
        builder.CreateAnd(Word(first, builder), builder.getInt32(0x3ffff)), 4);
    low = builder.CreateOr(low, builder.getInt32(static_cast<uint32_t>(base)));
    // Addresses end below 2^18: there is no carry.
    low = builder.CreateAdd(
        low,
        builder.getInt32(static_cast<uint32_t>(offset.getZExtValue() / kUnit)));
    return builder.CreateOr(builder.CreateZExt(low, builder.getInt64Ty()),
                            builder.getInt64(base >> 32 << 32));
  }

  static void Effect(const std::string& text, const std::string& constraints,
                     const std::vector<Value>& args,
                     llvm::IRBuilder<>& builder) {
    Call(builder.getVoidTy(), text,
         constraints.empty() ? "~{memory}" : constraints + ",~{memory}", args,
         builder);
  }

  // Passes the registers through, so that no access moves across it.
  static void Tied(const std::string& text, const std::string& more_constraints,
                   const std::vector<Value>& more, Registers& registers,
                   llvm::IRBuilder<>& builder) {
    std::string constraints;
    std::vector<llvm::Type*> types;
    for (const Value value : registers) {
      types.push_back(value->getType());
      constraints += value->getType()->isFloatTy() ? "=f," : "=r,";
    }
    for (size_t i = 0; i < registers.size(); ++i) {
      absl::StrAppend(&constraints, i, ",");
    }
    std::vector<Value> args = registers;
    args.insert(args.end(), more.begin(), more.end());
    Value result =
        Call(llvm::StructType::get(builder.getContext(), types), text,
             absl::StrCat(constraints, more_constraints, "~{memory}"), args,
             builder);
    for (size_t i = 0; i < registers.size(); ++i) {
      registers[i] =
          builder.CreateExtractValue(result, static_cast<unsigned>(i));
    }
  }

  static Value Call(llvm::Type* type, const std::string& text,
                    const std::string& constraints,
                    const std::vector<Value>& args,
                    llvm::IRBuilder<>& builder) {
    std::vector<llvm::Type*> types;
    for (const Value arg : args) types.push_back(arg->getType());
    llvm::CallInst* call = builder.CreateCall(
        llvm::InlineAsm::get(llvm::FunctionType::get(type, types, false), text,
                             constraints, /*hasSideEffects=*/true),
        args);
    call->addFnAttr(llvm::Attribute::Convergent);
    call->setDoesNotThrow();
    return call;
  }
};

}  // namespace

std::unique_ptr<WarpgroupOps> NvptxWarpgroupOps() {
  return std::make_unique<NvptxWarpgroup>();
}

}  // namespace tilefarm::codegen
