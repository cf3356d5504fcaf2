// Matrix units of warpgroups and the copy engine.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/emitter.h"
#include "compiler/codegen/warpgroup_ops.h"
#include "compiler/ir/tensor_box.h"
#include "compiler/ir/warpgroup_product.h"

namespace tilefarm::codegen {

llvm::Value* Emitter::AddressOf(const ir::Expr& load) {
  const auto* node = ir::As<ir::LoadNode>(load);
  return AddressAt(node->buffer, node->indices[0]);
}

// One by one, so that each becomes a register.
template <typename Use>
void Emitter::WithRegisters(const ir::Expr& load,
                            const std::vector<int64_t>& offsets, Use use) {
  llvm::Type* type = MemoryType(load->dtype);
  llvm::Value* first = AddressOf(load);
  std::vector<llvm::Value*> addresses, values;
  for (const int64_t offset : offsets) {
    addresses.push_back(builder_.CreateConstInBoundsGEP1_64(
        type, first, static_cast<uint64_t>(offset)));
    values.push_back(builder_.CreateLoad(type, addresses.back()));
  }
  use(values);
  for (size_t i = 0; i < values.size(); ++i) {
    builder_.CreateStore(values[i], addresses[i]);
  }
}

llvm::Value* Emitter::EmitUniform(const ir::MachineOpNode& e) {
  return device_->warpgroups().Uniform(Emit(e.args[0]), builder_);
}

std::vector<llvm::Value*> Emitter::LanesOf(llvm::Value* vector) {
  const auto* type = llvm::cast<llvm::FixedVectorType>(vector->getType());
  std::vector<llvm::Value*> lanes;
  for (unsigned i = 0; i < type->getNumElements(); ++i) {
    lanes.push_back(builder_.CreateExtractElement(vector, i));
  }
  return lanes;
}

llvm::Value* Emitter::EmitFragment(const ir::MachineOpNode& e) {
  llvm::Value* out = Emit(e.args[0]);
  std::vector<llvm::Value*> registers = LanesOf(out);
  device_->warpgroups().Fragment(registers, builder_);
  for (size_t i = 0; i < registers.size(); ++i) {
    out = builder_.CreateInsertElement(out, registers[i], i);
  }
  return out;
}

bool Emitter::EmitWarpgroupEffect(const ir::MachineOpNode& e) {
  using ir::MachineOp;
  if (e.op <= MachineOp::kUniform || e.op > MachineOp::kProductWait) {
    return false;
  }
  WarpgroupOps& ops = device_->warpgroups();
  const auto constant = [&](size_t i) { return *ir::AsInt(e.args[i]); };
  const auto word = [&](const ir::Expr& value) {
    return builder_.CreateTrunc(Emit(value), builder_.getInt32Ty());
  };
  const auto all = [&](size_t i) {
    std::vector<int64_t> offsets(static_cast<size_t>(constant(i)));
    for (size_t k = 0; k < offsets.size(); ++k) {
      offsets[k] = static_cast<int64_t>(k);
    }
    return offsets;
  };
  switch (e.op) {
    case MachineOp::kBarrierInit:
      ops.BarrierInit(AddressOf(e.args[0]), static_cast<uint32_t>(constant(1)),
                      builder_);
      break;
    case MachineOp::kBarrierExpect:
      ops.BarrierExpect(AddressOf(e.args[0]),
                        static_cast<uint32_t>(constant(1)), builder_);
      break;
    case MachineOp::kBarrierArrive: {
      llvm::Value* barrier = AddressOf(e.args[0]);
      ops.BarrierArrive(barrier, Emit(e.args[1]), builder_);
      break;
    }
    case MachineOp::kBarrierWait: {
      llvm::Value* barrier = AddressOf(e.args[0]);
      ops.BarrierWait(barrier, word(e.args[1]), builder_);
      break;
    }
    case MachineOp::kCopyBox:
    case MachineOp::kCopyWindows:
    case MachineOp::kStoreBox:
      EmitCopyBox(e);
      break;
    case MachineOp::kBoxFence:
      ops.BoxFence(builder_);
      break;
    case MachineOp::kBoxStoreCommit:
      ops.BoxStoreCommit(builder_);
      break;
    case MachineOp::kBoxStoreWait:
      ops.BoxStoreWait(static_cast<int>(constant(0)), builder_);
      break;
    case MachineOp::kWarpgroupBarrier:
      ops.WarpgroupBarrier(word(e.args[0]), builder_);
      break;
    case MachineOp::kProductFence:
      WithRegisters(e.args[0], all(1), [&](std::vector<llvm::Value*>& sums) {
        ops.ProductFence(sums, builder_);
      });
      break;
    case MachineOp::kWarpgroupProduct:
      EmitWarpgroupProduct(e);
      break;
    case MachineOp::kProductCommit:
      ops.ProductCommit(builder_);
      break;
    default:
      WithRegisters(e.args[1], all(2), [&](std::vector<llvm::Value*>& sums) {
        ops.ProductWait(static_cast<int>(constant(0)), sums, builder_);
      });
  }
  return true;
}

void Emitter::EmitCopyBox(const ir::MachineOpNode& e) {
  const ir::BoxCopy copy = ir::AsBoxCopy(e);
  const auto found = std::ranges::find(
      frame_->maps, copy.map, [](const auto& map) { return map.first; });
  if (found == frame_->maps.end()) {
    return Fail(absl::InternalError(absl::StrCat(
        "the kernel has no tensor map of ", copy.map.buffer->name)));
  }
  llvm::Value* shared = AddressOf(copy.shared);
  std::vector<llvm::Value*> origin;
  const auto add = [&](const ir::Expr& coordinate) {
    origin.push_back(
        builder_.CreateTrunc(Emit(coordinate), builder_.getInt32Ty()));
  };
  const int dims = ir::MapDims(copy.map);
  const bool windows = e.op == ir::MachineOp::kCopyWindows;
  for (int i = 0; i < dims - (windows ? 1 : 0); ++i) {
    add(copy.origin[static_cast<size_t>(ir::kMaxBoxDims - 1 - i)]);
  }
  WarpgroupOps& ops = device_->warpgroups();
  if (e.op == ir::MachineOp::kStoreBox) {
    return ops.StoreBox(shared, found->second, origin, builder_);
  }
  if (windows) {
    add(copy.origin.front());
    std::vector<llvm::Value*> offsets;
    for (int i = 0; i < copy.map.spatial; ++i) {
      offsets.push_back(builder_.CreateTrunc(
          Emit(copy.offsets[static_cast<size_t>(ir::kMaxSpatial - 1 - i)]),
          builder_.getInt16Ty()));
    }
    return ops.CopyWindows(shared, found->second, origin, offsets,
                           AddressOf(copy.barrier), builder_);
  }
  ops.CopyBox(shared, found->second, origin, AddressOf(copy.barrier), builder_);
}

void Emitter::EmitWarpgroupProduct(const ir::MachineOpNode& e) {
  const ir::WarpgroupProduct product = ir::AsWarpgroupProduct(e);
  WarpgroupOps::Shape shape;
  shape.unit = ir::FindWarpgroupUnit(
      ir::As<ir::LoadNode>(product.b)->buffer->dtype, product.sums->dtype);
  shape.columns = static_cast<int>(product.columns);
  shape.a_tile_bytes = product.a_tile_bytes;
  shape.b_tile_bytes = product.b_tile_bytes;
  shape.adds = product.adds;
  const bool in_registers = product.a->dtype.is_vector();
  const WarpgroupOps::Registers a =
      in_registers ? LanesOf(Emit(product.a))
                   : WarpgroupOps::Registers{AddressOf(product.a)};
  llvm::Value* b = AddressOf(product.b);
  std::vector<int64_t> offsets;
  for (int64_t c = 0; c < product.columns / 8; ++c) {
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t q = 0; q < 2; ++q) {
        offsets.push_back(h * product.row_step + c * product.column_step +
                          q * product.pair_step);
      }
    }
  }
  WithRegisters(product.sums, offsets, [&](std::vector<llvm::Value*>& sums) {
    device_->warpgroups().Product(shape, a, b, sums, builder_);
  });
}

}  // namespace tilefarm::codegen
