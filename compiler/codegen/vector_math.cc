#include "compiler/codegen/vector_math.h"

#include <string>

#include "compiler/codegen/float_kernels.h"

namespace tilefarm::codegen {
namespace {

using ir::Intrinsic;

unsigned LaneCount(llvm::Type* type) {
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
    return vector->getNumElements();
  }
  return 1;
}

// The C function for float64; null if there is none for this operation.
const char* LibraryName(Intrinsic op) {
  switch (op) {
    case Intrinsic::kExp:
      return "exp";
    case Intrinsic::kExp2:
      return "exp2";
    case Intrinsic::kLog:
      return "log";
    case Intrinsic::kLog2:
      return "log2";
    case Intrinsic::kLog10:
      return "log10";
    case Intrinsic::kLog1p:
      return "log1p";
    case Intrinsic::kTanh:
      return "tanh";
    case Intrinsic::kErf:
      return "erf";
    case Intrinsic::kSin:
      return "sin";
    case Intrinsic::kCos:
      return "cos";
    case Intrinsic::kTan:
      return "tan";
    case Intrinsic::kSinh:
      return "sinh";
    case Intrinsic::kCosh:
      return "cosh";
    case Intrinsic::kAtan:
      return "atan";
    case Intrinsic::kAsin:
      return "asin";
    case Intrinsic::kAcos:
      return "acos";
    case Intrinsic::kAtan2:
      return "atan2";
    case Intrinsic::kPow:
      return "pow";
    default:
      return nullptr;
  }
}

bool HasApproximation(Intrinsic op, unsigned lanes) {
  switch (op) {
    case Intrinsic::kExp:
    case Intrinsic::kExp2:
    case Intrinsic::kLog:
    case Intrinsic::kLog2:
    case Intrinsic::kLog10:
    case Intrinsic::kLog1p:
    case Intrinsic::kTanh:
    case Intrinsic::kSigmoid:
    case Intrinsic::kErf:
      return true;
    case Intrinsic::kSin:
    case Intrinsic::kCos:
    case Intrinsic::kPow:
      return lanes > 1;  // the library's scalar functions are as fast
    default:
      return false;
  }
}

std::string FunctionName(const char* prefix, Intrinsic op, unsigned lanes) {
  return prefix + std::string(ir::IntrinsicName(op)) + ".v" +
         std::to_string(lanes);
}

}  // namespace

llvm::Value* VectorMath::Emit(llvm::IRBuilder<>& builder, Intrinsic op,
                              const std::vector<llvm::Value*>& args) {
  if (LibraryName(op) == nullptr && op != Intrinsic::kSigmoid) return nullptr;
  llvm::Type* type = args[0]->getType();
  if (type->getScalarType()->isDoubleTy() ||
      !HasApproximation(op, LaneCount(type))) {
    return LibraryCall(builder, op, args);
  }
  return builder.CreateCall(Approximation(op, type), args);
}

llvm::Value* VectorMath::LibraryCall(llvm::IRBuilder<>& builder, Intrinsic op,
                                     const std::vector<llvm::Value*>& args) {
  llvm::Type* type = args[0]->getType();
  if (op == Intrinsic::kSigmoid) {
    llvm::Value* e =
        LibraryCall(builder, Intrinsic::kExp, {builder.CreateFNeg(args[0])});
    llvm::Value* one = llvm::ConstantFP::get(type, 1.0);
    return builder.CreateFDiv(one, builder.CreateFAdd(one, e));
  }
  llvm::Type* element = type->getScalarType();
  std::string name = LibraryName(op);
  if (element->isFloatTy()) name += "f";
  const std::vector<llvm::Type*> parameters(args.size(), element);
  llvm::FunctionCallee callee = module_.getOrInsertFunction(
      name, llvm::FunctionType::get(element, parameters, false));
  if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
    // Generated code does not read errno.
    function->setDoesNotAccessMemory();
    function->setDoesNotThrow();
    function->setWillReturn();
  }
  if (!type->isVectorTy()) return builder.CreateCall(callee, args);
  llvm::Value* result = llvm::PoisonValue::get(type);
  for (unsigned lane = 0; lane < LaneCount(type); ++lane) {
    std::vector<llvm::Value*> scalars;
    for (llvm::Value* arg : args) {
      scalars.push_back(builder.CreateExtractElement(arg, lane));
    }
    result = builder.CreateInsertElement(
        result, builder.CreateCall(callee, scalars), lane);
  }
  return result;
}

