// What the driver checks when it describes tensors for the copy engine (CUDA
// driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col).
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "tests/gpu/ptx/ptx_machine.h"
#include "tests/gpu/ptx/ptx_warp.h"

namespace tilefarm::ptx {
namespace {

// Bytes: of what the map and its rows and strides are multiples.
constexpr uintptr_t kMapAlignment = 64;
constexpr uint64_t kMapUnit = 16;

// What both kinds of maps say of the tensor. nullopt: invalid.
std::optional<TensorMap> DescribeTensor(const void* map, unsigned element_type,
                                        unsigned dims, uint64_t address,
                                        const uint64_t* sizes,
                                        const uint64_t* strides,
                                        unsigned interleave, unsigned swizzle,
                                        unsigned fill) {
  // CUtensorMapDataType: u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16.
  static constexpr std::array<uint8_t, 10> kBytes = {1, 2, 4, 4, 8,
                                                     8, 2, 4, 8, 2};
  constexpr unsigned kSwizzle128 = 3;
  constexpr uint64_t kMostStride = uint64_t{1} << 40;
  if (map == nullptr || element_type >= kBytes.size() || dims < 1 ||
      dims > TensorMap::kMostDims || address % kMapUnit != 0 ||
      interleave != 0 || swizzle != kSwizzle128 || fill != 0 ||
      reinterpret_cast<uintptr_t>(map) % kMapAlignment != 0) {
    return std::nullopt;
  }
  TensorMap out;
  out.magic = TensorMap::kMagic;
  out.element_bytes = kBytes[element_type];
  out.dims = static_cast<uint8_t>(dims);
  out.address = address;
  out.strides[0] = out.element_bytes;
  for (unsigned d = 0; d < dims; ++d) {
    out.sizes[d] = sizes[d];
    if (sizes[d] == 0 || sizes[d] > uint64_t{1} << 32) return std::nullopt;
    if (d == 0) continue;
    out.strides[d] = strides[d - 1];
    if (strides[d - 1] % kMapUnit != 0 || strides[d - 1] >= kMostStride) {
      return std::nullopt;
    }
  }
  return out;
}

int WriteMap(const TensorMap& described, void* map) {
  const uint32_t row = described.box[0] * described.element_bytes;
  if (row % kMapUnit != 0 || row > 128) return 1;
  std::memset(map, 0, 128);
  std::memcpy(map, &described, sizeof(described));
  return 0;
}

}  // namespace

int EncodeTensorMap(void* map, unsigned element_type, unsigned dims,
                    uint64_t address, const uint64_t* sizes,
                    const uint64_t* strides, const unsigned* box,
                    const unsigned* element_strides, unsigned interleave,
                    unsigned swizzle, unsigned fill) {
  std::optional<TensorMap> out =
      DescribeTensor(map, element_type, dims, address, sizes, strides,
                     interleave, swizzle, fill);
  if (!out) return 1;
  for (unsigned d = 0; d < dims; ++d) {
    if (box[d] == 0 || box[d] > 256 || element_strides[d] != 1) return 1;
    out->box[d] = static_cast<uint16_t>(box[d]);
  }
  return WriteMap(*out, map);
}

int EncodeWindowMap(void* map, unsigned element_type, unsigned dims,
                    uint64_t address, const uint64_t* sizes,
                    const uint64_t* strides, const int* lower, const int* upper,
                    unsigned channels, unsigned pixels,
                    const unsigned* element_strides, unsigned interleave,
                    unsigned swizzle, unsigned fill) {
  std::optional<TensorMap> out =
      DescribeTensor(map, element_type, dims, address, sizes, strides,
                     interleave, swizzle, fill);
  if (!out || dims < 3 || channels == 0 || channels > 256 || pixels == 0 ||
      pixels > 1024) {
    return 1;
  }
  out->im2col = 1;
  out->box[0] = static_cast<uint16_t>(channels);
  out->box[dims - 1] = static_cast<uint16_t>(pixels);
  for (unsigned d = 1; d + 1 < dims; ++d) out->box[d] = 1;
  // Of the corners of a tensor with 1, 2 or 3 spatial dimensions.
  static constexpr std::array<int, 3> kMost = {32767, 127, 15};
  for (unsigned i = 0; i + 2 < dims; ++i) {
    const int most = kMost[dims - 3];
    if (std::min(lower[i], upper[i]) < -most - 1 ||
        std::max(lower[i], upper[i]) > most) {
      return 1;
    }
    out->lower[i] = static_cast<int16_t>(lower[i]);
    out->upper[i] = static_cast<int16_t>(upper[i]);
    if (element_strides[i + 1] < 1 || element_strides[i + 1] > 8) return 1;
    out->steps[i] = static_cast<uint8_t>(element_strides[i + 1]);
    // The bounding box has a pixel.
    if (static_cast<int64_t>(sizes[i + 1]) + upper[i] <= lower[i]) return 1;
  }
  return WriteMap(*out, map);
}

}  // namespace tilefarm::ptx
