#include "compiler/codegen/host_stub.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compiler/codegen/optimize.h"
#include "compiler/codegen/target_machine.h"
#include "compiler/runtime/gpu.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace tilefarm::codegen {
namespace {

constexpr std::string_view kElfMagic("\177ELF", 4);

absl::Status CheckKernel(const DeviceFunction& function,
                         const DeviceKernel& kernel,
                         const target::Target& target) {
  const target::GpuLimits& limits = *target.gpu;
  const auto wrong = [&](const std::string& what) {
    return absl::InternalError(absl::StrCat(
        "the kernel '", kernel.name, "' of '", function.symbol, "': ", what));
  };
  int64_t threads = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    threads *= kernel.block[axis];
    // Of y and z; x has 2^31 - 1.
    const uint32_t most = axis == 0 ? 0x7fffffffu : 0xffffu;
    if (kernel.grid[axis] < 1 || kernel.grid[axis] > most) {
      return wrong(absl::StrCat("a grid extent of ", kernel.grid[axis]));
    }
    if (kernel.block[axis] < 1 || threads > limits.block_threads) {
      return wrong(absl::StrCat("more threads than ", limits.block_threads,
                                ", or none"));
    }
  }
  if (kernel.shared_bytes > limits.block_shared) {
    return wrong(absl::StrCat(kernel.shared_bytes,
                              " bytes of shared memory; the target has ",
                              limits.block_shared));
  }
  const size_t buffers =
      function.parameter_bytes.size() + function.workspace_bytes.size();
  for (const int argument : kernel.arguments) {
    if (argument < 0 || static_cast<size_t>(argument) >= buffers) {
      return wrong(absl::StrCat("an argument with number ", argument, " of ",
                                buffers, " buffers"));
    }
  }
  for (const DeviceTensorMap& map : kernel.maps) {
    if (map.buffer < 0 || static_cast<size_t>(map.buffer) >= buffers) {
      return wrong("a tensor map of a buffer that is none");
    }
  }
  if (target.is_opencl() && !kernel.maps.empty()) {
    return wrong("tensor maps, which OpenCL does not have");
  }
  if (kernel.maps.size() > TF_GPU_MAX_MAPS) {
    return wrong(absl::StrCat(kernel.maps.size(), " tensor maps"));
  }
  if (kernel.arguments.size() > TF_GPU_MAX_BUFFERS) {
    return wrong(absl::StrCat(kernel.arguments.size(), " arguments"));
  }
  return absl::OkStatus();
}

absl::Status Check(std::span<const DeviceFunction> functions,
                   std::string_view image, const target::Target& target) {
  if (!target.is_gpu()) {
    return absl::InternalError(absl::StrCat(target.Key(), " is no GPU"));
  }
  if (image.empty() != target.is_simulated()) {
    return absl::InternalError(
        "an image is for GPUs, and not for simulated ones");
  }
  std::set<std::string> exported;
  for (const DeviceFunction& function : functions) {
    for (const std::string& symbol : DeviceSymbols(function.symbol)) {
      if (!exported.insert(symbol).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("two functions have the symbol '", symbol, "'"));
      }
    }
  }
  for (const DeviceFunction& function : functions) {
    if (function.parameter_access.size() != function.parameter_bytes.size() ||
        std::any_of(function.parameter_access.begin(),
                    function.parameter_access.end(),
                    [](uint8_t access) { return access > 3; })) {
      return absl::InternalError(absl::StrCat(
          "wrong access of the parameters of '", function.symbol, "'"));
    }
    const size_t buffers =
        function.parameter_bytes.size() + function.workspace_bytes.size();
    if (buffers > TF_GPU_MAX_BUFFERS) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", function.symbol, "' has ", buffers,
                       " parameters and intermediate buffers; at most ",
                       static_cast<int>(TF_GPU_MAX_BUFFERS), " are possible"));
    }
    for (const DeviceKernel& kernel : function.kernels) {
      TF_RETURN_IF_ERROR(CheckKernel(function, kernel, target));
      if (target.is_simulated() && exported.contains(kernel.name)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "a function and a kernel have the symbol '", kernel.name, "'"));
      }
    }
  }
  return absl::OkStatus();
}

// What the names of the runtime's functions for the target begin with.
std::string RuntimePrefix(const target::Target& target) {
  if (target.is_simulated()) return "tf_rt_sim";
  return target.is_opencl() ? "tf_rt_opencl" : "tf_rt_cuda";
}

class StubEmitter {
 public:
  StubEmitter(llvm::Module& module, const Options& options)
      : module_(module),
        hidden_(options.hidden),
        simulated_(options.target.is_simulated()),
        runtime_(RuntimePrefix(options.target)),
        b_(module.getContext()),
        ptr_(b_.getPtrTy()),
        i32_(b_.getInt32Ty()) {}

