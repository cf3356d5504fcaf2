#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/device_ops.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/ir/visitor.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tilefarm::codegen {
namespace {

constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;
constexpr uint64_t kBufferAlignment = 16;
constexpr uint64_t kSharedAlignment = 1024;  // what copy engines ask for
constexpr int kWarp = 32;
// What a block has in a multiprocessor beside its own shared memory.
constexpr int64_t kReservedShared = 1024;
// A CUtensorMap.
constexpr uint64_t kMapBytes = 128, kMapAlignment = 64;

std::set<const ir::BufferNode*> Written(const ir::Stmt& stmt) {
  std::set<const ir::BufferNode*> written;
  ir::PreOrder(stmt, [&](const ir::Stmt& s) {
    if (const auto* store = ir::As<ir::StoreNode>(s)) {
      written.insert(store->buffer.get());
    }
    return true;
  });
  return written;
}

class Nvptx : public DeviceOps {
 public:
  Nvptx(llvm::Module& module, const target::GpuLimits& limits)
      : module_(module), limits_(limits) {}

  Function Begin(const lower::Kernel& kernel, const std::string& name,
                 llvm::IRBuilder<>& builder) override {
    llvm::LLVMContext& context = module_.getContext();
    llvm::Type* pointer = llvm::PointerType::get(context, kGlobalSpace);
    Function out;
    std::vector<llvm::Type*> types(kernel.buffers.size(), pointer);
    types.insert(types.end(), kernel.maps.size(), builder.getPtrTy());
    out.function = llvm::Function::Create(
        llvm::FunctionType::get(builder.getVoidTy(), types, false),
        llvm::GlobalValue::ExternalLinkage, name, module_);
    out.function->setCallingConv(llvm::CallingConv::PTX_Kernel);
    const auto written = Written(kernel.body);
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      llvm::Argument* arg = out.function->getArg(static_cast<unsigned>(i));
      arg->setName(kernel.buffers[i]->name);
      arg->addAttr(llvm::Attribute::NoAlias);
      arg->addAttr(llvm::Attribute::NoUndef);
      arg->addAttr(llvm::Attribute::getWithAlignment(
          context, llvm::Align(kBufferAlignment)));
      if (!written.contains(kernel.buffers[i].get())) {
        arg->addAttr(llvm::Attribute::ReadOnly);
      }
      out.buffers.push_back(arg);
    }
    AddMaps(kernel, out, builder);
    Annotate(*out.function, "kernel", 1);
    static constexpr std::array kBounds = {"maxntidz", "maxntidy", "maxntidx"};
    std::array<int64_t, 3> threads = {1, 1, 1};
    for (const lower::KernelAxis& axis : kernel.axes) {
      if (!ir::IsThreadIdx(axis.axis)) continue;
      threads[2 - ir::DimensionOf(axis.axis)] = axis.extent;
    }
    for (size_t i = 0; i < threads.size(); ++i) {
      Annotate(*out.function, kBounds[i], threads[i]);
    }
    in_clusters_ = kernel.cluster_blocks > 1;
    if (in_clusters_) {
      Annotate(*out.function, "maxclusterrank", kernel.cluster_blocks);
    }
    // ptxas knows nothing of shared memory that is given at the launch, and
    // spills registers for the sake of a second block where none fits. Told of
    // more than one, it may use more registers than it needs, or spill: only
    // schedules do that.
    const int64_t fit =
        limits_.shared / (kernel.shared_bytes + kReservedShared);
    const int64_t resident =
        fit < 2 ? 1 : std::min(fit, kernel.resident_blocks);
    if (resident > 0) Annotate(*out.function, "minctasm", resident);
    builder.SetInsertPoint(
        llvm::BasicBlock::Create(context, "entry", out.function));
    // Memory is touched after what the kernel before this one has written to
    // it; then the next one may start, and does the same.
    if (OverlapsKernels(limits_)) {
      Assembly("griddepcontrol.wait;", "~{memory}", {}, builder);
      Assembly("griddepcontrol.launch_dependents;", "~{memory}", {}, builder);
    }
    if (kernel.shared_bytes > 0) out.shared = Shared(builder);
    return out;
  }

