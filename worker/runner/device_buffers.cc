#include "worker/runner/device_buffers.h"

#include <string.h>

#include <algorithm>

namespace tilefarm::worker {
namespace {

// Of one guard, so that all guards are small beside the memory of a device.
constexpr uint64_t kGuardBytes = uint64_t{256} << 10;
constexpr uint64_t kGuardBytesOfMany = uint64_t{16} << 10;
constexpr size_t kMany = 32;  // parameters
// What is compared at a time.
constexpr size_t kChunkBytes = size_t{8} << 20;

}  // namespace

unsigned char DeviceBuffers::Pattern(size_t param) const {
  return IsFloat(program_.buffers[param].type) ? 0xff : 0xa5;
}

uint64_t DeviceBuffers::BytesOf(size_t param) const {
  const BufferSpec& spec = program_.buffers[param];
  return spec.elements * ElementBytes(spec.type);
}

CudaResult DeviceBuffers::Allocate(uint64_t bytes, CudaAddress* address) {
  const CudaResult result = driver_.MemAlloc(address, bytes);
  if (result != 0) return result;
  allocations_.push_back(*address);
  allocated_ += bytes;
  return 0;
}

void DeviceBuffers::Free() {
  for (const CudaAddress address : allocations_) driver_.MemFree(address);
  allocations_.clear();
}

CudaResult DeviceBuffers::SetGuards(const std::vector<Buffer>& copy) const {
  for (size_t i = 0; i < copy.size(); ++i) {
    for (const CudaAddress guard :
         {copy[i].memory, copy[i].data + BytesOf(i)}) {
      const CudaResult result =
          driver_.MemsetD8Async(guard, Pattern(i), guard_bytes_, stream_);
      if (result != 0) return result;
    }
  }
  return 0;
}

CudaResult DeviceBuffers::MakeCopy(std::vector<Buffer>* copy) {
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    Buffer buffer;
    const CudaResult result =
        Allocate(BytesOf(i) + 2 * guard_bytes_, &buffer.memory);
    if (result != 0) return result;
    buffer.data = buffer.memory + guard_bytes_;
    copy->push_back(buffer);
  }
  return SetGuards(*copy);
}

CudaResult DeviceBuffers::Make(const ProgramSpec& program,
                               const DeviceLayout& layout, const char* inputs) {
  program_ = program;
  guard_bytes_ =
      program.buffers.size() > kMany ? kGuardBytesOfMany : kGuardBytes;
  initial_.assign(program.buffers.size(), 0);
  std::vector<Buffer> first;
  CudaResult result = MakeCopy(&first);
  for (size_t i = 0; i < program.buffers.size() && result == 0; ++i) {
    const BufferSpec& spec = program.buffers[i];
    bytes_ += BytesOf(i);
    if (!spec.read) continue;
    const bool in_place = spec.written;
    in_place_ |= in_place;
    CudaAddress target = first[i].data;
    if (in_place) {
      result = Allocate(BytesOf(i), &initial_[i]);
      if (result != 0) break;
      target = initial_[i];
    }
    result = driver_.MemcpyHtoD(target, inputs + layout.inputs[i], BytesOf(i));
  }
  // The copies from pageable memory may still be under way, and our stream does
  // not wait for them.
  if (result == 0) result = driver_.CtxSynchronize();
  if (result != 0) return result;
  copies_.push_back(std::move(first));
  return Restore();
}

CudaResult DeviceBuffers::Restore() {
  const std::vector<Buffer>& first = copies_.front();
  CudaResult result = SetGuards(first);
  for (size_t i = 0; i < first.size() && result == 0; ++i) {
    const BufferSpec& spec = program_.buffers[i];
    if (!spec.written) continue;
    result = spec.read ? driver_.MemcpyDtoDAsync(first[i].data, initial_[i],
                                                 BytesOf(i), stream_)
                       : driver_.MemsetD8Async(first[i].data, Pattern(i),
                                               BytesOf(i), stream_);
  }
  return result;
}

CudaResult DeviceBuffers::KeepOutputs(const DeviceLayout& layout,
                                      char* outputs) const {
  CudaResult result = driver_.StreamSynchronize(stream_);
  size_t output = 0;
  for (size_t i = 0; i < program_.buffers.size() && result == 0; ++i) {
    if (!program_.buffers[i].written) continue;
    result = driver_.MemcpyDtoH(outputs + layout.outputs[output++],
                                copies_.front()[i].data, BytesOf(i));
  }
  return result;
}

CudaResult DeviceBuffers::FindDamage(const DeviceLayout& layout,
                                     const char* inputs,
                                     std::string* damage) const {
  damage->clear();
  CudaResult result = driver_.StreamSynchronize(stream_);
  if (result != 0) return result;
  const std::vector<Buffer>& first = copies_.front();
  std::vector<char> found(kChunkBytes);
  for (size_t i = 0; i < first.size(); ++i) {
    const std::string name = "parameter " + std::to_string(i);
    const std::vector<char> pattern(guard_bytes_,
                                    static_cast<char>(Pattern(i)));
    for (const bool after : {false, true}) {
      const CudaAddress guard =
          after ? first[i].data + BytesOf(i) : first[i].memory;
      result = driver_.MemcpyDtoH(found.data(), guard, guard_bytes_);
      if (result != 0) return result;
      if (memcmp(found.data(), pattern.data(), guard_bytes_) == 0) continue;
      // The byte that is nearest to the buffer.
      uint64_t at = 0;
      for (uint64_t byte = 0; byte < guard_bytes_; ++byte) {
        const uint64_t from_buffer = after ? byte : guard_bytes_ - 1 - byte;
        at = byte + 1;
        if (found[from_buffer] != pattern[0]) break;
      }
      *damage = "writes outside " + name + ", " + std::to_string(at) +
                " bytes " + (after ? "past its end" : "before its start");
      return 0;
    }
    const BufferSpec& spec = program_.buffers[i];
    if (!spec.read || spec.written) continue;
    for (uint64_t at = 0; at < BytesOf(i); at += kChunkBytes) {
      const size_t bytes = std::min<uint64_t>(kChunkBytes, BytesOf(i) - at);
      result = driver_.MemcpyDtoH(found.data(), first[i].data + at, bytes);
      if (result != 0) return result;
      if (memcmp(found.data(), inputs + layout.inputs[i] + at, bytes) != 0) {
        *damage = "writes to " + name + ", which is an input";
        return 0;
      }
    }
  }
  return 0;
}

CudaResult DeviceBuffers::Multiply(size_t count) {
  while (copies_.size() < count) {
    size_t free_bytes = 0;
    size_t all = 0;
    CudaResult result = driver_.MemGetInfo(&free_bytes, &all);
    if (result != 0) return result;
    const uint64_t needed = bytes_ + 2 * guard_bytes_ * program_.buffers.size();
    if (free_bytes / 2 < needed) return 0;
    std::vector<Buffer> copy;
    result = MakeCopy(&copy);
    for (size_t i = 0; i < copy.size() && result == 0; ++i) {
      result = driver_.MemcpyDtoDAsync(copy[i].data, copies_.front()[i].data,
                                       BytesOf(i), stream_);
    }
    if (result != 0) return result;
    copies_.push_back(std::move(copy));
  }
  return 0;
}

void* DeviceBuffers::address(size_t copy, size_t param) const {
  return reinterpret_cast<void*>(
      static_cast<uintptr_t>(copies_[copy][param].data));
}

}  // namespace tilefarm::worker
