#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/gpu_passes.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::ForNode;
using ir::Stmt;

// The buffers that a kernel gets and those that it allocates.
class BufferCollector : public ir::Visitor {
 public:
  std::vector<Buffer> used;
  std::vector<Buffer> shared;
  std::vector<ir::TensorMap> maps;
  std::set<const ir::BufferNode*> tiles;  // that the copy engine accesses
  int64_t local_bytes = 0;                // of one thread alone

 protected:
  void VisitAlloc(const ir::AllocNode& s) override {
    if (ir::ScopeOf(*s.buffer) == ir::MemoryScope::kShared) {
      shared.push_back(s.buffer);
    } else {
      local_bytes += s.buffer->num_elements() * s.buffer->dtype.bytes();
    }
    seen_.insert(s.buffer.get());
    Visitor::VisitAlloc(s);
  }
  void VisitLoad(const ir::LoadNode& e) override {
    Use(e.buffer);
    Visitor::VisitLoad(e);
  }
  void VisitStore(const ir::StoreNode& s) override {
    Use(s.buffer);
    Visitor::VisitStore(s);
  }
  // The tensor is no argument of its own.
  void VisitMachineOp(const ir::MachineOpNode& e) override {
    if (e.op != ir::MachineOp::kCopyBox &&
        e.op != ir::MachineOp::kCopyWindows &&
        e.op != ir::MachineOp::kStoreBox) {
      return Visitor::VisitMachineOp(e);
    }
    ir::BoxCopy copy = ir::AsBoxCopy(e);
    tiles.insert(ir::As<ir::LoadNode>(copy.shared)->buffer.get());
    if (std::ranges::find(maps, copy.map) == maps.end()) {
      maps.push_back(std::move(copy.map));
    }
    for (size_t i = 1; i < e.args.size(); ++i) Visit(e.args[i]);
  }

 private:
  void Use(const Buffer& buffer) {
    if (seen_.insert(buffer.get()).second) used.push_back(buffer);
  }
  std::set<const ir::BufferNode*> seen_;
};

// What is allocated for one thread alone is at most so large: far beyond
// registers, and what the simulator's stacks have room for (runtime/sim.c).
constexpr int64_t kMostLocalBytes = 128 << 10;

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

absl::StatusOr<Kernel> MakeKernel(const Stmt& stmt,
                                  const target::GpuLimits& limits) {
  Kernel kernel;
  kernel.body = stmt;
  while (const auto* loop = ir::As<ForNode>(kernel.body)) {
    if (loop->for_kind != ir::ForKind::kThreadBinding) break;
    kernel.axes.push_back({*ir::ParseThreadAxis(loop->thread_tag), loop->var,
                           *ir::AsInt(loop->extent)});
    if (kernel.axes.back().axis == ir::ThreadAxis::kCluster) {
      kernel.cluster_blocks = kernel.axes.back().extent;
    }
    const auto resident = loop->annotations.find(ir::kResidentBlocks);
    if (resident != loop->annotations.end()) {
      kernel.resident_blocks = std::max(kernel.resident_blocks,
                                        resident->second.AsInt().value_or(0));
    }
    kernel.body = loop->body;
  }
  BufferCollector collector;
  collector.Visit(kernel.body);
  kernel.buffers = std::move(collector.used);
  kernel.maps = std::move(collector.maps);
  for (Buffer& buffer : collector.shared) {
    const int64_t bytes = buffer->num_elements() * buffer->dtype.bytes();
    const int64_t begin =
        RoundUp(kernel.shared_bytes, collector.tiles.contains(buffer.get())
                                         ? ir::kBoxAlignment
                                         : ir::kSharedAlignment);
    kernel.shared.emplace_back(std::move(buffer), begin);
    kernel.shared_bytes = RoundUp(begin + bytes, ir::kSharedAlignment);
  }
  if (kernel.shared_bytes > limits.block_shared) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the threads of a block share ", kernel.shared_bytes,
        " bytes of buffers; the target has ", limits.block_shared));
  }
  if (collector.local_bytes > kMostLocalBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a thread has ", collector.local_bytes,
        " bytes of buffers of its own; it may have ", kMostLocalBytes));
  }
  return kernel;
}

absl::Status Split(const Stmt& stmt, const target::GpuLimits& limits,
                   KernelSequence& out) {
  if (const auto* alloc = ir::As<ir::AllocNode>(stmt);
      alloc != nullptr &&
      ir::ScopeOf(*alloc->buffer) == ir::MemoryScope::kGlobal) {
    out.workspaces.push_back(alloc->buffer);
    return Split(alloc->body, limits, out);
  }
  if (const auto* seq = ir::As<ir::SeqNode>(stmt)) {
    for (const Stmt& s : seq->stmts) TF_RETURN_IF_ERROR(Split(s, limits, out));
    return absl::OkStatus();
  }
  if (ir::IsNoOp(stmt)) return absl::OkStatus();
  TF_ASSIGN_OR_RETURN(out.kernels.emplace_back(), MakeKernel(stmt, limits));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KernelSequence> SplitKernels(const ir::PrimFunc& function,
                                            const target::GpuLimits& limits) {
  KernelSequence sequence;
  TF_RETURN_IF_ERROR(Split(function.body, limits, sequence));
  return sequence;
}

}  // namespace tilefarm::lower
