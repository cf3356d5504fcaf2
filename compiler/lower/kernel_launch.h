// The axes of a kernel while its loops of threads become them (map_threads.cc).
#ifndef TILEFARM_COMPILER_LOWER_KERNEL_LAUNCH_H_
#define TILEFARM_COMPILER_LOWER_KERNEL_LAUNCH_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/thread_axis.h"
#include "compiler/target/gpu.h"

namespace tilefarm::lower {

struct Launch {
  std::array<int64_t, ir::kThreadAxes> extents;  // 0: no loop
  std::array<ir::Var, ir::kThreadAxes> vars;
  ir::AttrMap annotations;  // pragmas of the loops that are mapped

  int64_t& extent(ir::ThreadAxis axis) {
    return extents[static_cast<size_t>(axis)];
  }
};

// nullopt: the loop is not bound, or to virtual threads.
std::optional<ir::ThreadAxis> AxisOf(const ir::ForNode& loop);

// The iterations of each axis are the most of its loops.
Launch LaunchOf(const ir::Stmt& kernel);

// InvalidArgument if it exceeds what the target can launch.
absl::Status CheckLaunch(const Launch& launch, const target::GpuLimits& limits);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_KERNEL_LAUNCH_H_
