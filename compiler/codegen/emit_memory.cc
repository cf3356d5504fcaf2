// Loads and stores. The shape of a vector index decides:
//
//   Ramp, stride 1    one unaligned vector access (masked where predicated)
//   Ramp, stride -1   the same and a reversal
//   Broadcast         one scalar access, splat
//   Ramp, other       a small stride: emit_strided.cc; else one scalar access a
//                     lane, gather/scatter under a mask
//   anything else     gather/scatter
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/arith/scaled_sum.h"
#include "compiler/codegen/emitter.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "llvm/IR/Intrinsics.h"

namespace tilefarm::codegen {
namespace {

llvm::Value* Reverse(llvm::IRBuilder<>& builder, llvm::Value* value,
                     int lanes) {
  std::vector<int> order(lanes);
  std::iota(order.rbegin(), order.rend(), 0);
  return builder.CreateShuffleVector(value, order);
}

// A vector type with the lane count of `type`.
llvm::Type* WithLanesOf(llvm::Type* element, llvm::Type* type) {
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
    return llvm::FixedVectorType::get(element, vector->getNumElements());
  }
  return element;
}

// Half bits (i16) to float without hardware support: bits shifted to a float's
// position give the value divided by 2^112, for subnormals, too.
llvm::Value* HalfBitsToFloat(llvm::IRBuilder<>& b, llvm::Value* half) {
  llvm::Type* i32 = WithLanesOf(b.getInt32Ty(), half->getType());
  llvm::Type* f32 = WithLanesOf(b.getFloatTy(), half->getType());
  const auto constant = [&](uint32_t v) {
    return llvm::ConstantInt::get(i32, v);
  };
  llvm::Value* wide = b.CreateZExt(half, i32);
  llvm::Value* sign = b.CreateShl(b.CreateAnd(wide, constant(0x8000)), 16);
  llvm::Value* shifted = b.CreateShl(b.CreateAnd(wide, constant(0x7fff)), 13);
  llvm::Value* scaled =
      b.CreateBitCast(b.CreateFMul(b.CreateBitCast(shifted, f32),
                                   llvm::ConstantFP::get(f32, 0x1p112)),
                      i32);
  llvm::Value* special = b.CreateICmpUGE(shifted, constant(0x0f800000));
  llvm::Value* magnitude = b.CreateSelect(
      special, b.CreateOr(shifted, constant(0x7f800000)), scaled);
  return b.CreateBitCast(b.CreateOr(magnitude, sign), f32);
}

// Float to half bits (i16), to nearest, ties to even.
llvm::Value* FloatToHalfBits(llvm::IRBuilder<>& b, llvm::Value* value) {
  llvm::Type* i32 = WithLanesOf(b.getInt32Ty(), value->getType());
  llvm::Type* f32 = value->getType();
  const auto constant = [&](uint32_t v) {
    return llvm::ConstantInt::get(i32, v);
  };
  llvm::Value* bits = b.CreateBitCast(value, i32);
  llvm::Value* sign =
      b.CreateLShr(b.CreateAnd(bits, constant(0x80000000u)), 16);
  llvm::Value* magnitude = b.CreateAnd(bits, constant(0x7fffffff));
  // Subnormal results: the last bit of a sum with 0.5 is the smallest half.
  llvm::Value* small =
      b.CreateSub(b.CreateBitCast(b.CreateFAdd(b.CreateBitCast(magnitude, f32),
                                               llvm::ConstantFP::get(f32, 0.5)),
                                  i32),
                  constant(0x3f000000));
  llvm::Value* odd = b.CreateAnd(b.CreateLShr(magnitude, 13), constant(1));
  llvm::Value* normal = b.CreateLShr(
      b.CreateAdd(b.CreateAdd(magnitude, constant(0xc8000fffu)), odd), 13);
  llvm::Value* result = b.CreateSelect(
      b.CreateICmpULT(magnitude, constant(0x38800000)), small, normal);
  result = b.CreateSelect(b.CreateICmpUGE(magnitude, constant(0x477ff000)),
                          constant(0x7c00), result);
  result = b.CreateSelect(b.CreateICmpUGT(magnitude, constant(0x7f800000)),
                          constant(0x7e00), result);
  return b.CreateTrunc(b.CreateOr(result, sign),
                       WithLanesOf(b.getInt16Ty(), value->getType()));
}

// Float to bfloat16 bits (i16), to nearest, ties to even. With integer
// operations, because the instruction for it flushes subnormals.
llvm::Value* FloatToBFloatBits(llvm::IRBuilder<>& b, llvm::Value* value) {
  llvm::Type* i32 = WithLanesOf(b.getInt32Ty(), value->getType());
  const auto constant = [&](uint32_t v) {
    return llvm::ConstantInt::get(i32, v);
  };
  llvm::Value* bits = b.CreateBitCast(value, i32);
  llvm::Value* odd = b.CreateAnd(b.CreateLShr(bits, 16), constant(1));
  llvm::Value* rounded =
      b.CreateLShr(b.CreateAdd(bits, b.CreateAdd(odd, constant(0x7fff))), 16);
  llvm::Value* quiet = b.CreateOr(b.CreateLShr(bits, 16), constant(0x40));
  llvm::Value* result =
      b.CreateSelect(b.CreateFCmpUNO(value, value), quiet, rounded);
  return b.CreateTrunc(result, WithLanesOf(b.getInt16Ty(), value->getType()));
}

}  // namespace