llvm::Function* VectorMath::SlowPath(Intrinsic op, llvm::Type* type) {
  const std::string name = FunctionName("tf.slow.", op, LaneCount(type));
  if (llvm::Function* known = module_.getFunction(name)) return known;
  const std::vector<llvm::Type*> parameters(ir::IntrinsicArity(op), type);
  llvm::Function* function =
      llvm::Function::Create(llvm::FunctionType::get(type, parameters, false),
                             llvm::GlobalValue::InternalLinkage, name, module_);
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr(llvm::Attribute::Cold);
  function->setDoesNotThrow();
  llvm::IRBuilder<> builder(
      llvm::BasicBlock::Create(module_.getContext(), "entry", function));
  std::vector<llvm::Value*> args;
  for (llvm::Argument& arg : function->args()) args.push_back(&arg);
  builder.CreateRet(LibraryCall(builder, op, args));
  return function;
}

llvm::Function* VectorMath::Approximation(Intrinsic op, llvm::Type* type) {
  const std::string name = FunctionName("tf.", op, LaneCount(type));
  if (llvm::Function* known = module_.getFunction(name)) return known;
  const std::vector<llvm::Type*> parameters(ir::IntrinsicArity(op), type);
  llvm::Function* function =
      llvm::Function::Create(llvm::FunctionType::get(type, parameters, false),
                             llvm::GlobalValue::InternalLinkage, name, module_);
  function->addFnAttr(llvm::Attribute::AlwaysInline);
  function->setDoesNotThrow();
  llvm::LLVMContext& context = module_.getContext();
  llvm::IRBuilder<> builder(
      llvm::BasicBlock::Create(context, "entry", function));
  llvm::FastMathFlags contract;
  contract.setAllowContract(true);
  builder.setFastMathFlags(contract);
  llvm::Value* x = function->getArg(0);
  Partial partial{nullptr, nullptr};
  llvm::Value* result = nullptr;
  switch (op) {
    case Intrinsic::kExp:
      result = EmitExp(builder, x, target_);
      break;
    case Intrinsic::kExp2:
      result = EmitExp2(builder, x, target_);
      break;
    case Intrinsic::kLog:
      result = EmitLog(builder, x);
      break;
    case Intrinsic::kLog2:
      result = EmitLog2(builder, x);
      break;
    case Intrinsic::kLog10:
      result = EmitLog10(builder, x);
      break;
    case Intrinsic::kLog1p:
      result = EmitLog1p(builder, x);
      break;
    case Intrinsic::kTanh:
      result = EmitTanh(builder, x, target_);
      break;
    case Intrinsic::kSigmoid:
      result = EmitSigmoid(builder, x, target_);
      break;
    case Intrinsic::kErf:
      result = EmitErf(builder, x, target_);
      break;
    case Intrinsic::kSin:
      partial = EmitSine(builder, x, 0);
      break;
    case Intrinsic::kCos:
      partial = EmitSine(builder, x, 1);
      break;
    default:
      partial = EmitPow(builder, x, function->getArg(1));
      break;
  }
  if (result != nullptr) {
    builder.CreateRet(result);
    return function;
  }
  auto* fast = llvm::BasicBlock::Create(context, "fast", function);
  auto* slow = llvm::BasicBlock::Create(context, "slow", function);
  builder.CreateCondBr(builder.CreateAndReduce(partial.valid), fast, slow);
  builder.SetInsertPoint(fast);
  builder.CreateRet(partial.value);
  builder.SetInsertPoint(slow);
  std::vector<llvm::Value*> args;
  for (llvm::Argument& arg : function->args()) args.push_back(&arg);
  builder.CreateRet(builder.CreateCall(SlowPath(op, type), args));
  return function;
}

}  // namespace tilefarm::codegen
