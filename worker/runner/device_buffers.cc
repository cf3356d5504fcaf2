#include "worker/runner/device_buffers.h"

#include <string.h>

#include <algorithm>
#include <utility>

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

DeviceError DeviceBuffers::Allocate(uint64_t guard_bytes, uint64_t data_bytes,
                                    DeviceMemory* memory) {
  if (const DeviceError error =
          device_.Allocate(guard_bytes, data_bytes, memory)) {
    return error;
  }
  allocations_.push_back(*memory);
  allocated_ += memory->bytes();
  return {};
}

void DeviceBuffers::Free() {
  for (const DeviceMemory& memory : allocations_) device_.Free(memory);
  allocations_.clear();
}

DeviceError DeviceBuffers::SetGuards(
    const std::vector<DeviceMemory>& copy) const {
  for (size_t i = 0; i < copy.size(); ++i) {
    for (const uint64_t guard : {uint64_t{0}, guard_bytes_ + BytesOf(i)}) {
      if (const DeviceError error =
              device_.Fill(copy[i], guard, guard_bytes_, Pattern(i))) {
        return error;
      }
    }
  }
  return {};
}

DeviceError DeviceBuffers::MakeCopy(std::vector<DeviceMemory>* copy) {
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    DeviceMemory memory;
    if (const DeviceError error = Allocate(guard_bytes_, BytesOf(i), &memory)) {
      return error;
    }
    copy->push_back(memory);
  }
  return SetGuards(*copy);
}

DeviceError DeviceBuffers::Make(const ProgramSpec& program,
                                const DeviceLayout& layout,
                                const char* inputs) {
  program_ = program;
  const uint64_t alignment = device_.properties().alignment;
  guard_bytes_ =
      program.buffers.size() > kMany ? kGuardBytesOfMany : kGuardBytes;
  guard_bytes_ = (guard_bytes_ + alignment - 1) / alignment * alignment;
  initial_.assign(program.buffers.size(), DeviceMemory());
  std::vector<DeviceMemory> first;
  if (const DeviceError error = MakeCopy(&first)) return error;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const BufferSpec& spec = program.buffers[i];
    bytes_ += BytesOf(i);
    if (!spec.read) continue;
    const bool in_place = spec.written;
    in_place_ |= in_place;
    if (in_place) {
      if (const DeviceError error = Allocate(0, BytesOf(i), &initial_[i])) {
        return error;
      }
    }
    const DeviceMemory& target = in_place ? initial_[i] : first[i];
    if (const DeviceError error =
            device_.Write(inputs + layout.inputs[i], target, target.guard_bytes,
                          BytesOf(i))) {
      return error;
    }
  }
  if (const DeviceError error = device_.WaitForAll()) return error;
  copies_.push_back(std::move(first));
  return Restore();
}

DeviceError DeviceBuffers::Restore() {
  const std::vector<DeviceMemory>& first = copies_.front();
  if (const DeviceError error = SetGuards(first)) return error;
  for (size_t i = 0; i < first.size(); ++i) {
    const BufferSpec& spec = program_.buffers[i];
    if (!spec.written) continue;
    if (const DeviceError error = spec.read
                                      ? device_.Copy(initial_[i], first[i])
                                      : device_.Fill(first[i], guard_bytes_,
                                                     BytesOf(i), Pattern(i))) {
      return error;
    }
  }
  return {};
}

DeviceError DeviceBuffers::KeepOutputs(const DeviceLayout& layout,
                                       char* outputs) const {
  if (const DeviceError error = device_.Wait()) return error;
  size_t output = 0;
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    if (!program_.buffers[i].written) continue;
    if (const DeviceError error =
            device_.Read(copies_.front()[i], guard_bytes_, BytesOf(i),
                         outputs + layout.outputs[output++])) {
      return error;
    }
  }
  return {};
}

DeviceError DeviceBuffers::FindDamage(const DeviceLayout& layout,
                                      const char* inputs,
                                      std::string* damage) const {
  damage->clear();
  if (const DeviceError error = device_.Wait()) return error;
  const std::vector<DeviceMemory>& first = copies_.front();
  std::vector<char> found(std::max<size_t>(kChunkBytes, guard_bytes_));
  for (size_t i = 0; i < first.size(); ++i) {
    const std::string name = "parameter " + std::to_string(i);
    const std::vector<char> pattern(guard_bytes_,
                                    static_cast<char>(Pattern(i)));
    for (const bool after : {false, true}) {
      if (const DeviceError error =
              device_.Read(first[i], after ? guard_bytes_ + BytesOf(i) : 0,
                           guard_bytes_, found.data())) {
        return error;
      }
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
      return {};
    }
    const BufferSpec& spec = program_.buffers[i];
    if (!spec.read || spec.written) continue;
    for (uint64_t at = 0; at < BytesOf(i); at += kChunkBytes) {
      const size_t bytes = std::min<uint64_t>(kChunkBytes, BytesOf(i) - at);
      if (const DeviceError error =
              device_.Read(first[i], guard_bytes_ + at, bytes, found.data())) {
        return error;
      }
      if (memcmp(found.data(), inputs + layout.inputs[i] + at, bytes) != 0) {
        *damage = "writes to " + name + ", which is an input";
        return {};
      }
    }
  }
  return {};
}

DeviceError DeviceBuffers::Multiply(size_t count) {
  while (copies_.size() < count) {
    uint64_t free_bytes = 0;
    if (const DeviceError error = device_.FreeBytes(&free_bytes)) return error;
    const uint64_t needed = bytes_ + 2 * guard_bytes_ * program_.buffers.size();
    if (free_bytes / 2 < needed) return {};
    std::vector<DeviceMemory> copy;
    if (const DeviceError error = MakeCopy(&copy)) return error;
    for (size_t i = 0; i < copy.size(); ++i) {
      if (const DeviceError error = device_.Copy(copies_.front()[i], copy[i])) {
        return error;
      }
    }
    copies_.push_back(std::move(copy));
  }
  return {};
}

}  // namespace tilefarm::worker
