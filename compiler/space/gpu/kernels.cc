#include "compiler/space/gpu/kernels.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/int_set.h"
#include "compiler/arith/scaled_sum.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/dim_align.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/tensor_box.h"
#include "compiler/ir/thread_axis.h"
#include "compiler/ir/visitor.h"
#include "compiler/ir/warpgroup_product.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/thread_binding.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

// CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability": the largest grid in y and z, and the largest block in z.
constexpr int64_t kMostBlocksYZ = 65535;
constexpr int64_t kMostBlocksX = INT32_MAX;
constexpr int64_t kMostThreadsZ = 64;

using LoopNodes = std::vector<const ir::ForNode*>;

// Sizes are upper bounds: the box around what is accessed.
class Kernel {
 public:
  void Add(const ir::BlockNode& block, const LoopNodes& loops) {
    if (first_.empty()) first_ = block.name;
    bool bound = false;
    for (const ir::ForNode* loop : loops) {
      if (loop->for_kind != ir::ForKind::kThreadBinding) continue;
      bound = true;
      int64_t& extent = extents_.insert({loop->thread_tag, 1}).first->second;
      extent = std::max(extent, ir::AsInt(loop->extent).value_or(INT64_MAX));
      if (loop->annotations.contains(ir::kRowQuads)) lanes_ = ir::kQuadLanes;
    }
    for (const ir::ForNode* loop : loops) {
      const auto boxes = loop->annotations.find(ir::kBoxStores);
      stores_boxes_ |=
          boxes != loop->annotations.end() && boxes->second.AsInt() != 0;
      fetches_by_engine_ |= loop->annotations.contains(ir::kWarpgroupStages);
    }
    // Lowering adds the part's terms to the sum (lower/sum_in_place.cc).
    const auto* store = ir::As<ir::StoreNode>(block.body);
    if (store != nullptr && store->buffer->scope == "local") {
      if (const auto sum = arith::AsScaledSum(*store)) {
        parts_.insert(sum->part->buffer.get());
      }
    }
    if (!bound && unbound_.empty()) unbound_ = block.name;
    for (const auto* regions : {&block.reads, &block.writes}) {
      for (const ir::BufferRegion& region : *regions) {
        if (region.buffer->scope == "global") continue;
        accesses_[region.buffer.get()].push_back(
            {schedule::SubstituteRegion(region, schedule::BindingsOf(block)),
             loops, blocks_.size()});
      }
    }
    const bool reduces =
        std::ranges::any_of(block.iters, [](const ir::IterVar& iter) {
          return iter.type == ir::IterType::kReduce;
        });
    blocks_.push_back({loops, !reduces});
  }

