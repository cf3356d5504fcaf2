// Calls of library kernels (ir/library_call.h), through the runtime.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/emitter.h"
#include "compiler/ir/library_call.h"

namespace tilefarm::codegen {
namespace {

// tf_rt_openblas_sgemm.
std::string RuntimeName(std::string_view kernel) {
  std::string name = absl::StrCat("tf_rt_", std::string(kernel));
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

}  // namespace

void Emitter::EmitGemmCall(const ir::MachineOpNode& e) {
  constexpr size_t kOperands = 4;  // the kernel's number and three matrices
  // The struct tf_rt_gemm, as a constant of the artifact.
  std::vector<uint64_t> numbers;
  for (size_t i = kOperands; i < e.args.size(); ++i) {
    numbers.push_back(static_cast<uint64_t>(*ir::AsInt(e.args[i])));
  }
  llvm::Constant* shape = llvm::ConstantDataArray::get(context_, numbers);
  auto* form = new llvm::GlobalVariable(module_, shape->getType(),
                                        /*isConstant=*/true,
                                        llvm::GlobalValue::PrivateLinkage,
                                        shape, function_name_ + ".gemm");
  form->setAlignment(llvm::Align(8));
  std::vector<llvm::Value*> args = {form};
  for (size_t i = 1; i < kOperands; ++i) {
    const auto* load = ir::As<ir::LoadNode>(e.args[i]);
    args.push_back(Address(load->buffer, Emit(load->indices[0])));
  }
  args.push_back(builder_.getInt32(options_.target.cores));
  const size_t kernel = static_cast<size_t>(*ir::AsInt(e.args[0]));
  llvm::Type* pointer = builder_.getPtrTy();
  llvm::Value* status = builder_.CreateCall(
      Runtime(RuntimeName(ir::LibraryKernels()[kernel].name).c_str(),
              builder_.getInt32Ty(),
              {pointer, pointer, pointer, pointer, builder_.getInt32Ty()}),
      args);
  builder_.CreateStore(status, frame_->status);
  llvm::BasicBlock* next = NewBlock("computed");
  builder_.CreateCondBr(builder_.CreateIsNull(status), next, frame_->exit);
  builder_.SetInsertPoint(next);
}

}  // namespace tilefarm::codegen
