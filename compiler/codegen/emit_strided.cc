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
  // Without mask registers, rearranging a mask costs as much as it saves.
  if (mask != nullptr && !llvm::isa<llvm::Constant>(mask) &&
      options_.target.vector_bits < 512) {
    return nullptr;
  }

  llvm::Value* start = Emit(ramp.base);
  llvm::Type* scalar = MemoryType(element);
  const llvm::Align align(element.bytes());
  // One register, of the lanes [first, first + count).
  const auto part = [&](int first, int count) {
    const int span = stride * (count - 1) + 1;
    auto* type =
        llvm::FixedVectorType::get(scalar, static_cast<unsigned>(count));
    llvm::Value* value = llvm::Constant::getNullValue(type);
    for (int window = 0; window * count < span; ++window) {
      // The elements [at, at + count) from the first lane.
      const int at = mask == nullptr ? std::min(window * count, span - count)
                                     : window * count;
      llvm::Value* address = Address(
          buffer, builder_.CreateAdd(
                      start, llvm::ConstantInt::get(start->getType(),
                                                    stride * first + at)));
      // The lanes that this load has, then those that are there already.
      std::vector<int> order(static_cast<size_t>(count));
      // For each element, the lane whose mask counts; `lanes`: none.
      std::vector<int> owner(static_cast<size_t>(count), lanes);
      for (int lane = 0; lane < count; ++lane) {
        const int position = stride * lane - at;
        const bool here = position < count && stride * lane >= window * count;
        order[static_cast<size_t>(lane)] = here ? count + position : lane;
        if (here) owner[static_cast<size_t>(position)] = first + lane;
      }
      llvm::Value* loaded = nullptr;
      if (mask == nullptr) {
        loaded = builder_.CreateAlignedLoad(type, address, align);
      } else {
        llvm::Value* wanted = builder_.CreateShuffleVector(
            mask, llvm::Constant::getNullValue(mask->getType()), owner);
        const auto* known = llvm::dyn_cast<llvm::Constant>(wanted);
        if (known != nullptr && known->isNullValue()) continue;
        loaded = builder_.CreateMaskedLoad(type, address, align, wanted,
                                           llvm::Constant::getNullValue(type));
      }
      value = builder_.CreateShuffleVector(value, loaded, order);
    }
    return value;
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
