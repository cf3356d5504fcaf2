// The axes to which loops can be bound: T.thread_binding(n, "threadIdx.x").
#ifndef TILEFARM_COMPILER_IR_THREAD_AXIS_H_
#define TILEFARM_COMPILER_IR_THREAD_AXIS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tilefarm::ir {

// Blocks before threads, the fastest varying axis of either last.
enum class ThreadAxis : uint8_t {
  kBlockZ,
  kBlockY,
  kBlockX,
  kThreadZ,
  kThreadY,
  kThreadX,
};
inline constexpr int kThreadAxes = 6;

// "blockIdx.x"; nullopt for other tags, virtual threads included.
std::optional<ThreadAxis> ParseThreadAxis(std::string_view tag);
std::string_view ThreadTag(ThreadAxis axis);

inline bool IsThreadIdx(ThreadAxis axis) {
  return axis >= ThreadAxis::kThreadZ;
}

// "vthread", "vthread.x": the iterations of one thread, side by side.
bool IsVirtualThread(std::string_view tag);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_THREAD_AXIS_H_
