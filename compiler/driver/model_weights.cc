#include "compiler/driver/model_weights.h"

#include "base/status_macros.h"
#include "compiler/driver/host_functions.h"
#include "compiler/ir/structural.h"

namespace tilefarm::driver {
namespace {

constexpr int64_t kAlignment = 64;

}  // namespace

int64_t ModelWeights::Append(std::span<const std::byte> bytes) {
  const int64_t offset = end_;
  pieces_.push_back({offset, bytes});
  const auto size = static_cast<int64_t>(bytes.size());
  end_ += (size + kAlignment - 1) / kAlignment * kAlignment;
  return offset;
}

int64_t ModelWeights::OffsetOf(graph::ValueId id) {
  const std::span<const std::byte> bytes = graph_.values[id].constant->bytes();
  const Key key{{bytes.data(), bytes.size()}, ""};
  const auto known = offsets_.find(key);
  if (known != offsets_.end()) return known->second;
  return offsets_[key] = Append(bytes);
}

absl::StatusOr<int64_t> ModelWeights::OffsetOfPacked(
    graph::ValueId id, const ir::PrimFuncPtr& pack) {
  const std::span<const std::byte> bytes = graph_.values[id].constant->bytes();
  const Key key{{bytes.data(), bytes.size()}, ir::ProgramHash(*pack)};
  const auto known = offsets_.find(key);
  if (known != offsets_.end()) return known->second;
  std::vector<std::byte> source(bytes.begin(), bytes.end());
  std::vector<std::byte> packed(
      static_cast<size_t>(*ir::MemoryBytes(*pack->params[1])));
  const std::vector<std::span<std::byte>> buffers = {source, packed};
  TF_RETURN_IF_ERROR(RunOnHost(*pack, buffers));
  packed_.emplace_back(std::move(packed));
  return offsets_[key] = Append(packed_.back().bytes());
}

}  // namespace tilefarm::driver