llvm::Type* Emitter::MemoryType(ir::DataType dtype) {
  llvm::Type* element = nullptr;
  if (dtype.code == ir::TypeCode::kBFloat) {
    element = builder_.getInt16Ty();
  } else if (dtype.is_float()) {
    element = dtype.bits == 64   ? builder_.getDoubleTy()
              : dtype.bits == 32 ? builder_.getFloatTy()
              : Has(target::Capability::kHalfConversion)
                  ? builder_.getHalfTy()
                  : static_cast<llvm::Type*>(builder_.getInt16Ty());
  } else {
    element = builder_.getIntNTy(dtype.is_bool() ? 8 : dtype.bits);
  }
  return dtype.lanes > 1 ? llvm::FixedVectorType::get(element, dtype.lanes)
                         : element;
}

llvm::Value* Emitter::FromMemory(llvm::Value* value, ir::DataType dtype) {
  if (dtype.is_bool()) {
    return builder_.CreateICmpNE(
        value, llvm::Constant::getNullValue(value->getType()));
  }
  if (!dtype.is_float() || dtype.bits != 16) return value;
  if (dtype.code == ir::TypeCode::kBFloat) {
    llvm::Type* i32 = WithLanesOf(builder_.getInt32Ty(), value->getType());
    return builder_.CreateBitCast(
        builder_.CreateShl(builder_.CreateZExt(value, i32), 16),
        WithLanesOf(builder_.getFloatTy(), value->getType()));
  }
  if (!Has(target::Capability::kHalfConversion))
    return HalfBitsToFloat(builder_, value);
  return builder_.CreateFPExt(
      value, WithLanesOf(builder_.getFloatTy(), value->getType()));
}

llvm::Value* Emitter::ToMemory(llvm::Value* value, ir::DataType dtype) {
  if (dtype.is_bool()) {
    return builder_.CreateZExt(
        value, WithLanesOf(builder_.getInt8Ty(), value->getType()));
  }
  if (!dtype.is_float() || dtype.bits != 16) return value;
  const bool to_bfloat = dtype.code == ir::TypeCode::kBFloat;
  llvm::Value* rounded =
      device_ == nullptr ? nullptr
                         : device_->RoundTo16Bits(value, to_bfloat, builder_);
  if (rounded != nullptr) {
    return to_bfloat ? rounded
                     : builder_.CreateBitCast(
                           rounded,
                           WithLanesOf(builder_.getHalfTy(), value->getType()));
  }
  if (to_bfloat) {
    return FloatToBFloatBits(builder_, value);
  }
  if (!Has(target::Capability::kHalfConversion))
    return FloatToHalfBits(builder_, value);
  return builder_.CreateFPTrunc(
      value, WithLanesOf(builder_.getHalfTy(), value->getType()));
}