  absl::Status Check(const target::GpuLimits& limits) const {
    if (!unbound_.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "block ", unbound_, " is in no loop that is bound to the GPU"));
    }
    int64_t threads = 1;
    for (const auto& [tag, extent] : extents_) {
      if (schedule::IsThreadAxis(tag)) threads *= extent;
      const int64_t most = tag == "blockIdx.x" ? kMostBlocksX
                           : schedule::IsClusterAxis(tag)
                               ? limits.cluster_blocks
                           : schedule::IsBlockAxis(tag) ? kMostBlocksYZ
                           : tag == "threadIdx.z"       ? kMostThreadsZ
                                                        : INT64_MAX;
      if (extent > most) return Exceeds(tag, extent, most);
    }
    threads *= lanes_;
    // One more warp lets the engine fetch.
    const int64_t all = threads + (fetches_by_engine_ ? ir::kWarpLanes : 0);
    if (all > limits.block_threads) {
      return Exceeds("threads of a block", all, limits.block_threads);
    }
    int64_t shared = 0;
    std::vector<Live> local(blocks_.size());  // while each block runs
    for (const auto& [buffer, accesses] : accesses_) {
      const bool is_shared = buffer->scope.starts_with("shared");
      const int64_t bytes = Bytes(accesses, is_shared);
      if (is_shared) {
        shared += CeilDiv(bytes, ir::kSharedAlignment) * ir::kSharedAlignment;
      } else {
        if (parts_.contains(buffer)) continue;
        const Life life = LifeOf(accesses);
        const int64_t each = CeilDiv(bytes, lanes_);
        for (size_t b = life.first; b <= life.last; ++b) {
          Live& live = local[b];
          (life.kept         ? live.on
           : b == life.first ? live.begins
           : b == life.last  ? live.ends
                             : live.on) += each;
        }
      }
    }
    // The tiles of results that each warpgroup gives to the copy engine.
    if (stores_boxes_) {
      shared += threads / ir::kWarpgroup * ir::kStoreTiles *
                ir::kWarpgroupRows * ir::kBoxRowBytes;
    }
    if (shared > limits.block_shared) {
      return Exceeds("bytes of shared memory", shared, limits.block_shared);
    }
    const int64_t registers =
        4 * (fetches_by_engine_ ? ConsumerRegisters(limits, threads)
                                : LocalRegisters(limits, threads));
    int64_t most = 0;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      // Element by element, one takes the other's place.
      most = std::max(
          most, local[b].on + (blocks_[b].elementwise
                                   ? std::max(local[b].begins, local[b].ends)
                                   : local[b].begins + local[b].ends));
    }
    if (most > registers) {
      return Exceeds("bytes of registers of a thread", most, registers);
    }
    return absl::OkStatus();
  }

 private:
  struct Access {
    ir::BufferRegion region;
    LoopNodes loops;
    size_t block;
  };
  struct BlockNest {
    LoopNodes loops;
    bool elementwise;
  };
  // Bytes of a thread's registers that have a value before or after a block, or
  // both.
  struct Live {
    int64_t begins = 0, ends = 0, on = 0;
  };
  struct Life {
    size_t first, last;
    bool kept = false;  // from one iteration to the next
  };

  absl::Status Exceeds(std::string_view what, int64_t used,
                       int64_t limit) const {
    return absl::FailedPreconditionError(
        absl::StrCat("the kernel of block ", first_, " needs ", used, " ",
                     std::string(what), ", the target has ", limit));
  }

  // The number of different regions in the loop's iterations.
  static int64_t DifferentRegions(arith::Analyzer& analyzer,
                                  const ir::BufferRegion& region,
                                  const ir::ForNode& loop) {
    int64_t count = 1;
    for (const ir::Range& range : region.region) {
      std::set<std::string> starts;
      for (int64_t i = 0; i < ir::AsInt(loop.extent).value_or(1); ++i) {
        starts.insert(ir::ToString(analyzer.Simplify(
            ir::Substitute(range.min, {{loop.var.get(), ir::IntConst(i)}}))));
      }
      count *= static_cast<int64_t>(starts.size());
    }
    return count;
  }

  static int64_t PaddedElements(const ir::BufferNode& buffer) {
    if (buffer.shape.empty()) return 1;
    const auto strides = ir::PaddedStrides(buffer);
    return strides ? buffer.shape[0] * strides->front() : INT32_MAX;
  }

  // The loops around all accesses.
  static size_t CommonLoops(const std::vector<Access>& accesses) {
    size_t common = accesses[0].loops.size();
    for (const Access& access : accesses) {
      const auto end = std::ranges::mismatch(accesses[0].loops, access.loops);
      common = std::min(
          common, static_cast<size_t>(end.in1 - accesses[0].loops.begin()));
    }
    return common;
  }

  // The blocks, from the first to the last, while which run a thread needs the
  // buffer: those that access it, and all in a loop that keeps its values from
  // one iteration to the next.
  Life LifeOf(const std::vector<Access>& accesses) const {
    const size_t common = CommonLoops(accesses);
    Life life{accesses[0].block, accesses[0].block};
    for (const Access& access : accesses) {
      life.first = std::min(life.first, access.block);
      life.last = std::max(life.last, access.block);
    }
    const size_t first = life.first, last = life.last;
    for (const Access& access : accesses) {
      if (access.loops.size() <= common) continue;
      const ir::ForNode* loop = access.loops[common];
      for (size_t b = 0; b < blocks_.size(); ++b) {
        const LoopNodes& loops = blocks_[b].loops;
        if (loops.size() <= common || loops[common] != loop) continue;
        life.first = std::min(life.first, b);
        life.last = std::max(life.last, b);
      }
      // Another block of the loop accesses it, perhaps in the next iteration.
      if (ir::IsConstInt(loop->extent, 1)) continue;
      for (const Access& other : accesses) {
        life.kept |= other.block != access.block &&
                     other.loops.size() > common && other.loops[common] == loop;
      }
    }
    life.kept |= life.first != first || life.last != last;
    return life;
  }

  // Each iteration of the loops around all accesses has its own copy of the
  // buffer, but the threads of a block have one shared buffer.
  static int64_t Bytes(const std::vector<Access>& accesses, bool shared) {
    const size_t common = CommonLoops(accesses);
    int64_t most = 0;
    for (const Access& access : accesses) {
      const ir::BufferNode& buffer = *access.region.buffer;
      arith::Analyzer analyzer;
      arith::VarRanges relaxed;
      int64_t size = buffer.dtype.bytes();
      for (size_t i = 0; i < access.loops.size(); ++i) {
        const ir::ForNode& loop = *access.loops[i];
        const ir::Range range{loop.min, loop.extent};
        analyzer.Bind(loop.var, range);
        const bool threads = loop.for_kind == ir::ForKind::kThreadBinding &&
                             !schedule::IsBlockAxis(loop.thread_tag);
        if (i >= common || (shared && threads)) {
          relaxed.emplace_back(loop.var, range);
        }
        // The registers of a thread are those of all its virtual threads.
        if (!shared && i < common && ir::IsVirtualThread(loop.thread_tag)) {
          size *= DifferentRegions(analyzer, access.region, loop);
        }
        for (const char* key : {ir::kSharedStages, ir::kWarpgroupStages}) {
          const auto stages = loop.annotations.find(key);
          if (shared && i < common && stages != loop.annotations.end()) {
            size *= stages->second.AsInt().value_or(1);
          }
        }
      }
      const arith::Region hull =
          arith::RelaxRegion(analyzer, access.region, relaxed);
      // Those of all iterations, unless they overlap; they may lie apart.
      int64_t separate = 1;
      for (const ir::Range& range : access.region.region) {
        separate *= ir::AsInt(range.extent).value_or(kMostBlocksX);
      }
      for (const auto& [var, range] : relaxed) {
        const bool used = std::ranges::any_of(
            access.region.region,
            [&](const ir::Range& r) { return ir::UsesVar(r.min, var.get()); });
        if (used) separate *= ir::AsInt(range.extent).value_or(kMostBlocksX);
        separate = std::min<int64_t>(separate, kMostBlocksX);
      }
      ir::BufferNode part = buffer;
      const bool of_cluster = ir::ScopeOf(buffer) == ir::MemoryScope::kCluster;
      if (of_cluster) part.shape[0] = 1;
      for (size_t d = 0; d < hull.size(); ++d) {
        part.shape[d] = std::min(
            part.shape[d], ir::AsInt(hull[d].extent).value_or(part.shape[d]));
      }
      most = std::max(
          most, size * (shared ? PaddedElements(part)
                               : std::min(PaddedElements(part), separate)));
    }
    return most;
  }

  std::string first_, unbound_;
  bool stores_boxes_ = false, fetches_by_engine_ = false;
  int64_t lanes_ = 1;  // that run an iteration of threadIdx.x
  std::map<std::string, int64_t> extents_;  // by axis
  std::vector<BlockNest> blocks_;           // in order
  // What is added to sums that are scaled before.
  std::set<const ir::BufferNode*> parts_;
  std::map<const ir::BufferNode*, std::vector<Access>> accesses_;
};

