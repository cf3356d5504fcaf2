// The axes to which loops can be bound: T.thread_binding(n, "threadIdx.x").
#ifndef TILEFARM_COMPILER_IR_THREAD_AXIS_H_
#define TILEFARM_COMPILER_IR_THREAD_AXIS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tilefarm::ir {

// Blocks before threads, the fastest varying axis of either last. With a
// cluster axis, each iteration of blockIdx.x is a cluster of blocks, which run
// at the same time and read each other's shared memory.
enum class ThreadAxis : uint8_t {
  kBlockZ,
  kBlockY,
  kBlockX,
  kCluster,  // "clusterCtaIdx.x", TVM's name
  kThreadZ,
  kThreadY,
  kThreadX,
};
inline constexpr int kThreadAxes = 7;

// "blockIdx.x"; nullopt for other tags, virtual threads included.
std::optional<ThreadAxis> ParseThreadAxis(std::string_view tag);
std::string_view ThreadTag(ThreadAxis axis);

inline bool IsThreadIdx(ThreadAxis axis) {
  return axis >= ThreadAxis::kThreadZ;
}
// 0 to 2 for x to z.
inline size_t DimensionOf(ThreadAxis axis) {
  const auto last =
      IsThreadIdx(axis) ? ThreadAxis::kThreadX : ThreadAxis::kBlockX;
  return axis == ThreadAxis::kCluster
             ? 0
             : static_cast<size_t>(last) - static_cast<size_t>(axis);
}

// "vthread", "vthread.x": the iterations of one thread, side by side.
bool IsVirtualThread(std::string_view tag);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_THREAD_AXIS_H_
