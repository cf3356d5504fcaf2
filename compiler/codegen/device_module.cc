#include "compiler/codegen/device_module.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "compiler/codegen/device_ops.h"
#include "compiler/codegen/emitter.h"
#include "compiler/codegen/gpu_math.h"
#include "compiler/codegen/opencl_source.h"
#include "compiler/codegen/optimize.h"
#include "compiler/codegen/target_machine.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/gpu_passes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Support/raw_ostream.h"

namespace tilefarm::codegen {
namespace {

// Also what is only written counts as read: kernels may leave some of it as it
// is.
constexpr uint8_t kRead = 1, kWritten = 3;

// How the kernels of a function access each buffer.
std::map<const ir::BufferNode*, uint8_t> AccessesOf(const ir::Stmt& body) {
  std::map<const ir::BufferNode*, uint8_t> accesses;
  ir::PreOrder(body, [&](const ir::Stmt& s) {
    if (const auto* store = ir::As<ir::StoreNode>(s)) {
      accesses[store->buffer.get()] |= kWritten;
    }
    return true;
  });
  ir::PostOrderExprs(body, [&](const ir::Expr& e) {
    if (const auto* load = ir::As<ir::LoadNode>(e)) {
      accesses[load->buffer.get()] |= kRead;
    }
    const auto* op = ir::As<ir::MachineOpNode>(e);
    if (op != nullptr && op->op == ir::MachineOp::kStoreBox) {
      accesses[ir::AsBoxCopy(*op).map.buffer.get()] |= kWritten;
    }
  });
  return accesses;
}

int64_t BytesOf(const ir::BufferNode& buffer) {
  return buffer.num_elements() * buffer.dtype.bytes();
}

// Of CUtensorMapDataType. Copies do not look at the elements, but which are 0.
int ElementType(ir::DataType dtype) {
  if (dtype == ir::DataType::BFloat16()) return 9;
  if (dtype.is_float()) return dtype.bits == 16 ? 6 : dtype.bits == 32 ? 7 : 8;
  switch (dtype.bytes()) {
    case 1:
      return 0;
    case 2:
      return 1;
    case 4:
      return 2;
    default:
      return 4;
  }
}

DeviceKernel Describe(const lower::Kernel& kernel, std::string name,
                      const std::map<const ir::BufferNode*, int>& numbers) {
  DeviceKernel out{std::move(name), {1, 1, 1}, {1, 1, 1}, 0, {}, {}};
  for (const lower::KernelAxis& axis : kernel.axes) {
    auto& shape = ir::IsThreadIdx(axis.axis) ? out.block : out.grid;
    shape[ir::DimensionOf(axis.axis)] *= static_cast<uint32_t>(axis.extent);
  }
  out.cluster = static_cast<uint32_t>(kernel.cluster_blocks);
  out.shared_bytes = static_cast<uint32_t>(kernel.shared_bytes);
  for (const ir::Buffer& buffer : kernel.buffers) {
    out.arguments.push_back(numbers.at(buffer.get()));
  }
  for (const ir::TensorMap& map : kernel.maps) {
    DeviceTensorMap& described = out.maps.emplace_back();
    described.buffer = numbers.at(map.buffer.get());
    described.element_type = ElementType(map.buffer->dtype);
    described.element_bytes = map.buffer->dtype.bytes();
    described.dims = ir::MapDims(map);
    described.spatial = map.spatial;
    for (size_t i = 0; i < ir::kMaxBoxDims; ++i) {
      const size_t from = ir::kMaxBoxDims - 1 - i;
      described.sizes[i] = static_cast<uint64_t>(map.sizes[from]);
      described.box[i] = static_cast<uint32_t>(map.box[from]);
    }
    if (map.spatial == 0) continue;
    // Images are beside the last spatial dimension that there is.
    const auto last = static_cast<size_t>(described.dims) - 1;
    std::swap(described.sizes[last], described.sizes.back());
    std::swap(described.box[last], described.box.back());
    for (size_t i = 0; i < ir::kMaxSpatial; ++i) {
      const size_t from = ir::kMaxSpatial - 1 - i;
      described.lower[i] = static_cast<uint32_t>(map.lower[from]);
      described.upper[i] = static_cast<uint32_t>(map.upper[from]);
      described.steps[i] = static_cast<uint32_t>(map.steps[from]);
    }
  }
  return out;
}

// LLVM 19 makes one instruction of a load of 16 bytes in any case, although the
// GPU then needs an address that is a multiple of 16; loads of fewer bytes, and
// of other types, become what their alignment allows.
void SplitUnalignedBytes(llvm::Module& module) {
  auto* bytes = llvm::FixedVectorType::get(
      llvm::Type::getInt8Ty(module.getContext()), 16);
  std::vector<llvm::LoadInst*> loads;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      if (load != nullptr && load->getType() == bytes &&
          load->getAlign() < llvm::Align(16)) {
        loads.push_back(load);
      }
    }
  }
  auto* half = llvm::FixedVectorType::get(bytes->getElementType(), 8);
  for (llvm::LoadInst* load : loads) {
    llvm::IRBuilder<> builder(load);
    std::array<llvm::Value*, 2> halves;
    for (unsigned i = 0; i < 2; ++i) {
      halves[i] = builder.CreateAlignedLoad(
          half,
          builder.CreateConstInBoundsGEP1_32(half, load->getPointerOperand(),
                                             i),
          llvm::commonAlignment(load->getAlign(), 8 * i));
    }
    std::vector<int> order(16);
    std::iota(order.begin(), order.end(), 0);
    load->replaceAllUsesWith(
        builder.CreateShuffleVector(halves[0], halves[1], order));
    load->eraseFromParent();
  }
}

