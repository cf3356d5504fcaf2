// Kernels of GPUs: the frame of one thread's code, and what threads do
// together.
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/emitter.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::codegen {
namespace {

// An operation besides those of emit_memory.cc.
constexpr int kPartOfAddress = -2, kClusterAddress = -3;

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
    llvm::Value* index =
        Extended(device.Index(axis, builder_), {0, axis.extent - 1});
    index->setName(axis.var->name);
    frame.vars[axis.var.get()] = index;
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

llvm::Value* Emitter::AddressAt(const ir::Buffer& buffer,
                                const ir::Expr& index) {
  const auto* sum = ir::As<ir::BinaryNode>(index);
  const std::optional<int64_t> constant =
      sum != nullptr && sum->op == ir::BinaryOp::kAdd ? ir::AsInt(sum->b)
                                                      : std::nullopt;
  if (device_ == nullptr || !constant || *constant < 0) {
    return Address(buffer, Emit(index));
  }
  // What is left may be negative: no inbounds.
  llvm::Type* element = MemoryType(buffer->dtype.element());
  llvm::Value* memory = frame_->buffers.at(buffer.get());
  llvm::Value* rest = Emit(sum->a);
  llvm::Value* address = Known({kPartOfAddress, element, memory, rest}, [&] {
    return builder_.CreateGEP(element, memory, rest);
  });
  return builder_.CreateConstGEP1_64(element, address,
                                     static_cast<uint64_t>(*constant));
}

void Emitter::NoteSharedAccess(const ir::Buffer& buffer, llvm::Value* address,
                               int lanes, bool write) {
  if (device_ == nullptr || ir::ScopeOf(*buffer) != ir::MemoryScope::kShared) {
    return;
  }
  const int bytes = lanes * buffer->dtype.element().bytes();
  if (frame_->reads_cluster) {
    return device_->NoteClusterRead(address, bytes, builder_);
  }
  device_->NoteAccess(address, bytes, write, builder_);
}

llvm::Value* Emitter::EmitClusterLoad(const ir::MachineOpNode& e) {
  const auto& load = *ir::As<ir::LoadNode>(e.args[0]);
  llvm::Value*& memory = frame_->buffers.at(load.buffer.get());
  llvm::Value* const own = memory;
  llvm::Value* rank =
      builder_.CreateTrunc(Emit(e.args[1]), builder_.getInt32Ty());
  memory = Known({kClusterAddress, nullptr, own, rank},
                 [&] { return device_->ClusterAddress(own, rank, builder_); });
  frame_->reads_cluster = true;
  llvm::Value* value = EmitLoad(load);
  frame_->reads_cluster = false;
  memory = own;
  return value;
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
  const std::optional<ir::CopiedLoad> copied = ir::AsCopiedLoad(op->args[0]);
  if (!copied) return false;
  const ir::LoadNode* load = copied->load;
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
  llvm::Value* condition =
      copied->condition == nullptr ? nullptr : Emit(copied->condition);
  return device_->CopyAsync(Address(s.buffer, Emit(to)),
                            Address(load->buffer, Emit(from)), bytes, condition,
                            builder_);
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

llvm::Value* Emitter::EmitFragmentOp(const ir::MachineOpNode& e) {
  using ir::MachineOp;
  const auto constant = [&](size_t i) {
    return static_cast<int>(*ir::AsInt(e.args[i]));
  };
  // The lanes of one value after those of another: `first` of `lanes`.
  const auto lanes_of = [&](llvm::Value* a, llvm::Value* b, int first) {
    std::vector<int> lanes(static_cast<size_t>(e.dtype.lanes));
    std::iota(lanes.begin(), lanes.end(), first);
    return builder_.CreateShuffleVector(a, b, lanes);
  };
  switch (e.op) {
    case MachineOp::kLoadMatrix: {
      const auto* load = ir::As<ir::LoadNode>(e.args[0]);
      return builder_.CreateBitCast(
          device_->LoadMatrix(Address(load->buffer, Emit(load->indices[0])),
                              constant(1), constant(2) != 0, builder_),
          RegisterType(e.dtype));
    }
    case MachineOp::kWarpProduct: {
      const auto words = [&](const ir::Expr& fragment) {
        return builder_.CreateBitCast(
            Emit(fragment), llvm::FixedVectorType::get(
                                builder_.getInt32Ty(),
                                static_cast<unsigned>(fragment->dtype.lanes)));
      };
      llvm::Value* a = words(e.args[1]);
      llvm::Value* b = words(e.args[2]);
      return device_->WarpProduct(constant(0), a, b, Emit(e.args[3]), builder_);
    }
    case MachineOp::kRoundTf32: {
      llvm::Value* value = Emit(e.args[0]);
      if (!e.dtype.is_vector()) return device_->RoundTf32(value, builder_);
      llvm::Value* out = llvm::PoisonValue::get(value->getType());
      for (uint64_t i = 0; i < static_cast<uint64_t>(e.dtype.lanes); ++i) {
        out = builder_.CreateInsertElement(
            out,
            device_->RoundTf32(builder_.CreateExtractElement(value, i),
                               builder_),
            i);
      }
      return out;
    }
    case MachineOp::kWords: {
      // As they are in memory: values of 16-bit floats are float32.
      const auto* load = ir::As<ir::LoadNode>(e.args[0]);
      return builder_.CreateBitCast(
          load != nullptr ? EmitStored(*load) : Emit(e.args[0]),
          RegisterType(e.dtype));
    }
    case MachineOp::kConcat: {
      const auto vector = [&](const ir::Expr& part) {
        llvm::Value* value = Emit(part);
        return part->dtype.is_vector() ? value
                                       : builder_.CreateVectorSplat(1, value);
      };
      llvm::Value* a = vector(e.args[0]);
      llvm::Value* b = vector(e.args[1]);
      const int first = e.args[0]->dtype.lanes, second = e.args[1]->dtype.lanes;
      if (first == second) return lanes_of(a, b, 0);
      llvm::Value* out = llvm::PoisonValue::get(RegisterType(e.dtype));
      for (int i = 0; i < first + second; ++i) {
        out = builder_.CreateInsertElement(
            out,
            builder_.CreateExtractElement(
                i < first ? a : b,
                static_cast<uint64_t>(i < first ? i : i - first)),
            static_cast<uint64_t>(i));
      }
      return out;
    }
    case MachineOp::kSlice: {
      llvm::Value* value = Emit(e.args[0]);
      if (e.dtype.is_vector()) {
        return lanes_of(value, llvm::PoisonValue::get(value->getType()),
                        constant(1));
      }
      return builder_.CreateExtractElement(value,
                                           static_cast<uint64_t>(constant(1)));
    }
    default:
      return Fail(absl::InternalError("no operation of fragments"),
                  RegisterType(e.dtype));
  }
}

}  // namespace tilefarm::codegen
