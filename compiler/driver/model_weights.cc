#include "compiler/driver/model_weights.h"

#include <cstring>

#include "base/status_macros.h"
#include "compiler/driver/host_functions.h"
#include "compiler/ir/structural.h"

namespace tilefarm::driver {
int64_t ModelWeights::Append(std::span<const std::byte> bytes) {
  const int64_t offset = end_;
  pieces_.push_back({offset, bytes});
  const auto size = static_cast<int64_t>(bytes.size());
  end_ += (size + alignment_ - 1) / alignment_ * alignment_;
  return offset;
}

ModelWeights::Constant& ModelWeights::Find(std::span<const std::byte> bytes) {
  std::vector<Constant>& candidates = constants_[bytes.size()];
  for (Constant& known : candidates) {
    if (known.bytes.data() == bytes.data() || bytes.empty() ||
        std::memcmp(known.bytes.data(), bytes.data(), bytes.size()) == 0) {
      return known;
    }
  }
  return candidates.emplace_back(Constant{bytes, {}});
}

int64_t ModelWeights::OffsetOf(const graph::TensorData& constant) {
  Constant& known = Find(constant.bytes());
  const auto [offset, is_new] = known.offsets.emplace("", 0);
  if (is_new) offset->second = Append(known.bytes);
  return offset->second;
}

absl::StatusOr<int64_t> ModelWeights::OffsetOfPacked(
    const graph::TensorData& constant, const ir::PrimFuncPtr& pack) {
  Constant& known = Find(constant.bytes());
  const std::string layout = ir::ProgramHash(*pack);
  const auto offset = known.offsets.find(layout);
  if (offset != known.offsets.end()) return offset->second;
  std::vector<std::byte> source(known.bytes.begin(), known.bytes.end());
  std::vector<std::byte> packed(
      static_cast<size_t>(*ir::MemoryBytes(*pack->params[1])));
  const std::vector<std::span<std::byte>> buffers = {source, packed};
  TF_RETURN_IF_ERROR(RunOnHost(*pack, buffers));
  packed_.emplace_back(std::move(packed));
  return known.offsets[layout] = Append(packed_.back().bytes());
}

}  // namespace tilefarm::driver