  llvm::Value* Index(const lower::KernelAxis& axis,
                     llvm::IRBuilder<>& builder) override {
    static constexpr std::array<llvm::Intrinsic::ID, ir::kThreadAxes> kReads = {
        llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z,
        llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y,
        llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x,
        llvm::Intrinsic::nvvm_read_ptx_sreg_cluster_ctarank,
        llvm::Intrinsic::nvvm_read_ptx_sreg_tid_z,
        llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y,
        llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x};
    if (axis.extent == 1) return builder.getInt32(0);
    const bool counts_clusters =
        in_clusters_ && axis.axis == ir::ThreadAxis::kBlockX;
    llvm::CallInst* index = builder.CreateIntrinsic(
        counts_clusters ? llvm::Intrinsic::nvvm_read_ptx_sreg_clusterid_x
                        : kReads[static_cast<size_t>(axis.axis)],
        {}, {});
    index->addRangeRetAttr(llvm::ConstantRange(
        llvm::APInt(32, 0),
        llvm::APInt(32, static_cast<uint64_t>(axis.extent))));
    return index;
  }

  llvm::Value* Exp(llvm::Value* x, llvm::IRBuilder<>& builder) override {
    return OfEach(x, ScalarExp, builder);
  }

  llvm::Value* Exp2(llvm::Value* x, llvm::IRBuilder<>& builder) override {
    return OfEach(x, PowerOf2, builder);
  }

  bool HasExtremes() const override { return limits_.nan_extremes; }
  bool LoadsWithoutBranches() const override { return true; }

  void Barrier(llvm::IRBuilder<>& builder) override {
    builder.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
  }

