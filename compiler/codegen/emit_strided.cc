// Loads of vectors whose lanes are a few elements apart: contiguous loads of
// everything between the first and the last lane, and shuffles.
//
//   A[0] A[2] A[4] A[6]  <-  [A0 A1 A2 A3] [A3 A4 A5 A6]
//
// Nothing outside of the first and last lane is read: the last load ends with
// the last lane. Under a mask, only the lanes that exist are read.
#include <algorithm>
#include <numeric>
#include <vector>

#include "compiler/codegen/emitter.h"
#include "compiler/target/strided_loads.h"
#include "llvm/IR/Constants.h"

namespace tilefarm::codegen {
namespace {

// Which lanes exist. Empty: not known while compiling.
std::vector<bool> LanesOf(const llvm::Value* mask, int lanes) {
  if (mask == nullptr)
    return std::vector<bool>(static_cast<size_t>(lanes), true);
  const auto* constant = llvm::dyn_cast<llvm::Constant>(mask);
  std::vector<bool> known;
  for (int lane = 0; constant != nullptr && lane < lanes; ++lane) {
    const llvm::Constant* bit =
        constant->getAggregateElement(static_cast<unsigned>(lane));
    if (!llvm::isa_and_nonnull<llvm::ConstantInt>(bit)) return {};
    known.push_back(bit->isOneValue());
  }
  return known;
}

}  // namespace

llvm::Value* Emitter::EmitStridedLoad(const ir::Buffer& buffer,
                                      const RampForm& ramp, int lanes,
                                      llvm::Value* mask) {
  const ir::DataType element = buffer->dtype.element();
  const int stride = static_cast<int>(ir::AsInt(ramp.stride).value_or(0));
  const int width =
      std::min(lanes, options_.target.vector_lanes(element.bytes()));
  // A register with one lane has no room between lanes.
  if (stride < 2 || stride > target::kMostLoadsOfStrided || width < 2 ||
      lanes % width == 1) {
    return nullptr;
  }
  const std::vector<bool> exists = LanesOf(mask, lanes);
  if (exists.empty()) return nullptr;

  llvm::Value* start = Emit(ramp.base);
  llvm::Type* scalar = MemoryType(element);
  const llvm::Align align(element.bytes());
  // Elements [at, at + count) from the first lane, of which those in `wanted`
  // are read.
  const auto load = [&](int at, const std::vector<bool>& wanted) {
    const auto count = static_cast<unsigned>(wanted.size());
    auto* type = llvm::FixedVectorType::get(scalar, count);
    llvm::Value* address = Address(
        buffer, builder_.CreateAdd(
                    start, llvm::ConstantInt::get(start->getType(), at)));
    if (mask == nullptr) {
      return static_cast<llvm::Value*>(
          builder_.CreateAlignedLoad(type, address, align));
    }
    std::vector<llvm::Constant*> bits;
    for (const bool bit : wanted) bits.push_back(builder_.getInt1(bit));
    return static_cast<llvm::Value*>(builder_.CreateMaskedLoad(
        type, address, align, llvm::ConstantVector::get(bits),
        llvm::Constant::getNullValue(type)));
  };

  // One register, of the lanes [first, first + count).
  const auto part = [&](int first, int count) {
    const int span = stride * (count - 1) + 1;
    auto* type =
        llvm::FixedVectorType::get(scalar, static_cast<unsigned>(count));
    llvm::Value* value = llvm::Constant::getNullValue(type);
    bool is_empty = true;
    for (int window = 0; window * count < span; ++window) {
      const int at = mask == nullptr ? std::min(window * count, span - count)
                                     : window * count;
      std::vector<bool> wanted(static_cast<size_t>(count));
      // The lanes that this load has, then those that are there already.
      std::vector<int> order(static_cast<size_t>(count));
      bool any = false;
      for (int lane = 0; lane < count; ++lane) {
        const int position = stride * lane - at;
        const bool here = position >= 0 && position < count &&
                          stride * lane >= window * count &&
                          exists[static_cast<size_t>(first + lane)];
        order[static_cast<size_t>(lane)] = here ? count + position : lane;
        if (here) wanted[static_cast<size_t>(position)] = true;
        any |= here;
      }
      if (!any) continue;
      llvm::Value* loaded = load(stride * first + at, wanted);
      value = builder_.CreateShuffleVector(value, loaded, order);
      is_empty = false;
    }
    return is_empty
               ? static_cast<llvm::Value*>(llvm::Constant::getNullValue(type))
               : value;
  };

  llvm::Value* value = part(0, width);
  for (int first = width; first < lanes; first += width) {
    const int count = std::min(width, lanes - first);
    llvm::Value* next = part(first, count);
    if (count < first) {
      // Both operands of a shuffle have one type.
      std::vector<int> longer(static_cast<size_t>(first), llvm::PoisonMaskElem);
      std::iota(longer.begin(), longer.begin() + count, 0);
      next = builder_.CreateShuffleVector(next, longer);
    }
    std::vector<int> order(static_cast<size_t>(first + count));
    std::iota(order.begin(), order.end(), 0);
    value = builder_.CreateShuffleVector(value, next, order);
  }
  return value;
}

}  // namespace tilefarm::codegen
