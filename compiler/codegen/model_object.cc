#include "compiler/codegen/model_object.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/codegen/optimize.h"
#include "compiler/codegen/target_machine.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace tilefarm::codegen {
namespace {

class ModelEmitter {
 public:
  ModelEmitter(llvm::Module& module, const ModelDescription& model)
      : module_(module),
        model_(model),
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
    EmitForward("_destroy", "tf_rt_model_destroy", b_.getVoidTy(), {ptr_},
                nullptr);
    EmitForward("_error", "tf_rt_model_error", ptr_, {}, nullptr);
    if (llvm::Triple(module_.getTargetTriple()).isWasm()) return;
    llvm::FunctionCallee shutdown = Hidden(
        "tf_rt_model_shutdown", llvm::FunctionType::get(b_.getVoidTy(), false));
    llvm::appendToGlobalDtors(
        module_, llvm::cast<llvm::Function>(shutdown.getCallee()), 65535);
  }

 private:
  bool IsOpen() const { return !model_.sizes.empty(); }

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

  // int32 steps(inputs, outputs, arena, weights): the kernels in order, until
  // one fails.
  llvm::Function* EmitSteps(const ModelVariant& variant,
                            llvm::GlobalVariable* hook) {
    llvm::Function* function = Define("_steps", i32_, {ptr_, ptr_, ptr_, ptr_});
    function->setLinkage(llvm::GlobalValue::InternalLinkage);
    llvm::LLVMContext& context = module_.getContext();
    llvm::BasicBlock* failed =
        llvm::BasicBlock::Create(context, "failed", function);
    std::vector<std::pair<llvm::Value*, llvm::BasicBlock*>> statuses;
    b_.SetInsertPoint(&function->getEntryBlock());
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
        continue;
      }
      llvm::Value* status = b_.CreateCall(
          Hidden(step.kernel,
                 llvm::FunctionType::get(
                     i32_, std::vector<llvm::Type*>(operands.size(), ptr_),
                     false)),
          operands);
      llvm::BasicBlock* next =
          llvm::BasicBlock::Create(context, "next", function, failed);
      statuses.emplace_back(status, b_.GetInsertBlock());
      b_.CreateCondBr(b_.CreateICmpEQ(status, b_.getInt32(0)), next, failed);
      b_.SetInsertPoint(next);
    }
    if (hook != nullptr) CallHook(hook);
    b_.CreateRet(b_.getInt32(0));
    b_.SetInsertPoint(failed);
    if (statuses.empty()) {
      b_.CreateUnreachable();
      return function;
    }
    llvm::PHINode* status =
        b_.CreatePHI(i32_, static_cast<unsigned>(statuses.size()));
    for (const auto& [value, block] : statuses) {
      status->addIncoming(value, block);
    }
    b_.CreateRet(status);
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
    const auto function = [&](const char* name, llvm::FunctionType* type) {
      return llvm::cast<llvm::Constant>(Hidden(name, type).getCallee());
    };
    return {file,
            function("tf_rt_weights_open",
                     llvm::FunctionType::get(ptr_, {ptr_, ptr_, ptr_}, false)),
            function("tf_rt_weights_close",
                     llvm::FunctionType::get(b_.getVoidTy(), {ptr_}, false))};
  }

  // Null if the rank is 0.
  llvm::Constant* Shape(const std::vector<int64_t>& shape) {
    if (shape.empty()) return Null();
    const std::vector<uint64_t> extents(shape.begin(), shape.end());
    return Global(llvm::ConstantDataArray::get(
                      module_.getContext(), llvm::ArrayRef<uint64_t>(extents)),
                  "shape");
  }

  llvm::Constant* Shapes(const std::vector<std::vector<int64_t>>& shapes) {
    std::vector<llvm::Constant*> values;
    for (const std::vector<int64_t>& shape : shapes) {
      values.push_back(Shape(shape));
    }
    return Global(llvm::ConstantArray::get(
                      llvm::ArrayType::get(ptr_, values.size()), values),
                  "shapes");
  }

  // struct tf_rt_variant of every variant (runtime/tf_runtime.h).
  llvm::Constant* EmitVariants() {
    llvm::GlobalVariable* hook = model_.profiled ? EmitHook() : nullptr;
    llvm::StructType* type =
        llvm::StructType::get(module_.getContext(), {ptr_, ptr_, ptr_});
    std::vector<llvm::Constant*> variants;
    for (const ModelVariant& variant : model_.variants) {
      variants.push_back(llvm::ConstantStruct::get(
          type, {EmitSteps(variant, hook), Shapes(variant.input_shapes),
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
      choose = llvm::cast<llvm::Constant>(
          Hidden("tf_rt_choose_variant",
                 llvm::FunctionType::get(ptr_, {ptr_, ptr_, ptr_}, false))
              .getCallee());
      sizes = Text(model_.sizes, "sizes");
    }
    std::vector<llvm::Constant*> fields = {
        EmitVariants(),
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
    return Global(llvm::ConstantStruct::getAnon(fields), "model");
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
                 Shape(tensor.shape)}));
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
  llvm::IRBuilder<> b_;
  llvm::PointerType* ptr_;
  llvm::Type* i32_;
};

// The names of ONNX's element types in C.
std::string CType(int32_t dtype) {
  static const auto* const names = new std::map<int32_t, std::string>{
      {1, "float"},    {2, "uint8_t"}, {3, "int8_t"},    {4, "uint16_t"},
      {5, "int16_t"},  {6, "int32_t"}, {7, "int64_t"},   {9, "bool"},
      {10, "float16"}, {11, "double"}, {12, "uint32_t"}, {13, "uint64_t"},
      {16, "bfloat16"}};
  const auto found = names->find(dtype);
  return found == names->end() ? absl::StrCat("type ", dtype) : found->second;
}

// A name must not end the comment.
std::string Printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](unsigned char c) { return c == '*' || std::iscntrl(c); }, '_');
  return text;
}