// LLVM 19 has only the annotation of a cluster's largest size; that it must be
// this one is another directive.
std::string WithClusters(std::string ptx) {
  return absl::StrReplaceAll(
      ptx, {{".maxclusterrank ", ".explicitcluster\n.reqnctapercluster "}});
}

std::string Print(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

// The functions as kernels, and how the host launches these.
struct Kernels {
  std::vector<DeviceFunction> functions;
  std::vector<NamedKernel> list;
};

absl::StatusOr<Kernels> MakeKernels(std::span<const LoweredFunction> functions,
                                    const target::GpuLimits& limits) {
  Kernels out;
  for (const LoweredFunction& function : functions) {
    if (!function.packed.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("function ", function.symbol,
                       ": a GPU packs no constants ahead of time"));
    }
    const ir::PrimFunc& lowered = *function.function;
    TF_ASSIGN_OR_RETURN(lower::KernelSequence sequence,
                        lower::SplitKernels(lowered, limits));
    const auto accesses = AccessesOf(lowered.body);
    DeviceFunction& described = out.functions.emplace_back();
    described.symbol = function.symbol;
    std::map<const ir::BufferNode*, int> numbers;
    for (const ir::Buffer& param : lowered.params) {
      numbers.emplace(param.get(), static_cast<int>(numbers.size()));
      described.parameter_bytes.push_back(BytesOf(*param));
      const auto access = accesses.find(param.get());
      described.parameter_access.push_back(
          access == accesses.end() ? uint8_t{0} : access->second);
    }
    for (const ir::Buffer& workspace : sequence.workspaces) {
      numbers.emplace(workspace.get(), static_cast<int>(numbers.size()));
      described.workspace_bytes.push_back(BytesOf(*workspace));
    }
    for (lower::Kernel& kernel : sequence.kernels) {
      std::string name =
          absl::StrCat(function.symbol, "_kernel", described.kernels.size());
      described.kernels.push_back(Describe(kernel, name, numbers));
      described.kernels.back().overlaps = OverlapsKernels(limits);
      out.list.push_back({std::move(name), std::move(kernel)});
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<DeviceModule> EmitDeviceModule(
    std::span<const LoweredFunction> functions, const target::Target& target,
    DeviceCode kind) {
  TF_ASSIGN_OR_RETURN(Kernels kernels, MakeKernels(functions, *target.gpu));
  DeviceModule out;
  out.functions = std::move(kernels.functions);
  if (target.is_opencl()) {
    if (kind == DeviceCode::kLlvmIr || kind == DeviceCode::kOptimizedLlvmIr) {
      return absl::InvalidArgumentError(
          "OpenCL C is not made by LLVM; its text is the assembly");
    }
    TF_ASSIGN_OR_RETURN(out.code, EmitOpenClSource(kernels.list));
    return out;
  }
  const bool simulated = target.is_simulated();
  const Options options{simulated ? target.HostPart() : target};
  TF_ASSIGN_OR_RETURN(llvm::TargetMachine * machine,
                      GetTargetMachine(options.target));
  llvm::LLVMContext context;
  llvm::Module module("tilefarm", context);
  module.setTargetTriple(options.target.triple);
  module.setDataLayout(machine->createDataLayout());
  if (simulated) module.setPICLevel(llvm::PICLevel::BigPIC);
  const std::unique_ptr<DeviceOps> device =
      simulated ? SimulatedOps(module) : NvptxOps(module, *target.gpu);
  Emitter emitter(module, options);
  for (const NamedKernel& kernel : kernels.list) {
    TF_RETURN_IF_ERROR(emitter.EmitKernel(kernel.kernel, kernel.name, *device));
  }
  if (!simulated) TF_RETURN_IF_ERROR(LinkGpuMath(module));
  TF_RETURN_IF_ERROR(VerifyModule(module, "as emitted"));
  if (kind == DeviceCode::kLlvmIr) {
    out.code = Print(module);
    return out;
  }
  SetTargetAttributes(module, options.target);
  if (simulated) {
    for (llvm::Function& function : module) {
      // Functions of libm come from outside of the artifact.
      if (function.hasLocalLinkage() ||
          (function.isDeclaration() &&
           !function.getName().starts_with("tf_"))) {
        continue;
      }
      function.setVisibility(llvm::GlobalValue::HiddenVisibility);
    }
  }
  Optimize(module, *machine);
  if (!simulated) SplitUnalignedBytes(module);
  if (kind == DeviceCode::kOptimizedLlvmIr) {
    out.code = Print(module);
    return out;
  }
  const bool object = simulated && kind == DeviceCode::kFinal;
  TF_ASSIGN_OR_RETURN(out.code,
                      EmitCode(module, *machine,
                               object ? llvm::CodeGenFileType::ObjectFile
                                      : llvm::CodeGenFileType::AssemblyFile));
  if (!simulated) out.code = WithClusters(std::move(out.code));
  return out;
}

}  // namespace tilefarm::codegen