  void Emit(std::span<const DeviceFunction> functions, std::string_view image) {
    llvm::Constant* state = State();
    llvm::Constant* loaded = simulated_ ? Null() : Image(image);
    for (const DeviceFunction& function : functions) {
      llvm::Constant* description = Describe(function, state, loaded);
      EmitRun(function, description, /*waits=*/true);
      EmitRun(function, description, /*waits=*/false);
      EmitError(function);
    }
    llvm::FunctionCallee shutdown = Hidden(
        runtime_ + "_shutdown", llvm::FunctionType::get(b_.getVoidTy(), false));
    llvm::appendToGlobalDtors(
        module_, llvm::cast<llvm::Function>(shutdown.getCallee()), 65535);
  }

 private:
  llvm::Constant* Null() { return llvm::ConstantPointerNull::get(ptr_); }

  llvm::GlobalVariable* Global(llvm::Constant* value, const char* name) {
    return new llvm::GlobalVariable(
        module_, value->getType(),
        /*isConstant=*/true, llvm::GlobalValue::InternalLinkage, value, name);
  }

  llvm::FunctionCallee Hidden(const std::string& name,
                              llvm::FunctionType* type) {
    llvm::FunctionCallee callee = module_.getOrInsertFunction(name, type);
    auto* function = llvm::cast<llvm::Function>(callee.getCallee());
    function->setVisibility(llvm::GlobalValue::HiddenVisibility);
    function->setDoesNotThrow();
    return callee;
  }

  // The integers as an array; null if there are none.
  template <typename To, typename From>
  llvm::Constant* Numbers(const std::vector<From>& from, const char* name) {
    if (from.empty()) return Null();
    const std::vector<To> numbers(from.begin(), from.end());
    return Global(llvm::ConstantDataArray::get(module_.getContext(), numbers),
                  name);
  }

  // struct tf_gpu_state.
  llvm::Constant* State() {
    llvm::ArrayType* type =
        llvm::ArrayType::get(b_.getInt8Ty(), sizeof(tf_gpu_state));
    auto* state = new llvm::GlobalVariable(
        module_, type, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
        llvm::ConstantAggregateZero::get(type), "state");
    state->setAlignment(llvm::Align(alignof(tf_gpu_state)));
    return state;
  }

  // struct tf_gpu_image.
  llvm::Constant* Image(std::string_view image) {
    const bool is_text = !image.starts_with(kElfMagic);
    llvm::GlobalVariable* bytes =
        Global(llvm::ConstantDataArray::getString(
                   module_.getContext(),
                   llvm::StringRef(image.data(), image.size()), is_text),
               "image");
    bytes->setAlignment(llvm::Align(64));
    return Global(llvm::ConstantStruct::getAnon(
                      {bytes, b_.getInt64(image.size() + (is_text ? 1 : 0))}),
                  "image_description");
  }

  llvm::Constant* Extents(const std::array<uint32_t, 3>& extents) {
    return llvm::ConstantDataArray::get(module_.getContext(), extents);
  }

  // struct tf_gpu_kernel.
  llvm::Constant* Describe(const DeviceKernel& kernel) {
    llvm::Constant* simulated = Null();
    if (simulated_) {
      simulated = llvm::cast<llvm::Constant>(
          Hidden(kernel.name,
                 llvm::FunctionType::get(b_.getVoidTy(), {ptr_, ptr_}, false))
              .getCallee());
    }
    return llvm::ConstantStruct::getAnon(
        {Global(llvm::ConstantDataArray::getString(module_.getContext(),
                                                   kernel.name),
                "kernel_name"),
         simulated, Extents(kernel.grid), Extents(kernel.block),
         b_.getInt32(kernel.shared_bytes),
         b_.getInt32(static_cast<uint32_t>(kernel.arguments.size())),
         Numbers<uint32_t>(kernel.arguments, "arguments"),
         b_.getInt32(static_cast<uint32_t>(kernel.maps.size())),
         Maps(kernel.maps), b_.getInt32(kernel.overlaps ? 1 : 0),
         b_.getInt32(kernel.cluster)});
  }

  // An array of struct tf_gpu_tensor_map; null if there are none.
  llvm::Constant* Maps(const std::vector<DeviceTensorMap>& maps) {
    std::vector<llvm::Constant*> list;
    for (const DeviceTensorMap& map : maps) {
      const auto word = [&](int value) {
        return b_.getInt32(static_cast<uint32_t>(value));
      };
      const auto numbers = [&](const auto& values) {
        return llvm::ConstantDataArray::get(module_.getContext(), values);
      };
      list.push_back(llvm::ConstantStruct::getAnon(
          {word(map.buffer), word(map.element_type), word(map.element_bytes),
           word(map.dims), numbers(map.sizes), numbers(map.box),
           word(map.spatial), numbers(map.lower), numbers(map.upper),
           numbers(map.steps)}));
    }
    if (list.empty()) return Null();
    CheckSize(list[0]->getType(), sizeof(tf_gpu_tensor_map));
    return Global(
        llvm::ConstantArray::get(
            llvm::ArrayType::get(list[0]->getType(), list.size()), list),
        "maps");
  }

