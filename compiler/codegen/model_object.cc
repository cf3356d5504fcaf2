#include "compiler/codegen/model_object.h"

#include <algorithm>
#include <memory>

#include "base/status_macros.h"
#include "compiler/codegen/device_layout.h"
#include "compiler/codegen/optimize.h"
#include "compiler/codegen/target_machine.h"
#include "compiler/runtime/gpu.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace tilefarm::codegen {
namespace {

class ModelEmitter {
 public:
  ModelEmitter(llvm::Module& module, const ModelDescription& model,
               const target::Target& target)
      : module_(module),
        model_(model),
        target_(target),
        b_(module.getContext()),
        ptr_(b_.getPtrTy()),
        i32_(b_.getInt32Ty()) {}

  void Emit() {
    llvm::Constant* inputs = EmitTensors("_inputs", "_input", model_.inputs);
    llvm::Constant* outputs =
        EmitTensors("_outputs", "_output", model_.outputs);
    llvm::Constant* descriptor = Descriptor(inputs, outputs);
    EmitForward("_create", "tf_rt_model_create", i32_, {ptr_, ptr_},
                descriptor);
    EmitForward("_run", "tf_rt_model_run", i32_, {ptr_, ptr_, ptr_}, nullptr);
    if (IsOpen()) {
      EmitForward("_run_shaped", "tf_rt_model_run_shaped", i32_,
                  {ptr_, ptr_, ptr_, ptr_, ptr_}, nullptr);
    }
    if (OnDevice()) {
      EmitForward("_create_on", "tf_rt_model_create_on", i32_,
                  {ptr_, ptr_, ptr_}, descriptor);
      EmitForward("_run_on", "tf_rt_model_run_on", i32_,
                  {ptr_, ptr_, ptr_, ptr_}, nullptr);
    }
    EmitForward("_destroy", "tf_rt_model_destroy", b_.getVoidTy(), {ptr_},
                nullptr);
    EmitForward("_error", "tf_rt_model_error", ptr_, {}, nullptr);
    if (llvm::Triple(module_.getTargetTriple()).isWasm()) return;
    AtUnload("tf_rt_model_shutdown");
    // The host's part of the kernels does this, too, if there are any.
    if (OnDevice() && !HasKernels()) AtUnload(Driver() + "shutdown");
  }

 private:
  bool IsOpen() const { return !model_.sizes.empty(); }
  // Whether the model's values are in the memory of a GPU.
  bool OnDevice() const { return target_.is_gpu() && !target_.is_simulated(); }
  bool HasKernels() const {
    return std::ranges::any_of(model_.variants, [](const auto& variant) {
      return std::ranges::any_of(variant.steps, [](const ModelStep& step) {
        return !step.kernel.empty();
      });
    });
  }
  // What the names of the runtime's functions for the device begin with.
  std::string Driver() const {
    return target_.is_opencl() ? "tf_rt_opencl_" : "tf_rt_cuda_";
  }

  void AtUnload(const std::string& name) {
    llvm::FunctionCallee shutdown =
        Hidden(name, llvm::FunctionType::get(b_.getVoidTy(), false));
    llvm::appendToGlobalDtors(
        module_, llvm::cast<llvm::Function>(shutdown.getCallee()), 65535);
  }

  llvm::Function* Define(const std::string& suffix, llvm::Type* result,
                         const std::vector<llvm::Type*>& params) {
    llvm::Function* function = llvm::Function::Create(
        llvm::FunctionType::get(result, params, false),
        llvm::GlobalValue::ExternalLinkage, model_.symbol + suffix, module_);
    function->setDoesNotThrow();
    b_.SetInsertPoint(
        llvm::BasicBlock::Create(module_.getContext(), "entry", function));
    return function;
  }

  llvm::FunctionCallee Hidden(const std::string& name,
                              llvm::FunctionType* type) {
    llvm::FunctionCallee callee = module_.getOrInsertFunction(name, type);
    auto* function = llvm::cast<llvm::Function>(callee.getCallee());
    function->setVisibility(llvm::GlobalValue::HiddenVisibility);
    function->setDoesNotThrow();
    return callee;
  }

  llvm::Constant* Function(const std::string& name, llvm::Type* result,
                           const std::vector<llvm::Type*>& params) {
    return llvm::cast<llvm::Constant>(
        Hidden(name, llvm::FunctionType::get(result, params, false))
            .getCallee());
  }

