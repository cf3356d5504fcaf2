// Kernels of GPUs: the frame of one thread's code, and what threads do
// together.
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/emitter.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::codegen {
namespace {

// Of parameters, workspaces and what a thread allocates; also the widest
// access.
constexpr int64_t kDeviceAlignment = 16;

// A number that the index is a multiple of, whatever its variables are.
int64_t DivisorOf(const ir::Expr& index) {
  constexpr int64_t kMost = int64_t{1} << 20;
  if (const auto value = ir::AsInt(index)) {
    return *value == 0 ? kMost : std::gcd(*value, kMost);
  }
  const auto* binary = ir::As<ir::BinaryNode>(index);
  if (binary == nullptr) return 1;
  const int64_t a = DivisorOf(binary->a), b = DivisorOf(binary->b);
  const std::optional<int64_t> constant = ir::AsInt(binary->b);
  switch (binary->op) {
    case ir::BinaryOp::kAdd:
    case ir::BinaryOp::kSub:
    case ir::BinaryOp::kMin:
    case ir::BinaryOp::kMax:
      return std::gcd(a, b);
    case ir::BinaryOp::kMul:
      return std::min(kMost, a * b);
    case ir::BinaryOp::kFloorMod:
      return constant.value_or(0) > 0 ? std::gcd(a, *constant) : 1;
    case ir::BinaryOp::kFloorDiv:
      return constant.value_or(0) > 0 && a % *constant == 0 ? a / *constant : 1;
    default:
      return 1;
  }
}

}  // namespace

absl::Status Emitter::EmitKernel(const lower::Kernel& kernel,
                                 const std::string& name, DeviceOps& device) {
  status_ = absl::OkStatus();
  function_name_ = name;
  device_ = &device;
  const DeviceOps::Function made = device.Begin(kernel, name, builder_);
  Frame frame;
  frame.function = made.function;
  frame.entry = &made.function->getEntryBlock();
  frame_ = &frame;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    frame.buffers[kernel.buffers[i].get()] = made.buffers[i];
  }
  for (size_t i = 0; i < kernel.maps.size(); ++i) {
    frame.maps.emplace_back(kernel.maps[i], made.maps[i]);
  }
  for (const auto& [buffer, offset] : kernel.shared) {
    frame.buffers[buffer.get()] = builder_.CreateConstInBoundsGEP1_64(
        builder_.getInt8Ty(), made.shared, static_cast<uint64_t>(offset),
        buffer->name);
  }
  for (const lower::KernelAxis& axis : kernel.axes) {
    frame.vars[axis.var.get()] = builder_.CreateZExt(
        device.Index(axis, builder_), builder_.getInt64Ty(), axis.var->name,
        /*IsNonNeg=*/true);
  }
  ir::PreOrder(kernel.body, [&](const ir::Stmt& s) {
    const auto* alloc = ir::As<ir::AllocNode>(s);
    if (alloc != nullptr &&
        ir::ScopeOf(*alloc->buffer) != ir::MemoryScope::kShared) {
      const ir::Buffer& buffer = alloc->buffer;
      llvm::AllocaInst* space =
          EntryAlloca(frame, llvm::ArrayType::get(MemoryType(buffer->dtype),
                                                  buffer->num_elements()));
      space->setAlignment(llvm::Align(kDeviceAlignment));
      space->setName(buffer->name);
      frame.buffers[buffer.get()] = space;
    }
    return true;
  });
  llvm::BasicBlock* body = NewBlock("body");
  builder_.CreateBr(body);
  builder_.SetInsertPoint(body);
  EmitStmt(kernel.body);
  builder_.CreateRetVoid();
  device_ = nullptr;
  frame_ = nullptr;
  return status_;
}

void Emitter::NoteSharedAccess(const ir::Buffer& buffer, llvm::Value* address,
                               int lanes, bool write) {
  if (device_ == nullptr || ir::ScopeOf(*buffer) != ir::MemoryScope::kShared) {
    return;
  }
  device_->NoteAccess(address, lanes * buffer->dtype.element().bytes(), write,
                      builder_);
}

llvm::Align Emitter::AlignmentOf(const ir::Buffer& buffer,
                                 const ir::Expr& index) const {
  const int64_t bytes = buffer->dtype.element().bytes();
  if (device_ == nullptr) return llvm::Align(bytes);
  return llvm::Align(std::gcd(DivisorOf(index) * bytes, kDeviceAlignment));
}

bool Emitter::EmitCopyAsync(const ir::StoreNode& s) {
  const auto* op = ir::As<ir::MachineOpNode>(s.value);
  if (op == nullptr || op->op != ir::MachineOp::kAsync ||
      s.predicate != nullptr) {
    return false;
  }
  const auto* load = ir::As<ir::LoadNode>(op->args[0]);
  if (load == nullptr || load->predicate != nullptr) return false;
  const int lanes = s.indices[0]->dtype.lanes;
  const auto first = [&](const ir::Expr& index) -> ir::Expr {
    if (lanes == 1) return index;
    const std::optional<RampForm> ramp = AsRamp(index);
    return ramp && ir::IsConstInt(ramp->stride, 1) ? ramp->base : nullptr;
  };
  const ir::Expr to = first(s.indices[0]), from = first(load->indices[0]);
  const int bytes = lanes * s.buffer->dtype.bytes();
  if (to == nullptr || from == nullptr ||
      (bytes != 4 && bytes != 8 && bytes != 16) ||
      AlignmentOf(s.buffer, to).value() < static_cast<uint64_t>(bytes) ||
      AlignmentOf(load->buffer, from).value() < static_cast<uint64_t>(bytes)) {
    return false;
  }
  return device_->CopyAsync(Address(s.buffer, Emit(to)),
                            Address(load->buffer, Emit(from)), bytes, builder_);
}

llvm::Value* Emitter::EmitShuffleXor(const ir::MachineOpNode& e) {
  const int mask = static_cast<int>(*ir::AsInt(e.args[1]));
  const int width = static_cast<int>(*ir::AsInt(e.args[2]));
  llvm::Value* value = Emit(e.args[0]);
  llvm::Type* type = value->getType();
  const unsigned bits = type->getScalarSizeInBits();
  llvm::Value* whole = builder_.CreateBitCast(value, builder_.getIntNTy(bits));
  const auto shuffle = [&](llvm::Value* word) {
    return device_->ShuffleXor(word, mask, width, builder_);
  };
  llvm::Type* word = builder_.getInt32Ty();
  if (bits <= 32) {
    whole = builder_.CreateTrunc(shuffle(builder_.CreateZExt(whole, word)),
                                 whole->getType());
    return builder_.CreateBitCast(whole, type);
  }
  llvm::Type* wide = builder_.getInt64Ty();
  llvm::Value* low = shuffle(builder_.CreateTrunc(whole, word));
  llvm::Value* high =
      shuffle(builder_.CreateTrunc(builder_.CreateLShr(whole, 32), word));
  whole = builder_.CreateOr(
      builder_.CreateZExt(low, wide),
      builder_.CreateShl(builder_.CreateZExt(high, wide), 32));
  return builder_.CreateBitCast(whole, type);
}

}  // namespace tilefarm::codegen