// An operator besides those of ir::BinaryOp.
constexpr int kAddress = -1;

llvm::Value* Emitter::Address(const ir::Buffer& buffer, llvm::Value* index) {
  const auto it = frame_->buffers.find(buffer.get());
  if (it == frame_->buffers.end()) {
    return Fail(absl::InternalError(absl::StrCat("buffer ", buffer->name,
                                                 " has no memory here")),
                builder_.getPtrTy());
  }
  llvm::Type* element = MemoryType(buffer->dtype.element());
  return Known({kAddress, element, it->second, index}, [&] {
    return builder_.CreateInBoundsGEP(element, it->second, index);
  });
}

llvm::Value* Emitter::AccessMask(const ir::Expr& predicate, int lanes) {
  std::vector<llvm::Value*> masks = frame_->masks;
  if (predicate != nullptr && ir::AsInt(predicate) != 1) {
    masks.push_back(Emit(predicate));
  }
  llvm::Value* all = nullptr;
  for (llvm::Value* mask : masks) {
    if (mask->getType()->isVectorTy() && lanes == 1) {
      // A scalar shared by all lanes is needed if any lane is active.
      mask = builder_.CreateOrReduce(mask);
    } else if (!mask->getType()->isVectorTy()) {
      mask = Splat(mask, lanes);
    }
    all = all == nullptr ? mask : builder_.CreateAnd(all, mask);
  }
  if (auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(all)) {
    if (constant->isAllOnesValue()) return nullptr;
  }
  return all;
}

llvm::Value* Emitter::SafeAddress(const ir::Buffer& buffer,
                                  llvm::Value* address) {
  for (llvm::Value* condition : frame_->conditions) {
    address = builder_.CreateSelect(condition, address,
                                    frame_->buffers.at(buffer.get()));
  }
  return address;
}

llvm::Value* Emitter::EmitWithoutBranch(
    llvm::Value* condition, bool is_plain, llvm::Value* otherwise,
    const std::function<llvm::Value*()>& emit) {
  if (device_ == nullptr || !device_->LoadsWithoutBranches() ||
      condition->getType()->isVectorTy() || !is_plain) {
    return nullptr;
  }
  frame_->conditions.push_back(condition);
  llvm::Value* value = emit();
  frame_->conditions.pop_back();
  return builder_.CreateSelect(condition, value, otherwise);
}

llvm::Value* Emitter::EmitLoad(const ir::LoadNode& e) {
  return FromMemory(EmitStored(e), e.buffer->dtype.element());
}