  llvm::GlobalVariable* Global(llvm::Constant* value, const char* name) {
    auto* variable = new llvm::GlobalVariable(
        module_, value->getType(), /*isConstant=*/true,
        llvm::GlobalValue::InternalLinkage, value, name);
    return variable;
  }

  // A function that passes its parameters on, after `first` if there is one.
  void EmitForward(const std::string& suffix, const std::string& callee,
                   llvm::Type* result, const std::vector<llvm::Type*>& params,
                   llvm::Constant* first) {
    llvm::Function* function = Define(suffix, result, params);
    std::vector<llvm::Type*> types = params;
    std::vector<llvm::Value*> arguments;
    if (first != nullptr) {
      types.insert(types.begin(), ptr_);
      arguments.push_back(first);
    }
    for (llvm::Argument& argument : function->args()) {
      arguments.push_back(&argument);
    }
    llvm::CallInst* call = b_.CreateCall(
        Hidden(callee, llvm::FunctionType::get(result, types, false)),
        arguments);
    if (result->isVoidTy()) {
      b_.CreateRetVoid();
    } else {
      b_.CreateRet(call);
    }
  }

  llvm::Value* Operand(const ModelOperand& operand, llvm::Function* function) {
    const auto pointer_at = [&](int argument) {
      return b_.CreateLoad(
          ptr_, b_.CreateConstInBoundsGEP1_64(ptr_, function->getArg(argument),
                                              operand.at));
    };
    switch (operand.kind) {
      case ModelOperand::Kind::kInput:
        return pointer_at(0);
      case ModelOperand::Kind::kOutput:
        return pointer_at(1);
      case ModelOperand::Kind::kArena:
        return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(),
                                             function->getArg(2), operand.at);
      case ModelOperand::Kind::kWeights:
        return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(),
                                             function->getArg(3), operand.at);
    }
    return nullptr;
  }

  llvm::Constant* Null() { return llvm::ConstantPointerNull::get(ptr_); }

  llvm::FunctionType* HookType() {
    return llvm::FunctionType::get(b_.getVoidTy(), {ptr_}, false);
  }

  // The variable that has the hook and its argument; the first hook returns at
  // once.
  llvm::GlobalVariable* EmitHook() {
    llvm::Function* nothing = llvm::Function::Create(
        HookType(), llvm::GlobalValue::InternalLinkage, "no_hook", module_);
    b_.SetInsertPoint(
        llvm::BasicBlock::Create(module_.getContext(), "entry", nothing));
    b_.CreateRetVoid();
    llvm::Constant* value = llvm::ConstantStruct::getAnon({nothing, Null()});
    return new llvm::GlobalVariable(module_, value->getType(),
                                    /*isConstant=*/false,
                                    llvm::GlobalValue::ExternalLinkage, value,
                                    ProfileHookSymbol(model_.symbol));
  }

  void CallHook(llvm::GlobalVariable* hook) {
    llvm::Value* function = b_.CreateLoad(ptr_, hook);
    llvm::Value* argument =
        b_.CreateLoad(ptr_, b_.CreateConstInBoundsGEP1_64(ptr_, hook, 1));
    b_.CreateCall(HookType(), function, {argument});
  }

  // A function that takes steps in order, until one fails.
  class StepSequence {
   public:
    StepSequence(llvm::IRBuilder<>& b, llvm::Function* function)
        : b_(b),
          function_(function),
          failed_(llvm::BasicBlock::Create(function->getContext(), "failed",
                                           function)) {
      b_.SetInsertPoint(&function->getEntryBlock());
    }

    // The next step, whose status is 0 unless it failed.
    void Add(llvm::Value* status) {
      llvm::BasicBlock* next = llvm::BasicBlock::Create(
          function_->getContext(), "next", function_, failed_);
      statuses_.emplace_back(status, b_.GetInsertBlock());
      b_.CreateCondBr(b_.CreateICmpEQ(status, b_.getInt32(0)), next, failed_);
      b_.SetInsertPoint(next);
    }

    void End() {
      b_.CreateRet(b_.getInt32(0));
      b_.SetInsertPoint(failed_);
      if (statuses_.empty()) {
        b_.CreateUnreachable();
        return;
      }
      llvm::PHINode* status = b_.CreatePHI(
          b_.getInt32Ty(), static_cast<unsigned>(statuses_.size()));
      for (const auto& [value, block] : statuses_) {
        status->addIncoming(value, block);
      }
      b_.CreateRet(status);
    }

   private:
    llvm::IRBuilder<>& b_;
    llvm::Function* function_;
    llvm::BasicBlock* failed_;
    std::vector<std::pair<llvm::Value*, llvm::BasicBlock*>> statuses_;
  };

  llvm::Function* DefineSteps(const char* name,
                              const std::vector<llvm::Type*>& params) {
    llvm::Function* function = Define(name, i32_, params);
    function->setLinkage(llvm::GlobalValue::InternalLinkage);
    return function;
  }

  llvm::Value* Call(const std::string& name,
                    const std::vector<llvm::Value*>& arguments) {
    std::vector<llvm::Type*> types;
    for (llvm::Value* argument : arguments) {
      types.push_back(argument->getType());
    }
    return b_.CreateCall(
        Hidden(name, llvm::FunctionType::get(i32_, types, false)), arguments);
  }

  // int32 steps(inputs, outputs, arena, weights)
  llvm::Function* EmitSteps(const ModelVariant& variant,
                            llvm::GlobalVariable* hook) {
    llvm::Function* function = DefineSteps("_steps", {ptr_, ptr_, ptr_, ptr_});
    StepSequence steps(b_, function);
    for (const ModelStep& step : variant.steps) {
      if (hook != nullptr) CallHook(hook);
      std::vector<llvm::Value*> operands;
      for (const ModelOperand& operand : step.operands) {
        operands.push_back(Operand(operand, function));
      }
      if (step.kernel.empty()) {
        // The copy may overlap if the caller gave one buffer twice.
        b_.CreateMemMove(operands[0], llvm::MaybeAlign(1), operands[1],
                         llvm::MaybeAlign(1), step.copied_bytes);
      } else {
        steps.Add(Call(step.kernel, operands));
      }
    }
    if (hook != nullptr) CallHook(hook);
    steps.End();
    return function;
  }

  // int32 steps(stream, operands)
  llvm::Function* EmitDeviceSteps(const ModelVariant& variant,
                                  DeviceLayout& layout) {
    llvm::Function* function = DefineSteps("_device_steps", {ptr_, ptr_});
    llvm::Value* stream = function->getArg(0);
    StepSequence steps(b_, function);
    for (const ModelStep& step : variant.steps) {
      std::vector<llvm::Value*> arguments = {stream};
      for (const ModelOperand& operand : step.operands) {
        const int64_t number = layout.NumberOf(operand);
        arguments.push_back(b_.CreateLoad(
            ptr_,
            b_.CreateConstInBoundsGEP1_64(ptr_, function->getArg(1), number)));
      }
      if (step.kernel.empty()) {
        arguments.push_back(
            b_.getInt64(static_cast<uint64_t>(step.copied_bytes)));
        steps.Add(Call(Driver() + "copy", arguments));
      } else {
        steps.Add(Call(step.kernel + "_on", arguments));
      }
    }
    steps.End();
    return function;
  }

  llvm::Constant* Text(const std::string& text, const char* name) {
    return Global(
        llvm::ConstantDataArray::getString(module_.getContext(), text), name);
  }

  // Null if there are none, or they are in a file.
  llvm::Constant* EmitWeights() {
    if (model_.weights.empty() || model_.weights_file.has_value()) {
      return Null();
    }
    std::string bytes;
    AppendWeights(model_.weights, bytes);
    llvm::GlobalVariable* weights =
        Global(llvm::ConstantDataArray::getString(module_.getContext(), bytes,
                                                  /*AddNull=*/false),
               "weights");
    weights->setAlignment(llvm::Align(64));
    return weights;
  }

  // struct tf_rt_weights_file and the functions for it (runtime/tf_runtime.h);
  // nulls if the weights are inside.
  std::vector<llvm::Constant*> WeightsFile() {
    if (!model_.weights_file.has_value()) return {Null(), Null(), Null()};
    int64_t bytes = 0;
    if (!model_.weights.empty()) {
      const ModelWeights& last = model_.weights.back();
      bytes = last.offset + static_cast<int64_t>(last.bytes.size());
    }
    llvm::Constant* file =
        Global(llvm::ConstantStruct::getAnon(
                   {Text(model_.weights_file->name, "weights_name"),
                    b_.getInt64(static_cast<uint64_t>(bytes)),
                    llvm::ConstantDataArray::getString(
                        module_.getContext(), model_.weights_file->digest,
                        /*AddNull=*/false)}),
               "weights_file");
    return {file, Function("tf_rt_weights_open", ptr_, {ptr_, ptr_, ptr_}),
            Function("tf_rt_weights_close", b_.getVoidTy(), {ptr_})};
  }

  // As an array; null if there are none.
  llvm::Constant* Numbers(const std::vector<int64_t>& numbers) {
    if (numbers.empty()) return Null();
    const std::vector<uint64_t> words(numbers.begin(), numbers.end());
    return Global(llvm::ConstantDataArray::get(module_.getContext(),
                                               llvm::ArrayRef<uint64_t>(words)),
                  "numbers");
  }

  llvm::Constant* Shapes(const std::vector<std::vector<int64_t>>& shapes) {
    std::vector<llvm::Constant*> values;
    for (const std::vector<int64_t>& shape : shapes) {
      values.push_back(Numbers(shape));
    }
    return Global(llvm::ConstantArray::get(
                      llvm::ArrayType::get(ptr_, values.size()), values),
                  "shapes");
  }

  // struct tf_rt_variant of every variant (runtime/tf_runtime.h).
  llvm::Constant* EmitVariants(DeviceLayout* layout) {
    llvm::GlobalVariable* hook = model_.profiled ? EmitHook() : nullptr;
    llvm::StructType* type = llvm::StructType::get(
        module_.getContext(), {ptr_, ptr_, ptr_, ptr_, ptr_, ptr_});
    std::vector<llvm::Constant*> variants;
    for (const ModelVariant& variant : model_.variants) {
      llvm::Constant *steps = Null(), *device_steps = Null();
      if (layout == nullptr) {
        steps = EmitSteps(variant, hook);
      } else {
        device_steps = EmitDeviceSteps(variant, *layout);
      }
      variants.push_back(llvm::ConstantStruct::get(
          type, {steps, device_steps, Numbers(variant.input_bytes),
                 Numbers(variant.output_bytes), Shapes(variant.input_shapes),
                 Shapes(variant.output_shapes)}));
    }
    return Global(llvm::ConstantArray::get(
                      llvm::ArrayType::get(type, variants.size()), variants),
                  "variants");
  }

  // struct tf_rt_model.
  llvm::Constant* Descriptor(llvm::Constant* inputs, llvm::Constant* outputs) {
    const auto count = [&](size_t n) {
      return b_.getInt32(static_cast<uint32_t>(n));
    };
    llvm::Constant *choose = Null(), *sizes = Null();
    if (IsOpen()) {
      choose = Function("tf_rt_choose_variant", ptr_, {ptr_, ptr_, ptr_});
      sizes = Text(model_.sizes, "sizes");
    }
    std::optional<DeviceLayout> layout;
    if (OnDevice()) layout.emplace(model_);
    std::vector<llvm::Constant*> fields = {
        EmitVariants(layout ? &*layout : nullptr),
        count(model_.variants.size()),
        count(model_.inputs.size()),
        count(model_.outputs.size()),
        inputs,
        outputs,
        choose,
        sizes,
        EmitWeights(),
        b_.getInt64(static_cast<uint64_t>(model_.arena_bytes))};
    for (llvm::Constant* field : WeightsFile()) fields.push_back(field);
    fields.push_back(layout ? Device(*layout) : Null());
    fields.push_back(target_.is_gpu() ? Function("tf_rt_gpu_error", ptr_, {})
                                      : Null());
    return Global(llvm::ConstantStruct::getAnon(fields), "model");
  }

  // struct tf_rt_device, with its struct tf_gpu_model (runtime/gpu.h).
  llvm::Constant* Device(const DeviceLayout& layout) {
    const auto word = [&](int64_t value) {
      return b_.getInt64(static_cast<uint64_t>(value));
    };
    std::vector<llvm::Constant*> parts;
    for (const DeviceLayout::Part& part : layout.parts()) {
      parts.push_back(llvm::ConstantStruct::getAnon(
          {word(part.offset), word(part.bytes), word(part.in_weights)}));
    }
    llvm::Constant* operands = Null();
    if (!parts.empty()) {
      operands = Global(
          llvm::ConstantArray::get(
              llvm::ArrayType::get(parts[0]->getType(), parts.size()), parts),
          "operands");
    }
    llvm::Constant* places = Global(
        llvm::ConstantStruct::getAnon(
            {word(layout.memory_bytes()), word(layout.weights_bytes()),
             Numbers(layout.input_offsets()), Numbers(layout.output_offsets()),
             word(static_cast<int64_t>(parts.size())), operands}),
        "places");
    const std::string model = Driver() + "model_";
    return Global(
        llvm::ConstantStruct::getAnon(
            {Function(model + "create", i32_, {ptr_, ptr_, ptr_, ptr_}),
             Function(model + "run", i32_,
                      {ptr_, ptr_, ptr_, ptr_, ptr_, i32_}),
             Function(model + "destroy", b_.getVoidTy(), {ptr_}), places}),
        "device");
  }

  // struct tf_tensor_info of every tensor, and the functions that return them.
  llvm::Constant* EmitTensors(const std::string& count_suffix,
                              const std::string& info_suffix,
                              const std::vector<ModelTensor>& tensors) {
    std::vector<llvm::Constant*> infos;
    llvm::StructType* type =
        llvm::StructType::get(module_.getContext(), {ptr_, i32_, i32_, ptr_});
    for (const ModelTensor& tensor : tensors) {
      infos.push_back(llvm::ConstantStruct::get(
          type, {Text(tensor.name, "name"),
                 b_.getInt32(static_cast<uint32_t>(tensor.dtype)),
                 b_.getInt32(static_cast<uint32_t>(tensor.shape.size())),
                 Numbers(tensor.shape)}));
    }
    const auto count = static_cast<uint32_t>(infos.size());
    llvm::ArrayType* array = llvm::ArrayType::get(type, count);
    llvm::GlobalVariable* table =
        Global(llvm::ConstantArray::get(array, infos), "tensors");
    Define(count_suffix, i32_, {});
    b_.CreateRet(b_.getInt32(count));
    llvm::Function* get = Define(info_suffix, ptr_, {i32_});
    // Negative numbers are large ones without sign.
    b_.CreateRet(b_.CreateSelect(
        b_.CreateICmpULT(get->getArg(0), b_.getInt32(count)),
        b_.CreateGEP(array, table, {b_.getInt32(0), get->getArg(0)}),
        llvm::ConstantPointerNull::get(ptr_)));
    return table;
  }

  llvm::Module& module_;
  const ModelDescription& model_;
  const target::Target& target_;
  llvm::IRBuilder<> b_;
  llvm::PointerType* ptr_;
  llvm::Type* i32_;
};

}  // namespace

