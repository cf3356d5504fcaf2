// Indices of kernels in 32 bits. A GPU has no instructions for 64-bit integers:
// a sum takes two, a product four, and a division by a constant ten. Where the
// range of an index fits, it is computed in 32 bits and then extended, and
// where it cannot be negative, divided without signs.
//
// Ranges come from the constants, the extents of threads and loops, and
// operators, one by one; conditions are not used.
#include <algorithm>
#include <bit>
#include <initializer_list>

#include "compiler/codegen/emitter.h"

namespace tilefarm::codegen {
namespace {

using Range = Emitter::IndexRange;

// The ends are below 2^31, so that no end of a result overflows.
std::optional<Range> RangeOf(ir::BinaryOp op, Range a, Range b) {
  using ir::BinaryOp;
  const auto spanned = [](std::initializer_list<int64_t> ends) {
    return Range{std::min(ends), std::max(ends)};
  };
  const bool positive = a.lo >= 0 && b.lo >= 0;
  // Below the next power of two.
  const auto by_bits = [](int64_t most) {
    return (int64_t{1} << std::bit_width(static_cast<uint64_t>(most))) - 1;
  };
  const auto floor_of = [&](int64_t x) {
    return x / b.lo - (x % b.lo < 0 ? 1 : 0);
  };
  const bool by_constant = b.lo == b.hi && b.lo > 0;
  switch (op) {
    case BinaryOp::kAdd:
      return Range{a.lo + b.lo, a.hi + b.hi};
    case BinaryOp::kSub:
      return Range{a.lo - b.hi, a.hi - b.lo};
    case BinaryOp::kMul:
      return spanned({a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi});
    case BinaryOp::kDiv:
      if (!by_constant) return std::nullopt;
      return Range{a.lo / b.lo, a.hi / b.lo};
    case BinaryOp::kFloorDiv:
      if (!by_constant) return std::nullopt;
      return Range{floor_of(a.lo), floor_of(a.hi)};
    case BinaryOp::kMod:
      if (!by_constant) return std::nullopt;
      return Range{a.lo < 0 ? 1 - b.lo : 0, a.hi > 0 ? b.lo - 1 : 0};
    case BinaryOp::kFloorMod:
      if (!by_constant) return std::nullopt;
      if (a.lo >= 0) return Range{0, std::min(a.hi, b.lo - 1)};
      return Range{0, b.lo - 1};
    case BinaryOp::kMin:
      return Range{std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    case BinaryOp::kMax:
      return Range{std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    case BinaryOp::kBitAnd:
      if (!positive) return std::nullopt;
      return Range{0, std::min(a.hi, b.hi)};
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
      if (!positive) return std::nullopt;
      return Range{0, by_bits(std::max(a.hi, b.hi))};
    case BinaryOp::kShiftLeft:
      if (!positive || b.hi > 30) return std::nullopt;
      return Range{a.lo << b.lo, a.hi << b.hi};
    case BinaryOp::kShiftRight:
      if (!positive || b.hi > 30) return std::nullopt;
      return Range{a.lo >> b.hi, a.hi >> b.lo};
    default:
      return std::nullopt;
  }
}

bool Divides(ir::BinaryOp op) {
  using ir::BinaryOp;
  return op == BinaryOp::kDiv || op == BinaryOp::kMod ||
         op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
}

}  // namespace

std::optional<Emitter::IndexRange> Emitter::NarrowRange(
    llvm::Value* index) const {
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(index)) {
    if (!constant->getValue().isSignedIntN(32)) return std::nullopt;
    return Range{constant->getSExtValue(), constant->getSExtValue()};
  }
  const auto found = frame_->ranges.find(index);
  if (found == frame_->ranges.end()) return std::nullopt;
  return found->second;
}

llvm::Value* Emitter::Narrowed(llvm::Value* index) {
  // Of an extension, what was extended.
  if (auto* extension = llvm::dyn_cast<llvm::CastInst>(index)) {
    if (extension->getSrcTy()->isIntegerTy(32)) return extension->getOperand(0);
  }
  return builder_.CreateTrunc(index, builder_.getInt32Ty());
}

llvm::Value* Emitter::Extended(llvm::Value* word, IndexRange range) {
  llvm::Type* type = builder_.getInt64Ty();
  llvm::Value* index =
      range.lo >= 0 ? builder_.CreateZExt(word, type, "", /*IsNonNeg=*/true)
                    : builder_.CreateSExt(word, type);
  if (!llvm::isa<llvm::Constant>(index)) frame_->ranges[index] = range;
  return index;
}

llvm::Value* Emitter::EmitNarrow(ir::BinaryOp op, llvm::Value* a,
                                 llvm::Value* b) {
  if (device_ == nullptr) return nullptr;
  const std::optional<IndexRange> left = NarrowRange(a), right = NarrowRange(b);
  if (!left || !right) return nullptr;
  const auto word = [&](ir::DataType dtype) {
    return EmitBinary(op, dtype, Narrowed(a), Narrowed(b));
  };
  if (ir::IsComparison(op)) return word(ir::DataType::Int(32));
  const std::optional<IndexRange> range = RangeOf(op, *left, *right);
  if (!range || !range->Fits(32)) return nullptr;
  // Neither overflows.
  if (op == ir::BinaryOp::kAdd) {
    return Extended(builder_.CreateNSWAdd(Narrowed(a), Narrowed(b)), *range);
  }
  if (op == ir::BinaryOp::kMul) {
    return Extended(builder_.CreateNSWMul(Narrowed(a), Narrowed(b)), *range);
  }
  const bool without_sign = Divides(op) && left->lo >= 0;
  return Extended(
      word(without_sign ? ir::DataType::UInt(32) : ir::DataType::Int(32)),
      *range);
}

std::optional<Emitter::IndexRange> Emitter::CounterRange(
    llvm::Value* min, llvm::Value* extent) const {
  const bool short_addresses =
      module_.getDataLayout().getPointerSizeInBits() == 32;
  if ((device_ == nullptr && !short_addresses) ||
      !min->getType()->isIntegerTy(64)) {
    return std::nullopt;
  }
  const std::optional<IndexRange> first = NarrowRange(min),
                                  count = NarrowRange(extent);
  if (!first || !count) return std::nullopt;
  // The end has 32 bits, too.
  const IndexRange all{first->lo, first->hi + std::max<int64_t>(count->hi, 0)};
  if (!all.Fits(32)) return std::nullopt;
  return IndexRange{all.lo, std::max(all.lo, all.hi - 1)};
}

llvm::Value* Emitter::EmitIndexSelect(llvm::Value* condition, llvm::Value* a,
                                      llvm::Value* b) {
  const std::optional<IndexRange> left = NarrowRange(a), right = NarrowRange(b);
  if (device_ == nullptr || !a->getType()->isIntegerTy(64) || !left || !right) {
    return builder_.CreateSelect(condition, a, b);
  }
  return Extended(
      builder_.CreateSelect(condition, Narrowed(a), Narrowed(b)),
      {std::min(left->lo, right->lo), std::max(left->hi, right->hi)});
}

}  // namespace tilefarm::codegen