llvm::Value* Emitter::EmitStored(const ir::LoadNode& e) {
  if (e.indices.size() != 1) {
    return Fail(absl::InternalError(absl::StrCat("buffer ", e.buffer->name,
                                                 " was not flattened")),
                MemoryType(e.dtype));
  }
  const ir::Expr& index = e.indices[0];
  const int lanes = index->dtype.lanes;
  const ir::DataType element = e.buffer->dtype.element();
  llvm::Type* scalar = MemoryType(element);
  const llvm::Align align(element.bytes());
  llvm::Value* mask = AccessMask(e.predicate, lanes);
  const auto load_scalar = [&](llvm::Value* at) -> llvm::Value* {
    return builder_.CreateAlignedLoad(scalar, Address(e.buffer, at), align);
  };
  const auto guarded_scalar = [&](llvm::Value* condition,
                                  const ir::Expr& at) -> llvm::Value* {
    if (condition == nullptr) return load_scalar(Emit(at));
    return Guarded(condition, llvm::Constant::getNullValue(scalar),
                   [&] { return load_scalar(Emit(at)); });
  };
  if (lanes == 1) {
    const auto load = [&]() -> llvm::Value* {
      llvm::Value* address = SafeAddress(e.buffer, AddressAt(e.buffer, index));
      NoteSharedAccess(e.buffer, address, 1, /*write=*/false);
      return builder_.CreateAlignedLoad(scalar, address,
                                        AlignmentOf(e.buffer, index));
    };
    return mask == nullptr
               ? load()
               : Guarded(mask, llvm::Constant::getNullValue(scalar), load);
  }

  llvm::Type* type = MemoryType(element.with_lanes(lanes));
  llvm::Value* zero = llvm::Constant::getNullValue(type);
  const std::optional<RampForm> ramp = AsRamp(index);
  if (!ramp) {
    llvm::Value* addresses = Address(e.buffer, Emit(index));
    return builder_.CreateMaskedGather(type, addresses, align, mask, zero);
  }
  const std::optional<int64_t> stride = ir::AsInt(ramp->stride);
  if (stride == 0) {
    llvm::Value* any =
        mask == nullptr ? nullptr : builder_.CreateOrReduce(mask);
    llvm::Value* value = Splat(guarded_scalar(any, ramp->base), lanes);
    if (mask != nullptr) value = builder_.CreateSelect(mask, value, zero);
    return value;
  }
  if (stride == 1 || stride == -1) {
    const bool reversed = stride == -1;
    llvm::Value* address = nullptr;
    if (reversed) {
      llvm::Value* start = Emit(ramp->base);
      start = builder_.CreateSub(
          start, llvm::ConstantInt::get(start->getType(), lanes - 1));
      if (mask != nullptr) mask = Reverse(builder_, mask, lanes);
      address = Address(e.buffer, start);
    } else {
      address = SafeAddress(e.buffer, AddressAt(e.buffer, ramp->base));
    }
    if (mask == nullptr) {
      EmitPrefetch(e.buffer, index, address);
      NoteSharedAccess(e.buffer, address, lanes, /*write=*/false);
    }
    // Only tiles of a matrix unit are this wide. A tile in memory must be
    // loaded by a tile instruction to become one; locals are already in
    // registers.
    if (lanes == kTileLanes && element.bits == 32 && mask == nullptr &&
        !reversed && e.buffer->scope != "local") {
      return EmitSums(type, address);
    }
    llvm::Value* value =
        mask == nullptr
            ? static_cast<llvm::Value*>(builder_.CreateAlignedLoad(
                  type, address,
                  reversed ? align : AlignmentOf(e.buffer, ramp->base)))
            : builder_.CreateMaskedLoad(type, address, align, mask, zero);
    if (reversed) value = Reverse(builder_, value, lanes);
    return value;
  }
  if (llvm::Value* value = EmitStridedLoad(e.buffer, *ramp, lanes, mask)) {
    return value;
  }
  if (mask != nullptr) {
    llvm::Value* addresses = Address(e.buffer, Emit(index));
    return builder_.CreateMaskedGather(type, addresses, align, mask, zero);
  }
  llvm::Value* at = Emit(ramp->base);
  llvm::Value* step = Emit(ramp->stride);
  llvm::Value* value = llvm::PoisonValue::get(type);
  for (int lane = 0; lane < lanes; ++lane) {
    if (lane > 0) at = builder_.CreateAdd(at, step);
    value = builder_.CreateInsertElement(value, load_scalar(at), lane);
  }
  return value;
}

void Emitter::EmitPrefetch(const ir::Buffer& buffer, const ir::Expr& index,
                           llvm::Value* address) {
  for (Prefetch& prefetch : frame_->prefetches) {
    if (!ir::UsesVar(index, prefetch.var)) continue;
    if (!prefetch.fetched.emplace(buffer.get(), ir::ToString(index)).second) {
      continue;
    }
    EmitPrefetchOf(address, prefetch.bytes);
  }
}

void Emitter::EmitPrefetchOp(const ir::Expr& value) {
  const auto* op = ir::As<ir::MachineOpNode>(value);
  if (op == nullptr || op->op != ir::MachineOp::kPrefetch) return;
  const auto* load = ir::As<ir::LoadNode>(op->args[0]);
  EmitPrefetchOf(Address(load->buffer, Emit(load->indices[0])), 0, kL2Cache);
}

