// Dot products of narrow numbers and the interleaving that lays out their
// operands.
//
// An operand in memory order is a vector of groups of 32 bits, a group a lane;
// an operand of one group is that group in every lane.

#include <utility>
#include <vector>

#include "compiler/codegen/emitter.h"
#include "llvm/IR/IntrinsicsAArch64.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/TargetParser/Triple.h"

namespace tilefarm::codegen {
namespace {

struct Instruction {
  llvm::Intrinsic::ID id = llvm::Intrinsic::not_intrinsic;
  bool swapped = false;  // its first operand is our second
};

// Chooses the intrinsic for 4, 8 or 16 lanes.
llvm::Intrinsic::ID ByLanes(int lanes, llvm::Intrinsic::ID four,
                            llvm::Intrinsic::ID eight,
                            llvm::Intrinsic::ID sixteen) {
  return lanes == 4    ? four
         : lanes == 8  ? eight
         : lanes == 16 ? sixteen
                       : llvm::Intrinsic::not_intrinsic;
}

Instruction FindX86(ir::DataType a, ir::DataType b, int lanes) {
  namespace I = llvm::Intrinsic;
  if (a.code == ir::TypeCode::kBFloat) {
    return {ByLanes(lanes, I::x86_avx512bf16_dpbf16ps_128,
                    I::x86_avx512bf16_dpbf16ps_256,
                    I::x86_avx512bf16_dpbf16ps_512)};
  }
  if (a.bits == 16) {
    return {ByLanes(lanes, I::x86_avx512_vpdpwssd_128,
                    I::x86_avx512_vpdpwssd_256, I::x86_avx512_vpdpwssd_512)};
  }
  if (a.is_int() && b.is_int()) {
    return {ByLanes(lanes, I::x86_avx2_vpdpbssd_128, I::x86_avx2_vpdpbssd_256,
                    I::not_intrinsic)};
  }
  if (!a.is_int() && !b.is_int()) {
    return {ByLanes(lanes, I::x86_avx2_vpdpbuud_128, I::x86_avx2_vpdpbuud_256,
                    I::not_intrinsic)};
  }
  return {ByLanes(lanes, I::x86_avx512_vpdpbusd_128, I::x86_avx512_vpdpbusd_256,
                  I::x86_avx512_vpdpbusd_512),
          /*swapped=*/a.is_int()};
}

Instruction FindAarch64(ir::DataType a, ir::DataType b, int lanes) {
  namespace I = llvm::Intrinsic;
  if (a.bits != 8 || !a.is_integral() || lanes != 4) return {};
  if (a.is_int() == b.is_int()) {
    return {a.is_int() ? I::aarch64_neon_sdot : I::aarch64_neon_udot};
  }
  return {I::aarch64_neon_usdot, /*swapped=*/a.is_int()};
}

}  // namespace

llvm::Value* Emitter::EmitDotProduct(const ir::MachineOpNode& e) {
  const auto* a = ir::As<ir::LoadNode>(e.args[0]);
  const auto* b = ir::As<ir::LoadNode>(e.args[1]);
  const int lanes = e.dtype.lanes;
  const llvm::Triple triple(module_.getTargetTriple());
  const bool neon = triple.isAArch64();
  Instruction found;
  if (a != nullptr && b != nullptr && (neon || triple.isX86())) {
    found = (neon ? FindAarch64 : FindX86)(a->dtype.element(),
                                           b->dtype.element(), lanes);
  }
  if (found.id == llvm::Intrinsic::not_intrinsic) {
    return Fail(absl::InternalError("no instruction for a dot product"),
                RegisterType(e.dtype));
  }
  const bool bfloat = a->dtype.code == ir::TypeCode::kBFloat;
  llvm::Type* operand =
      bfloat ? llvm::FixedVectorType::get(builder_.getBFloatTy(), 2 * lanes)
      : neon ? llvm::FixedVectorType::get(builder_.getInt8Ty(), 4 * lanes)
             : llvm::FixedVectorType::get(builder_.getInt32Ty(), lanes);
  llvm::Value* first = builder_.CreateBitCast(EmitGroups(*a, lanes), operand);
  llvm::Value* second = builder_.CreateBitCast(EmitGroups(*b, lanes), operand);
  if (found.swapped) std::swap(first, second);
  llvm::Value* sums = Emit(e.args[2]);
  std::vector<llvm::Type*> overloads;
  if (neon) overloads = {sums->getType(), operand};
  return builder_.CreateIntrinsic(found.id, overloads, {sums, first, second});
}

llvm::Value* Emitter::EmitPairDotProduct(const ir::MachineOpNode& e) {
  namespace I = llvm::Intrinsic;
  const auto* a = ir::As<ir::LoadNode>(e.args[0]);
  const auto* b = ir::As<ir::LoadNode>(e.args[1]);
  const int lanes = e.dtype.lanes;
  const I::ID id = ByLanes(lanes, I::not_intrinsic, I::x86_avx2_pmadd_wd,
                           I::x86_avx512_pmaddw_d_512);
  if (a == nullptr || b == nullptr || id == I::not_intrinsic ||
      !Has(lanes == 8 ? target::Capability::kInt16PairProduct256
                      : target::Capability::kInt16PairProduct512)) {
    return Fail(absl::InternalError("no instruction for products of pairs"),
                RegisterType(e.dtype));
  }
  auto* words = llvm::FixedVectorType::get(builder_.getInt16Ty(), 2 * lanes);
  // The operand as words; of its bytes, the first or second of every two.
  const auto widened = [&](const ir::LoadNode& load, llvm::Value* groups,
                           bool second) {
    llvm::Value* value = builder_.CreateBitCast(groups, words);
    if (load.dtype.bits == 16) return value;
    if (load.dtype.is_int()) {
      if (!second) value = builder_.CreateShl(value, 8);
      return builder_.CreateAShr(value, 8);
    }
    return second ? builder_.CreateLShr(value, 8)
                  : builder_.CreateAnd(value, 0xff);
  };
  llvm::Value* left = EmitGroups(*a, lanes);
  llvm::Value* right = EmitGroups(*b, lanes);
  const auto products = [&](bool second) {
    return builder_.CreateIntrinsic(
        id, {}, {widened(*a, left, second), widened(*b, right, second)});
  };
  llvm::Value* sums = products(false);
  if (a->dtype.bits == 8) sums = builder_.CreateAdd(sums, products(true));
  return builder_.CreateAdd(Emit(e.args[2]), sums);
}

llvm::Value* Emitter::EmitGroups(const ir::LoadNode& load, int lanes) {
  llvm::Value* value = EmitStored(load);
  llvm::Type* group = builder_.getInt32Ty();
  if (load.dtype.lanes * load.dtype.bits == 32) {
    return builder_.CreateVectorSplat(lanes,
                                      builder_.CreateBitCast(value, group));
  }
  return builder_.CreateBitCast(value,
                                llvm::FixedVectorType::get(group, lanes));
}

llvm::Value* Emitter::EmitTileLoad(llvm::Value* address, llvm::Value* apart) {
  llvm::CallInst* load = builder_.CreateIntrinsic(
      llvm::Intrinsic::x86_tileloadd64_internal, {},
      {builder_.getInt16(16), builder_.getInt16(64), address, apart});
  // LLVM does not infer this. It allows loading an operand of two products only
  // once.
  load->setOnlyReadsMemory();
  load->setOnlyAccessesArgMemory();
  load->setDoesNotThrow();
  load->addFnAttr(llvm::Attribute::WillReturn);
  return load;
}

llvm::Value* Emitter::EmitSums(llvm::Type* vector, llvm::Value* address) {
  return builder_.CreateIntrinsic(
      llvm::Intrinsic::x86_cast_tile_to_vector, {vector},
      {EmitTileLoad(address, builder_.getInt64(64))});
}

// LLVM allocates the tiles and configures them in front of the nest.
llvm::Value* Emitter::EmitTileProduct(const ir::MachineOpNode& e) {
  namespace I = llvm::Intrinsic;
  const auto* a = ir::As<ir::LoadNode>(e.args[0]);
  const auto* b = ir::As<ir::LoadNode>(e.args[2]);
  if (a == nullptr || b == nullptr ||
      !Has(a->dtype.is_float() ? target::Capability::kBFloat16Tile
                               : target::Capability::kByteTile)) {
    return Fail(absl::InternalError("no instruction for a tile product"),
                RegisterType(e.dtype));
  }
  const I::ID id = a->dtype.is_float() ? I::x86_tdpbf16ps_internal
                   : a->dtype.is_int()
                       ? (b->dtype.is_int() ? I::x86_tdpbssd_internal
                                            : I::x86_tdpbsud_internal)
                       : (b->dtype.is_int() ? I::x86_tdpbusd_internal
                                            : I::x86_tdpbuud_internal);
  const auto load = [&](const ir::LoadNode& first, const ir::Expr& stride) {
    return EmitTileLoad(
        Address(first.buffer, Emit(first.indices[0])),
        builder_.CreateMul(Emit(stride),
                           builder_.getInt64(first.dtype.bytes())));
  };
  // Outside the instruction, sums are vectors; LLVM keeps them as tiles if
  // every use is a tile.
  llvm::Value* sums = Emit(e.args[4]);
  llvm::Type* vector = sums->getType();
  llvm::Value* tile =
      builder_.CreateIntrinsic(I::x86_cast_vector_to_tile, {vector}, {sums});
  llvm::Value* left = load(*a, e.args[1]);
  llvm::Value* right = load(*b, e.args[3]);
  llvm::Value* row_bytes = builder_.getInt16(64);
  llvm::CallInst* result = builder_.CreateIntrinsic(
      id, {}, {builder_.getInt16(16), row_bytes, row_bytes, tile, left, right});
  result->setDoesNotAccessMemory();
  result->setDoesNotThrow();
  result->addFnAttr(llvm::Attribute::WillReturn);
  return builder_.CreateIntrinsic(I::x86_cast_tile_to_vector, {vector},
                                  {result});
}

llvm::Value* Emitter::EmitInterleave(llvm::Value* a, llvm::Value* b) {
  const auto* type = llvm::cast<llvm::FixedVectorType>(a->getType());
  const int lanes = static_cast<int>(type->getNumElements());
  std::vector<int> order;
  for (int i = 0; i < lanes; ++i) {
    order.push_back(i);
    order.push_back(lanes + i);
  }
  return builder_.CreateShuffleVector(a, b, order);
}

}  // namespace tilefarm::codegen