// Of a thread. Each quarter of an NVIDIA multiprocessor has a quarter of the
// registers, for every fourth warp.
int64_t RegistersOf(const target::GpuLimits& limits, int64_t threads) {
  const int64_t unit = limits.architecture > 0 ? 4 * limits.warp_lanes : 1;
  return std::min<int64_t>(
      limits.thread_registers,
      limits.registers / (CeilDiv(std::max<int64_t>(threads, 1), unit) * unit));
}

// Adds the blocks below the statement, but not those inside of them.
void AddBlocks(const ir::Stmt& stmt, LoopNodes& loops, Kernel& kernel) {
  if (const auto* block = ir::As<ir::BlockNode>(stmt)) {
    kernel.Add(*block, loops);
  } else if (const auto* loop = ir::As<ir::ForNode>(stmt)) {
    loops.push_back(loop);
    AddBlocks(loop->body, loops, kernel);
    loops.pop_back();
  } else if (const auto* seq = ir::As<ir::SeqNode>(stmt)) {
    for (const ir::Stmt& one : seq->stmts) AddBlocks(one, loops, kernel);
  } else if (const auto* branch = ir::As<ir::IfNode>(stmt)) {
    AddBlocks(branch->then_case, loops, kernel);
    if (branch->else_case != nullptr) {
      AddBlocks(branch->else_case, loops, kernel);
    }
  } else if (const auto* let = ir::As<ir::LetStmtNode>(stmt)) {
    AddBlocks(let->body, loops, kernel);
  }
}

}  // namespace

int64_t LocalRegisters(const target::GpuLimits& limits, int64_t threads) {
  return std::max<int64_t>(RegistersOf(limits, threads) - kOtherRegisters, 0);
}

int64_t ConsumerRegisters(const target::GpuLimits& limits, int64_t threads) {
  return std::max<int64_t>(
      RegistersOf(limits, threads + ir::kWarpLanes) - kOtherConsumerRegisters,
      0);
}

absl::Status CheckKernels(const ir::PrimFunc& function,
                          const target::GpuLimits& limits) {
  const auto* root = ir::As<ir::BlockNode>(function.body);
  const auto* seq = root == nullptr ? nullptr : ir::As<ir::SeqNode>(root->body);
  std::vector<ir::Stmt> nests;
  if (seq != nullptr) {
    nests = seq->stmts;
  } else {
    nests.push_back(root == nullptr ? function.body : root->body);
  }
  for (const ir::Stmt& nest : nests) {
    Kernel kernel;
    LoopNodes loops;
    AddBlocks(nest, loops, kernel);
    TF_RETURN_IF_ERROR(kernel.Check(limits));
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::space