  // Lanes of a warp need not arrive together: one of them may have fetched.
  void ClusterBarrier(llvm::IRBuilder<>& builder) override {
    builder.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cluster_arrive, {},
                            {});
    builder.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cluster_wait, {}, {});
  }

  // A generic address.
  llvm::Value* ClusterAddress(llvm::Value* shared, llvm::Value* rank,
                              llvm::IRBuilder<>& builder) override {
    return builder.CreateIntrinsic(
        llvm::Intrinsic::nvvm_mapa, {},
        {builder.CreateAddrSpaceCast(shared, builder.getPtrTy()), rank});
  }

  // By assembly: with 32-bit addresses LLVM 19 does not select the intrinsics.
  bool CopyAsync(llvm::Value* to, llvm::Value* from, int bytes,
                 llvm::Value* condition, llvm::IRBuilder<>& builder) override {
    std::vector<llvm::Value*> operands = {
        builder.CreatePtrToInt(to, builder.getInt32Ty()),
        builder.CreatePtrToInt(from, builder.getInt64Ty())};
    // Of 16 bytes past the L1 cache, which what goes to shared memory needs
    // not.
    std::string code = absl::StrCat("cp.async.", bytes == 16 ? "cg" : "ca",
                                    ".shared.global [$0], [$1], ", bytes);
    if (condition != nullptr) {
      // The bytes that are read; the others are zero.
      code += ", $2";
      operands.push_back(builder.CreateSelect(
          condition, builder.getInt32(static_cast<uint32_t>(bytes)),
          builder.getInt32(0)));
    }
    Assembly(code + ";",
             condition == nullptr ? "r,l,~{memory}" : "r,l,r,~{memory}",
             operands, builder);
    return true;
  }

  void Commit(llvm::IRBuilder<>& builder) override {
    Assembly("cp.async.commit_group;", "~{memory}", {}, builder);
  }

  void Wait(int groups, llvm::IRBuilder<>& builder) override {
    Assembly(absl::StrCat("cp.async.wait_group ", groups, ";"), "~{memory}", {},
             builder);
  }

  llvm::Value* ShuffleXor(llvm::Value* value, int mask, int width,
                          llvm::IRBuilder<>& builder) override {
    llvm::Value* members = builder.getInt32(0xffffffff);
    if (width < kWarp) {
      llvm::Value* lane = builder.CreateIntrinsic(
          llvm::Intrinsic::nvvm_read_ptx_sreg_laneid, {}, {});
      members = builder.CreateShl(
          builder.getInt32((1u << width) - 1),
          builder.CreateAnd(
              lane, builder.getInt32(static_cast<uint32_t>(~(width - 1)))));
    }
    // The upper byte: how many bits of the lane number a group shares.
    const uint32_t clamp = (static_cast<uint32_t>(kWarp - width) << 8) | 0x1f;
    return builder.CreateIntrinsic(
        llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
        {members, value, builder.getInt32(static_cast<uint32_t>(mask)),
         builder.getInt32(clamp)});
  }

  llvm::Value* RoundTo16Bits(llvm::Value* value, bool to_bfloat,
                             llvm::IRBuilder<>& builder) override {
    if (!limits_.packs_floats) return nullptr;
    const auto* vector =
        llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    const unsigned count = vector == nullptr ? 1 : vector->getNumElements();
    llvm::Type* half = builder.getInt16Ty();
    llvm::Type* type =
        vector == nullptr ? half : llvm::FixedVectorType::get(half, count);
    llvm::Value* out = llvm::PoisonValue::get(type);
    const auto element = [&](unsigned i) -> llvm::Value* {
      if (i >= count) return llvm::ConstantFP::get(builder.getFloatTy(), 0);
      return vector == nullptr ? value : builder.CreateExtractElement(value, i);
    };
    for (unsigned i = 0; i < count; i += 2) {
      // The first operand goes to the upper half.
      llvm::CallInst* call =
          builder.CreateIntrinsic(to_bfloat ? llvm::Intrinsic::nvvm_ff2bf16x2_rn
                                            : llvm::Intrinsic::nvvm_ff2f16x2_rn,
                                  {}, {element(i + 1), element(i)});
      // LLVM 19 does not know it, and would not join the loads around it.
      call->addFnAttr(llvm::Attribute::WillReturn);
      llvm::Value* pair =
          builder.CreateBitCast(call, llvm::FixedVectorType::get(half, 2));
      for (unsigned k = i; k < std::min(i + 2, count); ++k) {
        llvm::Value* bits = builder.CreateExtractElement(pair, k - i);
        out = vector == nullptr ? bits
                                : builder.CreateInsertElement(out, bits, k);
      }
    }
    return out;
  }

  WarpgroupOps& warpgroups() override { return *warpgroups_; }

  llvm::Value* LoadMatrix(llvm::Value* row, int matrices, bool transposed,
                          llvm::IRBuilder<>& builder) override {
    Operands operands;
    operands.AddResults('r', matrices);
    const std::string registers = operands.List(0, matrices);
    const std::string text = absl::StrCat(
        "ldmatrix.sync.aligned.m8n8.x", matrices, transposed ? ".trans" : "",
        ".shared.b16 ", registers, ", [$", matrices, "];");
    operands.Add('r', builder.CreatePtrToInt(row, builder.getInt32Ty()));
    // It reads memory, in order with stores and barriers.
    return Assembly(text, operands, builder.getInt32Ty(), matrices,
                    /*memory=*/true, builder);
  }

  llvm::Value* WarpProduct(int unit, llvm::Value* a, llvm::Value* b,
                           llvm::Value* sums,
                           llvm::IRBuilder<>& builder) override {
    const ir::WarpProduct& product =
        ir::kWarpProducts[static_cast<size_t>(unit)];
    constexpr int kWholeTerms = 80;  // the first architecture with 16 halves
    if (product.a.bits != 16 || limits_.architecture >= kWholeTerms) {
      return OneProduct(product, product.shape, a, b, sums, builder);
    }
    // The first registers of either operand have the first 8 terms.
    for (int half = 0; half < 2; ++half) {
      const auto part = [&](llvm::Value* value) {
        const int lanes = Lanes(value) / 2;
        std::vector<int> own(static_cast<size_t>(lanes));
        std::iota(own.begin(), own.end(), half * lanes);
        return builder.CreateShuffleVector(value, own);
      };
      sums = OneProduct(product, "m16n8k8", part(a), part(b), sums, builder);
    }
    return sums;
  }

  llvm::Value* RoundTf32(llvm::Value* value,
                         llvm::IRBuilder<>& builder) override {
    Operands operands;
    operands.AddResults('r', 1);
    operands.Add('f', value);
    return builder.CreateBitCast(
        Assembly("cvt.rna.tf32.f32 $0, $1;", operands, builder.getInt32Ty(), 1,
                 /*memory=*/false, builder),
        builder.getFloatTy());
  }

 private:
  llvm::Value* OneProduct(const ir::WarpProduct& product,
                          std::string_view shape, llvm::Value* a,
                          llvm::Value* b, llvm::Value* sums,
                          llvm::IRBuilder<>& builder) {
    const char kind = sums->getType()->isFPOrFPVectorTy() ? 'f' : 'r';
    Operands operands;
    operands.AddResults(kind, 4);
    std::string text =
        absl::StrCat("mma.sync.aligned.", std::string(shape), ".row.col.",
                     std::string(product.types), " ", operands.List(0, 4));
    for (const auto& [value, letter] :
         {std::pair{a, 'r'}, std::pair{b, 'r'}, std::pair{sums, kind}}) {
      const int first = operands.count(), lanes = Lanes(value);
      for (int i = 0; i < lanes; ++i) {
        operands.Add(letter, builder.CreateExtractElement(
                                 value, static_cast<uint64_t>(i)));
      }
      absl::StrAppend(&text, ", ", operands.List(first, lanes));
    }
    text += ";";
    return Assembly(
        text, operands,
        llvm::cast<llvm::VectorType>(sums->getType())->getElementType(), 4,
        /*memory=*/false, builder);
  }

  // 2^n * 2^f with x * log2(e) = n + f and n a whole number, f from -0.5 to
  // 0.5: f is exact to about 2^-24 by a product in two parts, and ex2.approx to
  // 2^-22.5 (PTX ISA, "ex2"). n is limited to what has a power without
  // subnormals; beyond, f has the rest, and ex2 underflows or overflows. One
  // instruction of a quarter of the rate of others, where a conversion or a
  // second ex2 would be two.
  static llvm::Value* ScalarExp(llvm::Value* x, llvm::IRBuilder<>& builder) {
    constexpr float kLog2E = 0x1.715476p+0F;       // rounded
    constexpr float kLog2ERest = 0x1.4ae0bep-26F;  // what that leaves
    // A float with the last bit 1: sums with it are rounded to whole numbers,
    // which their lowest bits then have.
    constexpr float kWhole = 0x1.8p23F, kMost = 126;
    constexpr uint32_t kExponentBit = 23, kOne = 0x3f800000;
    llvm::Type* type = builder.getFloatTy();
    const auto constant = [&](float value) {
      return llvm::ConstantFP::get(type, value);
    };
    const auto fma = [&](llvm::Value* a, llvm::Value* b, llvm::Value* c) {
      return builder.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {a, b, c});
    };
    llvm::Value* whole = fma(x, constant(kLog2E), constant(kWhole));
    whole = builder.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, whole,
                                          constant(kWhole - kMost));
    whole = builder.CreateBinaryIntrinsic(llvm::Intrinsic::minnum, whole,
                                          constant(kWhole + kMost));
    llvm::Value* minus_n = builder.CreateFSub(constant(kWhole), whole);
    llvm::Value* f = fma(x, constant(kLog2E), minus_n);
    f = fma(x, constant(kLog2ERest), f);
    llvm::Value* scale = builder.CreateBitCast(
        builder.CreateAdd(builder.CreateShl(builder.CreateBitCast(
                                                whole, builder.getInt32Ty()),
                                            kExponentBit),
                          builder.getInt32(kOne)),
        type);
    return builder.CreateFMul(PowerOf2(f, builder), scale);
  }

  static llvm::Value* PowerOf2(llvm::Value* x, llvm::IRBuilder<>& builder) {
    return builder.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_ftz_f, {},
                                   {x});
  }

  // A function of the elements of a vector, or of a scalar.
  template <typename Function>
  static llvm::Value* OfEach(llvm::Value* x, Function function,
                             llvm::IRBuilder<>& builder) {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
    if (vector == nullptr) return function(x, builder);
    llvm::Value* out = llvm::PoisonValue::get(vector);
    for (unsigned i = 0; i < vector->getNumElements(); ++i) {
      out = builder.CreateInsertElement(
          out, function(builder.CreateExtractElement(x, i), builder), i);
    }
    return out;
  }

  // The operands of an assembly text, results first, and their constraints.
  class Operands {
   public:
    void AddResults(char letter, int count) {
      for (int i = 0; i < count; ++i)
        Constrain(absl::StrCat("=", Text(letter)));
      count_ += count;
    }
    void Add(char letter, llvm::Value* value) {
      Constrain(Text(letter));
      ++count_;
      values.push_back(value);
    }
    int count() const { return count_; }
    // "{$4, $5}"
    std::string List(int first, int count) const {
      std::string text = "{";
      for (int i = first; i < first + count; ++i) {
        absl::StrAppend(&text, i > first ? ", $" : "$", i);
      }
      return text + "}";
    }
    std::string constraints;
    std::vector<llvm::Value*> values;

   private:
    static std::string Text(char letter) { return std::string(1, letter); }
    void Constrain(const std::string& constraint) {
      absl::StrAppend(&constraints, constraints.empty() ? "" : ",", constraint);
    }
    int count_ = 0;
  };

  static int Lanes(llvm::Value* vector) {
    return static_cast<int>(
        llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
  }

  // The results as a vector, or the only one.
  static llvm::Value* Assembly(const std::string& text, Operands& operands,
                               llvm::Type* element, int results, bool memory,
                               llvm::IRBuilder<>& builder) {
    std::vector<llvm::Type*> types;
    for (llvm::Value* value : operands.values)
      types.push_back(value->getType());
    llvm::Type* result =
        results == 1
            ? element
            : llvm::StructType::get(builder.getContext(),
                                    std::vector<llvm::Type*>(
                                        static_cast<size_t>(results), element));
    if (memory) operands.constraints += ",~{memory}";
    llvm::CallInst* call = builder.CreateCall(
        llvm::InlineAsm::get(llvm::FunctionType::get(result, types, false),
                             text, operands.constraints,
                             /*hasSideEffects=*/memory),
        operands.values);
    call->addFnAttr(llvm::Attribute::Convergent);
    call->setDoesNotThrow();
    if (!memory) call->setDoesNotAccessMemory();
    if (results == 1) return call;
    llvm::Value* vector = llvm::PoisonValue::get(
        llvm::FixedVectorType::get(element, static_cast<unsigned>(results)));
    for (unsigned i = 0; i < static_cast<unsigned>(results); ++i) {
      vector = builder.CreateInsertElement(
          vector, builder.CreateExtractValue(call, i), uint64_t{i});
    }
    return vector;
  }

  // Tensor maps are passed by value, and read where they are passed.
  void AddMaps(const lower::Kernel& kernel, Function& out,
               llvm::IRBuilder<>& builder) {
    if (kernel.maps.empty()) return;
    llvm::LLVMContext& context = module_.getContext();
    std::vector<llvm::Metadata*> numbers;
    for (size_t i = 0; i < kernel.maps.size(); ++i) {
      const auto number = static_cast<unsigned>(kernel.buffers.size() + i);
      llvm::Argument* arg = out.function->getArg(number);
      arg->setName(kernel.maps[i].buffer->name + "_map");
      arg->addAttr(llvm::Attribute::getWithByValType(
          context, llvm::ArrayType::get(builder.getInt8Ty(), kMapBytes)));
      arg->addAttr(llvm::Attribute::getWithAlignment(
          context, llvm::Align(kMapAlignment)));
      numbers.push_back(llvm::ConstantAsMetadata::get(
          builder.getInt32(number + 1)));  // counted from 1
      out.maps.push_back(arg);
    }
    module_.getOrInsertNamedMetadata("nvvm.annotations")
        ->addOperand(llvm::MDNode::get(
            context, {llvm::ValueAsMetadata::get(out.function),
                      llvm::MDString::get(context, "grid_constant"),
                      llvm::MDNode::get(context, numbers)}));
  }

  static void Assembly(const std::string& text, const char* constraints,
                       std::vector<llvm::Value*> args,
                       llvm::IRBuilder<>& builder) {
    std::vector<llvm::Type*> types;
    for (llvm::Value* arg : args) types.push_back(arg->getType());
    llvm::CallInst* call = builder.CreateCall(
        llvm::InlineAsm::get(
            llvm::FunctionType::get(builder.getVoidTy(), types, false), text,
            constraints, /*hasSideEffects=*/true),
        args);
    call->addFnAttr(llvm::Attribute::Convergent);
  }

  llvm::Value* Shared(llvm::IRBuilder<>& builder) {
    static constexpr char kName[] = "tilefarm_shared";
    if (llvm::GlobalVariable* known = module_.getNamedGlobal(kName)) {
      return known;
    }
    auto* memory = new llvm::GlobalVariable(
        module_, llvm::ArrayType::get(builder.getInt8Ty(), 0),
        /*isConstant=*/false, llvm::GlobalValue::ExternalLinkage, nullptr,
        kName, nullptr, llvm::GlobalValue::NotThreadLocal, kSharedSpace);
    memory->setAlignment(llvm::Align(kSharedAlignment));
    return memory;
  }

  void Annotate(llvm::Function& function, const char* key, int64_t value) {
    llvm::LLVMContext& context = module_.getContext();
    module_.getOrInsertNamedMetadata("nvvm.annotations")
        ->addOperand(llvm::MDNode::get(
            context, {llvm::ValueAsMetadata::get(&function),
                      llvm::MDString::get(context, key),
                      llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(
                          llvm::Type::getInt32Ty(context),
                          static_cast<uint64_t>(value)))}));
  }

  llvm::Module& module_;
  const target::GpuLimits limits_;
  bool in_clusters_ = false;  // the blocks of the kernel
  const std::unique_ptr<WarpgroupOps> warpgroups_ = NvptxWarpgroupOps();
};

}  // namespace

std::unique_ptr<DeviceOps> NvptxOps(llvm::Module& module,
                                    const target::GpuLimits& limits) {
  return std::make_unique<Nvptx>(module, limits);
}

}  // namespace tilefarm::codegen