int64_t ModelAlignment(const target::Target& target) {
  return target.is_gpu() ? TF_GPU_MODEL_ALIGNMENT : 64;
}

void AppendWeights(const std::vector<ModelWeights>& weights, std::string& to) {
  const size_t begin = to.size();
  if (!weights.empty()) {
    const ModelWeights& last = weights.back();
    to.resize(begin + static_cast<size_t>(last.offset) + last.bytes.size());
  }
  for (const ModelWeights& piece : weights) {
    std::copy_n(reinterpret_cast<const char*>(piece.bytes.data()),
                piece.bytes.size(),
                to.begin() + static_cast<ptrdiff_t>(begin) +
                    static_cast<ptrdiff_t>(piece.offset));
  }
}

std::string ProfileHookSymbol(const std::string& symbol) {
  return symbol + "_profile_hook";
}

std::vector<std::string> ModelSymbols(const std::string& symbol) {
  std::vector<std::string> all;
  for (const char* suffix : {"_inputs", "_outputs", "_input", "_output",
                             "_create", "_run", "_destroy", "_error"}) {
    all.push_back(symbol + suffix);
  }
  return all;
}

absl::StatusOr<std::string> EmitModelObject(const ModelDescription& model,
                                            const Options& options) {
  if (model.profiled && options.target.is_gpu()) {
    return absl::InvalidArgumentError(
        "steps of models are timed on CPUs alone, not on GPUs");
  }
  const target::Target host = options.target.HostPart();
  TF_ASSIGN_OR_RETURN(llvm::TargetMachine * machine, GetTargetMachine(host));
  llvm::LLVMContext context;
  llvm::Module module("tilefarm_model", context);
  module.setTargetTriple(host.triple);
  module.setDataLayout(machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
  ModelEmitter(module, model, options.target).Emit();
  TF_RETURN_IF_ERROR(VerifyModule(module, "the model's functions"));
  SetTargetAttributes(module, host);
  return EmitCode(module, *machine, llvm::CodeGenFileType::ObjectFile);
}

}  // namespace tilefarm::codegen
