#include "compiler/ir/thread_axis.h"

namespace tilefarm::ir {
namespace {

constexpr std::array<std::string_view, kThreadAxes> kTags = {
    "blockIdx.z",  "blockIdx.y",  "blockIdx.x", "clusterCtaIdx.x",
    "threadIdx.z", "threadIdx.y", "threadIdx.x"};

}  // namespace

std::optional<ThreadAxis> ParseThreadAxis(std::string_view tag) {
  for (size_t i = 0; i < kTags.size(); ++i) {
    if (kTags[i] == tag) return static_cast<ThreadAxis>(i);
  }
  return std::nullopt;
}

std::string_view ThreadTag(ThreadAxis axis) {
  return kTags[static_cast<size_t>(axis)];
}

bool IsVirtualThread(std::string_view tag) {
  return tag == "vthread" || tag.starts_with("vthread.");
}

}  // namespace tilefarm::ir
