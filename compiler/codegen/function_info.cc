#include "compiler/codegen/function_info.h"

#include <cstdint>
#include <vector>

#include "base/status_macros.h"
#include "compiler/codegen/optimize.h"
#include "compiler/codegen/target_machine.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace tilefarm::codegen {
namespace {

// Keep in step with EmitFunction and EmitParameter below.
constexpr char kTypes[] =
    "#ifndef TILEFARM_FUNCTION_TYPES\n#define TILEFARM_FUNCTION_TYPES\n"
    "typedef struct tf_parameter_info {\n"
    "  const char* name;\n"
    "  int32_t dtype; /* ONNX's TensorProto.DataType */\n"
    "  int32_t rank;\n"
    "  const int64_t* shape;   /* null if the rank is 0 */\n"
    "  const int64_t* strides; /* in elements; null if the rank is 0 */\n"
    "  int64_t offset; /* of the first element from the pointer, in elements "
    "*/\n"
    "  int64_t bytes;  /* that the buffer has from the pointer on */\n"
    "  int64_t packed_bytes; /* of its packed form; 0: it has none */\n"
    "  int32_t written; /* 0: the function only reads it */\n"
    "  int32_t alignment; /* of the pointer, in bytes */\n"
    "} tf_parameter_info;\n\n"
    "typedef struct tf_function_info {\n"
    "  size_t size; /* sizeof(tf_function_info) in this library */\n"
    "  const char* name;\n"
    "  const char* target;\n"
    "  int32_t threads; /* the most that a call uses, with the caller */\n"
    "  int32_t parameter_count;\n"
    "  const tf_parameter_info* parameters;\n"
    "} tf_function_info;\n#endif\n";

class InfoEmitter {
 public:
  InfoEmitter(llvm::Module& module, const std::string& target)
      : module_(module),
        b_(module.getContext()),
        ptr_(b_.getPtrTy()),
        target_(Text(target)) {}

  void EmitFunction(const Signature& signature) {
    std::vector<llvm::Constant*> parameters;
    for (const ParameterSignature& parameter : signature.parameters) {
      parameters.push_back(EmitParameter(parameter, signature.alignment));
    }
    llvm::Constant* list = Null();
    if (!parameters.empty()) {
      list = Global(llvm::ConstantArray::get(
          llvm::ArrayType::get(parameters[0]->getType(), parameters.size()),
          parameters));
    }
    llvm::IntegerType* size = b_.getIntPtrTy(module_.getDataLayout());
    const auto make = [&](uint64_t bytes) {
      return llvm::ConstantStruct::getAnon(
          {llvm::ConstantInt::get(size, bytes), Text(signature.symbol), target_,
           Int32(signature.threads),
           Int32(static_cast<int64_t>(parameters.size())), list});
    };
    const uint64_t bytes = module_.getDataLayout()
                               .getTypeAllocSize(make(0)->getType())
                               .getFixedValue();
    llvm::Constant* info = Global(make(bytes));
    llvm::Function* function =
        llvm::Function::Create(llvm::FunctionType::get(ptr_, false),
                               llvm::GlobalValue::ExternalLinkage,
                               InfoSymbol(signature.symbol), module_);
    function->setDoesNotThrow();
    b_.SetInsertPoint(
        llvm::BasicBlock::Create(module_.getContext(), "entry", function));
    b_.CreateRet(info);
  }

 private:
  llvm::Constant* EmitParameter(const ParameterSignature& parameter,
                                int alignment) {
    return llvm::ConstantStruct::getAnon(
        {Text(parameter.name), Int32(OnnxNumber(parameter.dtype)),
         Int32(static_cast<int64_t>(parameter.shape.size())),
         Numbers(parameter.shape), Numbers(parameter.strides),
         Int64(parameter.offset), Int64(parameter.bytes),
         Int64(parameter.packed_bytes), Int32(parameter.is_written ? 1 : 0),
         Int32(alignment == 0 ? parameter.dtype.bytes() : alignment)});
  }

  llvm::Constant* Null() { return llvm::ConstantPointerNull::get(ptr_); }
  llvm::Constant* Int32(int64_t value) {
    return b_.getInt32(static_cast<uint32_t>(value));
  }
  llvm::Constant* Int64(int64_t value) {
    return b_.getInt64(static_cast<uint64_t>(value));
  }
  llvm::Constant* Global(llvm::Constant* value) {
    return new llvm::GlobalVariable(
        module_, value->getType(),
        /*isConstant=*/true, llvm::GlobalValue::InternalLinkage, value, "info");
  }
  llvm::Constant* Text(const std::string& text) {
    return Global(
        llvm::ConstantDataArray::getString(module_.getContext(), text));
  }
  // Null if there are none.
  llvm::Constant* Numbers(const std::vector<int64_t>& numbers) {
    if (numbers.empty()) return Null();
    const std::vector<uint64_t> values(numbers.begin(), numbers.end());
    return Global(llvm::ConstantDataArray::get(
        module_.getContext(), llvm::ArrayRef<uint64_t>(values)));
  }

  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  llvm::PointerType* ptr_;
  llvm::Constant* target_;
};

}  // namespace

std::string InfoSymbol(const std::string& symbol) { return symbol + "_info"; }

std::string InfoTypes() { return kTypes; }

absl::StatusOr<std::string> EmitInfoObject(
    std::span<const Signature> signatures, const target::Target& target) {
  const target::Target host = target.HostPart();
  TF_ASSIGN_OR_RETURN(llvm::TargetMachine * machine, GetTargetMachine(host));
  llvm::LLVMContext context;
  llvm::Module module("tilefarm_info", context);
  module.setTargetTriple(host.triple);
  module.setDataLayout(machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
  InfoEmitter emitter(module, target.Key());
  for (const Signature& signature : signatures) {
    emitter.EmitFunction(signature);
  }
  TF_RETURN_IF_ERROR(VerifyModule(module, "the functions' descriptions"));
  SetTargetAttributes(module, host);
  return EmitCode(module, *machine, llvm::CodeGenFileType::ObjectFile);
}

}  // namespace tilefarm::codegen
