// Rows of a tile that is read by columns (ir::MachineOp::kTransposed):
//
//   one vector per lane: the elements from its address on
//   within 16 bytes:   pairs of vectors are interleaved, chunks of 1, 2, ...
//                      elements (punpck, unpck, zip)
//   between them:      even and odd groups of 16 bytes (vshuff32x4, vperm2f128)
//
// n log2(n) shuffles for n rows, instead of n * n loads of single lanes.
#include <algorithm>
#include <bit>
#include <vector>

#include "compiler/codegen/emitter.h"

namespace tilefarm::codegen {
namespace {

constexpr int kGroupBytes = 16;

// Interleaves chunks of a and b within each group of `group` elements: those of
// their lower halves, or of their upper halves.
std::vector<int> Zip(int lanes, int group, int chunk, bool upper) {
  std::vector<int> order;
  for (int at = 0; at < lanes; at += group) {
    const int half = at + (upper ? group / 2 : 0);
    for (int i = half; i < half + group / 2; i += chunk) {
      for (int vector = 0; vector < 2; ++vector) {
        for (int j = 0; j < chunk; ++j) order.push_back(vector * lanes + i + j);
      }
    }
  }
  return order;
}

// The even groups of a and of b, or the odd groups.
std::vector<int> Unzip(int lanes, int group, bool odd) {
  std::vector<int> order;
  for (int vector = 0; vector < 2; ++vector) {
    for (int at = odd ? group : 0; at < lanes; at += 2 * group) {
      for (int j = 0; j < group; ++j) order.push_back(vector * lanes + at + j);
    }
  }
  return order;
}

// Combines vectors at `distance` in pairs; the first result of a pair replaces
// its first vector.
template <typename Shuffle>
void Butterfly(std::vector<llvm::Value*>& vectors, int distance,
               Shuffle shuffle) {
  for (int i = 0; i < static_cast<int>(vectors.size()); ++i) {
    if ((i & distance) != 0) continue;
    llvm::Value* a = vectors[i];
    llvm::Value* b = vectors[i + distance];
    vectors[i] = shuffle(a, b, false);
    vectors[i + distance] = shuffle(a, b, true);
  }
}

}  // namespace

llvm::Value* Emitter::EmitTransposed(const ir::MachineOpNode& e) {
  const auto* load = ir::As<ir::LoadNode>(e.args[1]);
  const std::optional<int64_t> row = ir::AsInt(e.args[0]);
  const std::optional<RampForm> ramp =
      load == nullptr ? std::nullopt : AsRamp(load->indices[0]);
  if (!row || !ramp) {
    return Fail(absl::InternalError("a row of no tile"), RegisterType(e.dtype));
  }
  if (!frame_->masks.empty()) {
    return Fail(absl::InternalError("a row of a tile under a mask"),
                RegisterType(e.dtype));
  }
  const ir::DataType element = load->buffer->dtype.element();
  const int lanes = e.dtype.lanes;
  llvm::Value* base = Emit(ramp->base);
  llvm::Value* step = Emit(ramp->stride);
  Tile& tile = frame_->tile;
  if (tile.columns.empty() || tile.buffer != load->buffer.get() ||
      tile.block != builder_.GetInsertBlock() || tile.base != base ||
      tile.step != step || static_cast<int>(tile.columns.size()) != lanes) {
    tile = {load->buffer.get(), builder_.GetInsertBlock(), base, step, {}};
    llvm::Type* type = MemoryType(element.with_lanes(lanes));
    for (int lane = 0; lane < lanes; ++lane) {
      tile.columns.push_back(builder_.CreateAlignedLoad(
          type, Address(load->buffer, base), llvm::Align(element.bytes())));
      if (lane + 1 < lanes) base = builder_.CreateAdd(base, step);
    }
    Transpose(tile.columns, element.bytes());
  }
  return FromMemory(tile.columns[*row], element);
}

void Emitter::Transpose(std::vector<llvm::Value*>& rows, int bytes) {
  const int lanes = static_cast<int>(rows.size());
  const int group = std::min(lanes, kGroupBytes / bytes);
  const auto shuffle = [&](llvm::Value* a, llvm::Value* b,
                           std::vector<int> order) {
    return builder_.CreateShuffleVector(a, b, order);
  };
  for (int chunk = 1; chunk < group; chunk *= 2) {
    Butterfly(rows, chunk, [&](llvm::Value* a, llvm::Value* b, bool upper) {
      return shuffle(a, b, Zip(lanes, group, chunk, upper));
    });
  }
  for (int distance = group; distance < lanes; distance *= 2) {
    Butterfly(rows, distance, [&](llvm::Value* a, llvm::Value* b, bool odd) {
      return shuffle(a, b, Unzip(lanes, group, odd));
    });
  }
  // Within a group, the last step chose between neighbours, so the bits of the
  // row numbers are in reverse order.
  std::vector<llvm::Value*> ordered(lanes);
  const int bits = std::countr_zero(static_cast<unsigned>(group));
  for (int i = 0; i < lanes; ++i) {
    int reversed = 0;
    for (int bit = 0; bit < bits; ++bit) {
      if ((i >> bit & 1) != 0) reversed |= 1 << (bits - 1 - bit);
    }
    ordered[i - i % group + reversed] = rows[i];
  }
  rows = std::move(ordered);
}

}  // namespace tilefarm::codegen