  // struct tf_gpu_function.
  llvm::Constant* Describe(const DeviceFunction& function,
                           llvm::Constant* state, llvm::Constant* image) {
    llvm::Constant* kernels = Null();
    std::vector<llvm::Constant*> list;
    for (const DeviceKernel& kernel : function.kernels) {
      list.push_back(Describe(kernel));
    }
    if (!list.empty()) {
      CheckSize(list[0]->getType(), sizeof(tf_gpu_kernel));
      kernels = Global(
          llvm::ConstantArray::get(
              llvm::ArrayType::get(list[0]->getType(), list.size()), list),
          "kernels");
    }
    const auto count = [&](size_t number) {
      return b_.getInt32(static_cast<uint32_t>(number));
    };
    llvm::Constant* description = llvm::ConstantStruct::getAnon(
        {state, image, count(function.parameter_bytes.size()),
         Numbers<uint64_t>(function.parameter_bytes, "parameter_bytes"),
         Numbers<uint8_t>(function.parameter_access, "parameter_access"),
         count(function.workspace_bytes.size()),
         Numbers<uint64_t>(function.workspace_bytes, "workspace_bytes"),
         count(list.size()), kernels});
    CheckSize(description->getType(), sizeof(tf_gpu_function));
    return Global(description, "function");
  }

  // The generated structs are as the runtime's C declares them.
  void CheckSize(llvm::Type* type, size_t bytes) {
    TF_CHECK(module_.getDataLayout().getTypeAllocSize(type) == bytes);
  }

  llvm::Function* Define(const std::string& name, llvm::Type* result,
                         const std::vector<llvm::Type*>& params) {
    llvm::Function* function = llvm::Function::Create(
        llvm::FunctionType::get(result, params, false),
        llvm::GlobalValue::ExternalLinkage, name, module_);
    if (hidden_) function->setVisibility(llvm::GlobalValue::HiddenVisibility);
    function->setDoesNotThrow();
    b_.SetInsertPoint(
        llvm::BasicBlock::Create(module_.getContext(), "entry", function));
    return function;
  }

  // SYMBOL, or SYMBOL_on, which has the stream before the parameters.
  void EmitRun(const DeviceFunction& function, llvm::Constant* description,
               bool waits) {
    const unsigned first = waits ? 0 : 1;
    const auto count = static_cast<unsigned>(function.parameter_bytes.size());
    llvm::Function* run = Define(DeviceSymbols(function.symbol)[first], i32_,
                                 std::vector<llvm::Type*>(count + first, ptr_));
    llvm::Value* parameters =
        b_.CreateAlloca(ptr_, b_.getInt32(std::max(count, 1u)));
    for (unsigned i = 0; i < count; ++i) {
      b_.CreateStore(run->getArg(first + i),
                     b_.CreateConstInBoundsGEP1_32(ptr_, parameters, i));
    }
    llvm::Value* stream = waits ? static_cast<llvm::Value*>(Null())
                                : static_cast<llvm::Value*>(run->getArg(0));
    b_.CreateRet(b_.CreateCall(
        Hidden(runtime_ + "_run",
               llvm::FunctionType::get(i32_, {ptr_, ptr_, ptr_, i32_}, false)),
        {description, parameters, stream, b_.getInt32(waits)}));
  }

  void EmitError(const DeviceFunction& function) {
    Define(DeviceSymbols(function.symbol)[2], ptr_, {});
    b_.CreateRet(b_.CreateCall(
        Hidden("tf_rt_gpu_error", llvm::FunctionType::get(ptr_, false))));
  }

  llvm::Module& module_;
  const bool hidden_;
  const bool simulated_;
  const std::string runtime_;
  llvm::IRBuilder<> b_;
  llvm::PointerType* ptr_;
  llvm::Type* i32_;
};

}  // namespace

std::vector<std::string> DeviceSymbols(const std::string& symbol) {
  return {symbol, symbol + "_on", symbol + "_error"};
}

absl::StatusOr<std::string> EmitHostStub(
    std::span<const DeviceFunction> functions, std::string_view image,
    const Options& options) {
  TF_RETURN_IF_ERROR(Check(functions, image, options.target));
  const target::Target host = options.target.HostPart();
  TF_ASSIGN_OR_RETURN(llvm::TargetMachine * machine, GetTargetMachine(host));
  llvm::LLVMContext context;
  llvm::Module module("tilefarm_host_stub", context);
  module.setTargetTriple(host.triple);
  module.setDataLayout(machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
  StubEmitter(module, options).Emit(functions, image);
  TF_RETURN_IF_ERROR(VerifyModule(module, "the host's stub"));
  SetTargetAttributes(module, host);
  return EmitCode(module, *machine, llvm::CodeGenFileType::ObjectFile);
}

}  // namespace tilefarm::codegen