void Emitter::EmitPrefetchOf(llvm::Value* address, int64_t bytes_ahead,
                             int caches) {
  constexpr int kRead = 0, kData = 1;
  // It may be beyond the end of the buffer: no inbounds.
  builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
                           {builder_.CreateGEP(builder_.getInt8Ty(), address,
                                               builder_.getInt64(bytes_ahead)),
                            builder_.getInt32(kRead), builder_.getInt32(caches),
                            builder_.getInt32(kData)});
}

void Emitter::EmitPrefetchLines(const ir::ForNode& loop) {
  const auto found = loop.annotations.find(ir::kPrefetchLines);
  const auto* inner = ir::As<ir::ForNode>(loop.body);
  if (found == loop.annotations.end() || inner == nullptr) return;
  const ir::AttrList* list = found->second.AsList();
  std::map<std::string, int64_t> ahead;
  for (size_t i = 0; list != nullptr && i + 1 < list->size(); i += 2) {
    const std::string* name = (*list)[i].AsString();
    const std::optional<int64_t> bytes = (*list)[i + 1].AsInt();
    if (name != nullptr && bytes) ahead[*name] = *bytes;
  }
  std::set<std::pair<const ir::BufferNode*, std::string>> fetched;
  ir::PostOrderExprs(inner->body, [&](const ir::Expr& e) {
    const auto* load = ir::As<ir::LoadNode>(e);
    if (load == nullptr || load->indices.size() != 1) return;
    const auto entry = ahead.find(load->buffer->name);
    if (entry == ahead.end() || load->indices[0]->dtype.is_vector()) return;
    const ir::Expr index =
        ir::Substitute(load->indices[0], {{inner->var.get(), inner->min}});
    if (!ir::UsesVar(index, loop.var.get()) || !IsDefined(index) ||
        !fetched.emplace(load->buffer.get(), ir::ToString(index)).second) {
      return;
    }
    EmitPrefetchOf(Address(load->buffer, Emit(index)), entry->second);
  });
}

bool Emitter::IsDefined(const ir::Expr& index) const {
  bool defined = true;
  ir::PostOrderExprs(index, [&](const ir::Expr& e) {
    const auto* var = ir::As<ir::VarNode>(e);
    defined &= e->kind != ir::ExprKind::kLoad &&
               (var == nullptr || frame_->vars.contains(var));
  });
  return defined;
}

llvm::Value* Emitter::EmitCopied(const ir::StoreNode& s) {
  const ir::DataType element = s.buffer->dtype.element();
  const auto copied = ir::AsCopiedLoad(s.value);
  if (!element.is_float() || element.bits != 16 || !copied ||
      copied->load->buffer->dtype.element() != element) {
    return nullptr;
  }
  if (copied->condition == nullptr) return EmitStored(*copied->load);
  llvm::Value* condition = EmitCondition(copied->condition);
  llvm::Value* zero = llvm::Constant::getNullValue(MemoryType(s.value->dtype));
  const auto load = [&] { return EmitStored(*copied->load); };
  llvm::Value* value =
      EmitWithoutBranch(condition, IsPlainLoad(*copied->load), zero, load);
  return value != nullptr ? value : Guarded(condition, zero, load);
}

// The order of a maximum's terms is left open where NaN is among them
// (docs/decisions/compiler/float-results.md): NaN as the last one is the
// maximum.
llvm::Value* Emitter::EmitExtreme(const ir::StoreNode& s) {
  const auto* update = ir::As<ir::BinaryNode>(s.value);
  if (device_ == nullptr || !device_->HasExtremes() || update == nullptr ||
      (update->op != ir::BinaryOp::kMin && update->op != ir::BinaryOp::kMax) ||
      update->dtype.element() != ir::DataType::Float(32)) {
    return nullptr;
  }
  // max(x, 0) is no reduction.
  if (ir::As<ir::FloatConstNode>(update->b) != nullptr) return nullptr;
  if (!arith::IsElementOf(update->a, s)) return nullptr;
  llvm::Value* a = Emit(update->a);
  return builder_.CreateBinaryIntrinsic(update->op == ir::BinaryOp::kMax
                                            ? llvm::Intrinsic::maximum
                                            : llvm::Intrinsic::minimum,
                                        a, Emit(update->b));
}