std::string Describe(const std::vector<ModelTensor>& tensors) {
  std::string text;
  for (size_t i = 0; i < tensors.size(); ++i) {
    absl::StrAppend(&text, " *   ", i, ": ", Printable(tensors[i].name), ", ",
                    CType(tensors[i].dtype), " [",
                    absl::StrJoin(tensors[i].shape, ", "), "]\n");
  }
  return text;
}

}  // namespace

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
  TF_ASSIGN_OR_RETURN(llvm::TargetMachine * machine,
                      GetTargetMachine(options.target));
  llvm::LLVMContext context;
  llvm::Module module("tilefarm_model", context);
  module.setTargetTriple(options.target.triple);
  module.setDataLayout(machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
  ModelEmitter(module, model).Emit();
  TF_RETURN_IF_ERROR(VerifyModule(module, "the model's functions"));
  SetTargetAttributes(module, options.target);
  return EmitCode(module, *machine, llvm::CodeGenFileType::ObjectFile);
}

std::string ModelHeader(const ModelDescription& model) {
  const std::string& s = model.symbol;
  std::string open_dimensions, run_shaped;
  if (!model.sizes.empty()) {
    open_dimensions = absl::StrCat(" * Compiled for ", Printable(model.sizes),
                                   "; an open dimension is -1.\n");
    run_shaped = absl::StrCat(
        "/* In the place of ", s,
        "_run, which is an error for a model with open dimensions.\n"
        " * `input_shapes` has the shape of each input (null if its rank is "
        "0). The\n * outputs' shapes are written to `output_shapes`, if that "
        "is not null; with null\n * for `outputs`, that is all. */\n"
        "int ",
        s, "_run_shaped(", s,
        "_model* model, const void* const* inputs,\n"
        "    const int64_t* const* input_shapes, void* const* outputs,\n"
        "    int64_t* const* output_shapes);\n");
  }
  std::string guard = absl::StrCat(s, "_MODEL_H_");
  std::transform(guard.begin(), guard.end(), guard.begin(), ::toupper);
  return absl::StrCat(
      "/* A model compiled by tunec. Tensors are dense and row-major.\n"
      " * Inputs:\n",
      Describe(model.inputs), " * Outputs:\n", Describe(model.outputs),
      open_dimensions, " */\n#ifndef ", guard, "\n#define ", guard,
      "\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
      "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
      "#ifndef TILEFARM_MODEL_TYPES\n#define TILEFARM_MODEL_TYPES\n"
      "typedef struct tf_tensor_info {\n"
      "  const char* name;\n"
      "  int32_t dtype; /* ONNX's TensorProto.DataType */\n"
      "  int32_t rank;\n"
      "  const int64_t* shape; /* null if the rank is 0 */\n"
      "} tf_tensor_info;\n\n"
      "typedef struct tf_model_options {\n"
      "  size_t size; /* sizeof(tf_model_options) */\n"
      "  const char* weights; /* file; null: inside the library or beside it "
      "*/\n"
      "  int32_t threads; /* at most; 0: as many as there are cores */\n"
      "  int32_t spin_us; /* of idle threads before they sleep; 0: the "
      "default */\n"
      "} tf_model_options;\n#endif\n\n"
      "typedef struct ",
      s, "_model ", s,
      "_model;\n\n"
      "int ",
      s,
      "_inputs(void);\n"
      "int ",
      s,
      "_outputs(void);\n"
      "/* Null if there is no such tensor. */\n"
      "const tf_tensor_info* ",
      s,
      "_input(int number);\n"
      "const tf_tensor_info* ",
      s,
      "_output(int number);\n"
      "/* Functions that return int give 0 for success; ",
      s,
      "_error() describes this\n * thread's last error. `options` may be null. "
      "*/\n"
      "int ",
      s, "_create(const tf_model_options* options, ", s,
      "_model** model);\n"
      "/* One instance runs once at a time; several instances may run at the "
      "same\n * time. */\n"
      "int ",
      s, "_run(", s,
      "_model* model, const void* const* inputs,\n"
      "    void* const* outputs);\n",
      run_shaped, "void ", s, "_destroy(", s,
      "_model* model);\n"
      "const char* ",
      s,
      "_error(void);\n\n"
      "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

}  // namespace tilefarm::codegen
