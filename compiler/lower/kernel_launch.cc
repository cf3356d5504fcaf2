#include "compiler/lower/kernel_launch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"

namespace tilefarm::lower {

using ir::ForKind;
using ir::ForNode;
using ir::Stmt;
using ir::ThreadAxis;

std::optional<ThreadAxis> AxisOf(const ForNode& loop) {
  if (loop.for_kind != ForKind::kThreadBinding) return std::nullopt;
  return ir::ParseThreadAxis(loop.thread_tag);
}

Launch LaunchOf(const Stmt& kernel) {
  Launch launch{};
  ir::PreOrder(kernel, [&](const Stmt& s) {
    const auto* loop = ir::As<ForNode>(s);
    const auto axis = loop == nullptr ? std::nullopt : AxisOf(*loop);
    if (axis) {
      int64_t& extent = launch.extent(*axis);
      extent = std::max(extent, *ir::AsInt(loop->extent));
      for (const char* pragma : {ir::kUnrollMaxStep, ir::kUnrollExplicit}) {
        const auto found = loop->annotations.find(pragma);
        if (found != loop->annotations.end()) {
          launch.annotations.insert(*found);
        }
      }
      const auto quads = loop->annotations.find(ir::kRowQuads);
      if (*axis == ThreadAxis::kThreadX && quads != loop->annotations.end()) {
        launch.annotations.insert(*quads);
      }
      const auto resident = loop->annotations.find(ir::kResidentBlocks);
      if (resident != loop->annotations.end()) {
        const auto old =
            launch.annotations.try_emplace(resident->first, resident->second);
        if (!old.second && old.first->second.AsInt().value_or(0) <
                               resident->second.AsInt().value_or(0)) {
          old.first->second = resident->second;
        }
      }
    }
    return true;
  });
  for (int i = 0; i < ir::kThreadAxes; ++i) {
    std::string name(ir::ThreadTag(static_cast<ThreadAxis>(i)));
    std::ranges::replace(name, '.', '_');
    launch.vars[static_cast<size_t>(i)] = ir::MakeVar(std::move(name));
  }
  return launch;
}

absl::Status CheckLaunch(const Launch& launch,
                         const target::GpuLimits& limits) {
  int64_t threads = 1;
  for (int i = 0; i < ir::kThreadAxes; ++i) {
    const auto axis = static_cast<ThreadAxis>(i);
    const int64_t extent =
        std::max<int64_t>(1, launch.extents[static_cast<size_t>(i)]);
    const int64_t most = axis == ThreadAxis::kBlockX    ? int64_t{0x7fffffff}
                         : axis == ThreadAxis::kCluster ? limits.cluster_blocks
                         : !ir::IsThreadIdx(axis)       ? 0xffff
                         : axis == ThreadAxis::kThreadZ ? 64
                                                        : limits.block_threads;
    if (extent > most) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(ir::ThreadTag(axis)), " has ", extent,
                       " iterations; a GPU can have ", most));
    }
    if (ir::IsThreadIdx(axis)) threads *= extent;
  }
  if (threads > limits.block_threads) {
    return absl::InvalidArgumentError(
        absl::StrCat("a block has ", threads, " threads; the target can have ",
                     limits.block_threads));
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::lower