void Emitter::EmitStore(const ir::StoreNode& s) {
  if (s.indices.size() != 1) {
    return Fail(absl::InternalError(
        absl::StrCat("buffer ", s.buffer->name, " was not flattened")));
  }
  const ir::Expr& index = s.indices[0];
  const int lanes = index->dtype.lanes;
  const ir::DataType element = s.buffer->dtype.element();
  const llvm::Align align(element.bytes());
  if (frame_->tile.buffer == s.buffer.get()) frame_->tile = {};
  if (lanes == 1 && s.value->dtype.is_vector()) {
    return Fail(absl::InternalError(
        absl::StrCat("a vector is stored to one element of ", s.buffer->name)));
  }
  if (EmitCopyAsync(s)) return;
  // A scalar predicate also guards the evaluation of the value.
  if (s.predicate != nullptr && !s.predicate->dtype.is_vector() &&
      ir::AsInt(s.predicate) != 1) {
    llvm::Value* condition = Emit(s.predicate);
    Guarded(condition, nullptr, [&]() -> llvm::Value* {
      EmitStore(ir::StoreNode(s.buffer, s.indices, s.value));
      return nullptr;
    });
    return;
  }
  // The store rounds.
  const auto* cast = ir::As<ir::CastNode>(s.value);
  const bool rounds = cast != nullptr && RoundsTo16Bits(*cast) &&
                      cast->value->dtype.is_float() &&
                      cast->value->dtype.bits == 32;
  llvm::Value* value = EmitCopied(s);
  if (value == nullptr) value = EmitExtreme(s);
  if (value == nullptr) {
    value = ToMemory(Emit(rounds ? cast->value : s.value), element);
  }
  if (!s.value->dtype.is_vector()) value = Splat(value, lanes);
  llvm::Value* mask = AccessMask(s.predicate, lanes);
  if (lanes == 1) {
    llvm::Value* address = AddressAt(s.buffer, index);
    NoteSharedAccess(s.buffer, address, 1, /*write=*/true);
    builder_.CreateAlignedStore(value, address, AlignmentOf(s.buffer, index));
    return;
  }
  const std::optional<RampForm> ramp = AsRamp(index);
  const std::optional<int64_t> stride =
      ramp ? ir::AsInt(ramp->stride) : std::nullopt;
  if (stride == 1 || stride == -1) {
    llvm::Value* address = nullptr;
    if (stride == -1) {
      llvm::Value* start = Emit(ramp->base);
      start = builder_.CreateSub(
          start, llvm::ConstantInt::get(start->getType(), lanes - 1));
      value = Reverse(builder_, value, lanes);
      if (mask != nullptr) mask = Reverse(builder_, mask, lanes);
      address = Address(s.buffer, start);
    } else {
      address = AddressAt(s.buffer, ramp->base);
    }
    if (mask == nullptr && streaming_ == Streaming::kStreamed && CanStream(s)) {
      EmitStreamingStore(value, address);
    } else if (mask == nullptr) {
      NoteSharedAccess(s.buffer, address, lanes, /*write=*/true);
      builder_.CreateAlignedStore(
          value, address,
          stride == -1 ? align : AlignmentOf(s.buffer, ramp->base));
    } else {
      builder_.CreateMaskedStore(value, address, align, mask);
    }
    return;
  }
  if (mask != nullptr || !ramp) {
    // Lanes are written in order, so that the last one wins.
    builder_.CreateMaskedScatter(value, Address(s.buffer, Emit(index)), align,
                                 mask);
    return;
  }
  llvm::Value* at = Emit(ramp->base);
  llvm::Value* step = Emit(ramp->stride);
  for (int lane = 0; lane < lanes; ++lane) {
    if (lane > 0) at = builder_.CreateAdd(at, step);
    builder_.CreateAlignedStore(builder_.CreateExtractElement(value, lane),
                                Address(s.buffer, at), align);
  }
}

}  // namespace tilefarm::codegen
